"""The terminal app: turns key presses and submitted text into actions on the displayed session."""

import logging
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual import events

from hark.protocol.agent import Agent
from hark.protocol.commands import Delivery
from hark.protocol.meaning import AnswerMeaning, InvalidAnswerMeaning, Meaning
from hark.protocol.receipts import QueueItem, Refusal
from hark.protocol.session import Session
from hark.surfaces.terminal.early_input import EarlyInput
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.keys import key_label
from hark.surfaces.terminal.screen import ConversationScreen
from hark.surfaces.terminal.terminal_commands import TerminalCommands
from hark.surfaces.terminal.widgets.composer import join_texts
from hark.surfaces.terminal.widgets.queue_panel import QueuePanel
from hark.text.safe_text import sanitize_input
from hark.text.status_text import format_count

PROGRESS_INTERVAL_SECONDS = 0.25
DRAFT_INTERVAL_SECONDS = 0.3
DOUBLE_PRESS_SECONDS = 2.0
REWIND_SECONDS = 0.6

_log = logging.getLogger(__name__)


class TerminalApp(ConversationScreen, inherit_bindings=False):
    """The terminal app. Executes the user's actions; slow work runs in tasks."""

    def __init__(self, agent: Agent, session: str, environment: TerminalEnvironment) -> None:
        super().__init__(agent, session, environment)
        self.commands = TerminalCommands(self, self._toggle_recording)
        self._early_input = EarlyInput()
        self._quit_pressed_at = 0.0
        self._stop_pressed_at = 0.0
        self._key_actions: dict[str, Callable[[], None]] = {
            "send": self.send,
            "queue": lambda: self.send(Delivery.QUEUE),
            "steer": lambda: self.send(Delivery.STEER),
            "end": self.exit,
            "answer": self._focus_question,
            "editor": self._open_editor,
            "unfold": self.log_view.toggle_folds,
            "waiting": self._focus_queue,
            "talk": self._toggle_recording,
            "page_up": self.log_view.action_page_up,
            "page_down": self.log_view.action_page_down,
            "rewind": lambda: self.start_task(self.commands.pick_rewind_point()),
            "resume": lambda: self.start_task(self._continue_turn()),
            "children": lambda: self.start_task(self.commands.pick_child()),
        }

    def on_load(self) -> None:
        """Take over the terminal from the early input line."""
        self._early_input = self.environment.finish_early_input()
        self.early_bytes = self._early_input.unprocessed_bytes

    def on_mount(self) -> None:
        """Focus the input line immediately. The session loads in the background."""
        self.screen.set_focus(self.composer)
        for text in self._early_input.sent:
            self.composer.set_text(text)
            self.send()
        self.composer.set_text(self._early_input.text or self.draft.read())
        for notice in self.environment.notices:
            self.log_view.show_notice(notice)
        self.set_interval(PROGRESS_INTERVAL_SECONDS, self.draw_progress)
        self.set_interval(DRAFT_INTERVAL_SECONDS, self.save_draft)
        self.read_events()
        self.draw_progress()
        self.call_after_refresh(self.input_enabled.set)

    # Keys.

    def handle_action(self, action: str, pressed_at: float) -> None:
        """Run a key's action immediately. `pressed_at` allows detecting double presses even if the screen is busy."""
        try:
            if self.completions.handle_action(action):
                return
            if action in ("stop", "leave") and self.push_to_talk.discard():
                return  # discard only the recording
            if action in ("stop", "leave") and self.composer.edited_item:
                self._finish_edit(None)
            elif action == "stop":
                self._handle_stop_key(pressed_at)
            elif action == "leave":
                self._handle_quit_key(pressed_at)
            elif action in self._key_actions:
                self._key_actions[action]()
        except Exception as error:  # noqa: BLE001 - the surface boundary: a failed action must not end the app
            _log.exception("the action of a key binding failed")
            self.log_view.show_notice(f"Failed: {error}")

    def on_key(self, event: events.Key) -> None:
        """Pass a printable key that no other widget handled to the input line."""
        is_ours = self.focused is None or (self.focused is not self.composer and event.is_printable)
        if is_ours and len(self.screen_stack) == 1:
            self.screen.set_focus(self.composer)
            self.composer.post_message(event)

    def on_text_area_changed(self) -> None:
        """Update the completions for the word at the cursor."""
        self.completions.update_completions()

    def _handle_stop_key(self, pressed_at: float) -> None:
        """Stop the side question or the displayed turn. A second press soon after the turn's opens the rewind list."""
        if self.session.stop_side_questions():
            return
        if pressed_at - self._stop_pressed_at < REWIND_SECONDS:
            self._stop_pressed_at = 0.0
            self.start_task(self.commands.pick_rewind_point())
        else:
            self._stop_pressed_at = pressed_at
            self.start_task(self._interrupt_turn())

    def _handle_quit_key(self, pressed_at: float) -> None:
        """Clear the input line. If it is empty, stop the turn; if no turn is running, quit on the second press."""
        if self.composer.text:
            self.composer.pop_text()  # Up restores the text
        elif self.session.stop_side_questions():
            pass  # a second press stops the turn
        elif self.progress.turn:
            self.start_task(self._interrupt_turn())
        elif pressed_at - self._quit_pressed_at < DOUBLE_PRESS_SECONDS:
            self.exit()
        else:
            self._quit_pressed_at = pressed_at
            self.log_view.show_notice(f"Press {key_label(self.environment.keys.leave)} again to quit.", "leave")

    async def _interrupt_turn(self) -> None:
        session, turn = self.session, self.progress.turn
        # Without a turn, the stop covers every message.
        pending = self.pending_messages.message_ids(session.id) if turn else ()
        settled = await session.interrupt("user", turn, messages=pending)
        if settled is not None and (queued := await session.queue()):
            count = format_count(len(queued), "queued message")
            are, them = ("is", "it") if len(queued) == 1 else ("are", "them")
            edit_key = key_label(self.environment.keys.waiting)
            text = f"{count} {are} on hold. Your next message releases {them}; {edit_key} edits."
            self.log_view.show_notice(text, "held")

    async def _continue_turn(self) -> None:
        await self.session.say("/continue")

    def _open_editor(self) -> None:
        """Edit the typed text in the user's editor. The app and its event loop are suspended until the editor exits."""
        command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        with tempfile.NamedTemporaryFile("w", suffix=".md", delete=False, encoding="utf-8") as file:
            file.write(self.composer.text)
        path = Path(file.name)
        try:
            with self.suspend():
                subprocess.run([*command, str(path)], check=False)  # noqa: S603 - the user's own editor
            self.composer.set_text(sanitize_input(path.read_text("utf-8", "replace")).rstrip("\n"))
        except OSError as error:
            self.log_view.show_notice(f"Could not start {command[0]}: {error}. Set EDITOR to another program.")
        finally:
            path.unlink(missing_ok=True)

    # The queue.

    def _focus_queue(self) -> None:
        panel = self.queue_panel
        if panel.display:
            panel.highlighted = 0
            self.screen.set_focus(panel)
        else:
            self.log_view.show_notice("The queue is empty.", "queue")

    def on_queue_panel_action_requested(self, request: QueuePanel.ActionRequested) -> None:
        """Apply the action that the user chose for a queued message."""
        match request.action:
            case "leave":
                self.composer.focus()
            case "edit":
                self.composer.begin_edit(request.item)
                self.draw_progress()
            case _:
                self.start_task(self._apply_queue_action(request))

    def _finish_edit(self, text: str | None) -> None:
        """Stop editing a queued message and save `text` as its new text. None discards the changes."""
        item = self.composer.end_edit()
        if item is not None and text is not None and text.strip() and text != item.text:
            self.start_task(self._save_edit(item, text))
        self.draw_progress()

    async def _apply_queue_action(self, request: QueuePanel.ActionRequested) -> None:
        session, item = self.session, request.item
        match request.action:
            case "withdraw":
                refusal = await session.withdraw(item.id)
            case "up":
                refusal = await session.move(item.id, max(1, request.position - 1))
            case "down":
                refusal = await session.move(item.id, request.position + 1)
            case _:
                refusal = await self._send_queued_now(item)
        if refusal:
            self.log_view.show_notice(refusal.message)
        await self.refresh_queue()

    async def _send_queued_now(self, item: QueueItem) -> Refusal | None:
        session = self.session
        positions = [position for position, queued in enumerate(await session.queue(), 1) if queued.id == item.id]
        if not positions:
            return Refusal("not_waiting", "That message is no longer queued.")
        await session.say(f"/queue {positions[0]} now")
        return None

    async def _save_edit(self, item: QueueItem, text: str) -> None:
        refusal = await self.session.edit(item.id, text)
        if refusal:
            self.log_view.show_notice(f"{refusal.message} Your text is in the input line.")
            self.composer.set_text(join_texts(self.composer.text, text))
        await self.refresh_queue()

    # Sending.

    def send(self, delivery: Delivery | None = None) -> None:
        """Send the typed text, as a message or as the answer to the question that was displayed when typing began."""
        composer, text = self.composer, self.composer.text
        if composer.edited_item:
            return self._finish_edit(text)
        is_message = delivery is not None or self.commands.is_terminal_command(text.strip())
        meaning = None if is_message else self._interpret_input(self.session, text, composer.typed_for_question)
        if isinstance(meaning, InvalidAnswerMeaning):
            self._show_invalid_answer(meaning)
        elif isinstance(meaning, AnswerMeaning):
            self.start_task(self.send_answer(meaning, composer.pop_text()))
        elif text := composer.pop_text():
            self._send_text(text, delivery)
        return None

    def _show_invalid_answer(self, invalid: InvalidAnswerMeaning) -> None:
        self.log_view.show_notice(invalid.reason)
        self.composer.typed_for_question = self.questions.readable_question  # the next Enter may answer it

    def _focus_question(self) -> None:
        self.questions.toggle_focus()
        self.composer.typed_for_question = self.questions.readable_question

    def _interpret_input(self, session: Session, text: str, typed_for: str) -> Meaning:
        return session.interpret(text, lambda text: self.questions.find_answer(text, typed_for))

    def _toggle_recording(self) -> None:
        asked = self.questions.readable_question  # at the start of the recording
        self.push_to_talk.toggle(partial(self._handle_transcript, self.session, asked))

    def _handle_transcript(self, session: Session, asked: str, text: str) -> None:
        """Treat a transcript like typed text: as a stop, an answer or a message. `asked`: the question it is for."""
        meaning: Meaning | None = None
        if session is self.session:
            meaning = self._interpret_input(session, text, asked)
        if isinstance(meaning, AnswerMeaning):
            self.start_task(self.send_answer(meaning, text))
        elif isinstance(meaning, InvalidAnswerMeaning):
            self.composer.set_text(join_texts(self.composer.text, text))
            self._show_invalid_answer(meaning)
        elif session is self.session:
            self._send_text(text, None)
        else:
            self.pending_messages.send(session, session.new_id(), text)

    def _send_text(self, text: str, delivery: Delivery | None) -> None:
        message = self.session.new_id()
        self.log_view.show_sending(message, text)
        if self.commands.is_terminal_command(text):
            self.log_view.set_receipt(message, "")
            self.start_task(self.commands.run(text))
        else:
            self.pending_messages.send(self.session, message, text, delivery)
