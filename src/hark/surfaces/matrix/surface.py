"""Matrix as a chat surface."""

import asyncio
import logging
import uuid
from collections.abc import Callable
from pathlib import Path

import anyio

from hark.protocol.chat import Address, Author, ChatError, ChatGone, Deliver, Manners, Outgoing
from hark.surfaces.matrix.choices import Choices, signs
from hark.surfaces.matrix.inward import Inward
from hark.surfaces.matrix.memory import Memory
from hark.surfaces.matrix.outward import CHARACTERS, Outward, transaction
from hark.surfaces.matrix.receiving import Receiving
from hark.surfaces.matrix.settings import MatrixSettings
from hark.surfaces.matrix.wire import Wire
from hark.surfaces.matrix.words import Event

TYPING_SECONDS = 6.0
CLOSE_SECONDS = 0.8
CONNECT_SECONDS = 10.0
ENCRYPTED = "I can't read encrypted messages. Please talk to me in a room without encryption."
LOG = logging.getLogger(__name__)


class Matrix:
    """A ChatSurface for one account. `send` and the others work while `run` does; else they say that it does not."""

    def __init__(
        self, settings: MatrixSettings, token: str, folder: Path, is_allowed: Callable[[Author], bool]
    ) -> None:
        """`folder` keeps how far the news were read. `is_allowed` says whose invites are followed."""
        self._settings = settings
        self._token = token
        self._folder = folder
        self._is_allowed = is_allowed
        self._choices = Choices()
        self._outward: Outward | None = None
        self._wire: Wire | None = None
        self._connected = asyncio.Event()
        self._told: set[str] = set()

    @property
    def name(self) -> str:
        """Its name."""
        return "matrix"

    @property
    def manners(self) -> Manners:
        """What it allows."""
        return Manners(CHARACTERS, 1.0, knows_keys=True, has_buttons=False, has_reactions=True)

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled; the sync token moves only after `deliver` has returned.

        Raises:
            ChatError: The homeserver can't be reached or refuses us.
        """
        if not self._settings.api_base or not self._token:
            raise ChatError("[surfaces.matrix] needs api_base, the homeserver's address, and an access token")
        wire = Wire(self._settings.api_base, self._token)
        try:
            me = await wire.who_am_i()
            memory = Memory(self._folder, me[0])
            inward = Inward(wire, memory, self._choices, me, self._settings)

            async def deal_with(room: str, event: Event) -> None:
                incoming = await inward.read(room, event)
                if incoming is not None:
                    await deliver(incoming)
                elif event.type == "m.room.encrypted" and event.sender != me[0]:
                    await self._tell_encrypted(room, event.sender)

            self._wire = wire
            self._connected.set()
            await Receiving(wire, memory, me[0], deal_with, lambda person: self._is_allowed(Author(person))).run()
        finally:
            self._connected.clear()
            self._wire = None
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await wire.close()

    async def send(self, address: Address, message: Outgoing) -> str:
        """Send a message; return its event id. The same key is sent once."""
        wire = await self._reached()
        name = transaction(address, message.key) if message.key else uuid.uuid4().hex
        if message.voice:
            media_type = "audio/ogg" if message.voice.startswith(b"OggS") else "audio/wav"
            uri = await wire.upload(message.voice, media_type, "voice message")
            content = self._speech().voice(address, message, uri, media_type)
            return await wire.put(address.chat, "m.room.message", content, name)
        content = self._speech().message(address, message)
        try:
            sent = await wire.put(address.chat, "m.room.message", content, name)
        except ChatGone:
            if "formatted_body" not in content:
                raise
            content = self._speech().message(address, message, has_markup=False)
            sent = await wire.put(address.chat, "m.room.message", content, name)
        await self._offer(wire, address, sent, message)
        return sent

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours."""
        wire = await self._reached()
        content = self._speech().edit(message, new)
        try:
            await wire.put(address.chat, "m.room.message", content, uuid.uuid4().hex)
        except ChatGone:
            if "formatted_body" not in content["m.new_content"]:
                raise
            content = self._speech().edit(message, new, has_markup=False)
            await wire.put(address.chat, "m.room.message", content, uuid.uuid4().hex)
        await self._offer(wire, address, message, new)

    async def typing(self, address: Address) -> None:
        """Show that we are at work."""
        await (await self._reached()).typing(address.chat, TYPING_SECONDS)

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a person's message; the same one is put there once."""
        await self._sign(await self._reached(), address, message, sign)

    async def _sign(self, wire: Wire, address: Address, message: str, sign: str) -> str:
        content = {"m.relates_to": {"rel_type": "m.annotation", "event_id": message, "key": sign}}
        name = transaction(address, f"{message}\0{sign}", "sign")
        return await wire.put(address.chat, "m.reaction", content, name)

    async def _offer(self, wire: Wire, address: Address, message: str, said: Outgoing) -> None:
        """Put a reaction for each button under a message, for people to tap, and take away what is over.

        That may fail without harm: the words say how to answer.
        """
        try:
            if said.buttons:
                offer = self._choices.open(message, address, said.buttons)
                for sign in signs(said.buttons) if offer is not None else ():
                    if offer is not None and sign:
                        offer.taps.append(await self._sign(wire, address, message, sign))
            elif (offer := self._choices.close(message)) is not None:
                for tap in offer.taps:
                    await wire.redact(address.chat, tap)
        except ChatError as error:
            LOG.info("matrix: buttons could not be shown: %s", error)

    async def _tell_encrypted(self, room: str, person: str) -> None:
        """Say once that we can't read this, to people who may talk to us."""
        if room in self._told or not self._is_allowed(Author(person)):
            return
        self._told.add(room)
        try:
            await self.send(Address("matrix", room), Outgoing(ENCRYPTED, key="encrypted"))
        except ChatError as error:
            LOG.warning("matrix: nobody could be told that %s is encrypted: %s", room, error)

    def _speech(self) -> Outward:
        self._outward = self._outward or Outward()
        return self._outward

    async def _reached(self) -> Wire:
        """Return the connection, as soon as `run` has it.

        Raises:
            ChatError: There is none.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                while self._wire is None:
                    await self._connected.wait()
        except TimeoutError as error:
            raise ChatError("there is no connection to the homeserver now") from error
        return self._wire
