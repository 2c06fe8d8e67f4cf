"""Who may talk to the gateway: hosts, origins, tokens, cookies."""

import time
from pathlib import Path
from typing import Any

import pytest

from hark.surfaces.web.guard import access as access_module
from hark.surfaces.web.guard.access import (
    COOKIE,
    LOGIN_SECONDS,
    MOST_WRONG,
    WINDOW_SECONDS,
    Access,
    Guesses,
    is_loopback,
)
from hark.surfaces.web.guard.guard import Guard
from hark.surfaces.web.hooks import Hooks
from hark.surfaces.web.settings import ServeSettings
from tests.fakes.models.behaviours import text
from tests.surfaces.web.web_fixture import World, served

TOKEN = "a-long-token-of-ours"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SAY = "/api/sessions/demo/messages"


async def said(world: World, headers: dict[str, str]) -> int:
    """Return the status of a message with these headers."""
    return (await world.call("POST", SAY, {"text": "hi", "id": "same"}, headers=headers))[0]


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1:8377", True),
        ("localhost", True),
        ("LOCALHOST.:9", True),
        ("[::1]:8377", True),
        ("hark.example", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:8377", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
async def test_a_foreign_host_is_refused(tmp_path: Path, host: str, is_ours: bool) -> None:
    async with served(tmp_path, [text(["ok"])], settings=ServeSettings(hosts=("hark.example",))) as world:
        assert await said(world, {"Host": host}) == (202 if is_ours else 403)


def test_an_address_is_a_fine_host_where_we_listen_everywhere() -> None:
    access = Access(ServeSettings(host="0.0.0.0"), TOKEN)
    assert access.is_our_host("192.168.1.5:8377")
    assert not access.is_our_host("evil.example")


async def test_a_foreign_origin_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["ok"])]) as world:
        foreign = ("null", "https://evil.example", "http://127.0.0.1:1", "http://localhost", "file://", "x", "")
        for origin in foreign:
            status, answer = await world.call("POST", SAY, {"text": "hi"}, headers={"Origin": origin})
            assert (status, answer["error"]["code"]) == (403, "foreign_origin"), origin
            for path in ("/api/sessions", "/api/sessions/demo/events", "/metrics", "/healthz", "/"):
                assert (await world.fetch(path, headers={"Origin": origin}))[0] == 403
        assert (await world.fetch("/api/sessions", headers={"Sec-Fetch-Site": "cross-site"}))[0] == 403
        assert (await world.fetch("/", headers={"Sec-Fetch-Site": "cross-site"}))[0] == 200
        assert world.model.requests == []
        assert await said(world, {"Origin": world.base}) == 202


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer \xe4"},
        {"Cookie": f"{COOKIE}={TOKEN}"},
        {"Cookie": f"{COOKIE}=; {COOKIE}=x"},
        {"Cookie": '"; =;;'},
    ],
)
async def test_strangers_get_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    async with served(tmp_path, token=TOKEN) as world:
        for method, path in (
            ("POST", SAY),
            ("POST", "/api/sessions/demo/interrupt"),
            ("GET", "/api/sessions"),
            ("GET", "/api/sessions/demo/events"),
            ("GET", "/api/status"),
            ("GET", "/metrics"),
            ("GET", "/openapi.json"),
            ("POST", "/v1/chat/completions"),
            ("GET", "/v1/models"),
            ("GET", "/nothing"),
        ):
            status, answer_headers, answer = await world.fetch(path, method, headers=headers, data=b"{}")
            assert (status, answer_headers.get("WWW-Authenticate")) == (401, "Bearer"), path
            assert TOKEN not in answer
        assert (await world.fetch("/healthz", headers=headers))[0] == 200
        assert (await world.fetch("/", headers=headers))[0] == 200


async def test_who_has_the_token_comes_in(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["ok"])], token=TOKEN) as world:
        assert await said(world, BEARER) == 202
        assert await said(world, BEARER | {"Origin": "https://evil.example"}) == 403
        _, _, metrics = await world.fetch("/metrics", headers=BEARER)
        assert TOKEN not in metrics


