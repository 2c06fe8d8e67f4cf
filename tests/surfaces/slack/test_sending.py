"""Messages to Slack are sent as mrkdwn, within the rate limits, never twice, and without pinging users."""

import pytest

from hark.protocol.chat import Address, Button, ChatError, ChatGone, OutgoingMessage
from hark.surfaces.slack.platform import SlackSettings
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_server import SlackFailure
from tests.surfaces.slack.slack_fixture import DM, running_slack


async def test_markdown_is_sent_as_mrkdwn_and_pings_no_user() -> None:
    async with running_slack() as (slack, surface, _):
        await surface.send(
            DM, OutgoingMessage("**Yes** <!channel> <@UANN> @here [a & b](https://x.y/?a=1&b=2)\n```py\na<b\n```")
        )
    assert slack.bot_texts() == [
        "*Yes* &lt;!channel&gt; &lt;@UANN&gt; @here <https://x.y/?a=1&amp;b=2|a &amp; b>\n```\na&lt;b\n```"
    ]
    assert slack.pings == []
    [message] = slack.bot_messages()
    assert (message["unfurl_links"], message["unfurl_media"]) == (False, False)


async def test_an_edit_without_buttons_removes_the_buttons() -> None:
    async with running_slack() as (slack, surface, _):
        ts = await surface.send(DM, OutgoingMessage("half", (Button("⏹ Stop", "stop:t"),)))
        assert [block["type"] for block in slack.bot_messages()[0]["blocks"]] == ["section", "actions"]
        await surface.edit(DM, ts, OutgoingMessage("complete"))
    assert slack.bot_messages()[0]["blocks"] == []
    assert slack.bot_texts() == ["complete"]


@pytest.mark.parametrize("pattern", ["word ", "<&> ", "```\n" + "x & y\n" * 600 + "```"])
@pytest.mark.parametrize("buttons", [(), (Button("b" * 100, "v"),)])
async def test_a_text_of_the_maximum_length_is_always_accepted(pattern: str, buttons: tuple[Button, ...]) -> None:
    text = (pattern * 3900)[: SlackSurface(SlackSettings()).limits.characters]
    async with running_slack() as (slack, surface, _):
        ts = await surface.send(DM, OutgoingMessage(text, buttons))
        await surface.edit(DM, ts, OutgoingMessage(text, buttons))
    shown = slack.bot_texts()[0].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert shown.count("&") == text.count("&")
    assert shown.count("word") == text.count("word")


async def test_refused_markup_is_sent_as_plain_text_and_keeps_its_buttons() -> None:
    async with running_slack() as (slack, surface, _):
        slack.failures["chat.postMessage"].append(SlackFailure("invalid_blocks"))
        ts = await surface.send(DM, OutgoingMessage("**a** <b>", (Button("Stop", "stop:t"),)))
        assert slack.bot_messages()[0]["blocks"][0]["text"] == {"type": "plain_text", "text": "**a** <b>"}
        slack.failures["chat.update"].append(SlackFailure("msg_too_long"))
        await surface.edit(DM, ts, OutgoingMessage("**a** <b>"))
        assert slack.bot_messages()[0]["blocks"] == [
            {"type": "section", "text": {"type": "plain_text", "text": "**a** <b>"}}
        ]
        slack.failures["chat.update"] += [SlackFailure("invalid_blocks")] * 2
        await surface.edit(DM, ts, OutgoingMessage("**a** <b>"))
    assert (slack.bot_texts(), slack.bot_messages()[0]["blocks"]) == (["**a** &lt;b&gt;"], [])


async def test_a_message_that_slack_refuses_in_every_layout_is_not_retried_forever() -> None:
    async with running_slack() as (slack, surface, _):
        slack.failures["chat.postMessage"] += [SlackFailure("invalid_blocks")] * 3
        with pytest.raises(ChatGone):
            await surface.send(DM, OutgoingMessage("hm", (Button("Stop", "stop:t"),)))
        await surface.send(DM, OutgoingMessage("next"))
    assert slack.bot_texts() == ["next"]


async def test_a_rate_limit_is_reported_with_its_wait_time_and_does_not_affect_other_chats() -> None:
    async with running_slack() as (slack, surface, _):
        slack.failures["chat.postMessage"].append(SlackFailure(status=429, retry_after=7))
        with pytest.raises(ChatError) as caught:
            await surface.send(DM, OutgoingMessage("one"))
        assert caught.value.retry_after == 7
        await surface.send(Address("slack", "C2"), OutgoingMessage("two"))
    assert (slack.bot_texts(), slack.bot_texts("C2")) == ([], ["two"])


