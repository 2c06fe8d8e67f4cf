"""The crash driver's record of its messages, which is compared with the journal."""

from dataclasses import dataclass, field

from hark.protocol.receipts import Receipt, ReceiptState

PENDING_STATES = (ReceiptState.QUEUED, ReceiptState.HELD, ReceiptState.STEERING)


@dataclass(slots=True)
class SentMessage:
    """One message with all its receipts and edits."""

    id: str
    session: str
    text: str
    delivery: str
    send_count: int = 0
    receipts: list[Receipt] = field(default_factory=list[Receipt])
    edited: str = ""  # the text of the last confirmed edit
    maybe_edited: list[str] = field(default_factory=list[str])  # the texts of unconfirmed edits
    is_withdrawn: bool = False

    @property
    def has_receipt(self) -> bool:
        return bool(self.receipts)

    @property
    def may_be_queued(self) -> bool:
        """Whether the message was queued according to its last receipt."""
        return self.has_receipt and self.receipts[-1].state in PENDING_STATES

    def may_have_text(self, text: str) -> bool:
        """Return whether a turn may have processed the message with this text."""
        return text in (self.edited or self.text, *self.maybe_edited)

    def started_turns(self) -> set[str]:
        """Return the turns that the message started, according to its receipts."""
        return {one.turn for one in self.receipts if one.state is ReceiptState.STARTED and one.turn}
