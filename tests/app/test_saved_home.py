"""A home that was used with an earlier version opens unchanged. See `saved_home/README.md`."""

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
from hark.app.pairing import Pairing
from hark.protocol.chat import Pressed, Removed, Rewritten, Written
from hark.protocol.events import QuestionAsked
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, Request
from hark.protocol.receipts import ReceiptState
from hark.providers.scripted import ScriptedProvider, Step
from hark.store.chat_ledger import SqliteChatLedger
from tests.cli.command_line import Hark, opened
from tests.surfaces.chat.chat_fixture import ANN, HOME, chatting

SAVED = Path(__file__).parent / "saved_home" / "home.tar.gz"
SAVED_AT = b"/tmp/hark-home-00000000"
SESSIONS = ("work", "other", "changed", "undone", "held", "test:home", "open", "asking")
TRACED = ("work", "changed", "held")


@pytest.fixture
def saved() -> Generator[Path]:
    """The saved home and its workspace, as if they had been made in this folder a moment ago."""
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


def expected(saved: Path, name: str) -> Any:
    return json.loads((saved / "expected" / f"{name}.json").read_text())


def echo(request: Request) -> Sequence[Step]:
    """Repeat the last message; call the shell when it asks for that."""
    text = request.messages[-1].text
    if text == "touch it":
        return [CallChunk(0, "c1", "shell", '{"command": "touch granted"}')]
    return [f"echo: {text}"]


def agent_on(saved: Path, **sections: Any) -> AbstractAsyncContextManager[hark.Agent]:
    """Open the home. Sessions that have work left start with it, so replies may come in any order."""
    provider = ScriptedProvider([echo] * 10)
    return hark.open(home=saved / "home", workspace=saved / "work", routes=[{"provider": provider}], **sections)


async def command(saved: Path, *words: str) -> Any:
    """Return the JSON that a command prints. The settings are those of the saved home."""
    async with opened(saved / "elsewhere") as program:
        ended = await Hark(saved / "home", program.server).run(*words, SOME_KEY="key")
    assert ended.code == 0, ended.err
    return ended.json


async def test_a_saved_home_lists_its_sessions(saved: Path) -> None:
    assert await command(saved, "sessions", "list", "--json") == expected(saved, "sessions")


@pytest.mark.parametrize("session", SESSIONS)
async def test_a_saved_home_shows_the_same_transcript(saved: Path, session: str) -> None:
    assert await command(saved, "sessions", "show", session, "--json") == expected(saved, f"{session}.show")


@pytest.mark.parametrize("session", TRACED)
async def test_a_saved_home_shows_the_same_trace(saved: Path, session: str) -> None:
    def spans(trace: Any) -> Any:
        [turn] = trace["turns"]
        parts = [[part[key] for key in ("kind", "name", "start", "end", "call")] for part in turn["parts"]]
        return turn["turn"], turn["began_at"], turn["total"], parts

    assert spans(await command(saved, "trace", session, "--json")) == spans(expected(saved, f"{session}.trace"))


async def test_a_saved_home_keeps_its_schedules(saved: Path) -> None:
    def lasting(answer: Any) -> Any:
        return [{key: value for key, value in row.items() if not key.startswith("next")} for row in answer["schedules"]]

    assert lasting(await command(saved, "schedule", "list", "--json")) == lasting(expected(saved, "schedules"))


async def test_a_saved_home_keeps_its_held_messages_until_the_next_message(saved: Path) -> None:
    assert await command(saved, "queue", "held") == expected(saved, "held.queue")
    async with agent_on(saved) as agent:
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


async def test_a_turn_that_was_open_at_the_kill_is_closed_and_the_queue_runs(saved: Path) -> None:
    async with agent_on(saved) as agent:
        session = agent.session("open")
        await session.opened()
        assert await session.idle() == Completed("echo: then a poem")
        transcript = await session.transcript()
        partial = next(message for message in transcript if isinstance(message, AssistantMessage))
        assert (partial.text, partial.is_partial) == ("Once upon a time", True)
        assert [one.text for one in transcript if isinstance(one, UserMessage)] == ["tell me a story", "then a poem"]
        asking = agent.session("asking")
        await asking.opened()
        assert "touch a file" in [one.text for one in await asking.transcript()]
        assert not (saved / "work" / "asked").exists()


async def test_a_saved_grant_is_in_force(saved: Path) -> None:
    (saved / "work" / "granted").unlink()
    async with agent_on(saved, approvals={"mode": "ask"}) as agent:
        session = agent.session("new")
        events = session.events()
        await session.say("touch it")
        assert isinstance(await session.idle(), Completed)
        assert (saved / "work" / "granted").exists()
    assert not [event async for event in events if isinstance(event, QuestionAsked)]


async def test_saved_undo_steps_are_undone_one_by_one(saved: Path) -> None:
    work = saved / "work"
    async with agent_on(saved) as agent:
        session = agent.session("work")
        await session.say("/undo step")
        assert not (work / "granted").exists()
        await session.say("/undo step")
        assert not (work / "new").exists()
        assert (work / "story.txt").read_text() == "twice\nupon a time\n"
        await session.say("/undo step")
        assert (work / "story.txt").read_text() == "once\nupon a time\n"


async def test_pending_chat_messages_of_a_saved_home_are_delivered_once(saved: Path) -> None:
    async with chatting(saved / "home", [echo] * 10) as (chat, _):
        await chat.until(lambda: any("echo: the text behind a button" in text for text in chat.texts))
        for again in (
            Written("p1", HOME, ANN, "good morning"),
            Written("p3", HOME, ANN, "a pending message"),
            Rewritten("p1", HOME, ANN, "good evening", 1_700_000_001.25),
            Removed("p9", HOME),
            Pressed("b1", HOME, ANN, "steer:p2:1"),
        ):
            await chat.put(again)
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
        assert chat.texts.count("I have that message already.") == 1


async def test_a_message_of_a_surface_that_is_off_stays_pending(saved: Path) -> None:
    ledger = SqliteChatLedger(saved / "home" / "gateway.db")
    [kept] = await ledger.kept("telegram")
    await ledger.close()
    assert isinstance(kept.incoming, Written)
    assert (kept.incoming.id, kept.incoming.author.name, kept.incoming.text) == ("p4", "Bob", "of another surface")


async def test_notes_of_a_saved_home_are_in_the_prompt(saved: Path) -> None:
    provider = ScriptedProvider([echo] * 10)
    routes = [{"provider": provider}]
    async with hark.open(home=saved / "home", workspace=saved / "work", routes=routes) as agent:
        await agent.session("new").say("hello")
        await agent.session("new").idle()
    [request] = [one for one in provider.requests if one.messages[-1].text == "hello"]
    assert "The user likes short answers." in request.system


def test_pairings_of_a_saved_home_are_in_force(saved: Path) -> None:
    pairing = Pairing(saved / "home" / "pairing.json")
    assert pairing.is_let_in("telegram", "77")
    assert not pairing.is_let_in("telegram", "78")


def test_the_ledger_names_a_message_by_its_tag_and_address(saved: Path) -> None:
    with closing(sqlite3.connect(saved / "home" / "gateway.db")) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM incoming")}
    address = '{"surface":"test","chat":"home"}'
    assert {f"Written|{address}|p1|", f"Rewritten|{address}|p1|1700000001.25|good evening"} <= names
    assert {f"Removed|{address}|p9|", f"Pressed|{address}|b1|"} <= names
