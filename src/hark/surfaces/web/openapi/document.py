"""The API, told in OpenAPI."""

from collections.abc import Mapping

from hark.protocol.hooks import Hook
from hark.surfaces.web.guard.access import COOKIE
from hark.surfaces.web.openapi.hooks import hook_paths
from hark.surfaces.web.openapi.others import other_paths
from hark.surfaces.web.openapi.phrases import Json
from hark.surfaces.web.openapi.schedules import schedule_paths, schedule_schemas
from hark.surfaces.web.openapi.sessions import session_paths
from hark.surfaces.web.openapi.values import schemas


def document(version: str, hooks: Mapping[str, Hook]) -> Json:
    """Return the whole document, with the hooks that answer now."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hark",
            "version": version,
            "description": "An agent that listens while it works. Errors are always {error: {code, message}}.",
        },
        "security": [{}, {"token": []}, {"login": []}],
        "paths": {**session_paths(), **other_paths(), **schedule_paths(), **hook_paths(hooks)},
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "login": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
            "schemas": {**schemas(), **schedule_schemas()},
        },
    }
