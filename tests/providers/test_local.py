"""The embedded model: replies, cancelling and missing dependencies. Its process never outlives its parent."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, Note, UserMessage
from hark.protocol.provider import EndChunk, ProviderError, Request, TextChunk, UsageChunk
from hark.protocol.tool import ToolSpec
from hark.providers.connections import open_session
from hark.providers.local import model_process as local_child
from hark.providers.local import server as local_server
from hark.providers.local.provider import (
    DEMO_NOTICE,
    MAX_PROMPT_BYTES,
    MAX_TOKENS,
    MESSAGE_OVERHEAD_BYTES,
    SYSTEM_PROMPT,
    LocalModel,
    shorten_request,
)
from hark.providers.local.server import LocalServer, find_weights
from tests.waiting import at_most, until

HELLO = Request("a long system prompt", [UserMessage("1", "hello")], [ToolSpec("shell", "Runs a command.")], 12)
STORY = Request("", [UserMessage("1", "Tell me a very long story about a fox, a bear and a river.")])
EXIT_LIMIT_SECONDS = at_most(5.0)
STOP_LIMIT_SECONDS = at_most(1.5)
IDLE_SECONDS = 0.3

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@asynccontextmanager
async def open_model() -> AsyncGenerator[tuple[LocalModel, list[str]]]:
    notices: list[str] = []
    async with open_session() as session:
        model = LocalModel(session, notices.append)
        try:
            yield model, notices
        finally:
            await model.close()


async def collect_text(model: LocalModel, request: Request = HELLO) -> str:
    chunks = [chunk async for chunk in model.stream(request)]
    assert isinstance(chunks[-1], EndChunk)
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


async def wait_for_exit(pid: int) -> None:
    """Wait until a process has exited, even if it is not a child of this process."""
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    handle = os.pidfd_open(pid)
    loop.add_reader(handle, is_over.set)
    try:
        async with asyncio.timeout(EXIT_LIMIT_SECONDS):
            await is_over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def measure_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure_busy_seconds(model: LocalModel) -> float:
    """Wait until the model is idle. Return the approximate time this took, in seconds."""
    assert model.server.pid is not None
    started_at = changed_at = time.perf_counter()
    used = measure_cpu_seconds(model.server.pid)
    while (now := time.perf_counter()) - changed_at < IDLE_SECONDS and now - started_at < EXIT_LIMIT_SECONDS:
        await asyncio.sleep(0.02)
        if (later := measure_cpu_seconds(model.server.pid)) != used:
            used, changed_at = later, time.perf_counter()
    return changed_at - started_at


async def test_the_embedded_model_answers_and_introduces_itself_once() -> None:
    async with open_model() as (model, notices):
        assert len(await collect_text(model)) > 2
        chunks = [chunk async for chunk in model.stream(HELLO)]
        pid = model.server.pid
    usage = [chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)]
    assert 10 < usage[0].input_tokens < 60  # neither tools nor the system prompt were sent
    assert [notice.partition(" (")[0] for notice in notices[:2]] == [
        "Starting the embedded model",
        "The embedded model is ready",
    ]
    assert notices[2:] == [DEMO_NOTICE]
    assert "hark setup" in DEMO_NOTICE
    assert pid is not None
    assert model.server.pid is None


async def test_concurrent_requests_start_only_one_model() -> None:
    async with open_model() as (model, notices):
        answers = await asyncio.gather(collect_text(model), collect_text(model))
    assert all(answers)
    assert sum(notice.startswith("Starting") for notice in notices) == 1


@on_linux
async def test_a_cancelled_stream_stops_the_generation() -> None:
    async with open_model() as (model, _):
        async with aclosing(model.stream(STORY)) as chunks:
            async for _chunk in chunks:
                break
        assert await measure_busy_seconds(model) < STOP_LIMIT_SECONDS
        assert await collect_text(model)


@on_linux
async def test_a_cancelled_stream_stops_reading_a_long_prompt() -> None:
    prompt = "The quick brown fox jumps over the lazy dog and runs. " * 80  # the model reads it for about ten seconds
    async with open_model() as (model, _):
        pid = (await model.server.wait_for_endpoint()) and model.server.pid
        assert pid is not None
        before = measure_cpu_seconds(pid)
        reading = asyncio.create_task(collect_text(model, Request("", [UserMessage("1", prompt)])))
        await until(lambda: measure_cpu_seconds(pid) - before > 0.3)
        assert not reading.done()
        reading.cancel()
        assert await measure_busy_seconds(model) < STOP_LIMIT_SECONDS
        assert await collect_text(model)


async def test_a_cancel_during_the_start_takes_effect_immediately() -> None:
    async with open_model() as (model, _):
        waiting = asyncio.create_task(collect_text(model))
        await until(lambda: model.server.pid is not None)
        cancelled_at = time.perf_counter()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert time.perf_counter() - cancelled_at < at_most(0.05)
        assert await collect_text(model)  # the start continued


async def test_a_close_during_the_start_leaves_no_process() -> None:
    async with open_model() as (model, _):
        model.server.start()
        await until(lambda: model.server.pid is not None)
        pid = model.server.pid
        assert pid is not None
        await model.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(ProviderError, match="shutting down"):
            await collect_text(model)


@on_linux
async def test_a_killed_model_is_restarted_by_the_next_request() -> None:
    async with open_model() as (model, _):
        await model.server.wait_for_endpoint()
        first_pid = model.server.pid
        assert first_pid is not None
        os.kill(first_pid, signal.SIGKILL)
        await until(lambda: model.server.pid is None)
        assert await collect_text(model)
        assert model.server.pid != first_pid


PARENT_PROGRAM = """
import asyncio
from hark.providers.local.server import LocalServer

