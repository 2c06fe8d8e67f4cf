"""Probes broken routes in the background, so that they are used again as soon as their servers answer."""

import anyio

from hark.engine.turn.routes import Route, Routes

PROBE_SECONDS = 30.0


class RouteProber:
    """Probes each broken route immediately, and then periodically until it is restored. A probe uses no tokens."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._probed: list[Route] = []

    async def run(self) -> None:
        """Probe broken routes until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                await self._routes.failed.wait()
                self._routes.failed.clear()
                for route in self._routes.awaiting_probe:
                    if not any(route is probed for probed in self._probed):
                        self._probed.append(route)
                        tasks.start_soon(self._probe, route)

    async def _probe(self, route: Route) -> None:
        """Probe a route until it needs no more probes. The last pause separates them from the next failure's probes."""
        while route.probe is not None and any(route is broken for broken in self._routes.awaiting_probe):
            self._routes.record_probe(route, is_reachable=await route.probe())
            await anyio.sleep(PROBE_SECONDS)
        self._probed = [probed for probed in self._probed if probed is not route]
