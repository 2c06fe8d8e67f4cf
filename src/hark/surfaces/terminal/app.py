"""The terminal app: one session on the screen, and an input line that is always live."""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.filter import LineFilter, Monochrome, NoColor
from textual.widgets import Static

from hark.protocol.agent import Agent
from hark.protocol.commands import Delivery
from hark.protocol.events import AnyEvent, QuestionAsked, QuestionClosed, ReceiptChanged, TurnEnd, TurnStart
from hark.protocol.meaning import AnswerMeaning
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.session import Session
from hark.surfaces.terminal.actions import Acts
from hark.surfaces.terminal.conversation_log import ConversationLog
from hark.surfaces.terminal.driver import ControlFilter, GatedApp
from hark.surfaces.terminal.environment import EarlyInput, TerminalEnvironment
from hark.surfaces.terminal.history import History, SavedDraft
from hark.surfaces.terminal.pending_messages import PendingMessages
from hark.surfaces.terminal.progress import TurnProgress
from hark.surfaces.terminal.push_to_talk import Talk
from hark.surfaces.terminal.terminal_commands import TerminalCommands
from hark.surfaces.terminal.widgets.completion_list import CompletionList
from hark.surfaces.terminal.widgets.composer import Composer
from hark.surfaces.terminal.widgets.footer import footer_words, where_words
from hark.surfaces.terminal.widgets.question import QuestionPanel
from hark.surfaces.terminal.widgets.queue_panel import QueuePanel

PROGRESS_SECONDS = 0.25
DRAFT_SECONDS = 0.3
LEAVE_SECONDS = 0.2
SURFACE = "terminal"

_log = logging.getLogger(__name__)


