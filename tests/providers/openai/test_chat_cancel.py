"""Connections of cancelled streams are closed, and connections of complete replies are reused."""

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
from tests.providers.provider_fixture import REQUEST, collect_reply, open_chat_provider
from tests.waiting import at_most

DISCONNECT_LIMIT_SECONDS = at_most(0.05)


async def cancel_and_wait(task: "asyncio.Task[object]") -> float:
    """Cancel a task, wait until it has ended, and return the time of the cancellation."""
    cancelled_at = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - cancelled_at < DISCONNECT_LIMIT_SECONDS
    return cancelled_at


async def read_until_cancelled(provider: Provider, has_text: asyncio.Event) -> None:
    async with aclosing(provider.stream(REQUEST)) as stream:
        async for _ in stream:
            has_text.set()


@pytest.mark.parametrize("behaviour", [silent(), blackhole()])
async def test_a_cancel_before_the_first_token_reaches_the_server_immediately(behaviour: Behaviour) -> None:
    async with open_chat_provider(behaviour) as (provider, server):
        task = asyncio.create_task(collect_reply(provider))
        seen = await server.request(1)
        cancelled_at = await cancel_and_wait(task)
        await seen.disconnected.wait()
    assert seen.disconnected_at is not None
    assert seen.disconnected_at - cancelled_at < DISCONNECT_LIMIT_SECONDS


@pytest.mark.parametrize("behaviour", [hanging(1), tokens(100_000), tokens(100_000, rate=500)])
async def test_the_server_sees_a_cancel_during_the_stream_immediately(behaviour: Behaviour) -> None:
    has_text = asyncio.Event()
    async with open_chat_provider(behaviour) as (provider, server):
        task = asyncio.create_task(read_until_cancelled(provider, has_text))
        seen = await server.request(1)
        await has_text.wait()
        cancelled_at = await cancel_and_wait(task)
        await seen.disconnected.wait()
    assert seen.disconnected_at is not None
    assert seen.disconnected_at - cancelled_at < DISCONNECT_LIMIT_SECONDS


async def test_the_server_immediately_sees_a_stream_closed_between_two_chunks() -> None:
    async with open_chat_provider(hanging(5)) as (provider, server):
        stream = provider.stream(REQUEST)
        assert await anext(stream) == TextChunk("tok0 ")
        closed_at = time.perf_counter()
        await stream.aclose()
        seen = await server.request(1)
        await seen.disconnected.wait()
    assert seen.disconnected_at is not None
    assert seen.disconnected_at - closed_at < DISCONNECT_LIMIT_SECONDS


async def test_the_connection_of_a_cancelled_stream_is_never_reused() -> None:
    has_text = asyncio.Event()
    async with open_chat_provider(hanging(1), text(["next"])) as (provider, server):
        task = asyncio.create_task(read_until_cancelled(provider, has_text))
        await has_text.wait()
        await cancel_and_wait(task)
        assert (await collect_reply(provider)).text == "next"
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_the_connection_of_a_complete_reply_is_reused() -> None:
    async with open_chat_provider(text(["one"]), failing(503), text(["two"]), tokens(500)) as (provider, server):
        for _ in range(4):
            await collect_reply(provider)
    assert [seen.connection for seen in server.requests] == [1, 1, 1, 1]


async def test_the_connection_is_reused_when_the_reader_stops_at_the_end_chunk() -> None:
    async with open_chat_provider(text(["one"]), text(["two"])) as (provider, server):
        async with aclosing(provider.stream(REQUEST)) as stream:
            async for chunk in stream:
                if isinstance(chunk, EndChunk):
                    break
        await collect_reply(provider)
    assert [seen.connection for seen in server.requests] == [1, 1]


async def test_the_connection_is_reused_when_the_body_ends_shortly_after_the_done_event() -> None:
    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunked(b"data: [DONE]\n\n"))
        await asyncio.sleep(0.01)
        await exchange.send(b"0\r\n\r\n")

    async with open_chat_provider(play, text(["next"])) as (provider, server):
        await collect_reply(provider)
        await collect_reply(provider)
    assert [seen.connection for seen in server.requests] == [1, 1]


async def test_a_connection_kept_open_after_the_done_event_does_not_delay_the_reply() -> None:
    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_events(delta(content="all"))
        await exchange.send(chunked(b"data: [DONE]\n\n"))
        await asyncio.get_running_loop().create_future()

    async with open_chat_provider(play, text(["next"])) as (provider, server):
        assert (await collect_reply(provider)).text == "all"
        await (await server.request(1)).disconnected.wait()
        await collect_reply(provider)
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_an_error_during_the_stream_closes_the_connection() -> None:
    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunked(b"data: {nonsense\n\n"))
        await asyncio.get_running_loop().create_future()

    async with open_chat_provider(play) as (provider, server):
        assert (await collect_reply(provider)).error is not None
        await (await server.request(1)).disconnected.wait()


def open_listener(backlog: int) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
    listener.setblocking(False)
    return listener


def trace_connection(session: aiohttp.ClientSession, connecting: asyncio.Event, connected: asyncio.Event) -> None:
    """Set the events when the session starts to connect and when it is connected."""

    async def on_start(*_: object) -> None:
        connecting.set()

    async def on_end(*_: object) -> None:
        connected.set()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(on_start)
    trace.on_connection_create_end.append(on_end)
    trace.freeze()
    session.trace_configs.append(trace)


