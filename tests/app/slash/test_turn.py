"""Slash commands for the running turn and the queue."""

from pathlib import Path

from hark.protocol.events import QuestionAsked, TurnEnd, TurnStart
from hark.protocol.messages import CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.providers.scripted import Hang, ScriptedReply
from tests.app.slash.test_command_table import ObservedSession, observed_session


def touch_call(name: str = "made") -> list[CallChunk]:
    return [CallChunk(0, "c1", "shell", f'{{"command": "touch {name}"}}')]


async def wait_for_question(observed: ObservedSession) -> str:
    await observed.until(lambda: any(isinstance(event, QuestionAsked) for event in observed.events))
    return next(event.question for event in observed.events if isinstance(event, QuestionAsked))


async def test_the_queue_can_be_shown_and_changed_and_a_queued_message_can_be_sent_immediately(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [[hang], ["third done"], ["first done"]]) as (observed, [provider]):
        await observed.session.say("work")
        await hang.reached.wait()
        await observed.session.say("/queue one")
        await observed.session.say("/queue two")
        await observed.session.say("/queue three")
        await observed.session.say("/queue 2 edit second, really")
        await observed.session.say("/queue 2 drop")
        await observed.session.say("/queue 2 to 1")
        await observed.session.say("/queue")
        assert await observed.wait_for_notice("queue", 7) == "1. [queued] three\n2. [queued] one"
        await observed.session.say("/queue 1 now")
        assert await observed.session.idle() == Completed("first done")
    prompts = [
        [message.text for message in request.messages if isinstance(message, UserMessage)]
        for request in provider.requests
    ]
    assert prompts == [["work"], ["work", "three"], ["work", "three", "one"]]


async def test_a_queue_number_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    async with observed_session(tmp_path, []) as (observed, _):
        await observed.session.say("/queue 3 drop")
        assert await observed.wait_for_notice("queue") == "No message 3 in the queue (0 queued)."


async def test_the_busy_command_sets_how_messages_affect_a_running_turn(tmp_path: Path) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [[hang], ["later"]]) as (observed, _):
        await observed.session.say("/busy queue")
        assert await observed.wait_for_notice("busy") == "Messages during a turn: queue."
        await observed.session.say("work")
        await hang.reached.wait()
        assert (await observed.session.say("next")).state == "queued"
        await observed.session.say("/busy sometimes")
        assert "No delivery named 'sometimes'" in await observed.wait_for_notice("busy", 2)
        await observed.session.interrupt()


async def test_approve_and_deny_answer_the_open_question(tmp_path: Path) -> None:
    script: list[ScriptedReply] = [touch_call("yes"), ["ok"], touch_call("no"), ["ok"]]
    async with observed_session(tmp_path, script) as (observed, _):
        await observed.session.say("/mode ask")
        await observed.session.say("/approve")
        assert await observed.wait_for_notice("approve") == "Nothing to approve."
        for command, number in (("/approve", 1), ("/deny not that", 2)):
            await observed.session.say("go")
            await observed.until(
                lambda n=number: len([e for e in observed.events if isinstance(e, QuestionAsked)]) >= n
            )
            await observed.session.say(command)
            assert await observed.session.idle() == Completed("ok")
        results = [message for message in await observed.session.transcript() if isinstance(message, CallResult)]
    assert [result.effect for result in results] == [Effect.COMPLETED, Effect.NOT_STARTED]
    assert "not that" in results[1].text
    assert (tmp_path / "yes").exists()
    assert not (tmp_path / "no").exists()


async def test_a_message_while_a_question_is_open_is_a_new_prompt_and_not_an_answer(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [touch_call(), ["as you say"]]) as (observed, _):
        await observed.session.say("/mode ask")
        await observed.session.say("go")
        asked = await wait_for_question(observed)
        await observed.session.say("yes")
        assert await observed.session.idle() == Completed("as you say")
        late = await observed.session.answer(asked, "yes")
        outcomes = [event.outcome for event in observed.events if isinstance(event, TurnEnd)]
        turns = [event for event in observed.events if isinstance(event, TurnStart)]
    assert late is not None
    assert late.code == "not_asked"
    assert outcomes[0] == Interrupted("new message")
    assert len(turns) == 2
    assert not (tmp_path / "made").exists()


async def test_mode_describes_the_approval_mode_and_rejects_unknown_ones(tmp_path: Path) -> None:
    async with observed_session(tmp_path, []) as (observed, _):
        await observed.session.say("/mode")
        assert (await observed.wait_for_notice("mode")).startswith("auto: ")
        await observed.session.say("/mode all")
        assert await observed.wait_for_notice("mode", 2) == "all: you are never asked."
        await observed.session.say("/mode some")
        assert "No mode named 'some'" in await observed.wait_for_notice("mode", 3)
