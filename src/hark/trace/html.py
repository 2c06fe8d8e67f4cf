"""Draws turns as one HTML file with SVG in it: it asks nothing of the network and runs no script."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template

from hark.text.clean import clean
from hark.text.columns import one_line
from hark.text.status_text import outcome_words
from hark.trace.turn_trace import (
    COMPACTION,
    MODEL,
    TOOL,
    WAITS,
    MessageArrival,
    Segment,
    TurnTrace,
    label,
    tick_words,
    ticks,
    time_words,
)

_PAGE = Path(__file__).with_name("page.html")
TICKS = 6
LEAST_PERCENT = 0.35
ONE_LINE_CHARACTERS = 80


def picture(title: str, stories: Sequence[TurnTrace]) -> str:
    """Return the page. All text in it is escaped, whatever a model or a tool has said.

    The page's policy is a second lock: even a mistake in escaping could neither run nor fetch anything.
    """
    turns = "\n".join(_turn(story) for story in stories)
    page = Template(_PAGE.read_text("utf-8"))
    return page.substitute(title=_text(title or "A session"), turns=turns)


def _turn(story: TurnTrace) -> str:
    """Return one turn: how it ended, what it took, its timeline, and what an interrupt cost."""
    name = _text(story.turn)
    began = datetime.fromtimestamp(story.began_at).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    rows = "\n".join(_rows(story))
    hint = f'<p class="hint">{why}</p>' if (why := story.how_measured()) else ""
    return f"""<section class="turn" aria-labelledby="{name}">
<header><h2 id="{name}">{name}</h2>
<span class="outcome {story.result}">{_text(outcome_words(story.outcome))}</span>
<time>{_text(began)}</time></header>
{hint}
<dl class="facts">{"".join(_facts(story))}</dl>
{_axis(story)}
<div class="rows">
{rows}
</div>
{_cost_of_interrupt(story)}
</section>"""


def _facts(story: TurnTrace) -> Iterator[str]:
    yield _fact("whole turn", time_words(story.total))
    yield from (_fact(name, words) for name, words in story.facts())
    if story.interrupted_at is not None:
        yield _fact("settled in", time_words(story.settle), "cut")


def _fact(name: str, value: str, look: str = "") -> str:
    return f'<div class="{look}"><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>'


def _axis(story: TurnTrace) -> str:
    marks = "".join(
        f'<span style="left:{_percent(tick, story):.2f}%">{_text(tick_words(tick))}</span>'
        for tick in ticks(story.total, TICKS)
    )
    return f'<div class="axis" aria-hidden="true"><div>{marks}</div></div>'


def _rows(story: TurnTrace) -> Iterator[str]:
    for row in story.rows():
        yield _part(row, story) if isinstance(row, Segment) else _message(row, story)


def _part(part: Segment, story: TurnTrace) -> str:
    colour = part.kind if part.kind in (MODEL, TOOL, *WAITS, COMPACTION) else "other"
    words = f"{label(part)}, from {time_words(part.start)} to {time_words(part.end)}"
    bar = _bar(part.start, part.end, story, f"{colour}{' bad' if part.is_bad and part.kind != TOOL else ''}")
    if part.first is not None and part.first > part.start:
        bar += _bar(part.start, part.first, story, "silent")
    if part.settle > 0:
        bar += _bar(part.end - part.settle, part.end, story, "settle")
    details = [("when", f"{time_words(part.start)} to {time_words(part.end)}"), *part.details]
    if part.settle > 0:
        details.insert(1, ("settled in", f"{time_words(part.settle)} after the interrupt"))
    name = part.name if part.kind != part.name else ""
    kind = "approval" if part.kind == "question" else part.kind
    summary = (
        f'<span class="name"><span class="kind {colour}">{_text(kind)}</span> <b>{_text(name)}</b>{_note(part)} '
        f'<span class="title">{_text(part.title)}</span></span>'
        f"{_svg(words, part.title, bar, story)}"
        f'<span class="took">{_text(time_words(part.took)) if part.took > 0 else "–"}</span>'
    )
    return _row(f"depth{min(part.depth, 3)}", summary, details)


def _note(part: Segment) -> str:
    return f' <span class="note{" bad" if part.is_bad else ""}">{_text(part.note)}</span>' if part.note else ""


def _message(arrival: MessageArrival, story: TurnTrace) -> str:
    x = _percent(arrival.at, story)
    # What became of it stands on the side that has more room.
    place = 'x="12"' if x < 50 else 'x="-12" text-anchor="end"'
    mark = (
        f'<svg x="{x:.2f}%" overflow="visible"><path class="message" d="M0 3 L6 9 L0 15 L-6 9 Z"/>'
        f'<text {place} y="13">{_text(arrival.became)}</text></svg>'
    )
    came = "at the start" if arrival.how == "prompt" else f"at {time_words(arrival.at)}"
    summary = (
        f'<span class="name"><span class="kind message">{_text(arrival.how)}</span> '
        f'<span class="title">{_text(one_line(arrival.text))}</span></span>'
        f"{_svg(f'{arrival.how} at {time_words(arrival.at)}', arrival.became, mark, story)}"
        f'<span class="took">{_text(came)}</span>'
    )
    return _row("said", summary, [("what became of it", arrival.became), ("text", arrival.text)])


def _row(look: str, summary: str, details: Sequence[tuple[str, str]]) -> str:
    """Return a row that opens on Enter or a tap, by the browser's own means."""
    listed = "".join(f"<dt>{_text(name)}</dt><dd>{_value(text)}</dd>" for name, text in details)
    return f'<details class="{look}"><summary>{summary}</summary><dl>{listed}</dl></details>'


