"""The model's Markdown as the HTML that Matrix clients show; nothing that it says becomes markup of its own."""

import re
from html import escape

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def plain(text: str) -> str:
    """Return text without what no homeserver takes and no one can see."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


class Markup:
    """Turns Markdown into HTML. Made once: the parser is dear to load."""

    def __init__(self) -> None:
        """HTML is shown as text, links are of safe kinds only, pictures are links: nothing is fetched by looking."""
        from markdown_it import MarkdownIt

        parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
        self._parser = parser.enable(["table", "strikethrough"]).disable("image")

    def html(self, text: str) -> str:
        """Return Markdown as HTML, or "" when it has no markup to show."""
        shown = self._parser.render(text).strip()
        bare = "<p>" + escape(text.strip()).replace("&#x27;", "'").replace("\n", "<br />\n") + "</p>"
        return "" if shown == bare else shown
