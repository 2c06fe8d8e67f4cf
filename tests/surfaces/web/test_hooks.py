"""Hooks: a platform's own address needs no token, opens nothing else, and answers only while work is taken."""

from pathlib import Path

import pytest

from hark.protocol.hooks import Hook, HookAnswer, HookRequest
from hark.protocol.store import StoreError
from hark.surfaces.web.hooks import Hooks
from hark.surfaces.web.settings import ServeSettings
from tests.surfaces.web.web_fixture import World, served

PATH = "/platform/events"


async def echo(request: HookRequest) -> HookAnswer:
    assert all(name == name.lower() for name in request.headers)
    return HookAnswer(200, f"{request.headers['x-one']} {request.body.decode()}", {"X-Two": "2"})


async def post(world: World, path: str = PATH, data: bytes = b"hi", **headers: str) -> tuple[int, str]:
    sent = {"X-One": "1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    status, _, text = await world.fetch(path, "POST", data=data, headers=sent)
    return status, text


async def test_a_platform_needs_no_token_and_no_origin_of_ours_at_its_hook(tmp_path: Path) -> None:
    async with served(tmp_path, token="a-long-token") as world:
        assert (await post(world))[0] == 401
        world.place.hooks.bring("it", Hook(PATH, echo))
        assert await post(world) == (200, "1 hi")
        assert await post(world, Origin="https://elsewhere.example") == (200, "1 hi")
        assert (await post(world, f"{PATH}/"))[0] == 401
        assert (await world.fetch("/api/sessions"))[0] == 401
        assert world.place.metrics.requests["POST", PATH, 200] == 2


async def test_a_name_that_is_none_of_ours_leads_to_no_hook(tmp_path: Path) -> None:
    async with served(tmp_path, settings=ServeSettings(hosts=("hark.example",))) as world:
        world.place.hooks.bring("it", Hook(PATH, echo))
        assert (await post(world, Host="evil.example"))[0] == 403
        assert (await post(world, Host="hark.example"))[0] == 200


async def test_a_hook_opens_nothing_of_what_is_behind_its_path(tmp_path: Path) -> None:
    async with served(tmp_path, token="a-long-token") as world:
        world.place.hooks.bring("it", Hook("/metrics", echo))
        for method in ("GET", "HEAD", "PUT"):
            status, headers, text = await world.fetch("/metrics", method)
            assert (status, headers["Allow"]) == (405, "POST")
            assert "hark_turns" not in text


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        world.place.hooks.bring("it", Hook(PATH, echo, 10))
        assert (await post(world, data=b"x" * 10))[0] == 200
        assert (await post(world, data=b"x" * 11))[0] == 413


async def test_a_platform_is_asked_to_deliver_again_when_nothing_can_be_kept(tmp_path: Path) -> None:
    async def fails(request: HookRequest) -> HookAnswer:
        raise StoreError("the disk is full")

    async with served(tmp_path) as world:
        world.place.hooks.bring("it", Hook(PATH, fails))
        status, headers, _ = await world.fetch(PATH, "POST", data=b"hi")
        assert (status, headers["Retry-After"]) == (503, "1")


async def test_a_platform_is_asked_to_deliver_again_while_we_drain(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        world.place.hooks.bring("it", Hook(PATH, echo))
        await world.agent.drain()
        status, headers, _ = await world.fetch(PATH, "POST", data=b"hi")
        assert (status, headers["Retry-After"]) == (503, "5")


def test_a_path_can_be_had_by_one_surface_and_must_be_a_path() -> None:
    hooks = Hooks()
    first, second = Hook(PATH, echo), Hook("/other", echo)
    hooks.bring("slack", first)
    for path in (PATH, "", "/", "events", "/a b", "/{x}"):
        with pytest.raises(ValueError, match=r"path|taken by slack"):
            hooks.bring("webhook", second, Hook(path, echo))
    assert hooks.known == {PATH: first}
    hooks.bring("slack", second)
    assert hooks.known == {"/other": second}
    hooks.forget("slack")
    assert hooks.known == {}
