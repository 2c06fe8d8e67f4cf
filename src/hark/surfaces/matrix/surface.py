"""Matrix as a chat surface."""

import asyncio
import logging
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from hark.protocol.chat import (
    Address,
    Author,
    ChatError,
    ChatGone,
    ChatSurface,
    Deliver,
    Outgoing,
    PlatformLimits,
    Written,
)
from hark.surfaces.chat.recent_values import Recent
from hark.surfaces.chat.retry import retried
from hark.surfaces.chat.settings import PlatformServices, secret
from hark.surfaces.matrix.incoming import RoomEventReader
from hark.surfaces.matrix.outgoing import CHARACTERS, edit_content, message_content, transaction, voice_content
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.reaction_choices import ReactionChoices, signs
from hark.surfaces.matrix.receiving import Invites, Receiving
from hark.surfaces.matrix.sync_state import SyncState
from hark.surfaces.matrix.wire import Wire
from hark.surfaces.matrix.wire_types import RoomEvent

TYPING_SECONDS = 6.0
CLOSE_SECONDS = 0.8
CONNECT_SECONDS = 10.0
ENCRYPTED = "I can't read encrypted messages. Please talk to me in a room without encryption."
UNREAD = "[a message that is encrypted]"
LOG = logging.getLogger(__name__)


class Matrix:
    """A ChatSurface for one account. `send` and the others work while `run` does; else they say that it does not."""

    name = "matrix"
    limits = PlatformLimits(CHARACTERS, 1.0, knows_keys=True, has_buttons=False, has_reactions=True)

    def __init__(
        self, settings: MatrixSettings, token: str, folder: Path, is_allowed: Callable[[Author], bool]
    ) -> None:
        """`folder` keeps how far the news were read. `is_allowed` says whose invites are followed."""
        self._settings = settings
        self._token = token
        self._folder = folder
        self._is_allowed = is_allowed
        self._choices = ReactionChoices()
        self._wire: Wire | None = None
        self._connected = asyncio.Event()
        self._told: set[str] = set()
        self._signs: Recent[tuple[str, str]] = Recent()  # what we put on people's messages
        self._ours: Recent[bool] = Recent()  # messages whose reactions of ours are known

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
            memory = SyncState(self._folder, me[0])
            inward = RoomEventReader(wire, memory, self._choices, me, self._settings)

            async def deal_with(room: str, event: RoomEvent) -> None:
                incoming = await inward.read(room, event)
                if incoming is not None:
                    await deliver(incoming)
                elif event.type == "m.room.encrypted" and event.sender != me[0]:
                    await self._hear_encrypted(room, event, deliver)

            self._wire = wire
            self._connected.set()
            invites = Invites(me[0], lambda person: self._is_allowed(Author(person)))
            await Receiving(wire, memory, me[0], deal_with, invites).run()
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
            content = voice_content(address, message, uri, media_type)
            return await wire.put(address.chat, "m.room.message", content, name)
        sent = await _put_message(wire, address.chat, partial(message_content, address, message), name)
        await self._offer(wire, address, sent, message)
        return sent

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours."""
        wire = await self._reached()
        await _put_message(wire, address.chat, partial(edit_content, message, new), uuid.uuid4().hex)
        await self._offer(wire, address, message, new)

    async def typing(self, address: Address) -> None:
        """Show that we are at work."""
        await (await self._reached()).typing(address.chat, TYPING_SECONDS)

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a person's message, in place of the one that we put there before."""
        wire = await self._reached()
        before = self._signs.get(message)
        if before is not None and before[0] == sign:
            return
        # One that was taken back can't be put there again under its old name.
        once = uuid.uuid4().hex if before is not None else ""
        self._signs.put(message, (sign, await self._sign(wire, address, message, sign, once)))
        if before is not None:
            await wire.redact(address.chat, before[1])

    async def _sign(self, wire: Wire, address: Address, message: str, sign: str, once: str = "") -> str:
        content = {"m.relates_to": {"rel_type": "m.annotation", "event_id": message, "key": sign}}
        name = transaction(address, f"{message}\0{sign}{once}", "sign")
        return await wire.put(address.chat, "m.reaction", content, name)

    async def _offer(self, wire: Wire, address: Address, message: str, said: Outgoing) -> None:
        """Put a reaction for each button under a message, for people to tap, and take away what is over.

        That may fail without harm: the words say how to answer, and the next edit tries it again.
        """
        try:
            if said.buttons:
                offer = self._choices.open(message, address, said.buttons)
                for sign in signs(said.buttons):
                    if sign and sign not in offer.taps:
                        offer.taps[sign] = await self._sign(wire, address, message, sign)
            else:
                for tap in await self._taps_of(wire, address, message):
                    await retried(partial(wire.redact, address.chat, tap))
        except ChatError as error:
            LOG.info("matrix: buttons could not be shown: %s", error)
        self._ours.put(message, True)

    async def _taps_of(self, wire: Wire, address: Address, message: str) -> list[str]:
        """Return our reactions under a message that has no buttons now; of an earlier process's they are asked for."""
        offer = self._choices.close(message)
        if offer is not None:
            return list(offer.taps.values())
        if self._ours.get(message):
            return []
        return await retried(partial(wire.our_reactions, address.chat, message))

    async def _hear_encrypted(self, room: str, event: RoomEvent, deliver: Deliver) -> None:
        """Say once that we can't read this, to people who may talk to us; strangers who write to us alone knock."""
        wire = await self._reached()
        author = Author(event.sender, wire.name_of(room, event.sender))
        if not self._is_allowed(author):
            if wire.member_count(room) == 2:
                await deliver(Written(event.event_id, Address("matrix", room), author, UNREAD))
        elif room not in self._told:
            self._told.add(room)
            try:
                await self.send(Address("matrix", room), Outgoing(ENCRYPTED, key="encrypted"))
            except ChatError as error:
                LOG.warning("matrix: nobody could be told that %s is encrypted: %s", room, error)

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


async def _put_message(wire: Wire, room: str, make: Callable[..., dict[str, Any]], name: str) -> str:
    """Send a message with its markup. If the homeserver refuses it, send it without. Return the event's id."""
    content = make()
    try:
        return await wire.put(room, "m.room.message", content, name)
    except ChatGone:
        if "formatted_body" not in content.get("m.new_content", content):
            raise
    return await wire.put(room, "m.room.message", make(has_markup=False), name)


def make_surface(settings: MatrixSettings, services: PlatformServices) -> ChatSurface:
    """Return the surface that the settings describe."""
    token = secret(settings.token, settings.token_env)
    return Matrix(settings, token, services.home / "matrix", services.is_known)
