"""Sends replies also as voice messages in chats that enabled this. Speech is synthesized while the reply streams."""

import asyncio
import re
from collections.abc import AsyncIterator

from hark.protocol.chat import OutgoingMessage
from hark.protocol.outcomes import Completed, Outcome
from hark.protocol.speech import Narrator, SpeechError
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.recent_values import RecentValues

MAX_CHARACTERS = 4000  # about five minutes of speech
TRUNCATION_NOTE = "The rest is in the text."
MAX_VOICE_MESSAGES = 100
_END = re.compile(r"[.!?:;…][\"'”’)]*\s+|[。！？]|\n")
_FENCE = re.compile(r"[ \t]*(```|~~~)")


class SpokenReplies:
    """The spoken replies of one address. The text is sent first, and a new turn doesn't wait for speech."""

    def __init__(self, narrator: Narrator | None, session: str, outbox: Outbox) -> None:
        self._narrator = narrator
        self._session = session
        self._outbox = outbox
        self._voice_messages: RecentValues[bool] = RecentValues(MAX_VOICE_MESSAGES)  # message ids
        self._reply: SpokenReply | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def add_voice_message(self, message: str) -> None:
        """Record that a message was a voice message, so that its reply may be spoken."""
        self._voice_messages.put(message, True)

    def begin_turn(self, turn: str, messages: tuple[str, ...]) -> None:
        """Begin a turn with these messages. The turn's reply is spoken if `Narrator.should_speak` returns True."""
        self._cancel_reply()
        is_voice = any(self._voice_messages.get(message) for message in messages)
        if self._narrator is not None and self._narrator.should_speak(self._session, is_voice_reply=is_voice):
            self._reply = SpokenReply(turn, self._narrator)

    def add(self, text: str) -> None:
        """Append text to the current reply."""
        if self._reply is not None:
            self._reply.add(text)

    def restart_step(self) -> None:
        """Discard the speech of the current step. The reply is spoken when its full text is known."""
        if self._reply is not None and self._narrator is not None:
            turn = self._reply.turn
            self._reply.cancel()
            self._reply = SpokenReply(turn, self._narrator, is_deferred=True)

    def finish_turn(self, text: str, outcome: Outcome) -> None:
        """End the turn after its text was sent. Send the speech when ready; cancel it if the turn did not complete."""
        reply, self._reply = self._reply, None
        if reply is None:
            return
        if not isinstance(outcome, Completed):
            reply.cancel()
            return
        sending = asyncio.create_task(self._send(reply, text), name=f"voice of {reply.turn}")
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """Cancel speech that is being synthesized or sent."""
        self._cancel_reply()
        sending = list(self._sending)
        for task in sending:
            task.cancel()
        if sending:
            await asyncio.wait(sending)

    def _cancel_reply(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.cancel()

    async def _send(self, reply: "SpokenReply", text: str) -> None:
        try:
            audio = await reply.synthesize(text)
            if audio:
                await self._outbox.send(f"{reply.turn}:voice", OutgoingMessage("", voice=audio))
        except SpeechError as error:
            await self._outbox.send_text(f"{reply.turn}:voice", f"🔇 {error}")
        finally:
            reply.cancel()


class SpokenReply:
    """A reply that is spoken sentence by sentence as it streams, or with `is_deferred` once its full text is known."""

    def __init__(self, turn: str, narrator: Narrator, *, is_deferred: bool = False) -> None:
        self.turn = turn
        self._is_deferred = is_deferred
        self._sentences = SentenceSplitter()
        self._remaining_characters = MAX_CHARACTERS
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._speaking = asyncio.create_task(narrator.speak(self._queued_sentences()), name=f"speaking {turn}")
        self._speaking.add_done_callback(_retrieve_exception)

    def add(self, text: str) -> None:
        """Append text to the reply."""
        if not self._is_deferred:
            self._enqueue(self._sentences.add(text))

    async def synthesize(self, text: str) -> bytes:
        """Return the full reply as a voice message; `text` is its full text. Cancelling only ends the wait.

        Raises:
            SpeechError: The text can't be synthesized.
        """
        if self._is_deferred:
            self._enqueue(self._sentences.add(text))
        self._enqueue(self._sentences.flush())
        self._queue.put_nowait(None)
        return await asyncio.shield(self._speaking)

    def cancel(self) -> None:
        """Cancel the speech synthesis."""
        self._speaking.cancel()

    def _enqueue(self, sentences: list[str]) -> None:
        for sentence in sentences:
            if self._remaining_characters > 0:
                self._remaining_characters -= len(sentence)
                self._queue.put_nowait(sentence if self._remaining_characters > 0 else TRUNCATION_NOTE)

    async def _queued_sentences(self) -> AsyncIterator[str]:
        while (sentence := await self._queue.get()) is not None:
            yield sentence


class SentenceSplitter:
    """Splits a text that arrives in chunks into sentences. A code block counts as one sentence."""

    def __init__(self) -> None:
        self._buffer = ""

    def add(self, text: str) -> list[str]:
        """Append text. Return the sentences that are complete now."""
        self._buffer += text
        return self._pop_complete()

    def flush(self) -> list[str]:
        """Return the remaining text as sentences, because no more text follows."""
        sentences = self._pop_complete()
        remainder, self._buffer = self._buffer, ""
        return [*sentences, remainder] if remainder.strip() else sentences

    def _pop_complete(self) -> list[str]:
        sentences: list[str] = []
        while (size := self._first_sentence_length()) > 0:
            sentence, self._buffer = self._buffer[:size], self._buffer[size:]
            if sentence.strip():
                sentences.append(sentence)
        return sentences

    def _first_sentence_length(self) -> int:
        """Return the length of the first sentence, or 0 if it is incomplete."""
        fence = _FENCE.match(self._buffer)
        if fence is None:
            end = _END.search(self._buffer)
        else:
            line_end = self._buffer.find("\n")
            close = re.compile(rf"\n[ \t]*{fence[1]}[ \t]*\n")
            end = close.search(self._buffer, line_end) if line_end >= 0 else None
        return end.end() if end else 0


def _retrieve_exception(task: "asyncio.Task[bytes]") -> None:
    if not task.cancelled():
        task.exception()  # Avoids a warning when no caller awaits the task.
