"""The panel of queued messages. The user can edit, move, withdraw or immediately send them."""

from textual import events
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from hark.protocol.receipts import QueueItem
from hark.surfaces.terminal.keys import QUEUE_KEYS
from hark.text.safe_text import sanitize_line

_ACTIONS = {key: act for key, (act, _) in QUEUE_KEYS.items()} | {"delete": "withdraw", "ctrl+c": "leave"}
_MAX_TEXT_CHARACTERS = 200


class QueuePanel(OptionList):
    """The queued messages, in the order in which they will run. Posts the actions that the user chooses."""

    class ActionRequested(Message):
        """The user chose an action for a queued message."""

        def __init__(self, action: str, item: QueueItem, position: int) -> None:
            super().__init__()
            self.action = action
            self.item = item
            self.position = position

    def __init__(self) -> None:
        super().__init__(id="queue", markup=False, compact=True)
        self.items: list[QueueItem] = []
        self.display = False
        self.border_title = "queue"
        self.border_subtitle = "e edit · d withdraw · K up · J down · Enter send now · Esc back"

    def show_items(self, items: list[QueueItem]) -> None:
        """Show the current queue. The same message stays highlighted."""
        if items == self.items:
            return
        highlighted_item = self._highlighted_item()
        self.items = items
        self.clear_options()
        self.add_options(
            Option(f"{place}. [{item.state}] {sanitize_line(item.text, _MAX_TEXT_CHARACTERS)}")
            for place, item in enumerate(items, 1)
        )
        self.display = bool(items)
        if highlighted_item is not None:
            places = [place for place, item in enumerate(items) if item.id == highlighted_item.id]
            self.highlighted = places[0] if places else (0 if items else None)

    def _highlighted_item(self) -> QueueItem | None:
        index = self.highlighted
        return self.items[index] if index is not None and index < len(self.items) else None

    async def _on_key(self, event: events.Key) -> None:
        action = _ACTIONS.get(event.character or "") or _ACTIONS.get(event.key)
        item = self._highlighted_item()
        if action is None or item is None:
            return
        event.prevent_default()
        event.stop()
        self.post_message(self.ActionRequested(action, item, (self.highlighted or 0) + 1))
