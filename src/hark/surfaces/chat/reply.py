"""One turn's reply at one address: it grows as it comes, and ends as the journal has it."""

import asyncio
import time

from hark.protocol.chat import Button, ChatError, Outgoing, PlatformLimits
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.surfaces.chat.outbox import EditResult, Outbox
from hark.surfaces.chat.split_text import pieces
from hark.timing.rate_limit import RateLimit

CURSOR = " ▌"
STOP = "⏹ Stop"
STOP_VALUE = "stop:"  # what the value of a Stop button begins with
GO_ON = "▶ Go on"
EARLIER = "… "
TAKEN_BACK = "(This part was taken back.)"
SILENCE_SECONDS = 2.0  # without a word; then at least the Stop button is shown
CUTS = {"restart": "a restart", "shutdown": "a restart", "crash": "a crash"}
STOPS = ("user", "new message", "button", "voice")


def ending(outcome: Outcome) -> str:
    """Return what is said under a reply that did not end by itself."""
    match outcome:
        case Completed():
            return ""
        case Interrupted(source) if source in CUTS:
            return f"⏹ cut by {CUTS[source]}"
        case Interrupted(source):
            return "⏹ stopped" if source in STOPS else f"⏹ stopped: {source}"
        case Failed(error):
            return f"⚠️ {error.message}"
        case LimitReached(_, message):
            return f"⚠️ {message}"


def count_message(message: Outgoing, *limits: RateLimit) -> None:
    """Count a message that is about to be sent or edited. Only an edit of a reply that still grows can wait.

    Raises:
        ChatError: It must wait. The error says how long.
    """
    is_growing = any(button.value.startswith(STOP_VALUE) for button in message.buttons)
    seconds = max(limit.wait_seconds() for limit in limits) if is_growing else 0.0
    if seconds > 0:
        raise ChatError("The rate limit for edits of growing replies is reached.", retry_after=seconds)
    for limit in limits:
        limit.count()


class GrowingReply:
    """Shows a reply that grows, in as many messages as it takes; each is edited no more often than the platform likes.

    The messages of a turn are named by their place, so that after a crash the same ones are finished. `is_late`: what
    was said before now was not heard here, until it ends.
    """

    def __init__(self, turn: str, limits: PlatformLimits, outbox: Outbox, *, is_late: bool = False) -> None:
        self.turn = turn
        self._limits = limits
        self._outbox = outbox
        self.is_late = is_late
        self._steps: list[str] = [""]
        self._calls: dict[str, str] = {}
        self._messages: list[str] = []
        self._shown: list[Outgoing | None] = []
        self._gone: set[int] = set()
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

    def call_began(self, call: str, tool: str) -> None:
        """A tool is at work."""
        self._calls[call] = tool
        self._changed.set()

    def call_ended(self, call: str) -> None:
        """A tool is done."""
        self._calls.pop(call, None)
        self._changed.set()

    @property
    def text(self) -> str:
        """What was said so far."""
        said = "\n\n".join(step.strip() for step in self._steps if step.strip())
        return EARLIER + said if self.is_late else said

    async def grow(self) -> None:
        """Show what comes, until cancelled."""
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            began = time.monotonic()
            work = f"🔧 {', '.join(dict.fromkeys(self._calls.values()))}" if self._calls else ""
            so_far = "\n\n".join(part for part in (self.text, work) if part)
            await self._show((so_far + CURSOR).lstrip(), (Button(STOP, f"{STOP_VALUE}{self.turn}"),), is_last=False)
            pause = self._limits.edit_seconds - (time.monotonic() - began)
            await asyncio.sleep(max(0.0, pause, self._outbox.pause_seconds))

    async def finish(self, text: str, outcome: Outcome) -> None:
        """Show the whole of it, as the journal has it; what was shown before is put right."""
        whole = "\n\n".join(part for part in (text.strip(), ending(outcome)) if part)
        was_cut = isinstance(outcome, Interrupted) and outcome.source in CUTS
        buttons = (Button(GO_ON, f"continue:{self.turn}"),) if was_cut else ()
        await self._show(whole or "(no words)", buttons, is_last=True)

    async def _show(self, text: str, buttons: tuple[Button, ...], *, is_last: bool) -> None:
        """Put each piece where it belongs; one that is not whole yet is put right by the next look."""
        parts = pieces(text, self._outbox.characters)
        for place, part in enumerate(parts):
            is_end = place == len(parts) - 1
            wanted = Outgoing(part, buttons if is_end else ())
            if place >= len(self._messages):
                posted = await self._outbox.send(f"{self.turn}:{place}", wanted)
                self._messages.append(posted.id)
                self._shown.append(wanted if posted.is_new else None)
            if self._shown[place] != wanted and (is_last or place not in self._gone):
                await self._change(place, wanted, is_sure=is_last or not is_end, is_last=is_last)
        if is_last:
            await self._take_back(len(parts))

    async def _change(self, place: int, wanted: Outgoing, *, is_sure: bool, is_last: bool) -> None:
        """Edit a piece. One that somebody deleted is left alone while it grows; at the end it is said anew."""
        edit = await self._outbox.edit(self._messages[place], wanted, is_last=is_sure)
        self._shown[place] = wanted if edit is EditResult.MADE else None
        if edit is EditResult.LATER:
            self._changed.set()
        elif edit is EditResult.GONE:
            self._gone.add(place)
            if is_last:
                await self._outbox.send(f"{self.turn}:{place}:anew", wanted)

    async def _take_back(self, place: int) -> None:
        """Clear the messages from this place on: what was said there is not part of the reply in the end."""
        while message := await self._outbox.sent_under(f"{self.turn}:{place}"):
            await self._outbox.edit(message, Outgoing(TAKEN_BACK), is_last=True)
            place += 1
