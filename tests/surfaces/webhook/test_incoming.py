"""Webhook requests must be signed and recent, and are stored before they are acknowledged."""

import asyncio
import base64
import json
import time
from pathlib import Path

import pytest

from hark.protocol.chat import (
    Address,
    Author,
    Button,
    ButtonPressed,
    ChatError,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
    OutgoingMessage,
)
from hark.protocol.store import StoreError
from hark.surfaces.webhook.platform import HookSettings
from hark.surfaces.webhook.signatures import MAX_AGE_SECONDS
from tests.fakes.webhook_program import SECRET, github_headers, signature_headers
from tests.surfaces.webhook.webhook_fixture import CI, make_webhook_surface, running_webhook


async def test_a_message_is_delivered_with_all_its_fields(tmp_path: Path) -> None:
    async with running_webhook(tmp_path) as webhook:
        file = {"media_type": "text/plain", "name": "log.txt", "data": base64.b64encode(b"boom").decode()}
        status, answer = await webhook.send_message(
            id="1", chat="main", thread="7", author="Ann", text="build broke", attachments=[file], reply_to="the build"
        )
        assert (status, answer) == (202, {"id": "1", "session": "webhook:ci@main:7"})
        assert (await webhook.send_message(id="2", text="plain"))[1]["session"] == "webhook:ci"
    first, second = webhook.recorder.events
    assert isinstance(first, IncomingMessage)
    assert first.address == Address("webhook", "ci@main", "7")
    assert (first.author, first.text, first.quoted) == (Author("ci", "Ann"), "build broke", "the build")
    assert first.attachments[0].name == "log.txt"
    assert second == IncomingMessage("2", CI, Author("ci", "ci"), "plain")


async def test_a_request_is_acknowledged_only_after_its_delivery(tmp_path: Path) -> None:
    async with running_webhook(tmp_path) as webhook:
        webhook.recorder.gate.clear()
        sending = asyncio.create_task(webhook.send_message(text="hi"))
        await webhook.recorder.changed.wait()
        assert not sending.done()
        webhook.recorder.gate.set()
        assert (await sending)[0] == 202
        webhook.recorder.errors.append(StoreError("the disk is full"))
        assert (await webhook.send_message(id="x", text="store me"))[0] == 503
        assert (await webhook.send_message(id="x", text="store me"))[0] == 202


async def test_a_forged_old_future_or_changed_request_is_refused(tmp_path: Path) -> None:
    async with running_webhook(tmp_path) as webhook:
        body = json.dumps({"id": "1", "text": "evil"}).encode()
        good = signature_headers(body)
        for headers in (
            {},
            signature_headers(body, "another secret"),
            signature_headers(body + b" "),
            signature_headers(body, at=time.time() - MAX_AGE_SECONDS - 300),
            signature_headers(body, at=time.time() + MAX_AGE_SECONDS + 300),
            {**good, "X-Hark-Timestamp": "now"},
            {**good, "X-Hark-Timestamp": "9" * 5000},
            {**good, "X-Hark-Timestamp": str(int(good["X-Hark-Timestamp"]) + 1)},
            {**good, "X-Hark-Signature": "v1=é"},
            {**good, "X-Hark-Signature": ""},
            {"Authorization": f"Bearer {SECRET}"},
            github_headers(body, "1"),
        ):
            status, answer = await webhook.post(body, headers)
            assert (status, answer["error"]["code"]) == (401, "bad_signature"), headers
            assert SECRET not in str(answer)
    assert webhook.recorder.events == []


