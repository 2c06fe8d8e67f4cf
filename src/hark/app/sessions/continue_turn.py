"""Continues an interrupted turn, at most once and without repeating calls."""

from hark.app.sessions.handle import SessionHandle
from hark.engine.session.continuation import continue_prompt
from hark.engine.session.preview import read_state
from hark.engine.session.state import SessionState
from hark.protocol.commands import PROGRAM_ENDS, Delivery, Interrupt
from hark.protocol.messages import UserMessage
from hark.protocol.names import continue_message_id, parse_turn, short_turn_name
from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import ReceiptState

UNDO_STOP_SECONDS = 10.0


async def continue_turn(session: SessionHandle, turn_reference: str) -> str:
    """Ask the model to continue a turn, by default the last interrupted turn. Return the reply for the user."""
    state = await _load_state(session)
    turn = parse_turn(session.id, turn_reference) if turn_reference else next(reversed(state.resumable_turns), "")
    source = state.resumable_turns.get(turn)
    if source is None:
        return _refusal_text(state, turn)
    prompt = continue_prompt(state.transcript, turn, source)
    receipt = await session.say(prompt, Delivery.QUEUE, id=continue_message_id(turn))
    if receipt.state is ReceiptState.DUPLICATE:
        return f"{short_turn_name(turn)} is already being continued."
    if receipt.state is ReceiptState.STARTED:
        return f"{short_turn_name(receipt.turn or '')} continues {short_turn_name(turn)}."
    if receipt.state is ReceiptState.REFUSED:
        return receipt.reason or ""
    return f"{short_turn_name(turn)} will be continued before the queued messages."


async def undo_stop(session: SessionHandle) -> str:
    """Continue a turn that the user has just stopped, if nothing else ran since. Return the reply for the user."""
    state = await _load_state(session)
    end = state.last_end
    if state.turn is not None or end is None or end.turn not in state.resumable_turns:
        return "No stop to undo: a turn is running, or the last turn was not stopped."
    assert isinstance(end.outcome, Interrupted)  # only interrupted turns can be resumed
    source = end.outcome.source
    if source in PROGRAM_ENDS or not Interrupt("", source).is_stop:
        return "No stop to undo: the last turn was not stopped by you. /continue resumes it."
    if session.engine.clock.now() - end.at > UNDO_STOP_SECONDS:
        return f"A stop can be undone for {UNDO_STOP_SECONDS:.0f} seconds. /continue resumes the turn."
    return f"Stop undone. {await continue_turn(session, end.turn)}"


def continue_hint(state: SessionState) -> str:
    """Return the hint that /continue resumes the last turn, or "" if the program's end did not interrupt it."""
    end = state.last_end
    if end is None or end.turn not in state.cut_turns:
        return ""
    return f"The last turn ({short_turn_name(end.turn)}) was interrupted when the program ended. /continue resumes it."


async def _load_state(session: SessionHandle) -> SessionState:
    await session.wait_until_loaded()
    state = session.proxy.state
    # The stored state is used while the session is being closed here.
    return state if state.length else await read_state(session.engine.store, session.id)


def _refusal_text(state: SessionState, turn: str) -> str:
    message_ids = [message.id for message in state.transcript.messages if isinstance(message, UserMessage)]
    if turn and continue_message_id(turn) in (*message_ids, *(queued.message.id for queued in state.queue)):
        return f"{short_turn_name(turn)} has already been continued."
    if turn:
        return f"Nothing to continue: {turn} does not exist here, or was not interrupted."
    return "Nothing to continue: no turn here was interrupted."
