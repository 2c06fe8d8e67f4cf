"""The screen of one session: its widgets, its incoming events and the tasks that the user started."""

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
from hark.protocol.meaning import AnswerMeaning
from hark.protocol.names import split_child
from hark.protocol.receipts import ReceiptState
from hark.protocol.session import Session
from hark.surfaces.terminal.conversation_log import ConversationLog
from hark.surfaces.terminal.driver import ControlCharacterFilter, InputGatedApp
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.history import History, SavedDraft
from hark.surfaces.terminal.pending_messages import PendingMessages
from hark.surfaces.terminal.progress import TurnProgress, format_key_hints
from hark.surfaces.terminal.push_to_talk import PushToTalk
from hark.surfaces.terminal.widgets.completion_list import CompletionList
from hark.surfaces.terminal.widgets.composer import Composer, join_texts
from hark.surfaces.terminal.widgets.picker import Picker, PickerResult
from hark.surfaces.terminal.widgets.question_panel import QuestionPanel
from hark.surfaces.terminal.widgets.queue_panel import QueuePanel
from hark.text.safe_text import sanitize_line

EXIT_WAIT_SECONDS = 0.2
SURFACE = "terminal"

_log = logging.getLogger(__name__)


class ConversationScreen(InputGatedApp, inherit_bindings=False):
    """Shows one session. Each user action runs in its own task, so that the input line never waits."""

    CSS_PATH = "style.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, agent: Agent, session: str, environment: TerminalEnvironment) -> None:
        super().__init__(environment.on_unresponsive)
        self.agent = agent
        self.session: Session = agent.session(session, SURFACE)
        self.environment = environment
        self.log_view = ConversationLog()
        self.questions = QuestionPanel()
        self.queue_panel = QueuePanel()
        self.composer = Composer(
            environment.keys,
            History(environment.home / "history.jsonl"),
            self.questions,
            self.handle_action,
        )
        self.progress = TurnProgress()
        self.failure: Exception | None = None
        self.pending_messages = PendingMessages(self.log_view, self.composer, environment.workspace, self.start_task)
        self.push_to_talk = PushToTalk(environment, self.log_view, self.draw_progress)
        self.draft = SavedDraft(environment.home / "drafts" / session)
        self.completions = CompletionList(self.composer, environment.workspace, agent.commands)
        self._child_banner = Static("", id="where", markup=False)
        self._progress_line = Static("", id="progress", markup=False)
        self._footer = Static("", id="footer", markup=False)
        self._tasks: set[asyncio.Task[None]] = set()
        self._event_task: asyncio.Task[None] | None = None
        self._is_queue_stale = False
        self.theme = environment.theme if environment.theme in self.available_themes else _default_theme()

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom: conversation, panels, input line and footer."""
        yield self._child_banner
        yield self.log_view
        yield self.queue_panel
        yield self.questions
        yield self.completions
        yield self._progress_line
        yield self.composer
        yield self._footer

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters and a filter for control characters. If NO_COLOR is set, omit colours."""
        filters = [NoColor() if isinstance(item, Monochrome) else item for item in super().get_line_filters()]
        return [*filters, ControlCharacterFilter()]

    def exit(self, *arguments: Any, **named: Any) -> None:
        """Exit the app. The `on_exit` callback starts the deadline for exiting."""
        self.environment.on_exit()
        super().exit(*arguments, **named)

    async def on_unmount(self) -> None:
        """Stop the app's tasks and store the unsent text as a draft."""
        if self._event_task is not None:
            self._event_task.cancel()
        await self.push_to_talk.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=EXIT_WAIT_SECONDS)
        self.save_draft()
        for task in self._tasks:
            task.cancel()

    def _handle_exception(self, error: Exception) -> None:
        # A failed widget ends only this app. The caller reads `failure` and starts a new app.
        self.failure = self.failure or error
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        self._exit_renderables.clear()

    # Events.

    def read_events(self) -> None:
        """Load the session, then show its events as they arrive."""
        reading = self._run_action(self._show_events(self.session))
        self._event_task = asyncio.create_task(reading, name="terminal events")

    async def _show_events(self, session: Session) -> None:
        await session.wait_until_loaded()
        past = await session.history()
        events = session.events()  # no event is lost: nothing is awaited since the history was read
        self.log_view.show_history(past.messages)
        self.progress.interrupted_turn = past.resumable[-1] if past.resumable else ""
        if running := session.running_turn():
            self.progress.join_running_turn(running.turn, time.time())
            for asked in running.questions:
                self._handle_event(asked)
            self.log_view.show_notice("Joined a running turn. Earlier output is not shown.", "joined")
        await self.refresh_queue()
        async for event in events:
            try:
                self._handle_event(event)
            except Exception as error:  # noqa: BLE001 - the surface boundary: the other events are still shown
                _log.exception("an event could not be displayed")
                self.log_view.show_notice(f"An event could not be displayed: {error!r}", "error")

    def _handle_event(self, event: AnyEvent) -> None:
        self.progress.update(event)
        self.log_view.show_event(event)
        match event:
            case QuestionAsked():
                self.questions.add_question(event)
            case QuestionClosed(question=question, reason=reason):
                asked = self.questions.close_question(question)
                if asked is not None and reason != "answered":
                    self.log_view.show_notice(f"The question was {reason}: {sanitize_line(asked.text, 100)}")
            case ReceiptChanged(receipt=receipt):
                self.pending_messages.mark_accepted(receipt.id)
                if receipt.state is ReceiptState.WITHDRAWN and receipt.text and self.environment.after_stop_edits:
                    self.composer.set_text(join_texts(self.composer.text, receipt.text))  # a stop returned the text
                self._refresh_queue_soon()
            case TurnEnd():
                self.questions.close_turn()
                self._refresh_queue_soon()
            case TurnStart():
                pass
            case _:
                return
        self.draw_progress()

    async def show_session(self, name: str) -> None:
        """Switch to another session. A turn in the current session continues to run."""
        session = self.agent.session(name, SURFACE)
        self.save_draft()
        if self._event_task is not None:
            self._event_task.cancel()
        self.session = session
        self.draft = SavedDraft(self.environment.home / "drafts" / name)
        self.composer.set_text(self.composer.text or self.draft.read())
        self.progress = TurnProgress()
        self.questions.close_all()
        self.log_view.clear()
        self.log_view.show_notice(f"Session {name}")
        self.read_events()
        self.draw_progress()

    def _refresh_queue_soon(self) -> None:
        if not self._is_queue_stale:  # one refresh covers several changes
            self._is_queue_stale = True
            self.start_task(self.refresh_queue())

    async def refresh_queue(self) -> None:
        """Show the current queue in the panel."""
        await asyncio.sleep(0)
        self._is_queue_stale = False
        self.queue_panel.show_items(await self.session.queue())
        if self.focused is None or (self.focused is self.queue_panel and not self.queue_panel.display):
            self.composer.focus()

    # User actions.

    def start_task(self, action: Coroutine[Any, Any, None]) -> None:
        """Run a user action as a task. The task is cancelled when the app exits."""
        task = asyncio.create_task(self._run_action(action))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_action(self, action: Coroutine[Any, Any, None]) -> None:
        try:
            await action
        except Exception as error:  # noqa: BLE001 - the surface boundary: the error is shown, the app continues
            _log.exception("a user action failed")
            self.log_view.show_notice(f"Failed: {error}")

    def handle_action(self, action: str, pressed_at: float) -> None:
        """Run the action for a key that was pressed at `pressed_at`."""
        raise NotImplementedError

    async def send_answer(self, answer: AnswerMeaning, typed: str) -> None:
        """Answer a question. `typed` is the text that the user typed; it returns to the input line if refused."""
        refusal = await self.session.answer(answer.question, answer.text)
        if refusal is None:
            self.log_view.show_notice(f"Answered: {sanitize_line(answer.text)}")
        else:
            self.log_view.show_notice(f"{refusal.message} Your text is back in the input line.")
            self.composer.set_text(join_texts(typed, self.composer.text))

    async def pick_row(
        self, title: str, rows: Sequence[tuple[str, str]], keys: Sequence[str] = ()
    ) -> PickerResult | None:
        """Show a list and return the row that the user chooses, or None. See Picker for `rows` and `keys`."""
        chosen: asyncio.Future[PickerResult | None] = asyncio.get_running_loop().create_future()
        self.push_screen(Picker(title, rows, keys), chosen.set_result)
        return await chosen

    def save_draft(self) -> None:
        """Store the text in the input line and all messages that have not been accepted as a draft."""
        self.draft.save(join_texts(*self.pending_messages.texts, self.composer.stashed_text, self.composer.text))

    # Status lines.

    def draw_progress(self) -> None:
        """Draw the progress line, the banner of a child session, and the footer."""
        session = self.session.id
        parent, call = split_child(session)
        self._child_banner.display = bool(parent)
        self._child_banner.update(f"child {call} of {parent}" if parent else "", layout=False)
        self._progress_line.update(self.push_to_talk.status_line or self.progress.describe(time.time()), layout=False)
        is_editing, is_running = self.composer.edited_item is not None, bool(self.progress.turn)
        keys = format_key_hints(
            self.environment.keys,
            session,
            is_editing=is_editing,
            is_running=is_running,
            interrupted_turn=self.progress.interrupted_turn,
        )
        model = self.agent.first_route(session)
        self._footer.update(f"{keys} · {sanitize_line(session, 60)} · {sanitize_line(model, 60)}", layout=False)


def _default_theme() -> str:
    """Return the theme that uses the terminal's own colours and matches its light or dark background."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "ansi-light" if background in ("7", "15") else "ansi-dark"
