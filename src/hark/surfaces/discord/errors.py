"""Translate discord.py's errors to ChatError. Their texts never contain the token."""

import aiohttp
import discord

from hark.protocol.chat import ChatError, ChatGone
from hark.surfaces.chat.markup_fallback import MarkupRefused

MISSING_INTENT = (
    "Discord doesn't allow the bot to read messages. Turn on MESSAGE CONTENT INTENT for it at "
    "https://discord.com/developers/applications, under Bot."
)
CLOSE_MESSAGES = {
    4004: "Discord rejected the bot token. Check token_env or token in [surfaces.discord].",
    4010: "Discord rejected the shard configuration.",
    4011: "The bot is in too many servers for one connection.",
    4012: "Discord no longer supports this gateway version. Update discord.py.",
    4013: "Discord rejected the gateway intents.",
    4014: MISSING_INTENT,
}

# The errors of discord.py's requests and connections, except cancellation.
CLIENT_ERRORS = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError)


def translate_error(error: Exception) -> ChatError:
    """Return the ChatError for a discord.py error."""
    match error:
        case discord.RateLimited():
            return ChatError("Discord's rate limit was reached.", retry_after=error.retry_after)
        case discord.LoginFailure():
            return ChatError(CLOSE_MESSAGES[4004])
        case discord.PrivilegedIntentsRequired():
            return ChatError(MISSING_INTENT)
        case discord.ConnectionClosed():
            return ChatError(CLOSE_MESSAGES.get(error.code, f"Discord closed the connection with code {error.code}."))
        case discord.HTTPException():
            return _translate_http_error(error)
        case TimeoutError():
            return ChatError("Discord did not answer in time.")
        case _:
            return ChatError(f"Discord can't be reached: {type(error).__name__}.")


def _translate_http_error(error: discord.HTTPException) -> ChatError:
    text = f"Discord refused the request: {error.status}, {error.text or 'no reason given'}"[:300]
    if error.status == 429:
        return ChatError(text, retry_after=_parse_seconds(error.response.headers.get("Retry-After", "")))
    if error.status == 400 and error.code == 50035:
        return MarkupRefused(text)
    if error.status in (400, 403, 404, 413):
        return ChatGone(text)  # A retry would be refused again.
    return ChatError(text)


def _parse_seconds(text: str) -> float | None:
    try:
        return max(0.0, float(text))
    except ValueError:
        return None
