"""Schedules over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.web.web_fixture import run_web_server

NINE = {"when": "0 9 * * mon-fri", "prompt": "What is new?", "session": "daily", "timezone": "Europe/Zurich"}


async def test_schedules_are_added_listed_paused_resumed_and_removed(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        assert await web.call("GET", "/api/schedules") == (200, {"schedules": []})
        status, row = await web.call("POST", "/api/schedules", {**NINE, "name": "news"})
        assert status == 201
        assert row["next"][10:] in ("T09:00:00+01:00", "T09:00:00+02:00")
        assert (row["name"], row["state"], row["last"], row["delivery"]) == ("news", "active", None, "queue")
        _, listed = await web.call("GET", "/api/schedules")
        assert listed == {"schedules": [row]}
        status, paused = await web.call("PATCH", "/api/schedules/news", {"paused": True})
        assert (status, paused["state"], paused["next"]) == (200, "paused", None)
        status, resumed = await web.call("PATCH", "/api/schedules/news", {"paused": False})
        assert (status, resumed["state"], resumed["next"]) == (200, "active", row["next"])
        status, removed = await web.call("DELETE", "/api/schedules/news")
        assert (status, removed["name"]) == (200, "news")
        assert await web.call("GET", "/api/schedules") == (200, {"schedules": []})


async def test_a_schedule_is_run_immediately_and_its_outcome_is_listed(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, None) as web:
        await web.call("POST", "/api/schedules", {**NINE, "name": "news"})
        status, receipt = await web.call("POST", "/api/schedules/news/run")
        assert (status, receipt["session"], receipt["state"]) == (202, "daily", "started")
        await web.idle("daily")
        message = (await web.messages("daily"))[0]
        assert (message["text"], message["author"], message["id"]) == ("What is new?", "schedule news", receipt["id"])
        _, listed = await web.call("GET", "/api/schedules")
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
async def test_an_invalid_schedule_request_is_refused(
    tmp_path: Path, method: str, path: str, body: Any, status: int, code: str
) -> None:
    async with run_web_server(tmp_path) as web:
        await web.call("POST", "/api/schedules", {**NINE, "name": "here"})
        answered_status, answer = await web.call(method, path, body)
        assert (answered_status, answer["error"]["code"]) == (status, code)


async def test_an_unknown_time_zone_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    async with run_web_server(tmp_path) as web:
        _, answer = await web.call("POST", "/api/schedules", {**NINE, "timezone": "Europe/Zurch"})
        assert "Did you mean Europe/Zurich?" in answer["error"]["message"]
