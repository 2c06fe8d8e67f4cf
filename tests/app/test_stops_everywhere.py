"""A stop wherever a turn may be, with the agent's own tools: it settles, tells the truth, and leaves nothing behind."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import hark
from hark.protocol.events import AnyEvent, CallEnd, CallOutput, QuestionAsked, QuestionClosed, ReplyDelta
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk, Request, TextChunk
from hark.providers.scripted import Hang, ScriptedProvider, Step
from tests.waiting import at_most


def calls(*wanted: tuple[str, dict[str, Any]]) -> list[Step]:
    return [CallChunk(place, f"c{place}", name, json.dumps(given)) for place, (name, given) in enumerate(wanted)]


async def next_event(events: AsyncIterator[AnyEvent], is_it: Callable[[AnyEvent], bool]) -> AnyEvent:
    async for event in events:
        if is_it(event):
            return event
    raise AssertionError("the session closed")


def answering(first: Sequence[Step], child: Sequence[Step] = ()) -> ScriptedProvider:
    """The first request and a child's are answered with these steps, any other with words."""

    def reply(request: Request) -> Sequence[Step]:
        if request.messages[0].text == "the child's goal":
            return child
        return first if len(request.messages) == 1 else [TextChunk("a new prompt")]

    return ScriptedProvider([reply] * 8)


async def test_of_three_calls_one_done_one_running_one_not_started_each_tells_the_truth(tmp_path: Path) -> None:
    asked = {"command": f"echo late >> {tmp_path}/outside"}
    provider = answering(
        calls(("shell", {"command": "echo done"}), ("shell", {"command": "echo half; sleep 60"}), ("shell", asked))
    )
    work = tmp_path / "work"
    work.mkdir()
    async with hark.open(home=tmp_path / "home", workspace=work, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("go")
        wanted = {CallEnd, CallOutput, QuestionAsked}  # one is done, one is at work, one is asked for
        async for event in events:
            if not isinstance(event, CallOutput) or event.call == "c1":
                wanted.discard(type(event))
            if not wanted:
                break
        settled = await session.interrupt()
        results = [message for message in await session.transcript() if isinstance(message, CallResult)]
        await session.say("and now?")
        assert await session.idle() == Completed("a new prompt")
    assert settled is not None
    assert settled.timings.settle < 1000 * at_most(1)
    by_call = {result.call: result for result in results}
    assert [by_call[f"c{place}"].effect for place in range(3)] == [
        Effect.COMPLETED,
        Effect.CANCELLED,
        Effect.NOT_STARTED,
    ]
    assert by_call["c0"].text.startswith("done\n")
    assert by_call["c1"].text.startswith("half\n")
    assert not (tmp_path / "outside").exists()


CHILD = calls(("delegate", {"goal": "the child's goal"}))
PLACES: dict[str, tuple[list[Step], list[Step], type[AnyEvent] | None]] = {
    "an approval": (calls(("shell", {"command": "touch /outside-of-it"})), [], QuestionAsked),
    "a question": (calls(("ask", {"question": "which?"})), [], QuestionAsked),
    "a child's tool": (CHILD, calls(("shell", {"command": "echo here; sleep 60"})), CallOutput),
    "a child's stream": (CHILD, [TextChunk("here"), "hang"], CallOutput),
    "a child's approval": (CHILD, calls(("shell", {"command": "touch /outside-of-it"})), QuestionAsked),
    "a wait": (calls(("process", {"action": "wait", "seconds": 60})), [], None),
    "python": (calls(("python", {"code": "print('here')\nwhile True: pass"})), [], CallOutput),
    "a stream": ([TextChunk("here"), "hang"], [], ReplyDelta),
}


@pytest.mark.parametrize("place", PLACES)
async def test_a_stop_settles_within_a_second_and_the_next_message_is_a_new_prompt(tmp_path: Path, place: str) -> None:
    first, child, reached = PLACES[place]
    hang = Hang()
    steps = [hang if step == "hang" else step for step in first]
    provider = answering(steps, [hang if step == "hang" else step for step in child])
    async with hark.open(home=tmp_path / "home", workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("go")
        event = await next_event(events, lambda event: reached is None or isinstance(event, reached))
        settled = await session.interrupt()
        if isinstance(event, QuestionAsked):
            closed = await next_event(events, lambda event: isinstance(event, QuestionClosed))
            assert isinstance(closed, QuestionClosed)
            assert closed.reason == "withdrawn"
            late = await session.answer(event.question, "yes")
            assert late is not None
        await session.say("yes")
        assert await session.idle() == Completed("a new prompt")
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert settled.timings.settle < 1000 * at_most(1)
