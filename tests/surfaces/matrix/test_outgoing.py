"""Messages sent to Matrix are shown once, formatted correctly, and never contain the model's raw HTML."""

import asyncio
import logging
from pathlib import Path

import pytest

from hark.protocol.chat import Address, Button, ChatError, ChatGone, IncomingMessage, OutgoingMessage
from hark.surfaces.matrix.matrix_client import MatrixClient
from hark.surfaces.matrix.outgoing import MAX_CHARACTERS, voice_content
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.surface import MatrixSurface
from tests.surfaces.matrix.matrix_fixture import (
    DeliveryRecorder,
    make_matrix_surface,
    matrix_user,
    new_key,
    room_address,
    running_surface,
)
from tests.surfaces.matrix.relay import running_relay
from tests.surfaces.matrix.synapse import Synapse


def test_a_voice_reply_stays_in_the_thread_of_its_chat() -> None:
    thread = {"rel_type": "m.thread", "event_id": "$root"}
    in_thread = voice_content(
        Address("matrix", "!room", "$root"), OutgoingMessage("hi", voice=b"1"), "mxc://a/b", "audio/ogg"
    )
    assert thread.items() <= in_thread["m.relates_to"].items()
    in_room = voice_content(Address("matrix", "!room"), OutgoingMessage("hi", voice=b"1"), "mxc://a/b", "audio/ogg")
    assert "m.relates_to" not in in_room


