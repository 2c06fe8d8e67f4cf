"""Messages in flight: tracked from the call that sends them until their receipt, so that a stop can reach them."""

import asyncio
from collections.abc import Collection

from hark.engine.session.signal import Signal
from hark.protocol.commands import Interrupt
from hark.protocol.receipts import Receipt, ReceiptState


class InFlightMessage:
    """A message that was sent but has no receipt yet. A stop that arrives in the meantime is recorded on it."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.interrupt: Interrupt | None = None
        self._receipt: Receipt | None = None
        self._resolved = Signal()
        self._stored = Signal()
        self._is_accepted = False
        # For the sender alone: it is woken before the turn that the message starts does any work.
        self._answer: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

    @property
    def is_resolved(self) -> bool:
        """True when the message has a receipt, or its sender has stopped waiting."""
        return self._resolved.is_set

    def set_receipt(self, receipt: Receipt) -> None:
        """Set the message's receipt, unless it already has one. Later receipts are published as events only."""
        if self._receipt is None:
            self._receipt = receipt
            self._stored.set()
            self._resolved.set()
            if self._is_accepted:
                self.send_receipt(receipt)

    def mark_accepted(self) -> None:
        """Mark the message as newly stored in the inbox, and send its receipt to the sender as soon as it is known."""
        self._is_accepted = True
        self._stored.set()
        if self._receipt is not None:
            self.send_receipt(self._receipt)

    def send_receipt(self, receipt: Receipt) -> None:
        """Send this receipt to the sender."""
        if not self._answer.done():
            self._answer.set_result(receipt)

    def on_accept_done(self, task: "asyncio.Task[None]") -> None:
        """Pass an error or cancellation from the accepting task to the sender. Called when the task is done."""
        if task.cancelled():
            self._answer.cancel()
        elif (error := task.exception()) is not None and not self._answer.done():
            self._answer.set_exception(error)
            self._answer.exception()  # marks the exception as retrieved, because the sender may not be waiting

    def abandon(self) -> None:
        """Mark the message as resolved without a receipt, because its sender no longer waits."""
        self._stored.set()
        self._resolved.set()

    async def wait_for_receipt(self) -> Receipt:
        """Wait for the message's receipt. Only the sender may call this; cancelling doesn't withdraw the message."""
        return await self._answer

    async def wait_until_stored(self) -> None:
        """Wait until the message is in the inbox, or will not get there. Safe to cancel."""
        await self._stored.wait()

    async def wait_until_resolved(self) -> Receipt | None:
        """Wait for the receipt. Return None if the message was a duplicate, was not accepted, or was abandoned."""
        await self._resolved.wait()
        return self._receipt


class InFlightMessages:
    """A session's in-flight messages, whichever process owns the session."""

    def __init__(self) -> None:
        self._open: dict[str, list[InFlightMessage]] = {}
        self._closed_session: str | None = None

    def add(self, message: str, stop: Interrupt | None = None) -> InFlightMessage:
        """Track a message in flight. `stop` is an interrupt that reached the message earlier."""
        arrival = InFlightMessage(message)
        arrival.interrupt = stop
        if self._closed_session is not None:
            arrival.set_receipt(Receipt(message, self._closed_session, ReceiptState.QUEUED))
        self._open.setdefault(message, []).append(arrival)
        return arrival

    def remove(self, message: InFlightMessage) -> None:
        """Stop tracking a message that has its receipt or whose sender stopped waiting."""
        message.abandon()
        others = [other for other in self._open.get(message.message, []) if other is not message]
        if others:
            self._open[message.message] = others
        else:
            self._open.pop(message.message, None)

    def interrupt(self, interrupt: Interrupt, messages: Collection[str] | None = None) -> list[InFlightMessage]:
        """Record a stop on these messages, or on all in-flight messages. Return the messages that it affects."""
        names = [name for name in self._open if messages is None or name in messages]
        affected = [arrival for name in names for arrival in self._open[name] if not arrival.is_resolved]
        for arrival in affected:
            arrival.interrupt = arrival.interrupt or interrupt
        return affected

    def find_stop(self, message: str) -> Interrupt | None:
        """Return the stop that was requested while this message was in flight, or None."""
        return next((one.interrupt for one in self._open.get(message, []) if one.interrupt), None)

    async def wait_until_stored(self) -> None:
        """Wait until the messages that are in flight now are in the inbox. Safe to cancel."""
        for arrival in [arrival for arrivals in self._open.values() for arrival in arrivals]:
            await arrival.wait_until_stored()

    def set_receipt(self, receipt: Receipt) -> None:
        """Set a receipt on the in-flight messages that have the receipt's message id."""
        for arrival in self._open.get(receipt.id, []):
            arrival.set_receipt(receipt)

    def close(self, session: str) -> None:
        """Report all unresolved messages as queued, because this process releases the session.

        The messages stay in the inbox for the next owner. Messages added later are reported the same way.
        """
        self._closed_session = session
        for message, arrivals in self._open.items():
            for arrival in arrivals:
                if not arrival.is_resolved:
                    arrival.set_receipt(Receipt(message, session, ReceiptState.QUEUED))

    @property
    def count(self) -> int:
        """The number of messages in flight."""
        return len(self._open)

    @property
    def is_empty(self) -> bool:
        """True when no message is in flight."""
        return not self._open
