"""Planted bugs in ownership: lost leases, uninvited adoption, and background sessions without their tools."""

from contextlib import suppress
from typing import Any

from hark.engine.session import router
from hark.engine.session.restrictions import Restrictions
from hark.engine.session.session import Session
from hark.protocol.store import StoreError
from tests.simulation.mutants.mutant import Mutant


async def _verify_only_known_lapses(self: Any) -> None:
    renewal = self._services.lease_renewal
    while not renewal.is_fresh and self._verified_lapses != renewal.lapses:
        await renewal.renew()
        lapses = renewal.lapses
        await self._journal.verify_ownership()
        self._verified_lapses = lapses


async def _read_wakes_of_all_sessions(self: Any) -> None:
    async for session in self._services.store.bus.wakes():
        for proxy in self.proxies if not session else ():
            proxy.wake()
        if session in self._proxies:
            self._proxies[session].wake()
        elif self._adopts_work or not self._is_closing:
            with suppress(StoreError):
                await self._adopt_unfinished() if not session else self.proxy_for(session)


MUTANTS = (
    Mutant(
        "A machine whose lease expired makes another request",
        ((Session, "_verify_ownership", _verify_only_known_lapses),),
    ),
    Mutant(
        "A wake-up opens sessions on a machine that adopts nothing",
        ((router.SessionRouter, "_read_wakes", _read_wakes_of_all_sessions),),
    ),
    Mutant("A reflection that is resumed has no tools", ((router, "BACKGROUND_RESTRICTIONS", Restrictions(("",))),)),
)
