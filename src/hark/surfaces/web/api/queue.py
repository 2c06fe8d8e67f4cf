"""What waits in a session, changes to it, and answers to what is asked."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.receipts import Refusal
from hark.protocol.session import Session
from hark.surfaces.web.api.body import read_json
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.api.json_response import json_answer

MOST_POSITION = 1_000_000


class SentChange(Struct, frozen=True):
    """The body of a change: another text, another position, or both."""

    text: str | None = None
    position: int | float | None = None


class Queue:
    """A session's queue."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place

    async def show(self, request: Request) -> Response:
        """Tell what waits."""
        return json_answer({"queue": await self._place.session(request).queue()})

    async def change(self, request: Request) -> Response:
        """Edit a message that waits, or move it."""
        session, message = self._place.session(request), request.path_params["message"]
        sent = await read_json(request, SentChange, self._place.access.max_body)
        if sent.text is None and sent.position is None:
            raise ApiError(400, "bad_request", "Say the new text or the new position, from 1.")
        if sent.position is not None and not (1 <= sent.position <= MOST_POSITION and sent.position % 1 == 0):
            raise ApiError(400, "bad_request", "position must be a whole number from 1 on.")
        if sent.text is not None:
            if not sent.text.strip():
                raise ApiError(400, "empty", "The new text is empty; DELETE takes the message out of the queue.")
            await self._check(session, message, await session.edit(message, sent.text))
        if sent.position is not None:
            await self._check(session, message, await session.move(message, int(sent.position)))
        return json_answer({"queue": await session.queue()})

    async def withdraw(self, request: Request) -> Response:
        """Take a message that waits out of the queue."""
        session, message = self._place.session(request), request.path_params["message"]
        await self._check(session, message, await session.withdraw(message))
        return json_answer({"queue": await session.queue()})

    async def _check(self, session: Session, message: str, refusal: Refusal | None) -> None:
        if refusal is None:
            return
        if refusal.code == "store":
            raise ApiError(503, "store", refusal.message, {"Retry-After": "1"})
        status = 409 if await session.has_known(message) else 404
        raise ApiError(status, refusal.code, refusal.message)
