"""The OpenAPI document describes every route, every status, and the structs that handlers use."""

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
from hark.surfaces.web.app import make_routes
from hark.surfaces.web.endpoints import ENDPOINTS
from hark.surfaces.web.openapi import make_document
from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import text
from tests.surfaces.web.test_voice import EchoTranscriber
from tests.surfaces.web.web_fixture import Json, WebFixture, run_web_server

DEMO = "/api/sessions/demo"
NINE = {"when": "0 9 * * *", "prompt": "What is new?", "name": "news", "once": True}


async def test_the_openapi_document_and_the_routes_have_the_same_paths(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        _, document = await web.call("GET", "/openapi.json")
        routes: list[Route] = make_routes(web.context)
        routed = {
            (route.path.replace(":path", ""), method)
            for route in routes
            for method in (route.methods or set[str]()) - {"HEAD"}
        }
    documented = {(path, method.upper()) for path, item in document["paths"].items() for method in item}
    assert documented == routed


async def test_errors_that_any_request_can_cause_are_documented(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["ok"])], token="a-long-token") as web:
        _, document = await web.call("GET", "/openapi.json", headers={"Authorization": "Bearer a-long-token"})
        operations: list[tuple[str, str, Any]] = [
            (path, method, operation) for path, item in document["paths"].items() for method, operation in item.items()
        ]
        for path, method, operation in operations:
            url = path.replace("{", "").replace("}", "")
            for headers in ({}, {"Origin": "null"}, {"Host": "evil.example"}):
                status, _, _ = await web.fetch(url, method.upper(), headers=headers)
                assert str(status) in operation["responses"], (method, path, status)
                assert headers or (status == 401) == ("security" not in operation), (method, path, status)


async def start_question(web: WebFixture, session: str) -> str:
    """Start a turn that asks a question. Return the question's id."""
    async with web.events(session) as events:
        await web.say(session, "make it")
        return (await events.wait_for("question.asked"))["question"]


def example_requests(question: str) -> list[tuple[str, str, str, Any]]:
    """Return a sample request (method, path pattern, path and body) for every endpoint with a JSON response."""
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


async def test_every_response_matches_its_documented_struct(tmp_path: Path) -> None:
    table = {(endpoint.method, endpoint.path): endpoint for endpoint in ENDPOINTS if "return" in endpoint.types}
    seen: set[tuple[str, str]] = set()
    script = [shell_call("touch made"), shell_call("touch made"), *(text(["ok"]) for _ in range(8))]
    async with run_web_server(tmp_path, script, transcriber=EchoTranscriber(), approvals={"mode": "ask"}) as web:
        await start_question(web, "busy")
        for method, pattern, path, body in example_requests(await start_question(web, "asking")):
            endpoint = table[method, pattern]
            if "voice" in path:
                sent: dict[str, Any] = {"data": b"sound", "headers": {"Content-Type": "audio/ogg"}}
            else:
                sent = {} if body is None else {"json": body}
            status, _, answer = await web.fetch(path, method, **sent)
            assert status in endpoint.statuses, (path, answer)
            decoded = msgspec.json.decode(answer, type=endpoint.types["return"])
            assert json.loads(msgspec.json.encode(decoded)) == json.loads(answer), path
            seen.add((method, pattern))
    assert seen == set(table)


async def test_error_responses_match_the_documented_struct(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        for method, path in (("GET", "/nothing"), ("PUT", "/healthz"), ("POST", "/v1/chat/completions")):
            _, _, answer = await web.fetch(path, method)
            decoded = msgspec.json.decode(answer, type=ErrorResponse)
            assert json.loads(msgspec.json.encode(decoded)) == json.loads(answer)


def schema_of(kind: Any) -> Json:
    """Return msgspec's schema for a struct, without its description."""
    _, components = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return {**components[kind.__name__], "description": ""}


def test_documented_schemas_are_the_schemas_of_the_handlers_structs() -> None:
    document = make_document(ENDPOINTS, "0", {})
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path.replace(":path", "")][endpoint.method.lower()]
        assert operation["summary"], endpoint.path
        parameters = {item["name"]: item["schema"] for item in operation.get("parameters", ())}
        if "query" in endpoint.types:
            assert schema_of(endpoint.types["query"])["properties"].items() <= parameters.items()
        assert ("body" in endpoint.types or bool(endpoint.accepts)) == ("requestBody" in operation)
        places = [("body", operation.get("requestBody"))]
        places += [("return", operation["responses"][str(status)]) for status in endpoint.statuses]
        for name, place in places:
            kind = endpoint.types.get(name)
            if isinstance(kind, type) and issubclass(kind, Struct):
                assert place["content"] == {
                    "application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}
                }
                assert {**document["components"]["schemas"][kind.__name__], "description": ""} == schema_of(kind)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_every_handler_declares_either_a_return_struct_or_media_types(endpoint: HttpEndpoint) -> None:
    is_json = "return" in endpoint.types
    assert is_json != bool(endpoint.content)  # a struct, or media types


async def test_an_endpoint_in_the_table_is_documented_from_its_handler() -> None:
    class Greeting(Struct):
        """A greeting."""

        text: str

    async def greet(web: WebContext, request: Request, body: Greeting) -> Greeting:
        """Greet back. Politely."""
        return body

    document = make_document([HttpEndpoint("POST", "/greet/{name}", greet, (201,))], "0", {})
    operation = document["paths"]["/greet/{name}"]["post"]
    assert (operation["summary"], operation["description"]) == ("Greet back", "Greet back. Politely.")
    assert sorted(operation["responses"]) == ["201", "400", "401", "403", "405", "408", "413", "415", "429", "503"]
    assert document["components"]["schemas"]["Greeting"]["required"] == ["text"]
