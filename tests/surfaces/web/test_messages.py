"""Sending messages over HTTP: receipts, duplicates, deliveries and stops."""

import asyncio
from pathlib import Path

from tests.fakes.models.behaviours import echo, hanging, text
from tests.surfaces.web.web_fixture import run_web_server
from tests.waiting import at_most


async def test_a_message_is_accepted_and_answered(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["Hello", " there"])]) as web, web.events("demo") as events:
        receipt = await web.say("demo", "hi", id="m1", author="Ada")
        assert receipt == {"id": "m1", "session": "demo", "state": "started", "turn": "demo.t1"}
        end = await events.wait_for("turn.ended")
        assert end["outcome"] == {"type": "completed", "text": "Hello there"}
        assert [event["text"] for event in events.events if event["type"] == "reply.delta"] == ["Hello", " there"]
        messages = await web.messages("demo")
    assert [(row["role"], row["text"], row["turn"]) for row in messages] == [
        ("user", "hi", "demo.t1"),
        ("assistant", "Hello there", "demo.t1"),
    ]
    assert (messages[0]["id"], messages[0]["author"]) == ("m1", "Ada")


async def test_a_repeated_message_id_is_accepted_once(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["one"])]) as web:
        first = await web.say("demo", "hi", id="m1")
        again = await web.say("demo", "hi", id="m1")
        await web.idle("demo")
        assert (first["state"], again["state"]) == ("started", "duplicate")
        assert len(await web.messages("demo")) == 2
        assert len(web.model.requests) == 1


async def test_concurrent_posts_with_the_same_id_are_accepted_once(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["one"])]) as web:
        receipts = await asyncio.gather(*(web.say("demo", "hi", id="same") for _ in range(20)))
        await web.idle("demo")
        assert sorted(receipt["state"] for receipt in receipts) == ["duplicate"] * 19 + ["started"]
        assert [row["role"] for row in await web.messages("demo")] == ["user", "assistant"]


async def test_messages_interrupt_steer_or_queue_according_to_their_delivery_mode(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(2), text(["done"]), text(["later"])]) as web:
        await web.say("demo", "long")
        await web.model.request(1)
        queued = await web.say("demo", "later", delivery="queue")
        steered = await web.say("demo", "also", delivery="steer")
        interrupting = await web.say("demo", "instead", delivery="interrupt")
        assert [receipt["state"] for receipt in (queued, steered, interrupting)] == [
            "queued",
            "steering",
            "interrupting",
        ]
        assert queued["position"] == 1
        await web.idle("demo")
        assert [row["text"] for row in await web.messages("demo") if row["role"] == "user"] == [
            "long",
            "also",
            "instead",
            "later",
        ]


async def test_an_interrupt_request_returns_once_the_turn_has_settled_and_the_model_request_is_closed(
    tmp_path: Path,
) -> None:
    async with run_web_server(tmp_path, [hanging(2)]) as web, web.events("demo") as events:
        await web.say("demo", "long")
        await events.wait_for("reply.delta")
        status, settled = await web.call("POST", "/api/sessions/demo/interrupt", {"source": "ada"})
        assert status == 200
        assert settled["turn"] == "demo.t1"
        assert settled["outcome"] == {"type": "interrupted", "source": "ada"}
        assert settled["timings"]["total"] > 0
        await asyncio.wait_for(web.model.requests[0].disconnected.wait(), at_most(5))
        messages = await web.messages("demo")
        assert [row["role"] for row in messages] == ["user", "assistant", "note"]
        assert messages[1]["is_partial"] is True
        assert "tok0" not in messages[2]["text"]
        _, _, metrics = await web.fetch("/metrics")
        assert 'hark_turns_total{outcome="interrupted"} 1\n' in metrics
        assert "hark_interrupt_settle_seconds_count 1\n" in metrics


async def test_an_interrupt_without_a_matching_running_turn_has_no_effect(tmp_path: Path) -> None:
    nothing = {"turn": None, "outcome": None}
    async with run_web_server(tmp_path, [hanging(1)]) as web:
        assert await web.call("POST", "/api/sessions/nobody/interrupt") == (200, nothing)
        assert not web.agent.is_open("nobody")
        await web.say("demo", "long")
        await web.model.request(1)
        assert await web.call("POST", "/api/sessions/demo/interrupt", {"turn": "demo.t9"}) == (200, nothing)
        status, settled = await web.call("POST", "/api/sessions/demo/interrupt", {"turn": "demo.t1"})
        assert (status, settled["turn"]) == (200, "demo.t1")


