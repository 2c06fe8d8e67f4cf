"""`/schedule`: lists and changes schedules from inside a session."""

from hark.app.sessions.handle import SessionHandle
from hark.app.slash.meaning import is_command
from hark.protocol.commands import Say
from hark.protocol.receipts import Receipt
from hark.protocol.schedules import ScheduleRefused, ScheduleRequest
from hark.schedules.format import format_change, format_line, format_next
from hark.schedules.service import ScheduleService

USAGE = 'Use /schedule, /schedule add "WHEN" PROMPT, or /schedule remove|pause|resume NAME.'
QUOTES = {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}  # phones replace plain quotes by these


async def schedule(session: SessionHandle, arguments: str) -> str:
    """List the schedules, add one to this session, or pause, resume or remove one."""
    service = schedule_service(session)
    action, _, rest = arguments.partition(" ")
    rest = rest.strip()
    try:
        match action.lower():
            case "" | "list":
                return await _list_schedules(session, service)
            case "add":
                row = await service.add(_parse_request(session.id, rest))
                once = " once" if row.once else ""
                return f"Added {row.name}. It runs{once} in this session, {format_next(row)} ({row.timezone})."
            case ("remove" | "pause" | "resume") as change if rest:
                actions = {"remove": service.remove, "pause": service.pause, "resume": service.resume}
                return format_change(change, await actions[change](rest), "/stop")
            case _:
                return USAGE
    except ScheduleRefused as refused:
        return str(refused)


def schedule_service(session: SessionHandle) -> ScheduleService:
    """Return the schedule service for the session's home."""

    async def say(name: str, message: Say) -> Receipt:
        return await session.other_session(name).say(
            message.text, message.delivery, id=message.id, author=message.author
        )

    services, engine = session.services, session.engine
    return ScheduleService(
        services.schedule_store(), engine.store.journal, services.settings.schedules, engine.clock, say, is_command
    )


async def _list_schedules(session: SessionHandle, service: ScheduleService) -> str:
    """Return a list of the schedules, with those of this session first."""
    rows = sorted(await service.all(), key=lambda row: (row.session != session.id, row.name))
    return "\n".join(format_line(row) for row in rows) or f"No schedules. {USAGE}"


def _parse_request(session: str, arguments: str) -> ScheduleRequest:
    """Parse the schedule to add: the time in quotes, then the prompt.

    Raises:
        ScheduleRefused: The time in quotes or the prompt is missing.
    """
    plain = "".join(QUOTES.get(character, character) for character in arguments)
    quote = plain[:1]
    end = plain.find(quote, 1) if quote in ('"', "'") and quote else -1
    if plain.startswith("@"):
        when, _, prompt = arguments.partition(" ")
    elif end > 0:
        when, prompt = arguments[1:end], arguments[end + 1 :]
    else:
        raise ScheduleRefused("bad_schedule", 'Put the time in quotes: /schedule add "every day at 9:00" What is new?')
    return ScheduleRequest(when, prompt.strip(), session)
