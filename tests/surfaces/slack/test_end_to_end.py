"""Slack with a real agent: a message arrives, the reply streams, and a button press stops the turn."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from msgspec import structs

import hark
from hark.app.pairing import PairingFile
from hark.cli.serve.chat_surfaces import chat_services
from hark.protocol.messages import UserMessage
from hark.protocol.provider import CallChunk, Request
from hark.providers.scripted import Hang, ScriptedProvider, ScriptedReply
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_server import SlackFailure, SlackServer, slack_server
from tests.surfaces.slack.slack_fixture import slack_settings


@asynccontextmanager
async def running_agent(
    slack: SlackServer, home: Path, script: Sequence[ScriptedReply]
) -> AsyncGenerator[ScriptedProvider]:
    settings = structs.replace(slack_settings(slack), allow=("UANN",))
    provider = ScriptedProvider(script)

    async with hark.open(home=home, workspace=home, routes=[{"provider": provider}]) as agent:
        ledger = SqliteChatLedger(home / "gateway.db")
        senders = SenderPolicy("slack", settings.allow, PairingFile(home / "pairing.json"), settings.per_minute)
        services = chat_services(agent, ledger)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Platform(SlackSurface(settings), settings, senders, services).run)
            yield provider
            tasks.cancel_scope.cancel()
        await ledger.close()


def user_texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


async def test_a_reply_streams_and_the_stop_button_stops_the_turn(tmp_path: Path) -> None:
    hang = Hang()
    async with (
        slack_server() as slack,
        running_agent(slack, tmp_path, [["**half** of it ", hang], ["next"]]) as provider,
    ):
        sent = slack.say("<@UBOT> go", "C1")
        await sent.acked.wait()
        await slack.until(lambda: any("half" in text for text in slack.bot_texts("C1")))
        await slack.press("Stop").acked.wait()
        await slack.until(lambda: slack.bot_texts("C1") == ["*half* of it\n\n⏹ stopped"])
        thread = sent.body["payload"]["event"]["ts"]
        slack.say("and now?", "C1", thread=thread)
        await slack.until(lambda: slack.bot_texts("C1") == ["*half* of it\n\n⏹ stopped", "next"])
        await slack.until(lambda: (thread, "eyes") in slack.reactions)
    assert hang.closed.is_set()
    assert [message["thread_ts"] for message in slack.bot_messages("C1")] == [thread, thread]
    assert all(message["blocks"] == [] for message in slack.bot_messages("C1"))
    assert user_texts(provider.requests[-1]) == ["go", "and now?"]


async def test_redeliveries_rate_limits_and_lost_connections_cause_no_loss_and_no_duplicate(tmp_path: Path) -> None:
    async with slack_server() as slack, running_agent(slack, tmp_path, [["one"], ["two"]]) as provider:
        slack.failures["chat.postMessage"] += [SlackFailure(status=429, retry_after=0), SlackFailure(is_done=True)]
        sent = slack.say("first")
        await sent.acked.wait()
        await slack.redeliver(sent).acked.wait()
        await slack.until(lambda: slack.bot_texts() == ["one"])
        slack.drop()
        await slack.until(lambda: not slack.sockets)
        slack.redeliver(sent)
        slack.say("second")
        await slack.until(lambda: slack.bot_texts() == ["one", "two"])
    assert [user_texts(request)[-1] for request in provider.requests] == ["first", "second"]


async def test_a_stop_word_in_a_thread_stops_the_turn_and_a_button_answers_a_question(tmp_path: Path) -> None:
    hang = Hang()
    call = CallChunk(0, "c1", "ask", '{"question": "which?", "choices": ["red", "blue"]}')
    async with slack_server() as slack, running_agent(slack, tmp_path, [[call], ["so be it", hang]]):
        sent = slack.say("<@UBOT> choose", "C1")
        await slack.until(lambda: any("which?" in text for text in slack.bot_texts("C1")))
        slack.press("blue")
        await slack.until(lambda: any("so be it" in text for text in slack.bot_texts("C1")))
        slack.say("Stop", "C1", thread=sent.body["payload"]["event"]["ts"])
        await slack.until(lambda: any("⏹ stopped" in text for text in slack.bot_texts("C1")))
    assert hang.closed.is_set()


async def test_an_unknown_sender_only_receives_a_pairing_code(tmp_path: Path) -> None:
    async with slack_server() as slack, running_agent(slack, tmp_path, []) as provider:
        await slack.say("let me in", user="UBOB").acked.wait()
        [text] = slack.bot_texts()
    assert "hark pair approve" in text
    assert not provider.requests