async def test_a_repeated_request_is_treated_as_a_redelivery_and_not_as_a_forgery(tmp_path: Path) -> None:
    async with running_webhook(tmp_path) as webhook:
        body = json.dumps({"id": "1", "text": "hi"}).encode()
        headers = signature_headers(body)
        assert [(await webhook.post(body, headers))[0] for _ in range(3)] == [202] * 3
    assert {one.id for one in webhook.recorder.events} == {"1"}  # The ledger accepts it once.


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"not json", "not valid JSON"),
        (b"[]", "expected `object`"),
        (b'{"text": "no id"}', "id must have 1 to 200"),
        (b'{"id": "1"}', "needs a text"),
        (b'{"id": "1", "text": 5}', "text is invalid: expected `str`"),
        (b'{"id": "1", "type": "dance"}', "type must be delete, edit, message or stop"),
        (b'{"id": "1", "text": "x", "chat": "a\\nb"}', "unprintable characters"),
        (b'{"id": "1", "text": "x", "chat": "' + b"/" * 100 + b'"}', "are too long"),
        (b'{"id": "1", "text": "x", "attachments": [{"media_type": "a/b", "path": "/etc/passwd"}]}', "missing"),
        (b'{"id": "1", "text": "x", "attachments": [{"media_type": "a/b", "data": "%%"}]}', "base64"),
        (b'{"id": "1", "text": "x", "attachments": [{"media_type": "a/b", "data": "eA==", "name": "../x"}]}', "path"),
    ],
)
async def test_an_invalid_request_is_refused_with_the_reason(tmp_path: Path, body: bytes, message: str) -> None:
    async with running_webhook(tmp_path) as webhook:
        status, answer = await webhook.post(body, signature_headers(body))
        assert status == 400
        assert message in answer["error"]["message"]
    assert webhook.recorder.events == []


async def test_edit_delete_and_stop_requests_become_the_matching_events(tmp_path: Path) -> None:
    async with running_webhook(tmp_path) as webhook:
        assert (await webhook.send_message(id="1", type="edit", text="new"))[0] == 202
        assert (await webhook.send_message(id="1", type="delete"))[0] == 202
        assert (await webhook.send_message(id="s", type="stop"))[0] == 202
    assert webhook.recorder.events == [
        MessageEdited("1", CI, Author("ci", "ci"), "new"),
        MessageDeleted("1", CI),
        ButtonPressed("s", CI, Author("ci", "ci"), "stop:"),
    ]


async def test_an_answer_selects_a_choice_by_value_or_label(tmp_path: Path) -> None:
    async with running_webhook(tmp_path) as webhook:
        question = OutgoingMessage(
            "❓ which?", (Button("red", "answer:q:0"), Button("blue", "answer:q:1")), key="ask:q"
        )
        await webhook.surface.send(CI, question)
        await webhook.send_message(answer="answer:q:0")
        await webhook.send_message(answer="blue")
        status, answer = await webhook.send_message(answer="green")
        assert status == 422
        assert "'red', 'blue'" in answer["error"]["message"]
        await webhook.surface.edit(CI, "ask:q", OutgoingMessage("❓ which?\n(answered)"))
        await webhook.send_message(answer="free text")
    red, blue, free_text = webhook.recorder.events
    assert [one.value for one in (red, blue) if isinstance(one, ButtonPressed)] == ["answer:q:0", "answer:q:1"]
    assert isinstance(free_text, IncomingMessage)
    assert free_text.text == "free text"


async def test_a_reply_quotes_its_message_and_a_lone_recording_is_delivered_as_voice(tmp_path: Path) -> None:
    async with running_webhook(tmp_path) as webhook:
        await webhook.surface.send(CI, OutgoingMessage("my earlier text", key="k1"))
        await webhook.send_message(text="and why?", reply_to="k1")
        audio = {"media_type": "audio/ogg", "data": base64.b64encode(b"OggS").decode()}
        await webhook.send_message(attachments=[audio])
    quoting, spoken = webhook.recorder.events
    assert isinstance(quoting, IncomingMessage)
    assert quoting.quoted == "my earlier text"
    assert isinstance(spoken, IncomingMessage)
    assert spoken.voice is not None
    assert spoken.attachments == ()


async def test_a_rate_limited_program_receives_a_retry_time_and_can_still_stop(tmp_path: Path) -> None:
    async with running_webhook(tmp_path, {"other": {}}, per_minute=2) as webhook:
        assert [(await webhook.send_message(text="x"))[0] for _ in range(3)] == [202, 202, 429]
        body = json.dumps({"id": "late", "text": "x"}).encode()
        _, headers, _ = await webhook.web.fetch("/hooks/ci", "POST", data=body, headers=signature_headers(body))
        assert 1 <= int(headers["Retry-After"]) <= 60
        assert (await webhook.send_message("other", text="x"))[0] == 202
        for stop in ({"text": "/stop"}, {"text": "halt"}, {"type": "stop"}):
            assert (await webhook.send_message(**stop))[0] == 202
    assert len(webhook.recorder.events) == 6


