"""What comes from Slack, through its own library: once, in order, acked when it is kept, and only what is for us."""

import asyncio
import base64

import pytest

from hark.protocol.chat import (
    Address,
    Button,
    Outgoing,
    Pressed,
    Removed,
    Rewritten,
    Written,
)
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_payloads import BOT_TOKEN
from tests.fakes.slack_server import Failure, slack_server
from tests.surfaces.slack.slack_fixture import ANN, DM, Ear, settings_for, slacking


async def test_a_text_comes_in_once_and_is_acked_only_when_it_was_delivered() -> None:
    async with slacking() as (slack, _, ear):
        ear.gate.clear()
        sent = slack.say("hi &lt;there&gt; <@UBOB> see <https://a.b/?x=1&amp;y=2|this>")
        await ear.changed.wait()
        assert not sent.acked.is_set()
        ear.gate.set()
        await sent.acked.wait()
    [message] = ear.heard
    assert isinstance(message, Written)
    assert (message.address, message.author, message.is_for_us) == (DM, ANN, True)
    assert message.text == "hi <there> @Bob see this (https://a.b/?x=1&y=2)"
    assert message.at > 0


async def test_what_could_not_be_kept_gets_no_ack_and_is_heard_when_it_comes_again() -> None:
    async with slacking() as (slack, _, ear):
        ear.failing.append(OSError("disk full"))
        sent = slack.say("keep me")
        await ear.until(lambda: not ear.failing)
        again = slack.again(sent)
        await again.acked.wait()
        assert not sent.acked.is_set()
    assert [message.id for message in ear.heard] == [sent.body["payload"]["event"]["ts"]]


async def test_a_redelivery_and_the_mention_event_of_a_message_have_its_id() -> None:
    async with slacking() as (slack, _, ear):
        sent = slack.say("<@UBOT> hi", "C1")
        await slack.again(sent).acked.wait()
        event = sent.body["payload"]["event"]
        mention = {key: event[key] for key in ("ts", "user", "text", "channel")}
        await slack.emit({"type": "app_mention", **mention}).acked.wait()
        await sent.acked.wait()
    assert {message.id for message in ear.heard} == {event["ts"]}


async def test_messages_of_one_chat_keep_their_order_while_a_file_is_fetched_and_a_button_does_not_wait() -> None:
    async with slacking() as (slack, surface, ear):
        await surface.send(DM, Outgoing("working", (Button("Stop", "stop:t1"),)))
        slack.files["big.txt"] = (b"x" * 1000, "text/plain")
        slack.slow.clear()
        first = slack.say("look", subtype="file_share", files=[slack.file("big.txt")])
        second = slack.say("and this")
        await slack.press("Stop").acked.wait()
        assert [type(one) for one in ear.heard] == [Pressed]
        slack.slow.set()
        await second.acked.wait()
        await first.acked.wait()
    assert [one.text for one in ear.heard if isinstance(one, Written)] == ["look", "and this"]


async def test_an_edit_and_a_deletion_are_told_and_a_link_preview_is_neither() -> None:
    async with slacking() as (slack, _, ear):
        sent = slack.say("helo")
        edit = slack.rewrite(sent, "hello")
        await edit.acked.wait()
        await slack.rewrite(sent, "hello").acked.wait()
        await slack.delete(sent).acked.wait()
    name = sent.body["payload"]["event"]["ts"]
    at = float(edit.body["payload"]["event"]["message"]["edited"]["ts"])
    assert ear.heard[1:] == [Rewritten(name, DM, ANN, "hello", at), Removed(name, DM)]


async def test_an_edit_that_first_names_us_is_a_message() -> None:
    async with slacking() as (slack, _, ear):
        sent = slack.say("do it", "C1")
        await slack.rewrite(sent, "<@UBOT> do it").acked.wait()
        other = slack.say("chatter", "C1")
        await slack.rewrite(other, "more chatter").acked.wait()
        await slack.delete(other).acked.wait()
    assert [(type(one), isinstance(one, Written) and one.is_for_us) for one in ear.heard] == [
        (Written, False),
        (Written, True),
        (Written, False),
    ]


