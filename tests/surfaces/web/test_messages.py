"""Saying something over HTTP: receipts, repeats, deliveries, stops."""

import asyncio
from pathlib import Path

from tests.fakes.models.behaviours import echo, hanging, text
from tests.surfaces.web.web_fixture import served
from tests.waiting import at_most


async def test_a_message_is_accepted_and_answered(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["Hello", " there"])]) as world, world.events("demo") as events:
        receipt = await world.say("demo", "hi", id="m1", author="Ada")
        assert receipt == {"id": "m1", "session": "demo", "state": "started", "turn": "demo.t1"}
        end = await events.until("turn.ended")
        assert end["outcome"] == {"type": "completed", "text": "Hello there"}
        assert [event["text"] for event in events.seen if event["type"] == "reply.delta"] == ["Hello", " there"]
        messages = await world.messages("demo")
    assert [(row["role"], row["text"], row["turn"]) for row in messages] == [
        ("user", "hi", "demo.t1"),
        ("assistant", "Hello there", "demo.t1"),
    ]
    assert (messages[0]["id"], messages[0]["author"]) == ("m1", "Ada")


async def test_the_same_id_is_taken_once(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["one"])]) as world:
        first = await world.say("demo", "hi", id="m1")
        again = await world.say("demo", "hi", id="m1")
        await world.idle("demo")
        assert (first["state"], again["state"]) == ("started", "duplicate")
        assert len(await world.messages("demo")) == 2
        assert len(world.model.requests) == 1


async def test_many_posts_of_one_id_at_once_are_taken_once(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["one"])]) as world:
        receipts = await asyncio.gather(*(world.say("demo", "hi", id="same") for _ in range(20)))
        await world.idle("demo")
        assert sorted(receipt["state"] for receipt in receipts) == ["duplicate"] * 19 + ["started"]
        assert [row["role"] for row in await world.messages("demo")] == ["user", "assistant"]


async def test_deliveries_interrupt_steer_and_queue(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(2), text(["done"]), text(["later"])]) as world:
        await world.say("demo", "long")
        await world.model.request(1)
        queued = await world.say("demo", "later", delivery="queue")
        steered = await world.say("demo", "also", delivery="steer")
        cut = await world.say("demo", "instead", delivery="interrupt")
        assert [receipt["state"] for receipt in (queued, steered, cut)] == ["queued", "steering", "interrupting"]
        assert queued["position"] == 1
        await world.idle("demo")
        assert [row["text"] for row in await world.messages("demo") if row["role"] == "user"] == [
            "long",
            "also",
            "instead",
            "later",
        ]


async def test_an_interrupt_answers_when_the_turn_has_settled_and_the_model_is_let_go(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(2)]) as world, world.events("demo") as events:
        await world.say("demo", "long")
        await events.until("reply.delta")
        status, settled = await world.call("POST", "/api/sessions/demo/interrupt", {"source": "ada"})
        assert status == 200
        assert settled["turn"] == "demo.t1"
        assert settled["outcome"] == {"type": "interrupted", "source": "ada"}
        assert settled["timings"]["total"] > 0
        await asyncio.wait_for(world.model.requests[0].left.wait(), at_most(5))
        messages = await world.messages("demo")
        assert [row["role"] for row in messages] == ["user", "assistant", "note"]
        assert messages[1]["is_partial"] is True
        assert "tok0" not in messages[2]["text"]
        _, _, metrics = await world.fetch("/metrics")
        assert 'hark_turns_total{outcome="interrupted"} 1\n' in metrics
        assert "hark_interrupt_settle_seconds_count 1\n" in metrics


async def test_an_interrupt_of_nothing_or_of_another_turn_has_no_effect(tmp_path: Path) -> None:
    nothing = {"turn": None, "outcome": None}
    async with served(tmp_path, [hanging(1)]) as world:
        assert await world.call("POST", "/api/sessions/nobody/interrupt") == (200, nothing)
        assert not world.agent.is_open("nobody")
        await world.say("demo", "long")
        await world.model.request(1)
        assert await world.call("POST", "/api/sessions/demo/interrupt", {"turn": "demo.t9"}) == (200, nothing)
        status, settled = await world.call("POST", "/api/sessions/demo/interrupt", {"turn": "demo.t1"})
        assert (status, settled["turn"]) == (200, "demo.t1")


async def test_a_slash_command_is_that_command_and_its_reply_a_notice(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1)]) as world, world.events("demo") as events:
        await world.say("demo", "long")
        await events.until("reply.delta")
        receipt = await world.say("demo", "/stop", id="c1")
        assert receipt["state"] == "started"
        notice = await events.until("notice", code="stop")
        assert notice["text"].startswith("stopped in")
        assert (await world.say("demo", "/stop", id="c1"))["state"] == "duplicate"


async def test_pictures_reach_the_model_and_other_files_its_tools(tmp_path: Path) -> None:
    picture = {"media_type": "image/png", "data": "aGFyaw==", "name": "a.png"}
    file = {"media_type": "text/csv", "data": "YSxi", "name": "table 1.csv"}
    async with served(tmp_path, [echo()]) as world:
        await world.say("demo", "look", attachments=[picture, file])
        await world.idle("demo")
        [user] = [item for item in world.model.requests[0].body["messages"] if item["role"] == "user"]
        told, shown = user["content"]
        assert shown["image_url"]["url"] == "data:image/png;base64,aGFyaw=="
        [path] = (tmp_path / "home" / "attachments" / "demo").rglob("*.csv")
        assert path.read_text() == "a,b"
        assert str(path) in told["text"]
        row = (await world.messages("demo"))[0]
        assert row["attachments"] == [
            {"media_type": "image/png", "name": "a.png"},
            {"media_type": "text/csv", "name": "table 1.csv"},
        ]


async def test_a_stop_reaches_a_message_that_comes_only_after_it(tmp_path: Path) -> None:
    async with served(tmp_path, [echo()]) as world, world.events("demo") as events:
        nothing = {"turn": None, "outcome": None}
        assert await world.call("POST", "/api/sessions/demo/interrupt", {"message": "m1"}) == (200, nothing)
        assert (await world.say("demo", "long", id="m1"))["turn"] == "demo.t1"
        end = await events.until("turn.ended")
        assert end["outcome"] == {"type": "interrupted", "source": "user"}
        assert (await world.say("demo", "next", id="m2"))["state"] == "started"
        assert (await events.until("turn.ended"))["outcome"]["type"] == "completed"
        assert len(world.model.requests) == 1


async def test_a_stop_that_names_a_message_ends_its_turn_and_no_other(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1)]) as world:
        await world.say("demo", "long", id="m1")
        await world.model.request(1)
        other = await world.call("POST", "/api/sessions/demo/interrupt", {"message": "m9"})
        assert other == (200, {"turn": None, "outcome": None})
        _, settled = await world.call("POST", "/api/sessions/demo/interrupt", {"message": "m1"})
        assert settled["turn"] == "demo.t1"


async def test_stop_words_of_the_page_are_turned_off_apart_from_those_of_the_api(tmp_path: Path) -> None:
    async with served(tmp_path, [echo()], surfaces={"page": {"stop_words": False}}) as world:
        assert "turn" not in await world.say("demo", "stop")
        status, receipt = await world.call(
            "POST", "/api/sessions/demo/messages", {"text": "stop"}, headers={"X-Hark-Surface": "page"}
        )
        assert (status, receipt["turn"]) == (202, "demo.t1")
