"""The conversation on the screen: events in, blocks out, and never more work than a frame can take."""

from collections.abc import Sequence

from hark.protocol.events import (
    AnyEvent,
    CallEnd,
    CallOutput,
    CallStart,
    MessageAccepted,
    Notice,
    ReasoningDelta,
    ReceiptChanged,
    ReplyDelta,
    ReplyRestarted,
    RouteChanged,
    StepStart,
    TurnEnd,
)
from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.outcomes import Completed, Interrupted, Outcome
from hark.protocol.receipts import Receipt, ReceiptState
from hark.surfaces.terminal.widgets.blocks import NOTICE, Block, Called, Thought, Told, UserBlock
from hark.surfaces.terminal.widgets.prose import Prose
from hark.surfaces.terminal.widgets.scroll import Scroll
from hark.text.safe_text import safe
from hark.text.status_text import end_words, milliseconds, turn_number

FRAME_SECONDS = 1 / 20
KEPT_MESSAGES = 500
KEPT_TURNS = 200
MOST_BLOCKS = 120
SENDING = "sending …"
_END_STYLES: dict[type[Outcome], str] = {Completed: "dim", Interrupted: NOTICE}  # a failure has another
_RECEIPTS = {
    ReceiptState.INTERRUPTING: "interrupts turn {turn} …",
    ReceiptState.STEERING: "steers turn {turn} at its next step",
    ReceiptState.STEERED: "steered into turn {turn}, step {step}",
    ReceiptState.QUEUED: "queued #{position}",
    ReceiptState.HELD: "held #{position}: the next message releases it",
    ReceiptState.EDITED: "edited, queued #{position}",
    ReceiptState.WITHDRAWN: "withdrawn",
    ReceiptState.DUPLICATE: "known already",
}


