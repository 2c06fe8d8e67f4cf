"""Access control: hosts, origins, tokens and cookies."""

import time
from pathlib import Path
from typing import Any

import pytest

from hark.surfaces.web.guard import access as access_module
from hark.surfaces.web.guard.access import (
    COOKIE,
    LOGIN_SECONDS,
    MAX_WRONG_TOKENS,
    WINDOW_SECONDS,
    Access,
    WrongTokenCounter,
    is_loopback,
)
from hark.surfaces.web.guard.guard import AccessGuard
from hark.surfaces.web.hooks import Hooks
from hark.surfaces.web.settings import ServeSettings
from tests.fakes.models.behaviours import text
from tests.surfaces.web.web_fixture import WebFixture, run_web_server

TOKEN = "a-long-token-of-ours"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SAY = "/api/sessions/demo/messages"


async def post_message(web: WebFixture, headers: dict[str, str]) -> int:
    """Post a message with these headers and return the status code."""
    return (await web.call("POST", SAY, {"text": "hi", "id": "same"}, headers=headers))[0]


@pytest.mark.parametrize(
    ("host", "is_allowed"),
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
async def test_requests_for_a_foreign_host_are_refused(tmp_path: Path, host: str, is_allowed: bool) -> None:
    async with run_web_server(tmp_path, [text(["ok"])], settings=ServeSettings(hosts=("hark.example",))) as web:
        assert await post_message(web, {"Host": host}) == (202 if is_allowed else 403)


def test_any_ip_address_is_allowed_as_host_when_listening_on_all_interfaces() -> None:
    access = Access(ServeSettings(host="0.0.0.0"), TOKEN)
    assert access.is_our_host("192.168.1.5:8377")
    assert not access.is_our_host("evil.example")


async def test_requests_from_a_foreign_origin_are_refused(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["ok"])]) as web:
        foreign = ("null", "https://evil.example", "http://127.0.0.1:1", "http://localhost", "file://", "x", "")
        for origin in foreign:
            status, answer = await web.call("POST", SAY, {"text": "hi"}, headers={"Origin": origin})
            assert (status, answer["error"]["code"]) == (403, "foreign_origin"), origin
            for path in ("/api/sessions", "/api/sessions/demo/events", "/metrics", "/healthz", "/"):
                assert (await web.fetch(path, headers={"Origin": origin}))[0] == 403
        assert (await web.fetch("/api/sessions", headers={"Sec-Fetch-Site": "cross-site"}))[0] == 403
        assert (await web.fetch("/", headers={"Sec-Fetch-Site": "cross-site"}))[0] == 200
        assert web.model.requests == []
        assert await post_message(web, {"Origin": web.base}) == 202


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
async def test_requests_without_a_valid_token_or_cookie_are_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async with run_web_server(tmp_path, token=TOKEN) as web:
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
            status, response_headers, answer = await web.fetch(path, method, headers=headers, data=b"{}")
            assert (status, response_headers.get("WWW-Authenticate")) == (401, "Bearer"), path
            assert TOKEN not in answer
        assert (await web.fetch("/healthz", headers=headers))[0] == 200
        assert (await web.fetch("/", headers=headers))[0] == 200


async def test_requests_with_the_token_are_accepted(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["ok"])], token=TOKEN) as web:
        assert await post_message(web, BEARER) == 202
        assert await post_message(web, BEARER | {"Origin": "https://evil.example"}) == 403
        _, _, metrics = await web.fetch("/metrics", headers=BEARER)
        assert TOKEN not in metrics