async def test_a_missing_chat_raises_chat_gone_but_a_missing_scope_does_not() -> None:
    async with running_slack() as (slack, surface, _):
        with pytest.raises(ChatGone):
            await surface.send(Address("slack", "C9"), OutgoingMessage("hello?"))
        with pytest.raises(ChatGone):
            await surface.edit(DM, "1.1", OutgoingMessage("hello?"))
        slack.failures["chat.postMessage"].append(SlackFailure("missing_scope", needed="chat:write"))
        with pytest.raises(ChatError, match="chat:write") as caught:
            await surface.send(DM, OutgoingMessage("hello?"))
        assert not isinstance(caught.value, ChatGone)


@pytest.mark.parametrize("failure", [SlackFailure(is_done=True), SlackFailure(status=503, is_done=True)])
@pytest.mark.parametrize("thread", ["", "thread"])
async def test_a_post_whose_response_was_lost_is_found_and_not_repeated(failure: SlackFailure, thread: str) -> None:
    async with running_slack() as (slack, surface, _):
        root = slack.say("root")
        address = Address("slack", "DANN", root.body["payload"]["event"]["ts"] if thread else "")
        slack.failures["chat.postMessage"].append(failure)
        ts = await surface.send(address, OutgoingMessage("once", key="t1:0"))
    assert [message["ts"] for message in slack.bot_messages()] == [ts]


async def test_a_post_that_definitely_failed_can_be_retried() -> None:
    async with running_slack() as (slack, surface, _):
        slack.failures["chat.postMessage"].append(SlackFailure(status=500))
        with pytest.raises(ChatError):
            await surface.send(DM, OutgoingMessage("twice", key="t1:0"))
        await surface.send(DM, OutgoingMessage("twice", key="t1:0"))
    assert slack.bot_texts() == ["twice"]


async def test_a_post_with_unknown_result_is_resent_as_a_possible_duplicate_if_the_history_is_unreadable() -> None:
    async with running_slack() as (slack, surface, _):
        slack.failures["chat.postMessage"].append(SlackFailure(is_done=True))
        slack.failures["conversations.history"].append(SlackFailure("missing_scope", needed="im:history"))
        await surface.send(DM, OutgoingMessage("hello"))
    assert slack.bot_texts() == ["hello", "(This may have reached you before.)\nhello"]


async def test_a_reaction_replaces_the_previous_reaction() -> None:
    async with running_slack() as (slack, surface, _):
        sent = slack.say("work")
        await sent.acked.wait()
        ts = sent.body["payload"]["event"]["ts"]
        for reaction in ("⏳", "👀", "👀"):
            await surface.react(DM, ts, reaction)
        with pytest.raises(ChatError):
            await surface.react(DM, ts, "🦄")
    assert slack.reactions == [(ts, "eyes")]


async def test_a_typing_status_is_shown_in_threads_and_not_retried_after_a_refusal() -> None:
    async with running_slack() as (slack, surface, _):
        sent = slack.say("<@UBOT> work", "C1")
        address = Address("slack", "C1", sent.body["payload"]["event"]["ts"])
        await surface.show_typing(DM)
        await surface.show_typing(address)
        slack.failures["assistant.threads.setStatus"].append(SlackFailure("missing_scope"))
        await surface.show_typing(address)
        await surface.show_typing(address)
    assert len(slack.statuses) == 1
    assert [name for name, _ in slack.calls].count("assistant.threads.setStatus") == 2


async def test_a_voice_recording_is_sent_after_its_text_or_alone() -> None:
    async with running_slack() as (slack, surface, _):
        root = slack.say("speak")
        thread = root.body["payload"]["event"]["ts"]
        await surface.send(DM, OutgoingMessage("text", voice=b"OggS..."))
        await surface.send(Address("slack", "DANN", thread), OutgoingMessage("", voice=b"RIFF..."))
        slack.failures["files.completeUploadExternal"].append(SlackFailure("missing_scope", needed="files:write"))
        await surface.send(DM, OutgoingMessage("text at least", voice=b"OggS..."))
    assert slack.bot_texts() == ["text", "text at least"]
    assert slack.uploaded == [("DANN", "", "reply.ogg", b"OggS..."), ("DANN", thread, "reply.wav", b"RIFF...")]
