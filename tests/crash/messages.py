"""What the crash driver knows of its messages: the book that the journal is held against."""

from dataclasses import dataclass, field

from hark.protocol.receipts import Receipt, ReceiptState

WAITING = (ReceiptState.QUEUED, ReceiptState.HELD, ReceiptState.STEERING)


@dataclass(slots=True)
class Posted:
    """One message, with all that was told about it."""

    id: str
    session: str
    text: str
    delivery: str
    posts: int = 0
    receipts: list[Receipt] = field(default_factory=list[Receipt])
    edited: str = ""  # the last text that was said to be in force
    maybe_edited: list[str] = field(default_factory=list[str])  # texts that nothing was said about
    is_withdrawn: bool = False

    @property
    def has_receipt(self) -> bool:
        return bool(self.receipts)

    @property
    def may_wait(self) -> bool:
        """True when it was in the queue when something was last said of it."""
        return self.has_receipt and self.receipts[-1].state in WAITING

    def may_read(self, text: str) -> bool:
        """Tell whether a turn may have taken it with this text."""
        return text in (self.edited or self.text, *self.maybe_edited)

    def started_in(self) -> set[str]:
        """Return the turns that a receipt said to have been started by it."""
        return {one.turn for one in self.receipts if one.state is ReceiptState.STARTED and one.turn}
