"""The three APIs, end to end on strict servers: cut at every chunk, dropped for real, silent for too long."""

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
from tests.interrupts.agents import Conversation, Ear, Look, conversing, each_provider
from tests.waiting import at_most

Kind = Callable[[Conversation], Awaitable[None]]

SETTLE_MS = 1000 * at_most(0.05)
LEFT_SECONDS = at_most(1.0)
CHUNKS = thinking_chunks(2)


async def stop(talk: Conversation) -> None:
    settled = await talk.session.interrupt()
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert settled.timings.settle < SETTLE_MS
    await talk.session.say("and now?")


async def redirect(talk: Conversation) -> None:
    await talk.session.say("and now?")


def check_quiet(talk: Conversation) -> None:
    """Nothing was tried again, elsewhere, or talked about."""
    assert talk.second.requests == []
    assert talk.all(Notice) == []
    assert talk.all(RouteChanged) == []
    assert talk.all(ReplyRestarted) == []


@each_provider
@pytest.mark.parametrize("kind", [stop, redirect])
async def test_a_cut_at_every_chunk_leaves_a_history_that_the_strict_server_takes(
    provider: str, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ear = Ear(monkeypatch)
    script: list[Behaviour] = []
    for count in range(len(CHUNKS)):
        script += [ear.then_hang(thinking_chunks(2)[:count]), text(["now."])]
    async with conversing(tmp_path, provider, script) as talk:
        for count in range(len(CHUNKS)):
            await talk.session.say(f"go {count}")
            await ear.heard_all()
            await kind(talk)
            assert await talk.session.idle() == Completed("now."), f"after a cut behind chunk {count}"
            assert len(talk.server.requests) == 2 * count + 2
            async with asyncio.timeout(LEFT_SECONDS):
                await talk.server.requests[2 * count].left.wait()
        check_quiet(talk)
        cuts = [end for end in talk.all(TurnEnd) if isinstance(end.outcome, Interrupted)]
        assert len(cuts) == len(CHUNKS)
        assert max(end.timings.settle for end in cuts) < SETTLE_MS
        partials = [one.text for one in await talk.session.transcript() if isinstance(one, AssistantMessage)]
        assert partials.count("I will ") == 1
        assert partials.count("I will look. ") >= 8


@each_provider
async def test_a_cut_while_both_calls_run_leaves_a_history_that_the_strict_server_takes(
    provider: str, tmp_path: Path
) -> None:
    look = Look(hangs=True)
    async with conversing(tmp_path, provider, [thinking(2), text(["now."])], look=look) as talk:
        await talk.session.say("go")
        await look.started.wait()
        settled = await talk.session.interrupt()
        assert settled is not None
        assert settled.timings.settle < 4 * SETTLE_MS
        assert await talk.ask("and now?") == Completed("now.")
        check_quiet(talk)


@each_provider
async def test_thinking_text_and_parallel_calls_go_there_and_back_whole(provider: str, tmp_path: Path) -> None:
    async with conversing(tmp_path, provider, [thinking(2), thinking(2), text(["done."])]) as talk:
        assert await talk.ask("go") == Completed("done.")
        assert len(talk.server.requests) == 3
        bodies = [str(seen.body) for seen in talk.server.requests]
        assert bodies[2].count("signature") == (0 if provider == "openai" else bodies[1].count("signature") * 2)
        check_quiet(talk)


@each_provider
@pytest.mark.parametrize("behaviour", [blackhole(), silent(), hanging(3)], ids=["nothing", "headers", "text"])
async def test_a_stop_is_one_request_one_close_and_a_next_turn_that_is_right_at_once(
    provider: str, behaviour: Behaviour, tmp_path: Path
) -> None:
    async with conversing(tmp_path, provider, [behaviour, text(["right."])]) as talk:
        await talk.session.say("go")
        seen = await talk.server.request(1)
        await stop(talk)
        async with asyncio.timeout(LEFT_SECONDS):
            await seen.left.wait()
        assert await talk.session.idle() == Completed("right.")
        assert len(talk.server.requests) == 2
        check_quiet(talk)


@each_provider
@pytest.mark.parametrize("count", [0, 3], ids=["before text", "after text"])
@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
async def test_a_genuine_drop_is_tried_again_and_its_text_is_not_doubled(
    provider: str, count: int, is_reset: bool, tmp_path: Path
) -> None:
    async with conversing(tmp_path, provider, [dropped(count, is_reset), text(["tok0 ", "and all."])]) as talk:
        assert await talk.ask("go") == Completed("tok0 and all.")
        assert len(talk.server.requests) == 2
        assert talk.server.requests[0].body == talk.server.requests[1].body
        assert talk.shown == "tok0 and all."
        if not is_reset:  # a reset may overtake the text before it
            assert len(talk.all(ReplyRestarted)) == (1 if count else 0)
        assert [event.code for event in talk.all(Notice)] == ["retry"]
        assert talk.second.requests == []
        replies = [one for one in await talk.session.transcript() if isinstance(one, AssistantMessage)]
        assert [one.text for one in replies] == ["tok0 and all."]


@each_provider
@pytest.mark.parametrize("behaviour", [blackhole(), silent()], ids=["nothing", "headers"])
async def test_a_stale_connection_is_told_closed_and_asked_for_exactly_once(
    provider: str, behaviour: Behaviour, tmp_path: Path
) -> None:
    script = [behaviour, text(["here."])]
    async with conversing(tmp_path, provider, script, first_byte_seconds=1.0) as talk:
        assert await talk.ask("go") == Completed("here.")
        first, again = talk.server.requests
        assert first.left_at is not None
        assert first.left_at < again.arrived
        assert first.body == again.body
        assert [event.code for event in talk.all(Notice)] == ["silence", "retry"]
        assert talk.second.requests == []


@each_provider
async def test_a_stream_that_falls_silent_is_closed_and_begins_anew(provider: str, tmp_path: Path) -> None:
    async with conversing(tmp_path, provider, [hanging(2), text(["here."])], idle_seconds=1.0) as talk:
        assert await talk.ask("go") == Completed("here.")
        assert len(talk.server.requests) == 2
        assert talk.server.requests[0].left.is_set()
        assert talk.shown == "here."
        assert len(talk.all(ReplyRestarted)) == 1


@each_provider
async def test_comments_that_keep_a_connection_open_are_signs_of_life(provider: str, tmp_path: Path) -> None:
    async def commenting(exchange: Exchange) -> None:
        await exchange.begin()
        for _ in range(10):  # for longer than a silence may be
            await exchange.send(chunked(b": keep-alive\n\n"))
            await asyncio.sleep(0.2)
        await exchange.say(token(0))
        exchange.drop()

    script = [commenting, text(["here."])]
    async with conversing(tmp_path, provider, script, first_byte_seconds=1.5, idle_seconds=1.5) as talk:
        await talk.session.say("go")
        await talk.until(lambda: talk.shown == "tok0 ")
        assert len(talk.server.requests) == 1
        assert talk.all(Notice) == []
        assert await talk.session.idle() == Completed("here.")


@each_provider
async def test_finished_requests_leave_their_connection_to_the_next_and_a_cut_one_does_not(
    provider: str, tmp_path: Path
) -> None:
    async with conversing(tmp_path, provider, [text(["a"]), text(["b"]), hanging(1), text(["c"])]) as talk:
        await talk.ask("one")
        await talk.ask("two")
        await talk.session.say("three")
        await talk.until(lambda: talk.shown.endswith("tok0 "))
        await stop(talk)
        await talk.session.idle()
        connections = [seen.connection for seen in talk.server.requests]
        assert connections == [1, 1, 1, 2]
