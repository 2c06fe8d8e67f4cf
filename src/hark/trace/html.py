"""Renders turns as one HTML file with inline SVG. The file loads nothing from the network and runs no script."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template

from hark.text.cleanup import replace_surrogates
from hark.text.columns import to_one_line
from hark.text.status_text import describe_outcome
from hark.trace.turn_trace import (
    COMPACTION,
    MODEL,
    TOOL,
    WAITING_KINDS,
    MessageArrival,
    Segment,
    TurnTrace,
    axis_ticks,
    format_duration,
    format_tick,
    segment_label,
)

_PAGE = Path(__file__).with_name("page.html")
MAX_TICKS = 6
MIN_BAR_PERCENT = 0.35
MAX_INLINE_CHARACTERS = 80


def render_page(title: str, traces: Sequence[TurnTrace]) -> str:
    """Return the HTML page. All text is escaped, including text from models and tools.

    The page's content security policy is a second safeguard: even unescaped text could not run or load anything.
    """
    turns = "\n".join(_render_turn(story) for story in traces)
    page = Template(_PAGE.read_text("utf-8"))
    return page.substitute(title=_escape(title or "Session"), turns=turns)


def _render_turn(trace: TurnTrace) -> str:
    """Return the HTML section for one turn: its outcome, summary, timeline and interrupt."""
    name = _escape(trace.turn)
    began = datetime.fromtimestamp(trace.began_at).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    rows = "\n".join(_render_rows(trace))
    hint = f'<p class="hint">{note}</p>' if (note := trace.measurement_note()) else ""
    return f"""<section class="turn" aria-labelledby="{name}">
