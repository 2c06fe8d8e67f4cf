"""Invalid requests: every error has the same format, is never a 5xx, and nothing is accepted."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from hark.surfaces.web import server as server_module
from hark.surfaces.web.settings import ServeSettings
from tests.surfaces.web.web_fixture import run_web_server
from tests.waiting import at_most

SAY = "/api/sessions/demo/messages"
STOP = "/api/sessions/demo/interrupt"
JSON = {"Content-Type": "application/json"}
PICTURE = {"media_type": "image/png", "data": "aGFyaw=="}

BODIES: list[tuple[str, bytes, int, str]] = [
    (SAY, b"", 400, "bad_json"),
    (SAY, b"{", 400, "bad_json"),
    (SAY, b"\xff\xfe", 400, "bad_json"),
    (SAY, b'{"other": ' + b"[" * 100_000, 400, "bad_json"),
    (SAY, b'"text"', 400, "bad_request"),
    (SAY, b"[]", 400, "bad_request"),
    (SAY, b"null", 400, "bad_request"),
    (SAY, b"{}", 400, "empty"),
    (SAY, b'{"text": "  "}', 400, "empty"),
    (SAY, b'{"text": 7}', 400, "bad_request"),
    (SAY, b'{"text": null}', 400, "bad_request"),
    (SAY, b'{"text": "\\ud800"}', 400, "bad_json"),
    (SAY, b'{"text": "x", "delivery": "soon"}', 400, "bad_request"),
    (SAY, b'{"text": "x", "id": 1}', 400, "bad_request"),
    (SAY, b'{"text": "x", "id": "a\\u0000b"}', 400, "bad_request"),
    (SAY, json.dumps({"text": "x", "id": "i" * 201}).encode(), 400, "bad_request"),
    (SAY, json.dumps({"text": "x", "author": "a\nb"}).encode(), 400, "bad_request"),
    (SAY, json.dumps({"text": "x", "attachments": {}}).encode(), 400, "bad_request"),
    (SAY, json.dumps({"text": "x", "attachments": [{}]}).encode(), 400, "bad_request"),
    (SAY, b'{"text": "x", "attachments": [{"media_type": "a/b", "path": "/etc/passwd"}]}', 400, "bad_request"),
    (SAY, json.dumps({"text": "x", "attachments": [PICTURE | {"data": "%%"}]}).encode(), 400, "bad_attachment"),
    (SAY, json.dumps({"text": "x", "attachments": [PICTURE | {"data": ""}]}).encode(), 400, "bad_attachment"),
    (SAY, json.dumps({"text": "x", "attachments": [PICTURE | {"media_type": "png"}]}).encode(), 400, "bad_attachment"),
    (SAY, json.dumps({"text": "x", "attachments": [PICTURE | {"name": "../x"}]}).encode(), 400, "bad_attachment"),
    (SAY, json.dumps({"text": "x", "attachments": [PICTURE | {"name": "a\\b"}]}).encode(), 400, "bad_attachment"),
    (SAY, json.dumps({"text": "x", "attachments": [PICTURE] * 21}).encode(), 400, "bad_attachment"),
    (STOP, b"{", 400, "bad_json"),
    (STOP, b"[]", 400, "bad_request"),
    (STOP, b'{"source": ""}', 400, "bad_request"),
    (STOP, b'{"turn": 5}', 400, "bad_request"),
    (STOP, b'{"shown": -1}', 400, "bad_request"),
    ("/login", b"{}", 400, "bad_request"),
    ("/v1/chat/completions", b"{}", 400, "bad_request"),
]  # fmt: skip


async def test_every_invalid_body_is_refused_and_adds_no_message(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        for path, body, status, code in BODIES:
            answered_status, answer = await web.call("POST", path, data=body, headers=JSON)
            assert (answered_status, answer["error"]["code"]) == (status, code), (path, body[:80], answer)
            assert answer["error"]["message"]
        assert await web.messages("demo") == []


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("GET", "/api/sessions?limit=1001", None, "limit is invalid: expected `int` <= 1000."),
        ("GET", "/api/search?limit=many", None, "limit is invalid: expected `int`, got `str`."),
        ("POST", SAY, {"text": "x", "shown": {"turn": "t", "characters": -1}}, "shown.characters is invalid: expected"),
        ("POST", SAY, ["x"], "The body is invalid: expected `object`, got `array`."),
        (
            "POST",
            "/v1/chat/completions",
            {"messages": [{"role": "boss"}]},
            "messages[0].role must be assistant, developer, ",
        ),
        ("POST", SAY, {"text": "x", "delivery": "soon"}, "delivery must be interrupt, steer or queue. GET"),
        ("POST", "/api/sessions/demo/voice?delivery=soon", None, "delivery must be interrupt, steer or queue. GET"),
        ("POST", "/api/schedules", {"when": "@daily\n", "prompt": "x"}, "when has unprintable characters."),
    ],
)
async def test_an_error_message_names_the_invalid_field(
    tmp_path: Path, method: str, path: str, body: Any, message: str
) -> None:
    async with run_web_server(tmp_path) as web:
        status, answer = await web.call(method, path, body)
        assert (status, answer["error"]["code"]) == (400, "bad_request")
        assert answer["error"]["message"].startswith(message)


@pytest.mark.parametrize(
    "name", ["a b", "a%00b", "%2e%2e", "...", "ä", "%C3%A4", "a" * 201, "a%5Cb", "a;b", "%F0%28%8C%28"]
)
async def test_invalid_session_names_are_refused(tmp_path: Path, name: str) -> None:
    async with run_web_server(tmp_path) as web:
        for method, endpoint in (("POST", "messages"), ("GET", "transcript"), ("GET", "events"), ("GET", "queue")):
            url: Any = URL(f"/api/sessions/{name.replace(' ', '%20')}/{endpoint}", encoded=True)
            status, answer = await web.call(method, url, {"text": "x"} if method == "POST" else None)
            assert (status, answer["error"]["code"]) in ((400, "bad_name"), (404, "not_found"), (400, "bad_http"))


async def test_unknown_paths_and_methods_are_refused(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        for method, path, status in (
            ("GET", "/nothing", 404),
            ("GET", "/api/sessions/", 404),
            ("GET", "/api/sessions/a%2Fb/queue/x/y", 404),
            ("GET", SAY, 405),
            ("DELETE", SAY, 405),
            ("PUT", "/api/sessions/demo/queue/x", 405),
            ("POST", "/api/sessions", 405),
            ("TRACE", "/healthz", 405),
            ("BREW", "/healthz", 400),  # not a valid HTTP method
            ("GET", "/v1/chat/completions", 405),
        ):
            answered_status, answer = await web.call(method, path)
            assert answered_status == status, (method, path, answer)
            assert set(answer["error"]) >= {"code", "message"}


async def test_a_body_above_the_limit_is_refused_with_and_without_content_length(tmp_path: Path) -> None:
    async def chunks() -> Any:
        for _ in range(50):
            yield b"x" * 10_000

    async with run_web_server(tmp_path, settings=ServeSettings(max_body_mb=0.1)) as web:
        stated = await web.call("POST", SAY, data=b"x" * 100_001, headers=JSON)
        unstated = await web.call("POST", SAY, data=chunks(), headers=JSON)
        for status, answer in (stated, unstated):
            assert (status, answer["error"]["code"]) == (413, "too_large")


async def test_a_body_with_a_content_type_other_than_json_is_refused(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            status, answer = await web.call("POST", SAY, data=b'{"text": "x"}', headers={"Content-Type": content_type})
            assert (status, answer["error"]["code"]) == (415, "not_json")


async def test_a_connection_is_closed_when_its_request_head_does_not_arrive_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 0.1)
    async with run_web_server(tmp_path) as web:
        port = int(web.base.rpartition(":")[2])
        for beginning in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(beginning)
            assert await asyncio.wait_for(reader.read(), at_most(10)) == b""
            writer.close()
            await writer.wait_closed()


async def test_a_request_head_above_the_limit_is_refused(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        port = int(web.base.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, family=socket.AF_INET)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
        answer = await asyncio.wait_for(reader.read(), at_most(10))
        writer.close()
        assert answer.startswith(b"HTTP/1.1 400")
