"""Finding a model server's host: one that is not there is asked for once a second, and found when it is there."""

import socket
from typing import Any

import pytest

from hark.providers.connections import Resolver


class System:
    """A system that knows a host or not, and counts how often it was asked."""

    def __init__(self) -> None:
        self.is_known = False
        self.asked = 0

    async def find(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked += 1
        if not self.is_known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    system = System()

    async def find(_: object, host: str, port: int, **how: Any) -> list[Any]:
        return await system.find(host, port, **how)

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", find)
    return system


async def test_a_host_that_is_not_there_is_looked_for_once_in_a_while(system: System) -> None:
    resolver = Resolver(unknown_seconds=3600.0)
    for _ in range(100):
        with pytest.raises(socket.gaierror, match="not known"):
            await resolver.resolve("nobody.example", 80)
    assert system.asked == 1


async def test_a_host_that_comes_back_is_found(system: System) -> None:
    resolver = Resolver(unknown_seconds=0.0)
    with pytest.raises(socket.gaierror):
        await resolver.resolve("late.example", 80)
    system.is_known = True
    assert [one["host"] for one in await resolver.resolve("late.example", 80)] == ["127.0.0.1"]


async def test_another_host_is_not_held_up_by_one_that_is_not_there(system: System) -> None:
    resolver = Resolver(unknown_seconds=3600.0)
    with pytest.raises(socket.gaierror):
        await resolver.resolve("nobody.example", 80)
    system.is_known = True
    assert await resolver.resolve("somebody.example", 80)
