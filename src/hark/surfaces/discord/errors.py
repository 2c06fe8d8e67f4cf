"""Discord's errors, told once in the port's words; none of them holds a token."""

import aiohttp
import discord

from hark.protocol.chat import ChatError, ChatGone

INTENTS = (
    "Discord does not let the bot read messages. Turn on MESSAGE CONTENT INTENT for it at "
    "https://discord.com/developers/applications, under Bot."
)
CLOSINGS = {
    4004: "Discord refuses the bot token. Check token_env or token in [surfaces.discord].",
    4010: "Discord refuses the shard.",
    4011: "The bot is in too many servers for one connection.",
    4012: "Discord does not know this version of its gateway any more: update discord.py.",
    4013: "Discord refuses the intents.",
    4014: INTENTS,
}

# What can go wrong in a request or connection of discord.py, beside cancelling.
ERRORS = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError)


class MessageMalformed(ChatGone):
    """Discord refuses the form of a message; a plainer one may pass."""


def told(error: Exception) -> ChatError:
    """Return an error of discord.py as what it means to whoever sends or runs."""
    match error:
        case discord.RateLimited():
            return ChatError("Discord asks us to wait.", retry_after=error.retry_after)
        case discord.LoginFailure():
            return ChatError(CLOSINGS[4004])
        case discord.PrivilegedIntentsRequired():
            return ChatError(INTENTS)
        case discord.ConnectionClosed():
            return ChatError(CLOSINGS.get(error.code, f"Discord closed the connection with code {error.code}."))
        case discord.HTTPException():
            return _of_answer(error)
        case TimeoutError():
            return ChatError("Discord did not answer in time.")
        case _:
            return ChatError(f"Discord can't be reached: {type(error).__name__}.")


def _of_answer(error: discord.HTTPException) -> ChatError:
    text = f"Discord refuses: {error.status}, {error.text or 'without a reason'}"[:300]
    if error.status == 429:
        return ChatError(text, retry_after=_seconds(error.response.headers.get("Retry-After", "")))
    if error.status == 400 and error.code == 50035:
        return MessageMalformed(text)
    if error.status in (400, 403, 404):
        return ChatGone(text)  # the same again would be refused again
    return ChatError(text)


def _seconds(text: str) -> float | None:
    try:
        return max(0.0, float(text))
    except ValueError:
        return None
