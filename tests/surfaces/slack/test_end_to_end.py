"""Slack with a real agent behind it: a message comes in, the reply streams out, and one tap stops it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from msgspec import structs

import hark
from hark.app.pairing import Pairing
from hark.cli.serve.chat_surfaces import house_of
from hark.protocol.messages import UserMessage
from hark.protocol.provider import CallChunk, Request
from hark.providers.scripted import Hang, Reply, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.people import People
from hark.surfaces.chat.platform import Platform
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_server import Failure, FakeSlack, slack_server
from tests.surfaces.slack.slack_fixture import settings_for


@asynccontextmanager
async def agent_on(slack: FakeSlack, home: Path, script: Sequence[Reply]) -> AsyncGenerator[ScriptedProvider]:
    settings = structs.replace(settings_for(slack), allow=("UANN",))
    provider = ScriptedProvider(script)

    async with hark.open(home=home, workspace=home, routes=[{"provider": provider}]) as agent:
        ledger = SqliteChatLedger(home / "gateway.db")
        people = People("slack", settings.allow, Pairing(home / "pairing.json"), settings.per_minute)
        house = house_of(agent, ledger)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Platform(SlackSurface(settings), settings, people, house).run)
            yield provider
            tasks.cancel_scope.cancel()
        await ledger.close()


def said(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


async def test_a_reply_streams_and_the_stop_button_ends_it(tmp_path: Path) -> None:
    hang = Hang()
    async with slack_server() as slack, agent_on(slack, tmp_path, [["**half** of it ", hang], ["next"]]) as provider:
        sent = slack.say("<@UBOT> go", "C1")
        await sent.acked.wait()
        await slack.until(lambda: any("half" in text for text in slack.shown("C1")))
        await slack.press("Stop").acked.wait()
        await slack.until(lambda: slack.shown("C1") == ["*half* of it\n\n⏹ stopped"])
        thread = sent.body["payload"]["event"]["ts"]
        slack.say("and now?", "C1", thread=thread)
        await slack.until(lambda: slack.shown("C1") == ["*half* of it\n\n⏹ stopped", "next"])
        await slack.until(lambda: (thread, "eyes") in slack.signs)
    assert hang.closed.is_set()
    assert [message["thread_ts"] for message in slack.ours("C1")] == [thread, thread]
    assert all(message["blocks"] == [] for message in slack.ours("C1"))
    assert said(provider.requests[-1]) == ["go", "and now?"]


async def test_redeliveries_a_429_and_a_lost_connection_lose_and_double_nothing(tmp_path: Path) -> None:
    async with slack_server() as slack, agent_on(slack, tmp_path, [["one"], ["two"]]) as provider:
        slack.failures["chat.postMessage"] += [Failure(status=429, retry_after=0), Failure(is_done=True)]
        sent = slack.say("first")
        await sent.acked.wait()
        await slack.again(sent).acked.wait()
        await slack.until(lambda: slack.shown() == ["one"])
        slack.drop()
        await slack.until(lambda: not slack.sockets)
        slack.again(sent)
        slack.say("second")
        await slack.until(lambda: slack.shown() == ["one", "two"])
    assert [said(request)[-1] for request in provider.requests] == ["first", "second"]


async def test_a_stop_word_in_a_thread_stops_and_a_question_is_answered_by_a_button(tmp_path: Path) -> None:
    hang = Hang()
    call = CallChunk(0, "c1", "ask", '{"question": "which?", "choices": ["red", "blue"]}')
    async with slack_server() as slack, agent_on(slack, tmp_path, [[call], ["so be it", hang]]):
        sent = slack.say("<@UBOT> choose", "C1")
        await slack.until(lambda: any("which?" in text for text in slack.shown("C1")))
        slack.press("blue")
        await slack.until(lambda: any("so be it" in text for text in slack.shown("C1")))
        slack.say("Stop", "C1", thread=sent.body["payload"]["event"]["ts"])
        await slack.until(lambda: any("⏹ stopped" in text for text in slack.shown("C1")))
    assert hang.closed.is_set()


async def test_a_stranger_gets_a_code_and_nothing_else(tmp_path: Path) -> None:
    async with slack_server() as slack, agent_on(slack, tmp_path, []) as provider:
        await slack.say("let me in", user="UBOB").acked.wait()
        [text] = slack.shown()
    assert "hark pair approve" in text
    assert not provider.requests
