"""Every example of the CommonMark specification keeps its text and has valid markup on every platform."""

import pytest

from hark.protocol.chat import Button, OutgoingMessage
from hark.surfaces.discord.markup import to_discord_markdown
from hark.surfaces.matrix.outgoing import message_content
from hark.surfaces.slack.layout import make_layouts
from tests.fakes import slack_payloads
from tests.fakes.discord_payloads import find_fault
from tests.surfaces.chat.commonmark_examples import Example, load_examples
from tests.surfaces.chat.shown_text import RENDERERS, VisibleHtml, assert_contains, slack_text
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


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    found = load_examples() + EXTENSIONS
    assert len(found) > 650
    return found


def test_telegram_accepts_every_example_and_shows_its_text(examples: list[Example]) -> None:
    for example in examples:
        assert_contains(RENDERERS["telegram"](example.markdown), *example)


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
                    assert_contains(slack_text(shown), *example)


def test_discord_accepts_every_example_and_shows_its_text(examples: list[Example]) -> None:
    for example in examples:
        content = to_discord_markdown(example.markdown, 2000)
        assert find_fault({"content": content}, set()) is None
        assert_contains(content, *example)


def test_matrix_html_of_every_example_has_only_allowed_tags_and_its_text(examples: list[Example]) -> None:
    for example in examples:
        content = message_content(room_address("!a:b"), OutgoingMessage(example.markdown))
        html = VisibleHtml(content.get("formatted_body", ""))
        assert html.tags <= MATRIX_TAGS, example
        assert not html.open_tags, example
        if "formatted_body" in content:
            assert_contains(html.text, *example)
