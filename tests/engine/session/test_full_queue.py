"""A queue has a maximum size. A message beyond it is refused with a receipt, and never dropped."""

import asyncio
from pathlib import Path

import hark
from hark.engine.session.queue_rule import why_full
from hark.protocol.messages import Attachment, UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.rules import Limits
from hark.providers.scripted import Hang, ScriptedProvider


async def test_messages_beyond_the_limit_are_refused_and_all_others_run(tmp_path: Path) -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], *([f"r{number}"] for number in range(6))])
    async with hark.open(home=tmp_path, routes=[{"provider": provider}], limits={"queue_messages": 5}) as agent:
        session = agent.session("demo")
        await session.say("first")
        await hang.reached.wait()
        receipts = await asyncio.gather(*(session.say(f"m{number}", "queue", id=f"id{number}") for number in range(20)))
        assert [receipt.state for receipt in receipts] == ["queued"] * 5 + ["refused"] * 15
        assert receipts[-1].reason == "The queue is full (5 messages). Withdraw some, or send it again later."
        assert (await session.say("m0", "queue", id="id0")).state == "duplicate"
        assert (await session.say("no", "interrupt", id="n")).state == "refused"
        assert not hang.closed.is_set()
        await session.withdraw("id0")
        assert (await session.say("m19", "queue", id="id19")).state == "queued"  # the same id, once there is space
        await session.interrupt()
        await session.say("/queue 1 drop")
        await session.say("last", "queue")
        assert await session.idle() == Completed("r4")
    last = [request.messages[-1] for request in provider.requests]
    texts = [message.text for message in last if isinstance(message, UserMessage)]
    assert texts == ["first", "m2", "m3", "m4", "m19", "last"]


async def test_the_size_of_the_queued_messages_is_limited_too(tmp_path: Path) -> None:
    hang = Hang()
    routes = [{"provider": ScriptedProvider([[hang]])}]
    async with hark.open(home=tmp_path, routes=routes, limits={"queue_mb": 0.001}) as agent:
        session = agent.session("demo")
        await session.say("x" * 5_000)  # starts immediately, so it is not queued
        await hang.reached.wait()
        assert (await session.say("y" * 600, "queue")).state == "queued"
        refused = await session.say("z" * 600, "queue")
        assert (refused.state, refused.reason) == (
            "refused",
            "The queue is full (0.001 MB). Withdraw some messages, or send it again later.",
        )
        picture = Attachment("image/png", "p.png", data="A" * 600)
        assert (await session.say("", "queue", attachments=[picture])).state == "refused"
        assert [item.text[0] for item in await session.queue()] == ["y"]
        await session.interrupt()


def test_the_size_of_a_queue_is_counted_in_bytes() -> None:
    limits = Limits(queue_mb=0.001)
    assert why_full([], "x" * 1_000, (), limits) == ""
    assert why_full([], "é" * 1_000, (), limits) == (
        "The queue is full (0.001 MB). Withdraw some messages, or send it again later."
    )
