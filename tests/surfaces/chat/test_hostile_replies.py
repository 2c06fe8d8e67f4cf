"""Hostile replies arrive completely on every platform, don't block the event loop, and leave the chat usable."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

import hark
from hark.app.pairing import PairingFile
from hark.cli.serve.chat_surfaces import chat_services
from hark.protocol.chat import ChatSurface
from hark.providers.scripted import ScriptedProvider, ScriptedReply
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.chat.settings import ChatSettings
from hark.surfaces.chat.streaming_reply import CURSOR
from tests.loop_lag import MAX_LAG_SECONDS, measured_loop_lag
from tests.surfaces.chat.hostile_replies import HOSTILE_REPLIES, word_numbers
from tests.surfaces.chat.platform_fixtures import DeliveryRecorder, PlatformFixture, platform_fixture
from tests.waiting import until

PLATFORMS = ["telegram", "discord", "slack", "matrix"]
CHUNK_CHARACTERS = 40


def split_chunks(text: str) -> ScriptedReply:
    """Return a reply that streams the text in small chunks."""
    return [text[start : start + CHUNK_CHARACTERS] for start in range(0, len(text), CHUNK_CHARACTERS)]


@asynccontextmanager
async def run_with_agent(
    home: Path, script: list[ScriptedReply], surface: ChatSurface, _: DeliveryRecorder
) -> AsyncGenerator[None]:
    """Run a surface with a real agent whose model sends the scripted replies."""
    async with hark.open(home=home, workspace=home, routes=[{"provider": ScriptedProvider(script)}]) as agent:
        ledger = SqliteChatLedger(home / "gateway.db")
        senders = SenderPolicy(surface.name, ("*",), PairingFile(home / "pairing.json"), 1000)
        platform = Platform(surface, ChatSettings(), senders, chat_services(agent, ledger))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(platform.run)
            yield
            tasks.cancel_scope.cancel()
        await ledger.close()


async def reply_parts(platform: PlatformFixture, first: int, numbers: list[int]) -> list[str]:
    """Wait for the complete reply that starts with message `first`, and return the texts of its messages."""

    async def find_parts() -> list[str]:
        parts = (await platform.shown_texts(0))[first:]
        text = "".join(parts)
        is_complete = bool(parts) and CURSOR not in text and len(word_numbers(text)) >= len(numbers)
        return parts if is_complete else []

    return await until(find_parts)


@pytest.mark.parametrize("name", PLATFORMS)
async def test_hostile_replies_arrive_completely_and_do_not_block_the_event_loop(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    synapse = request.getfixturevalue("synapse") if name == "matrix" else None
    replies = [*HOSTILE_REPLIES.values(), "w0x **bye**"]
    script: list[ScriptedReply] = [split_chunks(reply) for reply in replies]
    run = partial(run_with_agent, tmp_path, script)
    async with platform_fixture(name, tmp_path, synapse, run) as platform:
        count = 0
        with measured_loop_lag() as lag:
            for title, reply in zip([*HOSTILE_REPLIES, "a normal reply"], replies, strict=True):
                numbers = word_numbers(reply)
                await platform.write("go")
                parts = await reply_parts(platform, count, numbers)
                count += len(parts)
                assert word_numbers("".join(parts)) == numbers, title
                assert lag.seconds < MAX_LAG_SECONDS, title
