"""Push to talk in a pseudo-terminal. The microphone is simulated by a program that prints a recording."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.command_line import Hark, open_hark
from tests.fakes.models.behaviours import Behaviour, echo, hanging
from tests.surfaces.terminal.pseudo_terminal import PseudoTerminal, open_pseudo_terminal
from tests.tools.fake_context import find_processes
from tests.voice.voice_fixture import RECORDINGS
from tests.waiting import until

READY = "Enter send"
TALK = "\x14"  # Ctrl+T
TRANSCRIPT_SECONDS = 90.0
pytestmark = pytest.mark.time_limit(120, reason="a busy machine loads the speech model slowly")


@asynccontextmanager
async def open_app_with_microphone(
    tmp_path: Path, script: Sequence[Behaviour], microphone: str
) -> AsyncGenerator[tuple[Hark, PseudoTerminal]]:
    """Open the terminal app with the shell command `microphone` as its recording program."""
    async with open_hark(tmp_path, script) as hark:
        hark.configure(f'[voice]\nrecord_command = ["sh", "-c", "{microphone}"]\n')
        async with open_pseudo_terminal(hark.environment, size=(100, 30), directory=str(hark.home)) as app:
            await app.until(READY)
            yield hark, app


def microphone_command(name: str, after: str = "exec sleep 1000") -> str:
    """Return a shell command that prints a recording and then runs `after`, which waits by default."""
    return f"cat {RECORDINGS / name}.ogg; {after}"


async def test_speech_interrupts_the_turn_like_typed_text(tmp_path: Path) -> None:
    recorded = tmp_path / "heard"
    microphone = microphone_command("mail", f"touch {recorded}; exec sleep 1000")
    async with open_app_with_microphone(tmp_path, [hanging(3), echo()], microphone) as (hark, app):
        app.type("write a story\r")
        await hark.server.request(1)
        app.type(TALK)
        await app.until("● Recording")
        await until(recorded.exists)
        app.type(TALK)
        await app.until('🎙️ "Send an email to my brother', TRANSCRIPT_SECONDS)
        request = await hark.server.request(2)
        assert "Send an email to my brother" in request.body["messages"][-1]["content"]
        await app.until("interrupted")


async def test_the_recording_is_sent_when_the_microphone_program_ends(tmp_path: Path) -> None:
    async with open_app_with_microphone(tmp_path, [echo()], microphone_command("weather", "true")) as (hark, app):
        app.type(TALK)
        await app.until("What is the weather like in London today", TRANSCRIPT_SECONDS)
        await hark.server.request(1)


async def test_a_spoken_stop_word_stops_the_turn(tmp_path: Path) -> None:
    async with open_app_with_microphone(tmp_path, [hanging(3), echo()], microphone_command("stop", "true")) as (
        hark,
        app,
    ):
        app.type("write a story\r")
        await hark.server.request(1)
        app.type(TALK)
        await app.until('🎙️ "Stop', TRANSCRIPT_SECONDS)
        await app.until(lambda: "stops" not in app.text.splitlines()[-1], TRANSCRIPT_SECONDS)
        assert len(hark.server.requests) == 1


async def test_esc_discards_a_recording_and_leaves_the_turn_running(tmp_path: Path) -> None:
    async with open_app_with_microphone(tmp_path, [hanging(3)], microphone_command("mail")) as (hark, app):
        app.type("write a story\r")
        await hark.server.request(1)
        app.type(TALK)
        await app.until("● Recording")
        app.type("\x1b")
        await app.until("Recording discarded")
        await app.until(lambda: "● Recording" not in app.text)
        assert "Esc stops" in app.text, "the turn continues"
        assert len(hark.server.requests) == 1


async def test_a_failed_recording_is_reported_in_one_line(tmp_path: Path) -> None:
    async with open_app_with_microphone(tmp_path, [], "echo no such device >&2") as (_, app):
        app.type(TALK)
        await app.until("Nothing was recorded by sh: no such device")
        app.type("still here")
        await app.until("still here")


async def test_a_recording_without_a_transcript_is_saved_and_its_path_reported(tmp_path: Path) -> None:
    async with open_app_with_microphone(tmp_path, [], "printf nonsense") as (hark, app):
        app.type(TALK)
        await app.until("The recording is saved", TRANSCRIPT_SECONDS)
        (saved,) = (hark.home / "voice").iterdir()
        assert saved.read_bytes() == b"nonsense"


async def test_quitting_during_a_recording_leaves_no_process(tmp_path: Path) -> None:
    async with open_app_with_microphone(tmp_path, [], microphone_command("mail")) as (hark, app):
        app.type(TALK)
        await app.until("● Recording")
        app.type("\x04")
        assert await app.wait_for_exit() == 0
        await until(lambda: not find_processes(str(hark.home)), shows=lambda: find_processes(str(hark.home)))
