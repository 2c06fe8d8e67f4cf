"""A fake transcription server with OpenAI's protocol, and recordings with known transcripts."""

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

from tests.gateway_kills.expectations import Expectations
from tests.gateway_kills.kill_points import TRANSCRIBING, KillPoint

RECORDING = Path(__file__).parent.parent / "voice" / "recordings" / "stop.ogg"
MAX_SECONDS = 0.8
STOP_NAME = "stopword"
_NAME = re.compile(rb"hark-kills:(\w+)")


@functools.cache
def _packets() -> bytes:
    return RECORDING.read_bytes()


def recording(name: str) -> bytes:
    """Return a voice message in Ogg Opus, the format that chat apps use, with `name` in its tags."""
    output = io.BytesIO()
    source: Any
    target: Any
    with av.open(io.BytesIO(_packets())) as source, av.open(output, "w", format="ogg") as target:
        [stream] = source.streams.audio
        copy = target.add_stream_from_template(stream)
        copy.metadata["comment"] = f"hark-kills:{name}"
        for packet in source.demux(stream):
            if packet.dts is not None:
                packet.stream = copy
                target.mux(packet)
    return output.getvalue()


class SpeechServer:
    """A fake transcription server with random delays. Some recordings fail and some contain no speech."""

    def __init__(self, expectations: Expectations, kill_point: KillPoint, seed: int) -> None:
        self.requests = 0
        self._kill_point = kill_point
        self._expectations = expectations
        self._random = random.Random(seed)

    async def transcribe(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests += 1
        found = _NAME.search(body)
        if found is None:
            return web.json_response({"error": {"message": "no recording of ours"}}, status=400)
        self._kill_point.reach(TRANSCRIBING)
        await asyncio.sleep(self._random.random() ** 2 * MAX_SECONDS)
        name = found[1].decode()
        if name == STOP_NAME:
            return web.json_response({"text": "Stop."})
        one = self._expectations.messages[name]
        if one.kind == "noise":
            return web.json_response({"error": {"message": "that is no speech"}}, status=422)
        return web.json_response({"text": "" if one.kind == "silence" else one.text})


@asynccontextmanager
async def run_speech_server(
    expectations: Expectations, kill_point: KillPoint, seed: int
) -> AsyncGenerator[tuple[SpeechServer, str]]:
    """Run a fake speech server until the context ends. Yields the server and the URL for `[voice] base_url`."""
    speech = SpeechServer(expectations, kill_point, seed)
    app = web.Application(client_max_size=32 << 20)
    app.router.add_post("/v1/audio/transcriptions", speech.transcribe)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield speech, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
