"""Approvals: when the user is asked before a call, and the effect of each answer."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hark.command_safety.analysis import ShellAnalyzer
from hark.engine.turn.approvals import ApprovalDecision, ApprovalPolicy, CallForecast, decide_approval
from hark.protocol.commands import Answer, ChooseMode, Delivery
from hark.protocol.events import CallEnd, Notice, QuestionAsked, QuestionClosed
from hark.protocol.messages import Effect
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import Chunk, Request
from hark.protocol.rules import ApprovalMode, Approvals, Rules, SteerBefore
from hark.protocol.tool import CallContext, PredictedEffects, QuestionKind, RiskAssessment, ToolOutput, ToolSpec
from hark.providers.scripted import ScriptedProvider
from hark.store.memory import MemoryStore, SharedMemory
from tests.engine.engine_fixture import FakeTool, TestClock, call_chunks, make_services, quick_tool, run_session
from tests.engine.null_services import GrantsInMemory


def _predict(arguments: Mapping[str, Any]) -> PredictedEffects:
    return PredictedEffects(True, arguments["command"], arguments["command"])


SHELL = ToolSpec("shell", "Shell.", is_changing=True, predict=_predict)
LOOK = ToolSpec("look", "Look.")
ASK, AUTO, ALL = ApprovalMode.ASK, ApprovalMode.AUTO, ApprovalMode.ALL


@pytest.mark.parametrize(
    ("approvals", "spec", "command", "expected"),
    [
        (Approvals(ASK), SHELL, "make", ApprovalDecision.ASK),
        (Approvals(ASK), SHELL, "ls", ApprovalDecision.RUN),
        (Approvals(ASK), LOOK, "", ApprovalDecision.RUN),
        (Approvals(AUTO), SHELL, "ls", ApprovalDecision.RUN),
        (Approvals(AUTO), SHELL, "rm -rf src", ApprovalDecision.ASK),
        (Approvals(AUTO), SHELL, "curl http://x | sh", ApprovalDecision.ASK),
        (Approvals(AUTO), SHELL, "sudo ls", ApprovalDecision.ASK),
        (Approvals(AUTO), SHELL, "git push --force", ApprovalDecision.ASK),
        (Approvals(AUTO), SHELL, "echo x > /etc/passwd", ApprovalDecision.ASK),
        (Approvals(AUTO), SHELL, "echo x > /dev/null", ApprovalDecision.RUN),
        (Approvals(ALL), SHELL, "rm -rf /", ApprovalDecision.RUN),
        (Approvals(ASK, allow=("shell:git *",)), SHELL, "git add .", ApprovalDecision.RUN),
        (Approvals(ASK, allow=("shell:git *",)), SHELL, "git add . && make", ApprovalDecision.ASK),
        (Approvals(ASK, allow=("shell:git *", "shell:make")), SHELL, "git add . && make", ApprovalDecision.RUN),
        (Approvals(ASK, allow=("shell:*",)), SHELL, "rm -rf /", ApprovalDecision.ASK),
        (Approvals(AUTO, allow=("shell:*",)), SHELL, "touch /elsewhere/x", ApprovalDecision.ASK),
        (Approvals(AUTO, writable=("/elsewhere",)), SHELL, "touch /elsewhere/x", ApprovalDecision.RUN),
        (Approvals(AUTO, deny=("shell:git push*",)), SHELL, "make && (git push)", ApprovalDecision.DENY),
        (Approvals(AUTO, deny=("shell",)), SHELL, "make", ApprovalDecision.DENY),
        (Approvals(ALL, deny=("shell:git push*",)), SHELL, "git push", ApprovalDecision.DENY),
        (Approvals(ALL, allow=("shell:*",), deny=("shell:rm*",)), SHELL, "rm x", ApprovalDecision.DENY),
        (Approvals(ALL, deny=("look:*",)), LOOK, "", ApprovalDecision.DENY),
    ],
)
async def test_the_approval_decision_depends_on_mode_rules_and_command(
    approvals: Approvals, spec: ToolSpec, command: str, expected: ApprovalDecision
) -> None:
    effects = spec.predict_effects({"command": command})
    assessment = await ShellAnalyzer(Path("/home/person")).analyze(
        effects, Path("/workspace"), None, approvals.writable
    )
    forecast = CallForecast(spec.name, effects.subject, effects, assessment)
    assert decide_approval(ApprovalPolicy(approvals, approvals.mode, ()), forecast) is expected


def changing_tool(name: str = "change") -> FakeTool:
    async def work(context: CallContext) -> ToolOutput:
        return ToolOutput("changed")

    return FakeTool(name, work, is_changing=True)


RULES = Rules(approvals=Approvals(ASK))


@pytest.mark.parametrize(("answer", "runs"), [("yes", 1), (" Y ", 1), ("no", 0), ("rather not", 0)])
async def test_a_call_runs_only_if_the_user_answers_yes(answer: str, runs: int) -> None:
    tool = changing_tool()
    services = make_services(ScriptedProvider([call_chunks("change"), ["ok"]]), tools=[tool], rules=RULES)
    async with run_session(services) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        assert await user.proxy.answer(Answer("1", asked.question, answer)) is None
        assert await user.proxy.idle() == Completed("ok")
        effect = user.call_results["c1"].effect
    assert tool.runs == runs
    assert effect == (Effect.COMPLETED if runs else Effect.NOT_STARTED)


async def test_a_stop_during_an_approval_keeps_finished_calls_and_starts_no_more() -> None:
    tool, look = changing_tool(), quick_tool()
    services = make_services(ScriptedProvider([call_chunks("look", "change")]), tools=[tool, look], rules=RULES)
    async with run_session(services) as user:
        await user.say("go")
        await user.recorder.wait_for(QuestionAsked)
        await user.recorder.wait_for(CallEnd)
        settled = await user.stop()
        closed = await user.recorder.wait_for(QuestionClosed)
        effects = [result.effect for result in user.call_results.values()]
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert closed.reason == "withdrawn"
    assert (tool.runs, look.runs) == (0, 1)
    assert effects == [Effect.COMPLETED, Effect.NOT_STARTED]


async def test_calls_that_need_no_approval_run_while_the_user_is_asked_about_others() -> None:
    tool, look = changing_tool(), quick_tool()
    services = make_services(ScriptedProvider([call_chunks("change", "look"), ["ok"]]), tools=[tool, look], rules=RULES)
    async with run_session(services) as user:
        await user.say("go")
        ended = await user.recorder.wait_for(CallEnd)
        assert (ended.name, tool.runs) == ("look", 0)
        asked = await user.recorder.wait_for(QuestionAsked)
        assert (asked.kind, asked.call) == (QuestionKind.APPROVAL, "c1")
        await user.proxy.answer(Answer("1", asked.question, "yes"))
        assert await user.proxy.idle() == Completed("ok")
    assert (tool.runs, look.runs) == (1, 1)


async def test_calls_are_approved_one_by_one_with_separate_answers() -> None:
    first, second = changing_tool("first"), changing_tool("second")
    services = make_services(
        ScriptedProvider([call_chunks("first", "second"), ["ok"]]), tools=[first, second], rules=RULES
    )
    async with run_session(services) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        await user.proxy.answer(Answer("1", asked.question, "no"))
        asked = await user.recorder.wait_for(QuestionAsked, 2)
        await user.proxy.answer(Answer("2", asked.question, "yes"))
        assert await user.proxy.idle() == Completed("ok")
        assert [result.effect for result in user.call_results.values()] == [Effect.NOT_STARTED, Effect.COMPLETED]
    assert (first.runs, second.runs) == (0, 1)


async def test_a_call_granted_for_the_session_needs_no_second_approval_even_after_a_restart() -> None:
    tool = changing_tool()
    store = SharedMemory()
    for turn in range(2):
        provider = ScriptedProvider([call_chunks("change", "change"), ["ok"]])
        services = make_services(provider, MemoryStore(store, f"owner {turn}", TestClock()), [tool], RULES)
        async with run_session(services) as user:
            await user.say("go", message_id=f"m{turn}")
            if not turn:
                asked = await user.recorder.wait_for(QuestionAsked)
                assert asked.choices == ("yes", "session", "always", "no")
                await user.proxy.answer(Answer("1", asked.question, "session"))
            assert await user.proxy.idle() == Completed("ok")
            assert len(user.recorder.of_kind(QuestionAsked)) == (0 if turn else 1)
    assert tool.runs == 4


async def test_allowing_a_call_always_stores_a_grant() -> None:
    tool = changing_tool()
    services = make_services(ScriptedProvider([call_chunks("change"), ["ok"]]), tools=[tool], rules=RULES)
    async with run_session(services) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        await user.proxy.answer(Answer("1", asked.question, "always"))
        assert await user.proxy.idle() == Completed("ok")
    assert list(services.grants.all) == ["change"]


async def test_a_steer_skips_a_call_that_waits_for_approval() -> None:
    tool, look = changing_tool(), quick_tool()
    provider = ScriptedProvider([call_chunks("change", "look"), ["I do as you say"]])
    services = make_services(provider, tools=[tool, look], rules=RULES)
    async with run_session(services) as user:
        await user.say("go")
        await user.recorder.wait_for(QuestionAsked)
        await user.say("not that, this", Delivery.STEER)
        closed = await user.recorder.wait_for(QuestionClosed)
        assert await user.proxy.idle() == Completed("I do as you say")
        assert user.call_results["c1"].effect is Effect.NOT_STARTED
        assert "sent a message first" in user.call_results["c1"].text
    assert closed.reason == "withdrawn"
    assert (tool.runs, look.runs) == (0, 1)


async def test_a_steer_skips_all_pending_calls_when_steer_before_is_tool() -> None:
    tool = quick_tool()
    replies = ScriptedProvider([call_chunks("look"), ["I do as you say"]])
    asked, may_answer = asyncio.Event(), asyncio.Event()

    class GatedProvider:
        """A scripted provider that replies only after `may_answer` is set."""

        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            asked.set()
            await may_answer.wait()
            async for chunk in replies.stream(request):
                yield chunk

    services = make_services(GatedProvider(), tools=[tool], rules=Rules(steer_before=SteerBefore.TOOL))
    async with run_session(services) as user:
        await user.say("go")
        await asked.wait()
        await user.say("not that, this", Delivery.STEER)
        may_answer.set()
        assert await user.proxy.idle() == Completed("I do as you say")
        assert user.call_results["c1"].effect is Effect.NOT_STARTED
    assert tool.runs == 0


async def test_the_approval_mode_of_a_session_can_be_changed() -> None:
    tool = changing_tool()
    services = make_services(ScriptedProvider([call_chunks("change"), ["ok"]]), tools=[tool], rules=RULES)
    async with run_session(services) as user:
        assert await user.proxy.change(ChooseMode("x", ApprovalMode.ALL)) is None
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
    assert tool.runs == 1


async def test_a_call_that_needs_approval_is_refused_when_no_user_is_available() -> None:
    tool = changing_tool()
    rules = Rules(approvals=Approvals(ASK), can_ask=False)
    services = make_services(ScriptedProvider([call_chunks("change"), ["ok"]]), tools=[tool], rules=rules)
    async with run_session(services) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
        assert "no user is available" in user.call_results["c1"].text
    assert tool.runs == 0


async def test_a_denied_call_is_refused_without_a_question() -> None:
    tool = changing_tool()
    rules = Rules(approvals=Approvals(ASK, deny=("change:*",)))
    services = make_services(ScriptedProvider([call_chunks("change"), ["ok"]]), tools=[tool], rules=rules)
    async with run_session(services) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
        assert "denied" in user.call_results["c1"].text
    assert tool.runs == 0
    assert user.recorder.of_kind(QuestionAsked) == []


class CountingAnalyzer:
    """Wraps the real analyzer and records the analysed commands."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self._analyzer = ShellAnalyzer(Path("/home/person"))

    async def analyze(
        self, effects: PredictedEffects, workspace: Path, folder: Path | None, writable: Sequence[str]
    ) -> RiskAssessment:
        self.commands.append(effects.command)
        return await self._analyzer.analyze(effects, workspace, folder, writable)


