"""Slash commands are recognised and executed; every other text is a message."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import hark
from hark.app.slash.command_table import COMMANDS
from hark.app.slash.meaning import meaning_of
from hark.protocol.events import AnyEvent, MessageAccepted, Notice, RouteChanged
from hark.protocol.meaning import CommandMeaning, MessageMeaning
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.providers.scripted import Hang, ScriptedProvider, ScriptedReply
from tests.waiting import until


class ObservedSession:
    """Wraps a session and records its events."""

    def __init__(self, session: hark.SessionHandle) -> None:
        self.session = session
        self.events: list[AnyEvent] = []
        self._changed = asyncio.Event()

    async def record_events(self) -> None:
        async for event in self.session.events():
            self.events.append(event)
            self._changed.set()
            self._changed = asyncio.Event()

    def notices(self, code: str) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice) and event.code == code]

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=lambda: self._changed.wait(), shows=lambda: self.events)

    async def wait_for_notice(self, code: str, number: int = 1) -> str:
        """Wait for a command's notice and return its text."""
        await self.until(lambda: len(self.notices(code)) >= number)
        return self.notices(code)[number - 1]

    async def say_and_wait(self, text: str) -> object:
        await self.session.say(text)
        return await self.session.idle()


@asynccontextmanager
async def observed_session(
    home: Path, *scripts: list[ScriptedReply]
) -> AsyncGenerator[tuple[ObservedSession, list[ScriptedProvider]]]:
    """Open a session with one route per script: a, b, ..."""
    providers = [ScriptedProvider(script) for script in scripts]
    routes = [{"name": name, "provider": provider} for name, provider in zip("abc", providers, strict=False)]
    agent_context = hark.open(home=home, workspace=home, routes=routes, store={"url": "memory"}, sweeps=False)
    async with agent_context as agent:
        observed = ObservedSession(agent.session("demo"))
        recording = asyncio.create_task(observed.record_events())
        await observed.session.wait_until_loaded()
        yield observed, providers
    await recording


@pytest.mark.parametrize(
    "text", ["/etc/hosts", "/usr/bin/help me", "/", "/ help", "//help", "help", " /help", "/unknown", "/helpful"]
)
def test_a_path_or_an_unknown_name_is_not_a_command(text: str) -> None:
    assert meaning_of(text) == MessageMeaning(text)


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("/help", "help", ""),
        ("/STATUS", "status", ""),
        ("/model  other ", "model", "other"),
        ("/compact keep the names", "compact", "keep the names"),
        ("/compact\nkeep\nthe names", "compact", "keep\nthe names"),
    ],
)
def test_a_command_is_split_into_its_name_and_arguments(text: str, name: str, arguments: str) -> None:
    assert meaning_of(text) == CommandMeaning(name, arguments)


async def test_a_path_is_sent_to_the_model_as_a_message(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["I read it."]]) as (observed, (provider,)):
        assert await observed.say_and_wait("/etc/hosts") == Completed("I read it.")
    last = provider.requests[0].messages[-1]
    assert isinstance(last, UserMessage)
    assert last.text == "/etc/hosts"


async def test_help_lists_every_command_without_a_model_request(tmp_path: Path) -> None:
    async with observed_session(tmp_path, []) as (observed, (provider,)):
        await observed.session.say("/help")
        text = await observed.wait_for_notice("help")
        assert await observed.session.transcript() == []
    assert [line.split(" ")[0].rstrip(":") for line in text.splitlines()] == [f"/{name}" for name in COMMANDS]
    assert provider.requests == []
    assert not any(isinstance(event, MessageAccepted) for event in observed.events)


