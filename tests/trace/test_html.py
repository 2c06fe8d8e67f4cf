"""The HTML page for a turn runs no scripts, loads no resources, and can be used with the keyboard."""

import re
from html.parser import HTMLParser

from hark.protocol.messages import UserMessage
from hark.protocol.records import TurnStarted
from hark.trace.from_journal import build_trace
from hark.trace.html import render_page
from hark.trace.turn_trace import TurnTrace
from tests.trace.example_journal import CHILD, SCRIPT, START_TIME, child_journal, example_journal

VOID_TAGS = ("meta", "rect", "path", "line", "br")


class ParsedPage(HTMLParser):
    """The page as a browser parses it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID_TAGS:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def count_tag(self, wanted: str) -> int:
        return sum(tag == wanted for tag, _ in self.tags)


def example_trace() -> TurnTrace:
    return build_trace(example_journal(), "demo.t2", {CHILD: child_journal()})


def test_page_runs_no_scripts_and_loads_no_resources() -> None:
    text = render_page("demo", [example_trace()])
    page = ParsedPage(text)
    assert page.count_tag("script") == page.count_tag("link") == page.count_tag("img") == page.count_tag("iframe") == 0
    assert not [name for _, given in page.tags for name in given if name.startswith("on") or name in ("src", "href")]
    assert re.findall(r"url\((?!#hatch\))|@import|https?:", text) == []
    assert "default-src 'none'" in text
    assert SCRIPT in page.text


def test_untrusted_text_cannot_inject_markup() -> None:
    malicious_text = "\"'><svg onload=alert(1)></details></section><!-- \x00\x1b \ud800"
    records = [TurnStarted(turn="demo.t1", messages=(UserMessage("m", malicious_text),), at=START_TIME)]
    page = ParsedPage(render_page(malicious_text, [build_trace(records, "demo.t1")]))
    assert not [given for _, given in page.tags if "onload" in given]
    page.text.encode()


def test_every_row_can_be_expanded_and_has_a_description() -> None:
    page = ParsedPage(render_page("demo", [example_trace()]))
    story = example_trace()
    rows = len(story.parts) + len(story.arrivals)
    assert page.count_tag("details") == page.count_tag("summary") == rows
    pictures = [given for tag, given in page.tags if tag == "svg" and given.get("role") == "img"]
    assert len(pictures) == rows + len(story.stopped_segments())
    assert page.count_tag("desc") == len(pictures)


def test_page_shows_turn_details_messages_children_and_the_interrupt() -> None:
    words = ParsedPage(render_page("demo", [example_trace()])).text
    for fact in (
        "interrupted by new message",
        "7,210 in (5,948 cached), 170 out",
        "$0.0312",
        "steered into step 2, after 3.45 s",
        "interrupted this turn, started t3",
        "There are 3 callers.",
        "waiting for approval of write",
        "12 ms after the interrupt",
        "Interrupted at 10.0 s",
    ):
        assert fact in words, fact


def test_several_turns_are_shown_on_one_page() -> None:
    page = ParsedPage(render_page("demo", [build_trace(example_journal(), f"demo.t{number}") for number in (1, 2, 3)]))
    assert page.count_tag("section") == 3
    assert [given["id"] for tag, given in page.tags if tag == "h2"] == ["demo.t1", "demo.t2", "demo.t3"]