async def main():
    server = LocalServer(lambda text: None)
    await server.wait_for_endpoint()
    print(server.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@on_linux
async def test_the_model_process_exits_when_its_parent_is_killed() -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT_PROGRAM, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert os.getsid(pid) == pid  # so that Ctrl+C in the terminal reaches only the parent
    parent.kill()
    await wait_for_exit(pid)
    await parent.wait()


async def test_the_model_process_exits_when_its_stdin_is_closed() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", local_child.__file__, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    request = local_child.ModelServerRequest(model=str(find_weights()), key="k" * 20, threads=1)
    child.stdin.write(msgspec.json.encode(request) + b"\n")
    address = msgspec.json.decode(await child.stdout.readline())["address"]
    async with aiohttp.ClientSession() as session, session.get(f"{address}/v1/models") as response:
        assert response.status == 401  # other users of this machine don't have the key
    assert address.startswith("http://127.0.0.1:")
    child.stdin.close()
    async with asyncio.timeout(EXIT_LIMIT_SECONDS):
        assert await child.wait() == 0


async def test_a_missing_package_is_named_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    async with open_model() as (model, _):
        with pytest.raises(ProviderError, match="pip install xllamacpp") as caught:
            await collect_text(model)
    assert caught.value.code == "local_missing"


@on_linux
async def test_a_missing_system_library_is_named_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "libgomp.so.1").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    async with open_model() as (model, _):
        with pytest.raises(ProviderError, match=r"libgomp\.so\.1.*apt-get install libgomp1") as caught:
            await collect_text(model)
    assert caught.value.code == "local_library"
    assert model.server.pid is None


async def test_weights_that_cannot_be_loaded_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    monkeypatch.setattr(local_server, "find_weights", lambda: broken)
    async with open_model() as (model, _):
        with pytest.raises(ProviderError, match=r"can't be started: .*hark setup") as caught:
            await collect_text(model)
    assert caught.value.code == "local_failed"


async def test_a_child_process_that_exits_before_it_responds_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    exiting_child = tmp_path / "mute.py"
    exiting_child.write_text("raise SystemExit(7)")
    monkeypatch.setattr(local_child, "__file__", str(exiting_child))
    server = LocalServer(lambda _: None)
    with pytest.raises(ProviderError, match="the process ended with exit code 7"):
        await server.wait_for_endpoint()
    await server.close()


async def test_a_child_process_that_never_responds_is_stopped_after_the_time_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent_child = tmp_path / "deaf.py"
    silent_child.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(local_child, "__file__", str(silent_child))
    server = LocalServer(lambda _: None, start_seconds=0.1, close_seconds=0.1)
    with pytest.raises(ProviderError, match="the start took longer"):
        await server.wait_for_endpoint()
    assert server.pid is None


def test_only_the_text_of_messages_is_sent_to_the_model() -> None:
    request = Request(
        "the prompt of an agent",
        [
            UserMessage("1", "list the files", author="ann"),
            AssistantMessage("", (Call("c", "shell", '{"command": "ls"}'),)),
            CallResult("c", "shell", "a.txt", Effect.COMPLETED),
            AssistantMessage("There is a.txt."),
            Note("[interrupted]"),
            UserMessage("2", "thanks"),
        ],
        [ToolSpec("shell", "Runs a command.")],
    )
    short = shorten_request(request)
    assert short.messages == [
        UserMessage("1", "list the files"),
        AssistantMessage("There is a.txt."),
        UserMessage("", "[interrupted]"),
        UserMessage("2", "thanks"),
    ]
    assert (short.system, short.tools, short.max_tokens) == (SYSTEM_PROMPT, (), MAX_TOKENS)


def count_bytes(request: Request) -> int:
    texts = [message.text for message in request.messages]
    return sum(len(text.encode()) + MESSAGE_OVERHEAD_BYTES for text in texts)


@pytest.mark.parametrize("word", ["x", "\N{FOX FACE}", "木"])
def test_the_start_of_a_long_conversation_is_dropped_in_large_pieces(word: str) -> None:
    messages = [UserMessage(str(number), word * 50) for number in range(200)]
    first_ids: set[str] = set()
    for count in range(1, len(messages) + 1):
        short = shorten_request(Request("", messages[:count]))
        assert count_bytes(short) <= MAX_PROMPT_BYTES
        assert short.messages[-1] == messages[count - 1]
        first = short.messages[0]
        assert isinstance(first, UserMessage)
        first_ids.add(first.id)
    assert 1 < len(first_ids) < 20


@pytest.mark.parametrize("word", ["a", "木"])
def test_the_start_of_an_overlong_message_is_dropped(word: str) -> None:
    messages = [UserMessage("1", "before"), UserMessage("2", word * MAX_PROMPT_BYTES + "the end")]
    short = shorten_request(Request("", messages, max_tokens=5))
    (last,) = short.messages
    assert isinstance(last, UserMessage)
    assert MAX_PROMPT_BYTES - 4 <= count_bytes(short) <= MAX_PROMPT_BYTES
    assert last.text.startswith(word)
    assert last.text.endswith("the end")
    assert short.max_tokens == 5
