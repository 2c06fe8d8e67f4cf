"""Markdown as the HTML that Matrix clients show. HTML in the text itself is shown as text."""

import re
from html import escape
from typing import Any

from hark.surfaces.chat.markdown import WEB_SCHEMES, parse, parser

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def plain(text: str) -> str:
    """Return text without what no homeserver takes and no one can see."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


class Markup:
    """Turns Markdown into HTML."""

    def __init__(self) -> None:
        self._parser = parser()
        self._parser.add_render_rule("image", _image)

    def html(self, text: str) -> str:
        """Return Markdown as HTML, or "" when it has no markup to show or can't be rendered."""
        tokens = parse(text)
        shown = self._parser.renderer.render(tokens, self._parser.options, {}).strip() if tokens is not None else ""
        bare = "<p>" + escape(text.strip()).replace("&#x27;", "'").replace("\n", "<br />\n") + "</p>"
        return "" if shown == bare else shown


def _image(renderer: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    """Write an image as a link: nothing is fetched by looking at a message."""
    url, label = str(tokens[place].attrs["src"]), escape(tokens[place].content)
    return f'<a href="{escape(url)}">{label or escape(url)}</a>' if url.lower().startswith(WEB_SCHEMES) else label
