"""A running tool's output, told now and then: the protocol wants all of it each time."""

import asyncio
from collections.abc import Callable

PAUSE_SECONDS = 0.1
KEPT_CHARACTERS = 20_000


class LiveOutput:
    """One call's output: `show` gets the end of it, at once at first, then after a pause."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._text = ""
        self._is_news = False
        self._pause: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take a piece."""
        self._text = (self._text + text)[-KEPT_CHARACTERS:]
        self._is_news = True
        if self._pause is None:
            self._tell()

    def close(self) -> None:
        """Tell no more: the result has it all."""
        if self._pause is not None:
            self._pause.cancel()

    def _tell(self) -> None:
        self._pause = None
        if self._is_news:
            self._is_news = False
            self._show(self._text)
            self._pause = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._tell)
