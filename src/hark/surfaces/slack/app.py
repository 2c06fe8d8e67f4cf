"""The Bolt app: events are delivered, in the order of their chat, before they are acknowledged."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast
from weakref import WeakValueDictionary

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from hark.protocol.chat import Author, Deliver, Incoming
from hark.surfaces.slack.incoming import SlackEventReader, pressed
from hark.surfaces.slack.web_api import Web
from hark.surfaces.slack.wire_types import Message, Press, read

_ANY = re.compile("")
LOG = logging.getLogger(__name__)


class EventDelivery:
    """Delivers. When a method returns, what it was given is durable, or not for us; what it raises is not acked."""

    def __init__(self, intake: SlackEventReader, deliver: Deliver) -> None:
        self._intake = intake
        self._deliver = deliver
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def on_event(self, event: dict[str, Any]) -> None:
        """Deliver a message, behind those that came before it in its chat: they may have files to be fetched."""
        message = read(event, Message) if event.get("type") in ("message", "app_mention") else None
        if message is None:
            return
        async with self._locks.setdefault(message.channel, asyncio.Lock()):
            incoming = await self._intake.read(message)
            if incoming is not None:
                await self._pass_on(incoming)
                self._intake.taken(message, incoming)

    async def on_action(self, ack: Callable[[], Awaitable[Any]], body: dict[str, Any]) -> None:
        """Deliver the press of a button, at once."""
        press = read(body, Press)
        incoming = pressed(press) if press is not None else None
        if incoming is not None:
            await self._pass_on(incoming)
        await ack()

    async def _pass_on(self, incoming: Incoming) -> None:
        try:
            await self._deliver(incoming)
        except Exception:  # the surface's boundary: Bolt takes it from here, and sends no ack
            LOG.exception("slack: %s was not kept; Slack will send it again", incoming.id)
            raise


def build_app(web: Web, us: Author, delivery: EventDelivery) -> AsyncApp:
    """Return an app that acknowledges a request only when it was delivered; what it raises leaves it unacknowledged.

    It comes to `delivery` without waiting for anything, so that requests are delivered in the order of their arrival.
    """

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id=None, bot_user_id=us.id)

    app = AsyncApp(
        name=web.silent.name,  # Bolt sets the level of the logger with this name
        logger=web.silent,
        client=AsyncWebClient(base_url=web.client.base_url, logger=web.silent),  # without the token: it calls nothing
        authorize=authorize,
        process_before_response=True,
        request_verification_enabled=False,  # the route has checked it, and more strictly
        ssl_check_enabled=False,
        ignoring_self_events_enabled=False,  # deletions and edits by ourselves are told apart by whose message it is
        attaching_function_token_enabled=False,
        attaching_conversation_kwargs_enabled=False,
    )

    listening = cast("Any", app)
    listening.event(_ANY)(delivery.on_event)
    listening.action(_ANY)(delivery.on_action)
    return app
