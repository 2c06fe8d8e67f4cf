"""The people of a simulated world: they post, stop, edit, answer; their platforms deliver until there is a receipt."""

import asyncio
from collections.abc import Callable
from random import Random

from hark.protocol.commands import Answer, Delivery, Edit, Interrupt, Move, QueueCommand, Say, Withdraw
from hark.protocol.events import AnyEvent, Notice, QuestionAsked, QuestionClosed, ReceiptChanged, TurnEnd
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.records import Queued, Steered, TurnEnded, TurnStarted, Withdrawn
from hark.protocol.store import StoreError
from tests.simulation.machine import Machine, MachineDied
from tests.simulation.observations import Ledger, Posted, Stopped

TRIES = 40


class Person:
    """Somebody with a surface on some machine. Every act runs by itself: people don't wait for receipts."""

    def __init__(
        self, name: str, ledger: Ledger, random: Random, pace: float, machines: Callable[[], list[Machine]]
    ) -> None:
        self.name = name
        self.acts: list[asyncio.Task[None]] = []
        self._ledger = ledger
        self._random = random
        self._pace = pace
        self._machines = machines
        self._count = 0

    async def live(self, acts: int) -> None:
        """Do things, with pauses between them."""
        for _ in range(acts):
            await asyncio.sleep(self._random.expovariate(1 / self._pace) + 1e-6)
            self._act()

    def say(self, delivery: Delivery) -> Posted:
        """Post a message."""
        self._count += 1
        name = f"{self.name}.m{self._count}"
        posted = Posted(name, f"text of {name}", delivery, self._ledger.mark())
        self._ledger.posted[name] = posted
        self._do(self._deliver(posted), f"say {name}")
        return posted

    def stop(self, turn: str, machine: Machine | None = None) -> None:
        """Ask for a stop."""
        machine = machine or self._machine()
        if machine is None:
            return
        self._count += 1
        shown = self._random.choice([None, None, None, 4])
        name = f"{self.name}.s{self._count}"
        stopped = Stopped(name, turn, machine.name, self._ledger.mark(), machine.link.now(), shown)
        self._ledger.stops[name] = stopped
        self._do(self._stop(stopped, machine), f"stop {name}")

    def answer(self, machine: Machine, question: str) -> None:
        """Answer a question that was seen on a machine."""
        self._count += 1
        answer = Answer(f"{self.name}.a{self._count}", question, self._random.choice(["yes", "no"]))
        self._do(self._quietly(machine, lambda machine: machine.call(machine.door.answer(answer), "answer")), "answer")

    def _act(self) -> None:
        random = self._random
        luck = random.random()
        if luck < 0.55:
            self.say(random.choice(list(Delivery)))
            if random.random() < 0.15:
                self.say(random.choice(list(Delivery)))
            if random.random() < 0.12:
                self.stop("")
        elif luck < 0.75:
            self.stop(self._some_turn() if random.random() < 0.4 else "")
            if random.random() < 0.3:
                self.say(random.choice(list(Delivery)))
        elif self._ledger.posted:
            self._change()

    def _some_turn(self) -> str:
        turns = [one.record.turn for one in self._ledger.records[-60:] if isinstance(one.record, TurnStarted)]
        return self._random.choice(turns[-2:]) if turns else f"{self._ledger.session}.t1"

    def _change(self) -> None:
        self._count += 1
        random, name = self._random, f"{self.name}.q{self._count}"
        message = random.choice(list(self._ledger.posted)[-6:])
        command: QueueCommand = random.choice(
            [
                Edit(name, message, f"edited text of {message}"),
                Move(name, message, random.randint(0, 4)),
                Withdraw(name, message),
            ]
        )
        machine = self._machine()
        if machine is not None:
            self._do(
                self._quietly(machine, lambda machine: machine.call(machine.door.change(command), "change")),
                f"change {name}",
            )

    async def _deliver(self, posted: Posted) -> None:
        """Deliver until there is a receipt, and sometimes once more; the id stays the same."""
        say = Say(posted.id, posted.text, posted.delivery, self.name)
        extra = 1 if self._random.random() < 0.15 else 0
        for _ in range(TRIES):
            if await self._try(posted, say):
                if not extra:
                    return
                extra -= 1
            await asyncio.sleep(self._random.random() * 0.5 + 1e-6)

    async def _try(self, posted: Posted, say: Say) -> bool:
        machine = self._machine()
        patience = None if self._random.random() < 0.9 else self._random.random() * 0.1
        if machine is None:
            return False
        try:
            async with asyncio.timeout(patience):
                receipt = await machine.call(machine.door.say(say), f"say {say.id}")
        except (MachineDied, StoreError, TimeoutError):
            return False
        self._told(posted, receipt, machine)
        return True

    def _told(self, posted: Posted, receipt: Receipt, machine: Machine) -> None:
        self._ledger.note(machine.link.now(), machine.name, "told", receipt.id, receipt.state, receipt.turn)
        posted.receipts.append((self._ledger.mark(), receipt))
        check_receipt(self._ledger, receipt)

    async def _stop(self, stopped: Stopped, machine: Machine) -> None:
        wish = Interrupt(stopped.id, f"user:{stopped.id}", stopped.turn, stopped.shown)
        self._ledger.note(machine.link.now(), machine.name, "stop", stopped.id, stopped.turn)
        try:
            stopped.settled = await machine.call(machine.door.interrupt(wish), f"stop {stopped.id}")
        except (MachineDied, StoreError):
            stopped.is_lost = True
        stopped.returned, stopped.returned_at = self._ledger.mark(), machine.link.now()
        met = stopped.settled.turn if stopped.settled else None
        self._ledger.note(stopped.returned_at, machine.name, "stopped", stopped.id, met)

    async def _quietly(self, machine: Machine, act: "Callable[[Machine], object]") -> None:
        try:
            await act(machine)  # type: ignore[misc]
        except (MachineDied, StoreError):
            self._ledger.note(machine.link.now(), machine.name, "an act of", self.name, "was lost")

    def _machine(self) -> Machine | None:
        machines = [machine for machine in self._machines() if machine.is_ready.is_set() and not machine.is_over]
        return self._random.choice(machines) if machines else None

    def _do(self, act: "object", name: str) -> None:
        self.acts.append(asyncio.create_task(act, name=f"{self.name}: {name}"))  # type: ignore[arg-type]


