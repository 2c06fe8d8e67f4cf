"""Slack's words: what it sends, and what it takes of a message."""

import hashlib
import hmac
import json
import re
import time
from typing import Any, cast
from urllib.parse import urlencode

BOT_TOKEN = "xoxb-secret-bot-token"
APP_TOKEN = "xapp-secret-app-token"
BOT, BOT_ID, APP = "UBOT", "BBOT", "A1"
READS = ("users.info", "conversations.replies", "conversations.history", "files.info", "files.getUploadURLExternal")
METADATA_NAME = re.compile(r"[a-z][a-z0-9_]*")
Json = dict[str, Any]


class Refused(Exception):
    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


def check_message(given: Json) -> list[str]:
    """Return whom a message would ping.

    Raises:
        Refused: Slack would not take it.
    """
    text, blocks = str(given.get("text", "")), listed(given, "blocks")
    if not text.strip() and not blocks:
        raise Refused("no_text")
    if len(text) > 40_000:
        raise Refused("msg_too_long")
    if len(blocks) > 50:
        raise Refused("invalid_blocks")
    names = [element["action_id"] for block in blocks for element in listed(block, "elements")]
    if len(set(names)) != len(names):
        raise Refused("invalid_blocks")
    for block in blocks:
        _check_block(block)
    shown = text if not blocks else "".join(block.get("text", {}).get("text", "") for block in blocks)
    if len(shown) > 13_200:
        raise Refused("msg_blocks_too_long")
    return re.findall(r"<(?:!|@|#)[^>]*>", shown)


def _check_block(block: Json) -> None:
    if block["type"] == "section":
        if not 1 <= len(block["text"]["text"]) <= 3000 or block["text"]["type"] not in ("mrkdwn", "plain_text"):
            raise Refused("invalid_blocks")
    elif block["type"] == "actions":
        elements = block["elements"]
        if not 1 <= len(elements) <= 25:
            raise Refused("invalid_blocks")
        for element in elements:
            if element["type"] != "button" or element["text"]["type"] != "plain_text":
                raise Refused("invalid_blocks")
            if not 1 <= len(element["text"]["text"]) <= 75 or len(element["value"]) > 2000:
                raise Refused("invalid_blocks")
    else:
        raise Refused("invalid_blocks")


def listed(value: Json, name: str) -> list[Json]:
    return cast("list[Json]", value.get(name) or [])


def words(message: Json) -> str:
    sections = [str(block["text"]["text"]) for block in listed(message, "blocks") if block["type"] == "section"]
    return "\n".join(sections) if sections else message["text"]


def changed(channel: str, message: Json, old: Json) -> Json:
    return {
        "type": "message", "subtype": "message_changed", "hidden": True, "channel": channel,
        "ts": f"{time.time():.6f}", "message": dict(message), "previous_message": old, "channel_type": "im",
    }  # fmt: skip


def signed(secret: str, body: bytes, at: float | None = None) -> dict[str, str]:
    """Return the headers that Slack puts to a request."""
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


def as_form(payload: Json) -> bytes:
    """Return an interactive payload as HTTP has it."""
    return urlencode({"payload": json.dumps(payload)}).encode()
