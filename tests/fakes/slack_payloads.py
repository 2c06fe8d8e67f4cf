"""Builds Slack's payloads, and checks messages as Slack does."""

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
READ_METHODS = (
    "users.info",
    "conversations.replies",
    "conversations.history",
    "files.info",
    "files.getUploadURLExternal",
)
METADATA_NAME = re.compile(r"[a-z][a-z0-9_]*")
Json = dict[str, Any]


class SlackRefusal(Exception):
    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


def check_message(arguments: Json) -> list[str]:
    """Check a message as Slack does, and return the mentions that would ping a user.

    Raises:
        SlackRefusal: Slack would refuse the message.
    """
    text, blocks = str(arguments.get("text", "")), list_field(arguments, "blocks")
    if not text.strip() and not blocks:
        raise SlackRefusal("no_text")
    if _length(text) > 40_000:
        raise SlackRefusal("msg_too_long")
    if len(blocks) > 50:
        raise SlackRefusal("invalid_blocks")
    names = [element["action_id"] for block in blocks for element in list_field(block, "elements")]
    if len(set(names)) != len(names):
        raise SlackRefusal("invalid_blocks")
    for block in blocks:
        _check_block(block)
    shown = text if not blocks else "".join(block.get("text", {}).get("text", "") for block in blocks)
    if _length(shown) > 13_200:
        raise SlackRefusal("msg_blocks_too_long")
    return re.findall(r"<(?:!|@|#)[^>]*>", shown)


def _length(text: str) -> int:
    """Return the length in UTF-16 code units, because Slack does not document its unit."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _check_block(block: Json) -> None:
    if block["type"] == "section":
        if not 1 <= _length(block["text"]["text"]) <= 3000 or block["text"]["type"] not in ("mrkdwn", "plain_text"):
            raise SlackRefusal("invalid_blocks")
    elif block["type"] == "actions":
        elements = block["elements"]
        if not 1 <= len(elements) <= 25:
            raise SlackRefusal("invalid_blocks")
        for element in elements:
            if element["type"] != "button" or element["text"]["type"] != "plain_text":
                raise SlackRefusal("invalid_blocks")
            if not 1 <= len(element["text"]["text"]) <= 75 or len(element["value"]) > 2000:
                raise SlackRefusal("invalid_blocks")
    else:
        raise SlackRefusal("invalid_blocks")


def list_field(value: Json, name: str) -> list[Json]:
    return cast("list[Json]", value.get(name) or [])


def visible_text(message: Json) -> str:
    sections = [str(block["text"]["text"]) for block in list_field(message, "blocks") if block["type"] == "section"]
    return "\n".join(sections) if sections else message["text"]


def message_changed(channel: str, message: Json, old: Json) -> Json:
    return {
        "type": "message", "subtype": "message_changed", "hidden": True, "channel": channel,
        "ts": f"{time.time():.6f}", "message": dict(message), "previous_message": old, "channel_type": "im",
    }  # fmt: skip


def signature_headers(secret: str, body: bytes, at: float | None = None) -> dict[str, str]:
    """Return Slack's signature headers for a request."""
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


def as_form(payload: Json) -> bytes:
    """Return an interactive payload as the form-encoded body of an HTTP request."""
    return urlencode({"payload": json.dumps(payload)}).encode()
