"""Speech to a busy session of a real `hark serve`: from the audio to the receipt, and the words that came."""

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

from bench.model import model_server
from bench.run import Plan
from bench.table import Figure, Spread
from hark.processes.cookies import this_process
from hark.processes.piped import spawner
from hark.protocol.speech import Audio
from hark.voice.audio_files import join_as_ogg

ROUNDS = 40
MODEL = "stream-1000000@20"  # a turn that goes on until it is interrupted
HARK = str(Path(sys.executable).with_name("hark"))
CONFIG = '[[routes]]\nname = "main"\nbase_url = "{base_url}"\nmodel = "{model}"\n[serve]\nport = 0\ndrain_seconds = 0\n'
SESSION = "/api/sessions/bench"
# About three seconds each, at the pace at which a person speaks.
COMMANDS = (
    "Please run all the tests again, and tell me what failed.",
    "What is the weather like in London today?",
    "Delete the last line of the file, and try again.",
    "Please summarize the document in three sentences.",
    "Send an email to my brother about the party.",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One command: how long its receipt and its echo took, and whether all of its words came."""

    receipt_ms: float
    echo_ms: float
    wrong: int
    words: int


def measure(plan: Plan) -> list[Figure]:
    """Interrupt a running turn with one command after the other, spoken and typed."""
    return plan.run(_measure(plan.count(ROUNDS)))


async def _measure(rounds: int) -> list[Figure]:
    recordings = [await spoken(text) for text in COMMANDS]
    async with _busy() as desk:
        first = await desk.speak(COMMANDS[0], recordings[0])
        voice = [
            await desk.speak(COMMANDS[n % len(COMMANDS)], recordings[n % len(COMMANDS)])
            for n in range(max(rounds, len(COMMANDS)))
        ]
        text = [await desk.write(COMMANDS[n % len(COMMANDS)]) for n in range(rounds * 5)]
    errors = sum(sample.wrong for sample in voice) / sum(sample.words for sample in voice)
    return [
        Figure("the first voice message after the start", "ms", Spread(first.receipt_ms)),
        Figure("voice of 3 s, to its receipt", "ms", Spread.of([s.receipt_ms for s in voice]), None, Spread(1500)),
        Figure("voice of 3 s, to its echo", "ms", Spread.of([s.echo_ms for s in voice]), None, Spread(1500)),
        Figure("the same as text, to its receipt", "ms", Spread.of(text), None, Spread(5)),
        Figure("words that were not heard right", "%", Spread(errors * 100)),
    ]


async def spoken(text: str) -> bytes:
    """Return a sentence as a voice message: Ogg with Opus in it."""
    words = ["espeak-ng", "--stdout", "-v", "en-us", "-s", "145", text]
    process = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    wav, _ = await process.communicate()
    return (await join_as_ogg([Audio(wav, "audio/wav")], spawner(this_process()))).data


class Desk:
    """A person before a session that is always at work."""

    def __init__(self, http: aiohttp.ClientSession, events: "asyncio.Queue[tuple[float, dict[str, Any]]]") -> None:
        self._http = http
        self._events = events

    async def speak(self, text: str, recording: bytes) -> Sample:
        """Say it aloud while a turn runs; check that the turn was interrupted by what was heard."""
        began = time.perf_counter()
        async with self._http.post(f"{SESSION}/voice", data=recording, headers={"Content-Type": "audio/ogg"}) as answer:
            receipt = await answer.json()
            took = time.perf_counter() - began
        assert receipt["state"] == "interrupting", receipt
        echoed, notice = await self._until("notice")
        heard = receipt["transcript"]
        assert notice["text"].startswith("🎙️"), notice
        assert heard in notice["text"], notice
        await self._interrupted()
        said, got = _words(text), _words(heard)
        return Sample(took * 1000, (echoed - began) * 1000, _distance(said, got), len(said))

    async def write(self, text: str) -> float:
        """Type it while a turn runs; return the milliseconds to the receipt."""
        began = time.perf_counter()
        async with self._http.post(f"{SESSION}/messages", json={"text": text}) as answer:
            receipt = await answer.json()
            took = time.perf_counter() - began
        assert receipt["state"] == "interrupting", receipt
        await self._interrupted()
        return took * 1000

    async def _interrupted(self) -> None:
        """Wait until the turn has ended for the message, and the one that it started is at work."""
        _, end = await self._until("turn.ended")
        assert end["outcome"]["type"] == "interrupted", end
        await self._until("reply.delta")

    async def _until(self, kind: str) -> tuple[float, dict[str, Any]]:
        while True:
            at, event = await self._events.get()
            if event["type"] == kind:
                return at, event


@asynccontextmanager
async def _busy() -> AsyncGenerator[Desk]:
    with model_server() as server, TemporaryDirectory(prefix="hark-bench-") as home:
        _write(home, CONFIG.format(base_url=server.base_url, model=MODEL))
        async with _serving(home) as base, aiohttp.ClientSession(base) as http:
            events: asyncio.Queue[tuple[float, dict[str, Any]]] = asyncio.Queue()
            reading = asyncio.create_task(_read(http, events))
            try:
                async with http.post(f"{SESSION}/messages", json={"text": "Write a long story."}):
                    pass
                while (await events.get())[1]["type"] != "reply.delta":
                    pass
                yield Desk(http, events)
            finally:
                reading.cancel()
                await asyncio.wait([reading])


def _write(home: str, settings: str) -> None:
    Path(home, "config.toml").write_text(settings)


@asynccontextmanager
async def _serving(home: str) -> AsyncGenerator[str]:
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


async def _read(http: aiohttp.ClientSession, events: "asyncio.Queue[tuple[float, dict[str, Any]]]") -> None:
    async with http.get(f"{SESSION}/events", timeout=aiohttp.ClientTimeout(None)) as stream:
        async for line in stream.content:
            if line.startswith(b"data: "):
                events.put_nowait((time.perf_counter(), json.loads(line[6:])))


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()


def _distance(said: list[str], heard: list[str]) -> int:
    """Return how many words have to be changed, put in or left out to make one of the other."""
    row = list(range(len(heard) + 1))
    for number, word in enumerate(said, 1):
        above, row[0] = row[:], number
        for place, other in enumerate(heard, 1):
            row[place] = min(above[place] + 1, row[place - 1] + 1, above[place - 1] + (word != other))
    return row[-1]
