"""Schedules over HTTP: list, add, change, remove, and run one now."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.commands import Delivery
from hark.protocol.schedules import ScheduleOrder, ScheduleRefused
from hark.surfaces.web.api.body import checked_text, read_json
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.api.json_response import json_answer

WORDS_CHARACTERS = 200
PROMPT_CHARACTERS = 100_000
_STATUSES = {"bad_schedule": 400, "unknown": 404, "exists": 409, "over": 409, "full": 409}


class SentSchedule(Struct, frozen=True):
    """The body of a new schedule."""

    when: str
    prompt: str
    session: str = ""
    name: str = ""
    timezone: str = ""
    delivery: Delivery = Delivery.QUEUE
    once: bool = False


class SentScheduleChange(Struct, frozen=True):
    """The body of a change."""

    paused: bool


class ScheduleTable:
    """The schedules of the agent's home."""

    def __init__(self, place: WebPlace) -> None:
        self._place = place

    async def show(self, request: Request) -> Response:
        """List them."""
        return json_answer({"schedules": await self._place.agent.schedules.rows()})

    async def add(self, request: Request) -> Response:
        """Keep a new one."""
        sent = await read_json(request, SentSchedule, self._place.access.max_body)
        when, name, zone, session = (
            checked_text(text, field, WORDS_CHARACTERS)
            for field, text in (
                ("when", sent.when),
                ("name", sent.name),
                ("timezone", sent.timezone),
                ("session", sent.session),
            )
        )
        order = ScheduleOrder(when, sent.prompt, session, name, zone, sent.delivery, sent.once)
        try:
            return json_answer(await self._place.agent.schedules.add(order), 201)
        except ScheduleRefused as refused:
            raise _told(refused) from refused

    async def change(self, request: Request) -> Response:
        """Pause one, or resume it."""
        sent = await read_json(request, SentScheduleChange, self._place.access.max_body)
        schedules, name = self._place.agent.schedules, _name(request)
        try:
            return json_answer(await (schedules.pause if sent.paused else schedules.resume)(name))
        except ScheduleRefused as refused:
            raise _told(refused) from refused

    async def remove(self, request: Request) -> Response:
        """Forget one."""
        try:
            return json_answer(await self._place.agent.schedules.remove(_name(request)))
        except ScheduleRefused as refused:
            raise _told(refused) from refused

    async def run(self, request: Request) -> Response:
        """Say the prompt of one now."""
        try:
            return json_answer(await self._place.agent.schedules.run(_name(request)), 202)
        except ScheduleRefused as refused:
            raise _told(refused) from refused


def _name(request: Request) -> str:
    return checked_text(request.path_params["name"], "name", WORDS_CHARACTERS)


def _told(refused: ScheduleRefused) -> ApiError:
    return ApiError(_STATUSES[refused.code], refused.code, str(refused))
