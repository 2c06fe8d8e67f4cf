"""Sending a message to a session, and interrupting its turn."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field
from starlette.requests import Request

from hark.protocol.commands import Delivery
from hark.protocol.meaning import StopMeaning
from hark.protocol.outcomes import Outcome, Timings
from hark.protocol.receipts import Receipt, ReceiptState, Settled
from hark.protocol.session import MessageDetails
from hark.surfaces.web.api.attachments import MAX_ATTACHMENTS, AttachmentUpload, validate_attachments
from hark.surfaces.web.api.body import MAX_ID_CHARACTERS, CharacterCount, Label, ReplyProgress, TurnName, validate_text
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError

MAX_SOURCE_CHARACTERS = 100


class MessageRequest(Struct, frozen=True):
    """A message: a text, attachments, or both. A message with the `id` of an earlier one is a duplicate."""

    text: str = ""
    id: Label = ""
    delivery: Delivery | None = None
    attachments: Annotated[list[AttachmentUpload], Meta(extra_json_schema={"maxItems": MAX_ATTACHMENTS})] = field(
        default_factory=list[AttachmentUpload]
    )
    author: Label = ""
    shown: ReplyProgress | None = None

    def __post_init__(self) -> None:
        validate_text(self.id, "id", MAX_ID_CHARACTERS)
        validate_text(self.author, "author", MAX_ID_CHARACTERS)
        if self.shown:
            validate_text(self.shown.turn, "turn", 2 * MAX_ID_CHARACTERS)
        if not self.text.strip() and not self.attachments:
            raise ApiError(400, "empty", "The message is empty. Send a text or attachments.")


class InterruptRequest(Struct, frozen=True):
    """A request to stop all running work, only the given `turn`, or only the turn of the given `message`.

    If the message has not arrived yet, it is accepted on arrival but starts no turn.
    """

    source: Annotated[str, Meta(min_length=1, max_length=MAX_SOURCE_CHARACTERS)] = "user"
    turn: TurnName | None = None
    message: Label | None = None
    shown: CharacterCount | None = None

    def __post_init__(self) -> None:
        validate_text(self.source, "source", MAX_SOURCE_CHARACTERS)
        validate_text(self.turn or "", "turn", 2 * MAX_ID_CHARACTERS)
        validate_text(self.message or "", "message", MAX_ID_CHARACTERS)


class InterruptResult(Struct, frozen=True):
    """The turn that was stopped and its outcome, or null if no such turn was running."""

    turn: str | None = None
    outcome: Outcome | None = None
    timings: Timings | UnsetType = UNSET


async def post_message(web: WebContext, request: Request, body: MessageRequest) -> Receipt:
    """Accept a message. The message has been stored durably when the response is sent."""
    session = web.session(request)
    attachments = validate_attachments(body.attachments)
    details = MessageDetails(id=body.id, author=body.author, attachments=attachments, shown=body.shown)
    web.feeds.get_or_start(session)

    async def post(is_stopped: bool) -> Receipt:
        details["is_stopped"] = is_stopped
        return await session.say(body.text, body.delivery, **details)

    if not attachments and isinstance(session.interpret(body.text), StopMeaning):
        receipt = await web.voice_inbox.stop(session.id, lambda: post(False))
    elif web.voice_inbox.pending_count(session.id):  # a voice message came first
        receipt = await web.voice_inbox.send_in_order(session.id, post)
    else:
        receipt = await post(False)
    return count_receipt(web, receipt)


def count_receipt(web: WebContext, receipt: Receipt) -> Receipt:
    """Count a message in the metrics, and return its receipt.

    Raises:
        ApiError: The message was refused.
    """
    web.metrics.messages[receipt.state] += 1
    if receipt.state is ReceiptState.REFUSED:
        raise ApiError(429, "queue_full", receipt.reason or "The queue is full.", {"Retry-After": "10"})
    return receipt


async def interrupt_turn(web: WebContext, request: Request, body: InterruptRequest) -> InterruptResult:
    """Stop the running turn. The response is sent when the turn has settled."""
    session, turn = web.session(request), body.turn or ""
    messages = (body.message,) if body.message else ()

    async def stop() -> Settled | None:
        return await session.interrupt(body.source, turn, body.shown, messages)

    for message in messages:
        web.voice_inbox.withdraw(session.id, message)
    settled = await (stop() if turn or messages else web.voice_inbox.stop(session.id, stop))
    return InterruptResult(settled.turn, settled.outcome, settled.timings) if settled else InterruptResult()
