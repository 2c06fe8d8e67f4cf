"""One turn's reply at one address, shown while it streams. The final text comes from the journal."""

import asyncio
import time

from hark.protocol.chat import Button, ChatError, OutgoingMessage, PlatformLimits
from hark.protocol.commands import PAUSE
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.surfaces.chat.outbox import EditResult, Outbox
from hark.surfaces.chat.split_text import split_text
from hark.timing.rate_limit import RateLimit

CURSOR = " ▌"
STOP_LABEL = "⏹ Stop"
STOP_VALUE_PREFIX = "stop:"  # the first part of a Stop button's value
CONTINUE_LABEL = "▶ Continue"
MISSED_TEXT_MARK = "… "
REMOVED_PART = "(This part was removed from the reply.)"
STOP_BUTTON_SECONDS = 2.0  # after this time without text, a message with the Stop button is sent
RESTART_SOURCES = {"restart": "a restart", "shutdown": "a restart", "crash": "a crash"}
USER_SOURCES = ("user", "new message", "button", "voice")


def describe_ending(outcome: Outcome) -> str:
    """Return the status line shown below a reply that did not complete, or "" for a completed reply."""
    match outcome:
        case Completed():
            return ""
        case Interrupted(source) if source in RESTART_SOURCES:
            return f"⏹ interrupted by {RESTART_SOURCES[source]}"
        case Interrupted(source) if source == PAUSE:
            return "⏸ paused"
        case Interrupted(source):
            return "⏹ stopped" if source in USER_SOURCES else f"⏹ stopped: {source}"
        case Failed(error):
            return f"⚠️ {error.message}"
        case LimitReached(_, message):
            return f"⚠️ {message}"


def count_message(message: OutgoingMessage, *limits: RateLimit) -> None:
    """Count a message that is sent or edited towards the rate limits. Only edits of a streaming reply can be deferred.

    Raises:
        ChatError: The edit must wait. `retry_after` says how long.
    """
    is_streaming = any(button.value.startswith(STOP_VALUE_PREFIX) for button in message.buttons)
    seconds = max(limit.wait_seconds() for limit in limits) if is_streaming else 0.0
    if seconds > 0:
        raise ChatError("The rate limit for edits of streaming replies is reached.", retry_after=seconds)
    for limit in limits:
        limit.consume_token()


class StreamingReply:
    """Shows a streaming reply in as many messages as needed, within the platform's limits for edits.

    The messages of a turn have numbered keys, so that after a crash the same messages are finished.
    `has_missed_start`: the reply's earlier text was not received; `finish` adds it.
    """

    def __init__(self, turn: str, limits: PlatformLimits, outbox: Outbox, *, has_missed_start: bool = False) -> None:
        self.turn = turn
        self._limits = limits
        self._outbox = outbox
        self.has_missed_start = has_missed_start
        self._steps: list[list[str]] = [[]]
        self._calls: dict[str, str] = {}
        self._messages: list[str] = []
        self._last_shown: list[OutgoingMessage | None] = []
        self._gone: set[int] = set()
        self._changed = asyncio.Event()

    def add(self, text: str) -> None:
        """Append text to the current step. Never waits."""
        self._steps[-1].append(text)
        self._changed.set()

    def restart_step(self) -> None:
        """Discard the text of the current step, because it will be sent again."""
        self._steps[-1].clear()

    def next_step(self) -> None:
        """Begin a new step: the following text is a separate reply."""
        if self._steps[-1]:
            self._steps.append([])

    def add_call(self, call: str, tool: str) -> None:
        """Show that a tool call is running."""
        self._calls[call] = tool
        self._changed.set()

    def remove_call(self, call: str) -> None:
        """Stop showing a tool call that has ended."""
        self._calls.pop(call, None)
        self._changed.set()

    @property
    def text(self) -> str:
        """The text of the reply so far."""
        steps = ("".join(chunks).strip() for chunks in self._steps)
        received = "\n\n".join(step for step in steps if step)
        return MISSED_TEXT_MARK + received if self.has_missed_start else received

    async def stream(self) -> None:
        """Show the reply while it grows, until cancelled."""
        try:
            async with asyncio.timeout(STOP_BUTTON_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            began = time.monotonic()
            work = f"🔧 {', '.join(dict.fromkeys(self._calls.values()))}" if self._calls else ""
            so_far = "\n\n".join(part for part in (self.text, work) if part)
            await self._update_messages(
                (so_far + CURSOR).lstrip(), (Button(STOP_LABEL, f"{STOP_VALUE_PREFIX}{self.turn}"),), is_last=False
            )
            pause = self._limits.edit_seconds - (time.monotonic() - began)
            await asyncio.sleep(max(0.0, pause, self._outbox.pause_seconds))

    async def finish(self, text: str, outcome: Outcome) -> None:
        """Show the full text and the outcome from the journal, and correct the messages shown before."""
        content = "\n\n".join(part for part in (text.strip(), describe_ending(outcome)) if part)
        is_offered = isinstance(outcome, Interrupted) and outcome.source in (*RESTART_SOURCES, PAUSE)
        buttons = (Button(CONTINUE_LABEL, f"continue:{self.turn}"),) if is_offered else ()
        await self._update_messages(content or "(no text)", buttons, is_last=True)

    async def _update_messages(self, text: str, buttons: tuple[Button, ...], *, is_last: bool) -> None:
        """Send or edit the message of each part of the text. Deferred edits are made at the next update."""
        parts = split_text(text, self._outbox.characters)
        for index, part in enumerate(parts):
            is_end = index == len(parts) - 1
            wanted = OutgoingMessage(part, buttons if is_end else ())
            if index >= len(self._messages):
                posted = await self._outbox.send(f"{self.turn}:{index}", wanted)
                self._messages.append(posted.id)
                self._last_shown.append(wanted if posted.is_new else None)
            if self._last_shown[index] != wanted and (is_last or index not in self._gone):
                await self._edit_message(index, wanted, is_sure=is_last or not is_end, is_last=is_last)
        if is_last:
            await self._clear_from(len(parts))

    async def _edit_message(self, index: int, message: OutgoingMessage, *, is_sure: bool, is_last: bool) -> None:
        """Edit one message of the reply. A message that a user deleted is sent again only at the end of the turn."""
        result = await self._outbox.edit(self._messages[index], message, is_last=is_sure)
        self._last_shown[index] = message if result is EditResult.APPLIED else None
        if result is EditResult.DEFERRED:
            self._changed.set()
        elif result is EditResult.GONE:
            self._gone.add(index)
            if is_last:
                await self._outbox.send(f"{self.turn}:{index}:anew", message)

    async def _clear_from(self, index: int) -> None:
        """Replace the messages from this index on with a placeholder, because they are not part of the final reply."""
        while message := await self._outbox.find_sent(f"{self.turn}:{index}"):
            await self._outbox.edit(message, OutgoingMessage(REMOVED_PART), is_last=True)
            index += 1