async def count_received_bytes(peer: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    size = 0
    try:
        while data := await loop.sock_recv(peer, 65536):
            size += len(data)
    except ConnectionResetError:
        pass
    return size


async def test_a_cancel_before_the_server_accepts_the_connection_closes_it() -> None:
    connecting, connected = asyncio.Event(), asyncio.Event()
    with open_listener(8) as listener:
        async with open_session() as session:
            trace_connection(session, connecting, connected)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            task = asyncio.create_task(collect_reply(OpenAIChat(session, Endpoint(url, "m"))))
            await connected.wait()
            await cancel_and_wait(task)
            peer, _ = await asyncio.get_running_loop().sock_accept(listener)
            with peer:
                async with asyncio.timeout(DISCONNECT_LIMIT_SECONDS):
                    await count_received_bytes(peer)


async def test_a_cancel_while_connecting_returns_immediately() -> None:
    connecting, connected = asyncio.Event(), asyncio.Event()
    with open_listener(0) as listener:
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:  # no connection is accepted, so the next one has to wait
            filler.setblocking(False)
            filler.connect_ex(address)
        async with open_session() as session:
            trace_connection(session, connecting, connected)
            url = f"http://127.0.0.1:{address[1]}/v1"
            task = asyncio.create_task(collect_reply(OpenAIChat(session, Endpoint(url, "m"))))
            await connecting.wait()
            await cancel_and_wait(task)
            assert not connected.is_set()
        for filler in fillers:
            filler.close()


def find_sockets_to(address: object) -> list[int]:
    """Return this process's sockets that are connected to the address."""
    return [int(entry.name) for entry in Path("/dev/fd").iterdir() if find_peer(int(entry.name)) == address]


def find_peer(fd: int) -> object:
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        with socket.socket(fileno=os.dup(fd)) as twin:
            return twin.getpeername()
    except OSError:  # closed meanwhile, or not connected
        return None


async def wait_until_closed(address: object) -> None:
    """Wait until this process has no connection to the address, with a short time limit."""
    async with asyncio.timeout(DISCONNECT_LIMIT_SECONDS):
        while find_sockets_to(address):  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(0)


async def wait_until_send_buffer_full(address: object) -> None:
    """Wait until the kernel accepts no more request data, so that the rest stays in the client.

    The kernel may report a full buffer slightly early, so the buffer must be full in 100 consecutive checks.
    """
    rounds = 0
    while rounds < 100:
        fds = find_sockets_to(address)
        rounds = rounds + 1 if fds and not select.select([], fds, [], 0)[1] else 0
        await asyncio.sleep(0)


async def test_cancelling_a_partially_sent_request_closes_the_connection() -> None:
    request = Request("", [UserMessage("1", "x" * 32 * 1024 * 1024)])
    loop = asyncio.get_running_loop()
    with open_listener(8) as listener:
        address = listener.getsockname()
        async with open_session() as session:
            url = f"http://127.0.0.1:{address[1]}/v1"
            task = asyncio.create_task(collect_reply(OpenAIChat(session, Endpoint(url, "m")), request))
            peer, _ = await loop.sock_accept(listener)
            with peer:
                await wait_until_send_buffer_full(address)
                await cancel_and_wait(task)
                await wait_until_closed(address)


async def test_a_response_to_a_partially_sent_request_closes_the_connection() -> None:
    request = Request("", [UserMessage("1", "x" * 32 * 1024 * 1024)])
    loop = asyncio.get_running_loop()
    with open_listener(8) as listener:
        address = listener.getsockname()
        async with open_session() as session:
            url = f"http://127.0.0.1:{address[1]}/v1"
            task = asyncio.create_task(collect_reply(OpenAIChat(session, Endpoint(url, "m")), request))
            peer, _ = await loop.sock_accept(listener)
            with peer:
                await wait_until_send_buffer_full(address)
                await loop.sock_sendall(peer, b"HTTP/1.1 413 X\r\nContent-Length: 8\r\n\r\ntoo long")
                collected = await task
                assert collected.error is not None
                assert collected.error.code == "context_too_long"
                await wait_until_closed(address)


async def test_many_streams_can_be_cancelled_at_once() -> None:
    count = 200
    async with open_chat_provider(*[hanging(1)] * count) as (provider, server):
        tasks = [asyncio.create_task(collect_reply(provider)) for _ in range(count)]
        await server.request(count)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        for seen in server.requests:
            await seen.disconnected.wait()


async def test_chunks_of_concurrent_streams_are_not_mixed_up() -> None:
    async def collect_chunks(prompt: str, provider: Provider) -> list[Chunk]:
        return [chunk async for chunk in provider.stream(Request("", [UserMessage("1", prompt)]))]

    async def echo(exchange: Exchange) -> None:
        word: str = exchange.request.body["messages"][-1]["content"]
        await text([word] * 20)(exchange)

    async with open_chat_provider(*[echo] * 20) as (provider, _):
        replies = await asyncio.gather(*(collect_chunks(f"word{number}", provider) for number in range(20)))
    for number, reply in enumerate(replies):
        assert [chunk for chunk in reply if isinstance(chunk, TextChunk)] == [TextChunk(f"word{number}")] * 20
