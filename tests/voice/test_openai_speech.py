"""Speech recognition on a remote server, over a real socket."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from aiohttp import web

from hark.protocol.speech import Audio, SpeechError
from hark.voice.openai_speech import OpenAiSpeech
from hark.voice.settings import VoiceSettings
from tests.voice.voice_fixture import load_recording
from tests.waiting import at_most

RequestHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def open_openai_speech(handler: RequestHandler, **settings: str | float) -> AsyncGenerator[OpenAiSpeech]:
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/audio/transcriptions", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    speech = OpenAiSpeech(VoiceSettings(stt="openai", base_url=f"http://127.0.0.1:{port}/v1/", **settings))  # pyright: ignore[reportArgumentType]
    try:
        yield speech
    finally:
        await speech.close()
        await runner.cleanup()


async def test_recording_is_sent_and_its_transcript_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEECH_KEY", "s3cret")
    seen: dict[str, object] = {}

    async def serve(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        seen.update({name: value for name, value in form.items() if isinstance(value, str)})
        file = form["file"]
        assert isinstance(file, web.FileField)
        seen.update(file=file.file.read(), name=file.filename, kind=file.content_type)
        seen["key"] = request.headers["Authorization"]
        return web.json_response({"text": " Hallo Welt. ", "usage": {"seconds": 3}})

    audio = Audio(load_recording("list").data, "audio/ogg; codecs=opus")
    async with open_openai_speech(serve, api_key_env="SPEECH_KEY", language="de", model="big") as speech:
        utterance = await speech.transcribe(audio)
    assert (utterance.text, utterance.language) == ("Hallo Welt.", "de")
    assert seen == {
        "model": "big",
        "language": "de",
        "response_format": "json",
        "file": audio.data,
        "name": "audio.ogg",
        "kind": "audio/ogg",
        "key": "Bearer s3cret",
    }


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, '{"error": "bad key"}', "refused the recording \\(401\\).*bad key.*api_key_env"),
        (404, "", "refused the recording \\(404\\): no reason given.*base_url"),
        (429, "slow down", "429.*Wait a moment"),
        (500, "oops", "500.*oops.*Send the recording again later"),
        (200, "<html>", "did not return a transcript"),
        (200, '{"words": 1}', "did not return a transcript"),
        (200, "x" * (5 << 20), "is too large"),
    ],
)
async def test_error_for_a_refused_request_contains_reason_and_remedy(status: int, body: str, expected: str) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(status=status, text=body)

    async with open_openai_speech(serve) as speech:
        with pytest.raises(SpeechError, match=expected):
            await speech.transcribe(load_recording("stop"))


async def test_unreachable_or_unresponsive_server_is_named_in_the_error() -> None:
    speech = OpenAiSpeech(VoiceSettings(stt="openai", base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(SpeechError, match=r"127\.0\.0\.1:9/v1/audio/transcriptions can't be reached"):
        await speech.transcribe(load_recording("stop"))
    await speech.close()
    for address in ("nonsense", "http://[bad"):
        speech = OpenAiSpeech(VoiceSettings(stt="openai", base_url=address))
        with pytest.raises(SpeechError, match="base_url"):
            await speech.transcribe(load_recording("stop"))
        await speech.close()

    async def never_respond(request: web.Request) -> web.StreamResponse:
        await request.read()
        await anyio.sleep_forever()
        raise AssertionError

    async with open_openai_speech(never_respond, timeout_seconds=0.2) as silent:
        with pytest.raises(SpeechError, match=r"did not answer within 0\.2 s"):
            await silent.transcribe(load_recording("stop"))


async def test_cancelling_aborts_the_connection_during_the_upload() -> None:
    """The server stops reading, so that it notices only an aborted connection."""
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        arrived.set()
        try:
            while await reader.read(65536):
                pass
        except ConnectionResetError:
            pass
        ended.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        speech = OpenAiSpeech(VoiceSettings(stt="openai", base_url=f"http://127.0.0.1:{port}/v1"))
        task = asyncio.create_task(speech.transcribe(Audio(bytes(20 << 20), "audio/ogg")))
        await arrived.wait()
        task.cancel()
        with anyio.fail_after(at_most(5)):
            await ended.wait()
        await asyncio.wait([task])
        assert task.cancelled()
        await speech.close()


async def test_empty_or_too_large_recording_is_not_sent() -> None:
    speech = OpenAiSpeech(VoiceSettings(stt="openai", base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(SpeechError, match="empty"):
        await speech.transcribe(Audio(b""))
    with pytest.raises(SpeechError, match="larger than 25 MB"):
        await speech.transcribe(Audio(bytes((25 << 20) + 1)))
