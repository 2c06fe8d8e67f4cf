"""Runs what only the terminal has: the slash commands that `app/slash/table.py` lists for it, rewind, and children."""

from collections.abc import Callable

from hark.protocol.names import split_child
from hark.surfaces.terminal.screen import SURFACE, ConversationScreen
from hark.text.safe_text import safe_line

_NAMES = ("quit", "exit", "new", "resume", "sessions", "copy", "theme", "voice")


class TerminalCommands:
    """Runs them on the screen."""

    def __init__(self, screen: ConversationScreen, talk: Callable[[], None]) -> None:
        self._screen = screen
        self._talk = talk

    def knows(self, text: str) -> bool:
        """Tell whether a message is one of them; /voice with words behind it is every surface's."""
        name, words = _parts(text)
        return text.startswith("/") and name in _NAMES and not (name == "voice" and words)

    async def run(self, text: str) -> None:
        """Carry one out."""
        screen = self._screen
        name, words = _parts(text)
        match name:
            case "quit" | "exit":
                screen.exit()
            case "new":
                await screen.show_session(words or f"chat-{screen.session.new_id()[:6]}")
            case "copy":
                text = screen.log_view.last_reply
                screen.copy_to_clipboard(text)
                screen.log_view.tell(
                    f"{len(text)} characters are in the clipboard." if text else "There is no reply yet."
                )
            case "theme":
                names = sorted(screen.available_themes)
                if words in names:
                    screen.theme = words
                screen.log_view.tell(f"The theme is {screen.theme}. There are: {', '.join(names)}.")
            case "voice":
                self._talk()
            case _:
                await self._resume(words)

    async def rewind(self) -> None:
        """Let the person go back to before an earlier message, with or without its file changes."""
        screen = self._screen
        past = {point.turn: point.text for point in (await screen.session.history()).points}
        if not past:
            screen.log_view.tell("There is nothing to go back to.", "rewind")
            return
        title = "Go back to before which message? Enter: words only · f: words and file changes · Esc: stay"
        choice = await screen.pick(title, [(turn, safe_line(text)) for turn, text in past.items()], ("f",))
        if choice is None:
            return
        told = await screen.session.rewind(choice.name, with_files=choice.key == "f")
        is_back = choice.name not in {point.turn for point in (await screen.session.history()).points}
        if is_back:
            await screen.show_session(screen.session.id)
        screen.log_view.tell(told)
        if is_back and not screen.composer.text:
            screen.composer.put(past[choice.name])

    async def children(self) -> None:
        """Let the person open or stop one of the session's children, or go back to its parent."""
        screen = self._screen
        rows = [
            (
                child.name,
                f"{'  ' * child.depth}{'●' if child.is_running else '○'} {split_child(child.name)[1]}  {child.title}",
            )
            for child in await screen.agent.children(screen.session.id)
        ]
        parent = split_child(screen.session.id)[0]
        if parent:
            rows.append((parent, f"↑ back to {parent}"))
        if not rows:
            screen.log_view.tell("There are no children.", "children")
            return
        choice = await screen.pick("Children of this session. Enter: open · s: stop it alone · Esc: stay", rows, ("s",))
        if choice is not None and choice.key == "s":
            settled = await screen.agent.session(choice.name, SURFACE).interrupt("user")
            screen.log_view.tell(f"{choice.name} was stopped." if settled else f"{choice.name} does not run.")
        elif choice is not None:
            await screen.show_session(choice.name)

    async def _resume(self, words: str) -> None:
        lines = await self._screen.agent.sessions(words)
        if any(line.session == words for line in lines):
            await self._screen.show_session(words)
            return
        if not lines:
            self._screen.log_view.tell("There is no such session.")
            return
        rows = [(line.session, f"{line.session}  {line.summary.title}") for line in reversed(lines)]
        choice = await self._screen.pick("Go on with which session? Enter: open · Esc: stay", rows)
        if choice is not None:
            await self._screen.show_session(choice.name)


def _parts(text: str) -> tuple[str, str]:
    """Return the name of a slash command and the words behind it."""
    name, words = [*text[1:].split(None, 1), "", ""][:2]
    return name.lower(), words.strip()
