"""Simulated users who send, stop, edit and answer. Their platforms redeliver each message until it has a receipt."""

import asyncio
from collections.abc import Callable
from random import Random

from hark.protocol.commands import (
    Answer,
    ChangeCommand,
    Delivery,
    Edit,
    Interrupt,
    Move,
    PauseTurn,
    Reset,
    Say,
    Withdraw,
)
from hark.protocol.events import AnyEvent, Notice, QuestionAsked, QuestionClosed, ReceiptChanged, TurnEnd
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.records import Queued, Steered, TurnEnded, TurnStarted, Withdrawn
from hark.protocol.store import StoreError
from tests.simulation.machine import Machine, MachineDied
from tests.simulation.observations import Observations, SentMessage, StopRequest

TRIES = 40


class SimulatedUser:
    """A simulated user with a surface on some machine. Actions run concurrently, without waiting for receipts."""

    def __init__(
        self, name: str, observations: Observations, random: Random, pace: float, machines: Callable[[], list[Machine]]
    ) -> None:
        self.name = name
        self.actions: list[asyncio.Task[None]] = []
        self._observations = observations
        self._random = random
        self._pause_seconds = pace
        self._machines = machines
        self._count = 0

    async def run(self, count: int) -> None:
        """Perform `count` random actions, with pauses between them."""
        for _ in range(count):
            await asyncio.sleep(self._random.expovariate(1 / self._pause_seconds) + 1e-6)
            self._perform_random_action()

    def send(self, delivery: Delivery) -> SentMessage:
        """Send a message."""
        self._count += 1
        name = f"{self.name}.m{self._count}"
        message = SentMessage(name, f"text of {name}", delivery, self._observations.next_mark())
        self._observations.messages[name] = message
        self._start_action(self._deliver(message), f"say {name}")
        return message

    def stop(self, turn: str, machine: Machine | None = None) -> None:
        """Request a stop."""
        machine = machine or self._choose_machine()
        if machine is None:
            return
        self._count += 1
        shown = self._random.choice([None, None, None, 4])
        name = f"{self.name}.s{self._count}"
        stop_request = StopRequest(name, turn, machine.name, self._observations.next_mark(), machine.link.now(), shown)
        self._observations.stops[name] = stop_request
        self._start_action(self._stop(stop_request, machine), f"stop {name}")

    def answer(self, machine: Machine, question: str) -> None:
        """Answer a question that was shown on a machine."""
        self._count += 1
        answer = Answer(f"{self.name}.a{self._count}", question, self._random.choice(["yes", "no"]))
        self._start_action(
            self._call_ignoring_failure(machine, lambda machine: machine.call(machine.proxy.answer(answer), "answer")),
            "answer",
        )

    def _perform_random_action(self) -> None:
        random = self._random
        luck = random.random()
        if luck < 0.55:
            self.send(random.choice(list(Delivery)))
            if random.random() < 0.15:
                self.send(random.choice(list(Delivery)))
            if random.random() < 0.12:
                self.stop("")
        elif luck < 0.75:
            self.stop(self._choose_recent_turn() if random.random() < 0.4 else "")
            if random.random() < 0.3:
                self.send(random.choice(list(Delivery)))
        elif self._observations.messages:
            self._change_session()

    def _choose_recent_turn(self) -> str:
        turns = [one.record.turn for one in self._observations.records[-60:] if isinstance(one.record, TurnStarted)]
        return self._random.choice(turns[-2:]) if turns else f"{self._observations.session}.t1"

    def _change_session(self) -> None:
        self._count += 1
        random, name = self._random, f"{self.name}.q{self._count}"
        message = random.choice(list(self._observations.messages)[-6:])
        command: ChangeCommand = random.choice(
            [
                Edit(name, message, f"edited text of {message}"),
                Move(name, message, random.randint(0, 4)),
                Withdraw(name, message),
                PauseTurn(name),
                Reset(name),
            ]
        )
        machine = self._choose_machine()
        if machine is not None:
            self._start_action(
                self._call_ignoring_failure(
                    machine, lambda machine: machine.call(machine.proxy.change(command), "change")
                ),
                f"change {name}",
            )

    async def _deliver(self, message: SentMessage) -> None:
        """Deliver a message until it has a receipt, and sometimes once more with the same id."""
        say = Say(message.id, message.text, message.delivery, self.name)
        extra = 1 if self._random.random() < 0.15 else 0
        for _ in range(TRIES):
            if await self._deliver_once(message, say):
                if not extra:
                    return
                extra -= 1
            await asyncio.sleep(self._random.random() * 0.5 + 1e-6)

    async def _deliver_once(self, message: SentMessage, say: Say) -> bool:
        machine = self._choose_machine()
        timeout_seconds = None if self._random.random() < 0.9 else self._random.random() * 0.1
        if machine is None:
            return False
        try:
            async with asyncio.timeout(timeout_seconds):
                receipt = await machine.call(self._say(machine, message, say), f"say {say.id}")
        except (MachineDied, StoreError, TimeoutError):
            return False
        self._record_receipt(message, receipt, machine)
        return True

    async def _say(self, machine: Machine, message: SentMessage, say: Say) -> Receipt:
        message.said_mark = message.said_mark or self._observations.next_mark()
        return await machine.proxy.say(say)

    def _record_receipt(self, message: SentMessage, receipt: Receipt, machine: Machine) -> None:
        self._observations.add_trace(machine.link.now(), machine.name, "told", receipt.id, receipt.state, receipt.turn)
        message.receipts.append((self._observations.next_mark(), receipt))
        check_receipt(self._observations, receipt)

    async def _stop(self, stop_request: StopRequest, machine: Machine) -> None:
        interrupt = Interrupt(stop_request.id, f"user:{stop_request.id}", stop_request.turn, stop_request.shown)
        self._observations.add_trace(machine.link.now(), machine.name, "stop", stop_request.id, stop_request.turn)
        try:
            stop_request.settled = await machine.call(machine.proxy.interrupt(interrupt), f"stop {stop_request.id}")
        except (MachineDied, StoreError):
            stop_request.is_lost = True
        stop_request.returned_mark, stop_request.returned_at = self._observations.next_mark(), machine.link.now()
        turn = stop_request.settled.turn if stop_request.settled else None
        self._observations.add_trace(stop_request.returned_at, machine.name, "stopped", stop_request.id, turn)

    async def _call_ignoring_failure(self, machine: Machine, call: "Callable[[Machine], object]") -> None:
        try:
            await call(machine)  # type: ignore[misc]
        except (MachineDied, StoreError):
            self._observations.add_trace(machine.link.now(), machine.name, "an action of", self.name, "was lost")

    def _choose_machine(self) -> Machine | None:
        machines = [machine for machine in self._machines() if machine.is_ready.is_set() and not machine.has_ended]
        return self._random.choice(machines) if machines else None

    def _start_action(self, coroutine: "object", name: str) -> None:
        self.actions.append(asyncio.create_task(coroutine, name=f"{self.name}: {name}"))  # type: ignore[arg-type]


