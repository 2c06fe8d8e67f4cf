"""Text to speech, for pages and programs that play replies."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.speech import SpeechError
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.live.stream import while_connected

TEXT_CHARACTERS = 5_000


class SentText(Struct, frozen=True):
    """The text to speak, as Markdown."""

    text: Annotated[str, Meta(extra_json_schema={"maxLength": TEXT_CHARACTERS})]

    def __post_init__(self) -> None:
        if len(self.text) > TEXT_CHARACTERS:
            raise ApiError(400, "too_long", f"A text may have {TEXT_CHARACTERS} characters. Send it in parts.")


async def speak(web: WebContext, request: Request, body: SentText) -> Response:
    """Return the text as a WAV, or 204 if nothing in it can be spoken. A client that disconnects cancels it."""
    return await while_connected(request, lambda: _spoken(web, body.text))


async def _spoken(web: WebContext, text: str) -> Response:
    if web.speak is None:
        raise ApiError(404, "no_speech", "Nothing is spoken here.")
    async with web.speakers:
        try:
            audio = await web.speak(text)
        except SpeechError as error:
            raise ApiError(404, "no_speech", str(error)) from error
    return Response(audio.data, media_type=audio.media_type) if audio.data else Response(status_code=204)
