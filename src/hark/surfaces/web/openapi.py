"""The OpenAPI document, made from the endpoint table, the structs of its handlers, and the hooks."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from inspect import cleandoc
from typing import Any

import msgspec

from hark.protocol.hooks import Hook
from hark.surfaces.web.api.endpoint import HttpEndpoint
from hark.surfaces.web.api.errors import ErrorResponse
from hark.surfaces.web.guard.access import COOKIE
from hark.surfaces.web.guard.guard import is_open_path
from hark.surfaces.web.openai.completions import SESSION_HEADER

Json = dict[str, Any]

_ANY_REQUEST = (403, 405, 503)  # a foreign origin or host, another method, a start or a store that is not available
_WITH_TOKEN = (401, 429)
_WITH_BODY = (408, 413, 415)
_IN_PATH = re.compile(r"\{(\w+)(?::path)?\}")
_SESSION_NAME = {"type": "string", "pattern": r"^[A-Za-z0-9._:@+-]{1,200}$"}
_PARAMETERS = {"session": _SESSION_NAME, SESSION_HEADER: _SESSION_NAME}
_HOOK_RESPONSES = {
    "2XX": "It is kept: it need not be sent again",
    "400": "It can't be understood",
    "401": "It is not signed as it must be",
    "403": "It was not meant for this server",
    "405": "Only POST is answered",
    "408": "The body did not come in time",
    "413": "The body is too large",
    "422": "The payload lacks something",
    "429": "Too many in a minute",
    "503": "Not now: send it again",
}


def document(endpoints: Sequence[HttpEndpoint], version: str, hooks: Mapping[str, Hook]) -> Json:
    """Return the whole document, with the hooks that answer now."""
    schemas = SchemaSet(endpoints)
    paths: Json = {}
    for endpoint in endpoints:
        path = _IN_PATH.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    paths |= {path: {"post": _hook(hook)} for path, hook in sorted(hooks.items())}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hark",
            "version": version,
            "description": "An agent that listens while it works. Errors are always {error: {code, message}}.",
        },
        "security": [{}, {"token": []}, {"login": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "login": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
            "schemas": schemas.components,
        },
    }


class SchemaSet:
    """The schemas of all types in the table. Named ones are in `components`; the fields of queries are parameters."""

    def __init__(self, endpoints: Sequence[HttpEndpoint]) -> None:
        queries = [endpoint.types["query"] for endpoint in endpoints if "query" in endpoint.types]
        kinds = list({kind: None for endpoint in endpoints for kind in endpoint.types.values()} | {ErrorResponse: None})
        found, self.components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
        for schema in self.components.values():
            schema["description"] = cleandoc(schema.get("description", ""))
        self.by_type = dict(zip(kinds, found, strict=True))
        self.fields: dict[Any, Json] = {kind: self.components.pop(kind.__name__)["properties"] for kind in queries}


def _operation(endpoint: HttpEndpoint, schemas: SchemaSet) -> Json:
    words = cleandoc(endpoint.handler.__doc__ or "")
    types = endpoint.types
    parameters = _parameters(endpoint, schemas)
    errors = {*endpoint.errors, *_ANY_REQUEST}
    if needs_body := "body" in types or bool(endpoint.accepts):
        errors |= set(_WITH_BODY)
    if needs_body or parameters:
        errors.add(400)
    operation: Json = {"summary": words.partition(". ")[0].removesuffix("."), "description": words}
    if is_open_path(endpoint.path):
        operation["security"] = []
    else:
        errors |= set(_WITH_TOKEN)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.accepts:
        audio = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in endpoint.accepts}
        operation["requestBody"] = {"required": True, "content": audio}
    elif needs_body:
        operation["requestBody"] = {
            "required": not endpoint.is_body_optional,
            "content": _json(schemas.by_type[types["body"]]),
        }
    error = _json(schemas.by_type[ErrorResponse])
    responses = {status: {"description": HTTPStatus(status).phrase, "content": error} for status in errors}
    responses |= {status: _success(endpoint, status, schemas) for status in endpoint.statuses}
    return {**operation, "responses": {str(status): responses[status] for status in sorted(responses)}}


def _success(endpoint: HttpEndpoint, status: int, schemas: SchemaSet) -> Json:
    response: Json = {"description": HTTPStatus(status).phrase}
    if endpoint.content and status != HTTPStatus.NO_CONTENT:
        response["content"] = {kind: {} for kind in endpoint.content}
    elif "return" in endpoint.types:
        response["content"] = _json(schemas.by_type[endpoint.types["return"]])
    return response


def _parameters(endpoint: HttpEndpoint, schemas: SchemaSet) -> list[Json]:
    found = [
        ("path", name, _PARAMETERS.get(name, {"type": "string", "minLength": 1}))
        for name in _IN_PATH.findall(endpoint.path)
    ]
    if "query" in endpoint.types:
        found += [("query", name, schema) for name, schema in schemas.fields[endpoint.types["query"]].items()]
    found += [("header", name, _PARAMETERS.get(name, {"type": "string"})) for name in endpoint.headers]
    return [{"name": name, "in": place, "required": place == "path", "schema": schema} for place, name, schema in found]


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _hook(hook: Hook) -> Json:
    """Return the operation of a hook. Its platform signs its requests; it needs no token."""
    return {
        "summary": hook.summary,
        "security": [],
        "requestBody": {"required": True, "content": _json({"type": "object"})},
        "responses": {status: {"description": words} for status, words in _HOOK_RESPONSES.items()},
    }
