"""What the keys do."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hark.protocol.agent import ChildLine
from hark.protocol.commands import Delivery
from hark.protocol.names import split_child
from hark.protocol.receipts import QueueItem, Refusal
from hark.surfaces.terminal.widgets.picker import Picker, PickerResult
from hark.surfaces.terminal.widgets.queue_panel import QueuePanel
from hark.text.safe_text import safe_line, typed_text
from hark.text.status_text import counted

if TYPE_CHECKING:
    from hark.surfaces.terminal.app import TerminalApp

DOUBLE_SECONDS = 2.0
REWIND_SECONDS = 0.6


class Acts:
    """Carries out wishes at the app. What takes time runs in a task of the app's."""

    def __init__(self, app: "TerminalApp") -> None:
        self._app = app
        self._left_at = 0.0
        self._stopped_at = 0.0
        self._edited: QueueItem | None = None
        self.stashed = ""  # what was in the line before a waiting message was taken to be edited
        self._plain: dict[str, Callable[[], None]] = {
            "send": app.send,
            "queue": lambda: app.send(Delivery.QUEUE),
            "steer": lambda: app.send(Delivery.STEER),
            "end": app.exit,
            "editor": self._editor,
            "unfold": app.log_view.unfold,
            "waiting": self._waiting,
            "talk": app.talk.press,
            "page_up": app.log_view.action_page_up,
            "page_down": app.log_view.action_page_down,
        }
        self._slow: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "rewind": self._rewind,
            "children": self._children,
        }

    def do(self, act: str, at: float) -> None:
        """Do what a key asks for that was pressed at this time: a busy screen must not make one of two presses."""
        if act == "stop":
            self._stop(at)
        elif act == "leave":
            self._leave(at)
        elif act in self._plain:
            self._plain[act]()
        elif act in self._slow:
            self._app.start(self._slow[act]())

    def answer(self, text: str, question: str = "") -> None:
        """Answer a question, or the one on the screen."""
        asked = self._app.questions.current
        question = question or (asked.question if asked else "")
        if question and text:
            self._app.start(self._answer(question, text))

    async def _answer(self, question: str, text: str) -> None:
        refusal = await self._app.session.answer(question, text)
        if refusal is None:
            self._app.log_view.tell(f"answered: {safe_line(text)}")
            return
        self._app.log_view.tell(f"{refusal.message} Your words are back in the input line.")
        self._app.composer.put("\n".join(part for part in (text, self._app.composer.text) if part))

    # Stopping and leaving.

    def _stop(self, now: float) -> None:
        """Stop the turn that is on the screen; twice in a row goes back to an earlier message."""
        if self._app.talk.drop():
            return  # a recording is dropped, and nothing else
        if self.is_editing:
            self.end_edit(None)
        elif now - self._stopped_at < REWIND_SECONDS:
            self._stopped_at = 0.0
            self._app.start(self._rewind())
        else:
            self._stopped_at = now
            self._app.start(self._interrupt())

    async def _interrupt(self) -> None:
        app = self._app
        session = app.session
        on_their_way = app.outbox.messages if app.progress.turn else ()  # without a turn, everything is meant
        settled = await session.interrupt("user", app.progress.turn, messages=on_their_way)
        if settled is not None and (waiting := await session.queue()):
            count = counted(len(waiting), "waiting message")
            are = "is" if len(waiting) == 1 else "are"
            app.log_view.tell(f"{count} {are} held: send anything to go on with them, F2 changes them", "held")

    def _leave(self, now: float) -> None:
        """Clear the line, else stop the turn, else leave when asked twice."""
        app = self._app
        if app.talk.drop():
            return
        if self.is_editing:
            self.end_edit(None)
        elif app.composer.text:
            app.composer.take()  # Up brings it back
        elif app.progress.turn:
            app.start(self._interrupt())
        elif now - self._left_at < DOUBLE_SECONDS:
            app.exit()
        else:
            self._left_at = now
            app.log_view.tell("Once more leaves.", "leave")

    # The queue.

    def _waiting(self) -> None:
        if self._app.queue_panel.display:
            self._app.queue_panel.highlighted = 0
            self._app.screen.set_focus(self._app.queue_panel)
        else:
            self._app.log_view.tell("Nothing waits.", "queue")

    def change_queue(self, wanted: QueuePanel.Wanted) -> None:
        """Do what the person wants with a message that waits."""
        match wanted.act:
            case "leave":
                self._app.composer.focus()
            case "edit":
                self._edit(wanted.item)
            case _:
                self._app.start(self._change_queue(wanted))

    async def _change_queue(self, wanted: QueuePanel.Wanted) -> None:
        app, item = self._app, wanted.item
        match wanted.act:
            case "withdraw":
                refusal = await app.session.withdraw(item.id)
            case "up":
                refusal = await app.session.move(item.id, max(1, wanted.position - 1))
            case "down":
                refusal = await app.session.move(item.id, wanted.position + 1)
            case _:
                refusal = await self._send_now(item)
        if refusal:
            app.log_view.tell(refusal.message)
        await app.refresh_queue()

    async def _send_now(self, item: QueueItem) -> Refusal | None:
        session = self._app.session
        places = [place for place, waiting in enumerate(await session.queue(), 1) if waiting.id == item.id]
        if not places:
            return Refusal("not_waiting", "That message does not wait any more.")
        await session.say(f"/queue {places[0]} now")
        return None

    @property
    def is_editing(self) -> bool:
        """True while a waiting message is in the input line."""
        return self._edited is not None

    def _edit(self, item: QueueItem) -> None:
        composer = self._app.composer
        if self._edited is None:
            self.stashed = composer.text
        self._edited = item
        composer.put(item.text)
        composer.focus()
        self._app.draw_progress()

    def end_edit(self, text: str | None) -> None:
        """Put a waiting message back, changed; or with None as it was."""
        item, self._edited = self._edited, None
        if item is not None and self._app.composer.text != item.text:
            self._app.composer.take()  # Up brings it back, whatever becomes of it
        self._app.composer.put(self.stashed)
        self.stashed = ""
        if item is not None and text is not None and text.strip() and text != item.text:
            self._app.start(self._change_text(item, text))
        self._app.draw_progress()

    async def _change_text(self, item: QueueItem, text: str) -> None:
        refusal = await self._app.session.edit(item.id, text)
        if refusal:
            self._app.log_view.tell(f"{refusal.message} Your words are in the input line.")
            self._app.composer.put("\n".join(part for part in (self._app.composer.text, text) if part))
        await self._app.refresh_queue()

    # Going back, and elsewhere.

    async def _rewind(self) -> None:
        past = (await self._app.session.history()).points
        rows = [(turn.turn, safe_line(turn.text)) for turn in past]
        if not rows:
            self._app.log_view.tell("There is nothing to go back to.", "rewind")
            return
        title = "Go back to before which message? Enter: words only · f: words and file changes · Esc: stay"
        self._app.push_screen(Picker(title, rows, ("f",)), self._rewound)

    def _rewound(self, choice: PickerResult | None) -> None:
        if choice is not None:
            self._app.start(self._go_back(choice))

    async def _go_back(self, choice: PickerResult) -> None:
        app = self._app
        past = {point.turn: point.text for point in (await app.session.history()).points}
        told = await app.session.rewind(choice.name, with_files=choice.key == "f")
        is_back = choice.name not in {point.turn for point in (await app.session.history()).points}
        if is_back:
            await app.show_session(app.session.id)
        app.log_view.tell(told)
        if is_back and not app.composer.text:
            app.composer.put(past.get(choice.name, ""))

    async def _children(self) -> None:
        app = self._app
        children = await app.agent.children(app.session.id)
        rows = [(child.name, _child_row(child)) for child in children]
        parent = split_child(app.session.id)[0]
        if parent:
            rows.append((parent, f"↑ back to {parent}"))
        if not rows:
            app.log_view.tell("There are no children.", "children")
            return
        title = "Children of this session. Enter: open · s: stop it alone · Esc: stay"
        app.push_screen(Picker(title, rows, ("s",)), self._child)

    def _child(self, choice: PickerResult | None) -> None:
        if choice is not None and choice.key == "s":
            self._app.start(self._stop_child(choice.name))
        elif choice is not None:
            self._app.start(self._app.show_session(choice.name))

    async def _stop_child(self, name: str) -> None:
        settled = await self._app.agent.session(name, "terminal").interrupt("user")
        self._app.log_view.tell(f"{name} was stopped." if settled else f"{name} does not run.")

    # The editor.

    def _editor(self) -> None:
        """Edit the text in an editor of one's own; the agent waits meanwhile, as the screen does."""
        words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        with tempfile.NamedTemporaryFile("w", suffix=".md", delete=False, encoding="utf-8") as file:
            file.write(self._app.composer.text)
        path = Path(file.name)
        try:
            with self._app.suspend():
                subprocess.run([*words, str(path)], check=False)  # noqa: S603 - the person's own editor
            self._app.composer.put(typed_text(path.read_text("utf-8", "replace")).rstrip("\n"))
        except OSError as error:
            self._app.log_view.tell(f"{words[0]} can't be started: {error}. Set EDITOR to another.")
        finally:
            path.unlink(missing_ok=True)


def _child_row(child: ChildLine) -> str:
    sign = "●" if child.is_running else "○"
    return f"{'  ' * child.depth}{sign} {split_child(child.name)[1]}  {child.title}"
