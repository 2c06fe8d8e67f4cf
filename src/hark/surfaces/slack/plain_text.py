"""What people wrote in Slack, as plain text."""

import re
from collections.abc import Mapping

_ENTITY = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")
MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")


def mentioned(text: str) -> list[str]:
    """Return the ids of the people whom a text names."""
    return MENTION.findall(text)


def plain(text: str, names: Mapping[str, str], us: str) -> str:
    """Return the text as people read it: people by name, links by address, and without our own name before it."""
    text = re.sub(rf"^\s*<@{re.escape(us)}(?:\|[^<>]*)?>[\s:,]*", "", text) if us else text
    shown = _ENTITY.sub(lambda match: _shown(match[1], match[2] or "", names), text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _shown(what: str, label: str, names: Mapping[str, str]) -> str:
    if what.startswith("@"):
        return f"@{names.get(what[1:]) or label or what[1:]}"
    if what.startswith("#"):
        return f"#{label or what[1:]}"
    if what.startswith("!"):
        return label or f"@{what[1:].partition('^')[0]}"
    address = what.removeprefix("mailto:").removeprefix("tel:")
    return address if label in ("", address, what) else f"{label} ({address})"
