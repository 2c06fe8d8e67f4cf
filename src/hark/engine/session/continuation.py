"""The prompt that continues an interrupted turn from its journal, without repeating a call."""

from hark.engine.turn.transcript import Transcript
from hark.protocol.commands import NEW_MESSAGE, PAUSE, PROGRAM_ENDS, VOICE_MESSAGE
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect
from hark.protocol.names import short_turn_name

ARGUMENT_CHARACTERS = 300
EFFECT_TEXTS = {
    Effect.UNKNOWN: "was started, and its effect is unknown: check it before you do anything similar again",
    Effect.CANCELLED: "was cancelled while it was running: check its partial effect before you do it again",
    Effect.NOT_STARTED: "was not started",
    Effect.CONTINUES: "continues in the background and reports when it ends: don't start it again",
}


def describe_interruption(source: str) -> str:
    """Return how a turn was interrupted, as the end of a sentence."""
    if source in PROGRAM_ENDS:
        return "was interrupted when the program ended"
    if source in (NEW_MESSAGE, VOICE_MESSAGE):
        return "was interrupted by another message"
    return "was paused by the user" if source == PAUSE else "was stopped by the user"


def continue_prompt(transcript: Transcript, turn: str, source: str) -> str:
    """Return the prompt that asks the model to continue a turn, with the calls that did not complete."""
    lines = [f"Continue {short_turn_name(turn)}, which {describe_interruption(source)}. Do not start it over."]
    for call, result in _unfinished_calls(transcript, turn):
        lines.append(f"- {_describe_call(call)} {EFFECT_TEXTS[result.effect]}.")
    return "\n".join(lines)


def _unfinished_calls(transcript: Transcript, turn: str) -> list[tuple[Call, CallResult]]:
    """Return the calls of the turn's last reply that did not complete, with their results."""
    calls: dict[str, Call] = {}
    unfinished: list[tuple[Call, CallResult]] = []
    for message, owner in zip(transcript.messages, transcript.turns, strict=True):
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
