"""Builds Discord's documented wire objects, and validates messages as Discord does."""

import time
from datetime import UTC, datetime
from typing import Any

BOT = "9000"
GUILD = "500"
GENERAL = "600"
THREAD = "700"
DIRECT = "800"
EPOCH_MS = 1420070400000
KNOWN_EMOJI = {"👀", "⚡", "⏳", "↪\ufe0f", "⏸\ufe0f", "🗑\ufe0f", "✅"}

Json = dict[str, Any]


def snowflake(number: int) -> str:
    return str((int(time.time() * 1000) - EPOCH_MS << 22) + number)


def now() -> str:
    return datetime.now(UTC).isoformat()


def user(name: str, number: str, *, is_bot: bool = False) -> Json:
    return {
        "id": number, "username": name.lower(), "discriminator": "0", "global_name": name, "bot": is_bot,
        "avatar": None,
    }  # fmt: skip


ANN = user("Ann", "1001")
BEN = user("Ben", "1002")
ROBOT = user("Hark", BOT, is_bot=True)


def application() -> Json:
    return {
        "id": "9001", "name": "Hark", "description": "", "icon": None, "bot_public": False, "flags": 1 << 18,
        "bot_require_code_grant": False, "owner": ANN, "verify_key": "ab", "summary": "", "team": None,
    }  # fmt: skip


def is_direct(channel_id: str) -> bool:
    """Return whether the channel is a direct chat: its id starts with the id of the first direct chat."""
    return channel_id.startswith(DIRECT)


def channel(number: str) -> Json:
    if is_direct(number):
        return {"id": number, "type": 1, "recipients": [ANN], "last_message_id": None}
    if number == THREAD:
        return {
            "id": THREAD, "type": 11, "guild_id": GUILD, "parent_id": GENERAL, "name": "a thread", "owner_id": "1001",
            "message_count": 1, "member_count": 1, "rate_limit_per_user": 0, "last_message_id": None, "flags": 0,
            "thread_metadata": {
                "archived": False, "auto_archive_duration": 1440, "archive_timestamp": now(), "locked": False,
            },
        }  # fmt: skip
    return {
        "id": number, "type": 0, "guild_id": GUILD, "name": "general", "position": 0, "permission_overwrites": [],
        "nsfw": False, "parent_id": None, "topic": None, "rate_limit_per_user": 0, "last_message_id": None,
    }  # fmt: skip


def role(number: str, name: str, bot: str = "") -> Json:
    return {
        "id": number, "name": name, "color": 0, "colors": {"primary_color": 0}, "hoist": False, "position": 1,
        "permissions": "0", "managed": bool(bot), "mentionable": False, "flags": 0,
        **({"tags": {"bot_id": bot}} if bot else {}),
    }  # fmt: skip


def guild() -> Json:
    return {
        "id": GUILD, "name": "Here", "icon": None, "splash": None, "owner_id": "1001", "afk_timeout": 300,
        "verification_level": 0, "default_message_notifications": 0, "explicit_content_filter": 0,
        "roles": [role(GUILD, "@everyone"), role("510", "Hark", BOT)], "emojis": [], "features": [], "mfa_level": 0,
        "system_channel_flags": 0, "premium_tier": 0, "preferred_locale": "en-US", "nsfw_level": 0, "stickers": [],
        "joined_at": now(), "large": False, "unavailable": False, "member_count": 3, "voice_states": [], "members": [],
        "channels": [channel(GENERAL)], "threads": [channel(THREAD)], "presences": [], "stage_instances": [],
        "guild_scheduled_events": [], "premium_progress_bar_enabled": False, "soundboard_sounds": [],
    }  # fmt: skip


def message(number: str, channel_id: str, author: Json, content: str, **more: Any) -> Json:
    """Return a message object. `more` overrides fields such as `mentions` and `attachments`."""
    plain: Json = {
        "id": number, "channel_id": channel_id, "author": author, "content": content, "timestamp": now(), "type": 0,
        "edited_timestamp": None, "tts": False, "mention_everyone": False, "mentions": [], "mention_roles": [],
        "attachments": [], "embeds": [], "pinned": False, "flags": 0, "components": [],
    }  # fmt: skip
    where = {} if is_direct(channel_id) else {"guild_id": GUILD, "member": member()}
    return {**plain, **where, **more}


def member() -> Json:
    return {"roles": [], "joined_at": now(), "deaf": False, "mute": False, "flags": 0, "nick": None, "avatar": None}


def error_body(code: int, text: str) -> Json:
    return {"code": code, "message": text}


def find_fault(body: Json, known: set[str]) -> Json | None:
    """Return Discord's error for an invalid message, or None if the message is valid."""
    content = body.get("content") or ""
    if not isinstance(content, str) or len(content) > 2000:
        return error_body(50035, "Invalid Form Body: content: Must be 2000 or fewer in length.")
    if not content.strip() and not body.get("attachments"):
        return error_body(50006, "Cannot send an empty message")
    if len(str(body.get("nonce", ""))) > 25:
        return error_body(50035, "Invalid Form Body: nonce: Must be 25 or fewer in length.")
    mentions: Json = body.get("allowed_mentions", {})
    if not set(mentions) <= {"parse", "users", "roles", "replied_user"}:
        return error_body(50035, "Invalid Form Body: allowed_mentions")
    reference: Json = body.get("message_reference", {"message_id": ""})
    is_lost = bool(reference["message_id"]) and reference["message_id"] not in known
    if is_lost and reference.get("fail_if_not_exists", True):
        return error_body(50035, "Invalid Form Body: message_reference: Unknown message")
    return _find_button_fault(body.get("components") or [])


def _find_button_fault(rows: list[Json]) -> Json | None:
    buttons = [button for row in rows for button in row["components"]]
    names = [button.get("custom_id", "") for button in buttons]
    is_right = (
        len(rows) <= 5
        and all(row["type"] == 1 and 1 <= len(row["components"]) <= 5 for row in rows)
        and all(button["type"] == 2 and button["style"] in (1, 2, 3, 4) for button in buttons)
        and all(1 <= len(button["label"]) <= 80 for button in buttons)
        and all(1 <= len(name) <= 100 for name in names)
        and len(set(names)) == len(names)
    )
    return None if is_right else error_body(50035, "Invalid Form Body: components")
