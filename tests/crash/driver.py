"""The crash driver sends messages, kills workers at any instant, and resends messages without a receipt."""

import asyncio
import random
import time
from pathlib import Path

from hark.app.clock import SystemClock
from hark.store.sqlite import SqliteStore
from tests.crash.audit import AuditResults, audit
from tests.crash.leftovers import find_leftover_processes
from tests.crash.messages import SentMessage
from tests.crash.model import PLANS
from tests.crash.process import START_SECONDS, Worker
from tests.crash.wire import Order, Reply
from tests.waiting import until

SESSIONS = 4
ROUNDS_PER_SESSION = 20  # then new sessions are used, so that histories stay short
LIFE_SECONDS = 0.6
FINISH_SECONDS = 120.0
SPARE_PROBABILITY = 0.25  # the share of rounds in which a single worker is not killed
DELIVERIES = ("interrupt", "steer", "queue", "queue")
# Where a worker dies: at a random instant, during startup, during puts, or on its own at a point of its work.
AIMS = (
    *("any", "any", "start", "put", "put", "before receipt", "after receipt", "turn.started", "reply.delta"),
    *("call.started", "before effect", "effect", "call.ended", "turn.ended", "receipt", "step.started"),
)


class Driver:
    """Starts and kills workers. Records the sent messages and their receipts."""

    def __init__(self, home: Path, port: int, seed: int) -> None:
        self.posted: list[SentMessage] = []
        self.kills = 0
        self.dead: list[int] = []
        self.ready_seconds: list[float] = []
        self.receipt_seconds: list[float] = []
        self._home = home
        self._port = port
        self._random = random.Random(seed)
        self._messages: dict[str, SentMessage] = {}
        self._workers: list[Worker] = []
        self._to_send_again: list[SentMessage] = []

    async def run_round(self) -> None:
        """Start a worker, send it messages, and usually kill one or all live workers."""
        pick = self._random
        aim = pick.choice(AIMS)
        dies_on_its_own = aim not in ("any", "start", "put")
        options = ["--die-at", aim, "--die-after", str(pick.randint(1, 3))] if dies_on_its_own else []
        worker = await self._start(options)
        if aim == "start":
            await asyncio.sleep(pick.uniform(0.0, 0.5))
        else:
            await asyncio.wait_for(worker.is_ready.wait(), START_SECONDS)
            await self._send_load(worker, 0.02 if aim == "put" else pick.uniform(0.0, LIFE_SECONDS))
        if aim == "put":
            for _ in range(4):
                self._send_new(worker)
            await asyncio.sleep(pick.uniform(0.0, 0.006))
        if len(self._workers) == 1 and pick.random() < SPARE_PROBABILITY:
            return  # the next worker follows this one's sessions and sees it die
        victims = list(self._workers) if pick.random() < 0.4 else [pick.choice(self._workers)]
        for victim in victims:
            await self._kill(victim)

    async def finish(self) -> None:
        """Kill all workers, then start a last one and wait until it has finished all remaining work."""
        for worker in list(self._workers):
            await self._kill(worker)
        last = await self._start([])
        await asyncio.wait_for(last.is_ready.wait(), START_SECONDS)
        self._send_unconfirmed(last)
        await until(lambda: not last.unanswered, seconds=FINISH_SECONDS, shows=lambda: last.unanswered)
        store = await SqliteStore.open(self._home / "hark.db", "driver", SystemClock())
        unfinished: list[object] = []

        async def all_finished() -> bool:
            unfinished[:] = await store.inbox.unfinished_sessions()
            return not unfinished

        await until(all_finished, seconds=FINISH_SECONDS, shows=lambda: unfinished)
        await store.close()
        code = await last.finish()
        if code != 0:
            raise RuntimeError(f"the last worker ended with {code}: {(self._home / 'stderr').read_text()[-2000:]}")

    async def audit(self) -> AuditResults:
        """Compare the journal with the sent messages, and check for leftover processes and errors on stderr."""
        store = await SqliteStore.open(self._home / "hark.db", "auditor", SystemClock())
        try:
            findings = await audit(store, self.posted, self._read_effects())
        finally:
            await store.close()
        for process in find_leftover_processes(self.dead):
            findings.add_problem("left running", process)
        errors = (self._home / "stderr").read_text()
        if errors:
            findings.add_problem("said on stderr", errors[-2000:])
        findings.counts["kills"] = self.kills
        return findings

    def _read_effects(self) -> list[str]:
        path = self._home / "effects"
        return path.read_text().split() if path.exists() else []

    # One round.

    async def _start(self, options: list[str]) -> Worker:
        sessions = [self._session(number) for number in range(SESSIONS)]
        worker = await Worker.start(["--port", str(self._port), *options, *sessions], self._home, self._on_reply)
        self._workers.append(worker)
        return worker

    async def _send_load(self, worker: Worker, seconds: float) -> None:
        """Send and change messages for `seconds`, or until the worker dies."""
        self._send_unconfirmed(worker)
        deadline = time.perf_counter() + seconds
        self._send_new(worker)
        while time.perf_counter() < deadline and worker.is_alive:
            self._send_random_command(self._random.choice(self._workers))
            await asyncio.sleep(self._random.expovariate(1 / 0.06))

    async def _kill(self, worker: Worker) -> None:
        await worker.kill()
        self.kills += 1
        self.dead.append(worker.pid)
        self._workers.remove(worker)
        if worker.ready_seconds is not None:
            self.ready_seconds.append(worker.ready_seconds)
        if worker.receipt_seconds is not None:
            self.receipt_seconds.append(worker.receipt_seconds)
        for order in worker.unanswered.values():
            one = self._messages.get(order.message)
            if one is not None and order.do == "say" and not one.has_receipt:
                self._to_send_again.append(one)

    def _send_random_command(self, worker: Worker) -> None:
        pick = self._random
        match pick.choices(("say", "again", "stop", "edit", "move", "withdraw"), (70, 4, 7, 8, 4, 7))[0]:
            case "say":
                for _ in range(pick.randint(1, 3)):
                    self._send_new(worker)
            case "again":
                self._send(worker, self._recent_message())
            case "stop":
                worker.send(Order(0, "stop", self._session(pick.randrange(SESSIONS))))
            case "edit":
                one = self._pending_message()
                text = f"{pick.choice(list(PLANS))} {one.id} edit {len(one.maybe_edited)}"
                one.maybe_edited.append(text)
                worker.send(Order(0, "edit", one.session, one.id, text))
            case "move":
                one = self._pending_message()
                worker.send(Order(0, "move", one.session, one.id))
            case _:
                one = self._pending_message()
                worker.send(Order(0, "withdraw", one.session, one.id))

    def _send_new(self, worker: Worker) -> None:
        name = f"m{len(self.posted)}"
        session = self._session(self._random.randrange(SESSIONS))
        plan = self._random.choice(list(PLANS))
        one = SentMessage(name, session, f"{plan} {name}", self._random.choice(DELIVERIES))
        self.posted.append(one)
        self._messages[name] = one
        self._send(worker, one)

    def _send(self, worker: Worker, one: SentMessage) -> None:
        one.send_count += 1
        worker.send(Order(0, "say", one.session, one.id, one.text, one.delivery))

    def _send_unconfirmed(self, worker: Worker) -> None:
        again, self._to_send_again = self._to_send_again, []
        for one in again:
            if not one.has_receipt:
                self._send(worker, one)

    def _on_reply(self, order: Order, reply: Reply) -> None:
        if reply.receipt is not None:
            self._messages[order.message].receipts.append(reply.receipt)
        elif order.do == "edit":
            one = self._messages[order.message]
            if reply.refusal is None:
                one.edited = order.text
            if order.text in one.maybe_edited:
                one.maybe_edited.remove(order.text)
        elif order.do == "withdraw" and reply.refusal is None:
            self._messages[order.message].is_withdrawn = True

    def _recent_message(self) -> SentMessage:
        return self._random.choice(self.posted[-8:])

    def _pending_message(self) -> SentMessage:
        """Return a recent message, preferably one that may still be queued."""
        return self._random.choice([one for one in self.posted[-30:] if one.may_be_queued] or self.posted[-8:])

    def _session(self, number: int) -> str:
        return f"s{self.kills // ROUNDS_PER_SESSION}-{number}"
