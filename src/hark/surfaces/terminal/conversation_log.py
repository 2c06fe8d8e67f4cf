"""The conversation on the screen: events in, blocks out, and never more work than a frame can take."""

from collections.abc import Mapping, Sequence

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
from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.receipts import Receipt
from hark.surfaces.terminal.message_status import Fates
from hark.surfaces.terminal.widgets.blocks import Block, Called, Ended, Thought, Told, UserBlock
from hark.surfaces.terminal.widgets.prose import Prose, ProseBlock
from hark.surfaces.terminal.widgets.scroll import Scroll
from hark.text.safe_text import safe, safe_line
from hark.text.status_text import effect_words

FRAME_SECONDS = 1 / 20
KEPT_MESSAGES = 500
MOST_BLOCKS = 120
SENDING = "sending …"


class ConversationLog(Scroll):
    """Shows a session's events in order. Pieces of text are gathered and drawn a frame at a time."""

    def __init__(self) -> None:
        super().__init__(id="log")
        self._said: dict[str, UserBlock] = {}
        self._calls: dict[str, Called] = {}
        self._asked: dict[str, str] = {}
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
        blocks, calls, reply = past_blocks(messages, self._said)
        for block in blocks:
            self.drop(block)  # a message that was sent meanwhile has its place among the others
        self._calls |= calls
        self.last_reply = self.last_reply or reply
        self.show_above(blocks)

    def clear(self) -> None:
        """Show nothing of this session any more."""
        self._end_reply()
        for known in (self._said, self._calls, self._asked):
            known.clear()
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
                self._calls[call] = called = Called.started(event)
                self._unfolded(called)
            case CallEnd(call=call):
                self._end_call(event, call)
            case Notice(code=code, text=text):
                self.tell(text, code)
            case RouteChanged(route=route, reason=reason):
                self.tell(f"{route} serves: {reason}", "route")
            case TurnEnd():
                self._end_reply()
                self.show(Ended(event))
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
                self.show(self._calls[call])
        self._outputs.clear()
        if self._thoughts:
            self._think("".join(self._thoughts))
            self._thoughts.clear()
        if self._words:
            text = safe("".join(self._words))
            self._words.clear()
            self._prose = self._prose or Prose(self.show)
            self._prose.add(text)

    def _think(self, text: str) -> None:
        self._thought = self._thought or Thought()
        self._thought.add(text)
        self._unfolded(self._thought)

    def _end_call(self, event: CallEnd, call: str) -> None:
        self.flush()
        block = self._calls.pop(call, None)
        if block is None:
            block = Called(event.name, "{}")  # it was refused before it started
        block.end(event)
        self.show(block)

    def _close_question(self, question: str, reason: str) -> None:
        text = self._asked.pop(question, None)
        if text is not None and reason != "answered":
            self.tell(f"The question was {reason}: {safe_line(text, 100)}")

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


def past_blocks(
    messages: Sequence[Message], known: Mapping[str, UserBlock]
) -> tuple[list[Block], dict[str, Called], str]:
    """Return the last blocks of a transcript, the calls in it that still run, and the last reply.

    Messages whose id is `known` have their block already.
    """
    blocks: list[Block] = []
    calls: dict[str, Called] = {}
    reply = ""

    def show(piece: ProseBlock) -> None:
        if piece not in blocks[-1:]:
            blocks.append(piece)

    for message in messages[-MOST_BLOCKS:]:
        match message:
            case UserMessage(id=name, text=text, author=author):
                blocks.append(known.get(name) or UserBlock(text, author))
            case AssistantMessage(text=text):
                if text:
                    prose = Prose(show)
                    prose.add(safe(text))
                    prose.end()
                    reply = text
                for call in message.calls:
                    blocks.append(called := Called(call.name, call.arguments))
                    calls[call.id] = called
            case CallResult(call=call, text=text):
                if call in calls:
                    calls.pop(call).finish(text, effect_words(message.effect, is_error=message.is_error))
            case Note(text=text):
                blocks.append(Told(text))
    if len(blocks) > MOST_BLOCKS:
        blocks = [Told("… earlier: hark sessions show"), *blocks[-MOST_BLOCKS:]]
    return blocks, calls, reply
