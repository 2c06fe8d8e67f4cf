"""Random keys, pastes, resizes and stops against a busy agent: nothing typed is lost, and the screen tells the truth.

`python -m tests.surfaces.terminal.fuzz --seconds 120 --seed 7` for longer.
"""

import argparse
import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from textual import events
from textual.geometry import Size

from hark.protocol.commands import Delivery
from hark.protocol.names import is_child
from hark.protocol.provider import ReasoningChunk
from hark.protocol.records import Queued, Steered, TurnStarted, Withdrawn
from hark.protocol.session import Session
from hark.providers.scripted import Hang, Pause, Reply, Step
from tests.surfaces.terminal.terminal_fixture import Seat, call, seat

ACTS_A_SECOND = 200
REPLIES = 3_000
SEND_KEYS = ("enter", "enter", "tab", "ctrl+s")
LOOSE_KEYS = ("left", "right", "home", "end", "pageup", "pagedown", "ctrl+o", "shift+left", "f12", "ctrl+q", "ctrl+l")


class Fuzz:
    """One run: what is done is drawn from a seed, what is promised is looked at in the end."""

    def __init__(self, one: Seat, seed: int) -> None:
        self._one = one
        self._random = random.Random(seed)
        self._words: list[str] = []
        self._sent: dict[str, str] = {}
        self._acts = 0
        self._stopped_at = 0.0
        self._note_what_is_sent()

    async def run(self, seconds: float) -> int:
        """Do so for a while; return how many acts it were."""
        ends_at = time.monotonic() + seconds
        next_at = time.monotonic()
        while time.monotonic() < ends_at:
            await self._act()
            next_at = max(next_at + 1 / ACTS_A_SECOND, time.monotonic() - 1.0)
            await asyncio.sleep(max(0.0, next_at - time.monotonic()))
        await self._settle()
        return self._acts

    async def check(self) -> None:
        """See that every promise was kept."""
        app = self._one.app
        assert app.failure is None
        assert app.session.id == "demo"
        await self._stop_all()
        await self._check_messages()
        kept = "\n".join([*self._history(), app.composer.text])
        lost = [word for word in self._words if word not in kept]
        assert lost == [], f"typed and gone: {lost}"
        app.save_draft()
        draft = app.place.home / "drafts" / "demo"
        assert (draft.read_text() if draft.exists() else "") == app.composer.text

    # What is done.

    async def _act(self) -> None:
        choice = self._random.random()
        if choice < 0.55:
            self._word()
        elif choice < 0.75:
            self._key(self._random.choice(SEND_KEYS))
        elif choice < 0.85:
            self._key(self._random.choice(LOOSE_KEYS))
            await self._settle()
            composer = self._one.app.composer
            composer.move_cursor(composer.document.end)  # or the next word would stand in the midst of another
        elif choice < 0.90:
            self._paste()
        elif choice < 0.95:
            size = Size(self._random.randint(8, 140), self._random.randint(3, 50))
            self._one.app.post_message(events.Resize(size, size))
            self._acts += 1
        elif choice < 0.99:
            await self._stop()
        else:
            await self._elsewhere()

    def _word(self) -> None:
        word = f"w{len(self._words)}x"
        self._words.append(word)
        for letter in f"{word} ":
            self._key("space" if letter == " " else letter, letter)

    def _paste(self) -> None:
        words = [f"w{len(self._words) + number}x" for number in range(self._random.choice((1, 3, 300)))]
        self._words += words
        self._one.app.post_message(events.Paste("\n".join(words) + "\n"))
        self._acts += 1

    async def _stop(self) -> None:
        """Stop, in the middle of typing or with a look at the text, which does not mind."""
        if time.monotonic() - self._stopped_at < 0.7:
            return  # it would be the second of two, and open a list
        if self._random.random() < 0.7:
            self._stopped_at = time.monotonic()
            self._key("escape")
            return
        await self._settle()
        before = self._one.app.composer.text
        self._stopped_at = time.monotonic()
        self._key("escape")
        await self._settle()
        assert self._one.app.composer.text == before

    async def _elsewhere(self) -> None:
        """Look into the queue or a list, and come back."""
        await self._settle()
        app = self._one.app
        kind = self._random.choice(("queue", "rewind", "children", "command"))
        if kind == "queue":
            for key in ("f2", self._random.choice("dKJe")):
                self._key(key, key if len(key) == 1 else None)
                await self._settle()
            app.screen.set_focus(app.composer)
            if app.is_editing:
                self._key("escape")
                self._stopped_at = time.monotonic()
        elif kind == "command":
            before = app.composer.text
            app.composer.put(self._random.choice(("/status", "/queue", "/usage", "/help")))
            app.send()
            app.composer.put(before)
        else:
            await (app._acts._rewind() if kind == "rewind" else app._acts._children())
            await self._settle()
            if len(app.screen_stack) > 1:
                self._key("escape")
                await self._one.until(lambda: len(app.screen_stack) == 1)
        await self._settle()

    def _key(self, key: str, character: str | None = None) -> None:
        self._one.app.post_message(events.Key(key, character))
        self._acts += 1

    async def _settle(self) -> None:
        """Return when every key that was pressed has been taken by the line, and what it asked for has begun."""
        taken = asyncio.Event()
        app = self._one.app
        app.call_later(lambda: app.composer.call_later(taken.set))
        await taken.wait()
        await asyncio.sleep(0.01)

    # What is seen of it.

    def _note_what_is_sent(self) -> None:
        outbox = self._one.app.outbox
        say = outbox.say

        async def noted(session: Session, message: str, text: str, delivery: Delivery | None) -> None:
            if not text.startswith("/"):
                self._sent[message] = text
            await say(session, message, text, delivery)

        outbox.say = noted  # type: ignore[method-assign]

    async def _stop_all(self) -> None:
        app = self._one.app
        while app.progress.turn or await app.session.queue():
            for item in await app.session.queue():
                await app.session.withdraw(item.id)
            await app.session.interrupt("the end")
            await self._settle()
        await self._one.pilot.pause()

    async def _check_messages(self) -> None:
        """Each message is exactly once in the journal, and its receipt on the screen says where."""
        fates: list[tuple[str, str]] = []
        for record in await self._one.agent.bench.store.journal.read("demo"):
            match record:
                case TurnStarted(turn=turn, messages=messages):
                    fates += [(message.id, f"turn {turn.rpartition('.t')[2]}") for message in messages]
                case Steered(messages=messages):
                    fates += [(message.id, "steered into") for message in messages]
                case Withdrawn(message=message):
                    fates.append((message, "withdrawn"))
                case Queued():
                    pass
                case _:
                    pass
        counts = Counter(message for message, _ in fates)
        assert {message: counts[message] for message in self._sent if counts[message] != 1} == {}
        shown = self._one.app.log_view._said
        for message, fate in fates:
            if message in shown:
                assert shown[message].receipt.endswith(fate) or fate in shown[message].receipt
        assert not any("sending" in block.receipt for block in shown.values())

    def _history(self) -> list[str]:
        path = self._one.app.place.home / "history.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [msgspec.json.decode(line, type=str) for line in lines]