async def test_files_come_as_attachments_with_harmless_names_and_what_is_left_is_said() -> None:
    async with slacking() as (slack, _, ear):
        slack.files["a.png"] = (b"picture", "image/png")
        slack.files["b.txt"] = (b"words", "text/plain")
        files = [
            slack.file("a.png", name="../../etc/a.png"),
            slack.file("b.txt"),
            slack.file("b.txt", name="huge.bin", size=30_000_000),
            slack.file("b.txt", name="elsewhere", url_private="https://evil.example/x", url_private_download=None),
            slack.file("b.txt", name="drive", is_external=True),
            {"id": "b.txt", "name": "shared.txt", "file_access": "check_file_info"},
        ]
        await slack.say("look", subtype="file_share", files=files).acked.wait()
    [message] = ear.heard
    assert isinstance(message, Written)
    assert [(one.name, one.media_type, base64.b64decode(one.data)) for one in message.attachments] == [
        ("a.png", "image/png", b"picture"),
        ("b.txt", "text/plain", b"words"),
        ("shared.txt", "text/plain", b"words"),
    ]
    assert message.text.startswith("look\n[The file huge.bin was not fetched")
    assert message.text.count("was not fetched") == 3
    assert all(token == f"Bearer {BOT_TOKEN}" for _, token in slack.file_requests)


async def test_a_file_that_is_larger_than_it_says_is_left() -> None:
    async with slacking() as (slack, _, ear):
        slack.files["a.bin"] = (b"x" * 20_000_001, "application/octet-stream")
        await slack.say("", subtype="file_share", files=[slack.file("a.bin", size=5)]).acked.wait()
    [message] = ear.heard
    assert isinstance(message, Written)
    assert not message.attachments
    assert "20 MB" in message.text


async def test_a_voice_clip_is_voice() -> None:
    async with slacking() as (slack, _, ear):
        slack.files["audio_message.m4a"] = (b"speech", "audio/mp4")
        files = [slack.file("audio_message.m4a", subtype="slack_audio")]
        await slack.say("", subtype="file_share", files=files).acked.wait()
    [message] = ear.heard
    assert isinstance(message, Written)
    assert message.voice is not None
    assert (message.voice.media_type, base64.b64decode(message.voice.data)) == ("audio/mp4", b"speech")
    assert (message.text, message.attachments) == ("", ())


async def test_in_a_channel_we_are_meant_by_name_and_in_threads_that_we_are_in() -> None:
    async with slacking() as (slack, surface, ear):
        chatter = slack.say("lunch?", "C1")
        root = slack.say("<@UBOT>: help <@UBOB>", "C1")
        await root.acked.wait()
        thread = root.body["payload"]["event"]["ts"]
        address = Address("slack", "C1", thread)
        answer = await surface.send(address, Outgoing("with what?"))
        await slack.say("stop", "C1", thread=thread).acked.wait()
        apart = chatter.body["payload"]["event"]["ts"]
        await slack.say("pizza", "C1", thread=apart).acked.wait()
        await slack.say("<@UBOT> you too?", "C1", thread=apart).acked.wait()
    heard = [(one.text, one.is_for_us, one.address.thread, one.quoted) for one in ear.heard if isinstance(one, Written)]
    assert heard == [
        ("lunch?", False, apart, ""),
        ("help @Bob", True, thread, ""),
        ("stop", True, thread, ""),
        ("pizza", False, apart, ""),
        ("you too?", True, apart, "lunch?"),
    ]
    assert slack.messages["C1"][answer]["thread_ts"] == thread


