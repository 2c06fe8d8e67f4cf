"""A stop at any point in a turn with built-in tools settles, reports the effects, and leaves no process running."""

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
from hark.providers.scripted import Hang, ScriptedProvider, ScriptStep
from tests.waiting import at_most, until


def make_calls(*tool_calls: tuple[str, dict[str, Any]]) -> list[ScriptStep]:
    return [
        CallChunk(index, f"c{index}", name, json.dumps(arguments)) for index, (name, arguments) in enumerate(tool_calls)
    ]


async def next_event(events: AsyncIterator[AnyEvent], matches: Callable[[AnyEvent], bool]) -> AnyEvent:
    async for event in events:
        if matches(event):
            return event
    raise AssertionError("the session closed")


def make_provider(first: Sequence[ScriptStep], child: Sequence[ScriptStep] = ()) -> ScriptedProvider:
    """Return a provider that replies to the first request with `first`, and to a child's request with `child`."""

    def reply(request: Request) -> Sequence[ScriptStep]:
        if request.messages[0].text == "the child's goal":
            return child
        return first if len(request.messages) == 1 else [TextChunk("a new prompt")]

    return ScriptedProvider([reply] * 8)


async def test_completed_running_and_unstarted_calls_report_their_effects_after_a_stop(tmp_path: Path) -> None:
    asked = {"command": f"echo late >> {tmp_path}/outside"}
    provider = make_provider(
        make_calls(("shell", {"command": "echo done"}), ("shell", {"command": "echo half; sleep 60"}), ("shell", asked))
    )
    work = tmp_path / "work"
    work.mkdir()
    async with hark.open(home=tmp_path / "home", workspace=work, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("go")
        expected_events = {
            CallEnd,
            CallOutput,
            QuestionAsked,
        }  # one call is done, one is running, one asks for approval
        async for event in events:
            if not isinstance(event, CallOutput) or event.call == "c1":
                expected_events.discard(type(event))
            if not expected_events:
                break
        settled = await session.interrupt()
        results = [message for message in await session.transcript() if isinstance(message, CallResult)]
        await session.say("and now?")
        assert await session.idle() == Completed("a new prompt")
    assert settled is not None
    assert settled.timings.settle < 1000 * at_most(1)
    by_call = {result.call: result for result in results}
    assert [by_call[f"c{index}"].effect for index in range(3)] == [
        Effect.COMPLETED,
        Effect.CANCELLED,
        Effect.NOT_STARTED,
    ]
    assert by_call["c0"].text.startswith("done\n")
    assert by_call["c1"].text.startswith("half\n")
    assert not (tmp_path / "outside").exists()


async def test_an_interrupted_command_returns_its_output_as_a_terminal_shows_it(tmp_path: Path) -> None:
    frames = r"for i in {1..1800}; do printf '\r%d %060d' $i 0; done"
    command = f"{frames}; echo; echo ERROR: disk full; {frames}; echo; seq 8000; touch ready; sleep 60"
    provider = make_provider(make_calls(("shell", {"command": command})))
    async with hark.open(home=tmp_path / "home", workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        await session.say("go")
        await until((tmp_path / "ready").exists)
        await session.interrupt()
        (result,) = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert result.effect is Effect.CANCELLED
    last = f"1800 {'0' * 60}"
    assert f"\n{last}\nERROR: disk full\n{last}\n1\n2\n" in result.text
    assert "characters omitted; the full output is in " in result.text
    assert "\n7999\n8000\n" in result.text
    assert result.text.endswith("\n[cancelled]")


DELEGATE_CALL = make_calls(("delegate", {"goal": "the child's goal"}))
STOP_POINTS: dict[str, tuple[list[ScriptStep], list[ScriptStep], type[AnyEvent] | None]] = {
    "an approval": (make_calls(("shell", {"command": "touch /outside-of-it"})), [], QuestionAsked),
    "a question": (make_calls(("ask", {"question": "which?"})), [], QuestionAsked),
    "a child's tool": (DELEGATE_CALL, make_calls(("shell", {"command": "echo here; sleep 60"})), CallOutput),
    "a child's stream": (DELEGATE_CALL, [TextChunk("here"), "hang"], CallOutput),
    "a child's approval": (DELEGATE_CALL, make_calls(("shell", {"command": "touch /outside-of-it"})), QuestionAsked),
    "a wait": (make_calls(("process", {"action": "wait", "seconds": 60})), [], None),
    "python": (make_calls(("python", {"code": "print('here')\nwhile True: pass"})), [], CallOutput),
    "a stream": ([TextChunk("here"), "hang"], [], ReplyDelta),
}


@pytest.mark.parametrize("stop_point", STOP_POINTS)
async def test_a_stop_settles_within_a_second_and_the_next_message_is_a_new_prompt(
    tmp_path: Path, stop_point: str
) -> None:
    first, child, reached = STOP_POINTS[stop_point]
    hang = Hang()
    steps = [hang if step == "hang" else step for step in first]
    provider = make_provider(steps, [hang if step == "hang" else step for step in child])
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
