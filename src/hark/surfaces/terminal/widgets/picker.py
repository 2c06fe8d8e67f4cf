"""A list to choose from, over the conversation: rewind, sessions and children use it."""

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from hark.text.safe_text import safe_line

_ROW_CHARACTERS = 300


class PickerResult:
    """What was chosen, and with which key."""

    def __init__(self, name: str, key: str) -> None:
        self.name = name
        self.key = key


class Picker(ModalScreen[PickerResult | None]):
    """Rows with names; Enter or one of the other `keys` chooses, Esc leaves without a choice."""

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], keys: Sequence[str] = ()) -> None:
        """`rows`: a name and what is shown of it."""
        super().__init__()
        self._title = title
        self._rows = list(rows)
        self._keys = keys
        self._is_done = False

    def compose(self) -> ComposeResult:
        """Show the title and the rows."""
        with Vertical(id="picker"):
            yield Static(self._title, markup=False)
            yield OptionList(*(Option(_cut(text)) for _, text in self._rows), markup=False)

    def on_mount(self) -> None:
        """Begin at the last row: it is the newest."""
        rows = self.query_one(OptionList)
        rows.highlighted = len(self._rows) - 1 if self._rows else None
        rows.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose with Enter or a click."""
        self._end(PickerResult(self._rows[event.option_index][0], "enter"))

    def on_key(self, event: events.Key) -> None:
        """Leave with Esc; choose with one of the keys."""
        place = self.query_one(OptionList).highlighted
        if event.key in ("escape", "ctrl+c"):
            event.stop()
            self._end(None)
        elif event.key in self._keys and place is not None:
            event.stop()
            self._end(PickerResult(self._rows[place][0], event.key))

    def _end(self, choice: PickerResult | None) -> None:
        if not self._is_done:  # a second key may come before the list is gone
            self._is_done = True
            self.dismiss(choice)


def _cut(text: str) -> str:
    indent = text[: len(text) - len(text.lstrip())]
    return indent + safe_line(text, _ROW_CHARACTERS)
