"""Fuzzes the terminal app with random keys, pastes, resizes and stops. No typed text is lost, and receipts are right.

`python -m tests.surfaces.terminal.fuzz --seconds 120 --seed 7` runs longer.
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
from hark.providers.scripted import Hang, Pause, ScriptedReply, ScriptStep
from tests.surfaces.terminal.terminal_fixture import TerminalFixture, call, open_terminal

ACTIONS_PER_SECOND = 200
REPLY_COUNT = 3_000
SEND_KEYS = ("enter", "enter", "tab", "ctrl+s")
OTHER_KEYS = ("left", "right", "home", "end", "pageup", "pagedown", "ctrl+o", "shift+left", "f12", "ctrl+q", "ctrl+l")


class TerminalFuzzer:
    """One fuzzing run. The seed determines the actions; `check` verifies the guarantees at the end."""

    def __init__(self, terminal: TerminalFixture, seed: int) -> None:
        self._terminal = terminal
        self._random = random.Random(seed)
        self._typed_words: list[str] = []
        self._sent_texts: dict[str, str] = {}
        self._action_count = 0
        self._stop_pressed_at = 0.0
        self._record_sent_texts()

    async def run(self, seconds: float) -> int:
        """Run random actions for a while and return their number."""
        ends_at = time.monotonic() + seconds
        next_at = time.monotonic()
        while time.monotonic() < ends_at:
            await self._run_random_action()
            next_at = max(next_at + 1 / ACTIONS_PER_SECOND, time.monotonic() - 1.0)
            await asyncio.sleep(max(0.0, next_at - time.monotonic()))
        await self._wait_for_keys()
        return self._action_count

    async def check(self) -> None:
        """Assert that no text was lost and that every message has the right receipt."""
        app = self._terminal.app
        assert app.failure is None
        assert app.session.id == "demo"
        await self._stop_and_withdraw_all()
        await self._check_messages()
        stored_text = "\n".join([*self._read_history(), app.composer.text])
        lost = [word for word in self._typed_words if word not in stored_text]
        assert lost == [], f"typed and gone: {lost}"
        app.save_draft()
        draft = app.environment.home / "drafts" / "demo"
        assert (draft.read_text() if draft.exists() else "") == app.composer.text

    # Random actions.

    async def _run_random_action(self) -> None:
        choice = self._random.random()
        if choice < 0.55:
            self._type_word()
        elif choice < 0.75:
            self._press_key(self._random.choice(SEND_KEYS))
        elif choice < 0.85:
            self._press_key(self._random.choice(OTHER_KEYS))
            await self._wait_for_keys()
            composer = self._terminal.app.composer
            # otherwise the next word would be typed into the middle of another one
            composer.move_cursor(composer.document.end)
        elif choice < 0.90:
            self._paste_words()
        elif choice < 0.95:
            size = Size(self._random.randint(8, 140), self._random.randint(3, 50))
            self._terminal.app.post_message(events.Resize(size, size))
            self._action_count += 1
        elif choice < 0.99:
            await self._press_stop()
        else:
            await self._open_and_close_panel()

    def _type_word(self) -> None:
        word = f"w{len(self._typed_words)}x"
        self._typed_words.append(word)
        for character in f"{word} ":
            self._press_key("space" if character == " " else character, character)

    def _paste_words(self) -> None:
        words = [f"w{len(self._typed_words) + number}x" for number in range(self._random.choice((1, 3, 300)))]
        self._typed_words += words
        self._terminal.app.post_message(events.Paste("\n".join(words) + "\n"))
        self._action_count += 1

    async def _press_stop(self) -> None:
        """Press Esc. Sometimes wait for all earlier keys first, and check that Esc does not change the typed text."""
        if time.monotonic() - self._stop_pressed_at < 0.7:
            return  # it would count as a double press and open the rewind list
        if self._random.random() < 0.7:
            self._stop_pressed_at = time.monotonic()
            self._press_key("escape")
            return
        await self._wait_for_keys()
        before = self._terminal.app.composer.text
        self._stop_pressed_at = time.monotonic()
        self._press_key("escape")
        await self._wait_for_keys()
        assert self._terminal.app.composer.text == before

    async def _open_and_close_panel(self) -> None:
        """Open the queue, a list or a command, and return to the input line."""
        await self._wait_for_keys()
        app = self._terminal.app
        kind = self._random.choice(("queue", "rewind", "children", "command"))
        if kind == "queue":
            for key in ("f2", self._random.choice("dKJe")):
                self._press_key(key, key if len(key) == 1 else None)
                await self._wait_for_keys()
            app.screen.set_focus(app.composer)
            if app.composer.edited_item:
                self._press_key("escape")
                self._stop_pressed_at = time.monotonic()
        elif kind == "command":
            before = app.composer.text
            app.composer.set_text(self._random.choice(("/status", "/queue", "/usage", "/help")))
            app.send()
            app.composer.set_text(before)
        else:
            picking = asyncio.ensure_future(
                app.commands.pick_rewind_point() if kind == "rewind" else app.commands.pick_child()
            )
            await self._terminal.until(lambda: picking.done() or len(app.screen_stack) > 1)
            await self._wait_for_keys()
            if len(app.screen_stack) > 1:
                self._press_key("escape")
                await self._terminal.until(lambda: len(app.screen_stack) == 1)
        await self._wait_for_keys()

    def _press_key(self, key: str, character: str | None = None) -> None:
        self._terminal.app.post_message(events.Key(key, character))
        self._action_count += 1

    async def _wait_for_keys(self) -> None:
        """Wait until the input line has handled every pressed key and the resulting actions have started."""
        handled = asyncio.Event()
        app = self._terminal.app
        app.call_later(lambda: app.composer.call_later(handled.set))
        await handled.wait()
        await asyncio.sleep(0.01)

    # Checks.

    def _record_sent_texts(self) -> None:
        outbox = self._terminal.app.pending_messages
        deliver = outbox.deliver

        async def deliver_and_record(session: Session, message: str, text: str, delivery: Delivery | None) -> None:
            if not text.startswith("/"):
                self._sent_texts[message] = text
            await deliver(session, message, text, delivery)

        outbox.deliver = deliver_and_record  # type: ignore[method-assign]

    async def _stop_and_withdraw_all(self) -> None:
        app = self._terminal.app
        while app.progress.turn or await app.session.queue():
            for item in await app.session.queue():
                await app.session.withdraw(item.id)
            await app.session.interrupt("the end")
            await self._wait_for_keys()
        await self._terminal.pilot.pause()

    async def _check_messages(self) -> None:
        """Assert that the journal contains each message exactly once and matches the displayed receipts."""
        receipts: list[tuple[str, str]] = []
        for record in await self._terminal.agent.engine.store.journal.read("demo"):
            match record:
                case TurnStarted(turn=turn, messages=messages):
                    receipts += [(message.id, f"turn {turn.rpartition('.t')[2]}") for message in messages]
                case Steered(messages=messages):
                    receipts += [(message.id, "steered into") for message in messages]
                case Withdrawn(message=message):
                    receipts.append((message, "withdrawn"))
                case Queued():
                    pass
                case _:
                    pass
        counts = Counter(message for message, _ in receipts)
        assert {message: counts[message] for message in self._sent_texts if counts[message] != 1} == {}
        user_blocks = self._terminal.app.log_view._user_blocks
        for message, receipt in receipts:
            if message in user_blocks:
                assert user_blocks[message].receipt.endswith(receipt) or receipt in user_blocks[message].receipt
        assert not any("sending" in block.receipt for block in user_blocks.values())

    def _read_history(self) -> list[str]:
        path = self._terminal.app.environment.home / "history.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [msgspec.json.decode(line, type=str) for line in lines]


def random_replies(seed: int) -> list[ScriptedReply]:
    """Return random scripted replies for a busy model."""
    chance = random.Random(seed)

    def random_reply() -> list[ScriptStep]:
        kinds: list[list[ScriptStep]] = [
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

    return [random_reply() for _ in range(REPLY_COUNT)]


async def run_fuzzer(home: Path, seconds: float, seed: int) -> int:
    """Run the fuzzer, check the results and return the number of actions."""
    async with open_terminal(home, random_replies(seed), limits={"steps": 5}) as terminal:
        fuzzer = TerminalFuzzer(terminal, seed)
        action_count = await fuzzer.run(seconds)
        await fuzzer.check()
        assert not is_child(terminal.app.session.id)
        return action_count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with TemporaryDirectory(prefix="hark-fuzz-") as home:
        action_count = asyncio.run(run_fuzzer(Path(home), options.seconds, options.seed))
    print(f"{action_count} actions in {options.seconds:g} s: nothing was lost")


if __name__ == "__main__":
    main()
