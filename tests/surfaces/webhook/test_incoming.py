"""What programs post: signed, of now, once, and kept before it is acknowledged."""

import asyncio
import base64
import json
import time
from pathlib import Path

import pytest

from hark.protocol.chat import Address, Author, Button, ChatError, Outgoing, Pressed, Removed, Rewritten, Written
from hark.protocol.store import StoreError
from hark.surfaces.webhook.platform import HookSettings
from hark.surfaces.webhook.signatures import MOST_SECONDS
from tests.fakes.webhook_program import SECRET, signed, signed_by_github
from tests.surfaces.webhook.webhook_fixture import CI, hooked, webhook


async def test_a_message_is_heard_with_all_that_it_says(tmp_path: Path) -> None:
    async with hooked(tmp_path) as world:
        file = {"media_type": "text/plain", "name": "log.txt", "data": base64.b64encode(b"boom").decode()}
        status, answer = await world.say(
            id="1", chat="main", thread="7", author="Ann", text="build broke", attachments=[file], reply_to="the build"
        )
        assert (status, answer) == (202, {"id": "1", "session": "webhook:ci@main:7"})
        assert (await world.say(id="2", text="plain"))[1]["session"] == "webhook:ci"
    first, second = world.ear.heard
    assert isinstance(first, Written)
    assert first.address == Address("webhook", "ci@main", "7")
    assert (first.author, first.text, first.quoted) == (Author("ci", "Ann"), "build broke", "the build")
    assert first.attachments[0].name == "log.txt"
    assert second == Written("2", CI, Author("ci", "ci"), "plain")


async def test_it_is_acknowledged_only_when_it_was_delivered(tmp_path: Path) -> None:
    async with hooked(tmp_path) as world:
        world.ear.gate.clear()
        saying = asyncio.create_task(world.say(text="hi"))
        await world.ear.changed.wait()
        assert not saying.done()
        world.ear.gate.set()
        assert (await saying)[0] == 202
        world.ear.failing.append(StoreError("the disk is full"))
        assert (await world.say(id="x", text="keep me"))[0] == 503
        assert (await world.say(id="x", text="keep me"))[0] == 202


async def test_a_forged_old_future_or_changed_request_is_refused(tmp_path: Path) -> None:
    async with hooked(tmp_path) as world:
        body = json.dumps({"id": "1", "text": "evil"}).encode()
        good = signed(body)
        for headers in (
            {},
            signed(body, "another secret"),
            signed(body + b" "),
            signed(body, at=time.time() - MOST_SECONDS - 300),
            signed(body, at=time.time() + MOST_SECONDS + 300),
            {**good, "X-Hark-Timestamp": "now"},
            {**good, "X-Hark-Timestamp": "9" * 5000},
            {**good, "X-Hark-Timestamp": str(int(good["X-Hark-Timestamp"]) + 1)},
            {**good, "X-Hark-Signature": "v1=é"},
            {**good, "X-Hark-Signature": ""},
            {"Authorization": f"Bearer {SECRET}"},
            signed_by_github(body, "1"),
        ):
            status, answer = await world.post(body, headers)
            assert (status, answer["error"]["code"]) == (401, "bad_signature"), headers
            assert SECRET not in str(answer)
    assert world.ear.heard == []


async def test_the_same_request_again_is_a_redelivery_and_not_a_forgery(tmp_path: Path) -> None:
    async with hooked(tmp_path) as world:
        body = json.dumps({"id": "1", "text": "hi"}).encode()
        headers = signed(body)
        assert [(await world.post(body, headers))[0] for _ in range(3)] == [202] * 3
    assert {one.id for one in world.ear.heard} == {"1"}  # the ledger takes it once


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"not json", "not valid JSON"),
        (b"[]", "expected `object`"),
        (b'{"text": "no id"}', "id must have 1 to 200"),
        (b'{"id": "1"}', "needs a text"),
        (b'{"id": "1", "text": 5}', "text is invalid: expected `str`"),
        (b'{"id": "1", "type": "dance"}', "type must be delete, edit, message or stop"),
        (b'{"id": "1", "text": "x", "chat": "a\\nb"}', "can't be printed"),
        (b'{"id": "1", "text": "x", "chat": "' + b"/" * 100 + b'"}', "too long together"),
        (b'{"id": "1", "text": "x", "attachments": [{"media_type": "a/b", "path": "/etc/passwd"}]}', "missing"),
        (b'{"id": "1", "text": "x", "attachments": [{"media_type": "a/b", "data": "%%"}]}', "base64"),
        (b'{"id": "1", "text": "x", "attachments": [{"media_type": "a/b", "data": "eA==", "name": "../x"}]}', "path"),
    ],
)
async def test_what_cannot_be_understood_is_told(tmp_path: Path, body: bytes, words: str) -> None:
    async with hooked(tmp_path) as world:
        status, answer = await world.post(body, signed(body))
        assert status == 400
        assert words in answer["error"]["message"]
    assert world.ear.heard == []


async def test_edits_deletions_and_stops_are_heard_as_such(tmp_path: Path) -> None:
    async with hooked(tmp_path) as world:
        assert (await world.say(id="1", type="edit", text="new"))[0] == 202
        assert (await world.say(id="1", type="delete"))[0] == 202
        assert (await world.say(id="s", type="stop"))[0] == 202
    assert world.ear.heard == [
        Rewritten("1", CI, Author("ci", "ci"), "new"),
        Removed("1", CI),
        Pressed("s", CI, Author("ci", "ci"), "stop:"),
    ]


