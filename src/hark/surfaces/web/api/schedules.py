"""Schedules over HTTP: list, add, change, remove, and run one now."""

from msgspec import Struct
from starlette.requests import Request

from hark.protocol.receipts import Receipt
from hark.protocol.schedules import TEXT_CHARACTERS, ScheduleOrder, ScheduleRow
from hark.surfaces.web.api.body import checked_text
from hark.surfaces.web.api.context import WebContext


class SentScheduleChange(Struct, frozen=True):
    """A change of a schedule: pause it, or resume it."""

    paused: bool


class ScheduleList(Struct, frozen=True):
    """All schedules, by name."""

    schedules: list[ScheduleRow]


async def show(web: WebContext, request: Request) -> ScheduleList:
    """List the schedules."""
    return ScheduleList(await web.agent.schedules.rows())


async def add(web: WebContext, request: Request, body: ScheduleOrder) -> ScheduleRow:
    """Add a schedule."""
    for name, text in (
        ("when", body.when),
        ("name", body.name),
        ("timezone", body.timezone),
        ("session", body.session),
    ):
        checked_text(text, name, TEXT_CHARACTERS)
    return await web.agent.schedules.add(body)


async def change(web: WebContext, request: Request, body: SentScheduleChange) -> ScheduleRow:
    """Pause or resume a schedule."""
    schedules = web.agent.schedules
    return await (schedules.pause if body.paused else schedules.resume)(_name(request))


async def remove(web: WebContext, request: Request) -> ScheduleRow:
    """Remove a schedule."""
    return await web.agent.schedules.remove(_name(request))


async def run(web: WebContext, request: Request) -> Receipt:
    """Run a schedule immediately."""
    return await web.agent.schedules.run(_name(request))


def _name(request: Request) -> str:
    return checked_text(request.path_params["name"], "name", TEXT_CHARACTERS)
