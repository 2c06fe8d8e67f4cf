"""Draws all turns of a session, a line and a bar each."""

from collections.abc import Sequence

from hark.protocol.records import AnyRecord
from hark.text.columns import DIM, TerminalStyle, cut, fit, width
from hark.text.status_text import outcome_words
from hark.trace.from_journal import story_of, turns_of
from hark.trace.terminal_symbols import COLOURS, RESULT_COLOURS, signs_for
from hark.trace.turn_trace import COMPACTION, MODEL, TOOL, WAITS, TurnTrace, time_words

TIME_COLUMNS = 8
OUTCOME_COLUMNS = 11


def turns_text(records: Sequence[AnyRecord], look: TerminalStyle = TerminalStyle()) -> str:  # noqa: B008 - it never changes
    """Return a line for each turn: how it ended, how long it took, where that time went, and what was asked."""
    stories = [story_of(records, turn) for turn in turns_of(records)]
    if not stories:
        return "No turn has run in this session yet."
    signs = signs_for(look)
    total = sum(story.total for story in stories)
    cost = sum(story.cost or 0.0 for story in stories)
    sums = f"{len(stories)} turns, {time_words(total)}" + (f", ${cost:.4f}" if cost else "")
    bars = f"{signs.model} model  {signs.tool} tools  {signs.wait} waits  {signs.other} other"
    return look.sayable("\n".join([*_TurnLines(stories, look).lines(), "", sums, bars]))


class _TurnLines:
    def __init__(self, stories: Sequence[TurnTrace], look: TerminalStyle) -> None:
        self._stories = stories
        self._look = look
        self._signs = signs_for(look)
        self._longest = max(story.total for story in stories)
        self._numbers = max(width(story.number) for story in stories)
        room = look.columns - self._numbers - TIME_COLUMNS - OUTCOME_COLUMNS - 4
        self._columns = room // 2
        self._words = room - self._columns

    def lines(self) -> list[str]:
        return [self._line(story) for story in self._stories]

    def _line(self, story: TurnTrace) -> str:
        how = "running" if story.outcome is None else outcome_words(story.outcome).split()[0].rstrip(":")
        painted = self._look.paint(fit(how, OUTCOME_COLUMNS), RESULT_COLOURS[story.result])
        number, took = fit(story.number, self._numbers), f"{time_words(story.total):>{TIME_COLUMNS}}"
        return f"{number} {painted} {took} {self._bar(story)} {cut(story.prompt, self._words)}".rstrip()

    def _bar(self, story: TurnTrace) -> str:
        """Return a bar as long as the turn, divided by what its time went into."""
        whole = max(1, round(story.total / self._longest * self._columns))
        bar, left = "", whole
        for kinds in ((MODEL, COMPACTION), (TOOL,), WAITS):
            piece = min(left, round(story.took(*kinds) / story.total * whole))
            bar += self._look.paint(self._signs.of(kinds[0]) * piece, COLOURS[kinds[0]])
            left -= piece
        return bar + self._look.paint(self._signs.other * left, DIM) + " " * (self._columns - whole)
