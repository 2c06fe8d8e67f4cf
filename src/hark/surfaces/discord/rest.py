"""What goes to Discord: messages, edits, signs, and the answers to presses."""

import asyncio
import hashlib
import io
import json
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

import discord
from discord.http import MultipartParameters, Route

from hark.protocol.chat import Address, Button, Outgoing
from hark.surfaces.chat.recent_values import ButtonValues, Recent
from hark.surfaces.discord.client import DiscordClient
from hark.surfaces.discord.errors import ERRORS, MessageMalformed, told
from hark.surfaces.discord.markup import CHARACTERS, shown

T = TypeVar("T")

BUTTON_BYTES = 100
LONGEST_LABEL = 80
IN_A_ROW = 5
ROWS = 5
REQUEST_SECONDS = 120.0  # with what discord.py waits for limits and tries again
NOBODY: dict[str, Any] = {"parse": [], "replied_user": False}  # the model's words ping no one
NO_PREVIEWS = 1 << 2
EMOJI = "\ufe0f"  # makes an emoji of a sign that is text by default; Discord knows those with it only
TEXT_SIGNS = "↪⏸🗑⏹▶✏✔❤☑⚠"
TOO_OLD = "That button is too old: ask again."


class Rest:
    """Sends. discord.py honours the limits: who must wait does so alone, others go on."""

    def __init__(self, client: DiscordClient) -> None:
        self.button_values = ButtonValues(BUTTON_BYTES)
        self._client = client
        self._http = client.http
        self._signs: Recent[str] = Recent()

    async def send(self, address: Address, message: Outgoing) -> str:
        """Send a message; return its id. The same key is taken once, and then shows what was sent last.

        Raises:
            ChatError: Discord refuses or can't be reached.
        """
        payload = self._payload(message)
        if message.reply_to:
            payload["message_reference"] = {"message_id": message.reply_to, "fail_if_not_exists": False}
        if message.key:
            payload["nonce"] = _nonce(address, message.key)
            payload["enforce_nonce"] = True
        chat = address.thread or address.chat
        try:
            sent = await self.ask(self._http.send_message(chat, params=_parameters(payload, message.voice)))
        except MessageMalformed:
            payload = _plain(payload, message)
            sent = await self.ask(self._http.send_message(chat, params=_parameters(payload, message.voice)))
        name = str(sent["id"])
        if message.key and _is_other(sent, payload):  # an earlier try had reached Discord, with other words
            await self.edit(address, name, message)
        return name

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours.

        Raises:
            ChatError: Discord refuses or can't be reached.
        """
        payload = self._payload(new)
        chat = address.thread or address.chat
        try:
            await self.ask(self._http.edit_message(chat, message, params=_parameters(payload)))
        except MessageMalformed:
            await self.ask(self._http.edit_message(chat, message, params=_parameters(_plain(payload, new))))

    async def typing(self, address: Address) -> None:
        """Show that we are at work.

        Raises:
            ChatError: Discord refuses or can't be reached.
        """
        await self.ask(self._http.send_typing(address.thread or address.chat))

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a message, in place of the one that we put there before.

        Raises:
            ChatError: Discord refuses or can't be reached.
        """
        emoji = sign + EMOJI if sign in TEXT_SIGNS else sign
        before = self._signs.get(message)
        if before == emoji:
            return
        chat = address.thread or address.chat
        await self.ask(self._http.add_reaction(chat, message, emoji))
        self._signs.put(message, emoji)
        if before is not None:
            await self.ask(self._http.remove_own_reaction(chat, message, before))

    async def acknowledge(self, interaction: int, token: str, *, is_known: bool) -> None:
        """Tell Discord that a press has come; of a button that is not known any more, its person.

        Raises:
            ChatError: Discord refuses or can't be reached.
        """
        said = {"type": 4, "data": {"content": TOO_OLD, "flags": 1 << 6}}
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        route = Route("POST", path, webhook_id=interaction, webhook_token=token)
        await self.ask(self._http.request(route, json={"type": 6} if is_known else said))

    async def ask(self, request: Awaitable[T]) -> T:
        """Make a request.

        Raises:
            ChatError: Discord refuses or can't be reached.
        """
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await request
        except asyncio.CancelledError:
            self._client.open_gate()
            raise
        except ERRORS as error:
            if isinstance(error, TimeoutError):
                self._client.open_gate()
            raise told(error) from error

    def _payload(self, message: Outgoing) -> dict[str, Any]:
        return {
            "content": shown(message.text, CHARACTERS),
            "components": self._rows(message.buttons),
            "allowed_mentions": NOBODY,
            "flags": NO_PREVIEWS,
        }

    def _rows(self, buttons: Sequence[Button]) -> list[dict[str, Any]]:
        """Return buttons as rows of components; more than Discord shows are left out."""
        shown = [self._component(button) for button in buttons[: IN_A_ROW * ROWS]]
        return [{"type": 1, "components": shown[at : at + IN_A_ROW]} for at in range(0, len(shown), IN_A_ROW)]

    def _component(self, button: Button) -> dict[str, Any]:
        label = button.text.strip()[:LONGEST_LABEL] or "…"
        style = 4 if button.value.startswith("stop:") else 2
        return {"type": 2, "style": style, "label": label, "custom_id": self.button_values.shortened(button.value)}


def _plain(payload: dict[str, Any], message: Outgoing) -> dict[str, Any]:
    """Return the words alone, as they are."""
    kept = {name: value for name, value in payload.items() if name != "message_reference"}
    return {**kept, "content": message.text[:CHARACTERS].strip() or "…", "components": []}


def _parameters(payload: dict[str, Any], voice: bytes = b"") -> MultipartParameters:
    if not voice:
        return MultipartParameters(payload=payload, multipart=None, files=None)
    ending = "ogg" if voice.startswith(b"OggS") else "wav" if voice.startswith(b"RIFF") else "mp3"
    file = discord.File(io.BytesIO(voice), f"reply.{ending}")
    body = json.dumps({**payload, "attachments": [file.to_dict(0)]})
    fields = [
        {"name": "payload_json", "value": body},
        {"name": "files[0]", "value": file.fp, "filename": file.filename, "content_type": "application/octet-stream"},
    ]
    return MultipartParameters(payload=None, multipart=fields, files=[file])


def _nonce(address: Address, key: str) -> str:
    """Return a key as Discord takes it: 25 characters, its own in all chats."""
    return hashlib.sha256(f"{address.chat}|{address.thread}|{key}".encode()).hexdigest()[:25]


def _is_other(sent: Any, payload: dict[str, Any]) -> bool:
    is_other_text = str(sent["content"]).strip() != payload["content"].strip()
    return is_other_text or len(sent.get("components", ())) != len(payload["components"])
