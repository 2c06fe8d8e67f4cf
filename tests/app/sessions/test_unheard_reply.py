"""The model is informed about the part of its spoken reply that the user missed."""

from pathlib import Path

import pytest

import hark
from hark.protocol.commands import ShownText
from hark.providers.scripted import ScriptedProvider


@pytest.mark.parametrize(
    ("turn", "characters", "note"),
    [
        ("demo.t2", 3, 'stopped listening after "sec"'),
        ("demo.t2", 0, "missed all of it"),
        ("demo.t2", 100, ""),
        ("demo.t1", 3, ""),
    ],
)
async def test_a_note_names_the_missed_part_of_the_last_reply_only(
    tmp_path: Path, turn: str, characters: int, note: str
) -> None:
    provider = ScriptedProvider([["first reply"], ["second reply"], ["third reply"]])
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        for text in ("one", "two"):
            await session.say(text)
            await session.idle()
        await session.say("three", shown=ShownText(turn, characters))
        await session.idle()
    texts = [message.text for message in provider.requests[2].messages]
    notes = [text for text in texts if "being spoken aloud" in text]
    assert [note in text for text in notes] == ([True] if note else [])
