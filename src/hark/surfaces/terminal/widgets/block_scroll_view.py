"""A scrollable view of blocks in one widget. A block is rendered again only when it has changed."""

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

MAX_LINES = 6_000
MAX_BLOCKS = 600
RENDER_SLICE_SECONDS = 0.008
RENDER_INTERVAL_SECONDS = 0.03


class _RenderedBlock:
    """A block with its rendered lines and the width they were rendered for."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.start = 0
        self.lines: list[Strip] = []
        self.width = 0


class BlockScrollView(ScrollView, can_focus=False):
    """Shows blocks, the newest at the end. Auto-scrolls until the user scrolls up."""

    def __init__(self, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._rendered_blocks: list[_RenderedBlock] = []
        self._lines: list[Strip] = []
        self._is_following = True

    @property
    def blocks(self) -> list[Block]:
        """The blocks, oldest first."""
        return [drawn.block for drawn in self._rendered_blocks]

    def on_mount(self) -> None:
        """Start the timer that renders outdated blocks a few at a time, such as after a resize."""
        self.set_interval(RENDER_INTERVAL_SECONDS, self._render_outdated)

    def show(self, block: Block) -> None:
        """Add a block at the end, or render it again if it is already shown."""
        for place in range(len(self._rendered_blocks) - 1, -1, -1):
            if self._rendered_blocks[place].block is block:
                self._render_block(place)
                break
        else:
            drawn = _RenderedBlock(block)
            drawn.start = len(self._lines)
            self._rendered_blocks.append(drawn)
            self._render_block(len(self._rendered_blocks) - 1)
            while (count := len(self._rendered_blocks)) > MAX_BLOCKS or (len(self._lines) > MAX_LINES and count > 1):
                self.remove_block(self._rendered_blocks[0].block)
        self._update_scroll()

    def redraw_soon(self, block: Block) -> None:
        """Render a block again on the next timer tick, because many blocks may change at once."""
        for drawn in reversed(self._rendered_blocks):
            if drawn.block is block:
                drawn.width = 0
                return

    def prepend(self, blocks: Sequence[Block]) -> None:
        """Add blocks above all others."""
        self._rendered_blocks[:0] = [_RenderedBlock(block) for block in blocks]
        for place in range(len(blocks) + 1 if len(self._rendered_blocks) > len(blocks) else len(blocks)):
            self._render_block(place)
        self._update_scroll()

    def remove_block(self, block: Block) -> None:
        """Remove a block."""
        for place, drawn in enumerate(self._rendered_blocks):
            if drawn.block is block:
                self._replace_lines(place, [])
                del self._rendered_blocks[place]
                if place < len(self._rendered_blocks):
                    self._render_block(place)  # its margin may have changed
                self._update_scroll()
                return

    def remove_all_blocks(self) -> None:
        """Remove all blocks."""
        self._rendered_blocks.clear()
        self._lines.clear()
        self.follow_end()

    def follow_end(self) -> None:
        """Scroll to the end and turn auto-scroll on."""
        self._is_following = True
        self._update_scroll()

    def render_line(self, y: int) -> Strip:
        """Return one line of the visible area."""
        place = y + self.scroll_offset.y
        if place < len(self._lines):
            return self._lines[place]
        return Strip.blank(self.scrollable_content_region.width, self.rich_style)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Turn auto-scroll on if the user has scrolled to the end, otherwise off."""
        super().watch_scroll_y(old_value, new_value)
        self._is_following = new_value >= self.max_scroll_y

    def on_resize(self) -> None:
        """Render the last blocks for the new width now. The timer renders the others."""
        rows = 0
        for place in range(len(self._rendered_blocks) - 1, -1, -1):
            if rows > self.size.height * 2:
                break
            self._render_block(place)
            rows += len(self._rendered_blocks[place].lines)
        self._update_scroll()

    def notify_style_update(self) -> None:
        """Mark all blocks as outdated, because the colours have changed."""
        super().notify_style_update()
        for drawn in self._rendered_blocks:
            drawn.width = 0

    def on_click(self, event: events.Click) -> None:
        """Expand or collapse the block under the mouse."""
        offset = event.get_content_offset(self)
        if offset is None or not self._rendered_blocks:
            return
        starts = [drawn.start for drawn in self._rendered_blocks]
        block = self._rendered_blocks[max(0, bisect_right(starts, offset.y + self.scroll_offset.y) - 1)].block
        if block.is_foldable:
            block.is_open = not block.is_open
            self.show(block)

    def _render_outdated(self) -> None:
        width = self.scrollable_content_region.width
        until = time.monotonic() + RENDER_SLICE_SECONDS
        has_drawn = False
        for place in range(len(self._rendered_blocks) - 1, -1, -1):
            if self._rendered_blocks[place].width != width:
                self._render_block(place)
                has_drawn = True
                if time.monotonic() > until:
                    break
        if has_drawn or (self._is_following and self.scroll_offset.y < self.max_scroll_y):
            self._update_scroll()

    def _render_block(self, index: int) -> None:
        """Render one block. Does nothing if the width is not known yet."""
        drawn = self._rendered_blocks[index]
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        drawn.width = width
        console: Console = self.app.console  # pyright: ignore[reportUnknownMemberType]
        rendered = console.render_lines(drawn.block.draw(), console.options.update(width=width), pad=False)
        lines = _trim_blank_lines([Strip(line) for line in rendered])
        before = self._rendered_blocks[index - 1].block if index else None
        if before is not None and (drawn.block.has_margin or before.has_margin) and lines:
            is_continuation = not drawn.block.has_margin and type(drawn.block) is type(before)
            lines = lines if is_continuation else [Strip([Segment("")]), *lines]
        style = self.rich_style
        self._replace_lines(index, [line.crop_extend(0, width, style).apply_style(style) for line in lines])

    def _replace_lines(self, index: int, lines: list[Strip]) -> None:
        drawn = self._rendered_blocks[index]
        old = len(drawn.lines)
        self._lines[drawn.start : drawn.start + old] = lines
        drawn.lines = lines
        added = len(lines) - old
        if added:
            for later in self._rendered_blocks[index + 1 :]:
                later.start += added
            if not self._is_following and drawn.start + old <= self.scroll_offset.y:
                self.scroll_to(y=self.scroll_offset.y + added, animate=False, immediate=True)

    def _update_scroll(self) -> None:
        """Update the scroll range and redraw the widget."""
        follows = self._is_following
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines))
        if follows:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)
            self._is_following = True
        self.refresh()


def _trim_blank_lines(lines: list[Strip]) -> list[Strip]:
    """Return the lines without blank lines at the start and end."""
    while lines and not lines[0].text.strip():
        del lines[0]
    while lines and not lines[-1].text.strip():
        del lines[-1]
    return lines
