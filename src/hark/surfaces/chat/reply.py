"""One turn's reply at one address: it grows as it comes, and ends as the journal has it."""

import asyncio
import time

from hark.protocol.chat import Address, Button, Manners, Outgoing
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.pieces import pieces

CURSOR = " ▌"
STOP = "⏹ Stop"


def stop_value(turn: str) -> str:
    """Return what the Stop button of a turn stands for."""
    return f"stop:{turn}"


def ending(outcome: Outcome) -> str:
    """Return what is said under a reply that did not end by itself."""
    match outcome:
        case Completed():
            return ""
        case Interrupted(source):
            return "⏹ stopped" if source in ("user", "new message", "button") else f"⏹ stopped: {source}"
        case Failed(error):
            return f"⚠️ {error.message}"
        case LimitReached(_, message):
            return f"⚠️ {message}"


class Reply:
    """Shows a reply that grows, in as many messages as it takes; each is edited no more often than the platform likes.

    The messages of a turn are named by their place, so that after a crash the same ones are finished.
    """

    def __init__(self, turn: str, address: Address, manners: Manners, outbox: Outbox) -> None:
        self._turn = turn
        self._address = address
        self._manners = manners
        self._outbox = outbox
        self._steps: list[str] = [""]
        self._messages: list[str] = []
        self._shown: list[Outgoing | None] = []
        self._changed = asyncio.Event()

    def add(self, text: str) -> None:
        """Take one more piece of text; waits for nothing."""
        self._steps[-1] += text
        self._changed.set()

    def restart_step(self) -> None:
        """Forget the text of this step: it comes again."""
        self._steps[-1] = ""

    def next_step(self) -> None:
        """The text that comes now is another reply's."""
        if self._steps[-1]:
            self._steps.append("")

    @property
    def text(self) -> str:
        """What was said so far."""
        return "\n\n".join(step.strip() for step in self._steps if step.strip())

    async def grow(self) -> None:
        """Show what comes, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            began = time.monotonic()
            await self._show(self.text + CURSOR, (Button(STOP, stop_value(self._turn)),), is_last=False)
            await asyncio.sleep(max(0.0, self._manners.edit_seconds - (time.monotonic() - began)))

    async def finish(self, text: str, outcome: Outcome) -> None:
        """Show the whole of it, as the journal has it; what was shown before is put right."""
        whole = "\n\n".join(part for part in (text.strip(), ending(outcome)) if part)
        await self._show(whole or "(no words)", (), is_last=True)

    async def _show(self, text: str, buttons: tuple[Button, ...], *, is_last: bool) -> None:
        """Put each piece where it belongs; one that is not whole yet is put right by the next look."""
        parts = pieces(text, self._manners.characters)
        for place, part in enumerate(parts):
            is_end = place == len(parts) - 1
            wanted = Outgoing(part, buttons if is_end else ())
            if place >= len(self._messages):
                posted = await self._outbox.send(f"{self._turn}:{place}", wanted)
                self._messages.append(posted.id)
                self._shown.append(wanted if posted.is_new else None)
            if self._shown[place] != wanted:
                await self._outbox.edit(self._messages[place], wanted, is_last=is_last or not is_end)
                self._shown[place] = wanted