async def test_a_thread_of_ours_is_known_after_a_restart() -> None:
    async with slack_server() as slack:
        slack.say("<@UBOT> begin", "C1")
        thread = next(iter(slack.messages["C1"]))
        surface = SlackSurface(settings_for(slack))
        await surface.send(Address("slack", "C1", thread), Outgoing("yes"))
        ear = Ear()
        ear.gate.set()
        running = asyncio.create_task(surface.run(ear.deliver))
        await slack.say("go on", "C1", thread=thread).acked.wait()
        running.cancel()
        await asyncio.wait([running])
    assert ("go on", True) in [(one.text, one.is_for_us) for one in ear.heard if isinstance(one, Written)]


async def test_what_is_said_in_a_thread_of_which_slack_does_not_tell_now_is_not_acked_and_comes_again() -> None:
    async with slack_server() as slack:
        slack.say("lunch?", "C1", "UBOB")
        thread = next(iter(slack.messages["C1"]))
        surface = SlackSurface(settings_for(slack))
        await surface.send(Address("slack", "C1", thread), Outgoing("yes"))
        ear = Ear()
        ear.gate.set()
        slack.failures["conversations.replies"].append(Failure(status=503))
        running = asyncio.create_task(surface.run(ear.deliver))
        first = slack.say("go on", "C1", thread=thread)
        await slack.until(lambda: not slack.failures["conversations.replies"])
        await slack.again(first).acked.wait()
        running.cancel()
        await asyncio.wait([running])
    assert not first.acked.is_set()
    assert ("go on", True) in [(one.text, one.is_for_us) for one in ear.heard if isinstance(one, Written)]


async def test_a_reply_in_a_direct_message_is_a_thread_that_knows_what_it_replies_to() -> None:
    async with slacking() as (slack, surface, ear):
        ours = await surface.send(DM, Outgoing("Shall I?"))
        await slack.say("yes", thread=ours).acked.wait()
        await slack.say("really", thread=ours).acked.wait()
    assert [(one.address.thread, one.quoted) for one in ear.heard if isinstance(one, Written)] == [
        (ours, "Shall I?"),
        (ours, ""),
    ]


async def test_bots_and_we_ourselves_and_joins_are_not_heard() -> None:
    async with slacking() as (slack, surface, ear):
        ts = await surface.send(DM, Outgoing("mine"))
        await surface.edit(DM, ts, Outgoing("mine, again"))
        slack.say("beep", bot_id="BOTHER")
        slack.say("joined", subtype="channel_join")
        slack.emit({"type": "team_join", "user": {"id": "U9"}})
        slack.emit({"type": "message", "ts": 5, "text": ["not what it should be"]})
        await slack.say("person").acked.wait()
    assert [one.text for one in ear.heard if isinstance(one, Written)] == ["person"]


async def test_a_button_comes_back_with_its_value_and_place() -> None:
    async with slacking() as (slack, surface, ear):
        root = slack.say("<@UBOT> go", "C1")
        await root.acked.wait()
        address = Address("slack", "C1", root.body["payload"]["event"]["ts"])
        await surface.send(address, Outgoing("Which?", (Button("red", "answer:q:0"), Button("blue", "answer:q:1"))))
        pressed = slack.press("blue", "UBOB")
        await slack.again(pressed).acked.wait()
        await pressed.acked.wait()
    one, two = ear.heard[1:]
    assert isinstance(one, Pressed)
    assert (one.address, one.author.id, one.value) == (address, "UBOB", "answer:q:1")
    assert one.id == two.id


async def test_a_burst_keeps_its_order() -> None:
    async with slacking() as (slack, _, ear):
        sent = [slack.say(f"{number} <@UBOB>") for number in range(30)]
        for one in sent:
            await one.acked.wait()
    assert [one.text for one in ear.heard if isinstance(one, Written)] == [f"{number} @Bob" for number in range(30)]


async def test_settings_for_other_slack_programs_in_the_environment_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CLIENT_ID", "CLIENT_SECRET", "BOT_TOKEN", "SIGNING_SECRET", "VERIFICATION_TOKEN", "SCOPES"):
        monkeypatch.setenv(f"SLACK_{name}", "of another")
    async with slacking() as (slack, _, ear):
        await slack.say("hi").acked.wait()
    assert len(ear.heard) == 1
