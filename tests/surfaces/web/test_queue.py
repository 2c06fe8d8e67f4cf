"""The queue over HTTP (list, edit, move, withdraw), and answers to questions."""

from pathlib import Path

import pytest

from tests.cli.command_line import shell_call
from tests.fakes.models.behaviours import hanging, text
from tests.surfaces.web.web_fixture import WebFixture, run_web_server

QUEUE = "/api/sessions/demo/queue"


async def queue_two_messages(web: WebFixture) -> None:
    """Start a turn and queue two messages."""
    await web.say("demo", "long")
    await web.model.request(1)
    await web.say("demo", "first", id="a", delivery="queue")
    await web.say("demo", "second", id="b", delivery="queue")


async def test_the_queue_is_listed_in_execution_order(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1)]) as web:
        assert await web.call("GET", QUEUE) == (200, {"queue": []})
        assert not web.agent.is_open("demo")
        await queue_two_messages(web)
        _, body = await web.call("GET", QUEUE)
        assert body["queue"] == [
            {"id": "a", "text": "first", "delivery": "queue", "state": "queued"},
            {"id": "b", "text": "second", "delivery": "queue", "state": "queued"},
        ]


async def test_a_queued_message_is_edited_moved_and_withdrawn(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [hanging(1), text(["ok"])]) as web:
        await queue_two_messages(web)
        status, body = await web.call("PATCH", f"{QUEUE}/b", {"text": "changed", "position": 1})
        assert status == 200
        assert [(item["id"], item["text"]) for item in body["queue"]] == [("b", "changed"), ("a", "first")]
        status, body = await web.call("DELETE", f"{QUEUE}/a")
        assert (status, [item["id"] for item in body["queue"]]) == (200, ["b"])
        await web.call("POST", "/api/sessions/demo/interrupt")
        assert (await web.call("GET", QUEUE))[1]["queue"][0]["state"] == "held"


async def test_a_change_to_a_message_that_is_not_queued_is_refused(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["ok"])]) as web:
        await web.say("demo", "hi", id="taken")
        await web.idle("demo")
        for name, expected in (("taken", 409), ("unknown", 404)):
            for method, body in (("PATCH", {"text": "x"}), ("PATCH", {"position": 1}), ("DELETE", None)):
                status, answer = await web.call(method, f"{QUEUE}/{name}", body)
                assert (status, answer["error"]["code"]) == (expected, "not_waiting")
        assert (await web.call("DELETE", "/api/sessions/nobody/queue/x"))[0] == 404
        assert not web.agent.is_open("nobody")


@pytest.mark.parametrize("body", [{}, {"text": " "}, {"position": 0}, {"position": "1"}, {"position": 1.5}, [], 7])
async def test_an_invalid_change_to_a_queued_message_is_a_bad_request(tmp_path: Path, body: object) -> None:
    async with run_web_server(tmp_path, [hanging(1)]) as web:
        await queue_two_messages(web)
        status, answer = await web.call("PATCH", f"{QUEUE}/a", body)
        assert (status, bool(answer["error"]["message"])) == (400, True)


@pytest.mark.parametrize(("body", "effect"), [({"choice": "yes"}, "completed"), ({"text": "not now"}, "not_started")])
async def test_a_question_is_answered_with_a_choice_or_a_text(
    tmp_path: Path, body: dict[str, str], effect: str
) -> None:
    script = [shell_call("touch made"), text(["done"])]
    async with (
        run_web_server(tmp_path, script, approvals={"mode": "ask"}) as web,
        web.events("demo") as events,
    ):
        await web.say("demo", "make it")
        asked = await events.wait_for("question.asked")
        path = f"/api/sessions/demo/answers/{asked['question']}"
        _, transcript = await web.call("GET", "/api/sessions/demo/transcript")
        assert transcript["running"]["questions"][0]["question"] == asked["question"]
        assert (await web.call("POST", path, {}))[0] == 400
        assert (await web.call("POST", path, {"choice": "perhaps"}))[1]["error"]["code"] == "bad_choice"
        assert (await web.call("POST", path, body))[0] == 200
        assert (await events.wait_for("call.ended"))["effect"] == effect
        await events.wait_for("turn.ended")
        assert (await web.call("POST", path, body))[0] == 409
    assert (tmp_path / "made").exists() == (effect == "completed")


async def test_an_answer_to_an_unknown_question_is_refused(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        status, answer = await web.call("POST", "/api/sessions/nobody/answers/q1", {"text": "yes"})
        assert (status, answer["error"]["code"]) == (409, "not_asked")
