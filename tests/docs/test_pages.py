"""The pages link to each other correctly, are listed on the start page, and begin with their purpose."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, links, pages

PAGES = {str(page.relative_to(ROOT)): page for page in pages()}


@pytest.mark.parametrize("name", PAGES)
def test_every_relative_link_leads_to_a_file_and_a_heading(name: str) -> None:
    page = PAGES[name]
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name} links to {path}, which does not exist"
        assert not anchor or anchor in anchors(target), f"{name} links to {path}#{anchor}: no such heading"


def test_the_start_page_links_to_every_page() -> None:
    linked = {(DOCS / path).resolve() for path, _ in links(DOCS / "README.md")}
    assert set(DOCS.glob("*.md")) - linked == {DOCS / "README.md"}


def test_the_list_of_decisions_links_to_every_decision() -> None:
    folder = DOCS / "decisions"
    linked = {(folder / path).resolve() for path, _ in links(folder / "README.md")}
    assert set(folder.glob("0*.md")) - linked == set()


@pytest.mark.parametrize("name", PAGES)
def test_every_page_begins_with_a_title_and_a_sentence(name: str) -> None:
    title, _, rest = PAGES[name].read_text().partition("\n")
    assert title.startswith("# ")
    paragraphs = [part for part in rest.split("\n\n") if part.strip() and not part.strip().startswith("<!--")]
    assert paragraphs[0].strip()[0] not in "#|`-!", f"{name} does not begin with a sentence"


def test_the_readme_has_fewer_than_150_lines() -> None:
    assert len(Path(ROOT / "README.md").read_text().splitlines()) < 150


@pytest.mark.parametrize("name", PAGES)
def test_every_python_file_that_a_page_names_exists(name: str) -> None:
    for path in re.findall(r"`((?:\w+/)+\w+\.py)`", PAGES[name].read_text()):
        assert (ROOT / path).exists() or (ROOT / "src" / "hark" / path).exists(), f"{name} names {path}"
