"""`/status`: describes the running turn in words, from the journal and without a model."""

from collections import Counter

from hark.app.sessions.handle import SessionHandle
from hark.engine.session.router import PAUSED
from hark.engine.session.state import RunningTurnState, SessionState
from hark.protocol.messages import AssistantMessage
from hark.protocol.names import short_turn_name
from hark.text.graphemes import shorten
from hark.text.status_text import format_call_title, format_count
from hark.trace.turn_trace import format_duration

MAX_LINE_CHARACTERS = 100


async def status(session: SessionHandle, arguments: str) -> str:
    """Describe the running turn, the queue, the background work and the settings of the session."""
    await session.wait_until_loaded()
    state, engine = session.proxy.state, session.engine
    lines = [f"session {session.id}: {state.title or 'no title yet'}"]
    if engine.rules.is_paused:
        lines.append(PAUSED)
    lines.extend(describe_turn(session, state.turn) if state.turn else ["No turn is running."])
    lines.extend(_describe_waiting(session, state))
    route = state.last_route or engine.routes.names[0]
    mode = state.mode or engine.rules.approvals.mode
    turns = format_count(state.turns, "turn")
    lines.append(f"{turns}; model {route}; approvals {mode}; messages during a turn: {session.delivery}")
    lines.append(f"workspace {engine.workspace}")
    return "\n".join(lines)


def describe_turn(session: SessionHandle, turn: RunningTurnState) -> list[str]:
    """Return sentences about a running turn: its age, its calls so far, and the reason why it is waiting."""
    now = session.engine.clock.now()
    age = format_duration((now - turn.started_at) * 1000)
    step = turn.step if turn.calls else turn.step + 1
    lines = [f"{short_turn_name(turn.id)} has been running for {age} and is in step {step}."]
    counts = _call_counts(session.proxy.state, turn)
    if counts:
        calls = ", ".join(f"{name} ({count})" for name, count in counts.items())
        lines.append(f"Finished calls: {calls}.")
    if turn.is_pausing:
        lines.append("It pauses after this step.")
    return [*lines, *_describe_wait(session, turn, now)]


def _call_counts(state: SessionState, turn: RunningTurnState) -> Counter[str]:
    messages = state.transcript.messages_of_turn(turn.id) or []
    calls = (call for one in messages if isinstance(one, AssistantMessage) for call in one.calls)
    return Counter(call.name for call in calls if call.id not in turn.calls)


def _describe_wait(session: SessionHandle, turn: RunningTurnState, now: float) -> list[str]:
    """Return the reason why the turn is waiting: your answer, its calls, or the model."""
    if questions := session.proxy.open_question_events:
        return [f"It is waiting for your answer: {_first_line(questions[0].text)}"]
    live = session.proxy.live
    lines: list[str] = []
    for call in turn.calls.values():
        title = shorten(format_call_title(call.name, call.arguments), MAX_LINE_CHARACTERS)
        if call.id not in turn.started:
            lines.append(f"Not started yet: {title}")
            continue
        lines.append(f"Running for {format_duration((now - turn.started[call.id]) * 1000)}: {title}")
        if output := live.outputs.get(call.id, "").strip():
            lines.append(f"  Its last output: {_first_line(output.rsplit(chr(10), 1)[-1])}")
    if lines:
        return lines
    text = (live.text or turn.progress).strip()
    if text:
        return [f"The model is writing ({len(text):,} characters so far): …{' '.join(text.split())[-80:]}"]
    return ["It is waiting for the model's reply."]


def _describe_waiting(session: SessionHandle, state: SessionState) -> list[str]:
    lines: list[str] = []
    if state.queue:
        verb = "is" if len(state.queue) == 1 else "are"
        lines.append(f"{format_count(len(state.queue), 'message')} {verb} {'on hold' if state.is_held else 'queued'}.")
    if work := session.services.work.describe_running(session.id):
        lines.append(f"In the background: {', '.join(work)}.")
    return lines


def _first_line(text: str) -> str:
    return shorten(text.strip().split("\n", 1)[0], MAX_LINE_CHARACTERS)