def replies(seed: int) -> list[Reply]:
    """A busy model's script."""
    chance = random.Random(seed)

    def one() -> list[Step]:
        kinds: list[list[Step]] = [
            [Hang()],
            ["short"],
            [ReasoningChunk("let me think"), "**well** ", Pause(0.05), "```python\nx = 1\n", Pause(0.2), "```\n"],
            [part for number in range(200) for part in (f"token{number} ", Pause(0.002))],
            [call("shell", command="sleep 3")],
            [call("shell", command="seq 1 3000")],
            [call("ask", question="Which one?", choices=["this", "that"])],
            [call("delegate", goal="a part of it")],
            [call("nothing")],
        ]
        return chance.choice(kinds)

    return [one() for _ in range(REPLIES)]


async def fuzz(home: Path, seconds: float, seed: int) -> int:
    """Run and check; return the number of acts."""
    async with seat(home, replies(seed), limits={"steps": 5}) as one:
        run = Fuzz(one, seed)
        acts = await run.run(seconds)
        await run.check()
        assert not is_child(one.app.session.id)
        return acts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with TemporaryDirectory(prefix="hark-fuzz-") as home:
        acts = asyncio.run(fuzz(Path(home), options.seconds, options.seed))
    print(f"{acts} acts in {options.seconds:g} s: nothing lost")


if __name__ == "__main__":
    main()
