"""Reads the documentation: its pages, code blocks and links."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def pages() -> list[Path]:
    """Return every Markdown page in the project."""
    return sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def code_blocks(page: Path, language: str) -> list[str]:
    """Return a page's code blocks in the given language."""
    return [code for name, code in _FENCE.findall(page.read_text()) if name == language]


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Yield a page's relative links as (path, anchor). The path is empty for a link within the page."""
    for target in _LINK.findall(_FENCE.sub("", page.read_text())):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(page: Path) -> set[str]:
    """Return the anchors for a page's headings, as GitHub generates them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(page.read_text())}