class Screen:
    """What people see on one machine; it also has their hands for answers."""

    def __init__(self, machine: Machine, ledger: Ledger, answered: Callable[[str], None]) -> None:
        self.questions: list[str] = []
        self._machine = machine
        self._ledger = ledger
        self._answered = answered
        self._reader = machine.door.subscribe()
        machine.spawn(self._watch(), "screen")

    async def _watch(self) -> None:
        """Read until the machine is gone; when a door closes, look for another."""
        while not self._machine.is_over:
            async for event in self._reader:
                if not self._machine.link.is_dead:
                    self._saw(event)
            await self._machine.link.wait(0.1)
            self._reader = self._machine.door.subscribe()

    def _saw(self, event: AnyEvent) -> None:
        ledger = self._ledger
        match event:
            case ReceiptChanged(receipt=receipt):
                check_receipt(ledger, receipt)
            case TurnEnd(turn=turn):
                ledger.note(self._machine.link.now(), self._machine.name, "saw the end of", turn)
                if not any(isinstance(one.record, TurnEnded) and one.record.turn == turn for one in ledger.records):
                    ledger.violate(f"honest: people saw the end of {turn} before it was durable")
            case Notice(turn=turn, code=code):
                ledger.notices.append((ledger.mark(), turn or "", code))
            case QuestionAsked(question=question):
                self.questions.append(question)
                self._answered(question)
            case QuestionClosed(question=question):
                if question in self.questions:
                    self.questions.remove(question)
            case _:
                pass


def check_receipt(ledger: Ledger, receipt: Receipt) -> None:
    """A receipt is told only when its record is in the journal, in this very moment."""
    kinds: tuple[type, ...]
    match receipt.state:
        case ReceiptState.STARTED:
            kinds = (TurnStarted,)
        case ReceiptState.STEERED:
            kinds = (Steered,)
        case ReceiptState.WITHDRAWN:
            kinds = (Withdrawn,)
        case ReceiptState.DUPLICATE:
            kinds = ()
        case ReceiptState.QUEUED if receipt.position is None:
            kinds = ()  # the machine closes: it waits in the inbox
        case _:
            kinds = (Queued,)
    is_true = receipt.state is ReceiptState.DUPLICATE or bool(kinds)
    if kinds:
        is_true = any(type(one.record) in kinds and _has(one.record, receipt.id) for one in ledger.records)
    else:
        is_true = any(entry.command.id == receipt.id for _, entry in ledger.entries)
    if not is_true:
        ledger.violate(f"honest: {receipt.id} was told {receipt.state} (turn {receipt.turn}), and no record says so")


def _has(record: object, message: str) -> bool:
    match record:
        case TurnStarted(messages=messages) | Steered(messages=messages):
            return any(one.id == message for one in messages)
        case Queued(message=one):
            return one.id == message
        case Withdrawn(message=name):
            return name == message
        case _:
            return False
