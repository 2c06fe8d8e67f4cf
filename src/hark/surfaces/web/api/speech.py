"""Words spoken aloud, for pages and programs that want to hear a reply."""

import anyio
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.speech import SpeechError
from hark.surfaces.web.api.body import read_json
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError

TEXT_CHARACTERS = 5_000
AT_ONCE = 4


class SentText(Struct, frozen=True):
    """What is to be spoken, as Markdown."""

    text: str


class Speech:
    """Speaks texts. One whose listener goes away is ended at once."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place
        self._places = anyio.Semaphore(AT_ONCE)

    async def speak(self, request: Request) -> Response:
        """Answer with a WAV, or with nothing (204) when there is nothing in it that can be said."""
        sent = await read_json(request, SentText, self._place.access.max_body)
        if len(sent.text) > TEXT_CHARACTERS:
            raise ApiError(400, "too_long", f"A text may have {TEXT_CHARACTERS} characters. Send it in parts.")
        answer: Response | ApiError = Response(status_code=499)  # nobody is there to read it
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_left, request, tasks.cancel_scope)
            try:
                answer = await self._spoken(sent.text)
            except ApiError as error:  # unwrapped, as the group would not leave it
                answer = error
            tasks.cancel_scope.cancel()
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def _spoken(self, text: str) -> Response:
        if self._place.speak is None:
            raise ApiError(404, "no_speech", "Nothing is spoken here.")
        async with self._places:
            try:
                audio = await self._place.speak(text)
            except SpeechError as error:
                raise ApiError(404, "no_speech", str(error)) from error
        return Response(audio.data, media_type=audio.media_type) if audio.data else Response(status_code=204)


async def _until_left(request: Request, scope: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
