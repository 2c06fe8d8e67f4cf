"""Side questions: /btw asks the model next to the running turn and leaves no trace in it."""

from collections.abc import Callable
from pathlib import Path

import pytest

import hark
from hark.protocol.events import Notice, TurnEnd
from hark.protocol.messages import AssistantMessage, CallResult, Note, UserMessage
from hark.protocol.outcomes import Completed, Interrupted, Usage
from hark.protocol.provider import BadKey, CallChunk, Request, UsageChunk
from hark.providers.anthropic.provider import encode_request as encode_anthropic
from hark.providers.endpoint import Endpoint
from hark.providers.openai.chat import encode_request as encode_chat
from hark.providers.openai.responses import encode_request as encode_responses
from hark.providers.scripted import Fail, Hang, ScriptedProvider
from tests.app.slash.test_command_table import observed_session
from tests.waiting import until


async def test_a_side_question_is_answered_next_to_the_turn_with_its_context_and_leaves_no_trace(
    tmp_path: Path,
) -> None:
    hang = Hang()
    async with observed_session(tmp_path, [["half a re", hang], ["It is going well."]]) as (observed, [provider]):
        session = observed.session
        await session.say("long work")
        await hang.reached.wait()
        before = await session.transcript()
        receipt = await session.say("/btw how is it going?")
        assert receipt.state == "started"
        assert await observed.wait_for_notice("btw") == "btw how is it going?\n\nIt is going well."
        assert not hang.closed.is_set()
        assert await session.transcript() == before
        assert await session.queue() == []
        await session.interrupt()
    turn, side = provider.requests
    assert (side.system, side.tools) == (turn.system, turn.tools)
    assert side.tools
    assert not side.may_call
    prompt, partial, question = side.messages
    assert prompt == turn.messages[0]
    assert partial == AssistantMessage("half a re", is_partial=True)
    assert isinstance(question, Note)
    assert question.text.endswith("how is it going?")


async def test_open_calls_have_a_provisional_result_with_their_output_in_a_side_question(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "shell", '{"command": "echo 41 percent; sleep 600"}')
    async with observed_session(tmp_path, [[call], ["41 percent"]]) as (observed, [provider]):
        session = observed.session
        await session.say("/mode all")
        await session.say("build it")
        await observed.until(
            lambda: any("41" in str(event) and event.type == "call.output" for event in observed.events)
        )
        await session.say("/btw how far?")
        assert "41 percent" in await observed.wait_for_notice("btw")
        assert not any(isinstance(event, TurnEnd) for event in observed.events)
        await session.interrupt()
    result = provider.requests[1].messages[-2]
    assert isinstance(result, CallResult)
    assert result.call == "c1"
    assert "still running" in result.text
    assert "41 percent" in result.text


async def test_a_side_question_works_while_the_session_is_idle(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["first"], ["aside"], ["second"]]) as (observed, [provider]):
        await observed.say_and_wait("one")
        await observed.session.say("/btw why?")
        assert (await observed.wait_for_notice("btw")).endswith("aside")
        assert await observed.say_and_wait("two") == Completed("second")
    assert [message.text for message in provider.requests[2].messages] == ["one", "first", "two"]


async def test_calls_in_the_answer_to_a_side_question_are_ignored(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "shell", '{"command": "touch made"}')
    async with observed_session(tmp_path, [[call]]) as (observed, _):
        await observed.session.say("/btw make it")
        assert "the model tried to call a tool" in await observed.wait_for_notice("btw")
        assert await observed.session.idle() is None
    assert not (tmp_path / "made").exists()


async def test_a_failed_side_question_is_one_line_and_does_not_affect_the_routes_health(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [[Fail(BadKey("401: bad key"))], ["fine"]], [["b"]]) as (observed, _):
        await observed.session.say("/btw hello?")
        assert (await observed.wait_for_notice("btw")).endswith("\n\nNo answer: 401: bad key")
        assert observed.session.engine.routes.health_of("a").failures == 0
        assert await observed.say_and_wait("work") == Completed("fine")


