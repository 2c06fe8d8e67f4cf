"""All Markdown writers share one parse tree. Each renders the same text in its platform's markup in bounded time."""

import random
import time
from collections.abc import Callable

import pytest

from hark.surfaces.chat.markdown import MAX_CHARACTERS
from hark.surfaces.discord.markup import to_discord_markdown as discord_text
from hark.surfaces.matrix.outgoing import to_html as matrix_html
from hark.surfaces.slack.mrkdwn import to_mrkdwn
from hark.surfaces.telegram.markup import to_html
from tests.linear_time import assert_linear
from tests.surfaces.chat.fuzz import check_random_text

WRITERS: dict[str, Callable[[str], str]] = {
    "telegram": to_html,
    "slack": to_mrkdwn,
    "discord": lambda text: discord_text(text, 10**9),
    "matrix": matrix_html,
}
HUGE = 100_000


@pytest.mark.parametrize(
    ("markdown", "telegram", "slack", "discord", "matrix"),
    [
        (
            "**a *b* ~~c~~**",
            "<b>a <i>b</i> <s>c</s></b>",
            "*a _b_ ~c~*",
            "**a *b* ~~c~~**",
            "<p><strong>a <em>b</em> <s>c</s></strong></p>",
        ),
        ("**a __b__**", "<b>a b</b>", "*a b*", "**a b**", "<p><strong>a <strong>b</strong></strong></p>"),
        ("\\*a\\* b\\_c", "*a* b_c", "*a* b_c", "\\*a\\* b_c", "<p>*a* b_c</p>"),
        ("&lt;b&gt; &amp;", "&lt;b&gt; &amp;", "&lt;b&gt; &amp;", "<b> &", "<p>&lt;b&gt; &amp;</p>"),
        ("`a*b`", "<code>a*b</code>", "`a*b`", "`a*b`", "<p><code>a*b</code></p>"),
        (
            "    a **b**",
            "<pre>a **b**</pre>",
            "```\na **b**\n```",
            "```\na **b**\n```",
            "<pre><code>a **b**\n</code></pre>",
        ),
        (
            "[**a**](https://b.c/d_(e))",
            '<a href="https://b.c/d_(e)"><b>a</b></a>',
            "<https://b.c/d_(e)|a>",
            "[**a**](<https://b.c/d_(e)>)",
            '<p><a href="https://b.c/d_(e)"><strong>a</strong></a></p>',
        ),
        (
            "[a][1]\n\n[1]: https://b.c",
            '<a href="https://b.c">a</a>',
            "<https://b.c|a>",
            "[a](https://b.c)",
            '<p><a href="https://b.c">a</a></p>',
        ),
        (
            "> a\n> - b\n>\n> c",
            "<blockquote>a\n• b\n\nc</blockquote>",
            "> a\n> • b\n>\n> c",
            "> a\n> - b\n> \n> c",
            "<blockquote>\n<p>a</p>\n<ul>\n<li>b</li>\n</ul>\n<p>c</p>\n</blockquote>",
        ),
        (
            "3. a\n   - [x] b\n\n4. c",
            "3. a\n   ☑ b\n\n4. c",
            "3. a\n  ☑ b\n\n4. c",
            "3. a\n  - ☑ b\n\n4. c",
            '<ol start="3">\n<li>\n<p>a</p>\n<ul>\n<li>[x] b</li>\n</ul>\n</li>\n<li>\n<p>c</p>\n</li>\n</ol>',
        ),
        ("Title\n===", "<b>Title</b>", "*Title*", "# Title", "<h1>Title</h1>"),
        ("a\\\nb", "a\nb", "a\nb", "a\nb", "<p>a<br />\nb</p>"),
    ],
)
def test_each_platform_gets_the_same_text_in_its_own_markup(
    markdown: str, telegram: str, slack: str, discord: str, matrix: str
) -> None:
    written = {name: write(markdown) for name, write in WRITERS.items()}
    assert written == {"telegram": telegram, "slack": slack, "discord": discord, "matrix": matrix}


@pytest.mark.parametrize("name", ["telegram", "slack", "discord"])
def test_too_deeply_nested_markdown_is_sent_as_plain_text_without_loss(name: str) -> None:
    for depth in (250, 5000):
        assert "innermost" in WRITERS[name]("*a " * depth + "innermost" + "*" * depth)
    assert "innermost" in WRITERS[name]("> " * 60 + "innermost")
    assert "innermost" in WRITERS[name]("\n".join("  " * depth + "- innermost" for depth in range(40)))


@pytest.mark.parametrize("name", WRITERS)
def test_markdown_beyond_the_size_limit_is_sent_as_plain_text(name: str) -> None:
    written = WRITERS[name]("**a** " * (MAX_CHARACTERS // 6 + 1))
    assert not any(mark in written for mark in ("<b>", "<strong>")), written[:100]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    "piece",
    [
        *("![", "[a](", "*a ", "a**b_", "`` ` ", "> ", "- a\n", "a|b\n-|-\n", "[a]: b\n", "<http:"),
        *(" ", "`", "😀", "_"),
    ],
)
def test_rendering_time_grows_linearly(name: str, piece: str) -> None:
    assert_linear(lambda size: "# w" + (piece * size)[:size], WRITERS[name], 250)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(("opening", "closing"), [("*a ", "*"), ("[", "](b)")])
def test_rendering_time_of_nested_markup_grows_linearly(name: str, opening: str, closing: str) -> None:
    assert_linear(lambda size: opening * size + closing * size, WRITERS[name], 50)


@pytest.mark.parametrize("name", WRITERS)
def test_rendering_time_is_bounded_for_very_long_texts(name: str) -> None:
    for text in ("![" * HUGE, "# Result" + " " * HUGE, "`" * HUGE, "*a " * HUGE):
        began = time.thread_time()
        WRITERS[name](text)
        assert time.thread_time() - began < 1.0, text[:20]


def test_random_markup_renders_on_every_platform_without_loss() -> None:
    chance = random.Random(12)
    for _ in range(500):
        check_random_text(chance)
