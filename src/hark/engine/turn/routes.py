"""The chain of routes, in order of preference, each with its health."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import anyio

from hark.engine.session.signal import Signal
from hark.protocol.clock import Clock
from hark.protocol.provider import Provider, ProviderError, TransientProviderError, Unreachable

FIRST_COOL_DOWN_SECONDS = 60.0
LONGEST_COOL_DOWN_SECONDS = 4 * 3600.0
DOUBLINGS = 8  # more doublings would exceed the longest cool-down


@dataclass(frozen=True, slots=True)
class Route:
    """A provider and model under a name, with its known properties. Prices are for a million tokens.

    `probe` returns whether the server answers, without using tokens; None if that can't be tested.
    """

    name: str
    provider: Provider
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None
    context_tokens: int | None = None
    model: str = ""
    is_local: bool = False
    offers_tools: bool = True
    first_byte_seconds: float | None = None
    idle_seconds: float | None = None
    limiter: anyio.CapacityLimiter | None = None
    probe: Callable[[], Awaitable[bool]] | None = None


class RecoverySignal(Enum):
    """The signal that a broken route has recovered. A successful reply always counts."""

    REPLY = "reply"  # only a reply, because a probe succeeds although the route is broken
    PROBE_AFTER_FAILURE = "probe after failure"  # a probe that succeeds after one that failed
    PROBE = "probe"  # any probe that succeeds


def recovery_signal_after(error: ProviderError) -> RecoverySignal:
    """Return the signal that shows recovery from this error."""
    if isinstance(error, Unreachable):
        return RecoverySignal.PROBE
    return RecoverySignal.PROBE_AFTER_FAILURE if isinstance(error, TransientProviderError) else RecoverySignal.REPLY


@dataclass(slots=True)
class RouteHealth:
    """A route's health: consecutive failures, end of the cool-down, and the turn that is using it on trial."""

    failures: int = 0
    cool_down_until: float = 0.0
    trial_turn: str = ""
    recovery_signal: RecoverySignal = RecoverySignal.REPLY


