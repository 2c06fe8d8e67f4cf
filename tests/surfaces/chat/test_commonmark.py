"""Every example of the CommonMark specification keeps its text and has valid markup on every platform."""

import re
from html import unescape

import pytest

from hark.protocol.chat import Button, OutgoingMessage
from hark.surfaces.chat.markdown import get_parser
from hark.surfaces.discord.markup import to_discord_markdown
from hark.surfaces.matrix.outgoing import message_content
from hark.surfaces.slack.layout import make_layouts
from hark.surfaces.telegram.markup import to_html
from tests.fakes import slack_payloads, telegram_markup
from tests.fakes.discord_payloads import find_fault
from tests.surfaces.chat.commonmark_examples import Example, VisibleHtml, load_examples
from tests.surfaces.matrix.matrix_fixture import room_address

EXTENSIONS = [
    Example("| a | b |\n|---|:-:|\n| `c` | **d** |\n| e |", "<table><tr><td>a b c d e</td></tr></table>"),
    Example("~~a~~ and ~b~", "<p><s>a</s> and ~b~</p>"),
    Example("- [ ] a\n- [x] b\n  - [X] *c*", "<ul><li>a</li><li>b<ul><li><em>c</em></li></ul></li></ul>"),
]
# The tags that the Matrix specification recommends to allow.
MATRIX_TAGS = {
    "del", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "p", "a", "ul", "ol", "sup", "sub", "li", "b", "i", "u",
    "strong", "em", "s", "code", "hr", "br", "div", "table", "thead", "tbody", "tr", "th", "td", "caption", "pre",
    "span", "img", "details", "summary",
}  # fmt: skip
SLACK_LINK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    found = load_examples() + EXTENSIONS
    assert len(found) > 650
    return found


def assert_contains(shown: str, example: Example) -> None:
    """Check that the example's visible characters are shown in their order. Markup may add others.

    The examples with raw HTML have another result here, because raw HTML is shown as text.
    """
    characters = iter(shown)
    html = get_parser().render(example.markdown) if "<" in example.markdown else example.html
    expected = [character for character in VisibleHtml(html).text if not character.isspace()]
    missing = [character for character in expected if character not in characters]
    assert not missing, (example, shown)


def test_telegram_accepts_every_example_and_shows_its_text(examples: list[Example]) -> None:
    for example in examples:
        assert_contains(telegram_markup.visible_text(to_html(example.markdown)), example)


def test_slack_accepts_every_example_and_shows_its_text(examples: list[Example]) -> None:
    for example in examples:
        for buttons in ((), (Button("Stop", "stop:1"),)):
            for number, make_layout in enumerate(make_layouts(OutgoingMessage(example.markdown, buttons))):
                layout = make_layout()
                if layout is None:
                    assert not VisibleHtml(example.html).text.strip(), example
                    continue
                slack_payloads.check_message({"text": layout.text, "blocks": layout.blocks})
                shown = slack_payloads.visible_text({"text": layout.text, "blocks": layout.blocks})
                if number == 0:  # The others are plain text.
                    shown = SLACK_LINK.sub(lambda link: link[2] or link[1], shown)
                    assert not re.search(r"<|(?<!\n)(?<!^)>", shown), (example, shown)
                    assert_contains(unescape(shown).replace("¦", "|").replace("ˋ", "`"), example)


def test_discord_accepts_every_example_and_shows_its_text(examples: list[Example]) -> None:
    for example in examples:
        content = to_discord_markdown(example.markdown, 2000)
        assert find_fault({"content": content}, set()) is None
        assert_contains(content, example)


def test_matrix_html_of_every_example_has_only_allowed_tags_and_its_text(examples: list[Example]) -> None:
    for example in examples:
        content = message_content(room_address("!a:b"), OutgoingMessage(example.markdown))
        html = VisibleHtml(content.get("formatted_body", ""))
        assert html.tags <= MATRIX_TAGS, example
        assert not html.open_tags, example
        if "formatted_body" in content:
            assert_contains(html.text, example)
