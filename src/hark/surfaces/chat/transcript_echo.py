"""Voice messages in a chat: show the transcript as it grows, then deliver it like a typed message."""

import asyncio
import base64

from msgspec import structs

from hark.protocol.chat import IncomingMessage, OutgoingMessage
from hark.protocol.chat_ledger import PendingIncoming
from hark.protocol.commands import Delivery
from hark.protocol.receipts import Receipt
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceNote
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.incoming_handler import IncomingHandler
from hark.surfaces.chat.outbox import Outbox

MAX_CHARACTERS = 1000


class TranscriptEcho:
    """A chat message that shows a recording's transcript. Sent once, then edited by `run`; `show` never waits."""

    def __init__(self, outbox: Outbox, key: str) -> None:
        self._outbox = outbox
        self._key = key
        self._text = ""
        self._is_closed = False
        self._changed = asyncio.Event()

    def show(self, text: str) -> None:
        """Set the text to show, replacing an earlier text that was not sent yet."""
        is_long = len(text) > MAX_CHARACTERS
        self._text = f"{text[:MAX_CHARACTERS]}…" if is_long else text
        self._changed.set()

    def close(self) -> None:
        """End the echo: no further text will be shown."""
        self._is_closed = True
        self._changed.set()

    async def run(self) -> None:
        """Send and edit the message until `close` is called and the last text is shown."""
        message_id, shown = "", ""
        while not (self._is_closed and shown == self._text):
            if shown == self._text:
                await self._changed.wait()
                self._changed.clear()
                continue
            text = self._text
            if shown:
                await self._outbox.edit(message_id, OutgoingMessage(text), is_last=self._is_closed)
            else:
                first = await self._outbox.send(self._key, OutgoingMessage(text))
                message_id = first.id
                if not first.is_new:
                    await self._outbox.edit(message_id, OutgoingMessage(text), is_last=True)
            shown = text


class ChatVoiceClient:
    """The VoiceClient for a chat. Delivers the transcript of one recording to the session."""

    def __init__(
        self, pending: PendingIncoming, route: ChatRoute, handler: IncomingHandler, echo: TranscriptEcho
    ) -> None:
        assert isinstance(pending.incoming, IncomingMessage)
        self.session = route.session
        self.show = echo.show
        self._route = route
        self._message = pending.incoming
        self._message_id = route.session_message_id(pending.incoming.id)
        self._is_retry = pending.is_again
        self._handler = handler
        self._open_questions = route.questions.open_ids  # the sender has not seen later questions

    async def say(self, text: str, *, is_stopped: bool) -> Receipt | None:
        """Deliver the transcript as if it had been typed. Text that was sent with the recording follows the
        transcript.
        """
        full_text = "\n".join(part for part in (text, self._message.text) if part)
        message = structs.replace(self._message, text=full_text, voice=None)
        return await self._handler.handle(
            message, is_stopped=is_stopped, is_retry=self._is_retry, known=self._open_questions
        )

    async def queue(self, text: str) -> Receipt:
        """Add a message to the queue, after the running turn."""
        full_text = "\n".join(part for part in (self._message.text, text) if part)
        author = self._message.author.name or self._message.author.id
        return await self.session.say(full_text, Delivery.QUEUE, id=self._message_id, author=author)

    async def withdraw(self) -> None:
        """Record that a stop withdrew the recording, so that the next process doesn't transcribe it."""
        await self._route.ledger.begin_send(self._route.address, f"withdrawn:{self._message_id}")


def voice_note_for(route: ChatRoute, pending: PendingIncoming) -> VoiceNote:
    """Return the recording of a message as a VoiceNote for the VoiceInbox."""
    message = pending.incoming
    assert isinstance(message, IncomingMessage)
    assert message.voice is not None
    audio = Audio(base64.b64decode(message.voice.data), message.voice.media_type)
    about = {"surface": route.address.surface}
    return VoiceNote(route.session_message_id(message.id), route.session.id, audio, about, pending.is_said)
