"""Convert Slack events to incoming messages, edits, deletions and button presses."""

import asyncio
from typing import Any, cast

from msgspec import Struct

from hark.protocol.chat import (
    Address,
    Author,
    ButtonPressed,
    ChatError,
    ChatGone,
    IncomingEvent,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
)
from hark.surfaces.chat.recent_values import RecentValues
from hark.surfaces.slack.files import FileDownloader
from hark.surfaces.slack.mrkdwn import mentioned_ids, to_plain_text
from hark.surfaces.slack.web_api import MissingScope, SlackWebApi
from hark.surfaces.slack.wire_types import ButtonPress, SlackMessage, parse_struct

LOOKUP_SECONDS = 2.0  # Slack expects the ack within three seconds.
SURFACE_NAME = "slack"
_SUBTYPES = ("", "file_share", "thread_broadcast", "me_message")
_SLACKBOT = "USLACKBOT"


class ThreadInfo(Struct, frozen=True):
    """Information about a thread: whether the bot takes part in it, and the text of its first message."""

    includes_bot: bool
    text: str = ""


class SlackLookups:
    """Looks up users and threads in Slack and caches the results. Failed lookups are not cached."""

    def __init__(self, web: SlackWebApi, bot_id: str) -> None:
        self._web = web
        self._bot_id = bot_id
        self._names: RecentValues[str] = RecentValues()
        self._threads: RecentValues[ThreadInfo] = RecentValues()

    async def user_name(self, user_id: str) -> str:
        """Return a user's display name, or "" if it is unknown."""
        known = self._names.get(user_id)
        if known is not None:
            return known
        answer = await self._query("users.info", user=user_id)
        if answer is None:
            return ""
        name = _display_name(answer.get("user"))
        self._names.put(user_id, name)
        return name

    async def thread_info(self, channel: str, ts: str) -> ThreadInfo | None:
        """Return information about a thread, or None if Slack doesn't respond in time."""
        known = self._threads.get((channel, ts))
        answer = await self._query("conversations.replies", channel=channel, ts=ts, limit=1) if known is None else None
        if answer is None:
            return known
        messages = cast("list[Any]", answer.get("messages") or [])
        root = parse_struct(messages[0], SlackMessage) if messages else None
        if root is None:
            return ThreadInfo(includes_bot=False)
        thread = ThreadInfo(self._bot_id in (root.user, *root.reply_users, *mentioned_ids(root.text)), root.text)
        self._threads.put((channel, ts), thread)
        return thread

    async def _query(self, method: str, **arguments: object) -> dict[str, Any] | None:
        """Return Slack's response, {} if Slack refuses the call, or None if Slack doesn't respond in time."""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await self._web.get(method, **arguments)
        except (MissingScope, ChatGone):
            return {}
        except (ChatError, TimeoutError):
            return None

    def mark_thread_joined(self, channel: str, ts: str) -> None:
        """Record that the bot takes part in a thread."""
        self._threads.put((channel, ts), ThreadInfo(includes_bot=True))


def address_of(channel: str, message: SlackMessage) -> Address:
    """Return the address of a message.

    In a channel, the address is the thread that the message belongs to or starts. In direct messages, the address is
    the thread for replies in a thread, and the chat for all other messages.
    """
    is_private = channel.startswith("D")
    if is_private and message.thread_ts in ("", message.ts):
        return Address(SURFACE_NAME, channel)
    return Address(SURFACE_NAME, channel, message.thread_ts or message.ts)


def read_press(press: ButtonPress) -> ButtonPressed | None:
    """Convert a button press from Slack. Return None if the button is not one of Hark's."""
    action = next((action for action in press.actions if action.action_id.startswith("hark_")), None)
    if action is None or not press.channel.id or not press.message.ts:
        return None
    press_id = f"{press.message.ts}:{action.action_id}:{action.action_ts}"
    address = address_of(press.channel.id, press.message)
    return ButtonPressed(press_id, address, Author(press.user.id, press.user.name), action.value)


