"""Voice over HTTP: recordings become messages, in order with the texts around them, and texts become speech."""

from typing import Annotated

from msgspec import Meta, Struct, structs
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.commands import Delivery, Shown
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.session import Session
from hark.protocol.speech import Audio, SpeechError
from hark.protocol.voice_messages import Fate, VoiceDelivery, VoiceNote
from hark.surfaces.web.api.body import ID_CHARACTERS, CharacterCount, Label, TurnName, checked_text, read_body
from hark.surfaces.web.api.context import API, WebContext
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.live.stream import while_connected

TEXT_CHARACTERS = 5_000
VOICE = "voice"
_OTHER_AUDIO = ("application/octet-stream", "application/ogg", "video/webm", "video/mp4")


class SentText(Struct, frozen=True):
    """The text to speak, as Markdown."""

    text: Annotated[str, Meta(extra_json_schema={"maxLength": TEXT_CHARACTERS})]

    def __post_init__(self) -> None:
        if len(self.text) > TEXT_CHARACTERS:
            raise ApiError(400, "too_long", f"A text may have {TEXT_CHARACTERS} characters. Send it in parts.")


class VoiceQuery(Struct, frozen=True):
    """The parameters of a voice message. `turn` and `shown` say how much of that turn's reply the user has heard."""

    delivery: Delivery | None = None
    id: Label = ""
    author: Label = ""
    turn: TurnName = ""
    shown: CharacterCount | None = None

    def __post_init__(self) -> None:
        checked_text(self.id, "id", ID_CHARACTERS)
        checked_text(self.author, "author", ID_CHARACTERS)
        checked_text(self.turn, "turn", 2 * ID_CHARACTERS)
        if bool(self.turn) != (self.shown is not None):
            raise ValueError("turn and shown go together")


class ApiListener:
    """Brings the words of one recording to its session, as the message that the client named."""

    def __init__(self, session: Session, note: VoiceNote) -> None:
        self.session = session
        self._note = note

    def show(self, text: str) -> None:
        """Publish a notice to whoever reads along; the next one replaces it."""
        self.session.notice(VOICE, text)

    async def say(self, text: str, *, is_stopped: bool) -> Receipt:
        """Go on with the words exactly as if they had been typed."""
        about = self._note.about
        delivery = Delivery(about["delivery"]) if about.get("delivery") else None
        shown = Shown(about["turn"], int(about["shown"])) if about.get("turn") else None
        return await self.session.say(
            text, delivery, id=self._note.id, author=about.get("author", ""), is_stopped=is_stopped, shown=shown
        )

    async def queue(self, text: str) -> Receipt:
        """Put a message into the queue, behind the turn that runs."""
        author = self._note.about.get("author", "")
        return await self.session.say(text, Delivery.QUEUE, id=self._note.id, author=author)

    async def withdraw(self) -> None:
        """Nothing to note: the recording on the shelf is all that would bring it back."""


async def hear(web: WebContext, request: Request, query: VoiceQuery) -> Receipt:
    """Accept a voice message. The response has its transcript and arrives with the receipt of the message."""
    session = web.session(request)
    if not web.ingress.is_on:
        raise ApiError(404, "no_voice", "Voice is not set up here: see [voice] in the settings.")
    about = {"surface": API, "author": query.author, "delivery": query.delivery or ""}
    if query.turn:
        about |= {"turn": query.turn, "shown": str(query.shown)}
    audio = Audio(await read_body(request, web.access.max_body), _audio_type(request))
    if not audio.data:
        raise ApiError(400, "empty", "There is no audio in the body.")
    web.feeds.of(session)
    if query.id and await session.has_known(query.id):
        return Receipt(query.id, session.id, ReceiptState.DUPLICATE)
    await session.opened()
    note = VoiceNote(query.id or web.agent.new_id(), session.id, audio, about)
    return await _receipt(web, note, web.ingress.hear(note, ApiListener(session, note)))


async def _receipt(web: WebContext, note: VoiceNote, hearing: VoiceDelivery) -> Receipt:
    try:
        heard = await hearing.ended()
    except SpeechError as error:
        raise ApiError(503, "not_kept", str(error), {"Retry-After": "1"}) from error
    if heard.fate is Fate.WITHDRAWN:
        raise ApiError(409, "stopped", "A stop came before the recording was turned into words; nothing was said.")
    # A stop that was spoken is no message: it has no receipt of its own.
    receipt = heard.receipt or Receipt(note.id, note.line, ReceiptState.INTERRUPTING)
    web.metrics.messages[receipt.state] += 1
    return structs.replace(receipt, transcript=heard.text)


async def take_up(web: WebContext, left: list[VoiceNote]) -> None:
    """Hear again what an earlier process had taken by HTTP and not ended."""
    for note in left:
        if note.about.get("surface") == API:
            session = web.named(note.line)
            again = structs.replace(note, is_said=await session.has_known(note.id))
            web.ingress.hear(again, ApiListener(session, again))


def _audio_type(request: Request) -> str:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media_type.startswith("audio/") and media_type not in _OTHER_AUDIO:
        raise ApiError(415, "not_audio", "Send the recording as the body, with its Content-Type, such as audio/ogg.")
    return media_type


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
