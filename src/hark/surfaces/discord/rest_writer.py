"""Send messages, edits, reactions and acknowledgements of button presses to Discord."""

import asyncio
import hashlib
import io
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import discord
from discord.http import MultipartParameters, Route

from hark.protocol.chat import Address, Button, OutgoingMessage
from hark.surfaces.chat.markup_fallback import send_with_fallback
from hark.surfaces.chat.recent_values import ButtonValues, RecentValues
from hark.surfaces.chat.split_text import cut_position
from hark.surfaces.discord.client import DiscordClient
from hark.surfaces.discord.errors import CLIENT_ERRORS, translate_error
from hark.surfaces.discord.markup import MAX_CHARACTERS, to_discord_markdown

T = TypeVar("T")

BUTTON_BYTES = 100
MAX_LABEL_CHARACTERS = 80
ROW_SIZE = 5
MAX_ROWS = 5
REQUEST_SECONDS = 120.0  # including discord.py's rate-limit waits and retries
NO_PINGS: dict[str, Any] = {"parse": [], "replied_user": False}  # The model's text must not notify anyone.
NO_PREVIEWS = 1 << 2
EMOJI_SELECTOR = "\ufe0f"  # selects the emoji form of characters that are text by default; Discord requires it
TEXT_DEFAULT_EMOJI = "↪⏸🗑⏹▶✏✔❤☑⚠"
BUTTON_EXPIRED = "This button has expired. Please ask again."


class RestWriter:
    """Sends through Discord's REST API. discord.py applies the rate limits per route."""

    def __init__(self, client: DiscordClient) -> None:
        self.button_values = ButtonValues(BUTTON_BYTES)
        self._client = client
        self._http = client.http
        self._reactions: RecentValues[str] = RecentValues()

    async def send(self, address: Address, message: OutgoingMessage) -> str:
        """Send a message and return its id. If its key was already used, update the content of the earlier message.

        Raises:
            ChatError: Discord refused the request or can't be reached.
        """
        fields: dict[str, Any] = {}
        if message.reply_to:
            fields["message_reference"] = {"message_id": message.reply_to, "fail_if_not_exists": False}
        if message.key:
            fields |= {"nonce": _nonce(address, message.key), "enforce_nonce": True}

        async def send_payload(payload: dict[str, Any]) -> tuple[str, bool]:
            parameters = _request_parameters(payload, message.voice)
            sent = await self.request(self._http.send_message(address.thread or address.chat, params=parameters))
            return str(sent["id"]), _differs_from(sent, payload)

        message_id, is_different = await send_with_fallback(self._make_payloads(message, fields), send_payload)
        if message.key and is_different:  # An earlier attempt had reached Discord, with another text.
            await self.edit(address, message_id, message)
        return message_id

    async def edit(self, address: Address, message: str, new: OutgoingMessage) -> None:
        """Edit a message that the bot sent.

        Raises:
            ChatError: Discord refused the request or can't be reached.
        """

        async def send_payload(payload: dict[str, Any]) -> None:
            parameters = _request_parameters(payload)
            await self.request(self._http.edit_message(address.thread or address.chat, message, params=parameters))

        await send_with_fallback(self._make_payloads(new, {}), send_payload)

    async def show_typing(self, address: Address) -> None:
        """Show the typing indicator.

        Raises:
            ChatError: Discord refused the request or can't be reached.
        """
        await self.request(self._http.send_typing(address.thread or address.chat))

    async def react(self, address: Address, message: str, reaction: str) -> None:
        """Set the bot's reaction to a message, replacing its earlier reaction.

        Raises:
            ChatError: Discord refused the request or can't be reached.
        """
        emoji = reaction + EMOJI_SELECTOR if reaction in TEXT_DEFAULT_EMOJI else reaction
        previous = self._reactions.get(message)
        if previous == emoji:
            return
        chat = address.thread or address.chat
        await self.request(self._http.add_reaction(chat, message, emoji))
        self._reactions.put(message, emoji)
        if previous is not None:
            await self.request(self._http.remove_own_reaction(chat, message, previous))

    async def acknowledge(self, interaction: int, token: str, *, is_known: bool) -> None:
        """Acknowledge a button press. If the button is no longer known, notify the user that it has expired.

        Raises:
            ChatError: Discord refused the request or can't be reached.
        """
        expired_reply = {"type": 4, "data": {"content": BUTTON_EXPIRED, "flags": 1 << 6}}
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        route = Route("POST", path, webhook_id=interaction, webhook_token=token)
        await self.request(self._http.request(route, json={"type": 6} if is_known else expired_reply))

    async def request(self, awaitable: Awaitable[T]) -> T:
        """Await a discord.py request with a timeout, and translate its errors.

        Raises:
            ChatError: Discord refused the request or can't be reached.
        """
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await awaitable
        except asyncio.CancelledError:
            self._client.release_global_limit()
            raise
        except CLIENT_ERRORS as error:
            if isinstance(error, TimeoutError):
                self._client.release_global_limit()
            raise translate_error(error) from error

    def _make_payloads(self, message: OutgoingMessage, fields: dict[str, Any]) -> list[Callable[[], dict[str, Any]]]:
        """Return functions that render the payload with markup, then as text without buttons and reply reference."""
        base = {"components": self._button_rows(message.buttons), "allowed_mentions": NO_PINGS, "flags": NO_PREVIEWS}
        base |= fields
        return [
            lambda: {**base, "content": to_discord_markdown(message.text, MAX_CHARACTERS)},
            partial(_plain_payload, base, message),
        ]

    def _button_rows(self, buttons: Sequence[Button]) -> list[dict[str, Any]]:
        """Return the buttons as rows of components. Buttons beyond Discord's limit are dropped."""
        components = [self._button_component(button) for button in buttons[: ROW_SIZE * MAX_ROWS]]
        return [{"type": 1, "components": components[at : at + ROW_SIZE]} for at in range(0, len(components), ROW_SIZE)]

    def _button_component(self, button: Button) -> dict[str, Any]:
        label = button.text.strip()[:MAX_LABEL_CHARACTERS] or "…"
        style = 4 if button.value.startswith("stop:") else 2
        return {"type": 2, "style": style, "label": label, "custom_id": self.button_values.shorten(button.value)}


