"""Replies that broke or slowed chat surfaces. Numbered words such as `w7x` show whether text was lost or repeated."""

import re

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
_WORD = re.compile(r"w(\d+)x")


def word_numbers(text: str) -> list[int]:
    """Return the numbers of the numbered words in a text."""
    return [int(number) for number in _WORD.findall(text)]


def _words(count: int, before: str = "", after: str = " ") -> str:
    return "".join(f"{before}w{number}x{after}" for number in range(count))


def _nested(count: int, before: str, after: str) -> str:
    return _words(count, before) + after * count


HOSTILE_REPLIES = {
    "nested emphasis": _nested(250, "*", "*"),
    "deeply nested emphasis": _nested(10_000, "*", "*"),
    "mixed nested emphasis": _nested(300, "**_~~", "~~_**"),
    "nested brackets": _nested(1000, "[", "](https://a.b)"),
    "nested images": _nested(1000, "![", "](x)"),
    "nested quotes": "\n".join(">" * depth + f" w{depth}x" for depth in range(120)),
    "nested lists": "\n".join("  " * depth + f"- w{depth}x" for depth in range(120)),
    "blanks in a heading": "# Result w0x" + " " * 3000 + "w1x",
    "a heading that ends in blanks": "# w0x" + " " * 3000 + "#" * 3000 + "\n\nw1x",
    "backtick runs": "".join(f"{'`' * number} w{number}x " for number in range(150)),
    "one-line fences": "\n".join(f"```python w{number}x```" for number in range(300)),
    "a long info string": f"```{'y' * 4000}\n{_words(300, after=chr(10))}```",
    "a long fence": f"{'`' * 4000}\n{_words(300, after=chr(10))}{'`' * 4000}",
    "a long code block": f"```python\n{_words(1000, '    print(1)  # ', chr(10))}```\n\nw1000x",
    "lines with emoji": _words(500, "line 😀😀😀😀 ", "\n"),
    "emoji sequences": _words(300, FAMILY * 5, FAMILY),
    "many combining marks": _words(2, "a" + "\u0301" * 3000, "\u0301" * 3000),
    "a wide table": f"|{_words(200, after='|')}\n{'|-' * 200}|",
    "a table that grows when aligned": f"a|b\n-|-\n{'y' * 1500}|w0x\n" + "".join(f"w{n}x|c\n" for n in range(1, 40)),
    "links that grow when shown": _words(200, "[a] ") + "\n\n[a]: ftp://" + "x" * 300,
    "tags and entities": _words(200, "<b></i><script>&amp;&#60;&lt; "),
    "control characters": _words(100, "\x00\x07\x1b[31m\x9c\u202e"),
    "unpaired surrogates": _words(100, "\ud83d"),
    "a text without spaces": "w0x" + "a" * 9000 + "w1x",
    "100 kB of brackets": _words(5000, "[![**_`a` ", " \n"),
    "mentions": _words(100, "@everyone <!channel> <@U1> "),
}
