"""The conversation on the screen: events in, blocks out, and never more work than a frame can take."""

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from textual.containers import VerticalScroll
from textual.widget import Widget

from hark.protocol.events import (
    AnyEvent,
    CallEnd,
    CallOutput,
    CallStart,
    MessageAccepted,
    Notice,
    QuestionAsked,
    QuestionClosed,
    ReasoningDelta,
    ReceiptChanged,
    ReplyDelta,
    ReplyRestarted,
    RouteChanged,
    StepStart,
    TurnEnd,
)
from hark.protocol.messages import Message
from hark.surfaces.terminal.blocks import Called, Ended, Folding, Said, Thought, Told
from hark.surfaces.terminal.fates import Fates
from hark.surfaces.terminal.past import past_blocks
from hark.surfaces.terminal.prose import Prose
from hark.surfaces.terminal.safe import safe, safe_line

FRAME_SECONDS = 1 / 20
MOST_BLOCKS = 300

Block = TypeVar("Block", bound=Widget)


class Log(VerticalScroll):
    """Shows a session's events in order. Pieces of text are gathered and drawn a frame at a time."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="log")
        self._said: dict[str, Said] = {}
        self._calls: dict[str, Called] = {}
        self._asked: dict[str, str] = {}
        self._notice: tuple[str, Told] | None = None
        self._blocks: deque[Widget] = deque()
        self._fates = Fates()
        self._prose: Prose | None = None
        self._thought: Thought | None = None
        self._words: list[str] = []
        self._thoughts: list[str] = []
        self._outputs: dict[str, list[str]] = {}
        self._is_unfolded = False
        self.last_reply = ""

    def on_mount(self) -> None:
        """Keep to the end as it grows, until the person scrolls up; draw what was gathered at each frame."""
        self.anchor()
        self.set_interval(FRAME_SECONDS, self.flush)

    def show_past(self, messages: Sequence[Message]) -> None:
        """Show the last of what was said before, above what came while it was loaded."""
        blocks, calls, reply = past_blocks(messages, self._said)
        self._calls |= calls
        self.last_reply = self.last_reply or reply
        if blocks:
            self.mount(*blocks, before=0 if self._blocks else None)
            self._blocks.extendleft(reversed(blocks))

    async def clear(self) -> None:
        """Show nothing of this session any more."""
        self._end_reply()
        for known in (self._said, self._calls, self._asked, self._blocks):
            known.clear()
        self._notice = None
        self.last_reply = ""
        await self.remove_children()

    def sending(self, message: str, text: str) -> None:
        """Show a message that is on its way, so that nobody wonders whether it was heard."""
        self._end_reply()
        self._said[message] = block = self._add(Said(text))
        block.tell("sending …")
        self.anchor()

    def became(self, message: str, words: str) -> None:
        """Show what became of a message."""
        if message in self._said:
            self._said[message].tell(words)

    def tell(self, text: str, code: str = "") -> None:
        """Show something that the person should know; the same code replaces the one before it, if it is the last."""
        self.flush()
        if code and self._notice and self._notice[0] == code and self._blocks and self._notice[1] is self._blocks[-1]:
            self._notice[1].say(text)
        else:
            self._notice = code, self._add(Told(text))

    def unfold(self) -> None:
        """Open or fold all output and thinking."""
        self._is_unfolded = not self._is_unfolded
        for block in self._blocks:
            if isinstance(block, Folding):
                block.unfold(is_open=self._is_unfolded)

    def take(self, event: AnyEvent) -> None:
        """Show one more event. Never waits; text is drawn with the next frame."""
        match event:
            case ReplyDelta(text=text):
                self._words.append(text)
            case CallOutput(call=call, text=text):
                self._outputs.setdefault(call, []).append(text)
            case ReasoningDelta(text=text):
                self._thoughts.append(text)
            case MessageAccepted(id=message, text=text, author=author):
                if message not in self._said:
                    self._end_reply()
                    self._said[message] = self._add(Said(text, author))
            case StepStart():
                self._end_reply()
            case ReplyRestarted():
                self._restart()
            case CallStart(call=call):
                self._end_reply()
                self._calls[call] = self._add(Called.started(event))
            case CallEnd(call=call):
                self._end_call(event, call)
            case Notice(code=code, text=text):
                self.tell(text, code)
            case RouteChanged(route=route, reason=reason):
                self.tell(f"{route} serves: {reason}", "route")
            case TurnEnd():
                self._end_reply()
                self._add(Ended(event))
            case QuestionAsked(question=question, text=text):
                self._asked[question] = text
            case QuestionClosed(question=question, reason=reason):
                self._close_question(question, reason)
            case _:
                pass
        self._fates.take(event)
        if isinstance(event, ReceiptChanged):
            self.became(event.receipt.id, self._fates.words(event.receipt))

    def flush(self) -> None:
        """Draw what was gathered."""
        for call, pieces in self._outputs.items():
            if call in self._calls:
                self._calls[call].add("".join(pieces))
        self._outputs.clear()
        if self._thoughts:
            self._think("".join(self._thoughts))
            self._thoughts.clear()
        if self._words:
            text = safe("".join(self._words))
            self._words.clear()
            self._prose = self._prose or Prose(self._add)
            self._prose.add(text)

    def _think(self, text: str) -> None:
        if self._thought is None:
            self._thought = self._add(Thought())
            self._thought.is_open = self._is_unfolded
        self._thought.add(text)

    def _end_call(self, event: CallEnd, call: str) -> None:
        self.flush()
        block = self._calls.pop(call, None)
        if block is None:
            block = self._add(Called(event.name, "{}"))  # it was refused before it started
        block.end(event)

    def _close_question(self, question: str, reason: str) -> None:
        text = self._asked.pop(question, None)
        if text is not None and reason != "answered":
            self.tell(f"The question was {reason}: {safe_line(text, 100)}")

    def _restart(self) -> None:
        """Forget the text of this step: it comes again."""
        self._words.clear()
        if self._prose is not None:
            for piece in self._prose.pieces:
                if piece in self._blocks:
                    self._blocks.remove(piece)
                piece.remove()
            self._prose = None

    def _end_reply(self) -> None:
        self.flush()
        if self._prose is not None:
            self.last_reply = self._prose.written
        self._prose = None
        self._thought = None

    def _add(self, block: Block) -> Block:
        self._blocks.append(block)
        self.mount(block)
        if len(self._blocks) > MOST_BLOCKS:
            self._drop(self._blocks.popleft())
        return block

    def _drop(self, block: Widget) -> None:
        for known in (self._said, self._calls):
            for name in [name for name, shown in known.items() if shown is block]:
                del known[name]
        block.remove()
