"""Markup that can't be rendered, or that a platform refuses, is replaced by plain text. No text is lost."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.chat import Button, ChatGone, OutgoingMessage
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.markup_fallback import MarkupRefused, send_with_fallback
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.matrix.matrix_client import MatrixClient
from tests.fakes import slack_server
from tests.loop_lag import MAX_LAG_SECONDS, measured_loop_lag
from tests.surfaces.chat.platform_fixtures import (
    DiscordFixture,
    MatrixFixture,
    PlatformFixture,
    SlackFixture,
    TelegramFixture,
    platform_fixture,
)

PLATFORMS = ["telegram", "discord", "slack", "matrix"]
TEXT = "**a** [b](https://c.d) <e> & `f`"


def refuse_markup_once(platform: PlatformFixture, patch: pytest.MonkeyPatch) -> None:
    """Make the platform refuse the markup of the next message."""
    match platform:
        case TelegramFixture(server=server):
            server.refuses_markup = "Bad Request: can't parse entities: Unsupported start tag"
        case DiscordFixture(server=server):
            server.fail("POST", "/messages", 400, 50035, "Invalid Form Body")
        case SlackFixture(slack=slack):
            slack.failures["chat.postMessage"].append(slack_server.SlackFailure("invalid_blocks"))
        case MatrixFixture():
            send_event = MatrixClient.send_event

            async def refuse_html(client: MatrixClient, room: str, kind: str, content: dict[str, Any], key: str) -> str:
                if "formatted_body" in content:
                    raise ChatGone("M_TOO_LARGE")
                return await send_event(client, room, kind, content, key)

            patch.setattr(MatrixClient, "send_event", refuse_html)
        case _:
            raise AssertionError(platform)


OpenPlatform = Callable[[], AbstractAsyncContextManager[PlatformFixture]]


@pytest.fixture(params=PLATFORMS)
def open_platform(request: pytest.FixtureRequest, tmp_path: Path) -> OpenPlatform:
    synapse = request.getfixturevalue("synapse") if request.param == "matrix" else None
    return lambda: platform_fixture(request.param, tmp_path, synapse)


@pytest.mark.parametrize("error", [RecursionError, ValueError, AttributeError, AssertionError, MemoryError])
async def test_a_reply_is_sent_as_plain_text_when_its_rendering_fails(
    open_platform: OpenPlatform, tmp_path: Path, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise error("a bug")

    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    async with open_platform() as platform:
        outbox = Outbox(platform.surface, platform.address, ledger)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("markdown_it.MarkdownIt.parse", fail)
            posted = await outbox.send("one", OutgoingMessage(TEXT))
            await outbox.edit(posted.id, OutgoingMessage(f"{TEXT} g"), is_last=True)
        await outbox.send_text("two", "next")
        first, second = await platform.shown_texts(2)
        assert (first, second) == (f"{TEXT} g", "next")
    await ledger.close()


async def test_a_reply_is_sent_once_as_plain_text_when_the_platform_refuses_its_markup(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_platform() as platform:
        refuse_markup_once(platform, monkeypatch)
        await platform.surface.send(platform.address, OutgoingMessage(TEXT, key="s.t1:0"))
        monkeypatch.undo()
        assert await platform.shown_texts(1) == [TEXT]
        await platform.surface.send(platform.address, OutgoingMessage("next", (Button("a", "b"),), key="s.t1:1"))
        assert len(await platform.shown_texts(2)) == 2


async def test_a_form_of_a_message_is_skipped_when_it_is_too_long_or_fails_or_is_refused() -> None:
    sent: list[str] = []

    async def send(form: str) -> int:
        sent.append(form)
        if form == "refused":
            raise MarkupRefused("no")
        return len(sent)

    assert await send_with_fallback([lambda: None, lambda: str(1 / 0), lambda: "refused", lambda: "plain"], send) == 2
    assert sent == ["refused", "plain"]


async def test_a_message_that_is_refused_in_every_form_is_dropped() -> None:
    async def refuse(form: str) -> None:
        raise MarkupRefused("no")

    with pytest.raises(ChatGone):
        await send_with_fallback([lambda: "a", lambda: "b"], refuse)


async def test_rendering_does_not_block_the_event_loop() -> None:
    def render() -> str:
        end = time.thread_time() + 4 * MAX_LAG_SECONDS
        while time.thread_time() < end:
            pass
        return "done"

    async def send(form: str) -> str:
        return form

    with measured_loop_lag() as lag:
        assert await send_with_fallback([render], send) == "done"
    assert lag.seconds < MAX_LAG_SECONDS
