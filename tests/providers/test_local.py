"""The embedded model itself: it answers, a cut stops it, it never outlives its parent, and says what is missing."""

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
from hark.providers.local import child as local_child
from hark.providers.local import server as local_server
from hark.providers.local.provider import FRAME_BYTES, HONEST, MAX_BYTES, MAX_TOKENS, SYSTEM, LocalModel, shortened
from hark.providers.local.server import LocalServer, find_weights
from tests.waiting import at_most, until

HELLO = Request("a long system prompt", [UserMessage("1", "hello")], [ToolSpec("shell", "Runs a command.")], 12)
STORY = Request("", [UserMessage("1", "Tell me a very long story about a fox, a bear and a river.")])
ENDS_SECONDS = at_most(5.0)
STOPS_SECONDS = at_most(1.5)
IDLE_SECONDS = 0.3

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@asynccontextmanager
async def opened() -> AsyncGenerator[tuple[LocalModel, list[str]]]:
    notices: list[str] = []
    async with open_session() as session:
        model = LocalModel(session, notices.append)
        try:
            yield model, notices
        finally:
            await model.close()


async def said(model: LocalModel, request: Request = HELLO) -> str:
    chunks = [chunk async for chunk in model.stream(request)]
    assert isinstance(chunks[-1], EndChunk)
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


async def ended(pid: int) -> None:
    """Wait for the end of a process that need not be our child."""
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    handle = os.pidfd_open(pid)
    loop.add_reader(handle, is_over.set)
    try:
        async with asyncio.timeout(ENDS_SECONDS):
            await is_over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def busy_seconds(model: LocalModel) -> float:
    """Return how long the model still works from now on; it may be a little less."""
    assert model.server.pid is not None
    start = changed = time.perf_counter()
    used = cpu_seconds(model.server.pid)
    while (now := time.perf_counter()) - changed < IDLE_SECONDS and now - start < ENDS_SECONDS:
        await asyncio.sleep(0.02)
        if (later := cpu_seconds(model.server.pid)) != used:
            used, changed = later, time.perf_counter()
    return changed - start


async def test_it_answers_and_says_once_what_it_is() -> None:
    async with opened() as (model, notices):
        assert len(await said(model)) > 2
        chunks = [chunk async for chunk in model.stream(HELLO)]
        pid = model.server.pid
    usage = [chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)]
    assert 10 < usage[0].input_tokens < 60  # neither tools nor the system prompt went in
    assert [notice.partition(" (")[0] for notice in notices[:2]] == [
        "Starting the embedded model",
        "The embedded model is ready",
    ]
    assert notices[2:] == [HONEST]
    assert "hark setup" in HONEST
    assert pid is not None
    assert model.server.pid is None


async def test_requests_that_come_together_start_one_model() -> None:
    async with opened() as (model, notices):
        answers = await asyncio.gather(said(model), said(model))
    assert all(answers)
    assert sum(notice.startswith("Starting") for notice in notices) == 1


@on_linux
async def test_a_cut_stops_the_generation() -> None:
    async with opened() as (model, _):
        async with aclosing(model.stream(STORY)) as chunks:
            async for _chunk in chunks:
                break
        assert await busy_seconds(model) < STOPS_SECONDS
        assert await said(model)


@on_linux
async def test_a_cut_stops_the_reading_of_a_long_prompt() -> None:
    prompt = "The quick brown fox jumps over the lazy dog and runs. " * 80  # it reads it for some ten seconds
    async with opened() as (model, _):
        pid = (await model.server.endpoint()) and model.server.pid
        assert pid is not None
        before = cpu_seconds(pid)
        reading = asyncio.create_task(said(model, Request("", [UserMessage("1", prompt)])))
        await until(lambda: cpu_seconds(pid) - before > 0.3)
        assert not reading.done()
        reading.cancel()
        assert await busy_seconds(model) < STOPS_SECONDS
        assert await said(model)


async def test_a_cancel_while_it_starts_comes_through_at_once() -> None:
    async with opened() as (model, _):
        waiting = asyncio.create_task(said(model))
        await until(lambda: model.server.pid is not None)
        at = time.perf_counter()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert time.perf_counter() - at < at_most(0.05)
        assert await said(model)  # the start went on


async def test_a_close_while_it_starts_leaves_nothing_behind() -> None:
    async with opened() as (model, _):
        model.server.start()
        await until(lambda: model.server.pid is not None)
        pid = model.server.pid
        assert pid is not None
        await model.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(ProviderError, match="about to end"):
            await said(model)


