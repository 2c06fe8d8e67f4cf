"""Background work outlives an interrupting message, and reports its end to its session exactly once."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import hark
from hark.app.agent import Agent
from hark.app.sessions.handle import SessionHandle
from hark.protocol.events import QuestionAsked
from hark.protocol.messages import CallResult, Effect, Message, UserMessage
from hark.protocol.names import is_wake_up
from hark.protocol.outcomes import Completed, Interrupted, Usage
from hark.protocol.provider import CallChunk, Chunk, Request, TextChunk, UsageChunk
from hark.protocol.session import EventReader
from hark.providers.scripted import ScriptedProvider, ScriptStep
from tests.waiting import until

GOALS = ("count the files", "read the log")


class Model:
    """A model whose children answer when `release` is set, and whose parent delegates and starts a process."""

    def __init__(self, *calls: CallChunk) -> None:
        self.calls = calls
        self.started: set[str] = set()
        self.release = asyncio.Event()
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        first = request.messages[0].text
        self.requests.append(request)
        steps: list[ScriptStep] = [TextChunk("noted")]
        if first in GOALS:
            self.started.add(first)
            await self.release.wait()
            steps = [TextChunk(f"result of {first}")]
        elif not any(isinstance(message, CallResult) for message in request.messages):
            steps = list(self.calls)
        async for chunk in ScriptedProvider([steps]).stream(request):
            yield chunk


def delegate(number: int) -> CallChunk:
    return CallChunk(number, f"call{number}", "delegate", f'{{"goal": "{GOALS[number]}"}}')


def start_process(number: int, command: str, name: str = "job") -> CallChunk:
    arguments = f'{{"action": "start", "name": "{name}", "command": "{command}"}}'
    return CallChunk(number, f"call{number}", "process", arguments)


def open_agent(home: Path, model: Model, **sections: Any) -> AbstractAsyncContextManager[Agent]:
    sections.setdefault("approvals", {"mode": "all"})
    return hark.open(home=home, workspace=home, routes=[{"provider": model}], **sections)


async def reports(session: SessionHandle) -> list[UserMessage]:
    messages: list[Message] = await session.transcript()
    return [message for message in messages if isinstance(message, UserMessage) and is_wake_up(message.id)]


async def wait_for_reports(session: SessionHandle, count: int) -> list[UserMessage]:
    await session.wait_until_loaded()
    await wait_until(session, lambda: _count_reports(session) >= count)
    await session.idle()
    return await reports(session)


def _count_reports(session: SessionHandle) -> int:
    messages = session.proxy.state.transcript.messages
    return sum(isinstance(message, UserMessage) and is_wake_up(message.id) for message in messages)


async def wait_until(session: SessionHandle, condition: Callable[[], bool]) -> None:
    events = session.events()
    if not condition():
        async for _ in events:
            if condition():
                return


async def cut_by_messages(session: SessionHandle, model: Model, count: int) -> None:
    await session.say("do both")
    await until(lambda: len(model.started) == sum(call.name == "delegate" for call in model.calls))
    for number in range(count):
        await session.say(f"how is it going? {number}")
    await session.idle()


async def test_children_and_processes_survive_20_messages_and_report_once(tmp_path: Path) -> None:
    model = Model(
        delegate(0), delegate(1), start_process(2, "until [ -e go ]; do sleep 0.05; done; echo built; exit 3")
    )
    async with open_agent(tmp_path, model) as agent:
        session = agent.session("parent")
        await cut_by_messages(session, model, 20)
        results = {one.call: one for one in await session.transcript() if isinstance(one, CallResult)}
        assert results["call0"].effect is Effect.CONTINUES
        assert "parent.c-call0" in results["call0"].text
        assert {child.name for child in await agent.children("parent") if child.is_running} == {
            "parent.c-call0",
            "parent.c-call1",
        }
        model.release.set()
        (tmp_path / "go").touch()
        found = await wait_for_reports(session, 3)
        await session.say("thanks")
        assert await session.idle() == Completed("noted")
        assert len(await reports(session)) == 3
    texts = {message.author: message.text for message in found}
    assert "result of count the files" in texts["parent.c-call0"]
    assert "result of read the log" in texts["parent.c-call1"]
    assert "exit code 3" in texts["job"]
    assert "built" in texts["job"]


async def test_a_stop_ends_children_of_earlier_turns_and_wakes_nothing_until_the_user_speaks(tmp_path: Path) -> None:
    model = Model(delegate(0), start_process(1, "until [ -e go ]; do sleep 0.05; done; echo built"))
    async with open_agent(tmp_path, model) as agent:
        session = agent.session("parent")
        await cut_by_messages(session, model, 1)
        assert await session.interrupt("user") is None
        assert await agent.session("parent.c-call0").idle() == Interrupted("its parent was stopped")
        (tmp_path / "go").touch()
        await until(lambda: len(session.proxy.state.reports) == 2)
        assert await session.idle() == Completed("noted")
        assert await reports(session) == []
        await session.say("go on")
        await session.idle()
        found = await reports(session)
        assert [message.text for message in model.requests[-1].messages][-1] == "go on"
    assert {message.author for message in found} == {"parent.c-call0", "job"}


async def test_a_stopped_session_stays_silent_after_a_restart(tmp_path: Path) -> None:
    model = Model(start_process(0, "sleep 60"))
    async with open_agent(tmp_path, model) as agent:
        session = agent.session("parent")
        await session.say("start it")
        await session.idle()
        await session.interrupt("user")
    async with open_agent(tmp_path, model) as agent:
        session = agent.session("parent")
        assert await session.idle() == Completed("noted")
        assert await reports(session) == []
        await session.say("hello")
        await session.idle()
        [report] = await reports(session)
    assert "job was ended, because Hark exited" in report.text


async def test_wake_ups_are_limited_between_two_user_messages(tmp_path: Path) -> None:
    waits = [
        start_process(number, f"until [ -e go{number} ]; do sleep 0.05; done", f"job{number}") for number in range(3)
    ]
    model = Model(*waits)
    async with open_agent(tmp_path, model, limits={"wake_ups": 2}) as agent:
        session = agent.session("parent")
        await session.say("start them")
        await session.idle()
        for number in range(2):
            (tmp_path / f"go{number}").touch()
            await wait_for_reports(session, number + 1)
        (tmp_path / "go2").touch()
        await until(lambda: len(session.proxy.state.reports) == 1)
        assert len(await reports(session)) == 2
        await session.say("anything else?")
        await session.idle()
        assert len(await reports(session)) == 3


async def test_a_process_whose_end_the_model_read_wakes_nothing(tmp_path: Path) -> None:
    class WaitingModel(Model):
        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            results = sum(isinstance(message, CallResult) for message in request.messages)
            wait = CallChunk(0, "wait", "process", '{"action": "wait", "id": "job"}')
            steps: list[ScriptStep] = [[start_process(0, "sleep 0.6"), wait, TextChunk("done")][results]]
            async for chunk in ScriptedProvider([steps]).stream(request):
                yield chunk

    async with open_agent(tmp_path, WaitingModel()) as agent:
        session = agent.session("parent")
        await session.say("start it")
        assert await session.idle() == Completed("done")
        await until(lambda: not session.proxy.state.work and not session.proxy.state.reports)
        assert await session.idle() == Completed("done")
        assert await reports(session) == []


async def test_a_setting_stops_children_at_an_interrupting_message(tmp_path: Path) -> None:
    model = Model(delegate(0))
    async with open_agent(tmp_path, model, delivery={"children": "stop"}) as agent:
        session = agent.session("parent")
        await cut_by_messages(session, model, 1)
        [result] = [one for one in await session.transcript() if isinstance(one, CallResult)]
        assert await agent.session("parent.c-call0").idle() == Interrupted("its parent was stopped")
    assert result.effect is Effect.CANCELLED


async def test_a_question_of_a_continuing_child_reaches_the_parents_user(tmp_path: Path) -> None:
    class AskingModel(Model):
        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            stream = super().stream(request)
            if request.messages[0].text == GOALS[0]:
                self.started.add(GOALS[0])
                await self.release.wait()
                ask = CallChunk(0, "ask", "ask", '{"question": "Which file?"}')
                is_asked = len(request.messages) > 1
                step = TextChunk(f"used {request.messages[-1].text}") if is_asked else ask
                stream = ScriptedProvider([[step]]).stream(request)
            async for chunk in stream:
                yield chunk

    model = AskingModel(delegate(0))
    async with open_agent(tmp_path, model) as agent:
        session = agent.session("parent")
        await cut_by_messages(session, model, 1)
        events = session.events()
        model.release.set()
        asked = await next_question(events)
        assert asked.text == "A child asks: Which file?"
        assert await session.answer(asked.question, "a.txt") is None
        [report] = await wait_for_reports(session, 1)
    assert "a.txt" in report.text


async def next_question(events: EventReader) -> QuestionAsked:
    async for event in events:
        if isinstance(event, QuestionAsked):
            return event
    raise AssertionError("the session closed")


CRASHING = """
import asyncio, os, sys
from pathlib import Path
from typing import Any
from tests.app.test_background_work import Model, cut_by_messages, delegate, open_agent, start_process