async def test_a_message_with_the_same_key_is_sent_only_once_even_after_a_restart(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    key = new_key()
    async with matrix_user(synapse) as ann:
        surface = make_matrix_surface(synapse, bot, tmp_path)
        async with running_surface(surface):
            room = await ann.create_room_with(bot)
            first = await surface.send(room_address(room), OutgoingMessage("once", key=key))
            second = await surface.send(room_address(room), OutgoingMessage("once", key=key))
            other = await surface.send(room_address(room), OutgoingMessage("twice", key=new_key()))
        second_surface = make_matrix_surface(synapse, bot, tmp_path)
        async with running_surface(second_surface):
            third = await second_surface.send(room_address(room), OutgoingMessage("once", key=key))
        await ann.until(lambda: len(ann.texts_of(bot.id)) >= 2)
    assert first == second == third != other
    assert ann.texts_of(bot.id) == ["once", "twice"]


async def test_the_same_key_in_another_thread_sends_another_message(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    async with matrix_user(synapse) as ann, running_surface(surface):
        room = await ann.create_room_with(bot)
        root = await ann.write(room, "root")
        there = await surface.send(room_address(room, root), OutgoingMessage("there", key="k"))
        here = await surface.send(room_address(room), OutgoingMessage("here", key="k"))
        replied = await surface.send(room_address(room, root), OutgoingMessage("reply", reply_to=there, key="r"))
        await ann.until(lambda: len(ann.texts_of(bot.id)) == 3)
        relations = [event["content"].get("m.relates_to") for event in ann.events_of(bot.id)]
    assert here != there != replied
    thread = {"rel_type": "m.thread", "event_id": root}
    assert relations[0] == {**thread, "is_falling_back": True, "m.in_reply_to": {"event_id": root}}
    assert relations[1] is None
    assert relations[2] == {**thread, "is_falling_back": False, "m.in_reply_to": {"event_id": there}}


async def test_an_edit_replaces_the_text(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    async with matrix_user(synapse) as ann, running_surface(surface):
        room = await ann.create_room_with(bot)
        message = await surface.send(room_address(room), OutgoingMessage("hel"))
        await surface.edit(room_address(room), message, OutgoingMessage("**hello**"))
        await ann.until(lambda: ann.texts_of(bot.id) == ["**hello**"])
        # The homeserver itself reports this event as an edit of the message.
        event = synapse.request("GET", f"/_matrix/client/v3/rooms/{room}/event/{message}", token=bot.token)
    new = event["unsigned"]["m.relations"]["m.replace"]["content"]["m.new_content"]
    assert new["formatted_body"] == "<p><strong>hello</strong></p>"


async def test_markdown_is_rendered_and_html_from_the_model_is_escaped(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    text = (
        'See `a < b` & <script>alert(1)</script> <img src=x onerror="x">\n\n'
        "[go](javascript:alert(1)) ![p](https://evil.example/p.png)\n\n```py\nif a < b:\n    pass\n```\n@room"
    )
    async with matrix_user(synapse) as ann, running_surface(surface):
        room = await ann.create_room_with(bot)
        await surface.send(room_address(room), OutgoingMessage(text))
        await surface.send(room_address(room), OutgoingMessage('it\'s plain & <simple>\nwith "two" lines\x07'))
        await ann.until(lambda: len(ann.texts_of(bot.id)) == 2)
        formatted, plain = (event["content"] for event in ann.events_of(bot.id))
    html = formatted["formatted_body"]
    assert formatted["body"] == text
    assert "<code>a &lt; b</code> &amp; &lt;script&gt;" in html
    assert '<pre><code class="language-py">if a &lt; b:\n    pass\n</code></pre>' in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert formatted["m.mentions"] == {}
    assert "formatted_body" not in plain
    assert plain["body"] == 'it\'s plain & <simple>\nwith "two" lines'


@pytest.mark.parametrize("pattern", ["x", "漢", "😀", '"', "*a* ", "<"])
async def test_a_message_of_the_maximum_length_fits_in_every_writing_system(
    synapse: Synapse, tmp_path: Path, pattern: str
) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    assert surface.limits.characters == MAX_CHARACTERS
    text = (pattern * MAX_CHARACTERS)[:MAX_CHARACTERS].strip()
    async with matrix_user(synapse) as ann, running_surface(surface):
        room = await ann.create_room_with(bot)
        message = await surface.send(room_address(room), OutgoingMessage(text))
        await ann.until(lambda: ann.texts_of(bot.id) == [text])
        await surface.edit(room_address(room), message, OutgoingMessage(text[:-1] + "!"))
        await ann.until(lambda: ann.texts_of(bot.id) == [text[:-1] + "!"])


async def test_reactions_typing_and_a_voice_reply_are_shown(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    async with matrix_user(synapse) as ann, running_surface(surface):
        room = await ann.create_room_with(bot)
        message = await ann.write(room, "hi")
        for _ in range(2):
            await surface.react(room_address(room), message, "👀")
        await surface.show_typing(room_address(room))
        await ann.until(lambda: bot.id in ann.client.rooms[room].typing_users)
        await surface.send(room_address(room), OutgoingMessage("spoken text", voice=b"OggS sound", key="v"))
        await ann.until(lambda: bool(ann.events_of(bot.id)))
        reactions = ann.events_of(bot.id, "m.reaction")
        content = ann.events_of(bot.id)[-1]["content"]
        path = content["url"].removeprefix("mxc://")
        response = await ann.client.send(
            "GET", f"/_matrix/client/v1/media/download/{path}", headers={"Authorization": f"Bearer {bot.token}"}
        )
        audio = await response.read()
    assert [reaction["content"]["m.relates_to"]["event_id"] for reaction in reactions] == [message]
    assert (content["msgtype"], content["org.matrix.msc3245.voice"]) == ("m.audio", {})
    assert audio == b"OggS sound"


async def test_a_rate_limit_error_contains_the_wait_time(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    async with matrix_user(synapse) as ann, running_surface(surface) as recorder:
        room = await ann.create_room_with(bot)
        synapse.set_rate_limit(bot, 1, 1)
        key = new_key()
        sends = [
            surface.send(room_address(room), OutgoingMessage(f"{number}", key=f"{key}{number}")) for number in range(12)
        ]
        refused = [
            result for result in await asyncio.gather(*sends, return_exceptions=True) if isinstance(result, ChatError)
        ]
        assert refused
        assert all(error.retry_after is not None and 0 < error.retry_after < 20 for error in refused)
        await surface.show_typing(room_address(room))  # Unlimited requests still work.
        await ann.write(room, "still received")
        await recorder.wait_for(1)
        synapse.set_rate_limit(bot, 0, 0)
        await surface.send(room_address(room), OutgoingMessage("now", key=f"{key}now"))


async def test_a_room_without_access_raises_chat_gone(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    async with matrix_user(synapse) as ann, running_surface(surface):
        room = await ann.create_room_with(bot)
        await ann.client.room_kick(room, bot.id)
        with pytest.raises(ChatGone):
            await surface.send(room_address(room), OutgoingMessage("anyone?"))
        with pytest.raises(ChatGone):
            await surface.edit(room_address(room), "$none", OutgoingMessage("anyone?"))
        with pytest.raises(ChatGone):
            await surface.send(room_address("!none:hark.test"), OutgoingMessage("anyone?"))


async def test_a_lost_connection_raises_an_error_and_loses_no_message(
    synapse: Synapse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann, running_relay(synapse.port) as relay:
        surface = MatrixSurface(MatrixSettings(api_base=f"{relay.url}/"), bot.token, tmp_path, lambda _: True)
        async with running_surface(surface):
            room = await ann.create_room_with(bot)
        recorder = DeliveryRecorder()
        recorder.gate.clear()
        await ann.write(room, "one")
        running = asyncio.create_task(surface.run(recorder.deliver))
        await recorder.until(lambda: len(recorder.attempts) == 1)
        await relay.disconnect()
        with pytest.raises(ChatError, match="can't be reached"):
            await surface.send(room_address(room), OutgoingMessage("lost?", key="lost"))
        with pytest.raises(ChatError, match="can't be reached") as lost:
            await running
        await ann.write(room, "two")
        await relay.connect()
        async with running_surface(surface, DeliveryRecorder()) as later:
            assert [one.text for one in await later.wait_for(2) if isinstance(one, IncomingMessage)] == ["one", "two"]
            await surface.send(room_address(room), OutgoingMessage("lost?", key="lost"))
            await ann.until(lambda: ann.texts_of(bot.id) == ["lost?"])
    assert bot.token not in repr(lost.value)
    assert bot.token not in caplog.text


async def test_a_server_that_is_not_a_homeserver_is_reported(synapse: Synapse, tmp_path: Path) -> None:
    nowhere = MatrixSurface(MatrixSettings(api_base=f"{synapse.url}/nothing"), "secret", tmp_path, lambda _: True)
    with pytest.raises(ChatError) as error:
        await nowhere.run(DeliveryRecorder().deliver)
    assert "secret" not in str(error.value)
    with pytest.raises(ChatError, match="api_base"):
        await MatrixSurface(MatrixSettings(), "secret", tmp_path, lambda _: True).run(DeliveryRecorder().deliver)


async def test_the_stop_reaction_is_added_to_a_running_reply_and_removed_at_its_end(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    stop = (Button("⏹ Stop", "stop:t1"),)
    async with matrix_user(synapse) as ann, running_surface(surface):
        room = await ann.create_room_with(bot)
        message = await surface.send(room_address(room), OutgoingMessage("work", stop))
        await surface.edit(room_address(room), message, OutgoingMessage("working", stop))
        await ann.until(lambda: ann.texts_of(bot.id) == ["working"])
        assert len(ann.events_of(bot.id, "m.reaction")) == 1
        await surface.edit(room_address(room), message, OutgoingMessage("worked"))
        await ann.until(lambda: len(ann.events_of(bot.id, "m.room.redaction")) == 1)


async def test_the_stop_reaction_left_by_a_dead_process_is_removed_by_the_next_process(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    async with matrix_user(synapse) as ann:
        first = make_matrix_surface(synapse, bot, tmp_path)
        async with running_surface(first):
            room = await ann.create_room_with(bot)
            message = await first.send(room_address(room), OutgoingMessage("work", (Button("⏹ Stop", "stop:t1"),)))
            await ann.react(room, message, "⏹️")
        second = make_matrix_surface(synapse, bot, tmp_path)
        async with running_surface(second):
            await second.edit(room_address(room), message, OutgoingMessage("work\n\n⏹ stopped"))
            await ann.until(lambda: len(ann.events_of(bot.id, "m.room.redaction")) == 1)
            await second.edit(room_address(room), message, OutgoingMessage("once more"))
            await ann.until(lambda: ann.texts_of(bot.id) == ["once more"])
            assert len(ann.events_of(bot.id, "m.room.redaction")) == 1  # only the bot's own reaction was removed


async def test_a_reaction_replaces_the_previous_reaction(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = make_matrix_surface(synapse, bot, tmp_path)
    async with matrix_user(synapse) as ann, running_surface(surface):
        room = await ann.create_room_with(bot)
        message = await ann.write(room, "hi")
        for reaction in ("⏳", "👀", "👀", "⏳"):
            await surface.react(room_address(room), message, reaction)
        await ann.until(lambda: len(ann.events_of(bot.id, "m.room.redaction")) == 2)
        redacted = {event["redacts"] for event in ann.events_of(bot.id, "m.room.redaction")}
        reactions = [event["event_id"] for event in ann.events_of(bot.id, "m.reaction")]
    assert len(reactions) == 3
    assert [event for event in reactions if event not in redacted] == reactions[-1:]


async def test_a_request_after_the_end_of_the_connection_fails_and_opens_no_new_one(synapse: Synapse) -> None:
    client = MatrixClient(synapse.url, synapse.register("hark").token)
    await client.who_am_i()
    await client.close()
    with pytest.raises(ChatError, match="closed"):
        await client.send_event("!room:hark.test", "m.room.message", {"body": "late"}, new_key())