def _value(text: str) -> str:
    is_long = "\n" in text or len(text) > ONE_LINE_CHARACTERS
    return f"<pre>{_text(text)}</pre>" if is_long else _text(text)


def _svg(title: str, description: str, content: str, story: TurnTrace) -> str:
    line = ""
    if story.interrupted_at is not None:
        x = _percent(story.interrupted_at, story)
        line = f'<line class="cut" x1="{x:.2f}%" x2="{x:.2f}%" y1="-4" y2="22"/>'
    return (
        f'<svg class="bar" height="18" role="img"><title>{_text(title)}</title><desc>{_text(description)}</desc>'
        f"{content}{line}</svg>"
    )


def _bar(start: float, end: float, story: TurnTrace, look: str) -> str:
    x = _percent(start, story)
    long = max(LEAST_PERCENT, _percent(end, story) - x)
    return f'<rect class="{look}" x="{min(x, 100 - long):.3f}%" width="{long:.3f}%" y="3" height="12" rx="2"/>'


def _percent(at: float, story: TurnTrace) -> float:
    return min(100.0, max(0.0, at / story.total * 100))


def _cost_of_interrupt(story: TurnTrace) -> str:
    """Return what happened between the interrupt and the end, on a scale of its own."""
    if story.interrupted_at is None:
        return ""
    zoomed = TurnTrace(story.turn, story.began_at, max(story.settle, 0.001), (), ())
    rows = "".join(
        f'<div class="cost"><span class="name">{_text(label(part))}</span>'
        f"{_svg(f'{part.name}: {time_words(part.settle)}', '', _bar(0, part.settle, zoomed, 'settle'), zoomed)}"
        f'<span class="took">{_text(time_words(part.settle))}</span></div>'
        for part in story.settling()
    )
    return f"""<div class="interrupt"><h3>The interrupt fell at {_text(time_words(story.interrupted_at))}
and the turn was over {_text(time_words(story.settle))} later</h3>
{rows or '<p class="hint">Nothing had to be ended.</p>'}</div>"""


def _text(text: str) -> str:
    """Return text that can stand in HTML, between tags and in quotes."""
    return escape(clean("".join(sign if sign.isprintable() or sign in "\n\t" else "�" for sign in text)), quote=True)
