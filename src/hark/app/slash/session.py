"""Slash commands for the conversation as a whole."""

import time
from pathlib import Path

import msgspec

from hark.app.sessions.continue_turn import undo_stop
from hark.app.sessions.export import as_markdown, as_rows
from hark.app.sessions.fork import fork as fork_session
from hark.app.sessions.handle import SessionHandle
from hark.app.sessions.rewind import rewind_points, undone_text
from hark.engine.session.state import SessionState
from hark.protocol.commands import AddNote, Compact, Rewind, UndoReset
from hark.protocol.messages import UserMessage
from hark.protocol.names import check_session_name, fork_name, parse_turn
from hark.protocol.snapshots import UndoRefused
from hark.text.graphemes import shorten

BUSY = "A turn is running. Stop it or wait until it ends, then try again."


async def undo(session: SessionHandle, arguments: str) -> str:
    """Undo the file changes of the last turn or step, and add a note for the model; or undo a stop or a reset."""
    if arguments == "stop":
        return await undo_stop(session)
    if arguments == "reset":
        refusal = await session.proxy.change(UndoReset(session.new_id()))
        return refusal.message if refusal else "The conversation from before the reset is restored."
    if arguments not in ("", "step", "turn"):
        return "Use /undo for the last turn, /undo step for its last step, /undo stop or /undo reset."
    state = await _loaded_state(session)
    if state.turn is not None:
        return BUSY
    try:
        undone = await session.engine.snapshots.undo(session.id, only_step=arguments == "step")
    except UndoRefused as refused:
        return str(refused)
    scope = "last step" if arguments == "step" else "last turn"
    text = undone_text(undone)
    await session.proxy.change(AddNote(session.new_id(), f"The user undid the file changes of the {scope}. {text}"))
    return text


async def rewind(session: SessionHandle, arguments: str) -> str:
    """Rewind to before a turn, or list the turns to rewind to."""
    if not arguments:
        points = rewind_points(await _loaded_state(session))
        rows = [f"{point.turn}: {shorten(' '.join(point.text.split()), 80)}" for point in points]
        return "\n".join(rows) or "Nothing to rewind to."
    turn = parse_turn(session.id, arguments)
    refusal = await session.proxy.change(Rewind(session.new_id(), turn))
    return refusal.message if refusal else f"Rewound to before {turn}. File changes stay; /undo reverts them."


async def retry(session: SessionHandle, arguments: str) -> str:
    """Rewind the last turn and run it again."""
    state = await _loaded_state(session)
    if state.turn is not None:
        return BUSY
    points = rewind_points(state)
    if not points:
        return "Nothing to retry."
    turn = points[-1].turn
    messages = [
        message
        for message, owner in zip(state.transcript.messages, state.transcript.turns, strict=True)
        if owner == turn and isinstance(message, UserMessage)
    ]
    refusal = await session.proxy.change(Rewind(session.new_id(), turn))
    if refusal:
        return refusal.message
    text = "\n\n".join(message.text for message in messages)
    attachments = [attachment for message in messages for attachment in message.attachments]
    await session.say(text, author=messages[0].author, attachments=attachments)
    return "Running the last turn again."


async def fork(session: SessionHandle, arguments: str) -> str:
    """Copy the conversation into a new session."""
    try:
        name = check_session_name(arguments or fork_name(session.id, session.new_id()))
    except ValueError as error:
        return str(error)
    if not await fork_session(session.engine.store, session.id, name):
        return f"Not forked: a session named {name} already exists, or there is nothing to copy."
    return f"Forked to {name} (/resume {name} to switch)."


async def model(session: SessionHandle, arguments: str) -> str:
    """Show the routes, or switch to another one."""
    names = session.engine.routes.names
    if not arguments:
        current = (await session.status()).route
        return f"Model: {current}. Routes: {', '.join(names)}. Switch with /model NAME."
    if arguments not in names:
        return f"No route named {arguments!r}. Routes: {', '.join(names)}."
    refusal = await session.choose_route(arguments)
    return refusal.message if refusal else f"Switched to {arguments}, starting with the next turn."


async def compact(session: SessionHandle, arguments: str) -> str:
    """Summarise older messages."""
    refusal = await session.proxy.change(Compact(session.new_id(), arguments))
    return refusal.message if refusal else "Summarising older messages. /stop cancels it."


async def usage(session: SessionHandle, arguments: str) -> str:
    """Show the session's tokens and cost."""
    state = await _loaded_state(session)
    return f"{state.tokens:,} tokens in {_format_turns(state.turns)}, ${state.cost:.4f} where the price is known."


async def export(session: SessionHandle, arguments: str) -> str:
    """Write the conversation to a file in the workspace."""
    if arguments not in ("", "markdown", "json"):
        return "Use /export markdown or /export json."
    state = await _loaded_state(session)
    suffix = "json" if arguments == "json" else "md"
    text = msgspec.json.encode({"messages": as_rows(state)}).decode() if arguments == "json" else as_markdown(state)
    path = Path(session.engine.workspace) / f"{session.id.replace(':', '_')}-{time.strftime('%Y%m%d-%H%M%S')}.{suffix}"
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        return f"Can't write {path}: {error}."
    return f"Written to {path}."


async def trace(session: SessionHandle, arguments: str) -> str:
    """Show where a turn's time went."""
    from hark.trace.from_journal import read_child_journals, turn_names
    from hark.trace.terminal import render_timeline

    journal = session.engine.store.journal
    records = await journal.read(session.id)
    return render_timeline(records, arguments, await read_child_journals(journal, records, turn_names(records)))


async def doctor(session: SessionHandle, arguments: str) -> str:
    """Run the checks of `hark doctor`."""
    from hark.app.doctor.report import make_report

    return await make_report()


async def demo(session: SessionHandle, arguments: str) -> str:
    """Play the demo of interrupt, steer, queue and stop."""
    from hark.app.slash.demo import play_demo

    await play_demo(lambda line: session.publish_notice("demo", line), session.engine.workspace)
    return "End of the demo. Try it with a real task."


async def _loaded_state(session: SessionHandle) -> SessionState:
    await session.wait_until_loaded()
    return session.proxy.state


def _format_turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"
