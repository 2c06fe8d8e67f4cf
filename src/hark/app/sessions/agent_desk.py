"""The agent, as the terminal app uses it."""

from collections.abc import Sequence

from hark.app.build import Agent
from hark.app.sessions.handle import SessionHandle
from hark.app.slash.table import COMMANDS
from hark.app.slash.turn import queue
from hark.protocol.commands import Remark, Rewind
from hark.protocol.desk import ChildLine, CommandLine, PastTurn
from hark.protocol.messages import UserMessage
from hark.protocol.snapshots import UndoRefused

_SESSIONS = 200
_CHILD = ".c-"


class AgentDesk:
    """One person's view of it."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    @property
    def commands(self) -> Sequence[CommandLine]:
        """The slash commands."""
        return [CommandLine(command.name, command.takes, command.help) for command in COMMANDS.values()]

    def session(self, name: str) -> SessionHandle:
        """Return a session; it is made when new."""
        return self._agent.session(name, surface="terminal")

    def model(self, session: str) -> str:
        """Return the route that serves the session first."""
        names = self._agent.bench.routes.names
        chosen = self.session(session).door.state.chosen_route
        return chosen if chosen in names else names[0]

    def running(self, session: str) -> str:
        """Return the turn that runs, "" when none does."""
        turn = self.session(session).door.state.turn
        return turn.id if turn else ""

    async def sessions(self, words: str = "") -> list[tuple[str, str]]:
        """Return the sessions, the last changed first, each with its title."""
        lines = (await self._agent.bench.store.journal.sessions())[:_SESSIONS]
        rows = [(line.session, line.summary.title) for line in lines]
        return [row for row in rows if words.lower() in f"{row[0]} {row[1]}".lower()]

    async def children(self, session: str) -> list[ChildLine]:
        """Return the session's children and theirs, each behind its parent."""
        titles = dict(await self.sessions())
        names = {child.id for child in self.session(session).children()}
        names |= {name for name in titles if name.startswith(f"{session}{_CHILD}")}
        depth = session.count(_CHILD)
        return [
            ChildLine(name, name.count(_CHILD) - depth, titles.get(name, ""), bool(self.running(name)))
            for name in sorted(names)
        ]

    async def past(self, session: str) -> list[PastTurn]:
        """Return the turns that one can go back to, the oldest first."""
        handle = self.session(session)
        await handle.opened()
        transcript = handle.door.state.transcript
        turns: dict[str, str] = {}
        for message, turn in zip(transcript.messages, transcript.turns, strict=True):
            if isinstance(message, UserMessage) and transcript.knows(turn):
                turns.setdefault(turn, message.text)
        return [PastTurn(turn, text) for turn, text in turns.items()]

    async def rewind(self, session: str, turn: str, *, with_files: bool) -> str:
        """Go back to before a turn, with its file changes or without; return what was done, or why not."""
        handle = self.session(session)
        if self.running(session):
            return "A turn runs. Stop it, or wait for its end, and go back then."
        told = f"Back to before {turn}."
        remark = ""
        if with_files:
            try:
                undone = await self._agent.bench.snapshots.undo(session, since=turn)
            except UndoRefused as refused:
                return f"{refused} Nothing was taken back."
            count = len(undone.restored)
            told += f" {count} {'file is' if count == 1 else 'files are'} as before."
            told += "".join(f" Not undone: {what}." for what in undone.not_undone)
            remark = "The person went back to this point, and undid the file changes that had been made since."
        refusal = await handle.door.change(Rewind(handle.new_id(), turn))
        if refusal:
            return refusal.message
        if remark:
            await handle.door.change(Remark(handle.new_id(), remark))
        return told

    async def send_now(self, session: str, message: str) -> str:
        """Have a message that waits interrupt what runs, with all that belongs to it; return what was done."""
        handle = self.session(session)
        places = [place for place, item in enumerate(await handle.queue(), 1) if item.id == message]
        return await queue(handle, f"{places[0]} now") if places else "That message does not wait any more."
