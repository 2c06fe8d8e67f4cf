"""Who may talk to the gateway: hosts, origins, tokens, cookies."""

from pathlib import Path
from typing import Any

import pytest

from hark.surfaces.web.access import COOKIE, Access, is_loopback
from hark.surfaces.web.settings import ServeSettings
from tests.fakes.behaviours import text
from tests.surfaces.web.world import World, served

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
    async with served(tmp_path, [text(["ok"])], token=TOKEN) as world:
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
