"""Going back to before a turn, with the files that were changed since or without."""

from hark.engine.session.proxy import SessionProxy
from hark.engine.session.state import SessionState
from hark.protocol.clock import Clock
from hark.protocol.commands import Remark, Rewind
from hark.protocol.messages import UserMessage
from hark.protocol.session import RewindPoint
from hark.protocol.snapshots import Snapshots, Undone, UndoRefused

MOST_FILES = 20


def rewind_points(state: SessionState) -> list[RewindPoint]:
    """Return the turns that one can go back to, the oldest first."""
    transcript = state.transcript
    turns: dict[str, str] = {}
    for message, turn in zip(transcript.messages, transcript.turns, strict=True):
        if isinstance(message, UserMessage) and transcript.knows(turn):
            turns.setdefault(turn, message.text)
    return [RewindPoint(turn, text) for turn, text in turns.items()]


async def rewind_with_files(door: SessionProxy, turn: str, snapshots: Snapshots, clock: Clock) -> str:
    """Undo the file changes since a turn began, then go back to before it; return what was done, or why not."""
    try:
        undone = await snapshots.undo(door.id, since=turn)
    except UndoRefused as refused:
        return f"{refused} Nothing was taken back."
    refusal = await door.change(Rewind(clock.new_id(), turn))
    if refusal:
        return refusal.message
    remark = "The person went back to this point, and undid the file changes that had been made since."
    await door.change(Remark(clock.new_id(), remark))
    told = "".join(f" Not undone: {what}." for what in undone.not_undone)
    return f"Back to before {turn}. {_count(undone)}.{told}"


def undone_text(undone: Undone) -> str:
    """Return what an undo put back, and what not."""
    more = len(undone.restored) - MOST_FILES
    lines = [f"{_count(undone)}: {', '.join(undone.restored[:MOST_FILES])}" + (f" and {more} more" if more > 0 else "")]
    return "\n".join([*lines, *(f"Not undone: {what}" for what in undone.not_undone)])


def _count(undone: Undone) -> str:
    count = len(undone.restored)
    return f"{count} {'file is' if count == 1 else 'files are'} as before"
