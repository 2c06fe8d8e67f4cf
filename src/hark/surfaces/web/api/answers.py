"""Answers to what a turn asks its person."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.surfaces.web.api.body import read_json
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.api.json_response import json_answer


class SentAnswer(Struct, frozen=True):
    """The body of an answer: one of the question's choices, or words of one's own."""

    choice: str | None = None
    text: str | None = None


class Answers:
    """A session's questions."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place

    async def answer(self, request: Request) -> Response:
        """Answer a question that is open."""
        session, question = self._place.session(request), request.path_params["question"]
        sent = await read_json(request, SentAnswer, self._place.access.max_body)
        if (sent.choice is None) == (sent.text is None):
            raise ApiError(400, "bad_request", "Say either a choice or a text.")
        text = sent.choice if sent.choice is not None else sent.text or ""
        if not text.strip():
            raise ApiError(400, "empty", "The answer is empty.")
        feed = self._place.feeds.known(session.id)
        if feed is not None:
            await feed.level()
        asked = feed.questions.get(question) if feed else None
        if sent.choice is not None and asked is not None and asked.choices and text not in asked.choices:
            raise ApiError(400, "bad_choice", f"The choices are: {', '.join(asked.choices)}.")
        refusal = await session.answer(question, text)
        if refusal is not None:
            raise ApiError(503 if refusal.code == "store" else 409, refusal.code, refusal.message)
        return json_answer({"question": question, "answer": text})
