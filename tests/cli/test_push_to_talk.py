"""Push to talk, in a pseudo-terminal: the microphone is a program that prints a recording, all else is real."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.command_line import Hark, opened
from tests.fakes.models.behaviours import Behaviour, echo, hanging
from tests.surfaces.terminal.pseudo_terminal import Terminal, terminal
from tests.tools.context import living
from tests.voice.voice_fixture import RECORDINGS
from tests.waiting import until

READY = "Enter sends"
TALK = "\x14"  # Ctrl+T
PATIENCE_SECONDS = 120.0  # a busy machine loads the model slowly


@asynccontextmanager
async def talking(
    tmp_path: Path, script: Sequence[Behaviour], microphone: str
) -> AsyncGenerator[tuple[Hark, Terminal]]:
    """The terminal app, whose microphone is this shell command."""
    async with opened(tmp_path, script) as hark:
        hark.configure(f'[voice]\nrecord_command = ["sh", "-c", "{microphone}"]\n')
        async with terminal(hark.environment, size=(100, 30), directory=str(hark.home)) as one:
            await one.until(READY)
            yield hark, one


def says(name: str, then: str = "exec sleep 1000") -> str:
    """A microphone that hears a recording, and then nothing until it is ended."""
    return f"cat {RECORDINGS / name}.ogg; {then}"


async def test_what_is_said_interrupts_like_what_is_typed(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    microphone = says("mail", f"touch {heard}; exec sleep 1000")
    async with talking(tmp_path, [hanging(3), echo()], microphone) as (hark, one):
        one.type("write a story\r")
        await hark.server.request(1)
        one.type(TALK)
        await one.until("● recording")
        await until(heard.exists)
        one.type(TALK)
        await one.until('🎙️ "Send an email to my brother', PATIENCE_SECONDS)
        request = await hark.server.request(2)
        assert "Send an email to my brother" in request.body["messages"][-1]["content"]
        await one.until("interrupted")


async def test_a_microphone_that_ends_by_itself_sends_what_it_heard(tmp_path: Path) -> None:
    async with talking(tmp_path, [echo()], says("weather", "true")) as (hark, one):
        one.type(TALK)
        await one.until("What is the weather like in London today", PATIENCE_SECONDS)
        await hark.server.request(1)


async def test_a_spoken_stop_word_stops_the_turn(tmp_path: Path) -> None:
    async with talking(tmp_path, [hanging(3), echo()], says("stop", "true")) as (hark, one):
        one.type("write a story\r")
        await hark.server.request(1)
        one.type(TALK)
        await one.until('🎙️ "Stop', PATIENCE_SECONDS)
        await one.until(lambda: "stops" not in one.text.splitlines()[-1], PATIENCE_SECONDS)
        assert len(hark.server.requests) == 1


async def test_esc_drops_a_recording_and_nothing_else(tmp_path: Path) -> None:
    async with talking(tmp_path, [hanging(3)], says("mail")) as (hark, one):
        one.type("write a story\r")
        await hark.server.request(1)
        one.type(TALK)
        await one.until("● recording")
        one.type("\x1b")
        await one.until("dropped")
        await one.until(lambda: "● recording" not in one.text)
        assert "Esc stops" in one.text, "the turn goes on"
        assert len(hark.server.requests) == 1


async def test_what_can_not_be_recorded_is_told_in_one_line(tmp_path: Path) -> None:
    async with talking(tmp_path, [], "echo no such device >&2") as (_, one):
        one.type(TALK)
        await one.until("Nothing was recorded by sh: no such device")
        one.type("still here")
        await one.until("still here")


async def test_what_was_not_understood_is_kept_and_its_place_is_told(tmp_path: Path) -> None:
    async with talking(tmp_path, [], "printf nonsense") as (hark, one):
        one.type(TALK)
        await one.until("The recording is kept", PATIENCE_SECONDS)
        (kept,) = (hark.home / "voice").iterdir()
        assert kept.read_bytes() == b"nonsense"


async def test_leaving_in_the_middle_of_a_recording_leaves_nothing_behind(tmp_path: Path) -> None:
    async with talking(tmp_path, [], says("mail")) as (hark, one):
        one.type(TALK)
        await one.until("● recording")
        one.type("\x04")
        assert await one.left() == 0
        await until(lambda: not living(str(hark.home)), shows=lambda: living(str(hark.home)))