class SlackEventReader:
    """Converts Slack events to incoming events. `bot` is the bot's own user, with id and name."""

    def __init__(self, bot: Author, files: FileDownloader, lookups: SlackLookups, *, listens_to_all: bool) -> None:
        self._bot_id = bot.id
        self._bot_name = bot.name
        self._files = files
        self._lookups = lookups
        self._listens_to_all = listens_to_all
        self._delivered: RecentValues[bool] = RecentValues()

    async def read(self, event: SlackMessage) -> IncomingEvent | None:
        """Convert an event to an incoming message, edit or deletion, or None if the event isn't for the bot.

        Raises:
            ChatError: It is unknown whether the message is for the bot. Slack must deliver the event again.
        """
        if event.subtype == "message_changed" and event.message is not None:
            return await self._read_edit(event.channel, event.message, event.previous_message or SlackMessage())
        if event.subtype == "message_deleted" and event.previous_message is not None:
            return await self._read_deletion(event.channel, event.previous_message)
        if event.subtype in _SUBTYPES and self._is_from_user(event) and not self._is_delivered(event.channel, event):
            return await self._read_message(event.channel, event)
        return None

    def mark_delivered(self, event: SlackMessage, incoming: IncomingEvent) -> None:
        """Record a delivered message, so that its files are not downloaded again when Slack repeats the event."""
        if isinstance(incoming, IncomingMessage) and incoming.is_for_us:
            for message_id in filter(None, (incoming.id, event.client_msg_id)):
                self._delivered.put(f"{incoming.address.chat}:{message_id}", True)

    def _is_delivered(self, channel: str, message: SlackMessage) -> bool:
        message_ids = filter(None, (message.ts, message.client_msg_id))
        return any(self._delivered.get(f"{channel}:{message_id}") for message_id in message_ids)

    def _is_from_user(self, message: SlackMessage) -> bool:
        return bool(message.user) and not message.bot_id and message.user not in (self._bot_id, _SLACKBOT)

    async def _read_message(self, channel: str, message: SlackMessage) -> IncomingMessage:
        address = address_of(channel, message)
        is_for_us, quoted = await self._check_addressing(channel, message)
        at = _parse_timestamp(message.ts)
        if not is_for_us and not self._listens_to_all:  # ignored, so nothing is looked up or downloaded
            return IncomingMessage(message.ts, address, Author(message.user), message.text, is_for_us=False, at=at)
        author = Author(message.user, await self._lookups.user_name(message.user))
        text = await self._plain_text(message.text)
        if address.thread:
            self._lookups.mark_thread_joined(channel, address.thread)
        files = await self._files.download_all(message.files)
        shared = "\n".join(
            item.text for item in message.attachments if item.text and (item.is_share or item.is_msg_unfurl)
        )
        return IncomingMessage(
            message.ts,
            address,
            author,
            "\n".join(part for part in (text, *files.notes) if part),
            tuple(files.attachments),
            files.voice,
            is_for_us=is_for_us,
            quoted=await self._plain_text(shared or quoted),
            at=at,
            replied_to=message.thread_ts if message.thread_ts != message.ts else "",
            is_private=channel.startswith("D"),
        )

    async def _read_edit(self, channel: str, new: SlackMessage, old: SlackMessage) -> IncomingEvent | None:
        if new.subtype == "tombstone":  # the deleted first message of a thread, of which Slack keeps a placeholder
            return await self._read_deletion(channel, old)
        if not self._is_from_user(new) or new.text == old.text:
            return None
        is_for_us = self._listens_to_all or (await self._check_addressing(channel, new))[0]
        if not is_for_us:
            return None
        if old.ts and not self._listens_to_all and not (await self._check_addressing(channel, old))[0]:
            return await self._read_message(channel, new)  # The edit added a mention, so the message is new to the bot.
        author = Author(new.user, await self._lookups.user_name(new.user))
        text, at = await self._plain_text(new.text), _parse_timestamp(new.edited.ts)
        return MessageEdited(new.ts, address_of(channel, new), author, text, at)

    async def _read_deletion(self, channel: str, old: SlackMessage) -> MessageDeleted | None:
        if not self._is_from_user(old) or not (self._listens_to_all or (await self._check_addressing(channel, old))[0]):
            return None
        return MessageDeleted(old.ts, address_of(channel, old))

    async def _check_addressing(self, channel: str, message: SlackMessage) -> tuple[bool, str]:
        """Return whether a message is for the bot, and the text it replies to if the bot has not received that text."""
        mentions_bot = self._bot_id in mentioned_ids(message.text) or message.parent_user_id == self._bot_id
        is_reply = message.thread_ts not in ("", message.ts)
        if not is_reply:
            return channel.startswith("D") or mentions_bot, ""
        thread = await self._lookups.thread_info(channel, message.thread_ts)
        is_for_us = channel.startswith("D") or mentions_bot or (thread is not None and thread.includes_bot)
        if thread is None:
            if not is_for_us:
                raise ChatError("Slack did not answer, so it is unknown whether the bot takes part in the thread.")
            return True, ""
        return is_for_us, "" if thread.includes_bot and message.parent_user_id != self._bot_id else thread.text

    async def _plain_text(self, text: str) -> str:
        names = {user: await self._lookups.user_name(user) for user in set(mentioned_ids(text)) - {self._bot_id}}
        return to_plain_text(text, {**names, self._bot_id: self._bot_name}, self._bot_id)


def _parse_timestamp(ts: str) -> float:
    return float(ts) if ts.replace(".", "", 1).isdigit() else 0.0


def _display_name(user: Any) -> str:
    match user:
        case {"profile": {"display_name": str(name)}} if name:
            return name
        case {"real_name": str(name)} if name:
            return name
        case {"name": str(name)}:
            return name
        case _:
            return ""
