"""A home saved by an earlier version opens unchanged. See `saved_home/README.md`."""

import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest

import hark
from hark.app.pairing import PairingFile
from hark.protocol.chat import ButtonPressed, IncomingMessage, MessageDeleted, MessageEdited
from hark.protocol.events import QuestionAsked
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, Request
from hark.protocol.receipts import ReceiptState
from hark.providers.scripted import ScriptedProvider, ScriptStep
from hark.store.chat_ledger import SqliteChatLedger
from tests.cli.command_line import Hark, open_hark
from tests.surfaces.chat.chat_fixture import ANN, HOME, chat_platform

SAVED = Path(__file__).parent / "saved_home" / "home.tar.gz"
SAVED_AT = b"/tmp/hark-home-00000000"
SESSIONS = ("work", "other", "changed", "undone", "held", "test:home", "open", "asking")
TRACED = ("work", "changed", "held")


@pytest.fixture
def saved_home() -> Generator[Path]:
    """Unpack the saved home and its workspace into a new folder, and yield the folder."""
    folder = Path(tempfile.mkdtemp(prefix="hark-home-", dir="/tmp"))
    assert len(os.fsencode(folder)) == len(SAVED_AT), "a path in an undo step can't change its length"
    with tarfile.open(SAVED) as archive:
        archive.extractall(folder, filter="data")
    home = folder / "home"
    for path in (home / "trusted", home / "editor-sessions.jsonl", *home.glob("undo/steps/*/*.step")):
        path.write_bytes(path.read_bytes().replace(SAVED_AT, os.fsencode(folder)))
    for path in home.rglob("*"):
        os.utime(path)
    yield folder
    shutil.rmtree(folder)


def expected_json(saved_home: Path, name: str) -> Any:
    return json.loads((saved_home / "expected" / f"{name}.json").read_text())


def echo(request: Request) -> Sequence[ScriptStep]:
    """Return a scripted reply that repeats the last message, or that calls the shell for the message "touch it"."""
    text = request.messages[-1].text
    if text == "touch it":
        return [CallChunk(0, "c1", "shell", '{"command": "touch granted"}')]
    return [f"echo: {text}"]


def open_agent_on(saved_home: Path, **sections: Any) -> AbstractAsyncContextManager[hark.Agent]:
    """Open the home. Sessions with unfinished work resume it, so replies may arrive in any order."""
    provider = ScriptedProvider([echo] * 10)
    return hark.open(
        home=saved_home / "home", workspace=saved_home / "work", routes=[{"provider": provider}], **sections
    )


async def run_command(saved_home: Path, *arguments: str) -> Any:
    """Run a command with the settings of the saved home and return its JSON output."""
    async with open_hark(saved_home / "elsewhere") as program:
        ended = await Hark(saved_home / "home", program.server).run(*arguments, SOME_KEY="key")
    assert ended.code == 0, ended.err
    return ended.json


async def test_sessions_from_an_earlier_version_are_listed(saved_home: Path) -> None:
    assert await run_command(saved_home, "sessions", "list", "--json") == expected_json(saved_home, "sessions")


@pytest.mark.parametrize("session", SESSIONS)
async def test_transcripts_from_an_earlier_version_are_shown_unchanged(saved_home: Path, session: str) -> None:
    assert await run_command(saved_home, "sessions", "show", session, "--json") == expected_json(
        saved_home, f"{session}.show"
    )


@pytest.mark.parametrize("session", TRACED)
async def test_traces_from_an_earlier_version_are_shown_unchanged(saved_home: Path, session: str) -> None:
    def segments(trace: Any) -> Any:
        [turn] = trace["turns"]
        parts = [[part[key] for key in ("kind", "name", "start", "end", "call")] for part in turn["parts"]]
        return turn["turn"], turn["began_at"], turn["total"], parts

    assert segments(await run_command(saved_home, "trace", session, "--json")) == segments(
        expected_json(saved_home, f"{session}.trace")
    )


async def test_schedules_from_an_earlier_version_are_listed(saved_home: Path) -> None:
    def without_next_times(answer: Any) -> Any:
        return [{key: value for key, value in row.items() if not key.startswith("next")} for row in answer["schedules"]]

    assert without_next_times(await run_command(saved_home, "schedule", "list", "--json")) == without_next_times(
        expected_json(saved_home, "schedules")
    )


async def test_a_held_queue_from_an_earlier_version_runs_after_the_next_message(saved_home: Path) -> None:
    assert await run_command(saved_home, "queue", "held") == expected_json(saved_home, "held.queue")
    async with open_agent_on(saved_home) as agent:
        session = agent.session("held")
        held = await session.queue()
        assert [(item.id, item.text, item.state) for item in held] == [
            ("h1", "first on hold", ReceiptState.HELD),
            ("h2", "second on hold", ReceiptState.HELD),
        ]
        await session.say("go on")
        assert await session.idle() == Completed("echo: second on hold")
        users = [message.text for message in await session.transcript() if isinstance(message, UserMessage)]
        assert users == ["a long task", "go on", "first on hold", "second on hold"]


