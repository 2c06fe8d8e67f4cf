"""Slack's events, as what a chat surface hears."""

import asyncio
from typing import Any, cast

from msgspec import Struct

from hark.protocol.chat import Address, Author, ChatError, ChatGone, Incoming, Pressed, Removed, Rewritten, Written
from hark.surfaces.chat.recent_values import Recent
from hark.surfaces.slack.files import Files
from hark.surfaces.slack.mrkdwn import mentioned, plain
from hark.surfaces.slack.web_api import Forbidden, Web
from hark.surfaces.slack.wire_types import Message, Press, read

LOOK_SECONDS = 2.0  # Slack waits three for its ack
NAME = "slack"
_SAID = ("", "file_share", "thread_broadcast", "me_message")
_SLACKBOT = "USLACKBOT"


class Thread(Struct, frozen=True):
    """A thread: whether we take part in it, and what it began with."""

    is_ours: bool
    text: str = ""


class Lookups:
    """Asks Slack, once for each. What can't be had in time is done without, and asked for again later."""

    def __init__(self, web: Web, us: str) -> None:
        self._web = web
        self._us = us
        self._names: Recent[str] = Recent()
        self._threads: Recent[Thread] = Recent()

    async def name(self, person: str) -> str:
        """Return what a person is called, or ""."""
        known = self._names.get(person)
        if known is not None:
            return known
        answer = await self._look("users.info", user=person)
        if answer is None:
            return ""
        name = _called(answer.get("user"))
        self._names.put(person, name)
        return name

    async def thread(self, channel: str, ts: str) -> Thread | None:
        """Return what is known of a thread; None when Slack does not tell now."""
        known = self._threads.get((channel, ts))
        answer = await self._look("conversations.replies", channel=channel, ts=ts, limit=1) if known is None else None
        if answer is None:
            return known
        messages = cast("list[Any]", answer.get("messages") or [])
        root = read(messages[0], Message) if messages else None
        if root is None:
            return Thread(is_ours=False)
        thread = Thread(self._us in (root.user, *root.reply_users, *mentioned(root.text)), root.text)
        self._threads.put((channel, ts), thread)
        return thread

    async def _look(self, method: str, **arguments: object) -> dict[str, Any] | None:
        """Return Slack's answer: {} if it refuses to tell, None if it does not tell now."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self._web.ask(method, **arguments)
        except (Forbidden, ChatGone):
            return {}
        except (ChatError, TimeoutError):
            return None

    def join(self, channel: str, ts: str) -> None:
        """From now on we take part in this thread."""
        self._threads.put((channel, ts), Thread(is_ours=True))


def address_of(channel: str, message: Message) -> Address:
    """Return where a message belongs: in a channel to the thread that it is in or begins, else to the chat.

    The first message of a thread in direct messages belongs to the chat, where it was written.
    """
    is_private = channel.startswith("D")
    if is_private and message.thread_ts in ("", message.ts):
        return Address(NAME, channel)
    return Address(NAME, channel, message.thread_ts or message.ts)


def pressed(press: Press) -> Pressed | None:
    """Return the press of a button; None when it is none of ours."""
    action = next((action for action in press.actions if action.action_id.startswith("hark_")), None)
    if action is None or not press.channel.id or not press.message.ts:
        return None
    name = f"{press.message.ts}:{action.action_id}:{action.action_ts}"
    address = address_of(press.channel.id, press.message)
    return Pressed(name, address, Author(press.user.id, press.user.name), action.value)


class SlackEventReader:
    """Reads events. `us` is the bot, with its id and name as a person."""

    def __init__(self, us: Author, files: Files, lookups: Lookups, *, hears_all: bool) -> None:
        self._us = us.id
        self._our_name = us.name
        self._files = files
        self._lookups = lookups
        self._hears_all = hears_all
        self._taken: Recent[bool] = Recent()

    async def read(self, event: Message) -> Incoming | None:
        """Return what an event tells; None when it is not for us to know.

        Raises:
            ChatError: Slack does not tell now whether it is for us: it must deliver the event again.
        """
        if event.subtype == "message_changed" and event.message is not None:
            return await self._changed(event.channel, event.message, event.previous_message or Message())
        if event.subtype == "message_deleted" and event.previous_message is not None:
            return await self._deleted(event.channel, event.previous_message)
        if event.subtype in _SAID and self._is_of_a_person(event) and not self._is_taken(event.channel, event):
            return await self._said(event.channel, event)
        return None

    def taken(self, event: Message, incoming: Incoming) -> None:
        """It was delivered: when Slack sends the same again, there is no need to fetch its files again."""
        if isinstance(incoming, Written) and incoming.is_for_us:
            for name in filter(None, (incoming.id, event.client_msg_id)):
                self._taken.put(f"{incoming.address.chat}:{name}", True)

    def _is_taken(self, channel: str, message: Message) -> bool:
        names = filter(None, (message.ts, message.client_msg_id))
        return any(self._taken.get(f"{channel}:{name}") for name in names)

    def _is_of_a_person(self, message: Message) -> bool:
        return bool(message.user) and not message.bot_id and message.user not in (self._us, _SLACKBOT)

    async def _said(self, channel: str, message: Message) -> Written:
        address = address_of(channel, message)
        is_for_us, quoted = await self._standing(channel, message)
        at = _time(message.ts)
        if not is_for_us and not self._hears_all:  # nobody will read it: nothing is asked or fetched for it
            return Written(message.ts, address, Author(message.user), message.text, is_for_us=False, at=at)
        author = Author(message.user, await self._lookups.name(message.user))
        text = await self._text(message.text)
        if address.thread:
            self._lookups.join(channel, address.thread)
        files = await self._files.take(message.files)
        shared = "\n".join(one.text for one in message.attachments if one.text and (one.is_share or one.is_msg_unfurl))
        return Written(
            message.ts,
            address,
            author,
            "\n".join(part for part in (text, *files.notes) if part),
            tuple(files.attachments),
            files.voice,
            is_for_us=is_for_us,
            quoted=await self._text(shared or quoted),
            at=at,
        )

    async def _changed(self, channel: str, new: Message, old: Message) -> Incoming | None:
        if new.subtype == "tombstone":  # the first message of a thread: deleted, but its place is kept
            return await self._deleted(channel, old)
        if not self._is_of_a_person(new) or new.text == old.text:
            return None
        is_for_us = self._hears_all or (await self._standing(channel, new))[0]
        if not is_for_us:
            return None
        if old.ts and not self._hears_all and not (await self._standing(channel, old))[0]:
            return await self._said(channel, new)  # now it names us: we hear it for the first time
        author = Author(new.user, await self._lookups.name(new.user))
        return Rewritten(new.ts, address_of(channel, new), author, await self._text(new.text), _time(new.edited.ts))

    async def _deleted(self, channel: str, old: Message) -> Removed | None:
        if not self._is_of_a_person(old) or not (self._hears_all or (await self._standing(channel, old))[0]):
            return None
        return Removed(old.ts, address_of(channel, old))

    async def _standing(self, channel: str, message: Message) -> tuple[bool, str]:
        """Tell whether a message is for us, and what it replies to if we have not heard that."""
        names_us = self._us in mentioned(message.text) or message.parent_user_id == self._us
        is_reply = message.thread_ts not in ("", message.ts)
        if not is_reply:
            return channel.startswith("D") or names_us, ""
        thread = await self._lookups.thread(channel, message.thread_ts)
        is_for_us = channel.startswith("D") or names_us or (thread is not None and thread.is_ours)
        if thread is None:
            if not is_for_us:
                raise ChatError("Slack does not tell whether a thread is one of ours.")
            return True, ""
        return is_for_us, "" if thread.is_ours and message.parent_user_id != self._us else thread.text

    async def _text(self, text: str) -> str:
        names = {person: await self._lookups.name(person) for person in set(mentioned(text)) - {self._us}}
        return plain(text, {**names, self._us: self._our_name}, self._us)


def _time(ts: str) -> float:
    return float(ts) if ts.replace(".", "", 1).isdigit() else 0.0


def _called(user: Any) -> str:
    match user:
        case {"profile": {"display_name": str(name)}} if name:
            return name
        case {"real_name": str(name)} if name:
            return name
        case {"name": str(name)}:
            return name
        case _:
            return ""
