"""The displayed conversation: converts events to blocks, with bounded drawing work per frame."""

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
from hark.surfaces.terminal.widgets.block_scroll_view import BlockScrollView
from hark.surfaces.terminal.widgets.blocks import (
    NOTICE_STYLE,
    SIDE_ANSWER_STYLE,
    Block,
    CallBlock,
    NoticeBlock,
    ThoughtBlock,
    UserBlock,
)
from hark.surfaces.terminal.widgets.streamed_reply import ReplyBlockSplitter
from hark.text.safe_text import sanitize_text
from hark.text.status_text import describe_turn_end, format_milliseconds, turn_number

FRAME_SECONDS = 1 / 20
MAX_TRACKED_MESSAGES = 500
MAX_TRACKED_TURNS = 200
MAX_HISTORY_BLOCKS = 120
SENDING = "sending …"
_END_STYLES: dict[type[Outcome], str] = {Completed: "dim", Interrupted: NOTICE_STYLE}  # other outcomes are drawn in red
_RECEIPT_TEXTS = {
    ReceiptState.INTERRUPTING: "interrupting turn {turn} …",
    ReceiptState.STEERING: "steering turn {turn} at its next step",
    ReceiptState.STEERED: "steered into turn {turn}, step {step}",
    ReceiptState.QUEUED: "queued #{position}",
    ReceiptState.HELD: "held #{position}; your next message releases it",
    ReceiptState.EDITED: "edited, queued #{position}",
    ReceiptState.WITHDRAWN: "withdrawn",
    ReceiptState.DUPLICATE: "already received",
    ReceiptState.REFUSED: "not accepted: {reason}",
}


class ConversationLog(BlockScrollView):
    """Shows a session's events in order. Text is buffered and drawn once per frame."""

    def __init__(self) -> None:
        super().__init__(id="log")
        self._user_blocks: dict[str, UserBlock] = {}
        self._call_blocks: dict[str, CallBlock] = {}
        self._last_notice: tuple[str, NoticeBlock] | None = None
        self._receipts = ReceiptTracker()
        self._reply: ReplyBlockSplitter | None = None
        self._thought: ThoughtBlock | None = None
        self._reply_chunks: list[str] = []
        self._thought_chunks: list[str] = []
        self._output_chunks: dict[str, list[str]] = {}
        self._is_unfolded = False
        self.last_reply = ""

    def on_mount(self) -> None:
        """Start the timer that draws the buffered text."""
        super().on_mount()
        self.set_interval(FRAME_SECONDS, self.flush)

    def show_history(self, messages: Sequence[Message]) -> None:
        """Show the most recent messages of a session above the blocks that were added during loading."""
        blocks = self._history_blocks(messages)
        for block in blocks:
            self.remove_block(block)  # a message sent while loading is shown at its position in the history
        self.prepend(blocks)

    def _history_blocks(self, messages: Sequence[Message]) -> list[Block]:
        blocks: list[Block] = []
        reply = ""
        for message in messages[-MAX_HISTORY_BLOCKS:]:
            match message:
                case UserMessage(id=name, text=text, author=author):
                    blocks.append(self._user_blocks.get(name) or UserBlock(text, author))
                case AssistantMessage(text=text):
                    if text:
                        prose = ReplyBlockSplitter(lambda _: None)
                        prose.add(sanitize_text(text))
                        prose.finish()
                        blocks.extend(prose.blocks)
                        reply = text
                    for call in message.calls:
                        self._call_blocks[call.id] = called = CallBlock(call.name, call.arguments)
                        blocks.append(called)
                case CallResult(call=call):
                    if call in self._call_blocks:
                        self._call_blocks.pop(call).end(message)
                case Note(text=text):
                    blocks.append(NoticeBlock(text))
        self.last_reply = self.last_reply or reply
        if len(blocks) > MAX_HISTORY_BLOCKS:
            blocks = [NoticeBlock("… earlier messages: hark sessions show"), *blocks[-MAX_HISTORY_BLOCKS:]]
        return blocks

    def clear(self) -> None:
        """Remove all blocks and reset the state, to show another session."""
        self._end_reply()
        self._user_blocks.clear()
        self._call_blocks.clear()
        self._last_notice = None
        self.last_reply = ""
        self.remove_all_blocks()

    def show_sending(self, message: str, text: str) -> None:
        """Show a message as being sent, so that the user sees immediately that Enter worked."""
        self._end_reply()
        self._add_user_block(message, UserBlock(text))
        self.set_receipt(message, SENDING)
        self.follow_end()

    def set_receipt(self, message: str, text: str) -> None:
        """Set the receipt text below a message."""
        if message in self._user_blocks and self._user_blocks[message].receipt != text:
            self._user_blocks[message].receipt = text
            self.redraw_soon(self._user_blocks[message])

    def show_receipt(self, receipt: Receipt) -> None:
        """Show the receipt of an accepted message, unless an event has already set a newer receipt."""
        if receipt.id in self._user_blocks and self._user_blocks[receipt.id].receipt == SENDING:
            self.set_receipt(receipt.id, self._receipts.describe(receipt))

    def show_notice(self, text: str, code: str = "") -> None:
        """Show a notice. If the last block is a notice with the same code, replace it."""
        self.flush()
        known = self._last_notice[1] if code and self._last_notice and self._last_notice[0] == code else None
        if known is None or known not in self.blocks[-1:]:
            known = NoticeBlock(text)
            self._last_notice = code, known
        known.text = text
        self.show(known)

    def toggle_folds(self) -> None:
        """Expand all output and thinking, or collapse them again."""
        self._is_unfolded = not self._is_unfolded
        for block in self.blocks:
            if block.is_foldable:
                block.is_open = self._is_unfolded
                self.redraw_soon(block)

    def show_event(self, event: AnyEvent) -> None:
        """Show an event without waiting. Its text is drawn with the next frame."""
        match event:
            case ReplyDelta(text=text):
                self._reply_chunks.append(text)
            case CallOutput(call=call, text=text):
                self._output_chunks.setdefault(call, []).append(text)
            case ReasoningDelta(text=text):
                self._thought_chunks.append(text)
            case MessageAccepted(id=message, text=text, author=author):
                if message not in self._user_blocks:
                    self._end_reply()
                    self._add_user_block(message, UserBlock(text, author))
            case StepStart():
                self._end_reply()
            case ReplyRestarted():
                self._discard_reply()
            case CallStart(call=call):
                self._end_reply()
                self._call_blocks[call] = called = CallBlock(event.name, event.arguments)
                self._show_foldable(called)
            case CallEnd(call=call):
                self._end_call(event, call)
            case Notice(code="btw", text=text):
                self.flush()
                self.show(NoticeBlock(text, SIDE_ANSWER_STYLE, has_margin=True))
            case Notice(code=code, text=text):
                self.show_notice(text, code)
            case RouteChanged(route=route, reason=reason):
                self.show_notice(f"Switched to {route}: {reason}", "route")
            case TurnEnd():
                self._end_reply()
                style = _END_STYLES.get(type(event.outcome), "bold red")
                self.show(NoticeBlock(f"── {describe_turn_end(event)}", style))
            case _:
                pass
        self._receipts.update(event)
        if isinstance(event, ReceiptChanged):
            self.set_receipt(event.receipt.id, self._receipts.describe(event.receipt))

    def flush(self) -> None:
        """Draw the buffered text and output."""
        for call, pieces in self._output_chunks.items():
            if call in self._call_blocks:
                self._call_blocks[call].add("".join(pieces))
                self.show(self._call_blocks[call])
        self._output_chunks.clear()
        if self._thought_chunks:
            self._thought = self._thought or ThoughtBlock()
            self._thought.add("".join(self._thought_chunks))
            self._thought_chunks.clear()
            self._show_foldable(self._thought)
        if self._reply_chunks:
            text = sanitize_text("".join(self._reply_chunks))
            self._reply_chunks.clear()
            self._reply = self._reply or ReplyBlockSplitter(self.show)
            self._reply.add(text)

    def _end_call(self, event: CallEnd, call: str) -> None:
        self.flush()
        block = self._call_blocks.pop(call, None) or CallBlock(event.name, "{}")  # refused before it started
        block.end(event)
        self.show(block)

    def _discard_reply(self) -> None:
        """Remove the reply text of this step, because the provider sends it again."""
        self._reply_chunks.clear()
        if self._reply is not None:
            for piece in self._reply.blocks:
                self.remove_block(piece)
            self._reply = None

    def _end_reply(self) -> None:
        self.flush()
        if self._reply is not None:
            self._reply.finish()
            self.last_reply = self._reply.text
        self._reply = None
        self._thought = None

    def _show_foldable(self, block: Block) -> None:
        block.is_open = block.is_open or self._is_unfolded
        self.show(block)

    def _add_user_block(self, message: str, block: UserBlock) -> None:
        self._user_blocks[message] = block
        self.show(block)
        if len(self._user_blocks) > MAX_TRACKED_MESSAGES:
            del self._user_blocks[next(iter(self._user_blocks))]