async def main(home):
    model = Model(delegate(0), start_process(1, "sleep 60"))
    async with open_agent(home, model) as agent:
        await cut_by_messages(agent.session("parent"), model, 1)
        print("ready", flush=True)
        await asyncio.sleep(60)

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_work_lost_by_kill_9_is_reported_once_and_not_run_again(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(CRASHING), str(tmp_path), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    model = Model()
    for _ in range(2):
        async with open_agent(tmp_path, model) as agent:
            session = agent.session("parent")
            found = await wait_for_reports(session, 2)
            assert {message.author for message in found} == {"parent.c-call0", "job"}
            assert len(found) == 2
            assert all("lost" in message.text for message in found)
    assert model.started == set()


async def test_the_cost_of_a_child_counts_for_its_parent_and_once_for_the_day(tmp_path: Path) -> None:
    class PricedModel(Model):
        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            async for chunk in super().stream(request):
                yield chunk
            yield UsageChunk(Usage(1_000_000, 0))

    model = PricedModel(delegate(0))
    route = {"provider": model, "input_price": 1.0, "output_price": 0.0}
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[route], approvals={"mode": "all"}) as agent:
        session = agent.session("parent")
        model.release.set()
        await session.say("do it")
        assert await session.idle() == Completed("noted")
        await until(lambda: session.proxy.state.cost == 3.0)  # two replies of the parent, one of the child
        assert await agent.cost_today() == 3.0
