"""Python functions as tools."""

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import anyio
import msgspec
import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, Tool, ToolOutput
from hark.tools.function import tool
from tests.tools.fake_context import FakeContext, call_tool, is_alive
from tests.waiting import at_most

NO_ARGUMENTS: dict[str, Any] = {}


class Point(msgspec.Struct):
    x: int
    y: int = 0


async def cancel_when_running(hanging: Tool, tmp_path: Path) -> tuple[float, int]:
    """Cancel a tool after it has printed its pid. Return the cancellation time in seconds, and the pid."""
    context = FakeContext(tmp_path)
    pid, started = 0, 0.0
    async with anyio.create_task_group() as group:
        group.start_soon(call_tool, hanging, NO_ARGUMENTS, context)
        await context.wait_until_shown(lambda shown: shown.endswith("\n"))
        pid = int(context.shown)
        assert is_alive(pid)
        started = time.perf_counter()
        group.cancel_scope.cancel()
    return time.perf_counter() - started, pid


def test_spec_has_the_functions_name_description_and_parameters() -> None:
    @tool(changes=False)
    def place(
        point: Point,
        count: Annotated[int, msgspec.Meta(description="How many.")],
        mode: Literal["a", "b"] = "a",
        tags: list[str] = [],  # noqa: B006 - mutable defaults must work
    ) -> None:
        """Put points
        somewhere.

        Details that the model need not see.
        """

    assert place.spec.name == "place"
    assert place.spec.description == "Put points somewhere."
    assert not place.spec.is_changing
    assert place.spec.parameters == {
        "type": "object",
        "properties": {
            "point": {"$ref": "#/$defs/Point"},
            "count": {"type": "integer", "description": "How many."},
            "mode": {"enum": ["a", "b"], "default": "a"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["point", "count"],
        "additionalProperties": False,
        "$defs": {
            "Point": {
                "title": "Point",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            }
        },
    }


def test_a_tool_can_be_renamed_and_is_assumed_to_change_state_by_default() -> None:
    def f() -> None: ...

    assert tool(f, name="other").spec.name == "other"
    assert tool(f).spec.is_changing


def test_variadic_parameters_are_rejected_when_the_tool_is_created() -> None:
    def f(*values: int) -> None: ...

    with pytest.raises(TypeError, match=r"f: a model can't fill \*values: int. Give each parameter a name"):
        tool(f)


async def test_a_function_can_use_its_closure_in_the_child_process(tmp_path: Path) -> None:
    secret = ["closed", "over"]

    def double(text: str) -> str:
        return text * 2

    @tool
    def f(point: Point, times: int = 2) -> list[Any]:
        return [double(word) for word in secret] * times + [point.y, os.getpid()]

    output = await call_tool(f, {"point": {"x": 1, "y": 7}}, FakeContext(tmp_path))
    *words, y, pid = msgspec.json.decode(output.text)
    assert words == ["closedclosed", "overover"] * 2
    assert y == 7
    assert pid != os.getpid()
    assert not is_alive(pid)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (None, "null"),
        (Point(1), '{"x":1,"y":0}'),
        (1 + 2j, "(1+2j)"),
        ("\ud800", "?"),
        ("x" * 3_000_000, "x" * 3_000_000),
    ],
    ids=["text", "json", "none", "struct", "repr", "surrogate", "large"],
)
async def test_a_functions_return_value_becomes_text(value: object, text: str, tmp_path: Path) -> None:
    def f() -> object:
        return value

    async def g() -> object:
        return value

    assert await call_tool(tool(f), {}, FakeContext(tmp_path)) == ToolOutput(text)
    assert await call_tool(tool(g), {}, FakeContext(tmp_path)) == ToolOutput(text)


async def test_a_function_may_return_a_tool_output(tmp_path: Path) -> None:
    @tool
    def f() -> ToolOutput:
        return ToolOutput("half", is_error=True, effect=Effect.UNKNOWN)

    assert await call_tool(f, {}, FakeContext(tmp_path)) == ToolOutput("half", is_error=True, effect=Effect.UNKNOWN)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": "x"}, "count: expected a whole number, got text."),
        ({}, "f needs count. Call it again with every required argument."),
        ({"count": 1, "more": 2}, "f has no argument more. Its arguments: count, points."),
        ({"count": 1, "points": [{"x": "1"}]}, "points[0].x: expected int, got str."),
    ],
)
async def test_invalid_arguments_cause_an_error_and_the_function_is_not_called(
    arguments: dict[str, object], message: str, tmp_path: Path
) -> None:
    @tool
    def f(count: int, points: list[Point] | None = None) -> None:
        (tmp_path / "called").touch()

    output = await call_tool(f, arguments, FakeContext(tmp_path))
    assert output == ToolOutput(message, is_error=True, effect=Effect.NOT_STARTED)
    assert not (tmp_path / "called").exists()


