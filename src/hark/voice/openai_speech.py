"""Speech recognition by a server with OpenAI's `/audio/transcriptions`."""

import io
import os
from collections.abc import Callable

import aiohttp
import msgspec

from hark.protocol.speech import Audio, SpeechError, Utterance
from hark.text.redaction import redacted
from hark.voice.audio_files import ending, plain
from hark.voice.settings import VoiceSettings

MOST_BYTES = 25 << 20
ANSWER_BYTES = 4 << 20
CONNECT_SECONDS = 10.0
REASON_CHARACTERS = 300
REMEDIES = {
    400: "Check [voice] model, and that it is a recording.",
    401: "Check the key that [voice] api_key_env names.",
    403: "Check the key that [voice] api_key_env names.",
    404: "Check [voice] base_url, which ends with /v1, and [voice] model.",
    413: "Send it in shorter parts.",
    429: "Wait a little, and send it again.",
}


class _Words(msgspec.Struct):
    text: str
    duration: float = 0.0
    language: str = ""


class _CutResponse(aiohttp.ClientResponse):
    """A response whose close ends the connection now, with all of the recording that is still unsent."""

    def close(self) -> None:
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


class OpenAiSpeech:
    """Sends recordings to a server. Its connections are opened at the first one, and ended by `close`."""

    def __init__(self, settings: VoiceSettings) -> None:
        self._settings = settings
        self._http: aiohttp.ClientSession | None = None

    def warm_up(self) -> None:
        """A server is ready when it is asked."""

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        """Return the spoken words. Cancelling closes the connection.

        Raises:
            SpeechError: The server can't be reached, refuses, or answers with something else.
        """
        if not audio.data:
            raise SpeechError("The recording is empty. Record it again.")
        if len(audio.data) > MOST_BYTES:
            raise SpeechError(f"The recording is larger than {MOST_BYTES >> 20} MB. Send it in shorter parts.")
        url = f"{self._settings.base_url.rstrip('/')}/audio/transcriptions"
        try:
            async with self._session().post(url, data=self._form(audio), headers=self._headers()) as response:
                body = await _body(response)
                if response.status != 200:
                    raise _refused(response.status, redacted(body.decode(errors="replace"), [self._key()]))
                words = msgspec.json.decode(body, type=_Words)
        except TimeoutError as error:
            seconds = f"{self._settings.timeout_seconds:g}"
            raise SpeechError(
                f"The transcription server {url} did not answer in {seconds} s. Send it again, or type it."
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, msgspec.MsgspecError):
                raise SpeechError(f"{url} answered with no transcript. Check [voice] base_url.") from error
            raise SpeechError(
                f"The transcription server {url} can't be reached: {error}. Check [voice] base_url, or send it again."
            ) from error
        return Utterance(words.text.strip(), words.duration, words.language or self._settings.language)

    async def close(self) -> None:
        """Close its connections."""
        if self._http is not None:
            await self._http.close()

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._settings.timeout_seconds, sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                response_class=_CutResponse,
            )
        return self._http

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _key(self) -> str:
        name = self._settings.api_key_env
        return os.environ.get(name, "") if name else ""

    def _form(self, audio: Audio) -> aiohttp.FormData:
        form = aiohttp.FormData()
        form.add_field("model", self._settings.model)
        form.add_field("response_format", "json")
        if self._settings.language:
            form.add_field("language", self._settings.language)
        form.add_field(
            "file",
            io.BytesIO(audio.data),  # a stream, so that it is sent piece by piece
            filename=f"audio{ending(audio.media_type) or '.ogg'}",  # servers tell its kind by its name
            content_type=plain(audio.media_type) or "application/octet-stream",
        )
        return form


async def _body(response: aiohttp.ClientResponse) -> bytes:
    whole = bytearray()
    async for piece in response.content.iter_any():
        whole += piece
        if len(whole) > ANSWER_BYTES:
            raise SpeechError("The transcription server's answer has no end. Check [voice] base_url.")
    return bytes(whole)


def _refused(status: int, body: str) -> SpeechError:
    remedy = REMEDIES.get(status, "Send it again later, or type it.")
    reason = body.strip()[:REASON_CHARACTERS]
    return SpeechError(f"The transcription server refuses ({status}): {reason or 'it does not say why'}. {remedy}")
