"""The OpenAPI document describes every route, every status, and the very structs that are decoded and encoded."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from starlette.requests import Request
from starlette.routing import Route

from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.endpoint import HttpEndpoint
from hark.surfaces.web.api.errors import ErrorResponse
from hark.surfaces.web.app import routes_of
from hark.surfaces.web.endpoints import ENDPOINTS
from hark.surfaces.web.openapi import document
from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import text
from tests.surfaces.web.test_voice import Ear
from tests.surfaces.web.web_fixture import Json, World, served

DEMO = "/api/sessions/demo"
NINE = {"when": "0 9 * * *", "prompt": "What is new?", "name": "news", "once": True}


async def test_every_route_is_documented_and_every_documented_path_is_a_route(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        _, told = await world.call("GET", "/openapi.json")
        routes: list[Route] = routes_of(world.place)
        there = {
            (route.path.replace(":path", ""), method)
            for route in routes
            for method in (route.methods or set[str]()) - {"HEAD"}
        }
    documented = {(path, method.upper()) for path, item in told["paths"].items() for method in item}
    assert documented == there


async def test_the_errors_that_any_request_can_get_are_documented(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["ok"])], token="a-long-token") as world:
        _, told = await world.call("GET", "/openapi.json", headers={"Authorization": "Bearer a-long-token"})
        operations: list[tuple[str, str, Any]] = [
            (path, method, operation) for path, item in told["paths"].items() for method, operation in item.items()
        ]
        for path, method, operation in operations:
            url = path.replace("{", "").replace("}", "")
            for headers in ({}, {"Origin": "null"}, {"Host": "evil.example"}):
                status, _, _ = await world.fetch(url, method.upper(), headers=headers)
                assert str(status) in operation["responses"], (method, path, status)
                assert headers or (status == 401) == ("security" not in operation), (method, path, status)


async def asked(world: World, session: str) -> str:
    """Start a turn that asks a question; return the name of the question."""
    async with world.events(session) as events:
        await world.say(session, "make it")
        return (await events.until("question.asked"))["question"]


def requests(question: str) -> list[tuple[str, str, str, Any]]:
    """Return a request for every endpoint with a JSON response, as method, path pattern, path, and body."""
    session, news = "/api/sessions/{session}", "/api/schedules/{name}"
    return [
        ("POST", f"{session}/messages", f"{DEMO}/messages", {"text": "hi", "delivery": "queue", "id": "m1"}),
        ("POST", f"{session}/voice", f"{DEMO}/voice?id=v1&delivery=queue", None),
        ("GET", f"{session}/transcript", "/api/sessions/asking/transcript", None),
        ("POST", f"{session}/answers/{{question}}", f"/api/sessions/asking/answers/{question}", {"choice": "no"}),
        ("POST", f"{session}/messages", "/api/sessions/busy/messages", {"text": "x", "id": "q1", "delivery": "queue"}),
        ("GET", f"{session}/queue", "/api/sessions/busy/queue", None),
        ("PATCH", f"{session}/queue/{{message}}", "/api/sessions/busy/queue/q1", {"text": "y", "position": 1.0}),
        ("DELETE", f"{session}/queue/{{message}}", "/api/sessions/busy/queue/q1", None),
        ("GET", "/api/status", "/api/status", None),
        ("POST", f"{session}/interrupt", "/api/sessions/busy/interrupt", {"source": "ada"}),
        ("POST", f"{session}/interrupt", "/api/sessions/busy/interrupt", None),
        ("GET", f"{session}/transcript", f"{DEMO}/transcript", None),
        ("GET", "/api/turns/{turn}/timeline", "/api/turns/busy.t1/timeline", None),
        ("GET", "/api/sessions", "/api/sessions?limit=5", None),
        ("GET", "/api/search", "/api/search?q=make", None),
        ("POST", "/api/schedules", "/api/schedules", NINE),
        ("PATCH", news, "/api/schedules/news", {"paused": True}),
        ("POST", f"{news}/run", "/api/schedules/news/run", None),
        ("GET", "/api/schedules", "/api/schedules", None),
        ("DELETE", news, "/api/schedules/news", None),
        ("GET", "/healthz", "/healthz", None),
        ("GET", "/v1/models", "/v1/models", None),
        ("POST", "/login", "/login", {"token": "x"}),
        ("POST", "/logout", "/logout", None),
        ("GET", "/openapi.json", "/openapi.json", None),
    ]


async def test_every_response_is_the_documented_struct_with_no_other_fields(tmp_path: Path) -> None:
    table = {(endpoint.method, endpoint.path): endpoint for endpoint in ENDPOINTS if "return" in endpoint.types}
    seen: set[tuple[str, str]] = set()
    script = [shell_call("touch made"), shell_call("touch made"), *(text(["ok"]) for _ in range(8))]
    async with served(tmp_path, script, transcriber=Ear(), approvals={"mode": "ask"}) as world:
        await asked(world, "busy")
        for method, pattern, path, body in requests(await asked(world, "asking")):
            endpoint = table[method, pattern]
            if "voice" in path:
                sent: dict[str, Any] = {"data": b"sound", "headers": {"Content-Type": "audio/ogg"}}
            else:
                sent = {} if body is None else {"json": body}
            status, _, answer = await world.fetch(path, method, **sent)
            assert status in endpoint.statuses, (path, answer)
            decoded = msgspec.json.decode(answer, type=endpoint.types["return"])
            assert json.loads(msgspec.json.encode(decoded)) == json.loads(answer), path
            seen.add((method, pattern))
    assert seen == set(table)


async def test_an_error_is_the_documented_struct(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        for method, path in (("GET", "/nothing"), ("PUT", "/healthz"), ("POST", "/v1/chat/completions")):
            _, _, answer = await world.fetch(path, method)
            decoded = msgspec.json.decode(answer, type=ErrorResponse)
            assert json.loads(msgspec.json.encode(decoded)) == json.loads(answer)


def described(kind: Any) -> Json:
    """Return the schema that msgspec gives a struct, without its description."""
    _, components = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return {**components[kind.__name__], "description": ""}


def test_documented_schemas_are_those_of_the_structs_that_handlers_take_and_return() -> None:
    told = document(ENDPOINTS, "0", {})
    for endpoint in ENDPOINTS:
        operation = told["paths"][endpoint.path.replace(":path", "")][endpoint.method.lower()]
        assert operation["summary"], endpoint.path
        parameters = {one["name"]: one["schema"] for one in operation.get("parameters", ())}
        if "query" in endpoint.types:
            assert described(endpoint.types["query"])["properties"].items() <= parameters.items()
        assert ("body" in endpoint.types or bool(endpoint.accepts)) == ("requestBody" in operation)
        places = [("body", operation.get("requestBody"))]
        places += [("return", operation["responses"][str(status)]) for status in endpoint.statuses]
        for name, place in places:
            kind = endpoint.types.get(name)
            if isinstance(kind, type) and issubclass(kind, Struct):
                assert place["content"] == {
                    "application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}
                }
                assert {**told["components"]["schemas"][kind.__name__], "description": ""} == described(kind)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_a_handler_declares_what_it_takes_and_what_it_returns(endpoint: HttpEndpoint) -> None:
    is_json = "return" in endpoint.types
    assert is_json != bool(endpoint.content)  # a struct, or media types


async def test_a_handler_that_is_added_to_the_table_is_served_and_documented() -> None:
    class Greeting(Struct):
        """A greeting."""

        text: str

    async def greet(web: WebContext, request: Request, body: Greeting) -> Greeting:
        """Greet back. Politely."""
        return body

    told = document([HttpEndpoint("POST", "/greet/{name}", greet, (201,))], "0", {})
    operation = told["paths"]["/greet/{name}"]["post"]
    assert (operation["summary"], operation["description"]) == ("Greet back", "Greet back. Politely.")
    assert sorted(operation["responses"]) == ["201", "400", "401", "403", "405", "408", "413", "415", "429", "503"]
    assert told["components"]["schemas"]["Greeting"]["required"] == ["text"]
