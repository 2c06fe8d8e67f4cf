"""Slack events for the bot are delivered once and in order, and are acknowledged when stored."""

import asyncio
import base64

import pytest

from hark.protocol.chat import (
    Address,
    Button,
    ButtonPressed,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
    OutgoingMessage,
)
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_payloads import BOT_TOKEN
from tests.fakes.slack_server import SlackFailure, slack_server
from tests.surfaces.slack.slack_fixture import ANN, DM, DeliveryRecorder, running_slack, slack_settings


async def test_a_text_message_is_delivered_once_and_acknowledged_only_after_its_delivery() -> None:
    async with running_slack() as (slack, _, recorder):
        recorder.gate.clear()
        sent = slack.say("hi &lt;there&gt; <@UBOB> see <https://a.b/?x=1&amp;y=2|this>")
        await recorder.changed.wait()
        assert not sent.acked.is_set()
        recorder.gate.set()
        await sent.acked.wait()
    [message] = recorder.events
    assert isinstance(message, IncomingMessage)
    assert (message.address, message.author, message.is_for_us) == (DM, ANN, True)
    assert message.text == "hi <there> @Bob see this (https://a.b/?x=1&y=2)"
    assert message.at > 0


async def test_a_message_that_could_not_be_stored_is_not_acknowledged_and_is_delivered_again() -> None:
    async with running_slack() as (slack, _, recorder):
        recorder.errors.append(OSError("disk full"))
        sent = slack.say("store me")
        await recorder.until(lambda: not recorder.errors)
        redelivery = slack.redeliver(sent)
        await redelivery.acked.wait()
        assert not sent.acked.is_set()
    assert [message.id for message in recorder.events] == [sent.body["payload"]["event"]["ts"]]


async def test_a_redelivery_and_the_mention_event_for_a_message_have_the_same_id() -> None:
    async with running_slack() as (slack, _, recorder):
        sent = slack.say("<@UBOT> hi", "C1")
        await slack.redeliver(sent).acked.wait()
        event = sent.body["payload"]["event"]
        mention = {key: event[key] for key in ("ts", "user", "text", "channel")}
        await slack.emit({"type": "app_mention", **mention}).acked.wait()
        await sent.acked.wait()
    assert {message.id for message in recorder.events} == {event["ts"]}


async def test_messages_stay_in_order_during_a_download_and_a_button_press_does_not_wait() -> None:
    async with running_slack() as (slack, surface, recorder):
        await surface.send(DM, OutgoingMessage("working", (Button("Stop", "stop:t1"),)))
        slack.files["big.txt"] = (b"x" * 1000, "text/plain")
        slack.slow.clear()
        first = slack.say("look", subtype="file_share", files=[slack.file_object("big.txt")])
        second = slack.say("and this")
        await slack.press("Stop").acked.wait()
        assert [type(one) for one in recorder.events] == [ButtonPressed]
        slack.slow.set()
        await second.acked.wait()
        await first.acked.wait()
    assert [one.text for one in recorder.events if isinstance(one, IncomingMessage)] == ["look", "and this"]


async def test_an_edit_and_a_deletion_are_delivered_but_a_link_preview_is_not() -> None:
    async with running_slack() as (slack, _, recorder):
        sent = slack.say("helo")
        edit = slack.edit(sent, "hello")
        await edit.acked.wait()
        await slack.edit(sent, "hello").acked.wait()
        await slack.delete(sent).acked.wait()
    message_id = sent.body["payload"]["event"]["ts"]
    at = float(edit.body["payload"]["event"]["message"]["edited"]["ts"])
    assert recorder.events[1:] == [MessageEdited(message_id, DM, ANN, "hello", at), MessageDeleted(message_id, DM)]


async def test_an_edit_that_adds_a_mention_of_the_bot_is_delivered_as_a_message() -> None:
    async with running_slack() as (slack, _, recorder):
        sent = slack.say("do it", "C1")
        await slack.edit(sent, "<@UBOT> do it").acked.wait()
        other = slack.say("chatter", "C1")
        await slack.edit(other, "more chatter").acked.wait()
        await slack.delete(other).acked.wait()
    assert [(type(one), isinstance(one, IncomingMessage) and one.is_for_us) for one in recorder.events] == [
        (IncomingMessage, False),
        (IncomingMessage, True),
        (IncomingMessage, False),
    ]


