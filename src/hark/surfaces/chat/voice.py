"""A recording that came to an address: echoed as it is understood, and then a message like any other."""

import asyncio
import base64

from msgspec import structs

from hark.protocol.chat import Outgoing, Written
from hark.protocol.chat_ledger import PendingIncoming
from hark.protocol.commands import Delivery
from hark.protocol.receipts import Receipt
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceNote
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.incoming import IncomingHandler
from hark.surfaces.chat.outbox import Outbox

MOST_CHARACTERS = 1000


class Echo:
    """One message of ours that tells what is heard: sent once, then edited. `show` never waits; `run` sends."""

    def __init__(self, outbox: Outbox, key: str) -> None:
        self._outbox = outbox
        self._key = key
        self._text = ""
        self._is_over = False
        self._changed = asyncio.Event()

    def show(self, text: str) -> None:
        """Show this now; what was not sent yet is skipped."""
        is_long = len(text) > MOST_CHARACTERS
        self._text = f"{text[:MOST_CHARACTERS]}…" if is_long else text
        self._changed.set()

    def close(self) -> None:
        """Nothing more will be shown."""
        self._is_over = True
        self._changed.set()

    async def run(self) -> None:
        """Send and edit until `close`."""
        posted, shown = "", ""
        while not (self._is_over and shown == self._text):
            if shown == self._text:
                await self._changed.wait()
                self._changed.clear()
                continue
            text = self._text
            if shown:
                await self._outbox.edit(posted, Outgoing(text), is_last=self._is_over)
            else:
                first = await self._outbox.send(self._key, Outgoing(text))
                posted = first.id
                if not first.is_new:
                    await self._outbox.edit(posted, Outgoing(text), is_last=True)
            shown = text


class ChatListener:
    """Brings the words of one recording to the session."""

    def __init__(self, kept: PendingIncoming, line: ChatRoute, inward: IncomingHandler, echo: Echo) -> None:
        assert isinstance(kept.incoming, Written)
        self.session = line.session
        self.show = echo.show
        self._line = line
        self._message = kept.incoming
        self._name = line.name_of(kept.incoming.id)
        self._is_again = kept.is_again
        self._inward = inward

    async def say(self, text: str, *, is_stopped: bool) -> Receipt | None:
        """Go on with the words exactly as if they had been typed; what was written with the recording comes behind."""
        whole = "\n".join(part for part in (text, self._message.text) if part)
        message = structs.replace(self._message, text=whole, voice=None)
        return await self._inward.take(message, is_stopped=is_stopped, is_again=self._is_again)

    async def queue(self, text: str) -> Receipt:
        """Put a message into the queue, behind the turn that runs."""
        whole = "\n".join(part for part in (self._message.text, text) if part)
        author = self._message.author.name or self._message.author.id
        return await self.session.say(whole, Delivery.QUEUE, id=self._name, author=author)

    async def withdraw(self) -> None:
        """Note that a stop withdrew it, so that the next process does not hear it after all."""
        await self._line.ledger.sending(self._line.address, f"withdrawn:{self._name}")


def note_of(line: ChatRoute, kept: PendingIncoming) -> VoiceNote:
    """Return a message's recording, as the way in for voice takes it."""
    message = kept.incoming
    assert isinstance(message, Written)
    assert message.voice is not None
    audio = Audio(base64.b64decode(message.voice.data), message.voice.media_type)
    about = {"surface": line.address.surface}
    return VoiceNote(line.name_of(message.id), line.session.id, audio, about, kept.is_said)
