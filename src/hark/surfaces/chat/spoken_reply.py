"""Replies as voice messages behind their text, where people want them: made while they stream, cut with the turn."""

import asyncio
import re
from collections.abc import AsyncIterator

from hark.protocol.chat import Outgoing
from hark.protocol.outcomes import Completed, Outcome
from hark.protocol.speech import Narrator, SpeechError
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.recent_values import Recent

MOST_CHARACTERS = 4000  # about five minutes
THE_REST = "The rest is in the text."
KEPT_NAMES = 100
_END = re.compile(r"[.!?:;…][\"'”’)]*\s+|[。！？]|\n")
_FENCE = re.compile(r"[ \t]*(```|~~~)")


class Spoken:
    """The voice of one address. Nobody waits for it: the text goes first, and a new turn begins without it."""

    def __init__(self, narrator: Narrator | None, session: str, outbox: Outbox) -> None:
        self._narrator = narrator
        self._session = session
        self._outbox = outbox
        self._heard: Recent[bool] = Recent(KEPT_NAMES)  # messages that were said aloud
        self._reply: SpokenReply | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def heard(self, message: str) -> None:
        """A message was said aloud: the reply to it may be, too."""
        self._heard.put(message, True)

    def begin(self, turn: str, messages: tuple[str, ...]) -> None:
        """A turn begins with these messages."""
        self._cut()
        is_heard = any(self._heard.get(message) for message in messages)
        if self._narrator is not None and self._narrator.wants(self._session, is_heard=is_heard):
            self._reply = SpokenReply(turn, self._narrator)

    def add(self, text: str) -> None:
        """Take one more piece of the reply."""
        if self._reply is not None:
            self._reply.add(text)

    def restart_step(self) -> None:
        """What this step said comes again: begin anew when all of it is there."""
        if self._reply is not None and self._narrator is not None:
            turn = self._reply.turn
            self._reply.cut()
            self._reply = SpokenReply(turn, self._narrator, waits=True)

    def finish(self, text: str, outcome: Outcome) -> None:
        """The turn has ended, and its text was sent: send the voice when it is ready, or cut it."""
        reply, self._reply = self._reply, None
        if reply is None:
            return
        if not isinstance(outcome, Completed):
            reply.cut()
            return
        sending = asyncio.create_task(self._send(reply, text), name=f"voice of {reply.turn}")
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """End what is under way, and what makes it."""
        self._cut()
        sending = list(self._sending)
        for task in sending:
            task.cancel()
        if sending:
            await asyncio.wait(sending)

    def _cut(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.cut()

    async def _send(self, reply: "SpokenReply", text: str) -> None:
        try:
            sound = await reply.whole(text)
            if sound:
                await self._outbox.send(f"{reply.turn}:voice", Outgoing("", voice=sound))
        except SpeechError as error:
            await self._outbox.tell(f"{reply.turn}:voice", f"🔇 {error}")
        finally:
            reply.cut()


class SpokenReply:
    """One reply, spoken sentence by sentence as it comes. `waits`: only when all of it is there."""

    def __init__(self, turn: str, narrator: Narrator, *, waits: bool = False) -> None:
        self.turn = turn
        self._waits = waits
        self._sentences = Sentences()
        self._left = MOST_CHARACTERS
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._speaking = asyncio.create_task(narrator.speak(self._texts()), name=f"speaking {turn}")
        self._speaking.add_done_callback(_seen)

    def add(self, text: str) -> None:
        """Take one more piece of text."""
        if not self._waits:
            self._put(self._sentences.add(text))

    async def whole(self, text: str) -> bytes:
        """Return all of it as a voice message; `text` is what it says. Cancelling ends the wait alone.

        Raises:
            SpeechError: It can't be spoken.
        """
        if self._waits:
            self._put(self._sentences.add(text))
        self._put(self._sentences.end())
        self._lines.put_nowait(None)
        return await asyncio.shield(self._speaking)

    def cut(self) -> None:
        """Nobody wants to hear it any more."""
        self._speaking.cancel()

    def _put(self, sentences: list[str]) -> None:
        for sentence in sentences:
            if self._left > 0:
                self._left -= len(sentence)
                self._lines.put_nowait(sentence if self._left > 0 else THE_REST)

    async def _texts(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line


class Sentences:
    """Takes a text piece by piece, and gives it back sentence by sentence; a block of code is one."""

    def __init__(self) -> None:
        self._rest = ""

    def add(self, text: str) -> list[str]:
        """Take more text; return the sentences that are whole now."""
        self._rest += text
        return self._whole()

    def end(self) -> list[str]:
        """Return what is left: no more comes."""
        left = self._whole()
        rest, self._rest = self._rest, ""
        return [*left, rest] if rest.strip() else left

    def _whole(self) -> list[str]:
        found: list[str] = []
        while (size := self._size()) > 0:
            sentence, self._rest = self._rest[:size], self._rest[size:]
            if sentence.strip():
                found.append(sentence)
        return found

    def _size(self) -> int:
        """Return how long the first sentence is, 0 when its end is not there yet."""
        fence = _FENCE.match(self._rest)
        if fence is None:
            end = _END.search(self._rest)
        else:
            begins = self._rest.find("\n")
            close = re.compile(rf"\n[ \t]*{fence[1]}[ \t]*\n")
            end = close.search(self._rest, begins) if begins >= 0 else None
        return end.end() if end else 0


def _seen(task: "asyncio.Task[bytes]") -> None:
    if not task.cancelled():
        task.exception()  # whoever waits for it gets it; nobody has to
