"""Matrix end to end: a user's client, a real homeserver and a real agent."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

import hark
from hark.app.pairing import PairingFile
from hark.cli.serve.chat_surfaces import chat_services
from hark.protocol.chat import Author
from hark.protocol.messages import UserMessage
from hark.providers.scripted import Hang, ScriptedProvider, ScriptedReply
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.surface import MatrixSurface
from tests.surfaces.matrix.matrix_fixture import MatrixUser, matrix_user
from tests.surfaces.matrix.synapse import Account, Synapse


@asynccontextmanager
async def running_agent(
    synapse: Synapse, bot: Account, home: Path, allowed_user: str, script: list[ScriptedReply]
) -> AsyncGenerator[ScriptedProvider]:
    """Run a real agent with a Matrix account. `allowed_user` is paired."""
    settings = MatrixSettings(api_base=synapse.url)
    pairing = PairingFile(home / "pairing.json")
    pairing.approve(pairing.request_pairing("matrix", Author(allowed_user), "LETMEIN2"))
    provider = ScriptedProvider(script)

    async with hark.open(home=home, workspace=home, routes=[{"provider": provider}]) as agent:
        ledger = SqliteChatLedger(home / "gateway.db")
        senders = SenderPolicy("matrix", settings.allow, pairing, settings.per_minute)
        services = chat_services(agent, ledger)
        surface = MatrixSurface(settings, bot.token, home / "matrix", senders.is_allowed)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Platform(surface, settings, senders, services).run)
            yield provider
            tasks.cancel_scope.cancel()
        await ledger.close()


async def until_last_texts(ann: MatrixUser, bot: Account, *texts: str) -> None:
    """Wait until the newest messages from the bot have these texts."""
    await ann.until(lambda: ann.texts_of(bot.id)[-len(texts) :] == list(texts))


async def test_a_message_is_answered_and_a_tap_on_the_stop_reaction_interrupts(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot = synapse.register("hark", "Hark")
    hang = Hang()
    async with matrix_user(synapse) as ann:
        script: list[ScriptedReply] = [["hello ", "**Ann**"], ["half of it", hang], ["next"]]
        async with running_agent(synapse, bot, tmp_path, ann.id, script) as provider:
            room = await ann.create_room_with(bot)
            await ann.write(room, "hi")
            await until_last_texts(ann, bot, "hello **Ann**")
            before = len(_stop_reactions(ann, bot))  # The first reply may have had one if it streamed.
            await ann.write(room, "a long one")
            await ann.until(lambda: ann.texts_of(bot.id)[-1].startswith("half of it"))
            await ann.until(lambda: len(_stop_reactions(ann, bot)) > before)
            message_id = _stop_reactions(ann, bot)[-1]
            await ann.react(room, message_id, "⏹")
            await until_last_texts(ann, bot, "hello **Ann**", "half of it\n\n⏹ stopped")
            assert hang.closed.is_set()
            await ann.write(room, "and now?")
            await until_last_texts(ann, bot, "half of it\n\n⏹ stopped", "next")
            await ann.until(lambda: "👀" in [event["content"]["m.relates_to"]["key"] for event in _reactions(ann, bot)])
    texts = [message.text for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert texts == ["hi", "a long one", "and now?"]


async def test_the_word_stop_interrupts_and_a_restart_repeats_no_message(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    hang = Hang()
    async with matrix_user(synapse) as ann:
        async with running_agent(synapse, bot, tmp_path, ann.id, [["some", hang]]):
            room = await ann.create_room_with(bot)
            await ann.write(room, "go")
            await hang.reached.wait()
            await ann.write(room, "Stop!")
            await until_last_texts(ann, bot, "some\n\n⏹ stopped")
        await ann.write(room, "while away")
        async with running_agent(synapse, bot, tmp_path, ann.id, [["back"]]) as provider:
            await until_last_texts(ann, bot, "some\n\n⏹ stopped", "back")
        assert len(provider.requests) == 1


async def test_an_unknown_user_in_the_room_only_receives_a_pairing_code(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark", "Hark")
    async with (
        matrix_user(synapse) as ann,
        matrix_user(synapse, "eve") as eve,
        running_agent(synapse, bot, tmp_path, ann.id, [["for Ann"]]) as provider,
    ):
        room = await ann.create_room_with(bot, eve.id)
        await eve.client.join(room)
        await eve.write(room, "Hark: explain it all")
        await ann.until(lambda: any("hark pair approve" in text for text in ann.texts_of(bot.id)))
        await ann.write(room, "Hark: hello")
        await until_last_texts(ann, bot, "for Ann")
    assert len(provider.requests) == 1


def _reactions(ann: MatrixUser, bot: Account) -> list[dict[str, Any]]:
    return [event for event in ann.events_of(bot.id, "m.reaction") if "m.relates_to" in event["content"]]


def _stop_reactions(ann: MatrixUser, bot: Account) -> list[str]:
    relations = [event["content"]["m.relates_to"] for event in _reactions(ann, bot)]
    return [relation["event_id"] for relation in relations if relation["key"].startswith("⏹")]
