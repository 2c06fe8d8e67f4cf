"""Renders turns as text: the timeline of one turn with its interrupt, or a list of all turns with bars."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from hark.protocol.records import AnyRecord
from hark.text.columns import (
    BOLD,
    CYAN,
    DIM,
    RED,
    TerminalStyle,
    display_width,
    fit_to_columns,
    to_one_line,
    truncate,
    wrap_to_columns,
)
from hark.text.status_text import describe_outcome
from hark.trace.from_journal import Journals, build_trace, find_turn, turn_names
from hark.trace.turn_trace import (
    COMPACTION,
    MODEL,
    PAUSE,
    QUESTION,
    SNAPSHOT,
    TOOL,
    WAITING_KINDS,
    MessageArrival,
    Segment,
    TurnTrace,
    axis_ticks,
    format_duration,
    format_stop_time,
    format_tick,
    segment_label,
)

COLOURS = {MODEL: "34", TOOL: "32", QUESTION: "35", PAUSE: "33", SNAPSHOT: CYAN, COMPACTION: CYAN}
RESULT_COLOURS = {"runs": BOLD, "good": COLOURS[TOOL], "wrong": RED, "cut": COLOURS[PAUSE]}
TIME_COLUMNS = 8
OUTCOME_COLUMNS = 11
TICK_COLUMNS = 8
MIN_TEXT_COLUMNS = 8
_Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters used to draw bars. A bar must be readable without colours."""

    model: str = "█"
    tool: str = "▓"
    wait: str = "▒"
    other: str = "░"
    settle: str = "▞"
    message: str = "◆"
    interrupt: str = "▲"
    line: str = "╎"
    between: str = " · "

    def for_kind(self, kind: str) -> str:
        """Return the character for a kind of segment."""
        return {MODEL: self.model, COMPACTION: self.model, TOOL: self.tool}.get(kind, self.wait)


_ASCII_GLYPHS = Glyphs("#", "=", "-", ".", "x", "*", "^", "!", "; ")


def glyphs_for(style: TerminalStyle) -> Glyphs:
    """Return the characters that the terminal can show."""
    return Glyphs() if style.has_unicode else _ASCII_GLYPHS