async def test_files_become_attachments_with_safe_names_and_skipped_files_are_named() -> None:
    async with running_slack() as (slack, _, recorder):
        slack.files["a.png"] = (b"picture", "image/png")
        slack.files["b.txt"] = (b"words", "text/plain")
        files = [
            slack.file_object("a.png", name="../../etc/a.png"),
            slack.file_object("b.txt"),
            slack.file_object("b.txt", name="huge.bin", size=30_000_000),
            slack.file_object(
                "b.txt", name="elsewhere", url_private="https://evil.example/x", url_private_download=None
            ),
            slack.file_object("b.txt", name="drive", is_external=True),
            {"id": "b.txt", "name": "shared.txt", "file_access": "check_file_info"},
        ]
        await slack.say("look", subtype="file_share", files=files).acked.wait()
    [message] = recorder.events
    assert isinstance(message, IncomingMessage)
    assert [(one.name, one.media_type, base64.b64decode(one.data)) for one in message.attachments] == [
        ("a.png", "image/png", b"picture"),
        ("b.txt", "text/plain", b"words"),
        ("shared.txt", "text/plain", b"words"),
    ]
    assert message.text.startswith("look\n[The file huge.bin was not downloaded")
    assert message.text.count("was not downloaded") == 3
    assert all(token == f"Bearer {BOT_TOKEN}" for _, token in slack.file_requests)


async def test_a_file_larger_than_its_claimed_size_is_not_downloaded() -> None:
    async with running_slack() as (slack, _, recorder):
        slack.files["a.bin"] = (b"x" * 20_000_001, "application/octet-stream")
        await slack.say("", subtype="file_share", files=[slack.file_object("a.bin", size=5)]).acked.wait()
    [message] = recorder.events
    assert isinstance(message, IncomingMessage)
    assert not message.attachments
    assert "20 MB" in message.text


async def test_a_voice_clip_is_delivered_as_voice() -> None:
    async with running_slack() as (slack, _, recorder):
        slack.files["audio_message.m4a"] = (b"speech", "audio/mp4")
        files = [slack.file_object("audio_message.m4a", subtype="slack_audio")]
        await slack.say("", subtype="file_share", files=files).acked.wait()
    [message] = recorder.events
    assert isinstance(message, IncomingMessage)
    assert message.voice is not None
    assert (message.voice.media_type, base64.b64decode(message.voice.data)) == ("audio/mp4", b"speech")
    assert (message.text, message.attachments) == ("", ())


async def test_a_channel_message_is_addressed_to_the_bot_by_mention_or_in_a_thread_with_the_bot() -> None:
    async with running_slack() as (slack, surface, recorder):
        chatter = slack.say("lunch?", "C1")
        root = slack.say("<@UBOT>: help <@UBOB>", "C1")
        await root.acked.wait()
        thread = root.body["payload"]["event"]["ts"]
        address = Address("slack", "C1", thread)
        answer = await surface.send(address, OutgoingMessage("with which part?"))
        await slack.say("stop", "C1", thread=thread).acked.wait()
        other_thread = chatter.body["payload"]["event"]["ts"]
        await slack.say("pizza", "C1", thread=other_thread).acked.wait()
        await slack.say("<@UBOT> you too?", "C1", thread=other_thread).acked.wait()
    received = [
        (one.text, one.is_for_us, one.address.thread, one.quoted)
        for one in recorder.events
        if isinstance(one, IncomingMessage)
    ]
    assert received == [
        ("lunch?", False, other_thread, ""),
        ("help @Bob", True, thread, ""),
        ("stop", True, thread, ""),
        ("pizza", False, other_thread, ""),
        ("you too?", True, other_thread, "lunch?"),
    ]
    assert slack.messages["C1"][answer]["thread_ts"] == thread