@on_linux
async def test_one_that_died_is_started_again_by_the_next_request() -> None:
    async with opened() as (model, _):
        await model.server.endpoint()
        first = model.server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: model.server.pid is None)
        assert await said(model)
        assert model.server.pid != first


PARENT = """
import asyncio
from hark.providers.local.server import LocalServer

async def main():
    server = LocalServer(lambda text: None)
    await server.endpoint()
    print(server.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@on_linux
async def test_it_dies_with_its_parent_even_when_that_is_killed() -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert os.getsid(pid) == pid  # so that Ctrl-C at the terminal is for the parent alone
    parent.kill()
    await ended(pid)
    await parent.wait()


async def test_it_ends_when_its_input_does() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", local_child.__file__, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    order = local_child.ModelServerRequest(model=str(find_weights()), key="k" * 20, threads=1)
    child.stdin.write(msgspec.json.encode(order) + b"\n")
    address = msgspec.json.decode(await child.stdout.readline())["address"]
    async with aiohttp.ClientSession() as session, session.get(f"{address}/v1/models") as response:
        assert response.status == 401  # nobody else on this machine has the key
    assert address.startswith("http://127.0.0.1:")
    child.stdin.close()
    async with asyncio.timeout(ENDS_SECONDS):
        assert await child.wait() == 0


async def test_what_is_not_installed_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    async with opened() as (model, _):
        with pytest.raises(ProviderError, match="pip install xllamacpp") as caught:
            await said(model)
    assert caught.value.code == "local_missing"


@on_linux
async def test_a_missing_system_library_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "libgomp.so.1").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    async with opened() as (model, _):
        with pytest.raises(ProviderError, match=r"libgomp\.so\.1.*apt-get install libgomp1") as caught:
            await said(model)
    assert caught.value.code == "local_library"
    assert model.server.pid is None


async def test_weights_that_can_not_be_read_are_an_error_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    monkeypatch.setattr(local_server, "find_weights", lambda: broken)
    async with opened() as (model, _):
        with pytest.raises(ProviderError, match=r"can't be started: .*hark setup") as caught:
            await said(model)
    assert caught.value.code == "local_failed"


async def test_a_child_that_ends_before_it_answers_is_an_error_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mute = tmp_path / "mute.py"
    mute.write_text("raise SystemExit(7)")
    monkeypatch.setattr(local_child, "__file__", str(mute))
    server = LocalServer(lambda _: None)
    with pytest.raises(ProviderError, match="its process ended with exit code 7"):
        await server.endpoint()
    await server.close()


async def test_a_child_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deaf = tmp_path / "deaf.py"
    deaf.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(local_child, "__file__", str(deaf))
    server = LocalServer(lambda _: None, start_seconds=0.1, close_seconds=0.1)
    with pytest.raises(ProviderError, match="it took longer"):
        await server.endpoint()
    assert server.pid is None


def test_only_what_was_said_reaches_the_model() -> None:
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
    short = shortened(request)
    assert short.messages == [
        UserMessage("1", "list the files"),
        AssistantMessage("There is a.txt."),
        UserMessage("", "[interrupted]"),
        UserMessage("2", "thanks"),
    ]
    assert (short.system, short.tools, short.max_tokens) == (SYSTEM, (), MAX_TOKENS)


def size(request: Request) -> int:
    texts = [message.text for message in request.messages]
    return sum(len(text.encode()) + FRAME_BYTES for text in texts)


@pytest.mark.parametrize("word", ["x", "\N{FOX FACE}", "木"])
def test_a_long_conversation_loses_its_beginning_in_large_steps(word: str) -> None:
    lines = [UserMessage(str(number), word * 50) for number in range(200)]
    firsts: set[str] = set()
    for count in range(1, len(lines) + 1):
        short = shortened(Request("", lines[:count]))
        assert size(short) <= MAX_BYTES
        assert short.messages[-1] == lines[count - 1]
        first = short.messages[0]
        assert isinstance(first, UserMessage)
        firsts.add(first.id)
    assert 1 < len(firsts) < 20


@pytest.mark.parametrize("word", ["a", "木"])
def test_one_message_that_is_too_long_keeps_its_end(word: str) -> None:
    lines = [UserMessage("1", "before"), UserMessage("2", word * MAX_BYTES + "the end")]
    short = shortened(Request("", lines, max_tokens=5))
    (last,) = short.messages
    assert isinstance(last, UserMessage)
    assert MAX_BYTES - 4 <= size(short) <= MAX_BYTES
    assert last.text.startswith(word)
    assert last.text.endswith("the end")
    assert short.max_tokens == 5