async def test_model_shows_and_switches_routes_and_rejects_unknown_ones(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["from a"]], [["from b"], ["b again"]]) as (observed, (a, b)):
        assert await observed.say_and_wait("go") == Completed("from a")
        await observed.session.say("/model")
        assert (await observed.wait_for_notice("model")).startswith("Model: a. Routes: a, b.")
        await observed.session.say("/model none")
        assert "No route named 'none'" in await observed.wait_for_notice("model", 2)
        await observed.session.say("/model b")
        assert await observed.wait_for_notice("model", 3) == "Switched to b, starting with the next turn."
        assert await observed.say_and_wait("go") == Completed("from b")
        assert await observed.say_and_wait("go") == Completed("b again")
        await observed.session.say("/model")
        assert (await observed.wait_for_notice("model", 4)).startswith("Model: b.")
        changes = [(event.route, event.reason) for event in observed.events if isinstance(event, RouteChanged)]
    assert changes == [("b", "you chose it")]
    assert (len(a.requests), len(b.requests)) == (1, 2)


async def test_a_model_chosen_during_a_turn_is_used_for_the_next_turn(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [["par", hang]], [["from b"]]) as (observed, _):
        await observed.session.say("go")
        await hang.reached.wait()
        await observed.session.say("/model b")
        assert not hang.closed.is_set()
        assert await observed.say_and_wait("go on") == Completed("from b")


async def test_stop_ends_the_running_turn_and_reports_how_long_the_stop_took(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [["par", hang]]) as (observed, _):
        await observed.session.say("/stop")
        assert await observed.wait_for_notice("stop") == "No turn is running."
        await observed.session.say("go")
        await hang.reached.wait()
        await observed.session.say("/stop")
        assert hang.closed.is_set()
        text = await observed.wait_for_notice("stop", 2)
        assert text.startswith("Stopped in ")
        assert float(text.split()[2]) < 50
        assert await observed.session.idle() == Interrupted("user")


async def test_compact_with_instructions_replaces_older_messages_with_a_summary(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["a"], ["b"], ["the notes"], ["c"]]) as (observed, (provider,)):
        await observed.say_and_wait("one")
        await observed.say_and_wait("two")
        await observed.session.say("/compact keep all names")
        outcome = await observed.session.idle()
        assert isinstance(outcome, Completed)
        assert "Summarised" in outcome.text
        assert "Summarised" in observed.notices("compaction")[-1]
        await observed.say_and_wait("three")
    assert "keep all names" in provider.requests[2].messages[-1].text
    assert "the notes" in provider.requests[3].messages[0].text


async def test_stopping_compact_leaves_the_transcript_unchanged(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [["a"], ["b"], ["half", hang]]) as (observed, _):
        await observed.say_and_wait("one")
        await observed.say_and_wait("two")
        before = await observed.session.transcript()
        await observed.session.say("/compact")
        await hang.reached.wait()
        await observed.session.say("/stop")
        assert hang.closed.is_set()
        assert (await observed.session.transcript())[: len(before)] == before


async def test_compact_is_refused_while_a_turn_is_running(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [[hang]]) as (observed, _):
        await observed.session.say("go")
        await hang.reached.wait()
        await observed.session.say("/compact")
        assert "A turn is running" in await observed.wait_for_notice("compact")
        await observed.session.interrupt()


async def test_demo_shows_interrupt_steer_queue_and_stop_without_changing_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARK_HOME", str(tmp_path / "other"))
    async with observed_session(tmp_path, [["still here"]]) as (observed, (provider,)):
        await observed.session.say("/demo")
        await observed.until(lambda: any(line.startswith("End of the demo") for line in observed.notices("demo")))
        lines = observed.notices("demo")
        text = "\n".join(lines)
        assert "hark: Four." in text
        assert "hark: Done, with tabs." in text
        assert "hark: Here is the summary." in text
        for state in ("started", "interrupting", "steering", "steered", "queued"):
            assert f"[{state}]" in text
        stops = [line for line in lines if "stopped by" in line]
        assert len(stops) == 2
        assert "shell: cancelled" in text
        assert provider.requests == []
        assert await observed.session.transcript() == []
        assert await observed.say_and_wait("and you?") == Completed("still here")
