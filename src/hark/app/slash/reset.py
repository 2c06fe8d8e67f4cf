"""`/reset`: clears the conversation and ends everything that belongs to it."""

from anyio import to_thread

from hark.app.sessions.handle import SessionHandle
from hark.engine.session.state import SessionState
from hark.protocol.commands import RESET, Reset
from hark.text.status_text import format_count
from hark.tools.notes.todo import read_items, todo_file


async def reset(session: SessionHandle, arguments: str) -> str:
    """Clear the conversation, and end its turn, queue, grants, modes, to-do list, children and background processes.

    `keep NAME ...` keeps background processes. Return one line that lists the ended parts.
    """
    word, *keep = arguments.split() or ["keep"]
    running = [process.name for process in session.services.background.list_processes(session.id) if process.is_running]
    unknown = [name for name in keep if name not in running]
    if word != "keep" or unknown:
        names = ", ".join(running) or "none"
        return f"Use /reset, or /reset keep NAME for a background process. Running processes: {names}."
    await session.wait_until_loaded()
    ended = [*_describe(session.proxy.state), *_describe_delivery(session)]
    turn = session.running_turn()
    work = [name for name in session.services.work.describe_running(session.id) if name not in keep]
    refusal = await session.proxy.change(Reset(session.new_id(), tuple(keep)))
    if refusal:
        return refusal.message
    if turn is not None:
        await session.interrupt(RESET, turn.turn)  # waits until the turn has settled
    session.stop_side_questions()
    await session.services.reset_session(session.id, keep)
    ended.extend(work)
    if await to_thread.run_sync(_clear_todo, session):
        ended.append("to-do list")
    parts = [f"Ended: {', '.join(ended)}."] if ended else []
    parts.extend([f"Still running: {', '.join(keep)}."] if keep else [])
    return " ".join(["Conversation cleared.", *parts, "/undo reset restores it."])


def _describe(state: SessionState) -> list[str]:
    """Return the parts of a session that a reset ends, for the user."""
    ended = ["the running turn"] if state.turn else []
    if state.queue:
        ended.append(format_count(len(state.queue), "queued message"))
    if state.grants:
        ended.append(format_count(len(state.grants), "grant"))
    if state.mode:
        ended.append(f"mode {state.mode}")
    if state.chosen_route:
        ended.append(f"model {state.chosen_route}")
    return ended


def _describe_delivery(session: SessionHandle) -> list[str]:
    delivery = session.services.deliveries.get(session.id)
    return [f"delivery {delivery}"] if delivery else []


def _clear_todo(session: SessionHandle) -> bool:
    """Remove the to-do list. Return False if there was none."""
    path = todo_file(session.services.paths.home, session.id)
    has_items = bool(read_items(path))
    path.unlink(missing_ok=True)
    return has_items
