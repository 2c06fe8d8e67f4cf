"""The crash driver: posts messages, kills whoever takes them at any instant, and posts again what got no receipt."""

import asyncio
import random
import time
from pathlib import Path

from hark.app.clock import SystemClock
from hark.store.sqlite import SqliteStore
from tests.crash.audit import Findings, audit
from tests.crash.leftovers import leftovers
from tests.crash.messages import Posted
from tests.crash.model import PLANS
from tests.crash.process import START_SECONDS, Worker
from tests.crash.wire import Order, Reply
from tests.waiting import until

SESSIONS = 4
ROUNDS_PER_SESSION = 20  # then new sessions are used, so that no history grows long
LIFE_SECONDS = 0.6
FINISH_SECONDS = 120.0
SPARED = 0.25  # of the rounds with one worker end with two
DELIVERIES = ("interrupt", "steer", "queue", "queue")
# Where a worker dies: at a random instant, in its start, in the middle of puts, or by itself at a point of its work.
AIMS = (
    *("any", "any", "start", "put", "put", "before receipt", "after receipt", "turn.started", "reply.delta"),
    *("call.started", "before effect", "effect", "call.ended", "turn.ended", "receipt", "step.started"),
)


class Driver:
    """Never dies itself. Keeps the book of what was posted and told."""

    def __init__(self, home: Path, port: int, seed: int) -> None:
        self.posted: list[Posted] = []
        self.kills = 0
        self.dead: list[int] = []
        self.ready_seconds: list[float] = []
        self.receipt_seconds: list[float] = []
        self._home = home
        self._port = port
        self._random = random.Random(seed)
        self._book: dict[str, Posted] = {}
        self._workers: list[Worker] = []
        self._to_post: list[Posted] = []

    async def round(self) -> None:
        """Start a worker, have it work, and kill one or all that live."""
        pick = self._random
        aim = pick.choice(AIMS)
        is_self_made = aim not in ("any", "start", "put")
        words = ["--die-at", aim, "--die-after", str(pick.randint(1, 3))] if is_self_made else []
        worker = await self._start(words)
        if aim == "start":
            await asyncio.sleep(pick.uniform(0.0, 0.5))
        else:
            await asyncio.wait_for(worker.is_ready.wait(), START_SECONDS)
            await self._load(worker, 0.02 if aim == "put" else pick.uniform(0.0, LIFE_SECONDS))
        if aim == "put":
            for _ in range(4):
                self._say(worker)
            await asyncio.sleep(pick.uniform(0.0, 0.006))
        if len(self._workers) == 1 and pick.random() < SPARED:
            return  # the next one will be its guest, and sees it die
        victims = list(self._workers) if pick.random() < 0.4 else [pick.choice(self._workers)]
        for victim in victims:
            await self._kill(victim)

    async def finish(self) -> None:
        """Kill what lives, and have a last worker do all that is left, until nothing has work."""
        for worker in list(self._workers):
            await self._kill(worker)
        last = await self._start([])
        await asyncio.wait_for(last.is_ready.wait(), START_SECONDS)
        self._post_again(last)
        await until(lambda: not last.unanswered, seconds=FINISH_SECONDS, shows=lambda: last.unanswered)
        store = await SqliteStore.open(self._home / "hark.db", "driver", SystemClock())
        unfinished: list[object] = []

        async def all_finished() -> bool:
            unfinished[:] = await store.inbox.unfinished()
            return not unfinished

        await until(all_finished, seconds=FINISH_SECONDS, shows=lambda: unfinished)
        await store.close()
        code = await last.finish()
        if code != 0:
            raise RuntimeError(f"the last worker ended with {code}: {(self._home / 'stderr').read_text()[-2000:]}")

    async def audit(self) -> Findings:
        """Hold the journal against the book."""
        store = await SqliteStore.open(self._home / "hark.db", "auditor", SystemClock())
        try:
            findings = await audit(store, self.posted, self._effects())
        finally:
            await store.close()
        for process in leftovers(self.dead):
            findings.wrong("left running", process)
        errors = (self._home / "stderr").read_text()
        if errors:
            findings.wrong("said on stderr", errors[-2000:])
        findings.counts["kills"] = self.kills
        return findings

    def _effects(self) -> list[str]:
        path = self._home / "effects"
        return path.read_text().split() if path.exists() else []

    # One round.

    async def _start(self, words: list[str]) -> Worker:
        sessions = [self._session(number) for number in range(SESSIONS)]
        worker = await Worker.start(["--port", str(self._port), *words, *sessions], self._home, self._heard)
        self._workers.append(worker)
        return worker

    async def _load(self, worker: Worker, seconds: float) -> None:
        """Post and change things until the time is over or the worker is dead."""
        self._post_again(worker)
        deadline = time.perf_counter() + seconds
        self._say(worker)
        while time.perf_counter() < deadline and worker.is_alive:
            self._act(self._random.choice(self._workers))
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
            one = self._book.get(order.message)
            if one is not None and order.do == "say" and not one.has_receipt:
                self._to_post.append(one)

    def _act(self, worker: Worker) -> None:
        pick = self._random
        match pick.choices(("say", "again", "stop", "edit", "move", "withdraw"), (70, 4, 7, 8, 4, 7))[0]:
            case "say":
                for _ in range(pick.randint(1, 3)):
                    self._say(worker)
            case "again":
                self._post(worker, self._recent())
            case "stop":
                worker.order(Order(0, "stop", self._session(pick.randrange(SESSIONS))))
            case "edit":
                one = self._waiting()
                text = f"{pick.choice(list(PLANS))} {one.id} edit {len(one.maybe_edited)}"
                one.maybe_edited.append(text)
                worker.order(Order(0, "edit", one.session, one.id, text))
            case "move":
                one = self._waiting()
                worker.order(Order(0, "move", one.session, one.id))
            case _:
                one = self._waiting()
                worker.order(Order(0, "withdraw", one.session, one.id))

    def _say(self, worker: Worker) -> None:
        name = f"m{len(self.posted)}"
        session = self._session(self._random.randrange(SESSIONS))
        plan = self._random.choice(list(PLANS))
        one = Posted(name, session, f"{plan} {name}", self._random.choice(DELIVERIES))
        self.posted.append(one)
        self._book[name] = one
        self._post(worker, one)

    def _post(self, worker: Worker, one: Posted) -> None:
        one.posts += 1
        worker.order(Order(0, "say", one.session, one.id, one.text, one.delivery))

    def _post_again(self, worker: Worker) -> None:
        again, self._to_post = self._to_post, []
        for one in again:
            if not one.has_receipt:
                self._post(worker, one)

    def _heard(self, order: Order, reply: Reply) -> None:
        if reply.receipt is not None:
            self._book[order.message].receipts.append(reply.receipt)
        elif order.do == "edit":
            one = self._book[order.message]
            if reply.refusal is None:
                one.edited = order.text
            if order.text in one.maybe_edited:
                one.maybe_edited.remove(order.text)
        elif order.do == "withdraw" and reply.refusal is None:
            self._book[order.message].is_withdrawn = True

    def _recent(self) -> Posted:
        return self._random.choice(self.posted[-8:])

    def _waiting(self) -> Posted:
        """Return a message that may still wait, if there is one."""
        return self._random.choice([one for one in self.posted[-30:] if one.may_wait] or self.posted[-8:])

    def _session(self, number: int) -> str:
        return f"s{self.kills // ROUNDS_PER_SESSION}-{number}"
