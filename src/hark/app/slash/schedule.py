"""`/schedule`: the schedules, from inside a session."""

from hark.app.sessions.handle import SessionHandle
from hark.app.slash.meaning import is_command
from hark.protocol.commands import Say
from hark.protocol.receipts import Receipt
from hark.protocol.schedules import ScheduleOrder, ScheduleRefused
from hark.schedules.service import ScheduleDesk
from hark.schedules.table import change_words, line_of, next_words

USAGE = 'Say /schedule, /schedule add "WHEN" PROMPT, or /schedule remove|pause|resume NAME.'
QUOTES = {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}  # phones turn quotes into these


async def schedule(session: SessionHandle, words: str) -> str:
    """List the schedules, add one to this session, or pause, resume or remove one."""
    desk = desk_of(session)
    action, _, rest = words.partition(" ")
    rest = rest.strip()
    try:
        match action.lower():
            case "" | "list":
                return await _list(session, desk)
            case "add":
                row = await desk.add(_order(session.id, rest))
                once = " once" if row.once else ""
                return f"{row.name} runs{once} here, {next_words(row)} ({row.timezone})."
            case ("remove" | "pause" | "resume") as change if rest:
                acts = {"remove": desk.remove, "pause": desk.pause, "resume": desk.resume}
                return change_words(change, await acts[change](rest), "/stop")
            case _:
                return USAGE
    except ScheduleRefused as refused:
        return str(refused)


def desk_of(session: SessionHandle) -> ScheduleDesk:
    """Return the desk of the home that a session is in."""

    async def say(name: str, message: Say) -> Receipt:
        return await session.beside(name).say(message.text, message.delivery, id=message.id, author=message.author)

    parts, bench = session.parts, session.bench
    return ScheduleDesk(
        parts.schedule_book(), bench.store.journal, parts.settings.schedules, bench.clock, say, is_command
    )


async def _list(session: SessionHandle, desk: ScheduleDesk) -> str:
    """Return the schedules, those of this session first."""
    rows = sorted(await desk.rows(), key=lambda row: (row.session != session.id, row.name))
    return "\n".join(line_of(row) for row in rows) or f"There are no schedules. {USAGE}"


def _order(session: str, words: str) -> ScheduleOrder:
    """Return what is asked for: the time in quotes, then the prompt.

    Raises:
        ScheduleRefused: There is no time in quotes, or nothing behind it.
    """
    plain = "".join(QUOTES.get(sign, sign) for sign in words)
    quote = plain[:1]
    end = plain.find(quote, 1) if quote in ('"', "'") and quote else -1
    if plain.startswith("@"):
        when, _, prompt = words.partition(" ")
    elif end > 0:
        when, prompt = words[1:end], words[end + 1 :]
    else:
        raise ScheduleRefused("bad_schedule", 'Put the time in quotes: /schedule add "every day at 9:00" What is new?')
    return ScheduleOrder(when, prompt.strip(), session)