async def test_a_thread_with_the_bot_is_recognized_after_a_restart() -> None:
    async with slack_server() as slack:
        slack.say("<@UBOT> begin", "C1")
        thread = next(iter(slack.messages["C1"]))
        surface = SlackSurface(slack_settings(slack))
        await surface.send(Address("slack", "C1", thread), OutgoingMessage("yes"))
        recorder = DeliveryRecorder()
        recorder.gate.set()
        running = asyncio.create_task(surface.run(recorder.deliver))
        await slack.say("continue", "C1", thread=thread).acked.wait()
        running.cancel()
        await asyncio.wait([running])
    assert ("continue", True) in [
        (one.text, one.is_for_us) for one in recorder.events if isinstance(one, IncomingMessage)
    ]


async def test_a_message_in_a_thread_that_slack_cannot_look_up_is_not_acknowledged_and_arrives_again() -> None:
    async with slack_server() as slack:
        slack.say("lunch?", "C1", "UBOB")
        thread = next(iter(slack.messages["C1"]))
        surface = SlackSurface(slack_settings(slack))
        await surface.send(Address("slack", "C1", thread), OutgoingMessage("yes"))
        recorder = DeliveryRecorder()
        recorder.gate.set()
        slack.failures["conversations.replies"].append(SlackFailure(status=503))
        running = asyncio.create_task(surface.run(recorder.deliver))
        first = slack.say("continue", "C1", thread=thread)
        await slack.until(lambda: not slack.failures["conversations.replies"])
        await slack.redeliver(first).acked.wait()
        running.cancel()
        await asyncio.wait([running])
    assert not first.acked.is_set()
    assert ("continue", True) in [
        (one.text, one.is_for_us) for one in recorder.events if isinstance(one, IncomingMessage)
    ]


async def test_a_reply_to_a_direct_message_starts_a_thread_and_quotes_the_first_message() -> None:
    async with running_slack() as (slack, surface, recorder):
        root_id = await surface.send(DM, OutgoingMessage("Shall I?"))
        await slack.say("yes", thread=root_id).acked.wait()
        await slack.say("really", thread=root_id).acked.wait()
    assert [(one.address.thread, one.quoted) for one in recorder.events if isinstance(one, IncomingMessage)] == [
        (root_id, "Shall I?"),
        (root_id, ""),
    ]


async def test_bot_messages_own_messages_and_join_notices_are_ignored() -> None:
    async with running_slack() as (slack, surface, recorder):
        ts = await surface.send(DM, OutgoingMessage("mine"))
        await surface.edit(DM, ts, OutgoingMessage("mine, again"))
        slack.say("beep", bot_id="BOTHER")
        slack.say("joined", subtype="channel_join")
        slack.emit({"type": "team_join", "user": {"id": "U9"}})
        slack.emit({"type": "message", "ts": 5, "text": ["not a string"]})
        await slack.say("user").acked.wait()
    assert [one.text for one in recorder.events if isinstance(one, IncomingMessage)] == ["user"]


async def test_a_button_press_is_delivered_with_its_value_and_address() -> None:
    async with running_slack() as (slack, surface, recorder):
        root = slack.say("<@UBOT> go", "C1")
        await root.acked.wait()
        address = Address("slack", "C1", root.body["payload"]["event"]["ts"])
        await surface.send(
            address, OutgoingMessage("Which?", (Button("red", "answer:q:0"), Button("blue", "answer:q:1")))
        )
        pressed = slack.press("blue", "UBOB")
        await slack.redeliver(pressed).acked.wait()
        await pressed.acked.wait()
    first, second = recorder.events[1:]
    assert isinstance(first, ButtonPressed)
    assert (first.address, first.author.id, first.value) == (address, "UBOB", "answer:q:1")
    assert first.id == second.id


async def test_a_burst_of_messages_stays_in_order() -> None:
    async with running_slack() as (slack, _, recorder):
        sent = [slack.say(f"{number} <@UBOB>") for number in range(30)]
        for one in sent:
            await one.acked.wait()
    assert [one.text for one in recorder.events if isinstance(one, IncomingMessage)] == [
        f"{number} @Bob" for number in range(30)
    ]


async def test_environment_variables_for_other_slack_programs_have_no_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CLIENT_ID", "CLIENT_SECRET", "BOT_TOKEN", "SIGNING_SECRET", "VERIFICATION_TOKEN", "SCOPES"):
        monkeypatch.setenv(f"SLACK_{name}", "of another program")
    async with running_slack() as (slack, _, recorder):
        await slack.say("hi").acked.wait()
    assert len(recorder.events) == 1
