"""The connection to Slack: it comes back, leaves nothing behind, and tells no secrets."""

import asyncio
import json
import logging
import threading

import pytest
from msgspec import structs

from hark.protocol.chat import (
    ChatError,
    Outgoing,
    Written,
)
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_payloads import APP_TOKEN, BOT_TOKEN
from tests.fakes.slack_server import Failure, slack_server
from tests.surfaces.slack.slack_fixture import DM, Ear, settings_for, slacking

END_SECONDS = 20  # less than a second on an idle machine


async def test_a_lost_connection_is_made_anew_and_what_was_not_acked_comes_again() -> None:
    async with slacking() as (slack, _, ear):
        ear.gate.clear()
        sent = slack.say("in the air")
        await ear.changed.wait()
        slack.drop()
        await slack.until(lambda: slack.connections == 2 and len(slack.sockets) == 1)
        ear.gate.set()
        await slack.again(sent).acked.wait()
        await slack.say("after").acked.wait()
    texts = [one.text for one in ear.heard if isinstance(one, Written)]
    assert texts[-1] == "after"
    assert set(texts) == {"in the air", "after"}


async def test_slack_may_ask_for_a_new_connection_and_gets_it_before_the_old_is_closed() -> None:
    async with slacking() as (slack, _, ear):
        most = 0

        def is_renewed() -> bool:
            nonlocal most
            most = max(most, len(slack.sockets))
            return slack.connections == 2 and len(slack.sockets) == 1

        await slack.ask_to_reconnect()
        await slack.until(is_renewed)
        await slack.say("still here?").acked.wait()
    assert most == 2
    assert len(ear.heard) == 1


async def test_a_server_that_falls_silent_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.surfaces.slack.socket_mode.PING_SECONDS", 0.3)
    async with slack_server() as slack:
        slack.answers_pings = False
        running = asyncio.create_task(SlackSurface(settings_for(slack)).run(Ear().deliver))
        await slack.until(lambda: slack.connections == 2)
        running.cancel()
        await asyncio.wait([running])


async def test_slack_that_hangs_up_at_once_is_left_alone_for_a_while() -> None:
    async with slack_server() as slack:
        slack.hangs_up = True
        with pytest.raises(ChatError, match="at once"):
            await SlackSurface(settings_for(slack)).run(Ear().deliver)
        assert slack.connections < 10


async def test_a_bad_token_is_told_without_being_shown(caplog: pytest.LogCaptureFixture) -> None:
    async with slack_server() as slack:
        for change in ({"token": "xoxb-wrong-one"}, {"app_token": "xapp-wrong-one"}, {"token": "", "token_env": ""}):
            with pytest.raises(ChatError) as refused:
                await SlackSurface(structs.replace(settings_for(slack), **change)).run(Ear().deliver)
            assert "wrong-one" not in str(refused.value)
        slack.failures["auth.test"].append(Failure(status=429, retry_after=3))
        with pytest.raises(ChatError) as refused:
            await SlackSurface(settings_for(slack)).run(Ear().deliver)
        assert refused.value.retry_after == 3
    with pytest.raises(ChatError, match="reached"):
        await SlackSurface(settings_for(slack)).run(Ear().deliver)


async def test_no_secret_and_no_text_is_in_the_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with slacking() as (slack, surface, ear):
        ear.failing.append(OSError("disk full"))
        await slack.again(slack.say("a private word")).acked.wait()
        slack.failures["chat.postMessage"].append(Failure("invalid_auth"))
        with pytest.raises(ChatError):
            await surface.send(DM, Outgoing("an answer"))
        slack.drop()
        await slack.until(lambda: slack.connections == 2)
    assert "was not kept" in caplog.text
    for secret in (BOT_TOKEN, APP_TOKEN, "ticket-", "a private word", "an answer"):
        assert secret not in caplog.text


@pytest.mark.parametrize("is_busy", [False, True])
async def test_cancelling_leaves_no_task_and_no_thread(is_busy: bool) -> None:
    async with slack_server() as slack:
        threads, before = set(threading.enumerate()), asyncio.all_tasks()
        ear = Ear()
        running = asyncio.create_task(SlackSurface(settings_for(slack)).run(ear.deliver))
        await slack.until(lambda: bool(slack.sockets))
        if is_busy:
            slack.say("held")
            await ear.changed.wait()
        running.cancel()
        async with asyncio.timeout(END_SECONDS):
            await asyncio.wait([running])
        await slack.until(lambda: not slack.sockets)
        left = {task for task in asyncio.all_tasks() - before if "aiohttp" not in repr(task)}
        assert not left, json.dumps([repr(task) for task in left])
        assert not set(threading.enumerate()) - threads
        assert slack.acks == 0
