"""The terminal app: what keys and sent texts do to the session on the screen."""

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
from hark.protocol.meaning import AnswerMeaning
from hark.protocol.receipts import QueueItem, Refusal
from hark.protocol.session import Session
from hark.surfaces.terminal.early_input import EarlyInput
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.screen import ConversationScreen
from hark.surfaces.terminal.terminal_commands import TerminalCommands
from hark.surfaces.terminal.widgets.composer import joined
from hark.surfaces.terminal.widgets.queue_panel import QueuePanel
from hark.text.safe_text import typed_text
from hark.text.status_text import counted

PROGRESS_SECONDS = 0.25
DRAFT_SECONDS = 0.3
DOUBLE_SECONDS = 2.0
REWIND_SECONDS = 0.6

_log = logging.getLogger(__name__)


class TerminalApp(ConversationScreen, inherit_bindings=False):
    """Carries out what the person wants. What takes time runs in a task."""

    def __init__(self, agent: Agent, session: str, place: TerminalEnvironment) -> None:
        super().__init__(agent, session, place)
        self.commands = TerminalCommands(self, self._press_talk)
        self._before = EarlyInput()
        self._left_at = 0.0
        self._stopped_at = 0.0
        self._acts: dict[str, Callable[[], None]] = {
            "send": self.send,
            "queue": lambda: self.send(Delivery.QUEUE),
            "steer": lambda: self.send(Delivery.STEER),
            "end": self.exit,
            "editor": self._editor,
            "unfold": self.log_view.unfold,
            "waiting": self._enter_queue,
            "talk": self._press_talk,
            "page_up": self.log_view.action_page_up,
            "page_down": self.log_view.action_page_down,
            "rewind": lambda: self.start(self.commands.rewind()),
            "children": lambda: self.start(self.commands.children()),
        }

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
        self.composer.put(self._before.text or self.draft.read())
        for notice in self.place.notices:
            self.log_view.tell(notice)
        self.set_interval(PROGRESS_SECONDS, self.draw_progress)
        self.set_interval(DRAFT_SECONDS, self.save_draft)
        self.read_events()
        self.draw_progress()
        self.call_after_refresh(self.keys_may_come.set)

    # Keys.

    def wanted(self, act: str, at: float) -> None:
        """Do what a key asks for, at once. Two presses count by their time: a busy screen must not make one of two."""
        try:
            if self.choices.do(act):
                return
            if act in ("stop", "leave") and self.talk.drop():
                return  # a recording is dropped, and nothing else
            if act in ("stop", "leave") and self.composer.edited:
                self._end_edit(None)
            elif act == "stop":
                self._stop(at)
            elif act == "leave":
                self._leave(at)
            elif act in self._acts:
                self._acts[act]()
        except Exception as error:  # noqa: BLE001 - the surface's boundary: a key that fails costs no other
            _log.exception("a key could not be obeyed")
            self.log_view.tell(f"That could not be done: {error}")

    def on_key(self, event: events.Key) -> None:
        """Have a letter that nobody wanted go to the input line."""
        is_ours = self.focused is None or (self.focused is not self.composer and event.is_printable)
        if is_ours and len(self.screen_stack) == 1:
            self.screen.set_focus(self.composer)
            self.composer.post_message(event)

    def on_text_area_changed(self) -> None:
        """Show what the word at the cursor could become."""
        self.choices.look()

    def _stop(self, now: float) -> None:
        """Stop the turn that is on the screen; twice in a row goes back to an earlier message."""
        if now - self._stopped_at < REWIND_SECONDS:
            self._stopped_at = 0.0
            self.start(self.commands.rewind())
        else:
            self._stopped_at = now
            self.start(self._interrupt())

    def _leave(self, now: float) -> None:
        """Clear the line, else stop the turn, else leave when asked twice."""
        if self.composer.text:
            self.composer.take()  # Up brings it back
        elif self.progress.turn:
            self.start(self._interrupt())
        elif now - self._left_at < DOUBLE_SECONDS:
            self.exit()
        else:
            self._left_at = now
            self.log_view.tell("Once more leaves.", "leave")

    async def _interrupt(self) -> None:
        session, turn = self.session, self.progress.turn
        on_their_way = self.outbox.messages(session.id) if turn else ()  # without a turn, everything is meant
        settled = await session.interrupt("user", turn, messages=on_their_way)
        if settled is not None and (waiting := await session.queue()):
            count = counted(len(waiting), "waiting message")
            are = "is" if len(waiting) == 1 else "are"
            self.log_view.tell(f"{count} {are} held: send anything to go on with them, F2 changes them", "held")

    def _editor(self) -> None:
        """Edit the text in an editor of one's own; the agent waits meanwhile, as the screen does."""
        words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        with tempfile.NamedTemporaryFile("w", suffix=".md", delete=False, encoding="utf-8") as file:
            file.write(self.composer.text)
        path = Path(file.name)
        try:
            with self.suspend():
                subprocess.run([*words, str(path)], check=False)  # noqa: S603 - the person's own editor
            self.composer.put(typed_text(path.read_text("utf-8", "replace")).rstrip("\n"))
        except OSError as error:
            self.log_view.tell(f"{words[0]} can't be started: {error}. Set EDITOR to another.")
        finally:
            path.unlink(missing_ok=True)

    # The queue.

    def _enter_queue(self) -> None:
        panel = self.queue_panel
        if panel.display:
            panel.highlighted = 0
            self.screen.set_focus(panel)
        else:
            self.log_view.tell("Nothing waits.", "queue")

    def on_queue_panel_wanted(self, wanted: QueuePanel.Wanted) -> None:
        """Do what the person wants with a message that waits."""
        match wanted.act:
            case "leave":
                self.composer.focus()
            case "edit":
                self.composer.begin_edit(wanted.item)
                self.draw_progress()
            case _:
                self.start(self._change_queue(wanted))

    def _end_edit(self, text: str | None) -> None:
        """Put a waiting message back, changed; or with None as it was."""
        item = self.composer.end_edit()
        if item is not None and text is not None and text.strip() and text != item.text:
            self.start(self._change_text(item, text))
        self.draw_progress()

    async def _change_queue(self, wanted: QueuePanel.Wanted) -> None:
        session, item = self.session, wanted.item
        match wanted.act:
            case "withdraw":
                refusal = await session.withdraw(item.id)
            case "up":
                refusal = await session.move(item.id, max(1, wanted.position - 1))
            case "down":
                refusal = await session.move(item.id, wanted.position + 1)
            case _:
                refusal = await self._send_now(item)
        if refusal:
            self.log_view.tell(refusal.message)
        await self.refresh_queue()

    async def _send_now(self, item: QueueItem) -> Refusal | None:
        session = self.session
        places = [place for place, waiting in enumerate(await session.queue(), 1) if waiting.id == item.id]
        if not places:
            return Refusal("not_waiting", "That message does not wait any more.")
        await session.say(f"/queue {places[0]} now")
        return None

    async def _change_text(self, item: QueueItem, text: str) -> None:
        refusal = await self.session.edit(item.id, text)
        if refusal:
            self.log_view.tell(f"{refusal.message} Your words are in the input line.")
            self.composer.put(joined(self.composer.text, text))
        await self.refresh_queue()

    # Texts.

    def send(self, delivery: Delivery | None = None) -> None:
        """Send what was typed. It is the answer to a question only when that was there before the first letter."""
        composer = self.composer
        question, composer.typed_under = composer.typed_under, ""
        text = composer.text
        is_answer = bool(question) and delivery is None and bool(text.strip())
        meaning = self.session.meaning(text, lambda text: AnswerMeaning(question, text) if is_answer else None)
        if isinstance(meaning, AnswerMeaning):
            if not self.questions.is_open(question):
                self.log_view.tell("The question is no longer open. Enter once more sends your words as a message.")
                return
            self.answer(composer.take(), question)
        elif composer.edited:
            self._end_edit(text)
        elif text := composer.take():
            self._say_soon(text, delivery)

    def _press_talk(self) -> None:
        self.talk.press(partial(self._say_spoken, self.session))

    def _say_spoken(self, session: Session, text: str) -> None:
        """Go on with what was said aloud in a session as with typed words: a stop, an answer, or a message."""
        question = self.questions.takes_words if session is self.session else ""
        meaning = session.meaning(text, lambda text: AnswerMeaning(question, text) if question else None)
        if isinstance(meaning, AnswerMeaning):
            self.answer(text, question)
        elif session is self.session:
            self._say_soon(text, None)
        else:
            self.outbox.send(session, session.new_id(), text)

    def _say_soon(self, text: str, delivery: Delivery | None) -> None:
        message = self.session.new_id()
        self.log_view.sending(message, text)
        if self.commands.knows(text):
            self.log_view.became(message, "")
            self.start(self.commands.run(text))
        else:
            self.outbox.send(self.session, message, text, delivery)