async def test_a_login_gives_the_page_a_cookie_that_only_the_page_can_use(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["ok"])], token=TOKEN, settings=ServeSettings(hosts=("hark.example",))) as world:
        assert (await world.call("POST", "/login", {"token": "wrong"}))[0] == 401
        status, headers, _ = await world.fetch("/login", "POST", json={"token": TOKEN})
        assert status == 200
        cookie = headers["Set-Cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
        assert TOKEN not in cookie
        world.client.cookie_jar.clear()
        holding: dict[str, Any] = {"Cookie": cookie.partition(";")[0]}
        assert (await world.fetch("/api/sessions", headers=holding))[0] == 200
        assert await said(world, holding) == 401
        assert await said(world, holding | {"Origin": "null"}) == 403
        assert await said(world, holding | {"Origin": "https://evil.example"}) == 403
        assert await said(world, holding | {"Origin": world.base}) == 202
        form = {"Content-Type": "text/plain", "Origin": world.base}
        status, _, _ = await world.fetch(SAY, "POST", headers=holding | form, data=b'{"text": "hi"}')
        assert status == 415
        behind = {"Host": "hark.example", "Origin": "https://hark.example"}  # a proxy with TLS before us
        _, headers, _ = await world.fetch("/login", "POST", json={"token": TOKEN}, headers=behind)
        assert "Secure" in headers["Set-Cookie"]
        assert "Secure" not in cookie
        _, headers, _ = await world.fetch("/logout", "POST")
        assert "Max-Age=0" in headers["Set-Cookie"]


async def test_a_reload_changes_the_token_at_once(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["ok"])], token=TOKEN) as world:
        world.place.access.change(ServeSettings(), "another-token")
        assert await said(world, BEARER) == 401
        assert await said(world, {"Authorization": "bearer another-token"}) == 202


async def test_every_answer_tells_browsers_to_be_strict(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        for path in ("/", "/healthz", "/nothing", "/api/sessions"):
            _, headers, _ = await world.fetch(path)
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "Access-Control-Allow-Origin" not in headers


def test_loopback_is_known() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "::", "10.0.0.1", "example.org", "localhost.evil")))


def test_a_login_ends_some_day_and_cannot_be_made_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access(ServeSettings(), TOKEN)
    cookie = access.new_cookie()
    assert access.is_cookie(cookie)
    end, _, proof = cookie.partition(".")
    for forged in (f"{int(end, 16) + 1:x}.{proof}", f"{end}.", proof, "", ".", "\udcff.x", f"{end}.{proof}0"):
        assert not access.is_cookie(forged)
    assert not Access(ServeSettings(), "another").is_cookie(cookie)
    later = time.time() + LOGIN_SECONDS + 1
    monkeypatch.setattr(access_module.time, "time", lambda: later)
    assert not access.is_cookie(cookie)


def test_whoever_tries_tokens_out_has_to_wait_and_nobody_else() -> None:
    now = 0.0
    guesses = Guesses(lambda: now)
    for number in range(MOST_WRONG):
        assert not guesses.wait_seconds("10.0.0.1")
        guesses.wrong("10.0.0.1")
        guesses.wrong("127.0.0.1")  # a proxy on this machine stands for everybody
        guesses.wrong(f"2001:db8::{number:x}")  # all in one network
    assert guesses.wait_seconds("10.0.0.1") == guesses.wait_seconds("2001:db8::ffff:1") == WINDOW_SECONDS
    assert guesses.wait_seconds("::ffff:10.0.0.1")
    assert not any(map(guesses.wait_seconds, ("10.0.0.2", "127.0.0.1", "::1", "2001:db8:0:1::1", "")))
    now = WINDOW_SECONDS
    assert not guesses.wait_seconds("10.0.0.1")


async def test_too_many_wrong_tokens_are_told_even_to_the_right_one(tmp_path: Path) -> None:
    access = Access(ServeSettings(host="0.0.0.0"), TOKEN)
    answers: list[int] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        answers.append(200)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    guard = Guard(inside, access, Hooks())
    for token in (TOKEN, *("wrong" for _ in range(MOST_WRONG + 1)), TOKEN):
        headers = [(b"host", b"10.0.0.9"), (b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/metrics", "headers": headers, "client": ("10.0.0.1", 1)}
        await guard(scope, lambda: None, send)  # type: ignore[arg-type]
    assert answers == [200, *[401] * MOST_WRONG, 429, 429]
