"""Which model serves: an ordered chain of routes, each with its health."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from hark.protocol.clock import Clock
from hark.protocol.provider import Provider

FIRST_COOL_DOWN_SECONDS = 60.0
LONGEST_COOL_DOWN_SECONDS = 4 * 3600.0
DOUBLINGS = 8  # more are longer than the longest


@dataclass(frozen=True, slots=True)
class Route:
    """A provider and model under a name, with what is known of it: prices are for a million tokens."""

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
    gate: anyio.CapacityLimiter | None = None


@dataclass(slots=True)
class Health:
    """What is known of a route: how often it failed in a row, until when it rests, and which turn tries it again."""

    failures: int = 0
    rests_until: float = 0.0
    tried_by: str = ""


class Routes:
    """The app's routes. Health belongs to a route, never to a session; an interrupt changes none."""

    def __init__(self, routes: Sequence[Route], clock: Clock) -> None:
        self._routes = list(routes)
        self._clock = clock
        self._health = {route.name: Health() for route in routes}

    @property
    def names(self) -> list[str]:
        """The routes by name, in their order."""
        return [route.name for route in self._routes]

    def known(self, name: str) -> Route | None:
        """Return the route of that name."""
        return next((route for route in self._routes if route.name == name), None)

    def prefer(self, name: str) -> bool:
        """Put a route first; False when there is none of that name."""
        self._routes.sort(key=lambda route: route.name != name)
        return self._routes[0].name == name

    def change(self, routes: Sequence[Route]) -> None:
        """Have these serve what begins from now on; one that is the same object stays as well, or as ill, as it is.

        A running turn ends on the route that it has: what it tells of one that is gone changes nothing.
        """
        health = {route.name: self._health[route.name] if self._has(route) else Health() for route in routes}
        self._routes, self._health = list(routes), health

    def first(self, turn: str, chosen: str = "") -> Route:
        """Return the route for a new turn: the chosen one or the first that is well.

        When all rest, the one that comes back first is tried: asking costs less than refusing.
        """
        chain = self._chain(chosen)
        for route in chain:
            if self._may_serve(route):
                return self._take(route, turn)
        return self._take(min(chain, key=lambda route: self._health[route.name].rests_until), turn)

    def after(self, tried: Sequence[str], turn: str, chosen: str = "") -> Route | None:
        """Return the next route for a turn whose `tried` ones failed, or None."""
        for route in self._chain(chosen):
            if route.name not in tried and self._may_serve(route):
                return self._take(route, turn)
        return None

    def has_other(self, tried: Sequence[str]) -> bool:
        """Tell whether a turn whose `tried` routes failed has another one."""
        return any(route.name not in tried and self._may_serve(route) for route in self._routes)

    def succeeded(self, route: Route) -> None:
        """A reply came: the route is well."""
        if self._has(route):
            self._health[route.name] = Health()

    def is_trusted(self, route: Route) -> bool:
        """Tell whether the last turn there did not fail: then a failure may well pass."""
        return not self._has(route) or not self._health[route.name].failures

    def let_go(self, route: Route, turn: str) -> None:
        """A turn ended without learning anything about the route: by an interrupt, or a bad request of its own."""
        if self._has(route) and self._health[route.name].tried_by == turn:
            self._health[route.name].tried_by = ""

    def wake(self, chosen: str) -> None:
        """Somebody chose a route, "" for the usual one, and may have mended it: its rest is over."""
        for route in self._chain(chosen)[:1]:
            self._health[route.name].rests_until = 0.0

    def failed(self, route: Route, retry_after: float | None = None) -> None:
        """A route failed for good in a turn: it rests, longer each time.

        Turns that fail while it rests already met the same trouble: they prolong nothing but the server's own wish.
        """
        if not self._has(route):
            return
        health = self._health[route.name]
        health.tried_by = ""
        now = self._clock.now()
        if now >= health.rests_until:
            pause = FIRST_COOL_DOWN_SECONDS * 2 ** min(health.failures, DOUBLINGS)
            health.failures += 1
            health.rests_until = now + min(pause, LONGEST_COOL_DOWN_SECONDS)
        health.rests_until = max(health.rests_until, now + (retry_after or 0.0))

    def health(self, name: str) -> Health:
        """Return what is known of a route."""
        return self._health[name]

    def _has(self, route: Route) -> bool:
        return any(route is one for one in self._routes)

    def _chain(self, chosen: str) -> list[Route]:
        return sorted(self._routes, key=lambda route: route.name != chosen)

    def _may_serve(self, route: Route) -> bool:
        """A route that failed is tried by one turn at a time after its rest; the others stay away meanwhile."""
        health = self._health[route.name]
        return self._clock.now() >= health.rests_until and not health.tried_by

    def _take(self, route: Route, turn: str) -> Route:
        health = self._health[route.name]
        if health.failures and not health.tried_by:
            health.tried_by = turn
        return route
