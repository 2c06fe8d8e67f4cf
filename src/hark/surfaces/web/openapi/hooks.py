"""The addresses that surfaces bring, told in OpenAPI: they come and go with the settings."""

from collections.abc import Mapping

from hark.protocol.hooks import Hook
from hark.surfaces.web.openapi.phrases import Json

_REFUSALS = {
    400: "It can't be understood",
    401: "It is not signed as it must be",
    403: "It was not meant for this server",
    405: "Only POST is answered",
    408: "The body did not come in time",
    413: "The body is too large",
    422: "The payload lacks something",
    429: "Too many in a minute",
    503: "Not now: send it again",
}


def hook_paths(hooks: Mapping[str, Hook]) -> Json:
    """Return the addresses of hooks. Who calls there is known by a signature, not by our token."""
    return {path: {"post": _post(hook)} for path, hook in sorted(hooks.items())}


def _post(hook: Hook) -> Json:
    taken = {"2XX": {"description": "It is kept: it need not be sent again"}}
    refused = {str(status): {"description": why} for status, why in _REFUSALS.items()}
    return {
        "summary": hook.summary,
        "security": [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {**taken, **refused},
    }
