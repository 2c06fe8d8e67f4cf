"""Speech recognition with a server that has OpenAI's `/audio/transcriptions` endpoint."""

import io
import os
from collections.abc import Callable

import aiohttp
import msgspec

from hark.protocol.speech import Audio, SpeechError, Utterance
from hark.text.redaction import redact_secrets
from hark.voice.audio_files import base_media_type, file_extension
from hark.voice.settings import VoiceSettings

MAX_RECORDING_BYTES = 25 << 20
MAX_RESPONSE_BYTES = 4 << 20
CONNECT_SECONDS = 10.0
MAX_REASON_CHARACTERS = 300
REMEDIES = {
    400: "Check [voice] model, and that the file is a recording.",
    401: "Check the API key in the variable named by [voice] api_key_env.",
    403: "Check the API key in the variable named by [voice] api_key_env.",
    404: "Check [voice] base_url (it ends with /v1) and [voice] model.",
    413: "Send the recording in shorter parts.",
    429: "Wait a moment, then send the recording again.",
}


class _Transcription(msgspec.Struct):
    text: str
    duration: float = 0.0
    language: str = ""


class _AbortingResponse(aiohttp.ClientResponse):
    """A response that aborts the connection immediately when it is closed, including an unfinished upload."""

    def close(self) -> None:
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


class OpenAiSpeech:
    """Sends recordings to a transcription server. Connections are opened on first use and closed by `close`."""

    def __init__(self, settings: VoiceSettings) -> None:
        self._settings = settings
        self._http: aiohttp.ClientSession | None = None

    def warm_up(self) -> None:
        """Do nothing, because the server needs no preparation."""

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        """Return the transcript. Cancelling closes the connection.

        Raises:
            SpeechError: The server can't be reached, rejects the recording, or returns no transcript.
        """
        if not audio.data:
            raise SpeechError("The recording is empty. Record it again.")
        if len(audio.data) > MAX_RECORDING_BYTES:
            raise SpeechError(f"The recording is larger than {MAX_RECORDING_BYTES >> 20} MB. Send it in shorter parts.")
        url = f"{self._settings.base_url.rstrip('/')}/audio/transcriptions"
        try:
            form, headers = self._build_form(audio), self._headers()
            async with self._http_session().post(url, data=form, headers=headers) as response:
                body = await _read_body(response)
                if response.status != 200:
                    reason = redact_secrets(body.decode(errors="replace"), [self._api_key()])
                    raise _refusal_error(response.status, reason)
                transcription = msgspec.json.decode(body, type=_Transcription)
        except TimeoutError as error:
            seconds = f"{self._settings.timeout_seconds:g}"
            raise SpeechError(
                f"The transcription server {url} did not answer within {seconds} s. Try again or type your message."
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, msgspec.MsgspecError):
                raise SpeechError(f"{url} did not return a transcript. Check [voice] base_url.") from error
            raise SpeechError(
                f"The transcription server {url} can't be reached: {error}. Check [voice] base_url or try again."
            ) from error
        language = transcription.language or self._settings.language
        return Utterance(transcription.text.strip(), transcription.duration, language)

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()

    def _http_session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._settings.timeout_seconds, sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                response_class=_AbortingResponse,
            )
        return self._http

    def _headers(self) -> dict[str, str]:
        key = self._api_key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _api_key(self) -> str:
        name = self._settings.api_key_env
        return os.environ.get(name, "") if name else ""

    def _build_form(self, audio: Audio) -> aiohttp.FormData:
        form = aiohttp.FormData()
        form.add_field("model", self._settings.model)
        form.add_field("response_format", "json")
        if self._settings.language:
            form.add_field("language", self._settings.language)
        form.add_field(
            "file",
            io.BytesIO(audio.data),  # a stream, so that it is sent in chunks
            filename=f"audio{file_extension(audio.media_type) or '.ogg'}",  # servers detect the format by the file name
            content_type=base_media_type(audio.media_type) or "application/octet-stream",
        )
        return form


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_RESPONSE_BYTES:
            raise SpeechError("The transcription server's response is too large. Check [voice] base_url.")
    return bytes(body)


def _refusal_error(status: int, body: str) -> SpeechError:
    remedy = REMEDIES.get(status, "Send the recording again later or type your message.")
    reason = body.strip()[:MAX_REASON_CHARACTERS] or "no reason given"
    return SpeechError(f"The transcription server refused the recording ({status}): {reason}. {remedy}")