async def test_an_exception_is_returned_with_its_type_and_message(tmp_path: Path) -> None:
    @tool
    def f() -> NoReturn:
        raise ValueError("no such colour")

    assert await call_tool(f, {}, FakeContext(tmp_path)) == ToolOutput("ValueError: no such colour", is_error=True)


async def test_exiting_the_interpreter_ends_only_the_child_process(tmp_path: Path) -> None:
    @tool
    def f() -> NoReturn:
        raise SystemExit(3)

    @tool
    def g() -> NoReturn:
        os._exit(3)

    @tool
    def h() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    context = FakeContext(tmp_path)
    assert await call_tool(f, {}, context) == ToolOutput("SystemExit: 3", is_error=True)
    assert (await call_tool(g, {}, context)).text == "The tool's process exited with code 3 before it returned."
    assert (
        await call_tool(h, {}, context)
    ).text == "The tool's process was killed by signal 9 (Killed) before it returned."


async def test_output_printed_by_a_function_is_shown(tmp_path: Path) -> None:
    @tool
    def f(context: CallContext) -> str:
        print("hello")
        subprocess.run(["echo", "from a program"], check=True)
        context.output(f"in {context.workspace}")
        return "done"

    context = FakeContext(tmp_path)
    assert await call_tool(f, {}, context) == ToolOutput("done")
    assert "hello\n" in context.shown
    assert "from a program\n" in context.shown
    assert f"in {tmp_path}" in context.shown
    assert f.spec.parameters["properties"] == {}


async def test_an_async_function_runs_in_the_calling_process_with_the_context(tmp_path: Path) -> None:
    seen: list[CallContext] = []

    @tool
    async def f(name: str, context: CallContext) -> str:
        seen.append(context)
        return f"hello {name}"

    context = FakeContext(tmp_path)
    assert await call_tool(f, {"name": "you"}, context) == ToolOutput("hello you")
    assert seen == [context]


async def test_cancelling_reaches_an_async_function(tmp_path: Path) -> None:
    entered = asyncio.Event()

    @tool
    async def f() -> None:
        entered.set()
        await asyncio.Event().wait()

    async with anyio.create_task_group() as group:
        group.start_soon(call_tool, f, NO_ARGUMENTS, FakeContext(tmp_path))
        await entered.wait()
        group.cancel_scope.cancel()
    assert group.cancel_scope.cancelled_caught


async def test_cancelling_kills_a_function_in_an_endless_loop(tmp_path: Path) -> None:
    @tool
    def f() -> NoReturn:
        print(os.getpid(), flush=True)
        while True:
            pass

    elapsed_seconds, pid = await cancel_when_running(f, tmp_path)
    assert not is_alive(pid)
    assert elapsed_seconds < at_most(0.3)


async def test_cancelling_kills_a_function_that_ignores_signals_and_its_processes(tmp_path: Path) -> None:
    @tool
    def f() -> NoReturn:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        daemon = subprocess.Popen(["sleep", "600"], start_new_session=True)
        (tmp_path / "daemon").write_text(str(daemon.pid))
        print(os.getpid(), flush=True)
        while True:
            time.sleep(60)

    elapsed_seconds, pid = await cancel_when_running(f, tmp_path)
    assert not is_alive(pid)
    assert not is_alive(int((tmp_path / "daemon").read_text()))
    assert elapsed_seconds < at_most(0.3)


async def test_the_event_loop_keeps_running_while_a_function_blocks(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    @tool
    def f() -> str:
        print("waiting", flush=True)
        return gate.read_text()

    context = FakeContext(tmp_path)
    task = asyncio.create_task(call_tool(f, {}, context))
    await context.wait_until_shown(lambda shown: "waiting" in shown)
    assert not task.done()
    gate.write_text("through")
    assert await task == ToolOutput("through")


async def test_a_running_function_does_not_keep_a_closed_connection_open(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        closed.set()
        writer.close()

    @tool
    def f() -> None:
        print("running", flush=True)
        time.sleep(60)

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        context = FakeContext(tmp_path)
        task = asyncio.create_task(call_tool(f, {}, context))
        await context.wait_until_shown(lambda shown: "running" in shown)
        writer.close()
        await asyncio.wait_for(closed.wait(), at_most(5))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
