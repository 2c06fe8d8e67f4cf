"""Runs the real engine on several routes with a scripted provider each, in virtual time."""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any, ParamSpec

from hark.engine.services import EngineServices
from hark.engine.turn.routes import Route, Routes
from hark.protocol.provider import BadKey, BadModel, Overloaded, QuotaExhausted, RateLimited, TransientProviderError
from hark.protocol.rules import Rules
from hark.protocol.tool import Tool
from hark.providers.scripted import Fail, ScriptedProvider, ScriptedReply
from tests.engine.engine_fixture import make_services
from tests.simulation.loop import VirtualLoop

P = ParamSpec("P")

DOWN = Fail(BadKey("The model server answered 401: no such key"))
GONE = Fail(BadModel("The model server answered 404: no such model"))
BROKE = Fail(QuotaExhausted("The model server answered 402: pay"))
BUSY = Fail(Overloaded("The model server answered 529: Overloaded"))
LOST = Fail(TransientProviderError("connection lost"))


def rate_limited(seconds: float) -> Fail:
    return Fail(RateLimited("The model server answered 429: slow down", retry_after=seconds))


class LoopClock:
    """A clock that returns the event loop's time, so that virtual time also advances the routes' clock."""

    def __init__(self) -> None:
        self._names = 0

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def new_id(self) -> str:
        self._names += 1
        return f"v{self._names}"


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Decorate an async test so that it runs on an event loop with virtual time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(lambda _: None)) as runner:
            runner.run(test(*args, **kwargs))

    return run


def scripted_provider(*replies: ScriptedReply) -> ScriptedProvider:
    return ScriptedProvider(replies)


def services_with_routes(*routes: Route, tools: Iterable[Tool] = (), rules: Rules | None = None) -> EngineServices:
    """Return engine services with these routes, in this order."""
    services = make_services(routes[0].provider, tools=tools, rules=rules)
    clock = LoopClock()
    return replace(services, routes=Routes(routes, clock), clock=clock)
