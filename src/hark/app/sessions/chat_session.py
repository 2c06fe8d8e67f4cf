"""Sessions as chat surfaces use them: with their past, so that no reply is forgotten."""

from hark.app.sessions.handle import SessionHandle
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.names import number_of
from hark.protocol.outcomes import Outcome
from hark.protocol.records import Replied, TurnEnded


class ChatSessionHandle(SessionHandle):
    """A session whose ended turns and replies can be asked for."""

    @property
    def running(self) -> str:
        """The turn that runs, "" when none does or the session is not loaded yet."""
        turn = self.door.state.turn
        return turn.id if turn else ""

    async def has_said(self, message: str, text: str) -> bool:
        """Tell whether the model was told a message of that id with these words."""
        told = (one for one in await self.transcript() if isinstance(one, UserMessage) and one.id == message)
        return any(text in one.text for one in told)

    async def ended_turns(self, after: int) -> list[tuple[str, Outcome]]:
        """Return the turns that ended, from behind this number on, the oldest first."""
        if self.door.state.turns <= after:
            return []
        records = await self.bench.store.journal.read(self.id)
        ends = [record for record in records if isinstance(record, TurnEnded)]
        return [(end.turn, end.outcome) for end in ends if number_of(end.turn) > after]

    async def reply_of(self, turn: str) -> str:
        """Return all that the model said in a turn. The journal is asked only when it is not known any more."""
        messages = self.door.state.transcript.of(turn)
        if messages is None:
            records = await self.bench.store.journal.read(self.id)
            messages = [record.message for record in records if isinstance(record, Replied) and record.turn == turn]
        texts = [message.text for message in messages if isinstance(message, AssistantMessage)]
        return "\n\n".join(text.strip() for text in texts if text.strip())