async def test_a_slash_command_is_run_and_answered_with_a_notice(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1)]) as web, web.events("demo") as events:
        await web.say("demo", "long")
        await events.wait_for("reply.delta")
        receipt = await web.say("demo", "/stop", id="c1")
        assert receipt["state"] == "started"
        notice = await events.wait_for("notice", code="stop")
        assert notice["text"].startswith("Stopped in")
        assert (await web.say("demo", "/stop", id="c1"))["state"] == "duplicate"


async def test_images_reach_the_model_and_other_files_are_saved_for_tools(tmp_path: Path) -> None:
    picture = {"media_type": "image/png", "data": "aGFyaw==", "name": "a.png"}
    file = {"media_type": "text/csv", "data": "YSxi", "name": "table 1.csv"}
    async with run_web_server(tmp_path, [echo()]) as web:
        await web.say("demo", "look", attachments=[picture, file])
        await web.idle("demo")
        [user] = [item for item in web.model.requests[0].body["messages"] if item["role"] == "user"]
        text_part, image_part = user["content"]
        assert image_part["image_url"]["url"] == "data:image/png;base64,aGFyaw=="
        [path] = (tmp_path / "home" / "attachments" / "demo").rglob("*.csv")
        assert path.read_text() == "a,b"
        assert str(path) in text_part["text"]
        row = (await web.messages("demo"))[0]
        assert row["attachments"] == [
            {"media_type": "image/png", "name": "a.png"},
            {"media_type": "text/csv", "name": "table 1.csv"},
        ]


async def test_a_stop_for_a_message_also_takes_effect_if_the_message_arrives_later(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [echo()]) as web, web.events("demo") as events:
        nothing = {"turn": None, "outcome": None}
        assert await web.call("POST", "/api/sessions/demo/interrupt", {"message": "m1"}) == (200, nothing)
        assert (await web.say("demo", "long", id="m1"))["turn"] == "demo.t1"
        end = await events.wait_for("turn.ended")
        assert end["outcome"] == {"type": "interrupted", "source": "user"}
        assert (await web.say("demo", "next", id="m2"))["state"] == "started"
        assert (await events.wait_for("turn.ended"))["outcome"]["type"] == "completed"
        assert len(web.model.requests) == 1


async def test_a_stop_for_a_message_ends_only_the_turn_of_that_message(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1)]) as web:
        await web.say("demo", "long", id="m1")
        await web.model.request(1)
        other = await web.call("POST", "/api/sessions/demo/interrupt", {"message": "m9"})
        assert other == (200, {"turn": None, "outcome": None})
        _, settled = await web.call("POST", "/api/sessions/demo/interrupt", {"message": "m1"})
        assert settled["turn"] == "demo.t1"


async def test_stop_words_can_be_turned_off_for_the_page_only(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [echo()], surfaces={"page": {"stop_words": False}}) as web:
        assert "turn" not in await web.say("demo", "stop")
        status, receipt = await web.call(
            "POST", "/api/sessions/demo/messages", {"text": "stop"}, headers={"X-Hark-Surface": "page"}
        )
        assert (status, receipt["turn"]) == (202, "demo.t1")


async def test_a_message_to_a_full_queue_is_refused_and_can_be_sent_again(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(2), *[echo()] * 3], limits={"queue_messages": 2}) as web:
        await web.say("demo", "long")
        await web.model.request(1)
        for name in ("a", "b"):
            await web.say("demo", name, delivery="queue", id=name)
        body = {"text": "c", "delivery": "queue", "id": "c"}
        status, refusal = await web.call("POST", "/api/sessions/demo/messages", body)
        assert (status, refusal["error"]["code"]) == (429, "queue_full")
        assert "2 messages" in refusal["error"]["message"]
        _, headers, _ = await web.fetch("/api/sessions/demo/messages", "POST", json=body)
        assert headers["Retry-After"] == "10"
        completion = {"model": "hark", "messages": [{"role": "user", "content": "hi"}]}
        status, refusal = await web.call("POST", "/v1/chat/completions", completion, headers={"X-Hark-Session": "demo"})
        assert (status, refusal["error"]["code"]) == (429, "queue_full")
        await web.call("POST", "/api/sessions/demo/interrupt", {})
        await web.call("DELETE", "/api/sessions/demo/queue/a")
        assert (await web.say("demo", "c", delivery="queue", id="c"))["state"] == "queued"
        await web.idle("demo")
        rows = await web.messages("demo")
    assert [row["text"] for row in rows if row["role"] == "user"] == ["long", "b", "c"]
