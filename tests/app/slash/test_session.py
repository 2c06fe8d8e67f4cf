"""Slash commands for the conversation as a whole."""

from pathlib import Path

import hark
from hark.protocol.messages import Note, UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, Request
from hark.providers.scripted import Hang, ScriptedProvider
from tests.app.slash.test_command_table import observed_session


def user_texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


def shell_call(command: str) -> list[CallChunk]:
    return [CallChunk(0, "c1", "shell", f'{{"command": "{command}"}}')]


async def test_undo_restores_the_files_and_adds_a_note_for_the_model(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "kept").write_text("old")
    provider = ScriptedProvider([shell_call("echo new > kept; touch made"), ["done"], ["I see"]])
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
    assert "The user undid the file changes" in notes[0]


async def test_undo_is_refused_while_a_turn_is_running(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [[hang]]) as (observed, _):
        await observed.session.say("work")
        await hang.reached.wait()
        await observed.session.say("/undo")
        assert (await observed.wait_for_notice("undo")).startswith("A turn is running.")
        await observed.session.interrupt()
        await observed.session.say("/undo everything")
        assert "/undo step" in await observed.wait_for_notice("undo", 2)


async def test_rewind_removes_a_turn_from_the_conversation(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["a"], ["b"], ["c"]]) as (observed, [provider]):
        await observed.say_and_wait("first")
        await observed.say_and_wait("second")
        await observed.session.say("/rewind")
        assert await observed.wait_for_notice("rewind") == "demo.t1: first\ndemo.t2: second"
        await observed.session.say("/rewind 2")
        assert "Rewound to before demo.t2" in await observed.wait_for_notice("rewind", 2)
        await observed.say_and_wait("other")
        await observed.session.say("/rewind 2")
        assert "not in the conversation" in await observed.wait_for_notice("rewind", 3)
    assert user_texts(provider.requests[-1]) == ["first", "other"]


async def test_retry_runs_the_last_turn_again(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["a"], ["bad"], ["good"]]) as (observed, [provider]):
        await observed.session.say("/retry")
        assert await observed.wait_for_notice("retry") == "Nothing to retry."
        await observed.say_and_wait("first")
        await observed.say_and_wait("second")
        await observed.session.say("/retry")
        assert await observed.session.idle() == Completed("good")
    assert user_texts(provider.requests[-1]) == ["first", "second"]


async def test_reset_stops_the_turn_clears_the_conversation_and_restores_the_default_model(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [["fresh"]], [[hang]]) as (observed, [default, _]):
        await observed.session.say("/model b")
        await observed.session.say("first")
        await hang.reached.wait()
        await observed.session.say("waits", "queue")
        await observed.session.say("/reset")
        ended = "the running turn, 1 queued message, model b"
        notice = f"Conversation cleared. Ended: {ended}. /undo reset restores it."
        assert await observed.wait_for_notice("reset") == notice
        assert await observed.say_and_wait("second") == Completed("fresh")
    assert user_texts(default.requests[-1]) == ["second"]


async def test_a_fork_copies_the_history_and_then_diverges(tmp_path: Path) -> None:
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
    assert user_texts(provider.requests[1]) == ["first", "in the copy"]
    assert user_texts(provider.requests[2]) == ["first", "in the original"]


async def test_status_usage_and_export_report_on_the_session(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["an answer"]]) as (observed, _):
        await observed.say_and_wait("a question")
        await observed.session.say("/status")
        status = await observed.wait_for_notice("status")
        await observed.session.say("/usage")
        assert "in 1 turn," in await observed.wait_for_notice("usage")
        await observed.session.say("/export")
        notice = await observed.wait_for_notice("export")
        written = Path(notice.removeprefix("Written to ").removesuffix(".")).read_text()  # noqa: ASYNC240
        await observed.session.say("/export pdf")
        assert await observed.wait_for_notice("export", 2) == "Use /export markdown or /export json."
    assert "session demo: a question" in status
    assert "No turn is running.\n1 turn; model a; approvals auto" in status
    assert "**hark:** an answer" in written
