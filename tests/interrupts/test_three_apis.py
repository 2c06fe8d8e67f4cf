"""End-to-end tests for the three APIs with strict servers: interrupts at every chunk, lost connections and stalls."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hark.protocol.events import Notice, ReplyRestarted, RouteChanged, TurnEnd
from hark.protocol.messages import AssistantMessage
from hark.protocol.outcomes import Completed, Interrupted
from tests.fakes.models.behaviours import (
    Behaviour,
    Exchange,
    blackhole,
    chunked,
    dropped,
    hanging,
    silent,
    text,
    thinking,
    thinking_chunks,
    token,
)
from tests.interrupts.agents import Conversation, LookTool, ParserMonitor, each_provider, open_conversation
from tests.waiting import at_most

InterruptKind = Callable[[Conversation], Awaitable[None]]

SETTLE_MS = 1000 * at_most(0.05)
DISCONNECT_SECONDS = at_most(1.0)
CHUNKS = thinking_chunks(2)


async def stop(conversation: Conversation) -> None:
    settled = await conversation.session.interrupt()
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert settled.timings.settle < SETTLE_MS
    await conversation.session.say("and now?")


async def send_interrupting_message(conversation: Conversation) -> None:
    await conversation.session.say("and now?")


def check_quiet(conversation: Conversation) -> None:
    """Check that no request was retried, no other route was used, and no notice was shown."""
    assert conversation.second_server.requests == []
    assert conversation.events_of(Notice) == []
    assert conversation.events_of(RouteChanged) == []
    assert conversation.events_of(ReplyRestarted) == []


@each_provider
@pytest.mark.parametrize("kind", [stop, send_interrupting_message])
async def test_an_interrupt_at_every_chunk_leaves_a_history_that_the_strict_server_accepts(
    provider: str, kind: InterruptKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = ParserMonitor(monkeypatch)
    script: list[Behaviour] = []
    for count in range(len(CHUNKS)):
        script += [monitor.send_then_hang(thinking_chunks(2)[:count]), text(["now."])]
    async with open_conversation(tmp_path, provider, script) as talk:
        for count in range(len(CHUNKS)):
            await talk.session.say(f"go {count}")
            await monitor.wait_until_parsed()
            await kind(talk)
            assert await talk.session.idle() == Completed("now."), f"after an interrupt after chunk {count}"
            assert len(talk.server.requests) == 2 * count + 2
            async with asyncio.timeout(DISCONNECT_SECONDS):
                await talk.server.requests[2 * count].disconnected.wait()
        check_quiet(talk)
        interrupted_turns = [end for end in talk.events_of(TurnEnd) if isinstance(end.outcome, Interrupted)]
        assert len(interrupted_turns) == len(CHUNKS)
        assert max(end.timings.settle for end in interrupted_turns) < SETTLE_MS
        partials = [one.text for one in await talk.session.transcript() if isinstance(one, AssistantMessage)]
        assert partials.count("I will ") == 1
        assert partials.count("I will look. ") >= 8


@each_provider
async def test_an_interrupt_during_parallel_calls_leaves_a_history_that_the_strict_server_accepts(
    provider: str, tmp_path: Path
) -> None:
    look = LookTool(hangs=True)
    async with open_conversation(tmp_path, provider, [thinking(2), text(["now."])], look_tool=look) as talk:
        await talk.session.say("go")
        await look.started.wait()
        settled = await talk.session.interrupt()
        assert settled is not None
        assert settled.timings.settle < 4 * SETTLE_MS
        assert await talk.ask("and now?") == Completed("now.")
        check_quiet(talk)


@each_provider
async def test_reasoning_text_and_parallel_calls_are_sent_back_with_the_next_request(
    provider: str, tmp_path: Path
) -> None:
    async with open_conversation(tmp_path, provider, [thinking(2), thinking(2), text(["done."])]) as talk:
        assert await talk.ask("go") == Completed("done.")
        assert len(talk.server.requests) == 3
        bodies = [str(seen.body) for seen in talk.server.requests]
        assert bodies[2].count("signature") == (0 if provider == "openai" else bodies[1].count("signature") * 2)
        check_quiet(talk)


@each_provider
@pytest.mark.parametrize("behaviour", [blackhole(), silent(), hanging(3)], ids=["no response", "headers only", "text"])
async def test_a_stopped_request_is_closed_once_and_the_next_turn_succeeds_immediately(
    provider: str, behaviour: Behaviour, tmp_path: Path
) -> None:
    async with open_conversation(tmp_path, provider, [behaviour, text(["right."])]) as talk:
        await talk.session.say("go")
        seen = await talk.server.request(1)
        await stop(talk)
        async with asyncio.timeout(DISCONNECT_SECONDS):
            await seen.disconnected.wait()
        assert await talk.session.idle() == Completed("right.")
        assert len(talk.server.requests) == 2
        check_quiet(talk)


@each_provider
@pytest.mark.parametrize("count", [0, 3], ids=["before text", "after text"])
@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
async def test_a_dropped_connection_is_retried_and_its_text_is_not_duplicated(
    provider: str, count: int, is_reset: bool, tmp_path: Path
) -> None:
    async with open_conversation(tmp_path, provider, [dropped(count, is_reset), text(["tok0 ", "and all."])]) as talk:
        assert await talk.ask("go") == Completed("tok0 and all.")
        assert len(talk.server.requests) == 2
        assert talk.server.requests[0].body == talk.server.requests[1].body
        assert talk.visible_reply == "tok0 and all."
        if not is_reset:  # a reset may discard the text before it
            assert len(talk.events_of(ReplyRestarted)) == (1 if count else 0)
        assert [event.code for event in talk.events_of(Notice)] == ["retry"]
        assert talk.second_server.requests == []
        replies = [one for one in await talk.session.transcript() if isinstance(one, AssistantMessage)]
        assert [one.text for one in replies] == ["tok0 and all."]


@each_provider
@pytest.mark.parametrize("behaviour", [blackhole(), silent()], ids=["no response", "headers only"])
async def test_a_connection_that_receives_no_first_byte_is_closed_and_retried_once_with_a_notice(
    provider: str, behaviour: Behaviour, tmp_path: Path
) -> None:
    script = [behaviour, text(["here."])]
    async with open_conversation(tmp_path, provider, script, first_byte_seconds=1.0) as talk:
        assert await talk.ask("go") == Completed("here.")
        first, again = talk.server.requests
        assert first.disconnected_at is not None
        assert first.disconnected_at < again.arrived_at
        assert first.body == again.body
        assert [event.code for event in talk.events_of(Notice)] == ["silence", "retry"]
        assert talk.second_server.requests == []


@each_provider
async def test_a_stream_that_stalls_is_closed_and_restarted(provider: str, tmp_path: Path) -> None:
    async with open_conversation(tmp_path, provider, [hanging(2), text(["here."])], idle_seconds=1.0) as talk:
        assert await talk.ask("go") == Completed("here.")
        assert len(talk.server.requests) == 2
        assert talk.server.requests[0].disconnected.is_set()
        assert talk.visible_reply == "here."
        assert len(talk.events_of(ReplyRestarted)) == 1


@each_provider
async def test_keep_alive_comments_reset_the_stall_timeouts(provider: str, tmp_path: Path) -> None:
    async def send_comments(exchange: Exchange) -> None:
        await exchange.begin()
        for _ in range(10):  # longer than the timeouts
            await exchange.send(chunked(b": keep-alive\n\n"))
            await asyncio.sleep(0.2)
        await exchange.send_chunks(token(0))
        exchange.drop()

    script = [send_comments, text(["here."])]
    async with open_conversation(tmp_path, provider, script, first_byte_seconds=1.5, idle_seconds=1.5) as talk:
        await talk.session.say("go")
        await talk.until(lambda: talk.visible_reply == "tok0 ")
        assert len(talk.server.requests) == 1
        assert talk.events_of(Notice) == []
        assert await talk.session.idle() == Completed("here.")


@each_provider
async def test_only_a_completed_request_returns_its_connection_to_the_pool(provider: str, tmp_path: Path) -> None:
    async with open_conversation(tmp_path, provider, [text(["a"]), text(["b"]), hanging(1), text(["c"])]) as talk:
        await talk.ask("one")
        await talk.ask("two")
        await talk.session.say("three")
        await talk.until(lambda: talk.visible_reply.endswith("tok0 "))
        await stop(talk)
        await talk.session.idle()
        connections = [seen.connection for seen in talk.server.requests]
        assert connections == [1, 1, 1, 2]