class Screen:
    """A simulated subscriber on one machine that checks events and forwards questions."""

    def __init__(self, machine: Machine, observations: Observations, on_question: Callable[[str], None]) -> None:
        self.questions: list[str] = []
        self._machine = machine
        self._observations = observations
        self._on_question = on_question
        self._reader = machine.proxy.subscribe()
        machine.spawn(self._read_events(), "screen")

    async def _read_events(self) -> None:
        """Read events until the machine has ended. Subscribe again when the session closes."""
        while not self._machine.has_ended:
            async for event in self._reader:
                if not self._machine.link.is_dead:
                    self._on_event(event)
            await self._machine.link.wait(0.1)
            self._reader = self._machine.proxy.subscribe()

    def _on_event(self, event: AnyEvent) -> None:
        observations = self._observations
        match event:
            case ReceiptChanged(receipt=receipt):
                check_receipt(observations, receipt)
            case TurnEnd(turn=turn):
                observations.add_trace(self._machine.link.now(), self._machine.name, "saw the end of", turn)
                if not any(
                    isinstance(one.record, TurnEnded) and one.record.turn == turn for one in observations.records
                ):
                    observations.add_violation(f"honest: a subscriber saw the end of {turn} before it was durable")
            case Notice(turn=turn, code=code):
                observations.notices.append((observations.next_mark(), turn or "", code))
            case QuestionAsked(question=question):
                self.questions.append(question)
                self._on_question(question)
            case QuestionClosed(question=question):
                if question in self.questions:
                    self.questions.remove(question)
            case _:
                pass


def check_receipt(observations: Observations, receipt: Receipt) -> None:
    """Check that the journal already contains the record for a published receipt."""
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
            kinds = ()  # the machine is closing, and the message waits in the inbox
        case _:
            kinds = (Queued,)
    is_true = receipt.state is ReceiptState.DUPLICATE or bool(kinds)
    if kinds:
        is_true = any(
            type(one.record) in kinds and _concerns_message(one.record, receipt.id) for one in observations.records
        )
    else:
        is_true = any(entry.command.id == receipt.id for _, entry in observations.entries)
    if not is_true:
        observations.add_violation(
            f"honest: {receipt.id} got the receipt {receipt.state} (turn {receipt.turn}) without a matching record"
        )


def _concerns_message(record: object, message: str) -> bool:
    match record:
        case TurnStarted(messages=messages) | Steered(messages=messages):
            return any(one.id == message for one in messages)
        case Queued(message=one):
            return one.id == message
        case Withdrawn(message=name):
            return name == message
        case _:
            return False
