"""What we say is shown once, as it is meant, and never as markup that the model made up."""

import asyncio
import logging
from pathlib import Path

import pytest

from hark.protocol.chat import Button, ChatError, ChatGone, Outgoing, Written
from hark.surfaces.matrix.outgoing import CHARACTERS
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.surface import Matrix
from tests.surfaces.matrix.matrix_fixture import Inbox, at_work, home, matrix, new_key, person
from tests.surfaces.matrix.relay import relay
from tests.surfaces.matrix.synapse import Synapse


async def test_the_same_key_is_sent_once_also_by_the_next_process(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    key = new_key()
    async with person(synapse) as ann:
        surface = matrix(synapse, bot, tmp_path)
        async with at_work(surface):
            room = await ann.room_with(bot)
            first = await surface.send(home(room), Outgoing("once", key=key))
            second = await surface.send(home(room), Outgoing("once", key=key))
            other = await surface.send(home(room), Outgoing("twice", key=new_key()))
        again = matrix(synapse, bot, tmp_path)
        async with at_work(again):
            third = await again.send(home(room), Outgoing("once", key=key))
        await ann.until(lambda: len(ann.texts_of(bot.id)) >= 2)
    assert first == second == third != other
    assert ann.texts_of(bot.id) == ["once", "twice"]


async def test_the_same_key_in_another_thread_is_another_message(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    async with person(synapse) as ann, at_work(surface):
        room = await ann.room_with(bot)
        root = await ann.write(room, "root")
        there = await surface.send(home(room, root), Outgoing("there", key="k"))
        here = await surface.send(home(room), Outgoing("here", key="k"))
        replied = await surface.send(home(room, root), Outgoing("reply", reply_to=there, key="r"))
        await ann.until(lambda: len(ann.texts_of(bot.id)) == 3)
        relations = [event["content"].get("m.relates_to") for event in ann.events_of(bot.id)]
    assert here != there != replied
    thread = {"rel_type": "m.thread", "event_id": root}
    assert relations[0] == {**thread, "is_falling_back": True, "m.in_reply_to": {"event_id": root}}
    assert relations[1] is None
    assert relations[2] == {**thread, "is_falling_back": False, "m.in_reply_to": {"event_id": there}}


async def test_an_edit_replaces_the_text(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    async with person(synapse) as ann, at_work(surface):
        room = await ann.room_with(bot)
        message = await surface.send(home(room), Outgoing("hel"))
        await surface.edit(home(room), message, Outgoing("**hello**"))
        await ann.until(lambda: ann.texts_of(bot.id) == ["**hello**"])
        # The homeserver itself says that it is an edit of that message.
        event = synapse.ask("GET", f"/_matrix/client/v3/rooms/{room}/event/{message}", token=bot.token)
    new = event["unsigned"]["m.relations"]["m.replace"]["content"]["m.new_content"]
    assert new["formatted_body"] == "<p><strong>hello</strong></p>"


async def test_markdown_is_shown_and_html_of_the_model_is_not(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    text = (
        'See `a < b` & <script>alert(1)</script> <img src=x onerror="x">\n\n'
        "[go](javascript:alert(1)) ![p](https://evil.example/p.png)\n\n```py\nif a < b:\n    pass\n```\n@room"
    )
    async with person(synapse) as ann, at_work(surface):
        room = await ann.room_with(bot)
        await surface.send(home(room), Outgoing(text))
        await surface.send(home(room), Outgoing('it\'s plain & <simple>\nwith "two" lines\x07'))
        await ann.until(lambda: len(ann.texts_of(bot.id)) == 2)
        marked, plain = (event["content"] for event in ann.events_of(bot.id))
    html = marked["formatted_body"]
    assert marked["body"] == text
    assert "<code>a &lt; b</code> &amp; &lt;script&gt;" in html
    assert '<pre><code class="language-py">if a &lt; b:\n    pass\n</code></pre>' in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert marked["m.mentions"] == {}
    assert "formatted_body" not in plain
    assert plain["body"] == 'it\'s plain & <simple>\nwith "two" lines'


@pytest.mark.parametrize("letter", ["x", "漢", "😀", '"', "*a* ", "<"])
async def test_the_longest_message_fits_in_whatever_script(synapse: Synapse, tmp_path: Path, letter: str) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    assert surface.limits.characters == CHARACTERS
    text = (letter * CHARACTERS)[:CHARACTERS].strip()
    async with person(synapse) as ann, at_work(surface):
        room = await ann.room_with(bot)
        message = await surface.send(home(room), Outgoing(text))
        await ann.until(lambda: ann.texts_of(bot.id) == [text])
        await surface.edit(home(room), message, Outgoing(text[:-1] + "!"))
        await ann.until(lambda: ann.texts_of(bot.id) == [text[:-1] + "!"])


async def test_signs_typing_and_a_voice_reply_are_shown(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    async with person(synapse) as ann, at_work(surface):
        room = await ann.room_with(bot)
        message = await ann.write(room, "hi")
        for _ in range(2):
            await surface.react(home(room), message, "👀")
        await surface.typing(home(room))
        await ann.until(lambda: bot.id in ann.client.rooms[room].typing_users)
        await surface.send(home(room), Outgoing("as said", voice=b"OggS sound", key="v"))
        await ann.until(lambda: bool(ann.events_of(bot.id)))
        signs = ann.events_of(bot.id, "m.reaction")
        content = ann.events_of(bot.id)[-1]["content"]
        path = content["url"].removeprefix("mxc://")
        spoken = await ann.client.send(
            "GET", f"/_matrix/client/v1/media/download/{path}", headers={"Authorization": f"Bearer {bot.token}"}
        )
        sound = await spoken.read()
    assert [sign["content"]["m.relates_to"]["event_id"] for sign in signs] == [message]
    assert (content["msgtype"], content["org.matrix.msc3245.voice"]) == ("m.audio", {})
    assert sound == b"OggS sound"


async def test_too_many_requests_tell_how_long_to_wait(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    async with person(synapse) as ann, at_work(surface) as inbox:
        room = await ann.room_with(bot)
        synapse.limit(bot, 1, 1)
        key = new_key()
        sends = [surface.send(home(room), Outgoing(f"{number}", key=f"{key}{number}")) for number in range(12)]
        refused = [one for one in await asyncio.gather(*sends, return_exceptions=True) if isinstance(one, ChatError)]
        assert refused
        assert all(one.retry_after is not None and 0 < one.retry_after < 20 for one in refused)
        await surface.typing(home(room))  # what is not limited goes on
        await ann.write(room, "still heard")
        await inbox.of(1)
        synapse.limit(bot, 0, 0)
        await surface.send(home(room), Outgoing("now", key=f"{key}now"))


async def test_a_room_that_is_closed_to_us_is_gone(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    async with person(synapse) as ann, at_work(surface):
        room = await ann.room_with(bot)
        await ann.client.room_kick(room, bot.id)
        with pytest.raises(ChatGone):
            await surface.send(home(room), Outgoing("anyone?"))
        with pytest.raises(ChatGone):
            await surface.edit(home(room), "$none", Outgoing("anyone?"))
        with pytest.raises(ChatGone):
            await surface.send(home("!none:hark.test"), Outgoing("anyone?"))


async def test_a_lost_connection_is_an_error_and_nothing_is_lost_by_it(
    synapse: Synapse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bot = synapse.register("hark")
    async with person(synapse) as ann, relay(synapse.port) as way:
        surface = Matrix(MatrixSettings(api_base=f"{way.url}/"), bot.token, tmp_path, lambda _: True)
        async with at_work(surface):
            room = await ann.room_with(bot)
        inbox = Inbox()
        inbox.free.clear()
        await ann.write(room, "one")
        running = asyncio.create_task(surface.run(inbox.deliver))
        await inbox.until(lambda: len(inbox.begun) == 1)
        await way.cut()
        with pytest.raises(ChatError, match="can't be reached"):
            await surface.send(home(room), Outgoing("lost?", key="lost"))
        with pytest.raises(ChatError, match="can't be reached") as lost:
            await running
        await ann.write(room, "two")
        await way.mend()
        async with at_work(surface, Inbox()) as later:
            assert [one.text for one in await later.of(2) if isinstance(one, Written)] == ["one", "two"]
            await surface.send(home(room), Outgoing("lost?", key="lost"))
            await ann.until(lambda: ann.texts_of(bot.id) == ["lost?"])
    assert bot.token not in repr(lost.value)
    assert bot.token not in caplog.text


async def test_a_server_that_is_none_is_said_to_be(synapse: Synapse, tmp_path: Path) -> None:
    nowhere = Matrix(MatrixSettings(api_base=f"{synapse.url}/nothing"), "secret", tmp_path, lambda _: True)
    with pytest.raises(ChatError) as error:
        await nowhere.run(Inbox().deliver)
    assert "secret" not in str(error.value)
    with pytest.raises(ChatError, match="api_base"):
        await Matrix(MatrixSettings(), "secret", tmp_path, lambda _: True).run(Inbox().deliver)


async def test_the_stop_sign_is_put_under_a_running_reply_and_taken_away_at_its_end(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    stop = (Button("⏹ Stop", "stop:t1"),)
    async with person(synapse) as ann, at_work(surface):
        room = await ann.room_with(bot)
        message = await surface.send(home(room), Outgoing("work", stop))
        await surface.edit(home(room), message, Outgoing("working", stop))
        await ann.until(lambda: ann.texts_of(bot.id) == ["working"])
        assert len(ann.events_of(bot.id, "m.reaction")) == 1
        await surface.edit(home(room), message, Outgoing("worked"))
        await ann.until(lambda: len(ann.events_of(bot.id, "m.room.redaction")) == 1)


async def test_the_stop_sign_of_a_process_that_died_is_taken_away_by_the_next(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    async with person(synapse) as ann:
        first = matrix(synapse, bot, tmp_path)
        async with at_work(first):
            room = await ann.room_with(bot)
            message = await first.send(home(room), Outgoing("work", (Button("⏹ Stop", "stop:t1"),)))
            await ann.react(room, message, "⏹️")
        second = matrix(synapse, bot, tmp_path)
        async with at_work(second):
            await second.edit(home(room), message, Outgoing("work\n\n⏹ stopped"))
            await ann.until(lambda: len(ann.events_of(bot.id, "m.room.redaction")) == 1)
            await second.edit(home(room), message, Outgoing("once more"))
            await ann.until(lambda: ann.texts_of(bot.id) == ["once more"])
            assert len(ann.events_of(bot.id, "m.room.redaction")) == 1  # and nobody else's


async def test_a_sign_takes_the_place_of_the_one_before(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    surface = matrix(synapse, bot, tmp_path)
    async with person(synapse) as ann, at_work(surface):
        room = await ann.room_with(bot)
        message = await ann.write(room, "hi")
        for sign in ("⏳", "👀", "👀", "⏳"):
            await surface.react(home(room), message, sign)
        await ann.until(lambda: len(ann.events_of(bot.id, "m.room.redaction")) == 2)
        gone = {event["redacts"] for event in ann.events_of(bot.id, "m.room.redaction")}
        put = [event["event_id"] for event in ann.events_of(bot.id, "m.reaction")]
    assert len(put) == 3
    assert [event for event in put if event not in gone] == put[-1:]
