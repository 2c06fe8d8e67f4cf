"""Runs the slash commands that only the terminal has; `app/slash/table.py` lists them."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hark.surfaces.terminal.widgets.picker import Picker, PickerResult

if TYPE_CHECKING:
    from hark.surfaces.terminal.app import TerminalApp


class TerminalCommands:
    """Runs them on the app."""

    def __init__(self, app: "TerminalApp") -> None:
        self._app = app
        self._runs: dict[str, Callable[[str], Awaitable[None]]] = {
            "quit": self._quit,
            "exit": self._quit,
            "new": self._new,
            "resume": self._resume,
            "sessions": self._resume,
            "copy": self._copy,
            "theme": self._theme,
            "voice": self._voice,
        }

    def knows(self, text: str) -> bool:
        """Tell whether a message is one of them; /voice with words behind it is every surface's."""
        is_own = text.startswith("/") and _name(text) in self._runs
        return is_own and (_name(text) != "voice" or text.strip().lower() == "/voice")

    async def run(self, text: str) -> None:
        """Carry one out."""
        await self._runs[_name(text)](text[1 + len(_name(text)) :].strip())

    async def _quit(self, words: str) -> None:
        self._app.exit()

    async def _new(self, words: str) -> None:
        await self._app.show_session(words or f"chat-{self._app.session.new_id()[:6]}")

    async def _resume(self, words: str) -> None:
        lines = await self._app.agent.sessions(words)
        if any(line.session == words for line in lines):
            await self._app.show_session(words)
            return
        shown = [(line.session, f"{line.session}  {line.summary.title}") for line in reversed(lines)]
        if not shown:
            self._app.log_view.tell("There is no such session.")
            return
        self._app.push_screen(Picker("Go on with which session? Enter: open · Esc: stay", shown), self._chosen)

    def _chosen(self, choice: PickerResult | None) -> None:
        if choice is not None:
            self._app.start(self._app.show_session(choice.name))

    async def _copy(self, words: str) -> None:
        text = self._app.log_view.last_reply
        self._app.copy_to_clipboard(text)
        self._app.log_view.tell(f"{len(text)} characters are in the clipboard." if text else "There is no reply yet.")

    async def _voice(self, words: str) -> None:
        self._app.talk.press()

    async def _theme(self, words: str) -> None:
        names = sorted(self._app.available_themes)
        if words in names:
            self._app.theme = words
        self._app.log_view.tell(f"The theme is {self._app.theme}. There are: {', '.join(names)}.")


def _name(text: str) -> str:
    return (text[1:].split(None, 1) or [""])[0].lower()
