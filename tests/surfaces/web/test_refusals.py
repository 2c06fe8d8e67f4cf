"""Bad input: always a sentence in the same shape, never a 5xx, and nothing of it is accepted."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from hark.surfaces.web import server as server_module
from hark.surfaces.web.settings import ServeSettings
from tests.surfaces.web.web_fixture import served
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


async def test_every_bad_body_is_told_and_nothing_is_accepted(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        for path, body, status, code in BODIES:
            found, answer = await world.call("POST", path, data=body, headers=JSON)
            assert (found, answer["error"]["code"]) == (status, code), (path, body[:80], answer)
            assert answer["error"]["message"]
        assert await world.messages("demo") == []


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
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
        ("POST", "/api/schedules", {"when": "@daily\n", "prompt": "x"}, "when has letters that can't be printed."),
    ],
)
async def test_a_refusal_names_the_invalid_field(tmp_path: Path, method: str, path: str, body: Any, words: str) -> None:
    async with served(tmp_path) as world:
        status, answer = await world.call(method, path, body)
        assert (status, answer["error"]["code"]) == (400, "bad_request")
        assert answer["error"]["message"].startswith(words)


@pytest.mark.parametrize(
    "name", ["a b", "a%00b", "%2e%2e", "...", "ä", "%C3%A4", "a" * 201, "a%5Cb", "a;b", "%F0%28%8C%28"]
)
async def test_names_that_no_session_can_have(tmp_path: Path, name: str) -> None:
    async with served(tmp_path) as world:
        for method, rest in (("POST", "messages"), ("GET", "transcript"), ("GET", "events"), ("GET", "queue")):
            url: Any = URL(f"/api/sessions/{name.replace(' ', '%20')}/{rest}", encoded=True)
            status, answer = await world.call(method, url, {"text": "x"} if method == "POST" else None)
            assert (status, answer["error"]["code"]) in ((400, "bad_name"), (404, "not_found"), (400, "bad_http"))


async def test_addresses_and_methods_that_are_not_there(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        for method, path, status in (
            ("GET", "/nothing", 404),
            ("GET", "/api/sessions/", 404),
            ("GET", "/api/sessions/a%2Fb/queue/x/y", 404),
            ("GET", SAY, 405),
            ("DELETE", SAY, 405),
            ("PUT", "/api/sessions/demo/queue/x", 405),
            ("POST", "/api/sessions", 405),
            ("TRACE", "/healthz", 405),
            ("BREW", "/healthz", 400),  # which is no HTTP
            ("GET", "/v1/chat/completions", 405),
        ):
            found, answer = await world.call(method, path)
            assert found == status, (method, path, answer)
            assert set(answer["error"]) >= {"code", "message"}


async def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(tmp_path: Path) -> None:
    async def pieces() -> Any:
        for _ in range(50):
            yield b"x" * 10_000

    async with served(tmp_path, settings=ServeSettings(max_body_mb=0.1)) as world:
        stated = await world.call("POST", SAY, data=b"x" * 100_001, headers=JSON)
        unstated = await world.call("POST", SAY, data=pieces(), headers=JSON)
        for status, answer in (stated, unstated):
            assert (status, answer["error"]["code"]) == (413, "too_large")


async def test_only_json_is_taken_for_json(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            status, answer = await world.call("POST", SAY, data=b'{"text": "x"}', headers={"Content-Type": kind})
            assert (status, answer["error"]["code"]) == (415, "not_json")


async def test_a_head_that_does_not_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.1)
    async with served(tmp_path) as world:
        port = int(world.base.rpartition(":")[2])
        for begin in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begin)
            assert await asyncio.wait_for(reader.read(), at_most(10)) == b""
            writer.close()
            await writer.wait_closed()


async def test_a_head_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        port = int(world.base.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, family=socket.AF_INET)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
        answer = await asyncio.wait_for(reader.read(), at_most(10))
        writer.close()
        assert answer.startswith(b"HTTP/1.1 400")
