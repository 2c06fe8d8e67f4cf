"""Slash commands about what runs and what waits."""

from pathlib import Path

from hark.protocol.events import QuestionAsked, TurnEnd, TurnStart
from hark.protocol.messages import CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.providers.scripted import Hang, Reply
from tests.app.slash.test_table import Desk, desk


def touch(name: str = "made") -> list[CallChunk]:
    return [CallChunk(0, "c1", "shell", f'{{"command": "touch {name}"}}')]


async def question(one: Desk) -> str:
    await one.until(lambda: any(isinstance(event, QuestionAsked) for event in one.events))
    return next(event.question for event in one.events if isinstance(event, QuestionAsked))


async def test_the_queue_is_shown_changed_and_sent_at_once(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [[hang], ["third done"], ["first done"]]) as (one, [provider]):
        await one.session.say("work")
        await hang.reached.wait()
        await one.session.say("/queue one")
        await one.session.say("/queue two")
        await one.session.say("/queue three")
        await one.session.say("/queue 2 edit second, really")
        await one.session.say("/queue 2 drop")
        await one.session.say("/queue 2 to 1")
        await one.session.say("/queue")
        assert await one.notice("queue", 7) == "1. [queued] three\n2. [queued] one"
        await one.session.say("/queue 1 now")
        assert await one.session.idle() == Completed("first done")
    said = [
        [message.text for message in request.messages if isinstance(message, UserMessage)]
        for request in provider.requests
    ]
    assert said == [["work"], ["work", "three"], ["work", "three", "one"]]


async def test_a_number_that_is_no_place_in_the_queue_is_told_so(tmp_path: Path) -> None:
    async with desk(tmp_path, []) as (one, _):
        await one.session.say("/queue 3 drop")
        assert await one.notice("queue") == "There is no message 3 in the queue; it has 0."


async def test_what_a_message_does_to_a_running_turn_can_be_chosen(tmp_path: Path) -> None:
    hang = Hang()
    async with desk(tmp_path, [[hang], ["later"]]) as (one, _):
        await one.session.say("/busy queue")
        assert await one.notice("busy") == "A message while a turn runs: queue."
        await one.session.say("work")
        await hang.reached.wait()
        assert (await one.session.say("next")).state == "queued"
        await one.session.say("/busy sometimes")
        assert "There is no delivery 'sometimes'" in await one.notice("busy", 2)
        await one.session.interrupt()


async def test_approve_and_deny_answer_what_is_asked(tmp_path: Path) -> None:
    script: list[Reply] = [touch("yes"), ["ok"], touch("no"), ["ok"]]
    async with desk(tmp_path, script) as (one, _):
        await one.session.say("/mode ask")
        await one.session.say("/approve")
        assert await one.notice("approve") == "Nothing is asked at present."
        for command, number in (("/approve", 1), ("/deny not that", 2)):
            await one.session.say("go")
            await one.until(lambda n=number: len([e for e in one.events if isinstance(e, QuestionAsked)]) >= n)
            await one.session.say(command)
            assert await one.session.idle() == Completed("ok")
        results = [message for message in await one.session.transcript() if isinstance(message, CallResult)]
    assert [result.effect for result in results] == [Effect.COMPLETED, Effect.NOT_STARTED]
    assert "not that" in results[1].text
    assert (tmp_path / "yes").exists()
    assert not (tmp_path / "no").exists()


async def test_the_next_message_is_a_prompt_and_never_an_answer(tmp_path: Path) -> None:
    async with desk(tmp_path, [touch(), ["as you say"]]) as (one, _):
        await one.session.say("/mode ask")
        await one.session.say("go")
        asked = await question(one)
        await one.session.say("yes")
        assert await one.session.idle() == Completed("as you say")
        late = await one.session.answer(asked, "yes")
        outcomes = [event.outcome for event in one.events if isinstance(event, TurnEnd)]
        turns = [event for event in one.events if isinstance(event, TurnStart)]
    assert late is not None
    assert late.code == "not_asked"
    assert outcomes[0] == Interrupted("new message")
    assert len(turns) == 2
    assert not (tmp_path / "made").exists()


async def test_the_mode_tells_what_it_means_and_refuses_what_there_is_not(tmp_path: Path) -> None:
    async with desk(tmp_path, []) as (one, _):
        await one.session.say("/mode")
        assert (await one.notice("mode")).startswith("auto: ")
        await one.session.say("/mode all")
        assert await one.notice("mode", 2) == "all: you are never asked."
        await one.session.say("/mode some")
        assert "There is no mode 'some'" in await one.notice("mode", 3)