class ReceiptTracker:
    """Tracks which message interrupted which turn and how those turns ended, to describe receipts."""

    def __init__(self) -> None:
        self._interrupted_turns: dict[str, str] = {}
        self._stop_times: dict[str, float | None] = {}
        self._step = 0

    def update(self, event: AnyEvent) -> None:
        """Update the tracked turns with an event."""
        match event:
            case StepStart(step=step):
                self._step = step  # a steer is accepted before its step starts
            case TurnEnd(outcome=outcome, timings=timings):
                self._stop_times[event.turn or ""] = timings.settle if isinstance(outcome, Interrupted) else None
                self._step = 0
                if len(self._stop_times) > MAX_TRACKED_TURNS:
                    del self._stop_times[next(iter(self._stop_times))]
            case ReceiptChanged(receipt=receipt) if receipt.state is ReceiptState.INTERRUPTING and receipt.turn:
                self._interrupted_turns[receipt.id] = receipt.turn
            case _:
                pass

    def describe(self, receipt: Receipt) -> str:
        """Return a short description of a message's receipt."""
        turn = turn_number(receipt.turn)
        if receipt.state is ReceiptState.STARTED:
            return self._describe_start(receipt.id, turn)
        values = {"turn": turn, "step": self._step + 1, "position": receipt.position, "reason": receipt.reason}
        return _RECEIPT_TEXTS[receipt.state].format(**values)

    def _describe_start(self, message: str, turn: str) -> str:
        interrupted_turn = self._interrupted_turns.pop(message, "")
        if not interrupted_turn:
            return f"turn {turn}" if turn else ""
        stop_time = self._stop_times.get(interrupted_turn)
        if stop_time is None:
            return f"turn {turn_number(interrupted_turn)} had already ended · turn {turn}"
        return f"interrupted turn {turn_number(interrupted_turn)} in {format_milliseconds(stop_time)} · turn {turn}"
