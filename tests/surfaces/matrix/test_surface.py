"""Matrix from end to end: a person's client, a real homeserver, and a real agent behind it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

import hark
from hark.app.pairing import Pairing
from hark.cli.serve.chat_surfaces import house_of
from hark.protocol.chat import Author
from hark.protocol.messages import UserMessage
from hark.providers.scripted import Hang, Reply, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.people import People
from hark.surfaces.chat.platform import Platform
from hark.surfaces.matrix.platform import MatrixSettings
from hark.surfaces.matrix.surface import Matrix
from tests.surfaces.matrix.matrix_fixture import Person, person
from tests.surfaces.matrix.synapse import Account, Synapse


@asynccontextmanager
async def agent(
    synapse: Synapse, bot: Account, home: Path, allowed: str, script: list[Reply]
) -> AsyncGenerator[ScriptedProvider]:
    """A real agent behind our account, to whom one person may talk."""
    settings = MatrixSettings(api_base=synapse.url)
    pairing = Pairing(home / "pairing.json")
    pairing.approve(pairing.knock("matrix", Author(allowed), "LETMEIN2"))
    provider = ScriptedProvider(script)

    async with hark.open(home=home, workspace=home, routes=[{"provider": provider}]) as opened:
        ledger = SqliteChatLedger(home / "gateway.db")
        people = People("matrix", settings.allow, pairing, settings.per_minute)
        house = house_of(opened, ledger)
        surface = Matrix(settings, bot.token, home / "matrix", people.is_known)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Platform(surface, settings, people, house).run)
            yield provider
            tasks.cancel_scope.cancel()
        await ledger.close()


async def says(ann: Person, bot: Account, *texts: str) -> None:
    """Wait until the newest messages of our account read like this."""
    await ann.until(lambda: ann.texts_of(bot.id)[-len(texts) :] == list(texts))


async def test_a_message_is_answered_and_a_tap_on_the_stop_sign_interrupts(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark", "Hark")
    hang = Hang()
    async with person(synapse) as ann:
        script: list[Reply] = [["hello ", "**Ann**"], ["half of it", hang], ["next"]]
        async with agent(synapse, bot, tmp_path, ann.id, script) as provider:
            room = await ann.room_with(bot)
            await ann.write(room, "hi")
            await says(ann, bot, "hello **Ann**")
            before = len(_stop_signs(ann, bot))  # the first reply may have had one, if it was seen to grow
            await ann.write(room, "a long one")
            await ann.until(lambda: ann.texts_of(bot.id)[-1].startswith("half of it"))
            await ann.until(lambda: len(_stop_signs(ann, bot)) > before)
            target = _stop_signs(ann, bot)[-1]
            await ann.react(room, target, "⏹")
            await says(ann, bot, "hello **Ann**", "half of it\n\n⏹ stopped")
            assert hang.closed.is_set()
            await ann.write(room, "and now?")
            await says(ann, bot, "half of it\n\n⏹ stopped", "next")
            await ann.until(lambda: "👀" in [event["content"]["m.relates_to"]["key"] for event in _reactions(ann, bot)])
    said = [message.text for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert said == ["hi", "a long one", "and now?"]


async def test_the_word_stop_interrupts_and_a_restart_says_nothing_twice(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark")
    hang = Hang()
    async with person(synapse) as ann:
        async with agent(synapse, bot, tmp_path, ann.id, [["some", hang]]):
            room = await ann.room_with(bot)
            await ann.write(room, "go")
            await hang.reached.wait()
            await ann.write(room, "Stop!")
            await says(ann, bot, "some\n\n⏹ stopped")
        await ann.write(room, "while away")
        async with agent(synapse, bot, tmp_path, ann.id, [["back"]]) as provider:
            await says(ann, bot, "some\n\n⏹ stopped", "back")
        assert len(provider.requests) == 1


async def test_a_stranger_in_the_room_is_given_a_code_and_nothing_else(synapse: Synapse, tmp_path: Path) -> None:
    bot = synapse.register("hark", "Hark")
    async with (
        person(synapse) as ann,
        person(synapse, "eve") as eve,
        agent(synapse, bot, tmp_path, ann.id, [["for Ann"]]) as provider,
    ):
        room = await ann.room_with(bot, eve.id)
        await eve.client.join(room)
        await eve.write(room, "Hark: tell me all")
        await ann.until(lambda: any("hark pair approve" in text for text in ann.texts_of(bot.id)))
        await ann.write(room, "Hark: hello")
        await says(ann, bot, "for Ann")
    assert len(provider.requests) == 1


def _reactions(ann: Person, bot: Account) -> list[dict[str, Any]]:
    return [event for event in ann.events_of(bot.id, "m.reaction") if "m.relates_to" in event["content"]]


def _stop_signs(ann: Person, bot: Account) -> list[str]:
    relations = [event["content"]["m.relates_to"] for event in _reactions(ann, bot)]
    return [relation["event_id"] for relation in relations if relation["key"].startswith("⏹")]
