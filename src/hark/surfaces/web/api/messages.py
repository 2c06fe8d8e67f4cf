"""Saying something in a session: a text, and a stop."""

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.commands import Delivery, Shown
from hark.protocol.meaning import StopMeaning
from hark.protocol.receipts import Receipt, Settled
from hark.protocol.session import Details
from hark.surfaces.web.api.attachments import SentAttachment, all_checked
from hark.surfaces.web.api.body import ID_CHARACTERS, checked_names, checked_shown, checked_text, read_json
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.api.json_response import json_answer

SOURCE_CHARACTERS = 100
_NOTHING = {"turn": None, "outcome": None}


class SentMessage(Struct, frozen=True):
    """The body of a message."""

    text: str = ""
    id: str = ""
    delivery: Delivery | None = None
    attachments: list[SentAttachment] = field(default_factory=list[SentAttachment])
    author: str = ""
    shown: Shown | None = None


class SentInterrupt(Struct, frozen=True):
    """The body of a stop."""

    source: str = "user"
    turn: str | None = None
    message: str | None = None
    shown: int | None = None


class Messages:
    """What goes into a session."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place

    async def say(self, request: Request) -> Response:
        """Accept a message; it is durable when the answer comes."""
        session = self._place.session(request)
        sent = await read_json(request, SentMessage, self._place.access.max_body)
        name, author = checked_names(sent.id, sent.author)
        attachments = all_checked(sent.attachments)
        if not sent.text.strip() and not attachments:
            raise ApiError(400, "empty", "The message says nothing: give it a text, or attachments.")
        shown = checked_shown(sent.shown.turn, sent.shown.characters) if sent.shown else None
        details = Details(id=name, author=author, attachments=attachments, shown=shown)
        self._place.feeds.of(session)
        ingress = self._place.ingress

        async def say(is_stopped: bool) -> Receipt:
            details["is_stopped"] = is_stopped
            return await session.say(sent.text, sent.delivery, **details)

        if not attachments and isinstance(session.meaning(sent.text), StopMeaning):
            receipt = await ingress.stop(session.id, lambda: say(False))
        elif ingress.waiting(session.id):  # a voice message is before it
            receipt = await ingress.read(session.id, say)
        else:
            receipt = await say(False)
        self._place.metrics.messages[receipt.state] += 1
        return json_answer(receipt, 202)

    async def interrupt(self, request: Request) -> Response:
        """End the running turn; the answer comes when it has settled."""
        session = self._place.session(request)
        sent = await read_json(request, SentInterrupt, self._place.access.max_body, may_be_empty=True)
        source = checked_text(sent.source, "source", SOURCE_CHARACTERS, may_be_empty=False)
        turn = checked_text(sent.turn or "", "turn", ID_CHARACTERS * 2)
        message = checked_text(sent.message or "", "message", ID_CHARACTERS)
        messages = (message,) if message else ()
        if sent.shown is not None:
            checked_shown(turn, sent.shown)

        async def interrupt() -> Settled | None:
            return await session.interrupt(source, turn, sent.shown, messages)

        if message:
            self._place.ingress.withdraw(session.id, message)
        is_all = not turn and not message
        settled = await (self._place.ingress.stop(session.id, interrupt) if is_all else interrupt())
        return json_answer(settled or _NOTHING)