async def test_a_login_cookie_works_only_for_requests_from_the_page(tmp_path: Path) -> None:
    async with run_web_server(
        tmp_path, [text(["ok"])], token=TOKEN, settings=ServeSettings(hosts=("hark.example",))
    ) as web:
        assert (await web.call("POST", "/login", {"token": "wrong"}))[0] == 401
        status, headers, _ = await web.fetch("/login", "POST", json={"token": TOKEN})
        assert status == 200
        cookie = headers["Set-Cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
        assert TOKEN not in cookie
        web.client.cookie_jar.clear()
        cookie_headers: dict[str, Any] = {"Cookie": cookie.partition(";")[0]}
        assert (await web.fetch("/api/sessions", headers=cookie_headers))[0] == 200
        assert await post_message(web, cookie_headers) == 401
        assert await post_message(web, cookie_headers | {"Origin": "null"}) == 403
        assert await post_message(web, cookie_headers | {"Origin": "https://evil.example"}) == 403
        assert await post_message(web, cookie_headers | {"Origin": web.base}) == 202
        form = {"Content-Type": "text/plain", "Origin": web.base}
        status, _, _ = await web.fetch(SAY, "POST", headers=cookie_headers | form, data=b'{"text": "hi"}')
        assert status == 415
        proxy_headers = {"Host": "hark.example", "Origin": "https://hark.example"}  # a reverse proxy with TLS
        _, headers, _ = await web.fetch("/login", "POST", json={"token": TOKEN}, headers=proxy_headers)
        assert "Secure" in headers["Set-Cookie"]
        assert "Secure" not in cookie
        _, headers, _ = await web.fetch("/logout", "POST")
        assert "Max-Age=0" in headers["Set-Cookie"]


async def test_a_settings_reload_changes_the_token_immediately(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["ok"])], token=TOKEN) as web:
        web.context.access.update(ServeSettings(), "another-token")
        assert await post_message(web, BEARER) == 401
        assert await post_message(web, {"Authorization": "bearer another-token"}) == 202


async def test_every_response_has_security_headers(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        for path in ("/", "/healthz", "/nothing", "/api/sessions"):
            _, headers, _ = await web.fetch(path)
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "Access-Control-Allow-Origin" not in headers


def test_loopback_addresses_are_recognized() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "::", "10.0.0.1", "example.org", "localhost.evil")))


def test_a_login_cookie_expires_and_cannot_be_forged(monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access(ServeSettings(), TOKEN)
    cookie = access.new_cookie()
    assert access.is_valid_cookie(cookie)
    expiry, _, proof = cookie.partition(".")
    for forged in (f"{int(expiry, 16) + 1:x}.{proof}", f"{expiry}.", proof, "", ".", "\udcff.x", f"{expiry}.{proof}0"):
        assert not access.is_valid_cookie(forged)
    assert not Access(ServeSettings(), "another").is_valid_cookie(cookie)
    later = time.time() + LOGIN_SECONDS + 1
    monkeypatch.setattr(access_module.time, "time", lambda: later)
    assert not access.is_valid_cookie(cookie)


def test_too_many_wrong_tokens_lock_out_only_the_client_that_sent_them() -> None:
    now = 0.0
    counter = WrongTokenCounter(lambda: now)
    for number in range(MAX_WRONG_TOKENS):
        assert not counter.lockout_seconds("10.0.0.1")
        counter.count_wrong_token("10.0.0.1")
        counter.count_wrong_token("127.0.0.1")  # a local reverse proxy sends the requests of many clients
        counter.count_wrong_token(f"2001:db8::{number:x}")  # all in the same IPv6 network
    assert counter.lockout_seconds("10.0.0.1") == counter.lockout_seconds("2001:db8::ffff:1") == WINDOW_SECONDS
    assert counter.lockout_seconds("::ffff:10.0.0.1")
    assert not any(map(counter.lockout_seconds, ("10.0.0.2", "127.0.0.1", "::1", "2001:db8:0:1::1", "")))
    now = WINDOW_SECONDS
    assert not counter.lockout_seconds("10.0.0.1")


async def test_lockout_after_wrong_tokens_also_rejects_the_right_token(tmp_path: Path) -> None:
    access = Access(ServeSettings(host="0.0.0.0"), TOKEN)
    statuses: list[int] = []

    async def inner_app(scope: Any, receive: Any, send: Any) -> None:
        statuses.append(200)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    guard = AccessGuard(inner_app, access, Hooks())
    for token in (TOKEN, *("wrong" for _ in range(MAX_WRONG_TOKENS + 1)), TOKEN):
        headers = [(b"host", b"10.0.0.9"), (b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/metrics", "headers": headers, "client": ("10.0.0.1", 1)}
        await guard(scope, lambda: None, send)  # type: ignore[arg-type]
    assert statuses == [200, *[401] * MAX_WRONG_TOKENS, 429, 429]
