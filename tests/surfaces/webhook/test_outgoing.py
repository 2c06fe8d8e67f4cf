"""Events sent to programs are signed and have unique keys. Failures are reported."""

import asyncio
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from msgspec import structs

from hark.protocol.chat import Address, Button, ChatError, ChatGone, OutgoingMessage
from hark.surfaces.webhook.platform import HookSettings
from tests.fakes.webhook_program import SECRET, WebhookFailure, program_server
from tests.surfaces.webhook.webhook_fixture import CI, make_webhook_surface, running_webhook

MAIN = Address("webhook", "ci@main", "7")
HELLO = OutgoingMessage("hello", key="s.t1:0")


async def test_a_message_an_edit_and_a_receipt_are_sent_as_events(tmp_path: Path) -> None:
    async with running_webhook(tmp_path) as webhook:
        question = OutgoingMessage("which?", (Button("red", "answer:q:0"),), key="ask:q", voice=b"OggS")
        message_id = await webhook.surface.send(MAIN, question)
        await webhook.surface.edit(MAIN, message_id, OutgoingMessage("which? (answered)"))
        await webhook.surface.react(MAIN, "m1", "👀")
        await webhook.surface.show_typing(MAIN)
        message, edit, receipt = webhook.program.events
    origin = {"hook": "ci", "chat": "main", "thread": "7", "session": "webhook:ci@main:7"}
    for event in (message, edit, receipt):
        assert {name: event[name] for name in origin} == origin
        assert abs(event["at"] - time.time()) < 60
    assert (message["type"], message["key"], message["text"]) == ("message", "ask:q", "which?")
    assert message["choices"] == [{"text": "red", "value": "answer:q:0"}]
    assert message["voice"] == {"media_type": "audio/ogg", "data": "T2dnUw=="}
    assert (edit["type"], edit["message"], edit["choices"]) == ("edit", "ask:q", [])
    assert (receipt["type"], receipt["message"], receipt["sign"]) == ("receipt", "m1", "👀")


@pytest.mark.parametrize(
    "trouble", [WebhookFailure(), WebhookFailure(500), WebhookFailure(502), WebhookFailure(404), WebhookFailure(302)]
)
async def test_a_refused_message_raises_an_error_and_is_accepted_once_when_sent_again(
    tmp_path: Path, trouble: WebhookFailure
) -> None:
    async with running_webhook(tmp_path) as webhook:
        webhook.program.failures += [trouble, failure_after_processing(trouble)]
        for _ in range(2):
            with pytest.raises(ChatError) as caught:
                await webhook.surface.send(CI, HELLO)
            assert not isinstance(caught.value, ChatGone)
            assert SECRET not in str(caught.value)
        assert await webhook.surface.send(CI, HELLO) == "s.t1:0"
        assert len(webhook.program.requests) == 3
    assert webhook.program.texts == ["hello"]


def failure_after_processing(trouble: WebhookFailure) -> WebhookFailure:
    return WebhookFailure(trouble.status, is_done=True)


@pytest.mark.parametrize(
    ("retry_after", "min_seconds", "max_seconds"),
    [("7", 7, 7), ("0", 0, 0), ("a date", 600, 3000), ("9" * 12, 3600, 3600)],
    ids=["seconds", "none", "a date", "too long"],
)
async def test_a_receivers_retry_time_is_reported(
    tmp_path: Path, retry_after: str, min_seconds: float, max_seconds: float
) -> None:
    async with running_webhook(tmp_path) as webhook:
        for status in (429, 503):
            date = formatdate(time.time() + 3000, usegmt=True)
            webhook.program.failures.append(WebhookFailure(status, date if retry_after == "a date" else retry_after))
            with pytest.raises(ChatError) as caught:
                await webhook.surface.send(CI, HELLO)
            assert caught.value.retry_after is not None
            assert min_seconds <= caught.value.retry_after <= max_seconds


@pytest.mark.parametrize("status", [410, 400, 413, 422])
async def test_a_permanent_refusal_raises_chat_gone(tmp_path: Path, status: int) -> None:
    async with running_webhook(tmp_path) as webhook:
        webhook.program.failures.append(WebhookFailure(status))
        with pytest.raises(ChatGone):
            await webhook.surface.send(CI, HELLO)


async def test_a_hanging_receiver_does_not_delay_others(tmp_path: Path) -> None:
    async with program_server() as other, running_webhook(tmp_path, {"other": {"url": other.url}}) as webhook:
        webhook.program.may_answer.clear()
        hanging = [
            asyncio.create_task(webhook.surface.send(CI, structs.replace(HELLO, key=f"k{number}")))
            for number in range(50)
        ]
        await webhook.surface.send(Address("webhook", "other"), HELLO)
        assert other.texts == ["hello"]
        webhook.program.may_answer.set()
        await asyncio.gather(*hanging)
    assert len(webhook.program.events) == 50


async def test_an_unreachable_receiver_raises_an_error(tmp_path: Path) -> None:
    async with running_webhook(tmp_path, {"away": {"url": "http://127.0.0.1:1/hark"}}) as webhook:
        with pytest.raises(ChatError, match="can't be reached"):
            await webhook.surface.send(Address("webhook", "away"), HELLO)


async def test_a_hook_without_a_url_sends_nothing_and_a_stopped_surface_raises_an_error() -> None:
    hooks = {"mute": HookSettings(secret=SECRET), "ci": HookSettings(secret=SECRET, url="http://127.0.0.1:1/")}
    surface = make_webhook_surface(hooks)
    assert await surface.send(Address("webhook", "mute"), HELLO) == "s.t1:0"
    assert await surface.send(Address("webhook", "removed"), HELLO) == "s.t1:0"
    with pytest.raises(ChatError) as caught:
        await surface.send(CI, HELLO)
    assert caught.value.retry_after == 1.0
