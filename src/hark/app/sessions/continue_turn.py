"""Going on with a turn that the program's own end cut: once, by a person's wish, and never by running a call again."""

from hark.app.sessions.handle import SessionHandle
from hark.engine.session.preview import saved_state
from hark.engine.session.state import SessionState
from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, UserMessage
from hark.protocol.names import continue_id, short_name, turn_meant
from hark.protocol.receipts import ReceiptState

ARGUMENT_CHARACTERS = 300
KNOWN = {
    Effect.UNKNOWN: "was started, and what it did is unknown: find out before you do anything like it again",
    Effect.CANCELLED: "was cancelled while it ran: look at what it left before you do it again",
    Effect.NOT_STARTED: "was not started",
}


async def go_on(session: SessionHandle, words: str) -> str:
    """Have the model go on with a turn, the last one that was cut unless it is named; return what became of it."""
    await session.opened()
    state = session.door.state
    if not state.length:  # it is being closed here: what the store has is the truth
        state = await saved_state(session.bench.store, session.id)
    turn = turn_meant(session.id, words) if words else next(iter(reversed(state.cut)), "")
    if not turn or turn not in state.cut:
        return _refusal(state, turn)
    receipt = await session.say(_wish(state, turn), Delivery.QUEUE, id=continue_id(turn))
    if receipt.state is ReceiptState.DUPLICATE:
        return f"{short_name(turn)} is being gone on with already."
    if receipt.state is ReceiptState.STARTED:
        return f"{short_name(receipt.turn or '')} goes on with {short_name(turn)}."
    return f"{short_name(turn)} will be gone on with after what is before it."


def offer(state: SessionState) -> str:
    """Return the line that offers to go on with the last turn; "" when nothing cut it."""
    end = state.last_end
    if end is None or end.turn not in state.cut:
        return ""
    return f"The last turn ({short_name(end.turn)}) was cut when the program ended: /continue goes on with it."


def _wish(state: SessionState, turn: str) -> str:
    """Return what the model is told: it has the turn before it, and is reminded of what nobody knows."""
    lines = [f"Go on with {short_name(turn)}, which was cut when the program ended. Do not start it all over again."]
    lines.extend(f"- {_told(call)} {KNOWN[result.effect]}." for call, result in _open_ends(state, turn))
    return "\n".join(lines)


def _open_ends(state: SessionState, turn: str) -> list[tuple[Call, CallResult]]:
    """Return the calls of the turn's last reply that did not come to their own end."""
    calls: dict[str, Call] = {}
    ends: list[tuple[Call, CallResult]] = []
    for message, owner in zip(state.transcript.messages, state.transcript.turns, strict=True):
        if owner == turn and isinstance(message, AssistantMessage):
            calls, ends = {call.id: call for call in message.calls}, []
        elif owner == turn and isinstance(message, CallResult) and message.effect in KNOWN and message.call in calls:
            ends.append((calls[message.call], message))
    return ends


def _told(call: Call) -> str:
    is_long = len(call.arguments) > ARGUMENT_CHARACTERS
    cut = f"{call.arguments[:ARGUMENT_CHARACTERS]}…" if is_long else call.arguments
    return f"Your call of {call.name} with {cut}"


def _refusal(state: SessionState, turn: str) -> str:
    said = [message.id for message in state.transcript.messages if isinstance(message, UserMessage)]
    if turn and continue_id(turn) in (*said, *(waiting.message.id for waiting in state.queue)):
        return f"{short_name(turn)} has been gone on with already."
    if turn:
        return f"There is nothing to go on with: {turn} is not here, or was not cut by a restart or a crash."
    return "There is nothing to go on with: no turn here was cut by a restart or a crash. Say what to do."
