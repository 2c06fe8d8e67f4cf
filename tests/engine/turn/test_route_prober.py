"""Probes of broken routes: at most one in 30 seconds, and only while a route is broken."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from hark.engine.turn.route_prober import RouteProber
from hark.engine.turn.routes import RecoverySignal, Route, RouteHealth, Routes
from hark.protocol.outcomes import Completed, Failed
from hark.protocol.provider import Unreachable
from hark.providers.scripted import Fail
from tests.engine.engine_fixture import run_session
from tests.engine.route_chain import BUSY, LoopClock, in_virtual_time, scripted_provider, services_with_routes

REFUSED = Fail(Unreachable("Can't connect"))


class FakeServer:
    """A server that records the times of its probes."""

    def __init__(self) -> None:
        self.is_up = False
        self.probed_at: list[float] = []

    async def probe(self) -> bool:
        self.probed_at.append(asyncio.get_running_loop().time())
        return self.is_up


@asynccontextmanager
async def probing(routes: Routes) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(RouteProber(routes).run)
        yield
        tasks.cancel_scope.cancel()


@in_virtual_time
async def test_probes_are_30_seconds_apart_however_often_the_route_fails() -> None:
    server = FakeServer()
    route = Route("only", scripted_provider(), probe=server.probe)
    routes = Routes([route], LoopClock())
    async with probing(routes):
        for second in range(300):
            routes.record_failure(route, recovery_signal=RecoverySignal.PROBE)
            server.is_up = second % 7 == 0
            await asyncio.sleep(1)
    gaps = [later - earlier for earlier, later in zip(server.probed_at, server.probed_at[1:], strict=False)]
    assert gaps
    assert min(gaps) >= 30


@in_virtual_time
async def test_probes_end_when_a_reply_restores_the_route() -> None:
    server = FakeServer()
    route = Route("only", scripted_provider(), probe=server.probe)
    routes = Routes([route], LoopClock())
    async with probing(routes):
        routes.record_failure(route, recovery_signal=RecoverySignal.PROBE)
        await asyncio.sleep(45)
        routes.record_success(route)
        count = len(server.probed_at)
        await asyncio.sleep(600)
    assert len(server.probed_at) == count == 2


@in_virtual_time
async def test_a_removed_route_is_not_probed_and_its_replacement_is() -> None:
    old, new = FakeServer(), FakeServer()
    first, second = (Route("main", scripted_provider(), probe=server.probe) for server in (old, new))
    routes = Routes([first], LoopClock())
    async with probing(routes):
        routes.record_failure(first, recovery_signal=RecoverySignal.PROBE)
        await asyncio.sleep(1)
        routes.replace_all([second])
        routes.record_failure(second, recovery_signal=RecoverySignal.PROBE)
        await asyncio.sleep(100)
    assert len(old.probed_at) == 1
    assert len(new.probed_at) == 4


@in_virtual_time
async def test_the_first_route_is_used_again_when_a_probe_restores_it_during_its_cool_down() -> None:
    server = FakeServer()
    first = Route("first", scripted_provider(*[[REFUSED]] * 3, ["back"]), probe=server.probe)
    services = services_with_routes(first, Route("second", scripted_provider(["one"], ["two"])))
    async with run_session(services) as user, probing(services.routes):
        await user.say("go")
        assert await user.proxy.idle() == Completed("one")
        server.is_up = True
        await user.say("go")
        assert await user.proxy.idle() == Completed("two")
        await asyncio.sleep(31)
        assert services.routes.health_of("first") == RouteHealth()
        await user.say("go")
        assert await user.proxy.idle() == Completed("back")


@in_virtual_time
async def test_a_turn_that_started_on_a_working_route_keeps_its_retries_when_another_turn_fails() -> None:
    provider = scripted_provider([BUSY], ["fine"])
    route = Route("only", provider)
    services = services_with_routes(route)
    async with run_session(services) as user:
        await user.say("go")
        await user.recorder.wait_until(lambda: bool(provider.requests))
        services.routes.record_failure(route, recovery_signal=RecoverySignal.PROBE_AFTER_FAILURE)
        assert await user.proxy.idle() == Completed("fine")
        assert services.routes.health_of("only") == RouteHealth()


@in_virtual_time
async def test_a_broken_route_gets_one_attempt_before_its_fallback() -> None:
    first, second = scripted_provider(*[[BUSY]] * 9), scripted_provider(["one"], ["two"])
    services = services_with_routes(Route("first", first), Route("second", second))
    async with run_session(services) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("one")
        count = len(first.requests)
        await asyncio.sleep(61)
        await user.say("go")
        assert await user.proxy.idle() == Completed("two")
    assert len(first.requests) == count + 1


@in_virtual_time
async def test_routes_without_a_probe_fail_fast_too() -> None:
    provider = scripted_provider(*[[BUSY]] * 8, ["fine"])
    services = services_with_routes(Route("only", provider))
    async with run_session(services) as user, probing(services.routes):
        for _ in range(2):
            await user.say("go")
            assert isinstance(await user.proxy.idle(), Failed)
        await user.say("go")
        assert await user.proxy.idle() == Completed("fine")
