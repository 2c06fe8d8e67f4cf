"""Voice over HTTP. Recordings become messages, in order with typed messages, and text is converted to speech."""

from typing import Annotated

from msgspec import Meta, Struct, structs
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.commands import Delivery, ShownText
from hark.protocol.meaning import AnswerMeaning, InvalidAnswerMeaning
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.session import Session
from hark.protocol.speech import Audio, SpeechError
from hark.protocol.voice_messages import VoiceDelivery, VoiceNote, VoiceOutcome
from hark.surfaces.web.api.body import MAX_ID_CHARACTERS, CharacterCount, Label, TurnName, read_body, validate_text
from hark.surfaces.web.api.context import API, WebContext
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.api.messages import count_receipt
from hark.surfaces.web.api.queue import find_question, read_input
from hark.surfaces.web.live.feed import Feeds
from hark.surfaces.web.live.stream import respond_while_connected

MAX_SPEECH_CHARACTERS = 5_000
VOICE = "voice"
MICROPHONE = "🎙️"
_OTHER_AUDIO = ("application/octet-stream", "application/ogg", "video/webm", "video/mp4")


class SpeechRequest(Struct, frozen=True):
    """The Markdown text to convert to speech."""

    text: Annotated[str, Meta(extra_json_schema={"maxLength": MAX_SPEECH_CHARACTERS})]

    def __post_init__(self) -> None:
        if len(self.text) > MAX_SPEECH_CHARACTERS:
            raise ApiError(
                400, "too_long", f"The text is longer than {MAX_SPEECH_CHARACTERS} characters. Send it in parts."
            )


class VoiceQuery(Struct, frozen=True):
    """The parameters of a voice message. `shown`: how many characters of `turn`'s reply had been spoken.

    `question`: the open question that the user could read when the recording began. The transcript may answer it.
    """

    delivery: Delivery | None = None
    id: Label = ""
    author: Label = ""
    turn: TurnName = ""
    shown: CharacterCount | None = None
    question: Label = ""

    def __post_init__(self) -> None:
        validate_text(self.id, "id", MAX_ID_CHARACTERS)
        validate_text(self.author, "author", MAX_ID_CHARACTERS)
        validate_text(self.turn, "turn", 2 * MAX_ID_CHARACTERS)
        validate_text(self.question, "question", MAX_ID_CHARACTERS)
        if bool(self.turn) != (self.shown is not None):
            raise ValueError("turn and shown must be sent together")


class ApiVoiceClient:
    """Sends the transcript of one recording to its session, under the message id that the client chose."""

    def __init__(self, session: Session, note: VoiceNote, feeds: Feeds) -> None:
        self.session = session
        self._note = note
        self._feeds = feeds

    def show(self, text: str) -> None:
        """Publish a notice to the session's subscribers. The next notice replaces it."""
        self.session.publish_notice(VOICE, text)

    async def say(self, text: str, *, is_stopped: bool) -> Receipt:
        """Send the transcript as if the user had typed it: as the answer to the question, or as a message."""
        about = self._note.about
        if about.get("question") and not is_stopped and (receipt := await self._answer(text, about["question"])):
            return receipt
        delivery = Delivery(about["delivery"]) if about.get("delivery") else None
        shown = ShownText(about["turn"], int(about["shown"])) if about.get("turn") else None
        return await self.session.say(
            text, delivery, id=self._note.id, author=about.get("author", ""), is_stopped=is_stopped, shown=shown
        )

    async def _answer(self, text: str, question: str) -> Receipt | None:
        """Answer the question. Return None if the text is a message. An answer that is refused is returned as text."""
        feed = self._feeds.get(self.session.id)
        if feed is not None:
            await feed.catch_up()
        asked = find_question(self.session, question)
        meaning = self.session.interpret(text, lambda text: read_input(text, question, asked, feed))
        if isinstance(meaning, AnswerMeaning):
            refusal = await self.session.answer(question, meaning.text)
            if refusal is None:
                return Receipt(self._note.id, self.session.id, ReceiptState.ANSWERED)
            meaning = InvalidAnswerMeaning(refusal.message)
        if not isinstance(meaning, InvalidAnswerMeaning):
            return None
        self.show(f"{MICROPHONE} {meaning.reason}")
        return Receipt(self._note.id, self.session.id, ReceiptState.WITHDRAWN, text=text)

    async def queue(self, text: str) -> Receipt:
        """Queue a message to run after the current turn."""
        author = self._note.about.get("author", "")
        return await self.session.say(text, Delivery.QUEUE, id=self._note.id, author=author)

    async def withdraw(self) -> None:
        """Do nothing, because the inbox deletes the recording, so it can't be sent again."""


