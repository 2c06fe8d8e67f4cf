"""Commands that only the terminal app has: some of the slash commands, rewind, and the child list."""

from collections.abc import Callable

from hark.protocol.names import split_child
from hark.surfaces.terminal.screen import SURFACE, ConversationScreen
from hark.text.safe_text import sanitize_line

_NAMES = ("quit", "exit", "new", "resume", "sessions", "copy", "theme", "voice")


class TerminalCommands:
    """Runs terminal commands on a screen."""

    def __init__(self, screen: ConversationScreen, toggle_recording: Callable[[], None]) -> None:
        self._screen = screen
        self._toggle_recording = toggle_recording

    def is_terminal_command(self, text: str) -> bool:
        """Return whether a message is a terminal command. `/voice` counts only without an argument."""
        name, argument = _split_command(text)
        return text.startswith("/") and name in _NAMES and not (name == "voice" and argument)

    async def run(self, text: str) -> None:
        """Run a terminal command."""
        screen = self._screen
        name, argument = _split_command(text)
        match name:
            case "quit" | "exit":
                screen.exit()
            case "new":
                old = screen.session
                await screen.show_session(argument or f"chat-{old.new_id()[:6]}")
                if running := old.describe_work():
                    work = ", ".join(running)
                    screen.log_view.show_notice(f"Still running in {old.id}: {work}. /resume {old.id} returns to it.")
            case "copy":
                text = screen.log_view.last_reply
                screen.copy_to_clipboard(text)
                screen.log_view.show_notice(
                    f"Copied {len(text)} characters to the clipboard." if text else "There is no reply to copy yet."
                )
            case "theme":
                names = sorted(screen.available_themes)
                if argument in names:
                    screen.theme = argument
                screen.log_view.show_notice(f"Theme: {screen.theme}. Available: {', '.join(names)}.")
            case "voice":
                self._toggle_recording()
            case _:
                await self._resume_session(argument)

    async def pick_rewind_point(self) -> None:
        """Let the user rewind the conversation to before an earlier message, with or without its file changes."""
        screen = self._screen
        past = {point.turn: point.text for point in (await screen.session.history()).points}
        if not past:
            screen.log_view.show_notice("Nothing to rewind: this session has no messages yet.", "rewind")
            return
        title = "Rewind to before which message? Enter: conversation only · f: conversation and files · Esc: cancel"
        choice = await screen.pick_row(title, [(turn, sanitize_line(text)) for turn, text in past.items()], ("f",))
        if choice is None:
            return
        report = await screen.session.rewind(choice.name, with_files=choice.key == "f")
        is_back = choice.name not in {point.turn for point in (await screen.session.history()).points}
        if is_back:
            await screen.show_session(screen.session.id)
        screen.log_view.show_notice(report)
        if is_back and not screen.composer.text:
            screen.composer.set_text(past[choice.name])

    async def pick_child(self) -> None:
        """Let the user open or stop one of the session's children, or return to the parent session."""
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
            screen.log_view.show_notice("This session has no children.", "children")
            return
        title = "Children. Enter: open · s: stop only this child · Esc: cancel"
        choice = await screen.pick_row(title, rows, ("s",))
        if choice is not None and choice.key == "s":
            settled = await screen.agent.session(choice.name, SURFACE).interrupt("user")
            screen.log_view.show_notice(f"{choice.name} was stopped." if settled else f"{choice.name} is not running.")
        elif choice is not None:
            await screen.show_session(choice.name)

    async def _resume_session(self, query: str) -> None:
        sessions = await self._screen.agent.sessions(query)
        if any(line.session == query for line in sessions):
            await self._screen.show_session(query)
            return
        if not sessions:
            text = f"No session matches {query!r}." if query else "There are no sessions yet."
            self._screen.log_view.show_notice(text)
            return
        rows = [(line.session, f"{line.session}  {line.summary.title}") for line in reversed(sessions)]
        choice = await self._screen.pick_row("Resume which session? Enter: open · Esc: cancel", rows)
        if choice is not None:
            await self._screen.show_session(choice.name)


def _split_command(text: str) -> tuple[str, str]:
    """Return a slash command's name in lower case and its argument."""
    name, argument = [*text[1:].split(None, 1), "", ""][:2]
    return name.lower(), argument.strip()
