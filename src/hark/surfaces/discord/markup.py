"""Text as Discord shows it, and as people wrote it: what its Markdown lacks, and what its mentions mean."""

import re
from collections.abc import Mapping

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^#{4,6}\s+(.*?)\s*#*$")
_RULE = re.compile(r"^\s*([-*_])(\s*\1){2,}\s*$")
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\((\S+?)\)")
_TASK = re.compile(r"^(\s*[-*+]\s+)\[([ xX])\]\s")
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_MENTION = re.compile(r"<(@!?|@&|#)(\d+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


def shown(text: str, characters: int) -> str:
    """Return the model's Markdown as Discord shows it best; code is left as it is. It is never longer than allowed."""
    lines: list[str] = []
    fence = ""
    is_table = False
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        is_row = not fence and mark is None and _ROW.match(line) is not None
        if is_row != is_table:
            lines.append("```")  # Discord has no tables: in a fence their columns stay in line
            is_table = is_row
        lines.append(line if fence or mark is not None or is_row else _line(line))
    if is_table:
        lines.append("```")
    new = "\n".join(lines)
    new = new if len(new) <= characters else text
    if not new.strip():
        return "…"  # Discord takes no empty message
    return new if len(new) <= characters else new[: characters - 1] + "…"


def _line(line: str) -> str:
    if (heading := _HEADING.match(line)) is not None:
        return f"**{heading[1]}**" if heading[1] else ""
    if _RULE.match(line):
        return "──────────"
    line = _TASK.sub(lambda task: f"{task[1]}{'☐' if task[2] == ' ' else '☑'} ", line)
    return _IMAGE.sub(r"[\1](\2)", line) if "`" not in line else line


def readable(text: str, names: Mapping[str, str], me: str) -> str:
    """Return what a person wrote, with names in the place of ids; naming us at the beginning is no part of it."""

    def name(mention: re.Match[str]) -> str:
        sign, number = mention[1].rstrip("!&"), mention[2]
        if number == me:
            return "" if not text[: mention.start()].strip() else f"{sign}{names.get(number, 'you')}"
        return f"{sign}{names[number]}" if number in names else mention[0]

    return _EMOJI.sub(r"\1", _MENTION.sub(name, text)).strip()