class TerminalApp(GatedApp, inherit_bindings=False):
    """Shows one session. Every wish of the person is a task of its own: the input line never waits for one."""

    CSS_PATH = "style.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, agent: Agent, session: str, place: TerminalEnvironment) -> None:
        super().__init__()
        self.agent = agent
        self.session: Session = agent.session(session, SURFACE)
        self.place = place
        self.log_view = ConversationLog()
        self.questions = QuestionPanel()
        self.queue_panel = QueuePanel()
        self.composer = Composer(place.keys, History(place.home / "history.jsonl"), self)
        self.progress = TurnProgress()
        self.failure: Exception | None = None
        self.outbox = PendingMessages(self)
        self.talk = Talk(self)
        self._acts = Acts(self)
        self._own = TerminalCommands(self)
        self._choices = CompletionList(self.composer, place.workspace, agent.commands)
        self._draft = SavedDraft(place.home / "drafts" / session)
        self._before = EarlyInput()
        self._where = Static("", id="where", markup=False)
        self._line = Static("", id="progress", markup=False)
        self._footer = Static("", id="footer", markup=False)
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self._is_queue_stale = False
        self._typed_under = ""  # the question that was on the screen when the person began to type
        self.theme = place.theme if place.theme in self.available_themes else _usual_theme()

    def compose(self) -> ComposeResult:
        """The conversation on top, the input line at the bottom."""
        yield self._where
        yield self.log_view
        yield self.queue_panel
        yield self.questions
        yield self._choices
        yield self._line
        yield self.composer
        yield self._footer

    def get_line_filters(self) -> Sequence[LineFilter]:
        """No control character passes, and with NO_COLOR no colour."""
        usual = [NoColor() if isinstance(one, Monochrome) else one for one in super().get_line_filters()]
        return [*usual, ControlFilter()]

    # The beginning and the end.

    def on_load(self) -> None:
        """Take the terminal over from whoever read it before."""
        self._before = self.place.take_over()
        self.read_before = self._before.rest

    def on_mount(self) -> None:
        """Be ready to type at once; the session loads behind it."""
        self.screen.set_focus(self.composer)
        for text in self._before.sent:
            self.composer.put(text)
            self.send()
        self.composer.put(self._before.text or self._draft.read())
        for notice in self.place.notices:
            self.log_view.tell(notice)
        self.set_interval(PROGRESS_SECONDS, self.draw_progress)
        self.set_interval(DRAFT_SECONDS, self.save_draft)
        self._read_on()
        self.draw_progress()
        self.call_after_refresh(self.keys_may_come.set)

    async def on_unmount(self) -> None:
        """End what the app started; what is unsent stays as a draft."""
        if self._reading is not None:
            self._reading.cancel()
        await self.talk.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAVE_SECONDS)
        self.save_draft()
        for task in self._tasks:
            task.cancel()

    def exit(self, *arguments: Any, **named: Any) -> None:
        """Leave; somebody watches that it does not take long."""
        self.place.leaving()
        super().exit(*arguments, **named)

    def be_deaf(self, *, is_again: bool) -> None:
        """The person wants to leave and the loop does not hear it."""
        self.place.when_deaf(is_again=is_again)

    def _handle_exception(self, error: Exception) -> None:
        # A widget that fails ends this app, and nothing else: whoever runs it looks here, and shows a new one.
        self.failure = self.failure or error
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        self._exit_renderables.clear()

    # Events.

    def _read_on(self) -> None:
        self._reading = asyncio.create_task(self._wish(self._read(self.session)), name="terminal events")

    async def _read(self, session: Session) -> None:
        await session.opened()
        past = await session.history()
        events = session.events()  # nothing comes between: what is not in the past is an event
        self.log_view.show_past(past.messages)
        if running := session.running():
            self.progress.join(running.turn, time.time())
            self.log_view.tell("A turn runs here; what it says from now on is shown.", "joined")
        await self.refresh_queue()
        async for event in events:
            try:
                self._take(event)
            except Exception as error:  # noqa: BLE001 - the surface's loop: one event that can't be shown costs no other
                _log.exception("an event could not be shown")
                self.log_view.tell(f"Something could not be shown: {error!r}", "error")

    def _take(self, event: AnyEvent) -> None:
        self.progress.take(event)
        self.log_view.take(event)
        match event:
            case QuestionAsked():
                self.questions.ask(event)
            case QuestionClosed(question=question):
                self.questions.close(question)
            case ReceiptChanged(receipt=receipt):
                self.outbox.forget(receipt.id)
                self._take_back(receipt)
                self._refresh_queue_soon()
            case TurnEnd():
                self.questions.close_all()
                self._refresh_queue_soon()
            case TurnStart():
                pass
            case _:
                return
        self.composer.asks_first = self.questions.current is not None
        self.draw_progress()

    def _take_back(self, receipt: Receipt) -> None:
        """Put the text of a message that a stop handed back into the input line."""
        if receipt.state is ReceiptState.WITHDRAWN and receipt.text and self.place.after_stop_edits:
            self.composer.put("\n".join(part for part in (self.composer.text, receipt.text) if part))

    async def show_session(self, name: str) -> None:
        """Show another session; what runs in this one runs on."""
        session = self.agent.session(name, SURFACE)
        self.save_draft()
        if self._reading is not None:
            self._reading.cancel()
        self.session = session
        self._draft = SavedDraft(self.place.home / "drafts" / name)
        self.composer.put(self.composer.text or self._draft.read())
        self.progress = TurnProgress()
        self.questions.close_all()
        self.composer.asks_first = False
        self.log_view.clear()
        self.log_view.tell(f"session {name}")
        self._read_on()
        self.draw_progress()

    def _refresh_queue_soon(self) -> None:
        if not self._is_queue_stale:  # one look is enough for many changes
            self._is_queue_stale = True
            self.start(self.refresh_queue())

    async def refresh_queue(self) -> None:
        """Show what waits now."""
        await asyncio.sleep(0)
        self._is_queue_stale = False
        self.queue_panel.show(await self.session.queue())
        if self.focused is None or (self.focused is self.queue_panel and not self.queue_panel.display):
            self.composer.focus()

    # The person's wishes.

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Carry out a wish, in a task that the app ends when it ends."""
        task = asyncio.create_task(self._wish(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wish(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the surface's boundary: the person is told, and goes on
            _log.exception("a wish could not be carried out")
            self.log_view.tell(f"That could not be done: {error}")

    def wanted(self, act: str, at: float) -> None:
        """Do what a key asks for, at once."""
        try:
            if not self._choices.do(act):
                self._acts.do(act, at)
        except Exception as error:  # noqa: BLE001 - the surface's boundary: a key that fails costs no other
            _log.exception("a key could not be obeyed")
            self.log_view.tell(f"That could not be done: {error}")

    def begun(self) -> None:
        """Note which question the text may answer: the one that is there before its first letter."""
        self._typed_under = self.questions.takes_words

    def answered(self, key: str) -> bool:
        """Take a single key in an empty line for an answer; False when it is none."""
        choice = self.questions.choice(key)
        if choice is not None:
            self._acts.answer(choice)
        return choice is not None

    def on_queue_panel_wanted(self, event: QueuePanel.Wanted) -> None:
        """Do what the person wants with a message that waits."""
        self._acts.change_queue(event)

    def on_key(self, event: events.Key) -> None:
        """Have a letter that nobody wanted go to the input line."""
        is_ours = self.focused is None or (self.focused is not self.composer and event.is_printable)
        if is_ours and len(self.screen_stack) == 1:
            self.screen.set_focus(self.composer)
            self.composer.post_message(event)

    def on_text_area_changed(self) -> None:
        """Show what the word at the cursor could become."""
        self._choices.look()

    def send(self, delivery: Delivery | None = None) -> None:
        """Send what was typed. It is the answer to a question only when that was there before the first letter."""
        question, self._typed_under = self._typed_under, ""
        text = self.composer.text
        is_answer = bool(question) and delivery is None and bool(text.strip())
        meaning = self.session.meaning(text, lambda text: AnswerMeaning(question, text) if is_answer else None)
        if isinstance(meaning, AnswerMeaning):
            if not self.questions.is_open(question):
                self.log_view.tell("The question is no longer open. Enter once more sends your words as a message.")
                return
            self._acts.answer(self.composer.take(), question)
        elif self._acts.is_editing:
            self._acts.end_edit(self.composer.text)
        elif text := self.composer.take():
            self._say_soon(text, delivery)

    def say_spoken(self, session: Session, text: str) -> None:
        """Go on with what was said aloud in a session as with typed words: a stop, an answer, or a message."""
        question = self.questions.takes_words if session is self.session else ""
        meaning = session.meaning(text, lambda text: AnswerMeaning(question, text) if question else None)
        if isinstance(meaning, AnswerMeaning):
            self._acts.answer(text, question)
        elif session is self.session:
            self._say_soon(text, None)
        else:
            self.outbox.send(session.new_id(), text, None, session)

    def _say_soon(self, text: str, delivery: Delivery | None) -> None:
        message = self.session.new_id()
        self.log_view.sending(message, text)
        if self._own.knows(text):
            self.log_view.became(message, "")
            self.start(self._own.run(text))
        else:
            self.outbox.send(message, text, delivery)

    def save_draft(self) -> None:
        """Keep what is being typed, and what is not known to be accepted."""
        texts = [*self.outbox.texts, self._acts.stashed, self.composer.text]
        self._draft.save("\n".join(text for text in texts if text))

    @property
    def is_editing(self) -> bool:
        """True while a waiting message is in the input line."""
        return self._acts.is_editing

    @property
    def has_draft(self) -> bool:
        """True when something was left unsent."""
        return self._draft.has_text

    # The lines at the bottom.

    def draw_progress(self) -> None:
        """Say what goes on, and which keys do what."""
        now = time.time()
        line = self.progress.line(now)
        line = f"⋯ {line} · {self.progress.total(now)} in all" if line else ""
        self._line.update(self.talk.line or line, layout=False)
        self._footer.update(footer_words(self), layout=False)
        where = where_words(self.session.id)
        self._where.display = bool(where)
        self._where.update(where, layout=False)


def _usual_theme() -> str:
    """Return the theme that draws with the terminal's own colours, for a light or a dark background."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "ansi-light" if background in ("7", "15") else "ansi-dark"
