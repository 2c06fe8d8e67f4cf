"""What a cut does to the connection, and what a finished reply leaves of it."""

import asyncio
import os
import select
import socket
import stat
import time
from contextlib import aclosing
from pathlib import Path

import aiohttp
import pytest

from hark.protocol.messages import UserMessage
from hark.protocol.provider import Chunk, EndChunk, Provider, Request, TextChunk
from hark.providers.connections import open_session
from hark.providers.endpoint import Endpoint
from hark.providers.openai.chat import OpenAIChat
from tests.fakes.models.behaviours import (
    Behaviour,
    Exchange,
    blackhole,
    chunked,
    delta,
    failing,
    hanging,
    silent,
    text,
    tokens,
)
from tests.providers.provider_fixture import REQUEST, chat, hear
from tests.waiting import at_most

SEEN_WITHIN_SECONDS = at_most(0.05)


async def cancelled(task: "asyncio.Task[object]") -> float:
    """Cancel it, wait for its end, and return when the cancel was made."""
    at = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - at < SEEN_WITHIN_SECONDS
    return at


async def first_text(provider: Provider, reached: asyncio.Event) -> None:
    async with aclosing(provider.stream(REQUEST)) as stream:
        async for _ in stream:
            reached.set()


@pytest.mark.parametrize("behaviour", [silent(), blackhole()])
async def test_a_cancel_before_the_first_token_is_seen_by_the_server_at_once(behaviour: Behaviour) -> None:
    async with chat(behaviour) as (provider, server):
        task = asyncio.create_task(hear(provider))
        seen = await server.request(1)
        at = await cancelled(task)
        await seen.left.wait()
    assert seen.left_at is not None
    assert seen.left_at - at < SEEN_WITHIN_SECONDS


@pytest.mark.parametrize("behaviour", [hanging(1), tokens(100_000), tokens(100_000, rate=500)])
async def test_a_cancel_in_mid_stream_is_seen_by_the_server_at_once(behaviour: Behaviour) -> None:
    reached = asyncio.Event()
    async with chat(behaviour) as (provider, server):
        task = asyncio.create_task(first_text(provider, reached))
        seen = await server.request(1)
        await reached.wait()
        at = await cancelled(task)
        await seen.left.wait()
    assert seen.left_at is not None
    assert seen.left_at - at < SEEN_WITHIN_SECONDS


async def test_closing_the_stream_between_two_chunks_is_seen_by_the_server_at_once() -> None:
    async with chat(hanging(5)) as (provider, server):
        stream = provider.stream(REQUEST)
        assert await anext(stream) == TextChunk("tok0 ")
        at = time.perf_counter()
        await stream.aclose()
        seen = await server.request(1)
        await seen.left.wait()
    assert seen.left_at is not None
    assert seen.left_at - at < SEEN_WITHIN_SECONDS


async def test_a_cut_connection_is_never_used_again() -> None:
    reached = asyncio.Event()
    async with chat(hanging(1), text(["next"])) as (provider, server):
        task = asyncio.create_task(first_text(provider, reached))
        await reached.wait()
        await cancelled(task)
        assert (await hear(provider)).text == "next"
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_the_connection_of_a_finished_reply_is_used_again() -> None:
    async with chat(text(["one"]), failing(503), text(["two"]), tokens(500)) as (provider, server):
        for _ in range(4):
            await hear(provider)
    assert [seen.connection for seen in server.requests] == [1, 1, 1, 1]


async def test_a_reader_that_leaves_at_the_end_chunk_keeps_the_connection_usable() -> None:
    async with chat(text(["one"]), text(["two"])) as (provider, server):
        async with aclosing(provider.stream(REQUEST)) as stream:
            async for chunk in stream:
                if isinstance(chunk, EndChunk):
                    break
        await hear(provider)
    assert [seen.connection for seen in server.requests] == [1, 1]


async def test_a_body_that_ends_a_moment_after_done_keeps_the_connection_usable() -> None:
    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunked(b"data: [DONE]\n\n"))
        await asyncio.sleep(0.01)
        await exchange.send(b"0\r\n\r\n")

    async with chat(play, text(["next"])) as (provider, server):
        await hear(provider)
        await hear(provider)
    assert [seen.connection for seen in server.requests] == [1, 1]


async def test_a_server_that_says_done_and_holds_the_connection_does_not_hold_the_reply() -> None:
    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.events(delta(content="all"))
        await exchange.send(chunked(b"data: [DONE]\n\n"))
        await asyncio.get_running_loop().create_future()

    async with chat(play, text(["next"])) as (provider, server):
        assert (await hear(provider)).text == "all"
        await (await server.request(1)).left.wait()
        await hear(provider)
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_an_error_in_mid_stream_closes_the_connection() -> None:
    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunked(b"data: {nonsense\n\n"))
        await asyncio.get_running_loop().create_future()

    async with chat(play) as (provider, server):
        assert (await hear(provider)).error is not None
        await (await server.request(1)).left.wait()


def listening(backlog: int) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
    listener.setblocking(False)
    return listener