async def test_github_requests_are_verified_by_their_signature_and_become_text_messages(tmp_path: Path) -> None:
    hook = {
        "signature": "github",
        "id_header": "X-GitHub-Delivery",
        "template": "{headers.x-github-event} {repository.full_name}: {action} {issue.title}",
        "chat": "{repository.full_name}",
        "author": "{sender.login}",
        "events": ("issues",),
    }
    payload = {"action": "opened", "repository": {"full_name": "me/it"}, "issue": {"title": "It broke"}}
    body = json.dumps({**payload, "sender": {"login": "ann"}}).encode()
    async with running_webhook(tmp_path, {"github": hook}) as webhook:
        ping = b'{"zen": "Keep it logically awesome."}'
        ignored = (202, {"ignored": True})
        assert await webhook.post(ping, github_headers(ping, "0", event="ping"), "github") == ignored
        assert await webhook.post(body, github_headers(body, "0", event="star"), "github") == ignored
        assert (await webhook.post(body, github_headers(body, "1", "wrong"), "github"))[0] == 401
        assert (await webhook.post(body, signature_headers(body), "github"))[0] == 401
        assert (await webhook.post(body, github_headers(body, "1"), "github"))[0] == 202
        assert (await webhook.post(body, github_headers(body, "1"), "github"))[0] == 202  # delivered again
        # The id is not part of the signature.
        assert (await webhook.post(body, github_headers(body, "2"), "github"))[0] == 401
        broken = b'{"action": "opened", "repository": {"name": "it"}}'
        status, answer = await webhook.post(broken, github_headers(broken, "3"), "github")
        assert status == 422
        assert "{repository.full_name}, but repository has name" in answer["error"]["message"]
    text = "issues me/it: opened It broke"
    assert webhook.recorder.events[0] == IncomingMessage(
        "1", Address("webhook", "github@me/it"), Author("github", "ann"), text
    )
    assert {one.id for one in webhook.recorder.events} == {"1"}


async def test_a_program_that_cannot_sign_sends_the_secret_as_a_bearer_token(tmp_path: Path) -> None:
    hook = {"signature": "bearer", "template": "{status}: {commonLabels.alertname}"}
    body = json.dumps({"status": "firing", "commonLabels": {"alertname": "DiskFull"}}).encode()
    async with running_webhook(tmp_path, {"alerts": hook}) as webhook:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": SECRET}, signature_headers(body)):
            assert (await webhook.post(body, headers, "alerts"))[0] == 401
        right = {"Authorization": f"Bearer {SECRET}"}
        assert [(await webhook.post(body, right, "alerts"))[0] for _ in range(2)] == [202, 202]
    assert [one.text for one in webhook.recorder.events if isinstance(one, IncomingMessage)] == ["firing: DiskFull"] * 2
    assert len({one.id for one in webhook.recorder.events}) == 1


async def test_programs_are_asked_to_retry_while_the_surface_is_not_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.surfaces.webhook.surface.STARTUP_SECONDS", 0.01)
    async with running_webhook(tmp_path) as webhook:
        idle = make_webhook_surface({"idle": HookSettings(secret=SECRET)})
        webhook.web.context.hooks.register("idle", *idle.make_hooks())
        body = b'{"id": "1", "text": "hi"}'
        status, headers, _ = await webhook.web.fetch("/hooks/idle", "POST", data=body, headers=signature_headers(body))
        assert (status, headers["Retry-After"]) == (503, "5")
        assert (await webhook.web.fetch("/hooks/none", "POST", data=body, headers=signature_headers(body)))[0] == 401


@pytest.mark.parametrize(
    ("name", "hook", "message"),
    [
        ("ci", HookSettings(), "no secret"),
        ("ci", HookSettings(secret_env="NOT_SET_ANYWHERE"), "NOT_SET_ANYWHERE is empty"),
        ("a/b", HookSettings(secret="x"), "is not a valid hook name"),
        ("ci", HookSettings(secret="x", template="{action"), "brace at position 0"),
        ("ci", HookSettings(secret="x", template="a {} b"), "brace at position 2"),
    ],
)
def test_an_invalid_hook_configuration_is_reported_at_creation(name: str, hook: HookSettings, message: str) -> None:
    with pytest.raises((ChatError, ValueError), match=message):
        make_webhook_surface({name: hook})
