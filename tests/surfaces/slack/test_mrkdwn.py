"""Markdown is converted to Slack's mrkdwn, and message texts from Slack are converted to plain text."""

import random

import pytest

from hark.surfaces.slack.mrkdwn import to_mrkdwn, to_plain_text

ZERO_WIDTH_SPACE = "\u200b"


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**bold** and *italic* and ***both*** and ~~gone~~", "*bold* and _italic_ and _*both*_ and ~gone~"),
        ("__bold__ _italic_ snake_case_name", "*bold* _italic_ snake_case_name"),
        ("un**bold**ed", f"un{ZERO_WIDTH_SPACE}*bold*{ZERO_WIDTH_SPACE}ed"),
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
        ("~~~\n``` & <\n~~~", f"```\n`{ZERO_WIDTH_SPACE}`{ZERO_WIDTH_SPACE}` &amp; &lt;\n```"),
        (
            "````\n```\ninner\n```\n````",
            f"```\n`{ZERO_WIDTH_SPACE}`{ZERO_WIDTH_SPACE}`\ninner\n`{ZERO_WIDTH_SPACE}`{ZERO_WIDTH_SPACE}`\n```",
        ),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("a | b\n--|--\n1 | **2**\n\nend", "```\na │ b\n──┼──\n1 │ 2\n```\n\nend"),
        ("| name | n |\n|:---|---:|\n| x\\|y | 10 |", "```\nname │ n\n─────┼───\nx|y  │ 10\n```"),
        ("**two\nlines**", "*two*\n*lines*"),
        ("`` `code` ``", f"`{ZERO_WIDTH_SPACE}`code`{ZERO_WIDTH_SPACE}`"),
        ("this | isn't a table", "this | isn't a table"),
    ],
)
def test_markdown_is_converted_to_mrkdwn(markdown: str, shown: str) -> None:
    assert to_mrkdwn(markdown) == shown


def test_random_markup_pings_no_user_and_closes_every_code_block() -> None:
    fragments = (
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
        text = "".join(chance.choices(fragments, k=chance.randint(1, 40)))
        converted = to_mrkdwn(text)
        assert "<!" not in converted, text
        assert "<@" not in converted, text
        fences = [line for line in converted.split("\n") if line.lstrip("> •") == "```"]
        assert len(fences) % 2 == 0, text
        assert converted.count("```") == len(fences), text


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
def test_slack_text_is_converted_to_plain_text(written: str, read: str) -> None:
    assert to_plain_text(written, {"U2": "Bea", "UBOT": "hark"}, "UBOT") == read
