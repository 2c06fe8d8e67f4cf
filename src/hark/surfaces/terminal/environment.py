"""The terminal app's environment: its files, settings and callbacks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hark.protocol.speech import Dictation, SpeechError
from hark.surfaces.terminal.early_input import EarlyInput
from hark.surfaces.terminal.keys import Keys


def _raise_no_voice() -> Dictation:
    raise SpeechError("Voice input is not available here.")


@dataclass(frozen=True, slots=True)
class TerminalEnvironment:
    """The terminal app's settings and callbacks.

    `finish_early_input` stops the early input line. `on_exit` is called when the app starts to exit.
    `on_unresponsive` is called in the input thread if the user presses Ctrl+C while the event loop is blocked. Its
    argument is True for a second press, after which the process must exit immediately. `open_dictation` raises
    SpeechError if recording is impossible.
    """

    home: Path
    workspace: Path
    keys: Keys = field(default_factory=Keys)
    theme: str = ""
    after_stop_edits: bool = False
    notices: tuple[str, ...] = ()
    finish_early_input: Callable[[], EarlyInput] = EarlyInput
    on_exit: Callable[[], None] = lambda: None
    on_unresponsive: Callable[[bool], None] = lambda _: None
    open_dictation: Callable[[], Dictation] = _raise_no_voice
