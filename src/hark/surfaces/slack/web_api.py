"""Call Slack's Web API and translate its refusals and failures."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from hark.protocol.chat import ChatError, ChatGone
from hark.surfaces.chat.markup_fallback import MarkupRefused

REQUEST_SECONDS = 30
DEFAULT_RETRY_SECONDS = 30.0  # if Slack doesn't say how long to wait
DEFAULT_API_BASE = "https://slack.com/api/"
_GONE_CODES = frozenset({
    "channel_not_found", "is_archived", "not_in_channel", "message_not_found", "cant_update_message", "user_not_found",
    "edit_window_closed", "thread_not_found", "cannot_reply_to_message", "messages_tab_disabled", "restricted_action",
    "restricted_action_read_only_channel", "restricted_action_thread_only_channel", "restricted_action_thread_locked",
    "restricted_action_non_threadable_channel", "user_disabled", "cannot_dm_bot", "no_item_specified",
    "method_not_supported_for_channel_type", "is_inactive", "access_denied", "ekm_access_denied", "not_reactable",
    "team_access_not_granted", "enterprise_is_restricted", "cant_broadcast_message", "thread_locked",
    "slack_connect_file_link_sharing_blocked", "slack_connect_canvas_sharing_blocked",
})  # fmt: skip
_MARKUP_CODES = frozenset({
    "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "blocks_too_long", "msg_too_long",
    "invalid_arguments", "block_mismatch", "markdown_text_conflict", "no_text", "invalid_charset", "invalid_json",
})  # fmt: skip
_UNKNOWN_RESULT_CODES = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
_TOKEN_CODES = frozenset({"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"})
_SCOPE_CODES = frozenset({"missing_scope", "no_permission", "not_allowed_token_type"})


class MissingScope(ChatError):
    """The app lacks a permission. Retrying doesn't help until the app's owner grants it."""


class ResultUnknown(ChatError):
    """The connection was lost or Slack failed during a call, so it is unknown whether the call took effect."""


class SlackWebApi:
    """Slack's Web API with one token. Within `open_session`, calls share connections."""

    def __init__(self, token: str, api_base: str = "") -> None:
        # Slack's library logs URLs and bodies. Silence it; we log the errors ourselves.
        self.silent_logger = logging.getLogger("hark.surfaces.slack.library")
        self.silent_logger.setLevel(logging.CRITICAL + 1)
        base = api_base or DEFAULT_API_BASE
        # The library's retries would post a message twice if only the first answer was lost.
        self.client = AsyncWebClient(token, base, timeout=REQUEST_SECONDS, logger=self.silent_logger, retry_handlers=[])
        self._untyped = cast("Any", self.client)

    @asynccontextmanager
    async def open_session(self) -> AsyncGenerator[aiohttp.ClientSession]:
        """Share connections between calls until the context ends."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=10)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            self.client.session = session
            try:
                yield session
            finally:
                self.client.session = None

    async def post(self, method: str, **arguments: object) -> dict[str, Any]:
        """Call a method that changes something and return Slack's response. Arguments that are None are omitted.

        Raises:
            ChatGone: The chat or message doesn't exist, or the bot has no access to it.
            MarkupRefused: The message needs another layout.
            MissingScope: The app lacks a permission.
            ChatError: Slack refused the call or can't be reached. The call had no effect.
            ResultUnknown: It is unknown whether the call took effect.
        """
        return await self._call(method, json={name: value for name, value in arguments.items() if value is not None})

    async def get(self, method: str, **arguments: object) -> dict[str, Any]:
        """Call a method that reads something and return Slack's response.

        Raises:
            ChatError: The same errors as `post`.
        """
        return await self._call(method, http_verb="GET", params=arguments)

    async def new_socket_url(self, app_token: str) -> str:
        """Return the URL for a new Socket Mode connection.

        Raises:
            ChatError: Slack refused the call or can't be reached.
        """
        return str((await self._call("apps.connections.open", params={"token": app_token}))["url"])

    async def _call(self, method: str, **options: object) -> dict[str, Any]:
        try:
            answer = await self._untyped.api_call(method, **options)
        except SlackApiError as error:
            raise _translate_refusal(cast("Any", error).response) from None
        except aiohttp.ClientConnectorError as error:
            raise ChatError(f"Slack can't be reached: {error.strerror or type(error).__name__}.") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ResultUnknown(f"The connection to Slack was lost ({type(error).__name__}).") from None
        return answer.data


def _translate_refusal(response: Any) -> Exception:
    if not isinstance(response, AsyncSlackResponse):
        return ResultUnknown("Slack's answer could not be parsed.")
    untyped = cast("Any", response)
    status: int = untyped.status_code
    data: object = untyped.data
    answer = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    code = str(answer.get("error", ""))
    if status == 429 or code in ("ratelimited", "rate_limited"):
        return ChatError("Slack's rate limit was reached.", _retry_seconds(untyped.headers))
    if status >= 500 or code in _UNKNOWN_RESULT_CODES or not code:
        return ResultUnknown(f"Slack failed ({code or f'HTTP {status}'}).")
    if code in _GONE_CODES:
        return ChatGone(f"Slack refused the request: {code}.")
    if code in _MARKUP_CODES:
        return MarkupRefused(f"Slack refused the request: {code}.")
    if code in _TOKEN_CODES:
        return ChatError(f"Slack rejected the token ({code}). Set a valid one in [surfaces.slack].")
    if code in _SCOPE_CODES:
        needed = answer.get("needed") or "that it needs"
        return MissingScope(f"Slack refused the request: {code}. Give the app the scope {needed} and reinstall it.")
    return ChatError(f"Slack refused the request: {code}.")


def _retry_seconds(headers: Mapping[str, str]) -> float:
    """Return the number of seconds to wait before the next request, as requested by Slack."""
    lowercase = {name.lower(): value for name, value in headers.items()}
    try:
        return max(0.0, float(lowercase.get("retry-after", "")))
    except ValueError:
        return DEFAULT_RETRY_SECONDS