class Routes:
    """The app's routes. Health belongs to a route, never to a session, and an interrupt doesn't change it."""

    def __init__(self, routes: Sequence[Route], clock: Clock) -> None:
        self._routes = list(routes)
        self._clock = clock
        self._health = {route.name: RouteHealth() for route in routes}
        self.failed = Signal()  # set by each failure; the prober clears it

    @property
    def names(self) -> list[str]:
        """The names of the routes, in order."""
        return [route.name for route in self._routes]

    def find(self, name: str) -> Route | None:
        """Return the route with that name, or None."""
        return next((route for route in self._routes if route.name == name), None)

    def prefer(self, name: str) -> bool:
        """Move a route to the front. Return False if no route has that name."""
        self._routes.sort(key=lambda route: route.name != name)
        return self._routes[0].name == name

    def replace_all(self, routes: Sequence[Route]) -> None:
        """Replace the routes for new turns. A route that is the same object keeps its health.

        A running turn finishes on its current route; results from a removed route are ignored.
        """
        health = {route.name: self._health[route.name] if self._contains(route) else RouteHealth() for route in routes}
        self._routes, self._health = list(routes), health

    def choose(self, turn: str, chosen: str = "") -> Route:
        """Return the route for a new turn: the chosen route, or the first available route.

        If all routes are in cool-down, return the route whose cool-down ends first, because it may work again.
        """
        chain = self._ordered_routes(chosen)
        for route in chain:
            if self._is_available(route):
                return self._claim(route, turn)
        return self._claim(min(chain, key=lambda route: self._health[route.name].cool_down_until), turn)

    def find_usable(self, *preferred: str) -> Route:
        """Return the first known route of `preferred`, or the first available one. Claims nothing."""
        named = [route for name in preferred for route in self._routes if route.name == name]
        return next(iter(named), None) or next(filter(self._is_available, self._routes), self._routes[0])

    def choose_next(self, tried: Sequence[str], turn: str, chosen: str = "") -> Route | None:
        """Return the next route for a turn whose `tried` routes failed, or None."""
        for route in self._ordered_routes(chosen):
            if route.name not in tried and self._is_available(route):
                return self._claim(route, turn)
        return None

    def has_untried_route(self, tried: Sequence[str]) -> bool:
        """Return whether another route is available to a turn whose `tried` routes failed."""
        return any(route.name not in tried and self._is_available(route) for route in self._routes)

    def record_success(self, route: Route) -> None:
        """Record a successful reply, which makes the route healthy."""
        if self._contains(route):
            self._health[route.name] = RouteHealth()

    def is_healthy(self, route: Route) -> bool:
        """Return whether the route has not failed since its last success. If so, a new failure may be transient."""
        return not self._contains(route) or not self._health[route.name].failures

    def release_trial(self, route: Route, turn: str) -> None:
        """Let other turns try the route again, after a trial by this turn ended without a success or failure."""
        if self._contains(route) and self._health[route.name].trial_turn == turn:
            self._health[route.name].trial_turn = ""

    def end_cool_down(self, chosen: str) -> None:
        """End the cool-down of the route that the user chose ("" for the first), because the user may have fixed it."""
        for route in self._ordered_routes(chosen)[:1]:
            self._health[route.name].cool_down_until = 0.0

    @property
    def awaiting_probe(self) -> list[Route]:
        """The broken routes that a probe may restore."""
        broken = (
            route for route in self._routes if self._health[route.name].recovery_signal is not RecoverySignal.REPLY
        )
        return [route for route in broken if route.probe is not None]

    def record_probe(self, route: Route, *, is_reachable: bool) -> None:
        """Record the result of a probe, which restores the route if it proves that the route works again.

        A server may answer probes while it rejects requests. Then no later probe restores the route either.
        """
        if not self._contains(route):
            return
        health = self._health[route.name]
        if is_reachable and health.recovery_signal is RecoverySignal.PROBE:
            self._health[route.name] = RouteHealth()
        elif health.recovery_signal is RecoverySignal.PROBE_AFTER_FAILURE:
            health.recovery_signal = RecoverySignal.REPLY if is_reachable else RecoverySignal.PROBE

    def record_failure(
        self, route: Route, retry_after: float | None = None, recovery_signal: RecoverySignal = RecoverySignal.REPLY
    ) -> None:
        """Record a route's failure in a turn and start a cool-down, longer each time.

        Failures during a cool-down have the same cause, so they extend it only if the server requested that.
        """
        if not self._contains(route):
            return
        health = self._health[route.name]
        if not health.failures or recovery_signal is RecoverySignal.PROBE:
            health.recovery_signal = recovery_signal
        self.failed.set()
        health.trial_turn = ""
        now = self._clock.now()
        if now >= health.cool_down_until:
            cool_down = FIRST_COOL_DOWN_SECONDS * 2 ** min(health.failures, DOUBLINGS)
            health.failures += 1
            health.cool_down_until = now + min(cool_down, LONGEST_COOL_DOWN_SECONDS)
        health.cool_down_until = max(health.cool_down_until, now + (retry_after or 0.0))

    def health_of(self, name: str) -> RouteHealth:
        """Return a route's health."""
        return self._health[name]

    def _contains(self, route: Route) -> bool:
        return any(route is known for known in self._routes)

    def _ordered_routes(self, chosen: str) -> list[Route]:
        return sorted(self._routes, key=lambda route: route.name != chosen)

    def _is_available(self, route: Route) -> bool:
        """Return whether a turn may use the route. After a cool-down, only one turn at a time may try the route."""
        health = self._health[route.name]
        return self._clock.now() >= health.cool_down_until and not health.trial_turn

    def _claim(self, route: Route, turn: str) -> Route:
        health = self._health[route.name]
        if health.failures and not health.trial_turn:
            health.trial_turn = turn
        return route
