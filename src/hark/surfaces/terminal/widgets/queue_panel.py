"""What waits, in a small panel: edited, moved, withdrawn or sent at once, by key."""

from textual import events
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from hark.protocol.receipts import QueueItem
from hark.surfaces.terminal.keys import QUEUE_KEYS
from hark.text.safe_text import safe_line

_ACTS = {key: act for key, (act, _) in QUEUE_KEYS.items()} | {"delete": "withdraw", "ctrl+c": "leave"}
_TEXT_CHARACTERS = 200


class QueuePanel(OptionList):
    """The queue, in running order. It shows, and posts what the person wants done."""

    class Wanted(Message):
        """The person wants something done with a message that waits."""

        def __init__(self, act: str, item: QueueItem, position: int) -> None:
            super().__init__()
            self.act = act
            self.item = item
            self.position = position

    def __init__(self) -> None:
        super().__init__(id="queue", markup=False, compact=True)
        self.items: list[QueueItem] = []
        self.display = False
        self.border_title = "waiting"
        self.border_subtitle = "e edit · d withdraw · K up · J down · Enter send now · Esc back"

    def show(self, items: list[QueueItem]) -> None:
        """Show what waits now; the highlight stays with its message."""
        if items == self.items:
            return
        chosen = self._chosen()
        self.items = items
        self.clear_options()
        self.add_options(
            Option(f"{place}. [{item.state}] {safe_line(item.text, _TEXT_CHARACTERS)}")
            for place, item in enumerate(items, 1)
        )
        self.display = bool(items)
        if chosen is not None:
            places = [place for place, item in enumerate(items) if item.id == chosen.id]
            self.highlighted = places[0] if places else (0 if items else None)

    def _chosen(self) -> QueueItem | None:
        place = self.highlighted
        return self.items[place] if place is not None and place < len(self.items) else None

    async def _on_key(self, event: events.Key) -> None:
        act = _ACTS.get(event.character or "") or _ACTS.get(event.key)
        item = self._chosen()
        if act is None or item is None:
            return
        event.prevent_default()
        event.stop()
        self.post_message(self.Wanted(act, item, (self.highlighted or 0) + 1))
