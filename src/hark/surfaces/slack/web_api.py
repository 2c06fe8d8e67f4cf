"""Slack's Web API: every refusal and failure is translated here, once."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from hark.protocol.chat import ChatError, ChatGone

SECONDS = 30
RATE_SECONDS = 30.0  # when Slack does not say for how long
SLACK = "https://slack.com/api/"
_GONE = frozenset({
    "channel_not_found", "is_archived", "not_in_channel", "message_not_found", "cant_update_message", "user_not_found",
    "edit_window_closed", "thread_not_found", "cannot_reply_to_message", "messages_tab_disabled", "restricted_action",
    "restricted_action_read_only_channel", "restricted_action_thread_only_channel", "restricted_action_thread_locked",
    "restricted_action_non_threadable_channel", "user_disabled", "cannot_dm_bot", "no_item_specified",
    "method_not_supported_for_channel_type", "is_inactive", "access_denied", "ekm_access_denied", "not_reactable",
    "team_access_not_granted", "enterprise_is_restricted", "cant_broadcast_message", "thread_locked",
    "slack_connect_file_link_sharing_blocked", "slack_connect_canvas_sharing_blocked",
})  # fmt: skip
_MARKUP = frozenset({
    "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "blocks_too_long", "msg_too_long",
    "invalid_arguments", "block_mismatch", "markdown_text_conflict",
})  # fmt: skip
_UNSURE = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
_TOKEN = frozenset({"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"})
_RIGHTS = frozenset({"missing_scope", "no_permission", "not_allowed_token_type"})


class MarkupRefused(ChatError):
    """Slack does not take the message in this shape."""


class Forbidden(ChatError):
    """The bot lacks a right; asking again is of no use until its owner gives it."""


class Unsure(ChatError):
    """The connection was lost, or Slack failed, in mid-call: it may have done it or not."""


class Web:
    """The Web API under one token. Calls may be made whether it is open or not; open, they share connections."""

    def __init__(self, token: str, api_base: str = "") -> None:
        # Slack's library tells its logger of addresses and bodies; what matters is told in our own words.
        self.silent = logging.getLogger("hark.surfaces.slack.library")
        self.silent.setLevel(logging.CRITICAL + 1)
        base = api_base or SLACK
        # Its retries would post a message twice when only the answer to the first was lost.
        self.client = AsyncWebClient(token, base, timeout=SECONDS, logger=self.silent, retry_handlers=[])
        self._untyped = cast("Any", self.client)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[aiohttp.ClientSession]:
        """Keep connections, until the end of the context."""
        timeout = aiohttp.ClientTimeout(total=SECONDS, sock_connect=10)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            self.client.session = session
            try:
                yield session
            finally:
                self.client.session = None

    async def change(self, method: str, **arguments: object) -> dict[str, Any]:
        """Have Slack do something; return its answer. An argument that is None is left out.

        Raises:
            ChatGone: There is no such chat or message, or it is closed to us.
            MarkupRefused: The message must be written otherwise.
            Forbidden: The bot lacks the right.
            ChatError: Slack refuses, or can't be reached: nothing was done.
            Unsure: It is not known whether it was done.
        """
        return await self._call(method, json={name: value for name, value in arguments.items() if value is not None})

    async def ask(self, method: str, **arguments: object) -> dict[str, Any]:
        """Ask Slack for something; return its answer.

        Raises:
            ChatError: As `change`.
        """
        return await self._call(method, http_verb="GET", params=arguments)

    async def open_socket(self, app_token: str) -> str:
        """Return the address for one connection of Socket Mode.

        Raises:
            ChatError: Slack refuses, or can't be reached.
        """
        return str((await self._call("apps.connections.open", params={"token": app_token}))["url"])

    async def _call(self, method: str, **how: object) -> dict[str, Any]:
        try:
            answer = await self._untyped.api_call(method, **how)
        except SlackApiError as error:
            raise _refusal(cast("Any", error).response) from None
        except aiohttp.ClientConnectorError as error:
            raise ChatError(f"Slack can't be reached: {error.strerror or type(error).__name__}.") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unsure(f"The connection to Slack was lost ({type(error).__name__}).") from None
        return answer.data


def _refusal(response: Any) -> Exception:
    if not isinstance(response, AsyncSlackResponse):
        return Unsure("Slack's answer can't be read.")
    told = cast("Any", response)
    status: int = told.status_code
    data: object = told.data
    answer = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    code = str(answer.get("error", ""))
    if status == 429 or code in ("ratelimited", "rate_limited"):
        return ChatError("Slack asks us to wait.", _seconds(told.headers))
    if status >= 500 or code in _UNSURE or not code:
        return Unsure(f"Slack failed ({code or f'HTTP {status}'}).")
    if code in _GONE:
        return ChatGone(f"Slack refuses: {code}.")
    if code in _MARKUP:
        return MarkupRefused(f"Slack refuses: {code}.")
    if code in _TOKEN:
        return ChatError(f"Slack refuses the token ({code}). Put a valid one into the settings.")
    if code in _RIGHTS:
        needed = answer.get("needed") or "that it needs"
        return Forbidden(f"Slack refuses: {code}. Give the app the right {needed}, and install it again.")
    return ChatError(f"Slack refuses: {code}.")


def _seconds(headers: Mapping[str, str]) -> float:
    """Return for how long Slack asks us to wait."""
    given = {name.lower(): value for name, value in headers.items()}
    try:
        return max(0.0, float(given.get("retry-after", "")))
    except ValueError:
        return RATE_SECONDS
