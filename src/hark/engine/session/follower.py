"""A session that another process owns: its journal is followed, and tells what became of our commands."""

import asyncio
from collections.abc import Callable

from hark.engine.session.announce import read_along, tell, tell_receipts
from hark.engine.session.arrivals import Arrivals
from hark.engine.session.fanout import Fanout
from hark.engine.session.state import SessionState
from hark.protocol.commands import Command
from hark.protocol.receipts import Refusal, Settled
from hark.protocol.records import AnyRecord, Handled, Refused, TurnEnded
from hark.protocol.store import Store


class Follower:
    """Reads along. It decides nothing and writes only to the inbox."""

    def __init__(self, session: str, store: Store, told: int | None = None) -> None:
        """`told` is how many records the readers here know of already; None: what is there at first is no news."""
        self.id = session
        self.state = SessionState()
        self._store = store
        self._told = told
        self._answers: list[Callable[[AnyRecord], None]] = []

    async def follow(self, arrivals: Arrivals, fanout: Fanout) -> None:
        """Read what is new in the journal and tell it. Old news may still have our receipts."""
        known = self.state.length
        records = await self._store.journal.read(self.id, known)
        if self._told is None:
            self._told = len(records)
        for place, news in enumerate(read_along(self.id, self.state, records), known + 1):
            if place > self._told:
                tell(news, arrivals, fanout)
            else:
                tell_receipts(news, arrivals)
        for record in records:
            self._answer(record)

    def hear(self, record: AnyRecord) -> None:
        """Take one more record of the journal; whoever waits for it has its answer."""
        self.state.apply(record)
        self._answer(record)

    def _answer(self, record: AnyRecord) -> None:
        for answer in list(self._answers):
            answer(record)

    @property
    def is_asking(self) -> bool:
        """True when somebody here waits for the owner's answer."""
        return bool(self._answers)

    async def send(self, command: Command) -> int:
        """Put a command into the owner's inbox and wake it; return its place there."""
        accepted = await self._store.inbox.put(self.id, command)
        await self._store.bus.wake(self.id)
        return accepted.seq

    async def interrupt(self, command: Command) -> Settled | None:
        """Have the owner end its running turn; someone else must `follow` meanwhile."""
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[Settled | None] = loop.create_future()
        turn = ""

        def answer(record: AnyRecord) -> None:
            nonlocal turn
            if isinstance(record, Handled) and record.command == command.id:
                turn = record.turn
            elif isinstance(record, Refused) and record.command == command.id:
                settled.set_result(None)
            elif isinstance(record, TurnEnded) and record.turn == turn:
                settled.set_result(Settled(record.turn, record.outcome, record.timings))

        return await self._ask(command, answer, settled)

    async def change(self, command: Command) -> Refusal | None:
        """Have the owner change its queue or take an answer; someone else must `follow` meanwhile."""
        done: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()
        place = 0

        def answer(record: AnyRecord) -> None:
            if isinstance(record, Refused) and record.command == command.id:
                done.set_result(Refusal(record.code, record.message))
            elif place and record.inbox == place:
                done.set_result(None)

        self._answers.append(answer)
        try:
            place = await self.send(command)
            if self.state.cursor >= place and not done.done():
                done.set_result(None)  # the owner was faster than the answer to our put; a refusal would be known
            return await done
        finally:
            self._answers.remove(answer)

    async def _ask(
        self, command: Command, answer: Callable[[AnyRecord], None], done: "asyncio.Future[Settled | None]"
    ) -> Settled | None:
        self._answers.append(answer)
        try:
            await self.send(command)
            return await done
        finally:
            self._answers.remove(answer)
