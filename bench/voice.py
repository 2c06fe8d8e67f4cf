"""Voice messages to a busy session of a real `hark serve`: time to the receipt, and accuracy of the transcript."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from bench.model import run_model_server
from bench.run import BenchOptions
from bench.table import Figure, Percentiles
from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner
from hark.protocol.speech import Audio
from hark.voice.audio_files import join_as_ogg

ROUNDS = 40
MODEL = "stream-1000000@20"  # a turn that runs until it is interrupted
HARK = str(Path(sys.executable).with_name("hark"))
CONFIG = '[[routes]]\nname = "main"\nbase_url = "{base_url}"\nmodel = "{model}"\n[serve]\nport = 0\ndrain_seconds = 0\n'
SESSION = "/api/sessions/bench"
# About three seconds each, at normal speaking speed.
COMMANDS = (
    "Please run all the tests again, and report the failures.",
    "What is the weather like in London today?",
    "Delete the last line of the file, and try again.",
    "Please summarize the document in three sentences.",
    "Send an email to my brother about the party.",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The measurements for one spoken command: times to the receipt and the echo, wrong words, and total words."""

    receipt_ms: float
    echo_ms: float
    wrong: int
    words: int


def measure(options: BenchOptions) -> list[Figure]:
    """Interrupt a running turn with many commands, both spoken and typed."""
    return options.run(_measure(options.scale(ROUNDS)))


async def _measure(rounds: int) -> list[Figure]:
    recordings = [await record_speech(text) for text in COMMANDS]
    async with _open_busy_session() as user:
        first = await user.speak(COMMANDS[0], recordings[0])
        voice = [
            await user.speak(COMMANDS[n % len(COMMANDS)], recordings[n % len(COMMANDS)])
            for n in range(max(rounds, len(COMMANDS)))
        ]
        text = [await user.type_message(COMMANDS[n % len(COMMANDS)]) for n in range(rounds * 5)]
    errors = sum(sample.wrong for sample in voice) / sum(sample.words for sample in voice)
    return [
        Figure("first voice message after the start", "ms", Percentiles(first.receipt_ms)),
        Figure(
            "3 s of voice, to its receipt", "ms", Percentiles.of([s.receipt_ms for s in voice]), None, Percentiles(1500)
        ),
        Figure("3 s of voice, to its echo", "ms", Percentiles.of([s.echo_ms for s in voice]), None, Percentiles(1500)),
        Figure("same text typed, to its receipt", "ms", Percentiles.of(text), None, Percentiles(5)),
        Figure("word errors in transcripts", "%", Percentiles(errors * 100)),
    ]


async def record_speech(text: str) -> bytes:
    """Synthesize speech from the text. Return it as a voice message in Ogg Opus format."""
    command = ["espeak-ng", "--stdout", "-v", "en-us", "-s", "145", text]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    wav, _ = await process.communicate()
    return (await join_as_ogg([Audio(wav, "audio/wav")], create_spawner(current_owner()))).data


class BusySession:
    """A simulated user of a session that always has a running turn."""

    def __init__(self, http: aiohttp.ClientSession, events: "asyncio.Queue[tuple[float, dict[str, Any]]]") -> None:
        self._http = http
        self._events = events

    async def speak(self, text: str, recording: bytes) -> Sample:
        """Send a voice message during a turn. Check that its transcript interrupted the turn."""
        started = time.perf_counter()
        async with self._http.post(
            f"{SESSION}/voice", data=recording, headers={"Content-Type": "audio/ogg"}
        ) as response:
            receipt = await response.json()
            seconds = time.perf_counter() - started
        assert receipt["state"] == "interrupting", receipt
        echoed_at, notice = await self._wait_for_event("notice")
        transcript = receipt["transcript"]
        assert notice["text"].startswith("🎙️"), notice
        assert transcript in notice["text"], notice
        await self._wait_for_interrupt()
        spoken_words, transcript_words = _split_words(text), _split_words(transcript)
        return Sample(
            seconds * 1000,
            (echoed_at - started) * 1000,
            _count_word_errors(spoken_words, transcript_words),
            len(spoken_words),
        )

    async def type_message(self, text: str) -> float:
        """Send a typed message during a turn. Return the time to its receipt in milliseconds."""
        started = time.perf_counter()
        async with self._http.post(f"{SESSION}/messages", json={"text": text}) as response:
            receipt = await response.json()
            seconds = time.perf_counter() - started
        assert receipt["state"] == "interrupting", receipt
        await self._wait_for_interrupt()
        return seconds * 1000

    async def _wait_for_interrupt(self) -> None:
        """Wait until the message has interrupted the turn and the next turn has started to reply."""
        _, end = await self._wait_for_event("turn.ended")
        assert end["outcome"]["type"] == "interrupted", end
        await self._wait_for_event("reply.delta")

    async def _wait_for_event(self, event_type: str) -> tuple[float, dict[str, Any]]:
        while True:
            at, event = await self._events.get()
            if event["type"] == event_type:
                return at, event


@asynccontextmanager
async def _open_busy_session() -> AsyncGenerator[BusySession]:
    with run_model_server() as server, TemporaryDirectory(prefix="hark-bench-") as home:
        _write_config(home, CONFIG.format(base_url=server.base_url, model=MODEL))
        async with _run_gateway(home) as base, aiohttp.ClientSession(base) as http:
            events: asyncio.Queue[tuple[float, dict[str, Any]]] = asyncio.Queue()
            reader = asyncio.create_task(_read_events(http, events))
            try:
                async with http.post(f"{SESSION}/messages", json={"text": "Write a long story."}):
                    pass
                while (await events.get())[1]["type"] != "reply.delta":
                    pass
                yield BusySession(http, events)
            finally:
                reader.cancel()
                await asyncio.wait([reader])


def _write_config(home: str, settings: str) -> None:
    Path(home, "config.toml").write_text(settings)


@asynccontextmanager
async def _run_gateway(home: str) -> AsyncGenerator[str]:
    environment = {**os.environ, "HARK_HOME": home}
    process = await asyncio.create_subprocess_exec(
        HARK, "serve", cwd=home, env=environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        yield line.rpartition(" ")[2].strip()
    finally:
        process.terminate()
        await process.wait()


async def _read_events(http: aiohttp.ClientSession, events: "asyncio.Queue[tuple[float, dict[str, Any]]]") -> None:
    async with http.get(f"{SESSION}/events", timeout=aiohttp.ClientTimeout(None)) as stream:
        async for line in stream.content:
            if line.startswith(b"data: "):
                events.put_nowait((time.perf_counter(), json.loads(line[6:])))


def _split_words(text: str) -> list[str]:
    return "".join(character if character.isalnum() else " " for character in text.lower()).split()


def _count_word_errors(expected: list[str], actual: list[str]) -> int:
    """Return the number of words to replace, insert or delete to turn `expected` into `actual`."""
    row = list(range(len(actual) + 1))
    for number, word in enumerate(expected, 1):
        previous, row[0] = row[:], number
        for column, other in enumerate(actual, 1):
            row[column] = min(previous[column] + 1, row[column - 1] + 1, previous[column - 1] + (word != other))
    return row[-1]
