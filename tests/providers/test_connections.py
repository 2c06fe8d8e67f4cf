"""DNS lookups of model servers: failures are cached briefly, and a host that appears later is found."""

import asyncio
import socket
from typing import Any

import pytest

from hark.providers.connections import CachingResolver
from tests.waiting import at_most


class FakeSystemResolver:
    """A fake system resolver that counts its queries. The host is found only if the test sets `is_known`."""

    def __init__(self) -> None:
        self.is_known = False
        self.is_silent = False
        self.query_count = 0

    async def resolve(self, host: str, port: int, **_: Any) -> list[Any]:
        self.query_count += 1
        if self.is_silent:
            await asyncio.get_running_loop().create_future()
        if not self.is_known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> FakeSystemResolver:
    system = FakeSystemResolver()

    async def resolve(_: object, host: str, port: int, **options: Any) -> list[Any]:
        return await system.resolve(host, port, **options)

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolve)
    return system


async def test_an_unknown_host_is_looked_up_only_once_within_the_cache_time(system: FakeSystemResolver) -> None:
    resolver = CachingResolver(negative_cache_seconds=3600.0)
    for _ in range(100):
        with pytest.raises(socket.gaierror, match="not known"):
            await resolver.resolve("nobody.example", 80)
    assert system.query_count == 1


async def test_an_unknown_host_is_looked_up_again_after_the_cache_time(system: FakeSystemResolver) -> None:
    resolver = CachingResolver(negative_cache_seconds=0.0)
    with pytest.raises(socket.gaierror):
        await resolver.resolve("late.example", 80)
    system.is_known = True
    assert [address["host"] for address in await resolver.resolve("late.example", 80)] == ["127.0.0.1"]


async def test_a_cached_failure_does_not_affect_other_hosts(system: FakeSystemResolver) -> None:
    resolver = CachingResolver(negative_cache_seconds=3600.0)
    with pytest.raises(socket.gaierror):
        await resolver.resolve("nobody.example", 80)
    system.is_known = True
    assert await resolver.resolve("somebody.example", 80)


async def test_a_slow_lookup_after_a_failure_repeats_that_failure_within_two_seconds(
    system: FakeSystemResolver,
) -> None:
    resolver = CachingResolver(negative_cache_seconds=0.0)
    with pytest.raises(socket.gaierror):
        await resolver.resolve("slow.example", 80)
    system.is_silent = True
    async with asyncio.timeout(at_most(1.0)):
        for _ in range(10):
            with pytest.raises(socket.gaierror, match="not known"):
                await resolver.resolve("slow.example", 80)
    assert system.query_count == 2
