"""What goes to Slack: in its own markup, within its limits, never twice, and pinging nobody."""

import pytest

from hark.protocol.chat import Address, Button, ChatError, ChatGone, Outgoing
from hark.surfaces.slack.platform import SlackSettings
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_server import Failure
from tests.surfaces.slack.slack_fixture import DM, slacking


async def test_markdown_is_shown_as_slack_shows_it_and_nobody_is_pinged() -> None:
    async with slacking() as (slack, surface, _):
        await surface.send(
            DM, Outgoing("**Yes** <!channel> <@UANN> @here [a & b](https://x.y/?a=1&b=2)\n```py\na<b\n```")
        )
    assert slack.shown() == [
        "*Yes* &lt;!channel&gt; &lt;@UANN&gt; @here <https://x.y/?a=1&amp;b=2|a &amp; b>\n```\na&lt;b\n```"
    ]
    assert slack.pings == []
    [message] = slack.ours()
    assert (message["unfurl_links"], message["unfurl_media"]) == (False, False)


async def test_an_edit_takes_the_buttons_away() -> None:
    async with slacking() as (slack, surface, _):
        ts = await surface.send(DM, Outgoing("half", (Button("⏹ Stop", "stop:t"),)))
        assert [block["type"] for block in slack.ours()[0]["blocks"]] == ["section", "actions"]
        await surface.edit(DM, ts, Outgoing("the whole"))
    assert slack.ours()[0]["blocks"] == []
    assert slack.shown() == ["the whole"]


@pytest.mark.parametrize("letters", ["word ", "<&> ", "```\n" + "x & y\n" * 600 + "```"])
@pytest.mark.parametrize("buttons", [(), (Button("b" * 100, "v"),)])
async def test_the_longest_text_that_we_allow_fits_whatever_it_says(letters: str, buttons: tuple[Button, ...]) -> None:
    text = (letters * 3900)[: SlackSurface(SlackSettings()).limits.characters]
    async with slacking() as (slack, surface, _):
        ts = await surface.send(DM, Outgoing(text, buttons))
        await surface.edit(DM, ts, Outgoing(text, buttons))
    shown = slack.shown()[0].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert shown.count("&") == text.count("&")
    assert shown.count("word") == text.count("word")


async def test_markup_that_slack_refuses_is_said_plainly_and_keeps_its_buttons() -> None:
    async with slacking() as (slack, surface, _):
        slack.failures["chat.postMessage"].append(Failure("invalid_blocks"))
        ts = await surface.send(DM, Outgoing("**a** <b>", (Button("Stop", "stop:t"),)))
        assert slack.ours()[0]["blocks"][0]["text"] == {"type": "plain_text", "text": "**a** <b>"}
        slack.failures["chat.update"].append(Failure("msg_too_long"))
        await surface.edit(DM, ts, Outgoing("**a** <b>"))
        assert slack.ours()[0]["blocks"] == [{"type": "section", "text": {"type": "plain_text", "text": "**a** <b>"}}]
        slack.failures["chat.update"] += [Failure("invalid_blocks")] * 2
        await surface.edit(DM, ts, Outgoing("**a** <b>"))
    assert (slack.shown(), slack.ours()[0]["blocks"]) == (["**a** &lt;b&gt;"], [])


async def test_a_message_that_slack_takes_in_no_shape_is_not_tried_for_ever() -> None:
    async with slacking() as (slack, surface, _):
        slack.failures["chat.postMessage"] += [Failure("invalid_blocks")] * 3
        with pytest.raises(ChatGone):
            await surface.send(DM, Outgoing("hm", (Button("Stop", "stop:t"),)))
        await surface.send(DM, Outgoing("next"))
    assert slack.shown() == ["next"]


async def test_a_429_says_how_long_and_other_chats_go_on() -> None:
    async with slacking() as (slack, surface, _):
        slack.failures["chat.postMessage"].append(Failure(status=429, retry_after=7))
        with pytest.raises(ChatError) as refused:
            await surface.send(DM, Outgoing("one"))
        assert refused.value.retry_after == 7
        await surface.send(Address("slack", "C2"), Outgoing("two"))
    assert (slack.shown(), slack.shown("C2")) == ([], ["two"])


