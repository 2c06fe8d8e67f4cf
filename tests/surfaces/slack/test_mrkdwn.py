"""Markdown as Slack shows it, and what people wrote in Slack as plain text."""

import random

import pytest

from hark.surfaces.slack.mrkdwn import mrkdwn, plain

G = "\u200b"


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**bold** and *italic* and ***both*** and ~~gone~~", "*bold* and _italic_ and _*both*_ and ~gone~"),
        ("__bold__ _italic_ snake_case_name", "*bold* _italic_ snake_case_name"),
        ("un**bold**ed", f"un{G}*bold*{G}ed"),
        ("2 * 3 * 4 and a*b", "2 * 3 * 4 and a*b"),
        ("# Title", "*Title*"),
        ("## **Title** here ##", "*Title here*"),
        ("- one\n  * two\n1. three\n- [ ] open\n- [x] done", "• one\n  • two\n1. three\n☐ open\n☑ done"),
        ("> quoted **so**\n> \n> more", "> quoted *so*\n>\n> more"),
        ("> > deep", "> deep"),
        ("---", "———"),
        ("`a **b** <c>`", "`a **b** &lt;c&gt;`"),
        ("``a ` b``", "`a ` b`"),
        ("[site](https://a.b/x_(y)?q=1&r=2)", "<https://a.b/x_(y)?q=1&amp;r=2|site>"),
        ("![picture](https://a.b/c.png)", "<https://a.b/c.png|picture>"),
        ("<https://a.b/?x&y>", "<https://a.b/?x&amp;y>"),
        ("[x](javascript:alert)", "[x](javascript:alert)"),
        ("[x](notes.md)", "x (notes.md)"),
        ("[a|b>c](https://a.b/|x)", "<https://a.b/%7Cx|a¦b&gt;c>"),
        ("[**bold**](https://a.b)", "<https://a.b|bold>"),
        ("\\*not bold\\* 1 < 2 & 3 > 2", "*not bold* 1 &lt; 2 &amp; 3 &gt; 2"),
        ("<!channel> <@U1> <#C1> <!subteam^S1>", "&lt;!channel&gt; &lt;@U1&gt; &lt;#C1&gt; &lt;!subteam^S1&gt;"),
        ("```python\na = b**c**d # **x**\n```\n**after**", "```\na = b**c**d # **x**\n```\n*after*"),
        ("~~~\n``` & <\n~~~", f"```\n`{G}`{G}` &amp; &lt;\n```"),
        ("````\n```\ninner\n```\n````", f"```\n`{G}`{G}`\ninner\n`{G}`{G}`\n```"),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("a | b\n--|--\n1 | **2**\n\nend", "```\na │ b\n──┼──\n1 │ 2\n```\n\nend"),
        ("| name | n |\n|:---|---:|\n| x\\|y | 10 |", "```\nname │ n\n─────┼───\nx|y  │ 10\n```"),
        ("**two\nlines**", "*two*\n*lines*"),
        ("`` `code` ``", f"`{G}`code`{G}`"),
        ("this | is no table", "this | is no table"),
    ],
)
def test_markdown_becomes_mrkdwn(markdown: str, shown: str) -> None:
    assert mrkdwn(markdown) == shown


def test_random_marks_ping_nobody_and_every_code_block_is_closed() -> None:
    pieces = (
        "<",
        ">",
        "&",
        "!channel",
        "@U1",
        "*",
        "**",
        "_",
        "~~",
        "`",
        "``",
        "```",
        "\n",
        "[",
        "](",
        ")",
        "|",
        "#",
        "a ",
    )
    chance = random.Random(7)
    for _ in range(3000):
        text = "".join(chance.choices(pieces, k=chance.randint(1, 40)))
        shown = mrkdwn(text)
        assert "<!" not in shown, text
        assert "<@" not in shown, text
        fences = [line for line in shown.split("\n") if line.lstrip("> •") == "```"]
        assert len(fences) % 2 == 0, text
        assert shown.count("```") == len(fences), text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<@UBOT> do it", "do it"),
        ("<@UBOT>: do <@UBOT|hark> it", "do @hark it"),
        ("<@U2> and <@U3|carl> and <@U4>", "@Bea and @carl and @U4"),
        ("<#C1|general> <#C2> <!here> <!subteam^S1|@team>", "#general #C2 @here @team"),
        ("<https://a.b|https://a.b> <https://a.b/c|c> <mailto:x@y.z|x@y.z>", "https://a.b c (https://a.b/c) x@y.z"),
        ("&lt;@U2&gt; &amp;amp; x", "<@U2> &amp; x"),
    ],
)
def test_slacks_text_becomes_plain(written: str, read: str) -> None:
    assert plain(written, {"U2": "Bea", "UBOT": "hark"}, "UBOT") == read
