"""The Bolt app: Slack's requests, by whichever way they came, are heard before they are acknowledged."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from hark.protocol.chat import Author
from hark.surfaces.slack.web_api import Web
from hark.surfaces.slack.wire_types import Message, Press, read_message, read_press

_ANY = re.compile("")


def build_app(
    web: Web, us: Author, hear: Callable[[Message], Awaitable[None]], press: Callable[[Press], Awaitable[None]]
) -> AsyncApp:
    """Return an app that acknowledges a request only when it was heard; what it raises leaves it unacknowledged.

    It comes to `hear` without waiting for anything, so that requests are heard in the order of their arrival.
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

    async def on_event(event: dict[str, Any]) -> None:
        message = read_message(event) if event.get("type") in ("message", "app_mention") else None
        if message is not None:
            await hear(message)

    async def on_action(ack: Callable[[], Awaitable[Any]], body: dict[str, Any]) -> None:
        pressed = read_press(body)
        if pressed is not None:
            await press(pressed)
        await ack()

    listening = cast("Any", app)
    listening.event(_ANY)(on_event)
    listening.action(_ANY)(on_action)
    return app
