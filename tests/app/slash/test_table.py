"""Messages that are commands, the same on every surface; all others are messages."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import hark
from hark.app.slash.meaning import meaning_of
from hark.app.slash.table import COMMANDS
from hark.protocol.events import AnyEvent, MessageAccepted, Notice, RouteChanged
from hark.protocol.meaning import CommandMeaning, MessageMeaning
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.providers.scripted import Hang, Reply, ScriptedProvider
from tests.waiting import until


class Desk:
    """A session, and the notices that its person saw."""

    def __init__(self, session: hark.SessionHandle) -> None:
        self.session = session
        self.events: list[AnyEvent] = []
        self._changed = asyncio.Event()

    async def watch(self) -> None:
        async for event in self.session.events():
            self.events.append(event)
            self._changed.set()
            self._changed = asyncio.Event()

    def notices(self, code: str) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice) and event.code == code]

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=lambda: self._changed.wait(), shows=lambda: self.events)

    async def notice(self, code: str, number: int = 1) -> str:
        """Wait for the notice of a command."""
        await self.until(lambda: len(self.notices(code)) >= number)
        return self.notices(code)[number - 1]

    async def ask(self, text: str) -> object:
        await self.session.say(text)
        return await self.session.idle()


@asynccontextmanager
async def desk(home: Path, *scripts: list[Reply]) -> AsyncGenerator[tuple[Desk, list[ScriptedProvider]]]:
    """A desk with a route per script: a, b, ..."""
    providers = [ScriptedProvider(script) for script in scripts]
    routes = [{"name": name, "provider": provider} for name, provider in zip("abc", providers, strict=False)]
    opened = hark.open(home=home, workspace=home, routes=routes, store={"url": "memory"}, sweeps=False)
    async with opened as agent:
        one = Desk(agent.session("demo"))
        watching = asyncio.create_task(one.watch())
        await one.session.opened()
        yield one, providers
    await watching


@pytest.mark.parametrize(
    "text", ["/etc/hosts", "/usr/bin/help me", "/", "/ help", "//help", "help", " /help", "/unknown", "/helpful"]
)
def test_a_path_or_an_unknown_word_is_no_command(text: str) -> None:
    assert meaning_of(text) == MessageMeaning(text)


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("/help", "help", ""),
        ("/STATUS", "status", ""),
        ("/model  other ", "model", "other"),
        ("/compact keep the names", "compact", "keep the names"),
        ("/compact\nkeep\nthe names", "compact", "keep\nthe names"),
    ],
)
def test_a_command_has_a_name_and_the_words_behind_it(text: str, name: str, words: str) -> None:
    assert meaning_of(text) == CommandMeaning(name, words)


async def test_a_path_is_a_message_like_any_other(tmp_path: Path) -> None:
    async with desk(tmp_path, [["I read it."]]) as (one, (provider,)):
        assert await one.ask("/etc/hosts") == Completed("I read it.")
    last = provider.requests[0].messages[-1]
    assert isinstance(last, UserMessage)
    assert last.text == "/etc/hosts"


async def test_help_names_every_command_and_asks_no_model(tmp_path: Path) -> None:
    async with desk(tmp_path, []) as (one, (provider,)):
        await one.session.say("/help")
        text = await one.notice("help")
        assert await one.session.transcript() == []
    assert [line.split(" ")[0].rstrip(":") for line in text.splitlines()] == [f"/{name}" for name in COMMANDS]
    assert provider.requests == []
    assert not any(isinstance(event, MessageAccepted) for event in one.events)


async def test_model_tells_the_routes_changes_them_and_refuses_what_there_is_not(tmp_path: Path) -> None:
    async with desk(tmp_path, [["from a"]], [["from b"], ["b again"]]) as (one, (a, b)):
        assert await one.ask("go") == Completed("from a")
        await one.session.say("/model")
        assert (await one.notice("model")).startswith("a serves first. The routes are: a, b.")
        await one.session.say("/model none")
        assert "There is no route 'none'" in await one.notice("model", 2)
        await one.session.say("/model b")
        assert await one.notice("model", 3) == "b serves first, from the next turn on."
        assert await one.ask("go") == Completed("from b")
        assert await one.ask("go") == Completed("b again")
        await one.session.say("/model")
        assert (await one.notice("model", 4)).startswith("b serves first.")
        changes = [(event.route, event.reason) for event in one.events if isinstance(event, RouteChanged)]
    assert changes == [("b", "you chose it")]
    assert (len(a.requests), len(b.requests)) == (1, 2)


async def test_a_model_that_is_chosen_while_a_turn_runs_serves_the_next_one(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [["par", hang]], [["from b"]]) as (one, _):
        await one.session.say("go")
        await hang.reached.wait()
        await one.session.say("/model b")
        assert not hang.closed.is_set()
        assert await one.ask("go on") == Completed("from b")


async def test_stop_ends_what_runs_and_says_how_fast(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [["par", hang]]) as (one, _):
        await one.session.say("/stop")
        assert await one.notice("stop") == "No turn is running."
        await one.session.say("go")
        await hang.reached.wait()
        await one.session.say("/stop")
        assert hang.closed.is_set()
        text = await one.notice("stop", 2)
        assert text.startswith("stopped in ")
        assert float(text.split()[2]) < 50
        assert await one.session.idle() == Interrupted("user")


async def test_compact_with_instructions_puts_a_summary_in_the_place_of_what_is_old(tmp_path: Path) -> None:
    async with desk(tmp_path, [["a"], ["b"], ["the notes"], ["c"]]) as (one, (provider,)):
        await one.ask("one")
        await one.ask("two")
        await one.session.say("/compact keep all names")
        outcome = await one.session.idle()
        assert isinstance(outcome, Completed)
        assert "became a summary" in outcome.text
        assert "became a summary" in one.notices("compaction")[-1]
        await one.ask("three")
    assert "keep all names" in provider.requests[2].messages[-1].text
    assert "the notes" in provider.requests[3].messages[0].text


async def test_compact_is_stopped_like_any_turn_and_leaves_all_as_it_was(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [["a"], ["b"], ["half", hang]]) as (one, _):
        await one.ask("one")
        await one.ask("two")
        before = await one.session.transcript()
        await one.session.say("/compact")
        await hang.reached.wait()
        await one.session.say("/stop")
        assert hang.closed.is_set()
        assert (await one.session.transcript())[: len(before)] == before


async def test_compact_while_a_turn_runs_says_why_not(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [[hang]]) as (one, _):
        await one.session.say("go")
        await hang.reached.wait()
        await one.session.say("/compact")
        assert "A turn runs" in await one.notice("compact")
        await one.session.interrupt()


async def test_demo_shows_interrupt_steer_queue_and_stop_and_leaves_the_session_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARK_HOME", str(tmp_path / "other"))
    async with desk(tmp_path, [["still here"]]) as (one, (provider,)):
        await one.session.say("/demo")
        await one.until(lambda: any(line.startswith("That was all") for line in one.notices("demo")))
        lines = one.notices("demo")
        text = "\n".join(lines)
        assert "hark: Four." in text
        assert "hark: Done, with tabs." in text
        assert "hark: And the next thing is done." in text
        for state in ("started", "interrupting", "steering", "steered", "queued"):
            assert f"[{state}]" in text
        stops = [line for line in lines if "stopped by" in line]
        assert len(stops) == 2
        assert "shell: cancelled" in text
        assert provider.requests == []
        assert await one.session.transcript() == []
        assert await one.ask("and you?") == Completed("still here")
