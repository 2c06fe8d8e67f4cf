"""The OpenAPI document, generated from the endpoint table, the handlers' structs, and the hooks."""

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

_ANY_REQUEST = (403, 405, 503)  # foreign origin or host, wrong method, server starting or store unavailable
_WITH_TOKEN = (401, 429)
_WITH_BODY = (408, 413, 415)
_IN_PATH = re.compile(r"\{(\w+)(?::path)?\}")
_SESSION_NAME = {"type": "string", "pattern": r"^[A-Za-z0-9._:@+-]{1,200}$"}
_PARAMETERS = {"session": _SESSION_NAME, SESSION_HEADER: _SESSION_NAME}
_HOOK_RESPONSES = {
    "2XX": "Stored. Do not send it again",
    "400": "The request can't be parsed",
    "401": "The signature is missing or wrong",
    "403": "The request is not meant for this server",
    "405": "Only POST is allowed",
    "408": "The body did not arrive in time",
    "413": "The body is too large",
    "422": "The payload lacks a required field",
    "429": "Too many requests in a minute",
    "503": "Not available now. Send it again later",
}


def make_document(endpoints: Sequence[HttpEndpoint], version: str, hooks: Mapping[str, Hook]) -> Json:
    """Return the OpenAPI document, including the active hooks."""
    schemas = SchemaSet(endpoints)
    paths: Json = {}
    for endpoint in endpoints:
        path = _IN_PATH.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _make_operation(endpoint, schemas)
    paths |= {path: {"post": _make_hook_operation(hook)} for path, hook in sorted(hooks.items())}
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
    """The schemas for all endpoint types: named types in `components`, query parameters in `fields`."""

    def __init__(self, endpoints: Sequence[HttpEndpoint]) -> None:
        queries = [endpoint.types["query"] for endpoint in endpoints if "query" in endpoint.types]
        kinds = list({kind: None for endpoint in endpoints for kind in endpoint.types.values()} | {ErrorResponse: None})
        found, self.components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
        for schema in self.components.values():
            schema["description"] = cleandoc(schema.get("description", ""))
        self.by_type = dict(zip(kinds, found, strict=True))
        self.fields: dict[Any, Json] = {kind: self.components.pop(kind.__name__)["properties"] for kind in queries}


def _make_operation(endpoint: HttpEndpoint, schemas: SchemaSet) -> Json:
    description = cleandoc(endpoint.handler.__doc__ or "")
    types = endpoint.types
    parameters = _list_parameters(endpoint, schemas)
    errors = {*endpoint.errors, *_ANY_REQUEST}
    if needs_body := "body" in types or bool(endpoint.accepts):
        errors |= set(_WITH_BODY)
    if needs_body or parameters:
        errors.add(400)
    operation: Json = {"summary": description.partition(". ")[0].removesuffix("."), "description": description}
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
            "content": _json_content(schemas.by_type[types["body"]]),
        }
    error = _json_content(schemas.by_type[ErrorResponse])
    responses = {status: {"description": HTTPStatus(status).phrase, "content": error} for status in errors}
    responses |= {status: _success_response(endpoint, status, schemas) for status in endpoint.statuses}
    return {**operation, "responses": {str(status): responses[status] for status in sorted(responses)}}


def _success_response(endpoint: HttpEndpoint, status: int, schemas: SchemaSet) -> Json:
    response: Json = {"description": HTTPStatus(status).phrase}
    if endpoint.content and status != HTTPStatus.NO_CONTENT:
        response["content"] = {kind: {} for kind in endpoint.content}
    elif "return" in endpoint.types:
        response["content"] = _json_content(schemas.by_type[endpoint.types["return"]])
    return response


def _list_parameters(endpoint: HttpEndpoint, schemas: SchemaSet) -> list[Json]:
    parameters = [
        ("path", name, _PARAMETERS.get(name, {"type": "string", "minLength": 1}))
        for name in _IN_PATH.findall(endpoint.path)
    ]
    if "query" in endpoint.types:
        parameters += [("query", name, schema) for name, schema in schemas.fields[endpoint.types["query"]].items()]
    parameters += [("header", name, _PARAMETERS.get(name, {"type": "string"})) for name in endpoint.headers]
    return [
        {"name": name, "in": kind, "required": kind == "path", "schema": schema} for kind, name, schema in parameters
    ]


def _json_content(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _make_hook_operation(hook: Hook) -> Json:
    """Return the operation for a hook. No token is needed, because the platform signs its requests."""
    return {
        "summary": hook.summary,
        "security": [],
        "requestBody": {"required": True, "content": _json_content({"type": "object"})},
        "responses": {status: {"description": text} for status, text in _HOOK_RESPONSES.items()},
    }
