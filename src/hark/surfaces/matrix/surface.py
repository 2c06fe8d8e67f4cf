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
    IncomingMessage,
    OutgoingMessage,
    PlatformLimits,
)
from hark.surfaces.chat.markup_fallback import MarkupRefused, send_with_fallback
from hark.surfaces.chat.recent_values import RecentValues
from hark.surfaces.chat.retry import retry_call
from hark.surfaces.chat.settings import PlatformServices, resolve_secret
from hark.surfaces.matrix.incoming import RoomEventReader
from hark.surfaces.matrix.matrix_client import MatrixClient
from hark.surfaces.matrix.outgoing import MAX_CHARACTERS, edit_content, message_content, transaction_id, voice_content
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.reaction_choices import ReactionChoices, button_reactions
from hark.surfaces.matrix.receiving import InvitePolicy, RoomReceiver
from hark.surfaces.matrix.sync_state import SyncState
from hark.surfaces.matrix.wire_types import RoomEvent

TYPING_SECONDS = 6.0
CLOSE_SECONDS = 0.8
CONNECT_SECONDS = 10.0
ENCRYPTED = "I can't read encrypted messages. Please talk to me in a room without encryption."
UNREAD = "[encrypted message]"
LOG = logging.getLogger(__name__)


class MatrixSurface:
    """The chat surface for one Matrix account. It can send only while `run` is running."""

    name = "matrix"
    limits = PlatformLimits(MAX_CHARACTERS, 1.0, knows_keys=True, has_buttons=False, has_reactions=True)

    def __init__(
        self, settings: MatrixSettings, token: str, directory: Path, is_allowed: Callable[[Author], bool]
    ) -> None:
        """Create the surface. `directory` stores the sync state; `is_allowed` decides whose invites are accepted."""
        self._settings = settings
        self._token = token
        self._directory = directory
        self._is_allowed = is_allowed
        self._choices = ReactionChoices()
        self._wire: MatrixClient | None = None
        self._connected = asyncio.Event()
        self._notified_rooms: set[str] = set()
        self._reactions: RecentValues[tuple[str, str]] = RecentValues()  # by message: reaction and its event id
        self._known_buttons: RecentValues[bool] = RecentValues()  # messages whose button reactions are known

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled. The sync token advances only after `deliver` has returned.

        Raises:
            ChatError: The homeserver can't be reached or refused the request.
        """
        if not self._settings.api_base or not self._token:
            raise ChatError("[surfaces.matrix] needs api_base, the homeserver's URL, and an access token.")
        wire = MatrixClient(self._settings.api_base, self._token)
        try:
            account = await wire.who_am_i()
            sync_state = SyncState(self._directory, account[0])
            reader = RoomEventReader(wire, sync_state, self._choices, account, self._settings)

            async def process_event(room: str, event: RoomEvent) -> None:
                incoming = await reader.read(room, event)
                if incoming is not None:
                    await deliver(incoming)
                elif event.type == "m.room.encrypted" and event.sender != account[0]:
                    await self._handle_encrypted(room, event, deliver)

            self._wire = wire
            self._connected.set()
            invites = InvitePolicy(account[0], lambda user_id: self._is_allowed(Author(user_id)))
            await RoomReceiver(wire, sync_state, account[0], process_event, invites).run()
        finally:
            self._connected.clear()
            self._wire = None
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await wire.close()

    async def send(self, address: Address, message: OutgoingMessage) -> str:
        """Send a message and return its event id. Messages with the same key are sent only once."""
        wire = await self._wait_for_client()
        transaction = transaction_id(address, message.key) if message.key else uuid.uuid4().hex
        if message.voice:
            media_type = "audio/ogg" if message.voice.startswith(b"OggS") else "audio/wav"
            uri = await wire.upload(message.voice, media_type, "voice message")
            content = voice_content(address, message, uri, media_type)
            return await wire.send_event(address.chat, "m.room.message", content, transaction)
        event_id = await _send_content(wire, address.chat, partial(message_content, address, message), transaction)
        await self._update_buttons(wire, address, event_id, message)
        return event_id

    async def edit(self, address: Address, message: str, new: OutgoingMessage) -> None:
        """Edit a message that the bot sent."""
        wire = await self._wait_for_client()
        await _send_content(wire, address.chat, partial(edit_content, message, new), uuid.uuid4().hex)
        await self._update_buttons(wire, address, message, new)

    async def show_typing(self, address: Address) -> None:
        """Show the typing indicator."""
        await (await self._wait_for_client()).show_typing(address.chat, TYPING_SECONDS)

    async def react(self, address: Address, message: str, reaction: str) -> None:
        """Set the bot's reaction to a user's message, replacing any earlier reaction by the bot."""
        wire = await self._wait_for_client()
        previous = self._reactions.get(message)
        if previous is not None and previous[0] == reaction:
            return
        # A removed reaction can't be added again with its old transaction id.
        nonce = uuid.uuid4().hex if previous is not None else ""
        self._reactions.put(message, (reaction, await self._add_reaction(wire, address, message, reaction, nonce)))
        if previous is not None:
            await wire.redact(address.chat, previous[1])

    async def _add_reaction(
        self, wire: MatrixClient, address: Address, message: str, reaction: str, nonce: str = ""
    ) -> str:
        content = {"m.relates_to": {"rel_type": "m.annotation", "event_id": message, "key": reaction}}
        transaction = transaction_id(address, f"{message}\0{reaction}{nonce}", "sign")
        return await wire.send_event(address.chat, "m.reaction", content, transaction)

    async def _update_buttons(
        self, wire: MatrixClient, address: Address, message: str, content: OutgoingMessage
    ) -> None:
        """Add a reaction that users can tap for each button of a message, and remove obsolete reactions.

        A failure is harmless: the text explains how to answer, and the next edit tries again.
        """
        try:
            if content.buttons:
                button_message = self._choices.set_buttons(message, address, content.buttons)
                for reaction in button_reactions(content.buttons):
                    if reaction and reaction not in button_message.taps:
                        button_message.taps[reaction] = await self._add_reaction(wire, address, message, reaction)
            else:
                for reaction_id in await self._obsolete_reactions(wire, address, message):
                    await retry_call(partial(wire.redact, address.chat, reaction_id))
        except ChatError as error:
            LOG.info("matrix: buttons could not be shown: %s", error)
        self._known_buttons.put(message, True)

    async def _obsolete_reactions(self, wire: MatrixClient, address: Address, message: str) -> list[str]:
        """Remove a message's buttons. Return the bot's reactions to it, even those from an earlier process."""
        button_message = self._choices.remove_buttons(message)
        if button_message is not None:
            return list(button_message.taps.values())
        if self._known_buttons.get(message):
            return []
        return await retry_call(partial(wire.fetch_own_reactions, address.chat, message))

    async def _handle_encrypted(self, room: str, event: RoomEvent, deliver: Deliver) -> None:
        """Reply once per room that encrypted messages can't be read. In private rooms, offer unknown users pairing."""
        wire = await self._wait_for_client()
        author = Author(event.sender, wire.display_name(room, event.sender))
        if not self._is_allowed(author):
            if wire.member_count(room) == 2:
                await deliver(IncomingMessage(event.event_id, Address("matrix", room), author, UNREAD))
        elif room not in self._notified_rooms:
            self._notified_rooms.add(room)
            try:
                await self.send(Address("matrix", room), OutgoingMessage(ENCRYPTED, key="encrypted"))
            except ChatError as error:
                LOG.warning("matrix: the encryption notice could not be sent to %s: %s", room, error)

    async def _wait_for_client(self) -> MatrixClient:
        """Return the client as soon as `run` has connected.

        Raises:
            ChatError: `run` did not connect within `CONNECT_SECONDS`.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                while self._wire is None:
                    await self._connected.wait()
        except TimeoutError as error:
            raise ChatError("Not connected to the homeserver.") from error
        return self._wire


async def _send_content(
    wire: MatrixClient, room: str, make_content: Callable[..., dict[str, Any]], transaction: str
) -> str:
    """Send a message with markup, or without it if the homeserver refuses the markup. Return the event id."""

    async def send(content: dict[str, Any]) -> str:
        try:
            return await wire.send_event(room, "m.room.message", content, transaction)
        except ChatGone as refusal:
            if "formatted_body" not in content.get("m.new_content", content):
                raise
            raise MarkupRefused(str(refusal)) from refusal

    return await send_with_fallback([make_content, partial(make_content, has_markup=False)], send)


def make_surface(settings: MatrixSettings, services: PlatformServices) -> ChatSurface:
    """Return a Matrix surface with these settings."""
    token = resolve_secret(settings.token, settings.token_env)
    return MatrixSurface(settings, token, services.home / "matrix", services.is_allowed)
