"""Pausing a turn after a step, continuing interrupted turns, and undoing a stop."""

from pathlib import Path

from hark.engine.session.announcements import announcements_for
from hark.engine.session.state import SessionState
from hark.protocol.commands import Delivery
from hark.protocol.events import CallStart, MessageAccepted, Notice, ReplyDelta, TurnEnd
from hark.protocol.messages import UserMessage
from hark.protocol.names import continue_message_id
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.protocol.records import Queued
from hark.providers.scripted import Hang, Pause, ScriptedReply
from tests.app.slash.test_command_table import ObservedSession, observed_session


def shell(number: int, command: str) -> list[CallChunk]:
    return [CallChunk(0, f"c{number}", "shell", f'{{"command": "{command}"}}')]


def outcomes(observed: ObservedSession) -> list[object]:
    return [event.outcome for event in observed.events if isinstance(event, TurnEnd)]


async def test_a_paused_turn_ends_after_its_step_and_continues_before_the_queue(tmp_path: Path) -> None:
    script: list[ScriptedReply] = [shell(1, "echo ran >> log; sleep 0.2"), ["resumed"], ["next"]]
    async with observed_session(tmp_path, script) as (observed, [provider]):
        session = observed.session
        await session.say("/mode all")
        await session.say("work")
        await observed.until(lambda: any(isinstance(event, CallStart) for event in observed.events))
        await session.say("queued", "queue")
        await session.say("/pause")
        assert await observed.wait_for_notice("pause") == "t1 pauses after this step. /continue resumes it."
        assert await session.idle() == Interrupted("pause")
        assert [item.state for item in await session.queue()] == ["held"]
        await session.say("/continue")
        assert await session.idle() == Completed("next")
        assert await observed.wait_for_notice("continue") == "t2 continues t1."
    assert (tmp_path / "log").read_text() == "ran\n"
    assert outcomes(observed) == [Interrupted("pause"), Completed("resumed"), Completed("next")]
    last = [request.messages[-1] for request in provider.requests]
    assert isinstance(last[1], UserMessage)
    assert last[1].text.startswith("Continue t1, which was paused by the user.")
    assert isinstance(last[2], UserMessage)
    assert last[2].text == "queued"


async def test_a_pause_of_an_idle_session_holds_its_queue_or_says_that_nothing_runs(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["a"]]) as (observed, _):
        await observed.session.say("/pause")
        assert await observed.wait_for_notice("pause") == "No turn is running."


async def test_a_pause_in_the_last_step_holds_the_queue(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["a", Pause(0.3), "b"], ["c"], ["d"]]) as (observed, _):
        session = observed.session
        await session.say("work")
        await observed.until(lambda: any(isinstance(event, ReplyDelta) for event in observed.events))
        await session.say("queued", "queue")
        await session.say("/pause")
        assert await session.idle() == Completed("ab")
        assert [item.state for item in await session.queue()] == ["held"]
        await session.say("go on", "queue")
        assert await session.idle() == Completed("d")
    assert outcomes(observed) == [Completed("ab"), Completed("c"), Completed("d")]


async def test_an_interrupting_message_overrides_a_pause(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [["a", hang], ["b"]]) as (observed, _):
        await observed.session.say("work")
        await hang.reached.wait()
        await observed.session.say("/pause")
        assert await observed.say_and_wait("no, this") == Completed("b")


async def test_continue_resumes_a_turn_that_a_message_interrupted_once_and_from_the_journal(tmp_path: Path) -> None:
    hang = Hang()
    script: list[ScriptedReply] = [shell(1, "echo ran >> log"), ["half", hang], ["served"], ["finished"]]
    async with observed_session(tmp_path, script) as (observed, [provider]):
        session = observed.session
        await session.say("/mode all")
        await session.say("long work")
        await hang.reached.wait()
        assert await observed.say_and_wait("quick question") == Completed("served")
        await session.say("/continue")
        assert await session.idle() == Completed("finished")
        await session.say("/continue")
        assert (await observed.wait_for_notice("continue", 2)).startswith("Nothing to continue")
    prompt = provider.requests[-1].messages[-1]
    assert isinstance(prompt, UserMessage)
    assert prompt.text.startswith("Continue t1, which was interrupted by another message.")
    assert (tmp_path / "log").read_text() == "ran\n"


async def test_a_stop_can_be_undone_while_nothing_else_ran(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [["half", hang], ["finished"], ["queued ran"], ["x"]]) as (observed, _):
        session = observed.session
        await session.say("/undo stop")
        assert (await observed.wait_for_notice("undo")).startswith("No stop to undo")
        await session.say("long work")
        await hang.reached.wait()
        await session.say("queued", "queue")
        await session.interrupt()
        await session.say("/undo stop")
        assert await observed.wait_for_notice("undo", 2) == "Stop undone. t2 continues t1."
        assert await session.idle() == Completed("queued ran")
        await session.say("/undo stop")
        assert (await observed.wait_for_notice("undo", 3)).startswith("No stop to undo")
    assert outcomes(observed) == [Interrupted("user"), Completed("finished"), Completed("queued ran")]


def test_an_automatic_continuation_is_announced_with_its_message() -> None:
    message = UserMessage(continue_message_id("demo.t1"), "Continue t1.")
    queued = Queued(message=message, delivery=Delivery.QUEUE, is_first=True)
    state = SessionState()
    state.apply(queued)
    announced = [(one.kind, one.fields) for one in announcements_for("demo", state, queued)]
    assert (Notice, ("continue", "t1 is continued automatically.")) in announced
    assert (MessageAccepted, (message.id, "Continue t1.", "")) in announced
