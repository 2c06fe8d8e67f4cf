"""The scroll: blocks drawn into lines, each drawn anew only when it changed. It is one widget, however long it is."""

import time
from bisect import bisect_right
from collections.abc import Sequence

from rich.console import Console
from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hark.surfaces.terminal.widgets.blocks import Block

MOST_LINES = 6_000
MOST_BLOCKS = 600
SLICE_SECONDS = 0.008
SLICE_PAUSE_SECONDS = 0.03


class _Drawn:
    """A block with its lines, at a width."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.start = 0
        self.lines: list[Strip] = []
        self.width = 0


class Scroll(ScrollView, can_focus=False):
    """Shows blocks, the newest at the end, and keeps to the end until the person scrolls up."""

    def __init__(self, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._drawn: list[_Drawn] = []
        self._lines: list[Strip] = []
        self._follows = True

    @property
    def blocks(self) -> list[Block]:
        """The blocks, the oldest first."""
        return [drawn.block for drawn in self._drawn]

    def on_mount(self) -> None:
        """After a resize, draw what is far from the eye bit by bit."""
        self.set_interval(SLICE_PAUSE_SECONDS, self._draw_stale)

    def show(self, block: Block) -> None:
        """Put a block at the end, or draw it anew if it is there."""
        for place in range(len(self._drawn) - 1, -1, -1):
            if self._drawn[place].block is block:
                self._draw(place)
                break
        else:
            drawn = _Drawn(block)
            drawn.start = len(self._lines)
            self._drawn.append(drawn)
            self._draw(len(self._drawn) - 1)
            while len(self._drawn) > MOST_BLOCKS or (len(self._lines) > MOST_LINES and len(self._drawn) > 1):
                self.drop(self._drawn[0].block)
        self._settle()

    def show_soon(self, block: Block) -> None:
        """Draw a block anew with the next slice: many may change at once, and most of them out of sight."""
        for drawn in reversed(self._drawn):
            if drawn.block is block:
                drawn.width = 0
                return

    def show_above(self, blocks: Sequence[Block]) -> None:
        """Put blocks above all others."""
        self._drawn[:0] = [_Drawn(block) for block in blocks]
        for place in range(len(blocks) + 1 if len(self._drawn) > len(blocks) else len(blocks)):
            self._draw(place)
        self._settle()

    def drop(self, block: Block) -> None:
        """Take a block out."""
        for place, drawn in enumerate(self._drawn):
            if drawn.block is block:
                self._replace(place, [])
                del self._drawn[place]
                if place < len(self._drawn):
                    self._draw(place)  # the air above it may be another
                self._settle()
                return

    def drop_all(self) -> None:
        """Take all out."""
        self._drawn.clear()
        self._lines.clear()
        self.follow()

    def follow(self) -> None:
        """Go to the end, and stay there."""
        self._follows = True
        self._settle()

    def render_line(self, y: int) -> Strip:
        """Return one line as it is seen."""
        place = y + self.scroll_offset.y
        if place < len(self._lines):
            return self._lines[place]
        return Strip.blank(self.scrollable_content_region.width, self.rich_style)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Note whether the person looks at the end."""
        super().watch_scroll_y(old_value, new_value)
        self._follows = new_value >= self.max_scroll_y

    def on_resize(self) -> None:
        """Draw the end for the new width at once, the rest soon."""
        rows = 0
        for place in range(len(self._drawn) - 1, -1, -1):
            if rows > self.size.height * 2:
                break
            self._draw(place)
            rows += len(self._drawn[place].lines)
        self._settle()

    def notify_style_update(self) -> None:
        """Draw all anew: the colours are others."""
        super().notify_style_update()
        for drawn in self._drawn:
            drawn.width = 0

    def on_click(self, event: events.Click) -> None:
        """Open or fold the block under the mouse."""
        offset = event.get_content_offset(self)
        if offset is None or not self._drawn:
            return
        starts = [drawn.start for drawn in self._drawn]
        block = self._drawn[max(0, bisect_right(starts, offset.y + self.scroll_offset.y) - 1)].block
        if block.can_fold:
            block.is_open = not block.is_open
            self.show(block)

    def _draw_stale(self) -> None:
        width = self.scrollable_content_region.width
        until = time.monotonic() + SLICE_SECONDS
        has_drawn = False
        for place in range(len(self._drawn) - 1, -1, -1):
            if self._drawn[place].width != width:
                self._draw(place)
                has_drawn = True
                if time.monotonic() > until:
                    break
        if has_drawn or (self._follows and self.scroll_offset.y < self.max_scroll_y):
            self._settle()

    def _draw(self, place: int) -> None:
        """Draw one block; it is drawn later if the width is not known yet."""
        drawn = self._drawn[place]
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        drawn.width = width
        console: Console = self.app.console  # pyright: ignore[reportUnknownMemberType]
        rendered = console.render_lines(drawn.block.draw(), console.options.update(width=width), pad=False)
        lines = _trimmed([Strip(line) for line in rendered])
        before = self._drawn[place - 1].block if place else None
        if before is not None and (drawn.block.has_air or before.has_air) and lines:
            is_cut = not drawn.block.has_air and type(drawn.block) is type(before)
            lines = lines if is_cut else [Strip([Segment("")]), *lines]
        style = self.rich_style
        self._replace(place, [line.crop_extend(0, width, style).apply_style(style) for line in lines])

    def _replace(self, place: int, lines: list[Strip]) -> None:
        drawn = self._drawn[place]
        old = len(drawn.lines)
        self._lines[drawn.start : drawn.start + old] = lines
        drawn.lines = lines
        more = len(lines) - old
        if more:
            for later in self._drawn[place + 1 :]:
                later.start += more
            if not self._follows and drawn.start + old <= self.scroll_offset.y:
                self.scroll_to(y=self.scroll_offset.y + more, animate=False, immediate=True)

    def _settle(self) -> None:
        """Have the screen show it."""
        follows = self._follows
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines))
        if follows:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)
            self._follows = True
        self.refresh()


def _trimmed(lines: list[Strip]) -> list[Strip]:
    """Return lines without the blank ones at both ends."""
    while lines and not lines[0].text.strip():
        del lines[0]
    while lines and not lines[-1].text.strip():
        del lines[-1]
    return lines
