"""Rewinds a session to before a turn, and optionally undoes the file changes since then."""

from hark.engine.session.proxy import SessionProxy
from hark.engine.session.state import SessionState
from hark.protocol.clock import Clock
from hark.protocol.commands import AddNote, Rewind
from hark.protocol.messages import UserMessage
from hark.protocol.session import RewindPoint
from hark.protocol.snapshots import Snapshots, UndoRefused, UndoResult

MAX_LISTED_FILES = 20


def rewind_points(state: SessionState) -> list[RewindPoint]:
    """Return the turns that the session can be rewound to, oldest first."""
    transcript = state.transcript
    turns: dict[str, str] = {}
    for message, turn in zip(transcript.messages, transcript.turns, strict=True):
        if isinstance(message, UserMessage) and transcript.has_full_turn(turn):
            turns.setdefault(turn, message.text)
    return [RewindPoint(turn, text) for turn, text in turns.items()]


async def rewind_with_files(proxy: SessionProxy, turn: str, snapshots: Snapshots, clock: Clock) -> str:
    """Undo the file changes since the start of a turn, then rewind to before it. Return the reply for the user."""
    try:
        undone = await snapshots.undo(proxy.id, since=turn)
    except UndoRefused as refused:
        return f"{refused} Nothing was undone."
    refusal = await proxy.change(Rewind(clock.new_id(), turn))
    if refusal:
        return refusal.message
    note = "The user rewound to this point; file changes since then were undone."
    await proxy.change(AddNote(clock.new_id(), note))
    not_undone = "".join(f" Not undone: {path}." for path in undone.not_undone)
    return f"Rewound to before {turn}. {_restored_count_text(undone)}.{not_undone}"


def undone_text(undone: UndoResult) -> str:
    """Format the result of an undo for the user: the files that were restored, and those that were not."""
    more = len(undone.restored) - MAX_LISTED_FILES
    lines = [
        f"{_restored_count_text(undone)}: {', '.join(undone.restored[:MAX_LISTED_FILES])}"
        + (f" and {more} more" if more > 0 else "")
    ]
    return "\n".join([*lines, *(f"Not undone: {path}" for path in undone.not_undone)])


def _restored_count_text(undone: UndoResult) -> str:
    count = len(undone.restored)
    return f"{count} {'file' if count == 1 else 'files'} restored"