async def post_voice_message(web: WebContext, request: Request, query: VoiceQuery) -> Receipt:
    """Accept a voice message. The response is sent after transcription, with the receipt and the transcript."""
    session = web.session(request)
    if not web.voice_inbox.is_on:
        raise ApiError(404, "no_voice", "Voice is not set up. See [voice] in the settings.")
    about = {"surface": API, "author": query.author, "delivery": query.delivery or "", "question": query.question}
    if query.turn:
        about |= {"turn": query.turn, "shown": str(query.shown)}
    audio = Audio(await read_body(request, web.access.max_body_bytes), _audio_type(request))
    if not audio.data:
        raise ApiError(400, "empty", "The body has no audio.")
    web.feeds.get_or_start(session)
    if query.id and await session.has_message(query.id):
        return Receipt(query.id, session.id, ReceiptState.DUPLICATE)
    await session.wait_until_loaded()
    note = VoiceNote(query.id or web.agent.new_id(), session.id, audio, about)
    return await _wait_for_receipt(web, note, web.voice_inbox.accept(note, ApiVoiceClient(session, note, web.feeds)))


async def _wait_for_receipt(web: WebContext, note: VoiceNote, delivery: VoiceDelivery) -> Receipt:
    try:
        result = await delivery.result()
    except SpeechError as error:
        raise ApiError(503, "not_kept", str(error), {"Retry-After": "1"}) from error
    if result.outcome is VoiceOutcome.WITHDRAWN:
        raise ApiError(409, "stopped", "The recording was stopped before it was transcribed. No message was sent.")
    # A spoken stop command isn't a message, so it has no receipt.
    receipt = result.receipt or Receipt(note.id, note.conversation, ReceiptState.INTERRUPTING)
    return structs.replace(count_receipt(web, receipt), transcript=result.text)


async def resume_voice_messages(web: WebContext, notes: list[VoiceNote]) -> None:
    """Transcribe the voice messages that an earlier process accepted over HTTP but did not finish."""
    for note in notes:
        if note.about.get("surface") == API:
            session = web.session_named(note.conversation)
            resumed = structs.replace(note, is_said=await session.has_message(note.id))
            web.voice_inbox.accept(resumed, ApiVoiceClient(session, resumed, web.feeds))


def _audio_type(request: Request) -> str:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media_type.startswith("audio/") and media_type not in _OTHER_AUDIO:
        raise ApiError(415, "not_audio", "Send the recording as the body, with its Content-Type, such as audio/ogg.")
    return media_type


async def synthesize_speech(web: WebContext, request: Request, body: SpeechRequest) -> Response:
    """Return the text as WAV audio, or status 204 if there is nothing to speak. A disconnect cancels the request."""
    return await respond_while_connected(request, lambda: _synthesize(web, body.text))


async def _synthesize(web: WebContext, text: str) -> Response:
    if web.speak is None:
        raise ApiError(404, "no_speech", "Speech output is turned off.")
    async with web.speech_limiter:
        try:
            audio = await web.speak(text)
        except SpeechError as error:
            raise ApiError(404, "no_speech", str(error)) from error
    return Response(audio.data, media_type=audio.media_type) if audio.data else Response(status_code=204)
