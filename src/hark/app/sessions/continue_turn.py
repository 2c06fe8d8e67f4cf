"""Continues a turn that was interrupted when the program ended, at most once and without repeating calls."""

from hark.app.sessions.handle import SessionHandle
from hark.engine.session.preview import read_state
from hark.engine.session.state import SessionState
from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, UserMessage
from hark.protocol.names import continue_message_id, parse_turn, short_turn_name
from hark.protocol.receipts import ReceiptState

ARGUMENT_CHARACTERS = 300
EFFECT_TEXTS = {
    Effect.UNKNOWN: "was started, and its effect is unknown: check it before you do anything similar again",
    Effect.CANCELLED: "was cancelled while it was running: check its partial effect before you do it again",
    Effect.NOT_STARTED: "was not started",
    Effect.CONTINUES: "continues in the background and reports when it ends: don't start it again",
}


async def continue_turn(session: SessionHandle, turn_reference: str) -> str:
    """Ask the model to continue a turn, by default the last interrupted turn. Return the reply for the user."""
    await session.wait_until_loaded()
    state = session.proxy.state
    if not state.length:  # the session is being closed here, so use its stored state
        state = await read_state(session.engine.store, session.id)
    turn = parse_turn(session.id, turn_reference) if turn_reference else next(iter(reversed(state.resumable_turns)), "")
    if not turn or turn not in state.resumable_turns:
        return _refusal_text(state, turn)
    receipt = await session.say(_continue_prompt(state, turn), Delivery.QUEUE, id=continue_message_id(turn))
    if receipt.state is ReceiptState.DUPLICATE:
        return f"{short_turn_name(turn)} is already being continued."
    if receipt.state is ReceiptState.STARTED:
        return f"{short_turn_name(receipt.turn or '')} continues {short_turn_name(turn)}."
    return f"{short_turn_name(turn)} will be continued after the messages queued before it."


def continue_hint(state: SessionState) -> str:
    """Return the hint that /continue resumes the last turn, or "" if that turn was not interrupted."""
    end = state.last_end
    if end is None or end.turn not in state.resumable_turns:
        return ""
    return f"The last turn ({short_turn_name(end.turn)}) was interrupted when the program ended. /continue resumes it."


def _continue_prompt(state: SessionState, turn: str) -> str:
    """Return the prompt that asks the model to continue, with the calls that did not complete."""
    lines = [f"Continue {short_turn_name(turn)}, which was interrupted when the program ended. Do not start it over."]
    for call, result in _unfinished_calls(state, turn):
        lines.append(f"- {_describe_call(call)} {EFFECT_TEXTS[result.effect]}.")
    return "\n".join(lines)


def _unfinished_calls(state: SessionState, turn: str) -> list[tuple[Call, CallResult]]:
    """Return the calls of the turn's last reply that did not complete, with their results."""
    calls: dict[str, Call] = {}
    unfinished: list[tuple[Call, CallResult]] = []
    for message, owner in zip(state.transcript.messages, state.transcript.turns, strict=True):
        if owner != turn:
            continue
        if isinstance(message, AssistantMessage):
            calls, unfinished = {call.id: call for call in message.calls}, []
        elif isinstance(message, CallResult) and message.effect in EFFECT_TEXTS and message.call in calls:
            unfinished.append((calls[message.call], message))
    return unfinished


def _describe_call(call: Call) -> str:
    is_long = len(call.arguments) > ARGUMENT_CHARACTERS
    arguments = f"{call.arguments[:ARGUMENT_CHARACTERS]}…" if is_long else call.arguments
    return f"Your call of {call.name} with {arguments}"


def _refusal_text(state: SessionState, turn: str) -> str:
    message_ids = [message.id for message in state.transcript.messages if isinstance(message, UserMessage)]
    if turn and continue_message_id(turn) in (*message_ids, *(queued.message.id for queued in state.queue)):
        return f"{short_turn_name(turn)} has already been continued."
    if turn:
        return f"Nothing to continue: {turn} does not exist here, or was not interrupted by a restart or crash."
    return "Nothing to continue: no turn here was interrupted by a restart or crash."