def render_turn_list(records: Sequence[AnyRecord], style: TerminalStyle = TerminalStyle()) -> str:  # noqa: B008
    """Return a line for each turn: its outcome, its duration, a bar divided by activity, and the prompt."""
    traces = [build_trace(records, turn) for turn in turn_names(records)]
    if not traces:
        return "No turn has run in this session yet."
    glyphs, numbers = glyphs_for(style), max(display_width(story.number) for story in traces)
    columns = style.columns - numbers - TIME_COLUMNS - OUTCOME_COLUMNS - 4
    longest = max(story.total for story in traces)
    lines: list[str] = []
    for trace in traces:
        outcome = "running" if trace.outcome is None else describe_outcome(trace.outcome).split()[0].rstrip(":")
        painted = style.paint(fit_to_columns(outcome, OUTCOME_COLUMNS), RESULT_COLOURS[trace.outcome_kind])
        took, bar = f"{format_duration(trace.total):>{TIME_COLUMNS}}", _turn_bar(trace, longest, columns // 2, style)
        number, prompt = fit_to_columns(trace.number, numbers), truncate(trace.prompt, columns - columns // 2)
        lines.append(f"{number} {painted} {took} {bar} {prompt}".rstrip())
    cost = sum(story.cost or 0.0 for story in traces)
    total = format_duration(sum(story.total for story in traces))
    sums = f"{len(traces)} turns, {total}" + (f", ${cost:.4f}" if cost else "")
    bars = f"{glyphs.model} model  {glyphs.tool} tools  {glyphs.wait} waiting  {glyphs.other} other"
    return style.replace_ellipsis("\n".join([*lines, "", sums, bars]))


def _turn_bar(trace: TurnTrace, longest_ms: float, columns: int, style: TerminalStyle) -> str:
    """Return a bar whose length shows the turn's duration, divided by activity. The longest turn fills all columns."""
    glyphs, whole = glyphs_for(style), max(1, round(trace.total / longest_ms * columns))
    bar, left = "", whole
    for kinds in ((MODEL, COMPACTION), (TOOL,), WAITING_KINDS):
        piece = min(left, round(trace.total_duration(*kinds) / trace.total * whole))
        bar += style.paint(glyphs.for_kind(kinds[0]) * piece, COLOURS[kinds[0]])
        left -= piece
    return bar + style.paint(glyphs.other * left, DIM) + " " * (columns - whole)


def render_timeline(
    records: Sequence[AnyRecord],
    turn: str = "",
    children: Journals | None = None,
    style: TerminalStyle = TerminalStyle(),  # noqa: B008 - the default is immutable
) -> str:
    """Return the timeline of a turn, by default the last. `turn` is a reference such as `demo.t4`, `t4` or `4`.

    `children` are the journals of child sessions, by name. If the turn doesn't exist, the text says so.
    """
    name = find_turn(records, turn)
    if name is None:
        return f"There is no turn {turn} in this session." if turn else "No turn has run in this session yet."
    return "\n".join(TimelineRenderer(build_trace(records, name, children), style).lines())


class TimelineRenderer:
    """Renders the timeline of one turn in a given terminal style."""

    def __init__(self, trace: TurnTrace, style: TerminalStyle) -> None:
        self._trace = trace
        self._style = style
        self._glyphs = glyphs_for(style)
        self._label_columns = 16 if style.columns < 70 else min(22 + max(0, style.columns - 80) // 4, 40)
        self._chart_columns = style.columns - self._label_columns - TIME_COLUMNS - 2

    def lines(self) -> list[str]:
        """Return the rendered lines, each within the terminal's width."""
        rows = [*self._render_rows(), *self._render_interrupt(), *self._render_message_outcomes()]
        lines = [*self._render_head(), "", self._render_axis(), *rows]
        return [self._style.replace_ellipsis(line.rstrip()) for line in lines]

    def _render_head(self) -> Iterator[str]:
        story, paint = self._trace, self._style.paint
        began = datetime.fromtimestamp(story.began_at).strftime("%Y-%m-%d %H:%M:%S")
        yield f"{paint(truncate(story.turn, self._style.columns - 22), BOLD)}  {paint(began, DIM)}"
        for line in self._wrap(f"{describe_outcome(story.outcome)}, {format_duration(story.total)}"):
            yield paint(line, RESULT_COLOURS[story.outcome_kind])
        facts = (words if name == "cost" else f"{name} {words}" for name, words in story.facts())
        for line in self._wrap(self._glyphs.between.join(facts)):
            yield paint(line, DIM)
        if why := story.measurement_note():
            yield from self._wrap(why)

    def _wrap(self, text: str) -> list[str]:
        return wrap_to_columns(text, self._style.columns)

    def _render_axis(self) -> str:
        """Return the time axis above the bars."""
        line = ""
        for tick in axis_ticks(self._trace.total, max(2, self._chart_columns // TICK_COLUMNS)):
            place = self._column_of(tick)
            words = format_tick(tick)
            if place >= len(line) and place + len(words) <= self._chart_columns:
                line = f"{line:{place}}{words} "
        return " " * (self._label_columns + TIME_COLUMNS + 2) + self._style.paint(line.rstrip(), DIM)

    def _render_rows(self) -> Iterator[str]:
        for row in self._trace.rows():
            yield self._render_segment(row) if isinstance(row, Segment) else self._render_message(row)

    def _render_segment(self, segment: Segment) -> str:
        cells = self._empty_cells()
        start = self._column_of(segment.start)
        end = max(start + 1, self._column_of(segment.end))
        colour = RED if segment.is_bad and segment.kind != TOOL else COLOURS.get(segment.kind, "")
        sign = self._glyphs.for_kind(segment.kind) if segment.duration > 0 else self._glyphs.other
        for place in range(start, min(end, self._chart_columns)):
            cells[place] = (sign, colour)
        if segment.first is not None:
            for place in range(start, min(self._column_of(segment.first), end - 1)):
                cells[place] = (self._glyphs.other, colour)
        if segment.settle > 0:
            cells[min(end, self._chart_columns) - 1] = (self._glyphs.settle, RED)
        if segment.note:
            self._write_text(cells, segment.note, start, end, RED if segment.is_bad else DIM)
        return self._format_row(segment_label(segment), segment.duration or None, cells, segment.depth)

    def _render_message(self, arrival: MessageArrival) -> str:
        cells = self._empty_cells()
        place = self._column_of(arrival.at)
        cells[place] = (self._glyphs.message, CYAN)
        self._write_text(cells, arrival.text, place, place + 1, CYAN)
        return self._format_row(arrival.how if arrival.how == "prompt" else _arrival_label(arrival), None, cells)

    def _render_message_outcomes(self) -> Iterator[str]:
        """Yield the outcome of each message that arrived during the turn."""
        came = [arrival for arrival in self._trace.arrivals if arrival.how != "prompt"]
        if came:
            yield ""
        for arrival in came:
            text = truncate(arrival.text, self._style.columns // 3)
            yield from self._wrap(f"{_arrival_label(arrival)}: {text}: {arrival.became}.")

    def _format_row(self, name: str, duration_ms: float | None, cells: list[_Cell], depth: int = 0) -> str:
        time = "" if duration_ms is None else format_duration(duration_ms)
        indent, label = " " * (2 * depth), fit_to_columns(name, self._label_columns - 2 * depth)
        return f"{indent}{label} {time:>{TIME_COLUMNS}} {self._paint_cells(cells)}"

    def _empty_cells(self) -> list[_Cell]:
        """Return an empty row of the chart, with a marker at the time of the interrupt."""
        cells: list[_Cell] = [(" ", "")] * self._chart_columns
        if self._trace.interrupted_at is not None:
            cells[self._column_of(self._trace.interrupted_at)] = (self._glyphs.line, RED)
        return cells

    def _write_text(self, cells: list[_Cell], text: str, start: int, end: int, colour: str) -> None:
        """Write text after a bar if there is room, otherwise before it."""
        right, left = self._chart_columns - end - 1, start - 1
        room = right if right >= min(left, display_width(to_one_line(text))) else left
        if room < MIN_TEXT_COLUMNS:
            return
        words = truncate(text, room)
        # A wide character takes two cells. The second one is empty.
        place = end + 1 if room == right else start - 1 - display_width(words)
        for character in words:
            cell_count = display_width(character)
            if cell_count == 0:
                continue
            cells[place] = (character, colour)
            if cell_count == 2:
                cells[place + 1] = ("", colour)
            place += cell_count

    def _paint_cells(self, cells: list[_Cell]) -> str:
        line, run, colour = "", "", ""
        for sign, own in cells:
            if own != colour:
                line, run, colour = line + self._style.paint(run, colour), "", own
            run += sign
        return line + self._style.paint(run, colour)

    def _column_of(self, time_ms: float) -> int:
        return min(self._chart_columns - 1, max(0, int(time_ms / self._trace.total * self._chart_columns)))

    def _render_interrupt(self) -> Iterator[str]:
        """Yield the time of the interrupt, and how long each segment took to stop, with a separate time scale."""
        story = self._trace
        if story.interrupted_at is None:
            return
        cells = self._empty_cells()
        place = self._column_of(story.interrupted_at)
        cells[place] = (self._glyphs.interrupt, RED)
        self._write_text(cells, format_stop_time(story), place, place + 1, RED)
        yield self._format_row(f"stopped at {format_duration(story.interrupted_at)}", None, cells)
        yield ""
        settled = f"{format_duration(story.settle)} from the interrupt to the end of the turn"
        yield from self._wrap(f"{settled}{', of which:' if story.stopped_segments() else '.'}")
        for part in story.stopped_segments():
            length = max(1, round(part.settle / max(story.settle, 0.001) * self._chart_columns))
            bar: list[_Cell] = [(self._glyphs.settle, RED)] * min(length, self._chart_columns)
            yield self._format_row(segment_label(part), part.settle, bar)


def _arrival_label(arrival: MessageArrival) -> str:
    return f"{arrival.how} at {format_duration(arrival.at)}"
