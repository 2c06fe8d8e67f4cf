"""Speech that is being turned into words: a stop of its session ends that too."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio


class Transcriptions:
    """What is under way, by session; in each one after the other, so that words keep their order."""

    def __init__(self) -> None:
        self._scopes: dict[str, list[anyio.CancelScope]] = {}
        self._orders: dict[str, anyio.Lock] = {}

    @contextmanager
    def under_way(self, session: str) -> Generator[tuple[anyio.CancelScope, anyio.Lock]]:
        """Note one more: its scope is cancelled by a stop, its lock is held by the one whose turn it is."""
        scopes = self._scopes.setdefault(session, [])
        order = self._orders.setdefault(session, anyio.Lock())
        scope = anyio.CancelScope()
        scopes.append(scope)
        try:
            with scope:
                yield scope, order
        finally:
            scopes.remove(scope)
            if not scopes and self._scopes.get(session) is scopes:
                del self._scopes[session], self._orders[session]

    def stop(self, session: str) -> bool:
        """End all of a session; False when there was none."""
        scopes = self._scopes.get(session, [])
        for scope in scopes:
            scope.cancel()
        return bool(scopes)
