"""Changes to the messages that wait: edited in the input line, moved, withdrawn or sent at once."""

from hark.protocol.receipts import QueueItem, Refusal
from hark.surfaces.terminal.screen import ConversationScreen
from hark.surfaces.terminal.widgets.composer import joined
from hark.surfaces.terminal.widgets.queue_panel import QueuePanel


class QueueChanges:
    """Carries out what the person wants with messages that wait."""

    def __init__(self, screen: ConversationScreen) -> None:
        self._screen = screen

    def enter(self) -> None:
        """Go into the list of waiting messages."""
        panel = self._screen.queue_panel
        if panel.display:
            panel.highlighted = 0
            self._screen.screen.set_focus(panel)
        else:
            self._screen.log_view.tell("Nothing waits.", "queue")

    def change(self, wanted: QueuePanel.Wanted) -> None:
        """Do what the person wants with a message that waits."""
        match wanted.act:
            case "leave":
                self._screen.composer.focus()
            case "edit":
                self._screen.composer.begin_edit(wanted.item)
                self._screen.draw_progress()
            case _:
                self._screen.start(self._change(wanted))

    def end_edit(self, text: str | None) -> None:
        """Put a waiting message back, changed; or with None as it was."""
        item = self._screen.composer.end_edit()
        if item is not None and text is not None and text.strip() and text != item.text:
            self._screen.start(self._change_text(item, text))
        self._screen.draw_progress()

    async def _change(self, wanted: QueuePanel.Wanted) -> None:
        session, item = self._screen.session, wanted.item
        match wanted.act:
            case "withdraw":
                refusal = await session.withdraw(item.id)
            case "up":
                refusal = await session.move(item.id, max(1, wanted.position - 1))
            case "down":
                refusal = await session.move(item.id, wanted.position + 1)
            case _:
                refusal = await self._send_now(item)
        if refusal:
            self._screen.log_view.tell(refusal.message)
        await self._screen.refresh_queue()

    async def _send_now(self, item: QueueItem) -> Refusal | None:
        session = self._screen.session
        places = [place for place, waiting in enumerate(await session.queue(), 1) if waiting.id == item.id]
        if not places:
            return Refusal("not_waiting", "That message does not wait any more.")
        await session.say(f"/queue {places[0]} now")
        return None

    async def _change_text(self, item: QueueItem, text: str) -> None:
        refusal = await self._screen.session.edit(item.id, text)
        if refusal:
            self._screen.log_view.tell(f"{refusal.message} Your words are in the input line.")
            self._screen.composer.put(joined(self._screen.composer.text, text))
        await self._screen.refresh_queue()
