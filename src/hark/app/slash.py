"""Messages that are commands: one table, the same on every surface."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hark.protocol.commands import ChooseRoute, Compact, Interrupt

if TYPE_CHECKING:
    from hark.app.handle import SessionHandle

Run = Callable[["SessionHandle", str], Awaitable[str]]

KEPT_IDS = 10_000


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command: what it is called, what it takes, what it does in a few words; `run` returns the notice."""

    name: str
    takes: str
    help: str
    run: Run


class TakenIds:
    """The ids of commands that were carried out: the same one is taken once, as with any message."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], None] = {}

    def take(self, session: str, name: str) -> bool:
        """Note an id; False when it is known."""
        if (session, name) in self._ids:
            return False
        self._ids[session, name] = None
        if len(self._ids) > KEPT_IDS:
            del self._ids[next(iter(self._ids))]
        return True


def find(text: str) -> tuple[SlashCommand, str] | None:
    """Return the command that a message is, and what stands behind its name; None for a message like any other.

    A path such as /etc/hosts is no command: its name is not in the table.
    """
    if not text.startswith("/") or text[1:2].strip() == "":
        return None
    name, *words = text[1:].split(None, 1)
    command = COMMANDS.get(name.lower())
    return (command, "".join(words).strip()) if command else None


async def _help(session: "SessionHandle", words: str) -> str:
    rows = [f"/{command.name} {command.takes}".strip() + f": {command.help}" for command in COMMANDS.values()]
    return "\n".join(rows)


async def _stop(session: "SessionHandle", words: str) -> str:
    settled = await session.door.interrupt(Interrupt(session.new_id(), "user"))
    return f"stopped in {settled.timings.settle:.1f} ms" if settled else "nothing runs"


async def _model(session: "SessionHandle", words: str) -> str:
    names = session.bench.routes.names
    if not words:
        await session.door.known()
        chosen = session.door.state.chosen_route
        now = chosen if chosen in names else names[0]
        return f"{now} serves first. The routes are: {', '.join(names)}. /model NAME changes it."
    if words not in names:
        return f"There is no route {words!r}. The routes are: {', '.join(names)}."
    refusal = await session.door.change(ChooseRoute(session.new_id(), words))
    return refusal.message if refusal else f"{words} serves first, from the next turn on."


async def _compact(session: "SessionHandle", words: str) -> str:
    refusal = await session.door.change(Compact(session.new_id(), words))
    return refusal.message if refusal else "Older messages are being summarised; /stop leaves them as they are."


async def _demo(session: "SessionHandle", words: str) -> str:
    from hark.app.demo import play

    await play(lambda line: session.door.notice("demo", line), session.bench.workspace)
    return "That was all: now try it with a real task."


COMMANDS = {
    command.name: command
    for command in (
        SlashCommand("help", "", "list the commands", _help),
        SlashCommand("stop", "", "stop what runs", _stop),
        SlashCommand("model", "[NAME]", "show the routes, or have another one serve first", _model),
        SlashCommand("compact", "[INSTRUCTIONS]", "put a summary in the place of what is old", _compact),
        SlashCommand("demo", "", "see interrupt, steer, queue and stop at work, without a model", _demo),
    )
}
