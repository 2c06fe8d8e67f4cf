"""Where the terminal app is: its files, its settings, and what surrounds it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hark.protocol.speech import Dictation, SpeechError
from hark.surfaces.terminal.keys import Keys


@dataclass(frozen=True, slots=True)
class EarlyInput:
    """What was typed before the app was there: sent texts, the text in the line, and bytes that nobody has used."""

    sent: tuple[str, ...] = ()
    text: str = ""
    rest: bytes = b""


class WhenDeaf(Protocol):
    """Called in the input's thread when the person wants to leave and the loop does not hear it."""

    def __call__(self, *, is_again: bool) -> None:
        """With `is_again`, the person has asked once more: leave at once."""
        ...


def _be_deaf(*, is_again: bool) -> None:
    return


def _be_mute() -> Dictation:
    raise SpeechError("There is no voice here.")


@dataclass(frozen=True, slots=True)
class TerminalEnvironment:
    """What the app is given. `take_over` ends whoever reads the terminal before it; `leaving` hears of its end.

    `dictation` is asked for when the person wants to talk; it raises SpeechError when nobody can.
    """

    home: Path
    workspace: Path
    keys: Keys = field(default_factory=Keys)
    theme: str = ""
    after_stop_edits: bool = False
    notices: tuple[str, ...] = ()
    take_over: Callable[[], EarlyInput] = EarlyInput
    leaving: Callable[[], None] = lambda: None
    when_deaf: WhenDeaf = _be_deaf
    dictation: Callable[[], Dictation] = _be_mute