def watched(session: aiohttp.ClientSession, began: asyncio.Event, made: asyncio.Event) -> None:
    """Tell when the session begins to connect and when it is connected."""

    async def begin(*_: object) -> None:
        began.set()

    async def make(*_: object) -> None:
        made.set()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(begin)
    trace.on_connection_create_end.append(make)
    trace.freeze()
    session.trace_configs.append(trace)


async def read_all(peer: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    size = 0
    try:
        while data := await loop.sock_recv(peer, 65536):
            size += len(data)
    except ConnectionResetError:
        pass
    return size


async def test_a_cancel_while_the_server_has_not_accepted_yet_leaves_nothing_open() -> None:
    began, made = asyncio.Event(), asyncio.Event()
    with listening(8) as listener:
        async with open_session() as session:
            watched(session, began, made)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            task = asyncio.create_task(hear(OpenAIChat(session, Endpoint(url, "m"))))
            await made.wait()
            await cancelled(task)
            peer, _ = await asyncio.get_running_loop().sock_accept(listener)
            with peer:
                async with asyncio.timeout(SEEN_WITHIN_SECONDS):
                    await read_all(peer)


async def test_a_cancel_while_the_connection_is_being_made_ends_at_once() -> None:
    began, made = asyncio.Event(), asyncio.Event()
    with listening(0) as listener:
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:  # nobody accepts, so that the next one waits
            filler.setblocking(False)
            filler.connect_ex(address)
        async with open_session() as session:
            watched(session, began, made)
            url = f"http://127.0.0.1:{address[1]}/v1"
            task = asyncio.create_task(hear(OpenAIChat(session, Endpoint(url, "m"))))
            await began.wait()
            await cancelled(task)
            assert not made.is_set()
        for filler in fillers:
            filler.close()


def sockets_to(address: object) -> list[int]:
    """Return this process's sockets that are connected to the address."""
    return [int(entry.name) for entry in Path("/dev/fd").iterdir() if peer_of(int(entry.name)) == address]


def peer_of(fd: int) -> object:
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        with socket.socket(fileno=os.dup(fd)) as twin:
            return twin.getpeername()
    except OSError:  # closed meanwhile, or not connected
        return None


async def closed(address: object) -> None:
    """Wait, not long, until nothing here is connected to the address."""
    async with asyncio.timeout(SEEN_WITHIN_SECONDS):
        while sockets_to(address):  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(0)


async def stuck(address: object) -> None:
    """Wait until the kernel takes no more of a request to the address, so that the rest waits in the client.

    The kernel says so a little early: it must hold for as many rounds as the client needs to fill what is left.
    """
    rounds = 0
    while rounds < 100:
        fds = sockets_to(address)
        rounds = rounds + 1 if fds and not select.select([], fds, [], 0)[1] else 0
        await asyncio.sleep(0)


async def test_what_was_not_sent_yet_is_dropped_with_the_connection() -> None:
    request = Request("", [UserMessage("1", "x" * 32 * 1024 * 1024)])
    loop = asyncio.get_running_loop()
    with listening(8) as listener:
        address = listener.getsockname()
        async with open_session() as session:
            url = f"http://127.0.0.1:{address[1]}/v1"
            task = asyncio.create_task(hear(OpenAIChat(session, Endpoint(url, "m")), request))
            peer, _ = await loop.sock_accept(listener)
            with peer:
                await stuck(address)
                await cancelled(task)
                await closed(address)


async def test_an_answer_to_half_a_request_leaves_nothing_open() -> None:
    request = Request("", [UserMessage("1", "x" * 32 * 1024 * 1024)])
    loop = asyncio.get_running_loop()
    with listening(8) as listener:
        address = listener.getsockname()
        async with open_session() as session:
            url = f"http://127.0.0.1:{address[1]}/v1"
            task = asyncio.create_task(hear(OpenAIChat(session, Endpoint(url, "m")), request))
            peer, _ = await loop.sock_accept(listener)
            with peer:
                await stuck(address)
                await loop.sock_sendall(peer, b"HTTP/1.1 413 X\r\nContent-Length: 8\r\n\r\ntoo long")
                heard = await task
                assert heard.error is not None
                assert heard.error.code == "context_too_long"
                await closed(address)


async def test_many_streams_can_be_cut_together() -> None:
    count = 200
    async with chat(*[hanging(1)] * count) as (provider, server):
        tasks = [asyncio.create_task(hear(provider)) for _ in range(count)]
        await server.request(count)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        for seen in server.requests:
            await seen.left.wait()


async def test_streams_at_the_same_time_do_not_mix() -> None:
    async def one(word: str, provider: Provider) -> list[Chunk]:
        return [chunk async for chunk in provider.stream(Request("", [UserMessage("1", word)]))]

    async def echo(exchange: Exchange) -> None:
        word: str = exchange.seen.body["messages"][-1]["content"]
        await text([word] * 20)(exchange)

    async with chat(*[echo] * 20) as (provider, _):
        replies = await asyncio.gather(*(one(f"word{number}", provider) for number in range(20)))
    for number, reply in enumerate(replies):
        assert [chunk for chunk in reply if isinstance(chunk, TextChunk)] == [TextChunk(f"word{number}")] * 20