<header><h2 id="{name}">{name}</h2>
<span class="outcome {trace.outcome_kind}">{_escape(describe_outcome(trace.outcome))}</span>
<time>{_escape(began)}</time></header>
{hint}
<dl class="facts">{"".join(_render_facts(trace))}</dl>
{_render_axis(trace)}
<div class="rows">
{rows}
</div>
{_render_interrupt(trace)}
</section>"""


def _render_facts(trace: TurnTrace) -> Iterator[str]:
    yield _render_fact("total", format_duration(trace.total))
    yield from (_render_fact(name, words) for name, words in trace.facts())
    if trace.interrupted_at is not None:
        yield _render_fact("stopped in", format_duration(trace.settle), "cut")


def _render_fact(name: str, value: str, css_class: str = "") -> str:
    return f'<div class="{css_class}"><dt>{_escape(name)}</dt><dd>{_escape(value)}</dd></div>'


def _render_axis(trace: TurnTrace) -> str:
    marks = "".join(
        f'<span style="left:{_to_percent(tick, trace):.2f}%">{_escape(format_tick(tick))}</span>'
        for tick in axis_ticks(trace.total, MAX_TICKS)
    )
    return f'<div class="axis" aria-hidden="true"><div>{marks}</div></div>'


def _render_rows(trace: TurnTrace) -> Iterator[str]:
    for row in trace.rows():
        yield _render_segment(row, trace) if isinstance(row, Segment) else _render_message(row, trace)


def _render_segment(segment: Segment, trace: TurnTrace) -> str:
    colour = segment.kind if segment.kind in (MODEL, TOOL, *WAITING_KINDS, COMPACTION) else "other"
    description = f"{segment_label(segment)}, from {format_duration(segment.start)} to {format_duration(segment.end)}"
    css_class = f"{colour} bad" if segment.is_bad and segment.kind != TOOL else colour
    bar = _render_bar(segment.start, segment.end, trace, css_class)
    if segment.first is not None and segment.first > segment.start:
        bar += _render_bar(segment.start, segment.first, trace, "silent")
    if segment.settle > 0:
        bar += _render_bar(segment.end - segment.settle, segment.end, trace, "settle")
    details = [("when", f"{format_duration(segment.start)} to {format_duration(segment.end)}"), *segment.details]
    if segment.settle > 0:
        details.insert(1, ("stopped in", f"{format_duration(segment.settle)} after the interrupt"))
    name = segment.name if segment.kind != segment.name else ""
    kind = "approval" if segment.kind == "question" else segment.kind
    summary = (
        f'<span class="name"><span class="kind {colour}">{_escape(kind)}</span> <b>{_escape(name)}</b>'
        f'{_render_note(segment)} <span class="title">{_escape(segment.title)}</span></span>'
        f"{_render_svg(description, segment.title, bar, trace)}"
        f'<span class="took">{_escape(format_duration(segment.duration)) if segment.duration > 0 else "–"}</span>'
    )
    return _render_row(f"depth{min(segment.depth, 3)}", summary, details)


def _render_note(segment: Segment) -> str:
    css_class = "note bad" if segment.is_bad else "note"
    return f' <span class="{css_class}">{_escape(segment.note)}</span>' if segment.note else ""


def _render_message(arrival: MessageArrival, trace: TurnTrace) -> str:
    x = _to_percent(arrival.at, trace)
    # Put the message's outcome on the side with more room.
    text_position = 'x="12"' if x < 50 else 'x="-12" text-anchor="end"'
    mark = (
        f'<svg x="{x:.2f}%" overflow="visible"><path class="message" d="M0 3 L6 9 L0 15 L-6 9 Z"/>'
        f'<text {text_position} y="13">{_escape(arrival.became)}</text></svg>'
    )
    arrival_time = "at the start" if arrival.how == "prompt" else f"at {format_duration(arrival.at)}"
    summary = (
        f'<span class="name"><span class="kind message">{_escape(arrival.how)}</span> '
        f'<span class="title">{_escape(to_one_line(arrival.text))}</span></span>'
        f"{_render_svg(f'{arrival.how} at {format_duration(arrival.at)}', arrival.became, mark, trace)}"
        f'<span class="took">{_escape(arrival_time)}</span>'
    )
    return _render_row("said", summary, [("outcome", arrival.became), ("text", arrival.text)])


def _render_row(css_class: str, summary: str, details: Sequence[tuple[str, str]]) -> str:
    """Return a row that expands on Enter or a tap, using only HTML."""
    listed = "".join(f"<dt>{_escape(name)}</dt><dd>{_render_value(text)}</dd>" for name, text in details)
    return f'<details class="{css_class}"><summary>{summary}</summary><dl>{listed}</dl></details>'


def _render_value(text: str) -> str:
    is_long = "\n" in text or len(text) > MAX_INLINE_CHARACTERS
    return f"<pre>{_escape(text)}</pre>" if is_long else _escape(text)


def _render_svg(title: str, description: str, content: str, trace: TurnTrace) -> str:
    line = ""
    if trace.interrupted_at is not None:
        x = _to_percent(trace.interrupted_at, trace)
        line = f'<line class="cut" x1="{x:.2f}%" x2="{x:.2f}%" y1="-4" y2="22"/>'
    return (
        f'<svg class="bar" height="18" role="img"><title>{_escape(title)}</title><desc>{_escape(description)}</desc>'
        f"{content}{line}</svg>"
    )


def _render_bar(start: float, end: float, trace: TurnTrace, css_class: str) -> str:
    x = _to_percent(start, trace)
    width = max(MIN_BAR_PERCENT, _to_percent(end, trace) - x)
    return f'<rect class="{css_class}" x="{min(x, 100 - width):.3f}%" width="{width:.3f}%" y="3" height="12" rx="2"/>'


def _to_percent(time_ms: float, trace: TurnTrace) -> float:
    return min(100.0, max(0.0, time_ms / trace.total * 100))


def _render_interrupt(trace: TurnTrace) -> str:
    """Return a section about the time from the interrupt to the end of the turn, with a separate time scale."""
    if trace.interrupted_at is None:
        return ""
    zoomed = TurnTrace(trace.turn, trace.began_at, max(trace.settle, 0.001), (), ())
    rows = "".join(_render_stop(segment, zoomed) for segment in trace.stopped_segments())
    return f"""<div class="interrupt"><h3>Interrupted at {_escape(format_duration(trace.interrupted_at))};
the turn ended {_escape(format_duration(trace.settle))} later</h3>
{rows or '<p class="hint">No work had to be stopped.</p>'}</div>"""


def _render_stop(segment: Segment, zoomed: TurnTrace) -> str:
    """Return a row with the time that one segment took to stop. `zoomed` defines the time scale of the bar."""
    duration = format_duration(segment.settle)
    bar = _render_bar(0, segment.settle, zoomed, "settle")
    return (
        f'<div class="cost"><span class="name">{_escape(segment_label(segment))}</span>'
        f"{_render_svg(f'{segment.name}: {duration}', '', bar, zoomed)}"
        f'<span class="took">{_escape(duration)}</span></div>'
    )


def _escape(text: str) -> str:
    """Escape text for HTML content and quoted attributes."""
    printable = "".join(character if character.isprintable() or character in "\n\t" else "�" for character in text)
    return escape(replace_surrogates(printable), quote=True)
