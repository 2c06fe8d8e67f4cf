"""The screen of one session: its widgets, the events that come in, and the tasks that the user started."""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.filter import LineFilter, Monochrome, NoColor
from textual.widgets import Static

from hark.protocol.agent import Agent
from hark.protocol.events import AnyEvent, QuestionAsked, QuestionClosed, ReceiptChanged, TurnEnd, TurnStart
from hark.protocol.names import split_child
from hark.protocol.receipts import ReceiptState
from hark.protocol.session import Session
from hark.surfaces.terminal.conversation_log import ConversationLog
from hark.surfaces.terminal.driver import ControlFilter, GatedApp
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.history import History, SavedDraft
from hark.surfaces.terminal.pending_messages import PendingMessages
from hark.surfaces.terminal.progress import TurnProgress, key_words
from hark.surfaces.terminal.push_to_talk import Talk
from hark.surfaces.terminal.widgets.completion_list import CompletionList
from hark.surfaces.terminal.widgets.composer import Composer, joined
from hark.surfaces.terminal.widgets.picker import Picker, PickerResult
from hark.surfaces.terminal.widgets.question import QuestionPanel
from hark.surfaces.terminal.widgets.queue_panel import QueuePanel
from hark.text.safe_text import safe_line

LEAVE_SECONDS = 0.2
SURFACE = "terminal"

_log = logging.getLogger(__name__)


class ConversationScreen(GatedApp, inherit_bindings=False):
    """Shows one session. Every wish of the person is a task of its own: the input line never waits for one."""

    CSS_PATH = "style.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, agent: Agent, session: str, place: TerminalEnvironment) -> None:
        super().__init__(place.when_deaf)
        self.agent = agent
        self.session: Session = agent.session(session, SURFACE)
        self.place = place
        self.log_view = ConversationLog()
        self.questions = QuestionPanel()
        self.queue_panel = QueuePanel()
        self.composer = Composer(
            place.keys, History(place.home / "history.jsonl"), self.questions, self.wanted, self.answer
        )
        self.progress = TurnProgress()
        self.failure: Exception | None = None
        self.outbox = PendingMessages(self.log_view, self.composer, place.workspace, self.start)
        self.talk = Talk(place, self.log_view, self.draw_progress)
        self.draft = SavedDraft(place.home / "drafts" / session)
        self.choices = CompletionList(self.composer, place.workspace, agent.commands)
        self._where = Static("", id="where", markup=False)
        self._line = Static("", id="progress", markup=False)
        self._footer = Static("", id="footer", markup=False)
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self._is_queue_stale = False
        self.theme = place.theme if place.theme in self.available_themes else _usual_theme()

    def compose(self) -> ComposeResult:
        """The conversation on top, the input line at the bottom."""
        yield self._where
        yield self.log_view
        yield self.queue_panel
        yield self.questions
        yield self.choices
        yield self._line
        yield self.composer
        yield self._footer

    def get_line_filters(self) -> Sequence[LineFilter]:
        """No control character passes, and with NO_COLOR no colour."""
        usual = [NoColor() if isinstance(one, Monochrome) else one for one in super().get_line_filters()]
        return [*usual, ControlFilter()]

    def exit(self, *arguments: Any, **named: Any) -> None:
        """Leave; somebody watches that it does not take long."""
        self.place.leaving()
        super().exit(*arguments, **named)

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

    def _handle_exception(self, error: Exception) -> None:
        # A widget that fails ends this app, and nothing else: whoever runs it looks here, and shows a new one.
        self.failure = self.failure or error
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        self._exit_renderables.clear()

    # Events.

    def read_events(self) -> None:
        """Load the session, and show its events from then on."""
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
            case QuestionClosed(question=question, reason=reason):
                asked = self.questions.close(question)
                if asked is not None and reason != "answered":
                    self.log_view.tell(f"The question was {reason}: {safe_line(asked.text, 100)}")
            case ReceiptChanged(receipt=receipt):
                self.outbox.forget(receipt.id)
                if receipt.state is ReceiptState.WITHDRAWN and receipt.text and self.place.after_stop_edits:
                    self.composer.put(joined(self.composer.text, receipt.text))  # a stop handed it back
                self._refresh_queue_soon()
            case TurnEnd():
                self.questions.close_all()
                self._refresh_queue_soon()
            case TurnStart():
                pass
            case _:
                return
        self.draw_progress()

    async def show_session(self, name: str) -> None:
        """Show another session; what runs in this one runs on."""
        session = self.agent.session(name, SURFACE)
        self.save_draft()
        if self._reading is not None:
            self._reading.cancel()
        self.session = session
        self.draft = SavedDraft(self.place.home / "drafts" / name)
        self.composer.put(self.composer.text or self.draft.read())
        self.progress = TurnProgress()
        self.questions.close_all()
        self.log_view.clear()
        self.log_view.tell(f"session {name}")
        self.read_events()
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
        """Do what a key asks for that was pressed at this time."""
        raise NotImplementedError

    def answer(self, text: str, question: str = "") -> None:
        """Answer a question, or the one on the screen."""
        asked = self.questions.current
        question = question or (asked.question if asked else "")
        if question and text:
            self.start(self._answer(question, text))

    async def _answer(self, question: str, text: str) -> None:
        refusal = await self.session.answer(question, text)
        if refusal is None:
            self.log_view.tell(f"answered: {safe_line(text)}")
        else:
            self.log_view.tell(f"{refusal.message} Your words are back in the input line.")
            self.composer.put(joined(text, self.composer.text))

    async def pick(self, title: str, rows: Sequence[tuple[str, str]], keys: Sequence[str] = ()) -> PickerResult | None:
        """Return the row that the user chooses in a list, or None. `rows` and `keys`: see Picker."""
        chosen: asyncio.Future[PickerResult | None] = asyncio.get_running_loop().create_future()
        self.push_screen(Picker(title, rows, keys), chosen.set_result)
        return await chosen

    def save_draft(self) -> None:
        """Keep what is being typed, and what is not known to be accepted."""
        self.draft.save(joined(*self.outbox.texts, self.composer.stashed, self.composer.text))

    # The lines at the edges.

    def draw_progress(self) -> None:
        """Say what goes on, and which keys do what."""
        session = self.session.id
        parent, call = split_child(session)
        self._where.display = bool(parent)
        self._where.update(f"child {call} of {parent}" if parent else "", layout=False)
        self._line.update(self.talk.line or self.progress.line(time.time()), layout=False)
        is_editing, is_running = self.composer.edited is not None, bool(self.progress.turn)
        keys = key_words(self.place.keys, session, is_editing=is_editing, is_running=is_running)
        model = self.agent.model(session)
        self._footer.update(f"{keys} · {safe_line(session, 60)} · {safe_line(model, 60)}", layout=False)


def _usual_theme() -> str:
    """Return the theme that draws with the terminal's own colours, for a light or a dark background."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "ansi-light" if background in ("7", "15") else "ansi-dark"