async def test_a_stop_ends_the_turn_and_the_side_question(tmp_path: Path) -> None:
    work, aside = Hang(), Hang()
    async with observed_session(tmp_path, [[work], [aside]]) as (observed, _):
        await observed.session.say("work")
        await work.reached.wait()
        await observed.session.say("/btw and?")
        await aside.reached.wait()
        await observed.session.say("/stop")
        assert (await observed.wait_for_notice("btw")).endswith("The side question was stopped.")
        assert aside.closed.is_set()
        assert await observed.session.idle() == Interrupted("user")
        assert observed.session.engine.routes.health_of("a").failures == 0


async def test_btw_stop_ends_only_the_side_question(tmp_path: Path) -> None:
    work, aside = Hang(), Hang()
    async with observed_session(tmp_path, [[work], [aside]]) as (observed, _):
        await observed.session.say("work")
        await work.reached.wait()
        await observed.session.say("/btw and?")
        await aside.reached.wait()
        await observed.session.say("/btw stop")
        await until(aside.closed.is_set)
        assert not work.closed.is_set()
        await observed.session.interrupt()


async def test_closing_the_agent_ends_an_open_side_question(tmp_path: Path) -> None:
    aside = Hang()
    async with observed_session(tmp_path, [[aside]]) as (observed, _):
        await observed.session.say("/btw and?")
        await aside.reached.wait()
    assert aside.closed.is_set()


async def test_an_interrupting_message_does_not_wait_for_a_side_question_or_end_it(tmp_path: Path) -> None:
    work, aside = Hang(), Hang()
    async with observed_session(tmp_path, [[work], [aside], ["done"]]) as (observed, _):
        await observed.session.say("work")
        await work.reached.wait()
        await observed.session.say("/btw and?")
        await aside.reached.wait()
        await observed.session.say("something else")
        assert await observed.session.idle() == Completed("done")
        assert not aside.closed.is_set()


async def test_the_cost_of_a_side_question_counts_for_the_session_and_the_day_after_a_restart(tmp_path: Path) -> None:
    usage = UsageChunk(Usage(1_000_000, 500_000))
    route = {"name": "a", "provider": ScriptedProvider([["yes", usage]]), "input_price": 1.0, "output_price": 2.0}
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[route]) as agent:
        session = agent.session("demo")
        assert (await session.run_command(session.interpret("/btw really?"))).endswith("yes")  # type: ignore[arg-type]
    routes = [{**route, "provider": ScriptedProvider([])}]
    limits = {"day_cost_usd": 1.5}
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes, limits=limits) as agent:
        session = agent.session("demo")
        await session.wait_until_loaded()
        assert (session.proxy.state.tokens, session.proxy.state.cost) == (1_500_000, 2.0)
        assert await session.engine.spending.cost_today() == 2.0
        answer = await session.proxy.ask_aside("again?")
        assert answer == "Not asked. The day's limit is reached: 2 of 1.5 USD used."


async def test_two_side_questions_run_at_the_same_time(tmp_path: Path) -> None:
    first = Hang()
    async with observed_session(tmp_path, [[first], ["two"]]) as (observed, _):
        await observed.session.say("/btw one?")
        await first.reached.wait()
        await observed.session.say("/btw two?")
        assert await observed.wait_for_notice("btw") == "btw two?\n\ntwo"
        assert not [event for event in observed.events if isinstance(event, Notice) and "one" in event.text]


@pytest.mark.parametrize("encode", [encode_chat, encode_responses])
async def test_openai_requests_for_side_questions_forbid_calls(
    encode: Callable[[Request, Endpoint], bytes], tmp_path: Path
) -> None:
    async with observed_session(tmp_path, []) as (observed, _):
        tools = tuple(observed.session.engine.tools.specs)
    request = Request("system", (UserMessage("m", "hi"),), tools, may_call=False)
    assert b'"tool_choice":"none"' in encode(request, Endpoint("http://x", "m"))


async def test_anthropic_requests_for_side_questions_have_the_same_prefix(tmp_path: Path) -> None:
    async with observed_session(tmp_path, []) as (observed, _):
        tools = tuple(observed.session.engine.tools.specs)
    messages = (UserMessage("m", "hi"),)
    plain = encode_anthropic(Request("system", messages, tools), Endpoint("http://x", "m"))
    assert encode_anthropic(Request("system", messages, tools, may_call=False), Endpoint("http://x", "m")) == plain
