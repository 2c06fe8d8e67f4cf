"""Messages on their way in: known from the very call that brings them, so that a stop can reach them too."""

import asyncio
from collections.abc import Collection

from hark.engine.session.signal import Signal
from hark.protocol.commands import Interrupt
from hark.protocol.receipts import Receipt, ReceiptState


class Arrival:
    """A message between its call and its receipt. A stop that comes meanwhile is noted on it."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.interrupt: Interrupt | None = None
        self._receipt: Receipt | None = None
        self._told = Signal()
        self._is_accepted = False
        # For its bringer alone, who is woken by it before the turn that the message starts is at work.
        self._answer: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

    @property
    def is_told(self) -> bool:
        """True when what became of it is known."""
        return self._told.is_set

    def tell(self, receipt: Receipt) -> None:
        """Take the first receipt; what comes later is news, not the answer."""
        if self._receipt is None:
            self._receipt = receipt
            self._told.set()
            if self._is_accepted:
                self.answer(receipt)

    def accepted(self) -> None:
        """The message is in the inbox, and new there: what is told of it, or was already, is its bringer's answer."""
        self._is_accepted = True
        if self._receipt is not None:
            self.answer(self._receipt)

    def answer(self, receipt: Receipt) -> None:
        """Give its bringer this receipt."""
        if not self._answer.done():
            self._answer.set_result(receipt)

    def ended(self, accepting: "asyncio.Task[None]") -> None:
        """Pass on why the task that accepts it failed, to be called when the task is over."""
        if accepting.cancelled():
            self._answer.cancel()
        elif (error := accepting.exception()) is not None and not self._answer.done():
            self._answer.set_exception(error)
            self._answer.exception()  # its bringer gets it; nobody has to

    def leave(self) -> None:
        """Whoever brought it waits no longer: nobody else may wait for its receipt either."""
        self._told.set()

    async def receipt(self) -> Receipt:
        """Return what became of the message. Only its bringer may wait here; cancelling that takes nothing back."""
        return await self._answer

    async def outcome(self) -> Receipt | None:
        """Return what became of the message; None when it was known already, not accepted, or given up."""
        await self._told.wait()
        return self._receipt


class Arrivals:
    """A session's arrivals, whoever owns the session."""

    def __init__(self) -> None:
        self._open: dict[str, list[Arrival]] = {}
        self._closed_session: str | None = None

    def add(self, message: str, stop: Interrupt | None = None) -> Arrival:
        """Note a message that is on its way; `stop` is one that met it before it came here."""
        arrival = Arrival(message)
        arrival.interrupt = stop
        if self._closed_session is not None:
            arrival.tell(Receipt(message, self._closed_session, ReceiptState.QUEUED))
        self._open.setdefault(message, []).append(arrival)
        return arrival

    def remove(self, arrival: Arrival) -> None:
        """Forget it: it has its receipt, or its bringer gave up."""
        arrival.leave()
        others = [other for other in self._open.get(arrival.message, []) if other is not arrival]
        if others:
            self._open[arrival.message] = others
        else:
            self._open.pop(arrival.message, None)

    def interrupt(self, interrupt: Interrupt, messages: Collection[str] | None = None) -> list[Arrival]:
        """Note a stop on these messages, or on all that are on their way; return those that it met."""
        names = [name for name in self._open if messages is None or name in messages]
        met = [arrival for name in names for arrival in self._open[name] if not arrival.is_told]
        for arrival in met:
            arrival.interrupt = arrival.interrupt or interrupt
        return met

    def stop_on(self, message: str) -> Interrupt | None:
        """Return the stop that was asked for while this message came in, if there was one."""
        return next((one.interrupt for one in self._open.get(message, []) if one.interrupt), None)

    def tell(self, receipt: Receipt) -> None:
        """Hand a receipt to whoever brought the message."""
        for arrival in self._open.get(receipt.id, []):
            arrival.tell(receipt)

    def close(self, session: str) -> None:
        """The process lets the session go: what is in the inbox and not decided stays there, and that is told.

        So does what comes from now on.
        """
        self._closed_session = session
        for message, arrivals in self._open.items():
            for arrival in arrivals:
                if not arrival.is_told:
                    arrival.tell(Receipt(message, session, ReceiptState.QUEUED))

    @property
    def is_empty(self) -> bool:
        """True when nothing is on its way."""
        return not self._open
