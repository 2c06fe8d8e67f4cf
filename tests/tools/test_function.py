"""Plain functions as tools."""

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
from tests.tools.context import FakeContext, call_tool, is_living
from tests.waiting import at_most

NO_ARGUMENTS: dict[str, Any] = {}


class Point(msgspec.Struct):
    x: int
    y: int = 0


async def killed(hanging: Tool, tmp_path: Path) -> tuple[float, int]:
    """Cancel a tool when it has printed its pid; return how long that took, and the pid."""
    context = FakeContext(tmp_path)
    pid, started = 0, 0.0
    async with anyio.create_task_group() as group:
        group.start_soon(call_tool, hanging, NO_ARGUMENTS, context)
        await context.until(lambda shown: shown.endswith("\n"))
        pid = int(context.shown)
        assert is_living(pid)
        started = time.perf_counter()
        group.cancel_scope.cancel()
    return time.perf_counter() - started, pid


def test_the_model_is_told_of_name_description_and_parameters() -> None:
    @tool(changes=False)
    def place(
        point: Point,
        count: Annotated[int, msgspec.Meta(description="How many.")],
        mode: Literal["a", "b"] = "a",
        tags: list[str] = [],  # noqa: B006 - a mutable default must be no problem
    ) -> None:
        """Put points
        somewhere.

        More that the model need not know.
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


def test_a_tool_may_have_another_name_and_changes_things_unless_told() -> None:
    def f() -> None: ...

    assert tool(f, name="other").spec.name == "other"
    assert tool(f).spec.is_changing


def test_parameters_that_a_model_cannot_give_are_refused_at_once() -> None:
    def f(*values: int) -> None: ...

    with pytest.raises(TypeError, match=r"f: a model can't give \*values: int; name each parameter"):
        tool(f)


async def test_a_function_sees_what_it_closes_over(tmp_path: Path) -> None:
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
    assert not is_living(pid)


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
async def test_what_a_function_returns_becomes_text(value: object, text: str, tmp_path: Path) -> None:
    def f() -> object:
        return value

    async def g() -> object:
        return value

    assert await call_tool(tool(f), {}, FakeContext(tmp_path)) == ToolOutput(text)
    assert await call_tool(tool(g), {}, FakeContext(tmp_path)) == ToolOutput(text)


async def test_a_function_may_return_a_whole_output(tmp_path: Path) -> None:
    @tool
    def f() -> ToolOutput:
        return ToolOutput("half", is_error=True, effect=Effect.UNKNOWN)

    assert await call_tool(f, {}, FakeContext(tmp_path)) == ToolOutput("half", is_error=True, effect=Effect.UNKNOWN)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"count": "x"}, "count: expected a whole number, got text."),
        ({}, "f needs count: call it again with it."),
        ({"count": 1, "more": 2}, "f has no argument more: it takes count, points."),
        ({"count": 1, "points": [{"x": "1"}]}, "points[0].x: expected int, got str."),
    ],
)
async def test_wrong_arguments_are_told_and_the_function_is_not_called(
    arguments: dict[str, object], sentence: str, tmp_path: Path
) -> None:
    @tool
    def f(count: int, points: list[Point] | None = None) -> None:
        (tmp_path / "called").touch()

    output = await call_tool(f, arguments, FakeContext(tmp_path))
    assert output == ToolOutput(sentence, is_error=True, effect=Effect.NOT_STARTED)
    assert not (tmp_path / "called").exists()


async def test_an_exception_comes_back_with_its_type_and_words(tmp_path: Path) -> None:
    @tool
    def f() -> NoReturn:
        raise ValueError("no such colour")

    assert await call_tool(f, {}, FakeContext(tmp_path)) == ToolOutput("ValueError: no such colour", is_error=True)


async def test_leaving_the_interpreter_leaves_only_the_child(tmp_path: Path) -> None:
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
    assert (await call_tool(g, {}, context)).text == "The tool's process left with exit code 3 before it returned."
    assert (
        await call_tool(h, {}, context)
    ).text == "The tool's process was ended by signal 9 (Killed) before it returned."


async def test_what_a_function_prints_is_shown(tmp_path: Path) -> None:
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


async def test_an_async_function_runs_here_and_gets_the_context(tmp_path: Path) -> None:
    seen: list[CallContext] = []

    @tool
    async def f(name: str, context: CallContext) -> str:
        seen.append(context)
        return f"hello {name}"

    context = FakeContext(tmp_path)
    assert await call_tool(f, {"name": "you"}, context) == ToolOutput("hello you")
    assert seen == [context]


async def test_a_cancel_passes_through_an_async_function(tmp_path: Path) -> None:
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


async def test_an_endless_loop_is_cut(tmp_path: Path) -> None:
    @tool
    def f() -> NoReturn:
        print(os.getpid(), flush=True)
        while True:
            pass

    took, pid = await killed(f, tmp_path)
    assert not is_living(pid)
    assert took < at_most(0.3)


async def test_a_function_that_ignores_signals_is_cut_with_what_it_started(tmp_path: Path) -> None:
    @tool
    def f() -> NoReturn:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        daemon = subprocess.Popen(["sleep", "600"], start_new_session=True)
        (tmp_path / "daemon").write_text(str(daemon.pid))
        print(os.getpid(), flush=True)
        while True:
            time.sleep(60)

    took, pid = await killed(f, tmp_path)
    assert not is_living(pid)
    assert not is_living(int((tmp_path / "daemon").read_text()))
    assert took < at_most(0.3)


async def test_the_loop_goes_on_while_a_function_blocks(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    @tool
    def f() -> str:
        print("waiting", flush=True)
        return gate.read_text()

    context = FakeContext(tmp_path)
    task = asyncio.create_task(call_tool(f, {}, context))
    await context.until(lambda shown: "waiting" in shown)
    assert not task.done()
    gate.write_text("through")
    assert await task == ToolOutput("through")


async def test_a_connection_that_is_closed_here_is_not_held_open_by_a_function(tmp_path: Path) -> None:
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
        await context.until(lambda shown: "running" in shown)
        writer.close()
        await asyncio.wait_for(closed.wait(), at_most(5))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
