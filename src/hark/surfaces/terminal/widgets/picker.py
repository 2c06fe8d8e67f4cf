"""A modal list to choose from, used for rewind, sessions and children."""

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from hark.text.safe_text import sanitize_line

_ROW_CHARACTERS = 300


class PickerResult(NamedTuple):
    """The name of the chosen row and the key that chose it."""

    name: str
    key: str


class Picker(ModalScreen[PickerResult | None]):
    """A list of named rows. Enter or one of the other `keys` chooses a row; Esc closes the list."""

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], keys: Sequence[str] = ()) -> None:
        """Create a list. Each row has a name and a displayed text."""
        super().__init__()
        self._title = title
        self._rows = list(rows)
        self._keys = keys
        self._is_done = False

    def compose(self) -> ComposeResult:
        """Yield the title and the rows."""
        with Vertical(id="picker"):
            yield Static(self._title, markup=False)
            yield OptionList(*(Option(_truncate(text)) for _, text in self._rows), markup=False)

    def on_mount(self) -> None:
        """Highlight the last row, which is the newest."""
        rows = self.query_one(OptionList)
        rows.highlighted = len(self._rows) - 1 if self._rows else None
        rows.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the row that was selected with Enter or a click."""
        self._dismiss_once(PickerResult(self._rows[event.option_index][0], "enter"))

    def on_key(self, event: events.Key) -> None:
        """Close the list on Esc, or choose the highlighted row if the key is one of `keys`."""
        place = self.query_one(OptionList).highlighted
        if event.key in ("escape", "ctrl+c"):
            event.stop()
            self._dismiss_once(None)
        elif event.key in self._keys and place is not None:
            event.stop()
            self._dismiss_once(PickerResult(self._rows[place][0], event.key))

    def _dismiss_once(self, choice: PickerResult | None) -> None:
        if not self._is_done:  # a second key may arrive before the list is closed
            self._is_done = True
            self.dismiss(choice)


def _truncate(text: str) -> str:
    indent = text[: len(text) - len(text.lstrip())]
    return indent + sanitize_line(text, _ROW_CHARACTERS)
