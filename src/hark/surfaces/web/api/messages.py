"""Saying something in a session: a text, and a stop."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field
from starlette.requests import Request

from hark.protocol.commands import Delivery
from hark.protocol.meaning import StopMeaning
from hark.protocol.outcomes import Outcome, Timings
from hark.protocol.receipts import Receipt, Settled
from hark.protocol.session import Details
from hark.surfaces.web.api.attachments import MOST_ATTACHMENTS, SentAttachment, all_checked
from hark.surfaces.web.api.body import ID_CHARACTERS, CharacterCount, Label, SentShown, TurnName, checked_text
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError

SOURCE_CHARACTERS = 100


class SentMessage(Struct, frozen=True):
    """A message: a text, attachments, or both. A message with the `id` of an earlier one is a duplicate."""

    text: str = ""
    id: Label = ""
    delivery: Delivery | None = None
    attachments: Annotated[list[SentAttachment], Meta(extra_json_schema={"maxItems": MOST_ATTACHMENTS})] = field(
        default_factory=list[SentAttachment]
    )
    author: Label = ""
    shown: SentShown | None = None

    def __post_init__(self) -> None:
        checked_text(self.id, "id", ID_CHARACTERS)
        checked_text(self.author, "author", ID_CHARACTERS)
        if self.shown:
            checked_text(self.shown.turn, "turn", 2 * ID_CHARACTERS)
        if not self.text.strip() and not self.attachments:
            raise ApiError(400, "empty", "The message says nothing: give it a text, or attachments.")


class SentInterrupt(Struct, frozen=True):
    """A stop of everything that runs. With `turn` or `message`, it stops only that turn, or the turn of that message.

    A message may still be on its way: it is accepted when it arrives, and sets nothing off.
    """

    source: Annotated[str, Meta(min_length=1, max_length=SOURCE_CHARACTERS)] = "user"
    turn: TurnName | None = None
    message: Label | None = None
    shown: CharacterCount | None = None

    def __post_init__(self) -> None:
        checked_text(self.source, "source", SOURCE_CHARACTERS)
        checked_text(self.turn or "", "turn", 2 * ID_CHARACTERS)
        checked_text(self.message or "", "message", ID_CHARACTERS)


class InterruptResult(Struct, frozen=True):
    """The turn that was stopped, and how it ended; null if no such turn was running."""

    turn: str | None = None
    outcome: Outcome | None = None
    timings: Timings | UnsetType = UNSET


async def say(web: WebContext, request: Request, body: SentMessage) -> Receipt:
    """Accept a message. It is durable when the response arrives."""
    session = web.session(request)
    attachments = all_checked(body.attachments)
    details = Details(id=body.id, author=body.author, attachments=attachments, shown=body.shown)
    web.feeds.of(session)

    async def post(is_stopped: bool) -> Receipt:
        details["is_stopped"] = is_stopped
        return await session.say(body.text, body.delivery, **details)

    if not attachments and isinstance(session.meaning(body.text), StopMeaning):
        receipt = await web.ingress.stop(session.id, lambda: post(False))
    elif web.ingress.waiting(session.id):  # a voice message is before it
        receipt = await web.ingress.read(session.id, post)
    else:
        receipt = await post(False)
    web.metrics.messages[receipt.state] += 1
    return receipt


async def interrupt(web: WebContext, request: Request, body: SentInterrupt) -> InterruptResult:
    """Stop the running turn. The response arrives when it has settled."""
    session, turn = web.session(request), body.turn or ""
    messages = (body.message,) if body.message else ()

    async def stop() -> Settled | None:
        return await session.interrupt(body.source, turn, body.shown, messages)

    for message in messages:
        web.ingress.withdraw(session.id, message)
    settled = await (stop() if turn or messages else web.ingress.stop(session.id, stop))
    return InterruptResult(settled.turn, settled.outcome, settled.timings) if settled else InterruptResult()
