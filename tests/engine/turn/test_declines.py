"""After three declined calls in a turn, the user is asked for an instruction, and variants are not tried."""

import pytest

from hark.engine.turn.calls import REDIRECTED
from hark.engine.turn.gate import MAX_DECLINES, NO_VARIANTS, WHAT_INSTEAD
from hark.protocol.commands import Answer
from hark.protocol.events import QuestionAsked, QuestionClosed
from hark.protocol.messages import Effect
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.protocol.rules import ApprovalMode, Approvals, Rules
from hark.protocol.tool import QuestionKind
from hark.providers.scripted import ScriptedProvider, ScriptStep
from tests.engine.engine_fixture import SessionUser, make_services, run_session
from tests.engine.turn.test_gate import ASK, CommandTool


def calls(*numbers: int) -> list[ScriptStep]:
    """Return a reply with one shell call for each number."""
    return [CallChunk(index, f"c{n}", "shell", f'{{"command": "make {n}"}}') for index, n in enumerate(numbers)]


class Answers:
    """Answers the questions of a session, in order."""

    def __init__(self, user: SessionUser) -> None:
        self._user = user
        self.asked: list[QuestionAsked] = []

    async def next(self) -> QuestionAsked:
        """Wait for the next question."""
        self.asked.append(await self._user.recorder.wait_for(QuestionAsked, len(self.asked) + 1))
        return self.asked[-1]

    async def give(self, *answers: str) -> None:
        """Wait for one question for each answer, and answer it."""
        for answer in answers:
            asked = await self.next()
            assert await self._user.proxy.answer(Answer(f"a{len(self.asked)}", asked.question, answer)) is None


async def test_the_third_declined_call_of_a_turn_asks_the_user_what_to_do_instead() -> None:
    tool = CommandTool()
    provider = ScriptedProvider([calls(1), calls(2), calls(3), calls(4), ["ok"]])
    async with run_session(make_services(provider, tools=[tool], rules=ASK)) as user:
        answers = Answers(user)
        await user.say("go")
        await answers.give("no", "yes please, but with pnpm", "n", "use the old tool")
        asked = answers.asked[-1]
        await answers.give("yes")  # the count starts again after the instruction
        assert await user.proxy.idle() == Completed("ok")
        results = user.call_results
    assert (asked.text, asked.choices, asked.kind) == (WHAT_INSTEAD.format(3), (), QuestionKind.QUESTION)
    assert results["c2"].text == "The user declined this. Their answer: yes please, but with pnpm"
    assert results["c3"].text.endswith("Follow this answer: use the old tool")
    assert [arguments.command for arguments in tool.received] == ["make 4"]


async def test_the_other_calls_of_a_reply_do_not_start_after_the_instruction() -> None:
    tool = CommandTool()
    provider = ScriptedProvider([calls(1, 2, 3, 4, 5), ["ok"]])
    async with run_session(make_services(provider, tools=[tool], rules=ASK)) as user:
        answers = Answers(user)
        await user.say("go")
        await answers.give("no", "no", "no", "stop building")
        assert await user.proxy.idle() == Completed("ok")
        results = user.call_results
    assert len(answers.asked) == MAX_DECLINES + 1
    assert [results[f"c{n}"].text for n in (4, 5)] == [REDIRECTED, REDIRECTED]
    assert all(result.effect is Effect.NOT_STARTED for result in results.values())
    assert tool.received == []


async def test_declined_calls_are_counted_per_turn_and_approved_calls_do_not_count() -> None:
    tool = CommandTool()
    provider = ScriptedProvider([calls(1, 2, 3), ["first"], calls(4, 5), ["second"]])
    async with run_session(make_services(provider, tools=[tool], rules=ASK)) as user:
        answers = Answers(user)
        await user.say("go", message_id="1")
        await answers.give("no", "yes", "no")
        assert await user.proxy.idle() == Completed("first")
        await user.say("again", message_id="2")
        await answers.give("no", "no")
        assert await user.proxy.idle() == Completed("second")
    assert all(asked.kind is QuestionKind.APPROVAL for asked in answers.asked)
    assert len(tool.received) == 1


async def test_a_stop_withdraws_the_question_for_an_instruction() -> None:
    provider = ScriptedProvider([calls(1, 2, 3, 4)])
    async with run_session(make_services(provider, tools=[CommandTool()], rules=ASK)) as user:
        answers = Answers(user)
        await user.say("go")
        await answers.give("no", "no", "no")
        asked = await answers.next()
        settled = await user.stop()
        closed = await user.recorder.wait_for(QuestionClosed, MAX_DECLINES + 1)
        late = await user.proxy.answer(Answer("late", asked.question, "go on"))
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert (closed.question, closed.reason) == (asked.question, "withdrawn")
    assert late is not None
    assert len(provider.requests) == 1


async def test_an_unattended_turn_reads_not_to_try_variants_from_the_third_refusal() -> None:
    rules = Rules(can_ask=False, approvals=Approvals(ApprovalMode.ASK))
    provider = ScriptedProvider([calls(1), calls(2), calls(3), calls(4), ["ok"]])
    async with run_session(make_services(provider, tools=[CommandTool()], rules=rules)) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
        results = user.call_results
    assert [results[f"c{n}"].text.endswith(NO_VARIANTS) for n in (1, 2, 3, 4)] == [False, False, True, True]


@pytest.mark.parametrize("answer", ["session", "always"])
async def test_a_grant_that_was_not_offered_declines_the_call(answer: str) -> None:
    tool = CommandTool()
    provider = ScriptedProvider([calls(1), ["ok"]])
    async with run_session(make_services(provider, tools=[tool], rules=ASK)) as user:
        answers = Answers(user)
        await user.say("go")
        asked = await answers.next()
        await user.proxy.answer(Answer("a", asked.question, answer))
        assert await user.proxy.idle() == Completed("ok")
    assert bool(tool.received) == (answer in asked.choices)
