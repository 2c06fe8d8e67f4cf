"""Slack's Bolt app. Events are delivered in order within each chat before they are acknowledged."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast
from weakref import WeakValueDictionary

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from hark.protocol.chat import Author, Deliver, IncomingEvent
from hark.surfaces.slack.incoming import SlackEventReader, read_press
from hark.surfaces.slack.web_api import SlackWebApi
from hark.surfaces.slack.wire_types import ButtonPress, SlackMessage, parse_struct

_ANY = re.compile("")
LOG = logging.getLogger(__name__)


class EventDelivery:
    """Delivers Slack events. Each method returns once its event is stored or ignored; an error prevents the ack."""

    def __init__(self, reader: SlackEventReader, deliver: Deliver) -> None:
        self._reader = reader
        self._deliver = deliver
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def on_event(self, event: dict[str, Any]) -> None:
        """Deliver a message after the earlier messages in its chat, which may still be downloading files."""
        message = parse_struct(event, SlackMessage) if event.get("type") in ("message", "app_mention") else None
        if message is None:
            return
        async with self._locks.setdefault(message.channel, asyncio.Lock()):
            incoming = await self._reader.read(message)
            if incoming is not None:
                await self._deliver_and_log_errors(incoming)
                self._reader.mark_delivered(message, incoming)

    async def on_action(self, ack: Callable[[], Awaitable[Any]], body: dict[str, Any]) -> None:
        """Deliver a button press immediately."""
        press = parse_struct(body, ButtonPress)
        incoming = read_press(press) if press is not None else None
        if incoming is not None:
            await self._deliver_and_log_errors(incoming)
        await ack()

    async def _deliver_and_log_errors(self, incoming: IncomingEvent) -> None:
        try:
            await self._deliver(incoming)
        except Exception:  # The surface boundary: Bolt handles the error and sends no ack.
            LOG.exception("slack: event %s could not be stored; Slack will send it again", incoming.id)
            raise


def build_app(web: SlackWebApi, bot: Author, delivery: EventDelivery) -> AsyncApp:
    """Return a Bolt app that acknowledges a request only after successful delivery.

    The app calls `delivery` without awaiting anything first, so that requests are delivered in the order of arrival.
    """

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id=None, bot_user_id=bot.id)

    app = AsyncApp(
        name=web.silent_logger.name,  # Bolt sets the level of the logger with this name
        logger=web.silent_logger,
        client=AsyncWebClient(base_url=web.client.base_url, logger=web.silent_logger),  # without token: calls nothing
        authorize=authorize,
        process_before_response=True,
        request_verification_enabled=False,  # The hook has already verified the request, more strictly.
        ssl_check_enabled=False,
        ignoring_self_events_enabled=False,  # Our own edits and deletions are recognized by the author of the message.
        attaching_function_token_enabled=False,
        attaching_conversation_kwargs_enabled=False,
    )

    untyped_app = cast("Any", app)
    untyped_app.event(_ANY)(delivery.on_event)
    untyped_app.action(_ANY)(delivery.on_action)
    return app