def _plain_payload(payload: dict[str, Any], message: OutgoingMessage) -> dict[str, Any]:
    """Return the payload with unformatted text only, without buttons and without the reply reference."""
    fields = {name: value for name, value in payload.items() if name != "message_reference"}
    text = message.text[: cut_position(message.text, MAX_CHARACTERS)]
    return {**fields, "content": text.strip() or "…", "components": []}


def _request_parameters(payload: dict[str, Any], voice: bytes = b"") -> MultipartParameters:
    if not voice:
        return MultipartParameters(payload=payload, multipart=None, files=None)
    suffix = "ogg" if voice.startswith(b"OggS") else "wav" if voice.startswith(b"RIFF") else "mp3"
    file = discord.File(io.BytesIO(voice), f"reply.{suffix}")
    body = json.dumps({**payload, "attachments": [file.to_dict(0)]})
    fields = [
        {"name": "payload_json", "value": body},
        {"name": "files[0]", "value": file.fp, "filename": file.filename, "content_type": "application/octet-stream"},
    ]
    return MultipartParameters(payload=None, multipart=fields, files=[file])


def _nonce(address: Address, key: str) -> str:
    """Return the nonce for a key, in Discord's format: 25 characters, unique across chats."""
    return hashlib.sha256(f"{address.chat}|{address.thread}|{key}".encode()).hexdigest()[:25]


def _differs_from(sent: Any, payload: dict[str, Any]) -> bool:
    is_other_text = str(sent["content"]).strip() != payload["content"].strip()
    return is_other_text or len(sent.get("components", ())) != len(payload["components"])
