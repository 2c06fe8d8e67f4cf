"""Slash commands about the conversation as a whole."""

import time
from pathlib import Path

import msgspec

from hark.app.sessions.export import as_markdown, as_rows
from hark.app.sessions.fork import fork as fork_session
from hark.app.sessions.handle import SessionHandle
from hark.app.sessions.rewind import rewind_points, undone_text
from hark.engine.session.state import SessionState
from hark.protocol.commands import Compact, Remark, Rewind
from hark.protocol.messages import UserMessage
from hark.protocol.names import check_name, fork_name, turn_meant
from hark.protocol.snapshots import UndoRefused

BUSY = "A turn runs. Stop it, or wait for its end, and ask again."


async def undo(session: SessionHandle, words: str) -> str:
    """Put back the files that the last turn or step changed, and tell the model."""
    if words not in ("", "step", "turn"):
        return "Say /undo for the last turn, /undo step for its last step."
    state = await _state(session)
    if state.turn is not None:
        return BUSY
    try:
        undone = await session.bench.snapshots.undo(session.id, only_step=words == "step")
    except UndoRefused as refused:
        return str(refused)
    what = "last step" if words == "step" else "last turn"
    told = undone_text(undone)
    await session.door.change(Remark(session.new_id(), f"The person undid the file changes of the {what}. {told}"))
    return told


async def rewind(session: SessionHandle, words: str) -> str:
    """Go back to before a turn, or list where one can go."""
    if not words:
        points = rewind_points(await _state(session))
        rows = [f"{point.turn}: {' '.join(point.text.split())[:80]}" for point in points]
        return "\n".join(rows) or "There is nothing to go back to."
    turn = turn_meant(session.id, words)
    refusal = await session.door.change(Rewind(session.new_id(), turn))
    return refusal.message if refusal else f"Back to before {turn}. Files are as they are: /undo is for them."


async def retry(session: SessionHandle, words: str) -> str:
    """Take the last turn back and run it anew."""
    state = await _state(session)
    if state.turn is not None:
        return BUSY
    points = rewind_points(state)
    if not points:
        return "There is nothing to run anew."
    turn = points[-1].turn
    said = [
        message
        for message, owner in zip(state.transcript.messages, state.transcript.turns, strict=True)
        if owner == turn and isinstance(message, UserMessage)
    ]
    refusal = await session.door.change(Rewind(session.new_id(), turn))
    if refusal:
        return refusal.message
    text = "\n\n".join(message.text for message in said)
    attachments = [attachment for message in said for attachment in message.attachments]
    await session.say(text, author=said[0].author, attachments=attachments)
    return "The last turn is run anew."


async def reset(session: SessionHandle, words: str) -> str:
    """Forget the conversation: stop what runs, and have the usual model serve again."""
    await session.interrupt("reset")
    for item in await session.queue():
        await session.withdraw(item.id)
    refusal = await session.door.change(Rewind(session.new_id())) or await session.choose_route("")
    return refusal.message if refusal else "The conversation starts afresh."


async def fork(session: SessionHandle, words: str) -> str:
    """Copy the conversation into a new session."""
    try:
        name = check_name(words or fork_name(session.id, session.new_id()))
    except ValueError as error:
        return str(error)
    if not await fork_session(session.bench.store, session.id, name):
        return f"There is a session {name} already, or nothing to copy."
    return f"This conversation goes on in {name} as well."


async def model(session: SessionHandle, words: str) -> str:
    """Show the routes, or have another one serve first."""
    names = session.bench.routes.names
    if not words:
        now = (await session.status()).route
        return f"{now} serves first. The routes are: {', '.join(names)}. /model NAME changes it."
    if words not in names:
        return f"There is no route {words!r}. The routes are: {', '.join(names)}."
    refusal = await session.choose_route(words)
    return refusal.message if refusal else f"{words} serves first, from the next turn on."


async def compact(session: SessionHandle, words: str) -> str:
    """Put a summary in the place of what is old."""
    refusal = await session.door.change(Compact(session.new_id(), words))
    return refusal.message if refusal else "Older messages are being summarised; /stop leaves them as they are."


async def status(session: SessionHandle, words: str) -> str:
    """Tell what the session is and does."""
    state = await _state(session)
    running = f"{state.turn.id} runs, step {state.turn.step + 1}" if state.turn else "nothing runs"
    held = " (held)" if state.is_held else ""
    route = state.last_route or session.bench.routes.names[0]
    mode = state.mode or session.bench.rules.approvals.mode
    return (
        f"session {session.id}: {state.title or 'no title yet'}\n"
        f"{running}; {len(state.queue)} waiting{held}; {state.turns} turns\n"
        f"model {route}; approvals {mode}; a message while busy: {session.delivery}\n"
        f"workspace {session.bench.workspace}"
    )


async def usage(session: SessionHandle, words: str) -> str:
    """Tell the tokens and the cost of the session."""
    state = await _state(session)
    return f"{state.tokens:,} tokens in {state.turns} turns, ${state.cost:.4f} where the price is known."


async def export(session: SessionHandle, words: str) -> str:
    """Write the conversation to a file in the workspace."""
    if words not in ("", "markdown", "json"):
        return "Say /export markdown or /export json."
    state = await _state(session)
    suffix = "json" if words == "json" else "md"
    text = msgspec.json.encode({"messages": as_rows(state)}).decode() if words == "json" else as_markdown(state)
    path = Path(session.bench.workspace) / f"{session.id.replace(':', '_')}-{time.strftime('%Y%m%d-%H%M%S')}.{suffix}"
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        return f"{path} can't be written: {error}."
    return f"written to {path}"


async def trace(session: SessionHandle, words: str) -> str:
    """Draw where a turn's time went."""
    from hark.trace.from_journal import children_of, turns_of
    from hark.trace.terminal import trace_text

    journal = session.bench.store.journal
    records = await journal.read(session.id)
    return trace_text(records, words, await children_of(journal, records, turns_of(records)))


async def doctor(session: SessionHandle, words: str) -> str:
    """See whether all is well."""
    from hark.app.doctor.report import report

    return await report()


async def demo(session: SessionHandle, words: str) -> str:
    """Show interrupt, steer, queue and stop at work."""
    from hark.app.slash.demo import play

    await play(lambda line: session.notice("demo", line), session.bench.workspace)
    return "That was all: now try it with a real task."


async def _state(session: SessionHandle) -> SessionState:
    await session.opened()
    return session.door.state