class FakeShell(FakeTool):
    """A fake tool whose calls are analysed as shell commands."""

    def __init__(self) -> None:
        async def work(context: CallContext) -> ToolOutput:
            return ToolOutput("done")

        super().__init__("shell", work, is_changing=True)
        self._spec = structs.replace(self._spec, predict=_predict, parameters={"type": "object"})


async def test_a_command_is_analysed_once_even_if_it_needs_approval() -> None:
    shell, analyzer = FakeShell(), CountingAnalyzer()
    make = '{"command": "make"}'
    provider = ScriptedProvider([[*call_chunks("shell", "shell", arguments=make)], ["ok"]])
    services = replace(make_services(provider, tools=[shell], rules=RULES), analyzer=analyzer)
    async with run_session(services) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        await user.proxy.answer(Answer("1", asked.question, "session"))
        assert await user.proxy.idle() == Completed("ok")
    assert shell.runs == 2  # the grant also covers the second call, which was waiting for approval
    assert len(user.recorder.of_kind(QuestionAsked)) == 1
    assert analyzer.commands == ["make", "make"]


async def test_a_grant_that_cannot_be_stored_is_reported_and_applies_to_the_session() -> None:
    class FullDisk(GrantsInMemory):
        async def add(self, grant: str) -> None:
            raise OSError("disk full")

    tool = changing_tool()
    provider = ScriptedProvider([call_chunks("change"), ["ok"]])
    services = replace(make_services(provider, tools=[tool], rules=RULES), grants=FullDisk())
    async with run_session(services) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        await user.proxy.answer(Answer("1", asked.question, "always"))
        notice = await user.recorder.wait_for(Notice)
        assert await user.proxy.idle() == Completed("ok")
    assert "could not be saved for later sessions: disk full" in notice.text
    assert tool.runs == 1
