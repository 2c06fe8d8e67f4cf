"""What waits: listed, edited, moved, withdrawn; and answers to questions."""

from pathlib import Path

import pytest

from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import hanging, text
from tests.surfaces.web.web_fixture import World, served

QUEUE = "/api/sessions/demo/queue"


async def busy(world: World) -> None:
    """Have a turn run, and two messages wait."""
    await world.say("demo", "long")
    await world.model.request(1)
    await world.say("demo", "first", id="a", delivery="queue")
    await world.say("demo", "second", id="b", delivery="queue")


async def test_the_queue_is_told_in_running_order(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1)]) as world:
        assert await world.call("GET", QUEUE) == (200, {"queue": []})
        assert not world.agent.is_open("demo")
        await busy(world)
        _, body = await world.call("GET", QUEUE)
        assert body["queue"] == [
            {"id": "a", "text": "first", "delivery": "queue", "state": "queued"},
            {"id": "b", "text": "second", "delivery": "queue", "state": "queued"},
        ]


async def test_a_message_that_waits_is_edited_moved_and_withdrawn(tmp_path: Path) -> None:
    async with served(tmp_path, [hanging(1), text(["ok"])]) as world:
        await busy(world)
        status, body = await world.call("PATCH", f"{QUEUE}/b", {"text": "changed", "position": 1})
        assert status == 200
        assert [(item["id"], item["text"]) for item in body["queue"]] == [("b", "changed"), ("a", "first")]
        status, body = await world.call("DELETE", f"{QUEUE}/a")
        assert (status, [item["id"] for item in body["queue"]]) == (200, ["b"])
        await world.call("POST", "/api/sessions/demo/interrupt")
        assert (await world.call("GET", QUEUE))[1]["queue"][0]["state"] == "held"


async def test_a_change_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["ok"])]) as world:
        await world.say("demo", "hi", id="taken")
        await world.idle("demo")
        for name, expected in (("taken", 409), ("unknown", 404)):
            for method, body in (("PATCH", {"text": "x"}), ("PATCH", {"position": 1}), ("DELETE", None)):
                status, answer = await world.call(method, f"{QUEUE}/{name}", body)
                assert (status, answer["error"]["code"]) == (expected, "not_waiting")
        assert (await world.call("DELETE", "/api/sessions/nobody/queue/x"))[0] == 404
        assert not world.agent.is_open("nobody")


@pytest.mark.parametrize("body", [{}, {"text": " "}, {"position": 0}, {"position": "1"}, {"position": 1.5}, [], 7])
async def test_a_change_that_says_nothing_sensible_is_a_bad_request(tmp_path: Path, body: object) -> None:
    async with served(tmp_path, [hanging(1)]) as world:
        await busy(world)
        status, answer = await world.call("PATCH", f"{QUEUE}/a", body)
        assert (status, bool(answer["error"]["message"])) == (400, True)


@pytest.mark.parametrize(("body", "effect"), [({"choice": "yes"}, "completed"), ({"text": "not now"}, "not_started")])
async def test_a_question_is_answered(tmp_path: Path, body: dict[str, str], effect: str) -> None:
    script = [shell_call("touch made"), text(["done"])]
    async with (
        served(tmp_path, script, approvals={"mode": "ask"}) as world,
        world.events("demo") as events,
    ):
        await world.say("demo", "make it")
        asked = await events.until("question.asked")
        address = f"/api/sessions/demo/answers/{asked['question']}"
        _, told = await world.call("GET", "/api/sessions/demo/transcript")
        assert told["running"]["questions"][0]["question"] == asked["question"]
        assert (await world.call("POST", address, {}))[0] == 400
        assert (await world.call("POST", address, {"choice": "perhaps"}))[1]["error"]["code"] == "bad_choice"
        assert (await world.call("POST", address, body))[0] == 200
        assert (await events.until("call.ended"))["effect"] == effect
        await events.until("turn.ended")
        assert (await world.call("POST", address, body))[0] == 409
    assert (tmp_path / "made").exists() == (effect == "completed")


async def test_an_answer_to_nothing_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        status, answer = await world.call("POST", "/api/sessions/nobody/answers/q1", {"text": "yes"})
        assert (status, answer["error"]["code"]) == (409, "not_asked")
