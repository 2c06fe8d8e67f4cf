"""Schedules over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.web.web_fixture import served

NINE = {"when": "0 9 * * mon-fri", "prompt": "What is new?", "session": "daily", "timezone": "Europe/Zurich"}


async def test_schedules_are_added_listed_paused_resumed_and_removed(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        assert await world.call("GET", "/api/schedules") == (200, {"schedules": []})
        status, row = await world.call("POST", "/api/schedules", {**NINE, "name": "news"})
        assert status == 201
        assert row["next"][10:] in ("T09:00:00+01:00", "T09:00:00+02:00")
        assert (row["name"], row["state"], row["last"], row["delivery"]) == ("news", "active", None, "queue")
        _, listed = await world.call("GET", "/api/schedules")
        assert listed == {"schedules": [row]}
        status, paused = await world.call("PATCH", "/api/schedules/news", {"paused": True})
        assert (status, paused["state"], paused["next"]) == (200, "paused", None)
        status, resumed = await world.call("PATCH", "/api/schedules/news", {"paused": False})
        assert (status, resumed["state"], resumed["next"]) == (200, "active", row["next"])
        status, removed = await world.call("DELETE", "/api/schedules/news")
        assert (status, removed["name"]) == (200, "news")
        assert await world.call("GET", "/api/schedules") == (200, {"schedules": []})


async def test_one_can_be_run_now_and_its_end_is_told(tmp_path: Path) -> None:
    async with served(tmp_path, None) as world:
        await world.call("POST", "/api/schedules", {**NINE, "name": "news"})
        status, receipt = await world.call("POST", "/api/schedules/news/run")
        assert (status, receipt["session"], receipt["state"]) == (202, "daily", "started")
        await world.idle("daily")
        said = (await world.messages("daily"))[0]
        assert (said["text"], said["author"], said["id"]) == ("What is new?", "schedule news", receipt["id"])
        _, listed = await world.call("GET", "/api/schedules")
        assert listed["schedules"][0]["last"]["state"] == "completed"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/api/schedules", {**NINE, "when": "0 25 * * *"}, 400, "bad_schedule"),
        ("POST", "/api/schedules", {**NINE, "when": "soon"}, 400, "bad_schedule"),
        ("POST", "/api/schedules", {**NINE, "timezone": "Europe/Zurch"}, 400, "bad_schedule"),
        ("POST", "/api/schedules", {**NINE, "timezone": "../../../etc/passwd"}, 400, "bad_schedule"),
        ("POST", "/api/schedules", {**NINE, "prompt": "  "}, 400, "bad_schedule"),
        ("POST", "/api/schedules", {**NINE, "name": "a:b"}, 400, "bad_schedule"),
        ("POST", "/api/schedules", {**NINE, "session": "a b"}, 400, "bad_schedule"),
        ("POST", "/api/schedules", {**NINE, "session": ".."}, 400, "bad_schedule"),
        ("POST", "/api/schedules", {**NINE, "name": "here"}, 409, "exists"),
        ("POST", "/api/schedules", {"when": "@daily"}, 400, "bad_request"),
        ("PATCH", "/api/schedules/there", {"paused": True}, 404, "unknown"),
        ("PATCH", "/api/schedules/here", {}, 400, "bad_request"),
        ("DELETE", "/api/schedules/there", None, 404, "unknown"),
        ("POST", "/api/schedules/there/run", None, 404, "unknown"),
        ("PUT", "/api/schedules", None, 405, "method_not_allowed"),
    ],
)
async def test_what_can_not_be_is_refused(
    tmp_path: Path, method: str, path: str, body: Any, status: int, code: str
) -> None:
    async with served(tmp_path) as world:
        await world.call("POST", "/api/schedules", {**NINE, "name": "here"})
        answered, told = await world.call(method, path, body)
        assert (answered, told["error"]["code"]) == (status, code)


async def test_a_wrong_zone_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        _, told = await world.call("POST", "/api/schedules", {**NINE, "timezone": "Europe/Zurch"})
        assert "Did you mean Europe/Zurich?" in told["error"]["message"]
