"""A session's queue and its open questions."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request

from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import AnswerMeaning, InvalidAnswerMeaning
from hark.protocol.receipts import QueueItem, Refusal
from hark.protocol.session import Session
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.live.feed import Feed
from hark.text.answers import QUESTION_CLOSED, AnswerResult, find_answer, read_answer

MAX_POSITION = 1_000_000
Position = Annotated[float, Meta(ge=1, le=MAX_POSITION, extra_json_schema={"multipleOf": 1})]
NonBlankText = Annotated[str, Meta(extra_json_schema={"pattern": r"\S"})]


class QueuedMessageChange(Struct, frozen=True):
    """A change to a queued message: a new text, a new position (from 1), or both."""

    text: NonBlankText | None = None
    position: Position | None = None

    def __post_init__(self) -> None:
        if self.text is None and self.position is None:
            raise ApiError(400, "bad_request", "Send the new text, the new position (from 1), or both.")
        if self.position is not None and self.position % 1:
            raise ApiError(400, "bad_request", "position must be a whole number of at least 1.")
        if self.text is not None and not self.text.strip():
            raise ApiError(400, "empty", "The new text is empty. Use DELETE to remove the message from the queue.")


class AnswerRequest(Struct, frozen=True):
    """An answer to a question: one of its choices, a text, or the input of a message field.

    An input that does not answer the question is refused with `not_an_answer`; post it as a message. `is_directed`:
    the field belongs to the question, so that every input except commands and stop words answers it.
    """

    choice: NonBlankText | None = None
    text: NonBlankText | None = None
    input: NonBlankText | None = None
    is_directed: bool = False

    def __post_init__(self) -> None:
        if [self.choice, self.text, self.input].count(None) != 2:
            raise ApiError(400, "bad_request", "Send one of choice, text and input.")
        if not self.value.strip():
            raise ApiError(400, "empty", "The answer is empty.")

    @property
    def value(self) -> str:
        """The given choice, text or input."""
        return self.choice or self.text or self.input or ""


class SessionQueue(Struct, frozen=True):
    """The queued messages, in the order in which they will run."""

    queue: list[QueueItem]


class AnsweredQuestion(Struct, frozen=True):
    """A question and its answer."""

    question: str
    answer: str


async def list_queue(web: WebContext, request: Request) -> SessionQueue:
    """List the queued messages."""
    return SessionQueue(await web.session(request).queue())


async def change_queued_message(web: WebContext, request: Request, body: QueuedMessageChange) -> SessionQueue:
    """Edit or move a queued message."""
    session, message = web.session(request), request.path_params["message"]
    if body.text is not None:
        await _raise_if_refused(session, message, await session.edit(message, body.text))
    if body.position is not None:
        await _raise_if_refused(session, message, await session.move(message, int(body.position)))
    return SessionQueue(await session.queue())


async def withdraw_message(web: WebContext, request: Request) -> SessionQueue:
    """Remove a message from the queue."""
    session, message = web.session(request), request.path_params["message"]
    await _raise_if_refused(session, message, await session.withdraw(message))
    return SessionQueue(await session.queue())


async def answer_question(web: WebContext, request: Request, body: AnswerRequest) -> AnsweredQuestion:
    """Answer an open question."""
    session, question = web.session(request), request.path_params["question"]
    feed = web.feeds.get(session.id)
    if feed is not None:
        await feed.catch_up()
    answer = _find_answer(session, question, body, feed)
    refusal = await session.answer(question, answer)
    if refusal is not None:
        raise ApiError(503 if refusal.code == "store" else 409, refusal.code, refusal.message)
    return AnsweredQuestion(question, answer)


def _find_answer(session: Session, question: str, body: AnswerRequest, feed: Feed | None) -> str:
    """Return the text of the answer.

    Raises:
        ApiError: The request does not answer the question.
    """
    asked = find_question(session, question)
    if body.input is not None:
        is_directed = body.is_directed
        meaning = session.interpret(
            body.input, lambda text: read_input(text, question, asked, feed, is_directed=is_directed)
        )
    elif asked is None:
        return body.value
    else:
        meaning = read_answer(body.value, asked, is_directed=body.text is not None or not asked.choices)
    match meaning:
        case AnswerMeaning(text=text):
            return text
        case InvalidAnswerMeaning(reason=reason) if reason == QUESTION_CLOSED:
            raise ApiError(409, "not_asked", reason)
        case InvalidAnswerMeaning(reason=reason):
            raise ApiError(400, "bad_choice", reason)
        case _ if body.input is not None:
            raise ApiError(400, "not_an_answer", "This text does not answer the question. Post it as a message.")
        case _:
            raise ApiError(400, "bad_choice", f"The choices are: {', '.join(asked.choices if asked else ())}.")


def find_question(session: Session, question: str) -> QuestionAsked | None:
    """Return an open question, or None if it is not open in this process."""
    return next((asked for asked in session.open_questions() if asked.question == question), None)


def read_input(
    text: str, question: str, asked: QuestionAsked | None, feed: Feed | None, *, is_directed: bool = False
) -> AnswerResult:
    """Apply the rule for answers to the input of a message field. `asked` is the question, or None if it is closed."""
    if is_directed:
        return read_answer(text, asked, is_directed=True) if asked else InvalidAnswerMeaning(QUESTION_CLOSED)
    closed = feed.last_closed if feed else None
    if asked is None and (closed is None or closed.question != question):
        return InvalidAnswerMeaning(QUESTION_CLOSED)  # a question from before a restart, whose choices are unknown
    return find_answer(text, [asked] if asked else [], closed, is_private=True)


async def _raise_if_refused(session: Session, message: str, refusal: Refusal | None) -> None:
    if refusal is None:
        return
    if refusal.code == "store":
        raise ApiError(503, "store", refusal.message, {"Retry-After": "1"})
    status = 409 if await session.has_message(message) else 404
    raise ApiError(status, refusal.code, refusal.message)
