"""The text of a message as users see it, for comparison with its Markdown source."""

import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser

from hark.surfaces.chat.markdown import get_parser
from hark.surfaces.discord.markup import to_discord_markdown
from hark.surfaces.matrix.outgoing import to_html as to_matrix_html
from hark.surfaces.slack.mrkdwn import to_mrkdwn
from hark.surfaces.telegram.markup import to_html
from tests.fakes import telegram_markup

_SLACK_LINK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


class VisibleHtml(HTMLParser):
    """The text that a browser shows for HTML, and the tags that it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: set[str] = set()
        self.open_tags: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "img":
            self.text += dict(attrs).get("alt") or ""
        if tag not in ("img", "br", "hr"):
            self.open_tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open_tags[-1:] == [tag]:
            self.open_tags.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


def slack_text(mrkdwn: str) -> str:
    """Return the text of Slack's markup.

    Raises:
        AssertionError: A character that starts a link or a mention is not escaped.
    """
    shown = _SLACK_LINK.sub(lambda link: link[2] or link[1], mrkdwn)
    assert "<" not in shown, mrkdwn
    return unescape(shown).replace("¦", "|").replace("ˋ", "`")


def _render_for_matrix(markdown: str) -> str:
    html = to_matrix_html(markdown)
    return VisibleHtml(html).text if html else markdown


RENDERERS: dict[str, Callable[[str], str]] = {
    "telegram": lambda markdown: telegram_markup.visible_text(to_html(markdown)),
    "slack": lambda markdown: slack_text(to_mrkdwn(markdown)),
    "discord": lambda markdown: to_discord_markdown(markdown, 10**9),
    "matrix": _render_for_matrix,
}


def assert_contains(shown: str, markdown: str, html: str = "") -> None:
    """Check that the visible characters of a Markdown text are shown in their order. Markup may add others.

    `html` is the expected HTML. The parser's is used for texts with raw HTML, which is shown as text here.
    """
    characters = iter(shown.replace("☐", "[ ]"))
    expected = VisibleHtml(html if html and "<" not in markdown else get_parser().render(markdown)).text
    missing = [character for character in expected if not character.isspace() and character not in characters]
    assert not missing, (markdown, shown)
