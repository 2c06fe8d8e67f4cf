"""Markdown as models write it, turned into Slack's mrkdwn."""

import re

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_ITEM = re.compile(r"^(\s*)[-*+]\s+(?:\[([ xX])\]\s+)?(.*)$")
_QUOTE = re.compile(r"^\s{0,3}>[\s>]*(.*)$")  # Slack has one depth of quotes
_RULE = re.compile(r"^\s{0,3}([-*_])(?:\s*\1){2,}\s*$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$")
_INLINE = re.compile(  # how far a mark may reach is bounded, so that no text takes long
    r"(?P<code>(?P<ticks>`+)(?P<inside>.{1,2000}?)(?<!`)(?P=ticks)(?!`))"
    r"|\\(?P<escaped>[\\`*_{}\[\]()#+\-.!~>|])"
    r"|!?\[(?P<label>[^\[\]]*)\]\((?P<url><[^<>]*>|(?:[^\s()]|\([^\s()]*\))+)(?:\s+\"[^\"]*\")?\)"
    r"|<(?P<auto>(?:https?://|mailto:)[^\s<>]+)>"
    r"|(?<![\w*])\*\*\*(?P<both>\S(?:.{0,500}?\S)?)\*\*\*(?![*])"
    r"|\*\*(?P<bold>\S(?:.{0,500}?\S)?)\*\*(?!\*)"
    r"|(?<!\w)__(?P<under>\S(?:.{0,500}?\S)?)__(?!\w)"
    r"|~~(?P<struck>\S(?:.{0,500}?\S)?)~~"
    r"|(?<![\w*])\*(?P<italic>[^\s*](?:[^*]*?[^\s*])?)\*(?![\w*])",
)
_GAP = "\u200b"  # Slack sees a mark only at a word's edge; this makes one that takes no room


def escape(text: str) -> str:
    """Return a text in which Slack finds no link, mention or ping."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mrkdwn(markdown: str) -> str:
    """Return the text as Slack shows it. Nothing in it can ping anybody; what is in code stays as it is."""
    found: list[str] = []
    lines = markdown.split("\n")
    place = 0
    while place < len(lines):
        fence = _FENCE.match(lines[place])
        if fence is not None:
            code, place = _code(lines, place + 1, fence[1])
            found += _fenced(code)
        elif _is_table(lines, place):
            rows, place = _table(lines, place)
            found += _fenced(rows)
        else:
            found.append(_line(lines[place]))
            place += 1
    return "\n".join(found)


def _code(lines: list[str], place: int, fence: str) -> tuple[list[str], int]:
    """Return the lines up to the fence's end, or to the text's, and where to go on."""
    code: list[str] = []
    while place < len(lines):
        end = _FENCE.match(lines[place])
        place += 1
        if end is not None and end[1].startswith(fence) and not end[2].strip():
            break
        code.append(lines[place - 1])
    return code, place


def _fenced(code: list[str]) -> list[str]:
    safe = [escape(line).replace("```", f"`{_GAP}`{_GAP}`") for line in code]
    return ["```", *safe, "```"]


def _is_table(lines: list[str], place: int) -> bool:
    return "|" in lines[place] and place + 1 < len(lines) and _TABLE_RULE.match(lines[place + 1]) is not None


def _table(lines: list[str], place: int) -> tuple[list[str], int]:
    """Return a table in columns of letters, and where to go on."""
    rows = [_cells(lines[place])]
    place += 2
    while place < len(lines) and "|" in lines[place]:
        rows.append(_cells(lines[place]))
        place += 1
    count = max(len(row) for row in rows)
    rows = [row + [""] * (count - len(row)) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(count)]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [shown[0], "  ".join("-" * width for width in widths), *shown[1:]], place


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    return [re.sub(r"\*\*|`", "", cell.strip().replace("\\|", "|")) for cell in cells]


def _line(line: str) -> str:
    if _RULE.match(line):
        return "———"
    if heading := _HEADING.match(line):
        words = re.sub(r"\*\*|__", "", heading[1])
        return f"*{_inline(words)}*" if words and "*" not in words and "`" not in words else _inline(words)
    if quote := _QUOTE.match(line):
        return f"> {_line(quote[1])}" if quote[1] else ">"
    if item := _ITEM.match(line):
        sign = "•" if item[2] is None else "☐" if item[2] == " " else "☑"
        return f"{item[1]}{sign} {_inline(item[3])}"
    return _inline(line)


def _inline(text: str) -> str:
    """Return a piece of one line, with its marks."""
    found: list[str] = []
    last = 0
    for match in _INLINE.finditer(text):
        found.append(escape(text[last : match.start()]))
        mark = _marked(match)
        if mark[:1] in "*_~" and match.lastgroup != "escaped":
            mark = _set_off(mark, text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1])
        found.append(mark)
        last = match.end()
    found.append(escape(text[last:]))
    return "".join(found)


def _marked(match: re.Match[str]) -> str:
    part = match.groupdict()
    if part["code"] is not None:
        return f"`{escape(part['inside'].strip() or part['inside'])}`"
    if part["escaped"] is not None:
        return escape(part["escaped"])
    if part["url"] is not None:
        return _link(part["url"].strip("<>"), part["label"])
    if part["auto"] is not None:
        return f"<{_address(part['auto'])}>"
    if part["both"] is not None:
        return f"*_{_inline(part['both'])}_*"
    if part["struck"] is not None:
        return f"~{_inline(part['struck'])}~"
    if part["italic"] is not None:
        return f"_{_inline(part['italic'])}_"
    return f"*{_inline(part['bold'] if part['bold'] is not None else part['under'])}*"


def _set_off(mark: str, before: str, behind: str) -> str:
    left = _GAP if before.isalnum() else ""
    right = _GAP if behind.isalnum() else ""
    return f"{left}{mark}{right}"


def _link(url: str, label: str) -> str:
    if not url.startswith(("https://", "http://", "mailto:")):
        return f"{escape(label)} ({escape(url)})" if label else escape(url)
    shown = escape(label.replace("|", "¦").replace("`", ""))
    return f"<{_address(url)}|{shown}>" if shown.strip() else f"<{_address(url)}>"


def _address(url: str) -> str:
    return url.replace("&", "&amp;").replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")
