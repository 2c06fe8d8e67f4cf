"""Hooks: a platform's hook path needs no token, gives no other access, and is refused while the agent drains."""

from pathlib import Path

import pytest

from hark.protocol.hooks import Hook, HookRequest, HookResponse
from hark.protocol.store import StoreError
from hark.surfaces.web.hooks import Hooks
from hark.surfaces.web.settings import ServeSettings
from tests.surfaces.web.web_fixture import WebFixture, run_web_server

PATH = "/platform/events"


async def echo_hook(request: HookRequest) -> HookResponse:
    assert all(name == name.lower() for name in request.headers)
    return HookResponse(200, f"{request.headers['x-one']} {request.body.decode()}", {"X-Two": "2"})


async def post_to_hook(web: WebFixture, path: str = PATH, data: bytes = b"hi", **headers: str) -> tuple[int, str]:
    all_headers = {"X-One": "1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    status, _, text = await web.fetch(path, "POST", data=data, headers=all_headers)
    return status, text


async def test_a_hook_needs_no_token_and_accepts_any_origin(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, token="a-long-token") as web:
        assert (await post_to_hook(web))[0] == 401
        web.context.hooks.register("it", Hook(PATH, echo_hook))
        assert await post_to_hook(web) == (200, "1 hi")
        assert await post_to_hook(web, Origin="https://elsewhere.example") == (200, "1 hi")
        assert (await post_to_hook(web, f"{PATH}/"))[0] == 401
        assert (await web.fetch("/api/sessions"))[0] == 401
        assert web.context.metrics.requests["POST", PATH, 200] == 2


async def test_a_hook_refuses_a_foreign_host(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, settings=ServeSettings(hosts=("hark.example",))) as web:
        web.context.hooks.register("it", Hook(PATH, echo_hook))
        assert (await post_to_hook(web, Host="evil.example"))[0] == 403
        assert (await post_to_hook(web, Host="hark.example"))[0] == 200


async def test_a_hook_replaces_a_built_in_endpoint_with_the_same_path(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, token="a-long-token") as web:
        web.context.hooks.register("it", Hook("/metrics", echo_hook))
        for method in ("GET", "HEAD", "PUT"):
            status, headers, text = await web.fetch("/metrics", method)
            assert (status, headers["Allow"]) == (405, "POST")
            assert "hark_turns" not in text


async def test_a_hook_refuses_a_body_above_its_limit(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        web.context.hooks.register("it", Hook(PATH, echo_hook, 10))
        assert (await post_to_hook(web, data=b"x" * 10))[0] == 200
        assert (await post_to_hook(web, data=b"x" * 11))[0] == 413


async def test_a_failed_store_makes_the_platform_retry(tmp_path: Path) -> None:
    async def fail(request: HookRequest) -> HookResponse:
        raise StoreError("the disk is full")

    async with run_web_server(tmp_path) as web:
        web.context.hooks.register("it", Hook(PATH, fail))
        status, headers, _ = await web.fetch(PATH, "POST", data=b"hi")
        assert (status, headers["Retry-After"]) == (503, "1")


async def test_a_draining_agent_makes_the_platform_retry(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        web.context.hooks.register("it", Hook(PATH, echo_hook))
        await web.agent.drain()
        status, headers, _ = await web.fetch(PATH, "POST", data=b"hi")
        assert (status, headers["Retry-After"]) == (503, "5")


def test_a_hook_path_must_be_valid_and_unused_by_other_surfaces() -> None:
    hooks = Hooks()
    first, second = Hook(PATH, echo_hook), Hook("/other", echo_hook)
    hooks.register("slack", first)
    for path in (PATH, "", "/", "events", "/a b", "/{x}"):
        with pytest.raises(ValueError, match=r"path|used by slack"):
            hooks.register("webhook", second, Hook(path, echo_hook))
    assert hooks.by_path == {PATH: first}
    hooks.register("slack", second)
    assert hooks.by_path == {"/other": second}
    hooks.unregister("slack")
    assert hooks.by_path == {}
