"""Where the terminal app is: its files, its settings, and what surrounds it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hark.protocol.speech import Dictation, SpeechError
from hark.surfaces.terminal.early_input import EarlyInput
from hark.surfaces.terminal.keys import Keys


def _be_mute() -> Dictation:
    raise SpeechError("There is no voice here.")


@dataclass(frozen=True, slots=True)
class TerminalEnvironment:
    """What the app is given. `take_over` ends whoever reads the terminal before it; `leaving` hears of its end.

    `when_deaf` is called in the input's thread when the person wants to leave and the loop does not hear it; with True,
    the person has asked once more: leave at once. `dictation` is asked for when the person wants to talk; it raises
    SpeechError when nobody can.
    """

    home: Path
    workspace: Path
    keys: Keys = field(default_factory=Keys)
    theme: str = ""
    after_stop_edits: bool = False
    notices: tuple[str, ...] = ()
    take_over: Callable[[], EarlyInput] = EarlyInput
    leaving: Callable[[], None] = lambda: None
    when_deaf: Callable[[bool], None] = lambda _: None
    dictation: Callable[[], Dictation] = _be_mute