class ConversationLog(Scroll):
    """Shows a session's events in order. Pieces of text are gathered and drawn a frame at a time."""

    def __init__(self) -> None:
        super().__init__(id="log")
        self._said: dict[str, UserBlock] = {}
        self._calls: dict[str, Called] = {}
        self._notice: tuple[str, Told] | None = None
        self._fates = Fates()
        self._prose: Prose | None = None
        self._thought: Thought | None = None
        self._words: list[str] = []
        self._thoughts: list[str] = []
        self._outputs: dict[str, list[str]] = {}
        self._is_unfolded = False
        self.last_reply = ""

    def on_mount(self) -> None:
        """Draw what was gathered at each frame."""
        super().on_mount()
        self.set_interval(FRAME_SECONDS, self.flush)

    def show_past(self, messages: Sequence[Message]) -> None:
        """Show the last of what was said before, above what came while it was loaded."""
        blocks = self._past_blocks(messages)
        for block in blocks:
            self.drop(block)  # a message that was sent meanwhile has its place among the others
        self.show_above(blocks)

    def _past_blocks(self, messages: Sequence[Message]) -> list[Block]:
        blocks: list[Block] = []
        reply = ""
        for message in messages[-MOST_BLOCKS:]:
            match message:
                case UserMessage(id=name, text=text, author=author):
                    blocks.append(self._said.get(name) or UserBlock(text, author))
                case AssistantMessage(text=text):
                    if text:
                        prose = Prose(lambda _: None)
                        prose.add(safe(text))
                        prose.end()
                        blocks.extend(prose.pieces)
                        reply = text
                    for call in message.calls:
                        self._calls[call.id] = called = Called(call.name, call.arguments)
                        blocks.append(called)
                case CallResult(call=call):
                    if call in self._calls:
                        self._calls.pop(call).end(message)
                case Note(text=text):
                    blocks.append(Told(text))
        self.last_reply = self.last_reply or reply
        if len(blocks) > MOST_BLOCKS:
            blocks = [Told("… earlier: hark sessions show"), *blocks[-MOST_BLOCKS:]]
        return blocks

    def clear(self) -> None:
        """Show nothing of this session any more."""
        self._end_reply()
        self._said.clear()
        self._calls.clear()
        self._notice = None
        self.last_reply = ""
        self.drop_all()

    def sending(self, message: str, text: str) -> None:
        """Show a message that is on its way, so that nobody wonders whether it was heard."""
        self._end_reply()
        self._add_said(message, UserBlock(text))
        self.became(message, SENDING)
        self.follow()

    def became(self, message: str, words: str) -> None:
        """Show what became of a message."""
        if message in self._said and self._said[message].receipt != words:
            self._said[message].receipt = words
            self.show_soon(self._said[message])

    def accepted(self, receipt: Receipt) -> None:
        """Show what a message's own receipt says, if no event has told more. That of a command says nothing."""
        if receipt.id in self._said and self._said[receipt.id].receipt == SENDING:
            self.became(receipt.id, self._fates.words(receipt))

    def tell(self, text: str, code: str = "") -> None:
        """Show something that the person should know; the same code replaces the one before it, if it is the last."""
        self.flush()
        known = self._notice[1] if code and self._notice and self._notice[0] == code else None
        if known is None or known not in self.blocks[-1:]:
            known = Told(text)
            self._notice = code, known
        known.text = text
        self.show(known)

    def unfold(self) -> None:
        """Open or fold all output and thinking."""
        self._is_unfolded = not self._is_unfolded
        for block in self.blocks:
            if block.can_fold:
                block.is_open = self._is_unfolded
                self.show_soon(block)

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
                    self._add_said(message, UserBlock(text, author))
            case StepStart():
                self._end_reply()
            case ReplyRestarted():
                self._restart()
            case CallStart(call=call):
                self._end_reply()
                self._calls[call] = called = Called(event.name, event.arguments)
                self._unfolded(called)
            case CallEnd(call=call):
                self._end_call(event, call)
            case Notice(code=code, text=text):
                self.tell(text, code)
            case RouteChanged(route=route, reason=reason):
                self.tell(f"{route} serves: {reason}", "route")
            case TurnEnd():
                self._end_reply()
                self.show(Told(f"── {end_words(event)}", _END_STYLES.get(type(event.outcome), "bold red")))
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
                self.show(self._calls[call])
        self._outputs.clear()
        if self._thoughts:
            self._thought = self._thought or Thought()
            self._thought.add("".join(self._thoughts))
            self._thoughts.clear()
            self._unfolded(self._thought)
        if self._words:
            text = safe("".join(self._words))
            self._words.clear()
            self._prose = self._prose or Prose(self.show)
            self._prose.add(text)

    def _end_call(self, event: CallEnd, call: str) -> None:
        self.flush()
        block = self._calls.pop(call, None) or Called(event.name, "{}")  # it was refused before it started
        block.end(event)
        self.show(block)

    def _restart(self) -> None:
        """Forget the text of this step: it comes again."""
        self._words.clear()
        if self._prose is not None:
            for piece in self._prose.pieces:
                self.drop(piece)
            self._prose = None

    def _end_reply(self) -> None:
        self.flush()
        if self._prose is not None:
            self._prose.end()
            self.last_reply = self._prose.written
        self._prose = None
        self._thought = None

    def _unfolded(self, block: Block) -> None:
        block.is_open = block.is_open or self._is_unfolded
        self.show(block)

    def _add_said(self, message: str, block: UserBlock) -> None:
        self._said[message] = block
        self.show(block)
        if len(self._said) > KEPT_MESSAGES:
            del self._said[next(iter(self._said))]


class Fates:
    """Remembers which message was to cut which turn, and how those turns ended."""

    def __init__(self) -> None:
        self._cuts: dict[str, str] = {}
        self._settles: dict[str, float | None] = {}
        self._step = 0

    def take(self, event: AnyEvent) -> None:
        """Take one more event."""
        match event:
            case StepStart(step=step):
                self._step = step  # a steer is taken before its step starts
            case TurnEnd(outcome=outcome, timings=timings):
                self._settles[event.turn or ""] = timings.settle if isinstance(outcome, Interrupted) else None
                self._step = 0
                if len(self._settles) > KEPT_TURNS:
                    del self._settles[next(iter(self._settles))]
            case ReceiptChanged(receipt=receipt) if receipt.state is ReceiptState.INTERRUPTING and receipt.turn:
                self._cuts[receipt.id] = receipt.turn
            case _:
                pass

    def words(self, receipt: Receipt) -> str:
        """Return what became of a message, in a few words."""
        turn = turn_number(receipt.turn)
        if receipt.state is ReceiptState.STARTED:
            return self._started(receipt.id, turn)
        return _RECEIPTS[receipt.state].format(turn=turn, step=self._step + 1, position=receipt.position)

    def _started(self, message: str, turn: str) -> str:
        cut = self._cuts.pop(message, "")
        if not cut:
            return f"turn {turn}" if turn else ""
        settle = self._settles.get(cut)
        if settle is None:
            return f"turn {turn_number(cut)} had ended by itself: runs as turn {turn}"
        return f"interrupted turn {turn_number(cut)} in {milliseconds(settle)}: turn {turn}"
