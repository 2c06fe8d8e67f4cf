"""`hark`: runs the terminal app on an agent, and exits within a time limit."""

import argparse
import logging
import os
import sys
from contextlib import suppress
from dataclasses import replace

from hark.app.agent import Agent
from hark.app.settings.presets import EMBEDDED
from hark.app.shutdown import COMPLETED, EXIT_SECONDS, FAILED, INTERRUPTED, Signals, Watchdog
from hark.cli.chat_options import open_chat_agent, requested_session, resume_hint
from hark.protocol.rules import AfterStop
from hark.protocol.speech import Dictation
from hark.surfaces.terminal.app import TerminalApp
from hark.surfaces.terminal.early_input import EarlyInput, EarlyInputLine, write_to_terminal
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.history import adopt_orphaned_draft

# Leave the alternate screen, show the cursor, and turn off every reporting mode that a terminal app may have enabled.
# The alternate screen has its own keyboard mode, which must be reset before the screen is left.
_RESET_SEQUENCE = (
    b"\x1b[?2026l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"
    b"\x1b[?1016l\x1b[?2004l\x1b[?2048l\x1b[?1004l\x1b[0m"
)
_MAX_CRASHES = 3

_log = logging.getLogger(__name__)


async def run_terminal(options: argparse.Namespace, early_line: EarlyInputLine) -> int:
    """Run the terminal app until the user quits. `early_line` reads input until the app is ready."""
    if early_line.is_quit_requested:
        early_line.finish_and_restore()
        return COMPLETED
    screen = TerminalScreen(early_line)
    watchdog, signals = screen.watchdog, screen.signals
    notices: list[str] = []
    try:
        with signals:
            async with open_chat_agent(options, watchdog, notices.append) as agent:
                settings = agent.settings
                name = await requested_session(options, agent.engine.store)
                if name is None:
                    name = f"chat-{agent.engine.clock.new_id()[:6]}"
                    known = {row.session for row in await agent.engine.store.journal.sessions()}
                    adopt_orphaned_draft(agent.home / "drafts", name, known)
                    if not known:
                        route = agent.engine.routes.names[0]
                        notices += welcome_lines(route, is_embedded=route == EMBEDDED.route().name)
                elif hint := await resume_hint(agent.session(name, "terminal"), options):
                    notices.append(hint)
                environment = TerminalEnvironment(
                    agent.home,
                    agent.engine.workspace,
                    settings.terminal.keys,
                    settings.terminal.theme,
                    settings.delivery.after_stop is AfterStop.EDIT,
                    tuple(notices),
                    finish_early_input=early_line.finish,
                    on_exit=watchdog.arm,
                    on_unresponsive=screen.exit_despite_stuck_loop,
                    open_dictation=lambda: _make_dictation(agent),
                )
                signals.request_exit = lambda _: screen.exit()
                has_succeeded = early_line.is_quit_requested or await screen.run(agent, name, environment)
                screen.finish()
                watchdog.arm()
                signals.request_exit = None  # from now on the first Ctrl+C counts as the second
                farewell = screen.resume_text(agent)
    finally:
        early_line.finish_and_restore()
        screen.finish()
    with suppress(OSError):  # the terminal is closed
        sys.stderr.write(farewell)
    return signals.code or (COMPLETED if has_succeeded else FAILED)


def welcome_lines(route: str, is_embedded: bool) -> list[str]:
    """Return the lines of the welcome text, each at most 80 columns wide. `route` is the name of the model's route.

    With the embedded model, the first line says that it is only a demo.
    """
    if is_embedded:
        first = "You're using the built-in demo model. Run `hark setup` to connect a real one."
    else:
        first = f"Model: {route}. Try: what is in this directory?"
    return [
        first,
        "Type while it works: Enter interrupts, Tab queues, Ctrl+S steers, Esc stops.",
        "/help lists commands, /demo shows an interrupt. Stuck? Run `hark doctor`.",
    ]


def _make_dictation(agent: Agent) -> Dictation:
    from hark.app.voice import ProgramDictation
    from hark.processes.piped_process import create_spawner
    from hark.voice.program_microphone import ProgramMicrophone

    services = agent.services
    microphone = ProgramMicrophone(services.settings.voice, create_spawner(services.owner))
    return ProgramDictation(microphone, services.transcriber(), agent.home / "voice")


class TerminalScreen:
    """Runs the terminal app, and restarts it if it crashes. The session and its turn continue."""

    def __init__(self, early_line: EarlyInputLine) -> None:
        self.watchdog = Watchdog(EXIT_SECONDS, self.restore)
        self.signals = Signals(self.watchdog)
        self._session = ""
        self._has_unsent = False
        self._early_line = early_line
        self._app: TerminalApp | None = None
        self._is_exiting = False
        self._is_app_running = False

    def restore(self) -> None:
        """Restore the terminal. Callable from any thread; does not block if the terminal accepts no output."""
        self._early_line.restore()
        if self._is_app_running:  # it may enable its modes even after another thread has restored the terminal
            write_to_terminal(_RESET_SEQUENCE)

    def finish(self) -> None:
        """Restore the terminal after the app has ended."""
        self.restore()
        self._is_app_running = False

    def resume_text(self, agent: Agent) -> str:
        """Return the line that explains how to resume the session, or "" if the session is empty."""
        if self._has_unsent:
            return f"hark: your unsent text is saved. Resume with: hark -r {self._session}\n"
        if not self._session or not agent.session(self._session, "terminal").proxy.state.length:
            return ""
        return f"hark: resume this session with: hark -c, or later with: hark -r {self._session}\n"

    def exit(self) -> None:
        """Quit the app."""
        self._is_exiting = True
        if self._app is not None:
            self._app.exit()

    def exit_despite_stuck_loop(self, is_repeated: bool) -> None:
        """Handle a request to quit while the event loop is stuck. Runs in the input thread."""
        self.watchdog.arm()
        self.signals.code = self.signals.code or INTERRUPTED  # the next signal ends the process immediately
        if is_repeated:
            self.watchdog.exit_now(self.signals.code or INTERRUPTED)

    async def run(self, agent: Agent, session: str, environment: TerminalEnvironment) -> bool:
        """Show the session until the user quits. Return False if the app crashed repeatedly."""
        colour = os.environ.get("NO_COLOR")
        for _ in range(_MAX_CRASHES):
            if self._is_exiting:
                return True
            if colour is not None:
                os.environ["NO_COLOR"] = colour  # the app removes it
            self._app = TerminalApp(agent, session, environment)
            self._is_app_running = True
            await self._app.run_async()
            session = self._session = self._app.session.id
            self._has_unsent = bool(self._app.draft.text)
            failure = self._app.failure
            if failure is None:
                return True
            _log.error("the terminal app crashed", exc_info=failure)
            notice = f"The screen was restarted after an error: {failure!r}. The session continues."
            environment = replace(environment, notices=(notice,), finish_early_input=EarlyInput)
        self.finish()
        sys.stderr.write(
            f"hark: the terminal app crashed {_MAX_CRASHES} times; see the log. Resume with: hark -r {session}\n"
        )
        return False
