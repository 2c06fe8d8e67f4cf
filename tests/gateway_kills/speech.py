"""A transcription server with OpenAI's protocol, and recordings of which it knows the words."""

import asyncio
import functools
import io
import random
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import av
from aiohttp import web

from tests.gateway_kills.expectations import Book
from tests.gateway_kills.kill_points import HEARD, KillPoint

RECORDING = Path(__file__).parent.parent / "voice" / "recordings" / "stop.ogg"
LONGEST_SECONDS = 0.8
STOP_NAME = "stopword"
_NAME = re.compile(rb"hark-kills:(\w+)")


@functools.cache
def _packets() -> bytes:
    return RECORDING.read_bytes()


def recording(name: str) -> bytes:
    """Return a voice note as the apps make them: Ogg with Opus; its name is in its tags."""
    made = io.BytesIO()
    source: Any
    target: Any
    with av.open(io.BytesIO(_packets())) as source, av.open(made, "w", format="ogg") as target:
        [stream] = source.streams.audio
        copy = target.add_stream_from_template(stream)
        copy.metadata["comment"] = f"hark-kills:{name}"
        for packet in source.demux(stream):
            if packet.dts is not None:
                packet.stream = copy
                target.mux(packet)
    return made.getvalue()


class Speech:
    """Hears recordings. Some take long, some can't be understood, and in some there is nothing."""

    def __init__(self, book: Book, kill_point: KillPoint, seed: int) -> None:
        self.requests = 0
        self._kill_point = kill_point
        self._book = book
        self._random = random.Random(seed)

    async def transcribe(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests += 1
        found = _NAME.search(body)
        if found is None:
            return web.json_response({"error": {"message": "no recording of ours"}}, status=400)
        self._kill_point.at(HEARD)
        await asyncio.sleep(self._random.random() ** 2 * LONGEST_SECONDS)
        name = found[1].decode()
        if name == STOP_NAME:
            return web.json_response({"text": "Stop."})
        one = self._book.written[name]
        if one.kind == "noise":
            return web.json_response({"error": {"message": "that is no speech"}}, status=422)
        return web.json_response({"text": "" if one.kind == "silence" else one.text})


@asynccontextmanager
async def running_speech(book: Book, kill_point: KillPoint, seed: int) -> AsyncGenerator[tuple[Speech, str]]:
    """Serve until the end; the address is one for `[voice] base_url`."""
    speech = Speech(book, kill_point, seed)
    app = web.Application(client_max_size=32 << 20)
    app.router.add_post("/v1/audio/transcriptions", speech.transcribe)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield speech, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
