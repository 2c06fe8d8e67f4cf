"""Voice over HTTP: a recording becomes words before it reaches its session, in order with the texts around it."""

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.commands import Delivery, Shown
from hark.protocol.meaning import StopMeaning
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.session import Session
from hark.protocol.speech import Audio, SpeechError
from hark.protocol.voice_messages import Fate, VoiceDelivery, VoiceNote
from hark.surfaces.web.api.body import MOST_SHOWN, checked_names, checked_shown, read_body
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.api.json_response import json_answer

VOICE = "voice"
API = "api"
_OTHER_AUDIO = ("application/octet-stream", "application/ogg", "video/webm", "video/mp4")


class ApiListener:
    """Brings the words of one recording to its session, as the message that the client named."""

    def __init__(self, place: WebPlace, session: Session, note: VoiceNote) -> None:
        self._place = place
        self._session = session
        self._note = note

    def is_stop(self, text: str) -> bool:
        """Tell whether these words are a wish to stop."""
        return isinstance(self._session.meaning(text), StopMeaning)

    def echo(self, text: str) -> None:
        """Show what was heard to whoever reads along."""
        self._session.notice(VOICE, text)

    def progress(self, text: str) -> None:
        """Show the words so far; the next notice replaces them."""
        self._session.notice(VOICE, f"🎙️ {text} …")

    def tell(self, text: str) -> None:
        """Tell what became of the recording."""
        self._session.notice(VOICE, text)

    async def say(self, text: str, *, is_stopped: bool) -> Receipt:
        """Go on with the words exactly as if they had been typed."""
        about = self._note.about
        delivery = Delivery(about["delivery"]) if about.get("delivery") else None
        shown = Shown(about["turn"], int(about["shown"])) if about.get("turn") else None
        return await self._session.say(
            text, delivery, id=self._note.id, author=about.get("author", ""), is_stopped=is_stopped, shown=shown
        )

    async def queue(self, text: str) -> Receipt:
        """Put a message into the queue, behind the turn that runs."""
        author = self._note.about.get("author", "")
        return await self._session.say(text, Delivery.QUEUE, id=self._note.id, author=author)

    async def interrupt(self) -> None:
        """Stop the turn that runs, if there is one."""
        await self._session.interrupt(VOICE)

    async def withdraw(self) -> None:
        """Nothing to note: the recording on the shelf is all that would bring it back."""


class Voice:
    """The endpoint of recordings."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place

    async def hear(self, request: Request) -> Response:
        """Take a recording; the answer comes when its words are known and have their receipt."""
        session = self._place.session(request)
        if not self._place.ingress.is_on:
            raise ApiError(404, "no_voice", "Voice is not set up here: see [voice] in the settings.")
        query = request.query_params
        name, author = checked_names(query.get("id", ""), query.get("author", ""))
        about = {"surface": API, "author": author, "delivery": _delivery(query.get("delivery", ""))}
        about |= _shown(query.get("turn", ""), query.get("shown", ""))
        audio = Audio(await read_body(request, self._place.access.max_body), _audio_type(request))
        if not audio.data:
            raise ApiError(400, "empty", "There is no audio in the body.")
        self._place.feeds.of(session)
        if name and await session.has_known(name):
            return json_answer(Receipt(name, session.id, ReceiptState.DUPLICATE), 202)
        await session.opened()
        note = VoiceNote(name or self._place.agent.new_id(), session.id, audio, about)
        hearing = self._place.ingress.hear(note, ApiListener(self._place, session, note))
        return await self._answer(session, note, hearing)

    async def _answer(self, session: Session, note: VoiceNote, hearing: VoiceDelivery) -> Response:
        try:
            heard = await hearing.ended()
        except SpeechError as error:
            raise ApiError(503, "not_kept", str(error), {"Retry-After": "1"}) from error
        if heard.fate is Fate.WITHDRAWN:
            raise ApiError(409, "stopped", "A stop came before the recording was turned into words; nothing was said.")
        # A stop that was spoken is no message: it has no receipt of its own.
        receipt = heard.receipt or Receipt(note.id, session.id, ReceiptState.INTERRUPTING)
        self._place.metrics.messages[receipt.state] += 1
        return json_answer(structs.replace(receipt, transcript=heard.text), 202)


async def take_up(place: WebPlace, left: list[VoiceNote]) -> None:
    """Hear again what an earlier process had taken by HTTP and not ended."""
    for note in left:
        if note.about.get("surface") == API:
            session = place.named(note.line)
            again = structs.replace(note, is_said=await session.has_known(note.id))
            place.ingress.hear(again, ApiListener(place, session, again))


def _delivery(word: str) -> str:
    if word and word not in tuple(Delivery):
        raise ApiError(400, "bad_request", f"delivery must be one of {', '.join(Delivery)}.")
    return word


def _shown(turn: str, word: str) -> dict[str, str]:
    if not turn and not word:
        return {}
    if not turn or not (word.isascii() and word.isdigit()) or len(word) > len(str(MOST_SHOWN)):
        raise ApiError(400, "bad_request", "turn and shown go together: shown is a number of characters, from 0 on.")
    shown = checked_shown(turn, int(word))
    return {"turn": shown.turn, "shown": str(shown.characters)}


def _audio_type(request: Request) -> str:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media_type.startswith("audio/") and media_type not in _OTHER_AUDIO:
        raise ApiError(415, "not_audio", "Send the recording as the body, with its Content-Type, such as audio/ogg.")
    return media_type