async def test_a_chat_that_is_gone_is_told_from_one_that_refuses() -> None:
    async with slacking() as (slack, surface, _):
        with pytest.raises(ChatGone):
            await surface.send(Address("slack", "C9"), Outgoing("hello?"))
        with pytest.raises(ChatGone):
            await surface.edit(DM, "1.1", Outgoing("hello?"))
        slack.failures["chat.postMessage"].append(Failure("missing_scope", needed="chat:write"))
        with pytest.raises(ChatError, match="chat:write") as refused:
            await surface.send(DM, Outgoing("hello?"))
        assert not isinstance(refused.value, ChatGone)


@pytest.mark.parametrize("failure", [Failure(is_done=True), Failure(status=503, is_done=True)])
@pytest.mark.parametrize("thread", ["", "thread"])
async def test_a_post_whose_answer_was_lost_is_found_and_not_said_twice(failure: Failure, thread: str) -> None:
    async with slacking() as (slack, surface, _):
        root = slack.say("root")
        address = Address("slack", "DANN", root.body["payload"]["event"]["ts"] if thread else "")
        slack.failures["chat.postMessage"].append(failure)
        ts = await surface.send(address, Outgoing("once", key="t1:0"))
    assert [message["ts"] for message in slack.ours()] == [ts]


async def test_a_post_that_failed_for_sure_can_be_tried_again() -> None:
    async with slacking() as (slack, surface, _):
        slack.failures["chat.postMessage"].append(Failure(status=500))
        with pytest.raises(ChatError):
            await surface.send(DM, Outgoing("twice", key="t1:0"))
        await surface.send(DM, Outgoing("twice", key="t1:0"))
    assert slack.shown() == ["twice"]


async def test_where_we_may_not_look_a_doubtful_post_says_that_it_may_be_the_second() -> None:
    async with slacking() as (slack, surface, _):
        slack.failures["chat.postMessage"].append(Failure(is_done=True))
        slack.failures["conversations.history"].append(Failure("missing_scope", needed="im:history"))
        await surface.send(DM, Outgoing("hello"))
    assert slack.shown() == ["hello", "(This may have reached you before.)\nhello"]


async def test_a_sign_takes_the_place_of_the_one_before() -> None:
    async with slacking() as (slack, surface, _):
        sent = slack.say("work")
        await sent.acked.wait()
        ts = sent.body["payload"]["event"]["ts"]
        for sign in ("⏳", "👀", "👀"):
            await surface.react(DM, ts, sign)
        with pytest.raises(ChatError):
            await surface.react(DM, ts, "🦄")
    assert slack.signs == [(ts, "eyes")]


async def test_a_status_is_shown_in_threads_and_where_slack_has_none_it_is_left_at_that() -> None:
    async with slacking() as (slack, surface, _):
        sent = slack.say("<@UBOT> work", "C1")
        address = Address("slack", "C1", sent.body["payload"]["event"]["ts"])
        await surface.typing(DM)
        await surface.typing(address)
        slack.failures["assistant.threads.setStatus"].append(Failure("missing_scope"))
        await surface.typing(address)
        await surface.typing(address)
    assert len(slack.statuses) == 1
    assert [name for name, _ in slack.calls].count("assistant.threads.setStatus") == 2


async def test_a_recording_goes_behind_its_words_or_alone() -> None:
    async with slacking() as (slack, surface, _):
        root = slack.say("speak")
        thread = root.body["payload"]["event"]["ts"]
        await surface.send(DM, Outgoing("words", voice=b"OggS..."))
        await surface.send(Address("slack", "DANN", thread), Outgoing("", voice=b"RIFF..."))
        slack.failures["files.completeUploadExternal"].append(Failure("missing_scope", needed="files:write"))
        await surface.send(DM, Outgoing("words at least", voice=b"OggS..."))
    assert slack.shown() == ["words", "words at least"]
    assert slack.uploaded == [("DANN", "", "reply.ogg", b"OggS..."), ("DANN", thread, "reply.wav", b"RIFF...")]
