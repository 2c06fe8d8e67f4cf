"""Draws turns with letters: one as a timeline of what ran when and what an interrupt cost, or all with a bar each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from hark.protocol.records import AnyRecord
from hark.text.columns import BOLD, CYAN, DIM, RED, TerminalStyle, cut, fit, one_line, width, wrap
from hark.text.status_text import outcome_words
from hark.trace.from_journal import Journals, find_turn, story_of, turns_of
from hark.trace.turn_trace import (
    COMPACTION,
    MODEL,
    PAUSE,
    QUESTION,
    SNAPSHOT,
    TOOL,
    WAITS,
    MessageArrival,
    Segment,
    TurnTrace,
    label,
    settle_words,
    tick_words,
    ticks,
    time_words,
)

COLOURS = {MODEL: "34", TOOL: "32", QUESTION: "35", PAUSE: "33", SNAPSHOT: CYAN, COMPACTION: CYAN}
RESULT_COLOURS = {"runs": BOLD, "good": COLOURS[TOOL], "wrong": RED, "cut": COLOURS[PAUSE]}
TIME_COLUMNS = 8
OUTCOME_COLUMNS = 11
TICK_COLUMNS = 8
LEAST_WORDS_COLUMNS = 8
_Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Signs:
    """What bars are made of: a bar must be readable without colours, too."""

    model: str = "█"
    tool: str = "▓"
    wait: str = "▒"
    other: str = "░"
    settle: str = "▞"
    message: str = "◆"
    interrupt: str = "▲"
    line: str = "╎"
    between: str = " · "

    def of(self, kind: str) -> str:
        """Return the sign for a kind of part."""
        return {MODEL: self.model, COMPACTION: self.model, TOOL: self.tool}.get(kind, self.wait)


_ASCII = Signs("#", "=", "-", ".", "x", "*", "^", "!", "; ")


def signs_for(look: TerminalStyle) -> Signs:
    """Return what the reader's place can show."""
    return Signs() if look.has_unicode else _ASCII


