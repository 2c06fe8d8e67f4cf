"""Schedules over HTTP: list, add, pause, resume, remove, or run immediately."""

from msgspec import Struct
from starlette.requests import Request

from hark.protocol.receipts import Receipt
from hark.protocol.schedules import MAX_TEXT_CHARACTERS, ScheduleInfo, ScheduleRequest
from hark.surfaces.web.api.body import validate_text
from hark.surfaces.web.api.context import WebContext


class ScheduleChangeRequest(Struct, frozen=True):
    """A change to a schedule: pause or resume it."""

    paused: bool


class ScheduleList(Struct, frozen=True):
    """All schedules, sorted by name."""

    schedules: list[ScheduleInfo]


async def list_schedules(web: WebContext, request: Request) -> ScheduleList:
    """List the schedules."""
    return ScheduleList(await web.agent.schedules.all())


async def add_schedule(web: WebContext, request: Request, body: ScheduleRequest) -> ScheduleInfo:
    """Add a schedule."""
    for name, text in (
        ("when", body.when),
        ("name", body.name),
        ("timezone", body.timezone),
        ("session", body.session),
    ):
        validate_text(text, name, MAX_TEXT_CHARACTERS)
    return await web.agent.schedules.add(body)


async def pause_or_resume_schedule(web: WebContext, request: Request, body: ScheduleChangeRequest) -> ScheduleInfo:
    """Pause or resume a schedule."""
    schedules = web.agent.schedules
    return await (schedules.pause if body.paused else schedules.resume)(_schedule_name(request))


async def remove_schedule(web: WebContext, request: Request) -> ScheduleInfo:
    """Remove a schedule."""
    return await web.agent.schedules.remove(_schedule_name(request))


async def run_schedule(web: WebContext, request: Request) -> Receipt:
    """Run a schedule immediately."""
    return await web.agent.schedules.run(_schedule_name(request))


def _schedule_name(request: Request) -> str:
    return validate_text(request.path_params["name"], "name", MAX_TEXT_CHARACTERS)
