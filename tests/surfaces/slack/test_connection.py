"""The connection to Slack is restored after a loss, leaves no tasks behind, and reveals no secrets."""

import asyncio
import json
import logging
import threading

import pytest
from msgspec import structs

from hark.protocol.chat import (
    ChatError,
    IncomingMessage,
    OutgoingMessage,
)
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_payloads import APP_TOKEN, BOT_TOKEN
from tests.fakes.slack_server import SlackFailure, slack_server
from tests.surfaces.slack.slack_fixture import DM, DeliveryRecorder, running_slack, slack_settings

SHUTDOWN_SECONDS = 20  # takes less than a second on an idle machine


async def test_a_lost_connection_is_restored_and_unacknowledged_events_arrive_again() -> None:
    async with running_slack() as (slack, _, recorder):
        recorder.gate.clear()
        sent = slack.say("in flight")
        await recorder.changed.wait()
        slack.drop()
        await slack.until(lambda: slack.connections == 2 and len(slack.sockets) == 1)
        recorder.gate.set()
        await slack.redeliver(sent).acked.wait()
        await slack.say("after").acked.wait()
    texts = [one.text for one in recorder.events if isinstance(one, IncomingMessage)]
    assert texts[-1] == "after"
    assert set(texts) == {"in flight", "after"}


async def test_a_requested_reconnect_opens_the_new_connection_before_closing_the_old_one() -> None:
    async with running_slack() as (slack, _, recorder):
        max_sockets = 0

        def is_renewed() -> bool:
            nonlocal max_sockets
            max_sockets = max(max_sockets, len(slack.sockets))
            return slack.connections == 2 and len(slack.sockets) == 1

        await slack.ask_to_reconnect()
        await slack.until(is_renewed)
        await slack.say("still here?").acked.wait()
    assert max_sockets == 2
    assert len(recorder.events) == 1


async def test_a_connection_with_pongs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.surfaces.slack.socket_mode.PING_SECONDS", 0.3)
    async with slack_server() as slack:
        running = asyncio.create_task(SlackSurface(slack_settings(slack)).run(DeliveryRecorder().deliver))
        await slack.until(lambda: slack.socket_pings >= 5)
        running.cancel()
        await asyncio.wait([running])
    assert slack.connections == 1


async def test_a_ping_from_slack_is_answered() -> None:
    async with slack_server() as slack:
        running = asyncio.create_task(SlackSurface(slack_settings(slack)).run(DeliveryRecorder().deliver))
        await slack.until(lambda: slack.connections == 1)
        await slack.sockets[-1].ping()
        await slack.until(lambda: slack.socket_pongs == 1)
        running.cancel()
        await asyncio.wait([running])


async def test_a_connection_without_pongs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.surfaces.slack.socket_mode.PING_SECONDS", 0.3)
    async with slack_server() as slack:
        slack.answers_pings = False
        running = asyncio.create_task(SlackSurface(slack_settings(slack)).run(DeliveryRecorder().deliver))
        await slack.until(lambda: slack.connections == 2)
        running.cancel()
        await asyncio.wait([running])


async def test_connecting_fails_with_an_error_when_slack_keeps_closing_connections() -> None:
    async with slack_server() as slack:
        slack.closes_new_sockets = True
        with pytest.raises(ChatError, match="right after they were opened"):
            await SlackSurface(slack_settings(slack)).run(DeliveryRecorder().deliver)
        assert slack.connections < 10


async def test_a_bad_token_is_reported_without_showing_the_token(caplog: pytest.LogCaptureFixture) -> None:
    async with slack_server() as slack:
        for change in ({"token": "xoxb-wrong-one"}, {"app_token": "xapp-wrong-one"}, {"token": "", "token_env": ""}):
            with pytest.raises(ChatError) as caught:
                await SlackSurface(structs.replace(slack_settings(slack), **change)).run(DeliveryRecorder().deliver)
            assert "wrong-one" not in str(caught.value)
        slack.failures["auth.test"].append(SlackFailure(status=429, retry_after=3))
        with pytest.raises(ChatError) as caught:
            await SlackSurface(slack_settings(slack)).run(DeliveryRecorder().deliver)
        assert caught.value.retry_after == 3
    with pytest.raises(ChatError, match="reached"):
        await SlackSurface(slack_settings(slack)).run(DeliveryRecorder().deliver)


async def test_logs_contain_no_secret_and_no_message_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with running_slack() as (slack, surface, recorder):
        recorder.errors.append(OSError("disk full"))
        await slack.redeliver(slack.say("a private text")).acked.wait()
        slack.failures["chat.postMessage"].append(SlackFailure("invalid_auth"))
        with pytest.raises(ChatError):
            await surface.send(DM, OutgoingMessage("an answer"))
        slack.drop()
        await slack.until(lambda: slack.connections == 2)
    assert "could not be stored" in caplog.text
    for secret in (BOT_TOKEN, APP_TOKEN, "ticket-", "a private text", "an answer"):
        assert secret not in caplog.text


@pytest.mark.parametrize("is_busy", [False, True])
async def test_cancelling_leaves_no_task_and_no_thread(is_busy: bool) -> None:
    async with slack_server() as slack:
        threads, before = set(threading.enumerate()), asyncio.all_tasks()
        recorder = DeliveryRecorder()
        running = asyncio.create_task(SlackSurface(slack_settings(slack)).run(recorder.deliver))
        await slack.until(lambda: bool(slack.sockets))
        if is_busy:
            slack.say("held")
            await recorder.changed.wait()
        running.cancel()
        async with asyncio.timeout(SHUTDOWN_SECONDS):
            await asyncio.wait([running])
        await slack.until(lambda: not slack.sockets)
        leftover_tasks = {task for task in asyncio.all_tasks() - before if "aiohttp" not in repr(task)}
        assert not leftover_tasks, json.dumps([repr(task) for task in leftover_tasks])
        assert not set(threading.enumerate()) - threads
        assert slack.acks == 0
