"""The picture of a turn is one page: nothing in it runs, nothing is fetched, everything can be reached by keys."""

import re
from html.parser import HTMLParser

from hark.protocol.messages import UserMessage
from hark.protocol.records import TurnStarted
from hark.trace.from_journal import story_of
from hark.trace.html import picture
from hark.trace.turn_trace import TurnTrace
from tests.trace.example_turn import AT, CHILD, SCRIPT, child, rich

EMPTY = ("meta", "rect", "path", "line", "br")


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def count(self, wanted: str) -> int:
        return sum(tag == wanted for tag, _ in self.tags)


def rich_story() -> TurnTrace:
    return story_of(rich(), "demo.t2", {CHILD: child()})


def test_it_is_a_whole_page_that_runs_and_fetches_nothing() -> None:
    text = picture("demo", [rich_story()])
    page = Page(text)
    assert page.count("script") == page.count("link") == page.count("img") == page.count("iframe") == 0
    assert not [name for _, given in page.tags for name in given if name.startswith("on") or name in ("src", "href")]
    assert re.findall(r"url\((?!#hatch\))|@import|https?:", text) == []
    assert "default-src 'none'" in text
    assert SCRIPT in page.words


def test_what_was_said_can_not_leave_its_place() -> None:
    evil = "\"'><svg onload=alert(1)></details></section><!-- \x00\x1b \ud800"
    records = [TurnStarted(turn="demo.t1", messages=(UserMessage("m", evil),), at=AT)]
    page = Page(picture(evil, [story_of(records, "demo.t1")]))
    assert not [given for _, given in page.tags if "onload" in given]
    page.words.encode()


def test_every_row_can_be_opened_and_tells_itself() -> None:
    page = Page(picture("demo", [rich_story()]))
    story = rich_story()
    rows = len(story.parts) + len(story.arrivals)
    assert page.count("details") == page.count("summary") == rows
    pictures = [given for tag, given in page.tags if tag == "svg" and given.get("role") == "img"]
    assert len(pictures) == rows + len(story.settling())
    assert page.count("desc") == len(pictures)


def test_it_has_the_facts_the_messages_the_children_and_the_interrupt() -> None:
    words = Page(picture("demo", [rich_story()])).words
    for fact in (
        "interrupted by new message",
        "7,210 in (5,948 cached), 170 out",
        "$0.0312",
        "steered into step 2, after 3.45 s",
        "interrupted this turn, started t3",
        "There are 3 callers.",
        "waits for a person: may write run?",
        "12 ms after the interrupt",
        "The interrupt fell at 10.0 s",
    ):
        assert fact in words, fact


def test_several_turns_stand_on_one_page() -> None:
    page = Page(picture("demo", [story_of(rich(), f"demo.t{number}") for number in (1, 2, 3)]))
    assert page.count("section") == 3
    assert [given["id"] for tag, given in page.tags if tag == "h2"] == ["demo.t1", "demo.t2", "demo.t3"]