async def test_an_answer_is_a_choice_by_its_value_or_by_its_words(tmp_path: Path) -> None:
    async with hooked(tmp_path) as world:
        question = Outgoing("❓ which?", (Button("red", "answer:q:0"), Button("blue", "answer:q:1")), key="ask:q")
        await world.surface.send(CI, question)
        await world.say(answer="answer:q:0")
        await world.say(answer="blue")
        status, answer = await world.say(answer="green")
        assert status == 422
        assert "'red', 'blue'" in answer["error"]["message"]
        await world.surface.edit(CI, "ask:q", Outgoing("❓ which?\n(answered)"))
        await world.say(answer="in words")
    red, blue, words = world.ear.heard
    assert [one.value for one in (red, blue) if isinstance(one, Pressed)] == ["answer:q:0", "answer:q:1"]
    assert isinstance(words, Written)
    assert words.text == "in words"


async def test_a_reply_to_a_message_brings_its_text_and_a_recording_alone_is_heard(tmp_path: Path) -> None:
    async with hooked(tmp_path) as world:
        await world.surface.send(CI, Outgoing("what I said", key="k1"))
        await world.say(text="and why?", reply_to="k1")
        audio = {"media_type": "audio/ogg", "data": base64.b64encode(b"OggS").decode()}
        await world.say(attachments=[audio])
    quoting, spoken = world.ear.heard
    assert isinstance(quoting, Written)
    assert quoting.quoted == "what I said"
    assert isinstance(spoken, Written)
    assert spoken.voice is not None
    assert spoken.attachments == ()


async def test_a_program_that_talks_too_fast_is_told_when_to_come_again(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"other": {}}, per_minute=2) as world:
        assert [(await world.say(text="x"))[0] for _ in range(3)] == [202, 202, 429]
        body = json.dumps({"id": "late", "text": "x"}).encode()
        _, headers, _ = await world.web.fetch("/hooks/ci", "POST", data=body, headers=signed(body))
        assert 1 <= int(headers["Retry-After"]) <= 60
        assert (await world.say("other", text="x"))[0] == 202
        for stop in ({"text": "/stop"}, {"text": "halt"}, {"type": "stop"}):
            assert (await world.say(**stop))[0] == 202
    assert len(world.ear.heard) == 6


async def test_github_is_known_by_its_own_signature_and_its_payload_becomes_a_text(tmp_path: Path) -> None:
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
    async with hooked(tmp_path, {"github": hook}) as world:
        ping = b'{"zen": "Keep it logically awesome."}'
        ignored = (202, {"ignored": True})
        assert await world.post(ping, signed_by_github(ping, "0", event="ping"), "github") == ignored
        assert await world.post(body, signed_by_github(body, "0", event="star"), "github") == ignored
        assert (await world.post(body, signed_by_github(body, "1", "wrong"), "github"))[0] == 401
        assert (await world.post(body, signed(body), "github"))[0] == 401
        assert (await world.post(body, signed_by_github(body, "1"), "github"))[0] == 202
        assert (await world.post(body, signed_by_github(body, "1"), "github"))[0] == 202  # delivered again
        assert (await world.post(body, signed_by_github(body, "2"), "github"))[0] == 401  # the id is not signed
        broken = b'{"action": "opened", "repository": {"name": "it"}}'
        status, answer = await world.post(broken, signed_by_github(broken, "3"), "github")
        assert status == 422
        assert "{repository.full_name}, but repository has name" in answer["error"]["message"]
    said = "issues me/it: opened It broke"
    assert world.ear.heard[0] == Written("1", Address("webhook", "github@me/it"), Author("github", "ann"), said)
    assert {one.id for one in world.ear.heard} == {"1"}


async def test_a_program_that_cannot_sign_sends_the_secret_itself(tmp_path: Path) -> None:
    hook = {"signature": "bearer", "template": "{status}: {commonLabels.alertname}"}
    body = json.dumps({"status": "firing", "commonLabels": {"alertname": "DiskFull"}}).encode()
    async with hooked(tmp_path, {"alerts": hook}) as world:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": SECRET}, signed(body)):
            assert (await world.post(body, headers, "alerts"))[0] == 401
        right = {"Authorization": f"Bearer {SECRET}"}
        assert [(await world.post(body, right, "alerts"))[0] for _ in range(2)] == [202, 202]
    assert [one.text for one in world.ear.heard if isinstance(one, Written)] == ["firing: DiskFull"] * 2
    assert len({one.id for one in world.ear.heard}) == 1


async def test_while_it_does_not_run_programs_are_asked_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.surfaces.webhook.surface.START_SECONDS", 0.01)
    async with hooked(tmp_path) as world:
        idle = webhook({"idle": HookSettings(secret=SECRET)})
        world.web.place.hooks.bring("idle", *idle.hooks())
        body = b'{"id": "1", "text": "hi"}'
        status, headers, _ = await world.web.fetch("/hooks/idle", "POST", data=body, headers=signed(body))
        assert (status, headers["Retry-After"]) == (503, "5")
        assert (await world.web.fetch("/hooks/none", "POST", data=body, headers=signed(body)))[0] == 401


@pytest.mark.parametrize(
    ("name", "hook", "words"),
    [
        ("ci", HookSettings(), "no secret"),
        ("ci", HookSettings(secret_env="NOT_SET_ANYWHERE"), "NOT_SET_ANYWHERE is empty"),
        ("a/b", HookSettings(secret="x"), "can't name a hook"),
        ("ci", HookSettings(secret="x", template="{action"), "brace at 0"),
        ("ci", HookSettings(secret="x", template="a {} b"), "brace at 2"),
    ],
)
def test_a_hook_that_could_not_work_is_told_before(name: str, hook: HookSettings, words: str) -> None:
    with pytest.raises((ChatError, ValueError), match=words):
        webhook({name: hook})