async def test_a_turn_left_open_by_a_kill_is_closed_and_the_queue_runs(saved_home: Path) -> None:
    async with open_agent_on(saved_home) as agent:
        session = agent.session("open")
        await session.wait_until_loaded()
        assert await session.idle() == Completed("echo: then a poem")
        transcript = await session.transcript()
        partial = next(message for message in transcript if isinstance(message, AssistantMessage))
        assert (partial.text, partial.is_partial) == ("Once upon a time", True)
        assert [message.text for message in transcript if isinstance(message, UserMessage)] == [
            "tell me a story",
            "then a poem",
        ]
        asking = agent.session("asking")
        await asking.wait_until_loaded()
        assert "touch a file" in [message.text for message in await asking.transcript()]
        assert not (saved_home / "work" / "asked").exists()


async def test_a_grant_from_an_earlier_version_still_applies(saved_home: Path) -> None:
    (saved_home / "work" / "granted").unlink()
    async with open_agent_on(saved_home, approvals={"mode": "ask"}) as agent:
        session = agent.session("new")
        events = session.events()
        await session.say("touch it")
        assert isinstance(await session.idle(), Completed)
        assert (saved_home / "work" / "granted").exists()
    assert not [event async for event in events if isinstance(event, QuestionAsked)]


async def test_undo_steps_from_an_earlier_version_are_undone_one_by_one(saved_home: Path) -> None:
    work = saved_home / "work"
    async with open_agent_on(saved_home) as agent:
        session = agent.session("work")
        await session.say("/undo step")
        assert not (work / "granted").exists()
        await session.say("/undo step")
        assert not (work / "new").exists()
        assert (work / "story.txt").read_text() == "twice\nupon a time\n"
        await session.say("/undo step")
        assert (work / "story.txt").read_text() == "once\nupon a time\n"


async def test_pending_chat_messages_from_an_earlier_version_are_delivered_once(saved_home: Path) -> None:
    async with chat_platform(saved_home / "home", [echo] * 10) as (chat, _):
        await chat.until(lambda: any("echo: the text behind a button" in text for text in chat.texts))
        for again in (
            IncomingMessage("p1", HOME, ANN, "good morning"),
            IncomingMessage("p3", HOME, ANN, "a pending message"),
            MessageEdited("p1", HOME, ANN, "good evening", 1_700_000_001.25),
            MessageDeleted("p9", HOME),
            ButtonPressed("b1", HOME, ANN, "steer:p2:1"),
        ):
            await chat.deliver(again)
        await chat.write("something new", "p10")
        await chat.until(lambda: "echo: something new" in chat.texts)
        assert chat.agent is not None
        transcript = await chat.agent.session("test:home").transcript()
        assert sorted(message.text for message in transcript if isinstance(message, UserMessage)) == [
            "[In reply to: Hello Ann.]\na pending message",
            "and again",
            "good morning",
            "something new",
            "the text behind a button",
        ]
        assert chat.texts.count("I have already started on that message, so your edit does not change it.") == 1


async def test_a_message_from_a_disabled_surface_stays_pending(saved_home: Path) -> None:
    ledger = SqliteChatLedger(saved_home / "home" / "gateway.db")
    [entry] = await ledger.pending("telegram")
    await ledger.close()
    assert isinstance(entry.incoming, IncomingMessage)
    assert (entry.incoming.id, entry.incoming.author.name, entry.incoming.text) == ("p4", "Bob", "of another surface")


async def test_notes_from_an_earlier_version_are_included_in_the_prompt(saved_home: Path) -> None:
    provider = ScriptedProvider([echo] * 10)
    routes = [{"provider": provider}]
    async with hark.open(home=saved_home / "home", workspace=saved_home / "work", routes=routes) as agent:
        await agent.session("new").say("hello")
        await agent.session("new").idle()
    [request] = [request for request in provider.requests if request.messages[-1].text == "hello"]
    assert "The user likes short answers." in request.system


def test_pairings_from_an_earlier_version_still_apply(saved_home: Path) -> None:
    pairing = PairingFile(saved_home / "home" / "pairing.json")
    assert pairing.is_paired("telegram", "77")
    assert not pairing.is_paired("telegram", "78")


def test_ledger_entry_names_from_an_earlier_version_contain_tag_address_and_id(saved_home: Path) -> None:
    with closing(sqlite3.connect(saved_home / "home" / "gateway.db")) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM incoming")}
    address = '{"surface":"test","chat":"home"}'
    assert {f"Written|{address}|p1|", f"Rewritten|{address}|p1|1700000001.25|good evening"} <= names
    assert {f"Removed|{address}|p9|", f"Pressed|{address}|b1|"} <= names