def turns_text(records: Sequence[AnyRecord], look: TerminalStyle = TerminalStyle()) -> str:  # noqa: B008 - it never changes
    """Return a line for each turn: how it ended, how long it took, where that time went, and what was asked."""
    stories = [story_of(records, turn) for turn in turns_of(records)]
    if not stories:
        return "No turn has run in this session yet."
    signs, numbers = signs_for(look), max(width(story.number) for story in stories)
    room = look.columns - numbers - TIME_COLUMNS - OUTCOME_COLUMNS - 4
    longest = max(story.total for story in stories)
    lines: list[str] = []
    for story in stories:
        how = "running" if story.outcome is None else outcome_words(story.outcome).split()[0].rstrip(":")
        painted = look.paint(fit(how, OUTCOME_COLUMNS), RESULT_COLOURS[story.result])
        took, bar = f"{time_words(story.total):>{TIME_COLUMNS}}", _turn_bar(story, longest, room // 2, look)
        lines.append(
            f"{fit(story.number, numbers)} {painted} {took} {bar} {cut(story.prompt, room - room // 2)}".rstrip()
        )
    cost = sum(story.cost or 0.0 for story in stories)
    total = time_words(sum(story.total for story in stories))
    sums = f"{len(stories)} turns, {total}" + (f", ${cost:.4f}" if cost else "")
    bars = f"{signs.model} model  {signs.tool} tools  {signs.wait} waits  {signs.other} other"
    return look.sayable("\n".join([*lines, "", sums, bars]))


def _turn_bar(story: TurnTrace, longest: float, columns: int, look: TerminalStyle) -> str:
    """Return a bar as long as the turn, divided by what its time went into; the longest turn takes all columns."""
    signs, whole = signs_for(look), max(1, round(story.total / longest * columns))
    bar, left = "", whole
    for kinds in ((MODEL, COMPACTION), (TOOL,), WAITS):
        piece = min(left, round(story.took(*kinds) / story.total * whole))
        bar += look.paint(signs.of(kinds[0]) * piece, COLOURS[kinds[0]])
        left -= piece
    return bar + look.paint(signs.other * left, DIM) + " " * (columns - whole)


def trace_text(
    records: Sequence[AnyRecord],
    turn: str = "",
    children: Journals | None = None,
    look: TerminalStyle = TerminalStyle(),  # noqa: B008 - it never changes
) -> str:
    """Return a turn's timeline; of the last turn when none is named. `turn` is `demo.t4`, `t4` or `4`.

    `children` are the journals of child sessions, by name. What can't be found is told in the text.
    """
    name = find_turn(records, turn)
    if name is None:
        return f"There is no turn {turn} in this session." if turn else "No turn has run in this session yet."
    return "\n".join(Drawing(story_of(records, name, children), look).lines())


class Drawing:
    """One turn, drawn for one reader."""

    def __init__(self, story: TurnTrace, look: TerminalStyle) -> None:
        self._story = story
        self._look = look
        self._signs = signs_for(look)
        self._label = 16 if look.columns < 70 else min(22 + max(0, look.columns - 80) // 4, 40)
        self._columns = look.columns - self._label - TIME_COLUMNS - 2

    def lines(self) -> list[str]:
        """Return the lines, each within the reader's columns."""
        lines = [*self._head(), "", self._axis(), *self._rows(), *self._interrupt(), *self._messages()]
        return [self._look.sayable(line.rstrip()) for line in lines]

    def _head(self) -> Iterator[str]:
        story, paint = self._story, self._look.paint
        began = datetime.fromtimestamp(story.began_at).strftime("%Y-%m-%d %H:%M:%S")
        yield f"{paint(cut(story.turn, self._look.columns - 22), BOLD)}  {paint(began, DIM)}"
        for line in self._wrapped(f"{outcome_words(story.outcome)}, {time_words(story.total)}"):
            yield paint(line, RESULT_COLOURS[story.result])
        facts = (words if name == "cost" else f"{name} {words}" for name, words in story.facts())
        for line in self._wrapped(self._signs.between.join(facts)):
            yield paint(line, DIM)
        if why := story.how_measured():
            yield from self._wrapped(why)

    def _wrapped(self, text: str) -> list[str]:
        return wrap(text, self._look.columns)

    def _axis(self) -> str:
        """Return the line of times above the bars."""
        line = ""
        for tick in ticks(self._story.total, max(2, self._columns // TICK_COLUMNS)):
            place = self._column(tick)
            words = tick_words(tick)
            if place >= len(line) and place + len(words) <= self._columns:
                line = f"{line:{place}}{words} "
        return " " * (self._label + TIME_COLUMNS + 2) + self._look.paint(line.rstrip(), DIM)

    def _rows(self) -> Iterator[str]:
        for row in self._story.rows():
            yield self._part(row) if isinstance(row, Segment) else self._message(row)

    def _part(self, part: Segment) -> str:
        cells = self._blank()
        start, end = self._column(part.start), max(self._column(part.start) + 1, self._column(part.end))
        colour = RED if part.is_bad and part.kind != TOOL else COLOURS.get(part.kind, "")
        sign = self._signs.of(part.kind) if part.took > 0 else self._signs.other
        for place in range(start, min(end, self._columns)):
            cells[place] = (sign, colour)
        if part.first is not None:
            for place in range(start, min(self._column(part.first), end - 1)):
                cells[place] = (self._signs.other, colour)
        if part.settle > 0:
            cells[min(end, self._columns) - 1] = (self._signs.settle, RED)
        if part.note:
            self._write(cells, part.note, start, end, RED if part.is_bad else DIM)
        return self._row(label(part), part.took or None, cells, part.depth)

    def _message(self, arrival: MessageArrival) -> str:
        cells = self._blank()
        place = self._column(arrival.at)
        cells[place] = (self._signs.message, CYAN)
        self._write(cells, arrival.text, place, place + 1, CYAN)
        return self._row(arrival.how if arrival.how == "prompt" else _came(arrival), None, cells)

    def _messages(self) -> Iterator[str]:
        """Yield what became of each message that came while the turn ran."""
        came = [arrival for arrival in self._story.arrivals if arrival.how != "prompt"]
        if came:
            yield ""
        for arrival in came:
            text = cut(arrival.text, self._look.columns // 3)
            yield from self._wrapped(f"{_came(arrival)}: {text}: {arrival.became}.")

    def _row(self, name: str, took: float | None, cells: list[_Cell], depth: int = 0) -> str:
        time = "" if took is None else time_words(took)
        indent = " " * (2 * depth)
        return f"{indent}{fit(name, self._label - 2 * depth)} {time:>{TIME_COLUMNS}} {self._painted(cells)}"

    def _blank(self) -> list[_Cell]:
        """Return an empty line of the chart, but for the place where the interrupt fell."""
        cells: list[_Cell] = [(" ", "")] * self._columns
        if self._story.interrupted_at is not None:
            cells[self._column(self._story.interrupted_at)] = (self._signs.line, RED)
        return cells

    def _write(self, cells: list[_Cell], text: str, start: int, end: int, colour: str) -> None:
        """Write beside a bar: behind it if there is room, else before it."""
        right, left = self._columns - end - 1, start - 1
        room = right if right >= min(left, width(one_line(text))) else left
        if room < LEAST_WORDS_COLUMNS:
            return
        words = cut(text, room)
        # A wide letter takes the place of two: the second cell is empty.
        place = end + 1 if room == right else start - 1 - width(words)
        for letter in words:
            taken = width(letter)
            if taken == 0:
                continue
            cells[place] = (letter, colour)
            if taken == 2:
                cells[place + 1] = ("", colour)
            place += taken

    def _painted(self, cells: list[_Cell]) -> str:
        line, run, colour = "", "", ""
        for sign, own in cells:
            if own != colour:
                line, run, colour = line + self._look.paint(run, colour), "", own
            run += sign
        return line + self._look.paint(run, colour)

    def _column(self, at: float) -> int:
        return min(self._columns - 1, max(0, int(at / self._story.total * self._columns)))

    def _interrupt(self) -> Iterator[str]:
        """Yield where the interrupt fell, and each part's share of its cost, on a scale of its own."""
        story = self._story
        if story.interrupted_at is None:
            return
        cells = self._blank()
        place = self._column(story.interrupted_at)
        cells[place] = (self._signs.interrupt, RED)
        self._write(cells, settle_words(story), place, place + 1, RED)
        yield self._row(f"stopped at {time_words(story.interrupted_at)}", None, cells)
        yield ""
        settled = f"{time_words(story.settle)} from the interrupt to the end of the turn"
        yield from self._wrapped(f"{settled}{', of which:' if story.settling() else '.'}")
        for part in story.settling():
            length = max(1, round(part.settle / max(story.settle, 0.001) * self._columns))
            bar: list[_Cell] = [(self._signs.settle, RED)] * min(length, self._columns)
            yield self._row(label(part), part.settle, bar)


def _came(arrival: MessageArrival) -> str:
    return f"{arrival.how} at {time_words(arrival.at)}"
