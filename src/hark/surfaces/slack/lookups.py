"""What Slack's events only name: how people are called, and whether a thread is one of ours."""

import asyncio
from typing import Any, cast

from msgspec import Struct

from hark.protocol.chat import ChatError, ChatGone
from hark.surfaces.chat.recent_values import Recent
from hark.surfaces.slack.mrkdwn import mentioned
from hark.surfaces.slack.web_api import Forbidden, Web
from hark.surfaces.slack.wire_types import Message, read

LOOK_SECONDS = 2.0  # Slack waits three for its ack


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
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                answer = await self._web.ask("users.info", user=person)
        except (Forbidden, ChatGone):
            self._names.put(person, "")
            return ""
        except (ChatError, TimeoutError):
            return ""
        name = _called(answer.get("user"))
        self._names.put(person, name)
        return name

    async def thread(self, channel: str, ts: str) -> Thread | None:
        """Return what is known of a thread; None when Slack does not tell now."""
        known = self._threads.get(f"{channel}:{ts}")
        if known is not None:
            return known
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                answer = await self._web.ask("conversations.replies", channel=channel, ts=ts, limit=1)
        except (Forbidden, ChatGone):
            return Thread(is_ours=False)
        except (ChatError, TimeoutError):
            return None
        messages = cast("list[Any]", answer.get("messages") or [])
        root = read(messages[0], Message) if messages else None
        if root is None:
            return Thread(is_ours=False)
        is_ours = self._us in (root.user, *root.reply_users, *mentioned(root.text))
        thread = Thread(is_ours, root.text)
        self._threads.put(f"{channel}:{ts}", thread)
        return thread

    def join(self, channel: str, ts: str) -> None:
        """From now on we take part in this thread."""
        self._threads.put(f"{channel}:{ts}", Thread(is_ours=True))


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
