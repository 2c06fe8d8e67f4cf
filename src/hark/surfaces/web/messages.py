"""Saying something in a session: text, voice, and a stop."""

import anyio
from msgspec import Struct, field, structs
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.commands import Delivery
from hark.protocol.speech import Audio, SpeechError
from hark.surfaces.web.answer import json_answer
from hark.surfaces.web.attachments import SentAttachment, all_checked
from hark.surfaces.web.body import checked_text, read_body, read_json
from hark.surfaces.web.errors import ApiError
from hark.surfaces.web.place import WebPlace

ID_CHARACTERS = 200
SOURCE_CHARACTERS = 100
VOICE = "voice"
_NOTHING = {"turn": None, "outcome": None}
_OTHER_AUDIO = ("application/octet-stream", "application/ogg", "video/webm", "video/mp4")


class SentMessage(Struct, frozen=True):
    """The body of a message."""

    text: str = ""
    id: str = ""
    delivery: Delivery | None = None
    attachments: list[SentAttachment] = field(default_factory=list[SentAttachment])
    author: str = ""


class SentInterrupt(Struct, frozen=True):
    """The body of a stop."""

    source: str = "user"
    turn: str | None = None
    shown: int | None = None


class Messages:
    """What goes into a session."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place

    async def say(self, request: Request) -> Response:
        """Accept a message; it is durable when the answer comes."""
        session = self._place.session(request)
        sent = await read_json(request, SentMessage, self._place.access.max_body)
        name, author = _names(sent.id, sent.author)
        attachments = all_checked(sent.attachments)
        if not sent.text.strip() and not attachments:
            raise ApiError(400, "empty", "The message says nothing: give it a text, or attachments.")
        self._place.feeds.of(session)
        receipt = await session.say(sent.text, sent.delivery, id=name, author=author, attachments=attachments)
        self._place.metrics.messages[receipt.state] += 1
        return json_answer(receipt, 202)

    async def interrupt(self, request: Request) -> Response:
        """End the running turn; the answer comes when it has settled."""
        session = self._place.session(request)
        sent = await read_json(request, SentInterrupt, self._place.access.max_body, may_be_empty=True)
        source = checked_text(sent.source, "source", SOURCE_CHARACTERS, may_be_empty=False)
        turn = checked_text(sent.turn or "", "turn", ID_CHARACTERS * 2)
        if sent.shown is not None and not 0 <= sent.shown < 2**31:
            raise ApiError(400, "bad_request", "shown must be a number of characters, from 0 on.")
        if not turn:
            self._place.transcriptions.stop(session.id)
        settled = await session.interrupt(source, turn, sent.shown)
        return json_answer(settled or _NOTHING)

    async def hear(self, request: Request) -> Response:
        """Turn speech into words, show them, and take them as a message."""
        session, transcriber = self._place.session(request), self._place.transcriber
        if transcriber is None:
            raise ApiError(501, "no_voice", "Voice is not set up here: see [voice] in the settings.")
        query = request.query_params
        name, author = _names(query.get("id", ""), query.get("author", ""))
        delivery = _delivery(query.get("delivery", ""))
        audio = Audio(await read_body(request, self._place.access.max_body), _audio_type(request))
        if not audio.data:
            raise ApiError(400, "empty", "There is no audio in the body.")
        self._place.feeds.of(session)
        await session.opened()
        with self._place.transcriptions.under_way(session.id) as (_, order):
            async with order:
                try:
                    utterance = await transcriber.transcribe(audio)
                except SpeechError as error:
                    session.notice(VOICE, f"🎙️ {error}")
                    raise ApiError(422, "not_understood", str(error)) from error
                text = utterance.text.strip()
                if not text:
                    session.notice(VOICE, "🎙️ (nothing was heard)")
                    raise ApiError(422, "silence", "Nothing was heard in the recording; say it again, or type it.")
                session.notice(VOICE, f"🎙️ “{text}”")
                with anyio.CancelScope(shield=True):  # from here on it is a message: a stop meets it as one
                    receipt = await session.say(text, delivery, id=name, author=author)
                    self._place.metrics.messages[receipt.state] += 1
                    return json_answer(structs.replace(receipt, transcript=text), 202)
        raise ApiError(409, "stopped", "A stop came before the recording was turned into words; nothing was said.")


def _names(name: str, author: str) -> tuple[str, str]:
    return checked_text(name, "id", ID_CHARACTERS), checked_text(author, "author", ID_CHARACTERS)


def _delivery(word: str) -> Delivery | None:
    if not word:
        return None
    if word not in tuple(Delivery):
        raise ApiError(400, "bad_request", f"delivery must be one of {', '.join(Delivery)}.")
    return Delivery(word)


def _audio_type(request: Request) -> str:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media_type.startswith("audio/") and media_type not in _OTHER_AUDIO:
        raise ApiError(415, "not_audio", "Send the recording as the body, with its Content-Type, such as audio/ogg.")
    return media_type
