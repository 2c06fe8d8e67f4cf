"""Slash commands about the conversation as a whole."""

from pathlib import Path

import hark
from hark.protocol.messages import Note, UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, Request
from hark.providers.scripted import Hang, ScriptedProvider
from tests.app.slash.test_table import desk


def said(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


def shell(command: str) -> list[CallChunk]:
    return [CallChunk(0, "c1", "shell", f'{{"command": "{command}"}}')]


async def test_undo_puts_the_files_back_and_tells_the_model(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "kept").write_text("old")
    provider = ScriptedProvider([shell("echo new > kept; touch made"), ["done"], ["I see"]])
    async with hark.open(home=tmp_path / "home", workspace=work, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        await session.say("change it")
        assert await session.idle() == Completed("done")
        assert (work / "kept").read_text() == "new\n"
        await session.say("/undo")
        assert (work / "kept").read_text() == "old"
        assert not (work / "made").exists()
        await session.say("and now?")
        assert await session.idle() == Completed("I see")
    notes = [message.text for message in provider.requests[-1].messages if isinstance(message, Note)]
    assert len(notes) == 1
    assert "undid the file changes" in notes[0]


async def test_undo_while_a_turn_runs_says_why_not(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [[hang]]) as (one, _):
        await one.session.say("work")
        await hang.reached.wait()
        await one.session.say("/undo")
        assert (await one.notice("undo")).startswith("A turn runs.")
        await one.session.interrupt()
        await one.session.say("/undo everything")
        assert "/undo step" in await one.notice("undo", 2)


async def test_rewind_goes_back_to_before_a_turn(tmp_path: Path) -> None:
    async with desk(tmp_path, [["a"], ["b"], ["c"]]) as (one, [provider]):
        await one.ask("first")
        await one.ask("second")
        await one.session.say("/rewind")
        assert await one.notice("rewind") == "demo.t1: first\ndemo.t2: second"
        await one.session.say("/rewind 2")
        assert "Back to before demo.t2" in await one.notice("rewind", 2)
        await one.ask("other")
        await one.session.say("/rewind 2")
        assert "not in the conversation" in await one.notice("rewind", 3)
    assert said(provider.requests[-1]) == ["first", "other"]


async def test_retry_runs_the_last_turn_anew(tmp_path: Path) -> None:
    async with desk(tmp_path, [["a"], ["bad"], ["good"]]) as (one, [provider]):
        await one.session.say("/retry")
        assert await one.notice("retry") == "There is nothing to run anew."
        await one.ask("first")
        await one.ask("second")
        await one.session.say("/retry")
        assert await one.session.idle() == Completed("good")
    assert said(provider.requests[-1]) == ["first", "second"]


async def test_reset_stops_forgets_and_has_the_usual_model_serve_again(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [["fresh"]], [[hang]]) as (one, [usual, _]):
        await one.session.say("/model b")
        await one.session.say("first")
        await hang.reached.wait()
        await one.session.say("waits", "queue")
        await one.session.say("/reset")
        assert await one.notice("reset") == "The conversation starts afresh."
        assert await one.ask("second") == Completed("fresh")
    assert said(usual.requests[-1]) == ["second"]


async def test_a_fork_knows_what_was_said_and_goes_its_own_way(tmp_path: Path) -> None:
    provider = ScriptedProvider([["a"], ["b"], ["c"]])
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session, copy = agent.session("demo"), agent.session("copy")
        await session.say("first")
        await session.idle()
        await session.say("/fork copy")
        await copy.say("in the copy")
        assert await copy.idle() == Completed("b")
        await session.say("in the original")
        assert await session.idle() == Completed("c")
        await session.say("/fork copy")
    assert said(provider.requests[1]) == ["first", "in the copy"]
    assert said(provider.requests[2]) == ["first", "in the original"]


async def test_status_usage_and_export_tell_what_there_is(tmp_path: Path) -> None:
    async with desk(tmp_path, [["an answer"]]) as (one, _):
        await one.ask("a question")
        await one.session.say("/status")
        status = await one.notice("status")
        await one.session.say("/usage")
        assert "in 1 turns" in await one.notice("usage")
        await one.session.say("/export")
        written = Path((await one.notice("export")).removeprefix("written to ")).read_text()  # noqa: ASYNC240
        await one.session.say("/export pdf")
        assert await one.notice("export", 2) == "Say /export markdown or /export json."
    assert "session demo: a question" in status
    assert "nothing runs; 0 waiting; 1 turns" in status
    assert "**hark:** an answer" in written
