"""A session's decisions: pure functions from state and command to records.

The order in which messages run is defined in `queue_rule.py`.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from hark.engine.session.continuation import continue_prompt
from hark.engine.session.decision_context import DecisionContext, refuse
from hark.engine.session.queue_rule import QUEUE_FULL, goes_first, next_turn_messages, why_full
from hark.engine.session.state import SessionState
from hark.engine.turn.transcript import Transcript, close_calls
from hark.protocol.commands import (
    CRASH,
    NEW_MESSAGE,
    PAUSE,
    RESTART,
    VOICE_MESSAGE,
    Answer,
    Delivery,
    Interrupt,
    Say,
)
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.names import (
    child_session_name,
    continue_message_id,
    continued_turn,
    is_from_user,
    is_listed,
    turn_name,
    wake_up_id,
)
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CommandHandled,
    Queued,
    QueueHeld,
    QueueReleased,
    Replied,
    SessionReset,
    TurnEnded,
    TurnStarted,
    WakeUpsHeld,
    Withdrawn,
    WorkEnded,
)
from hark.protocol.rules import AfterRestart, AfterStop, ResetPolicy

_QUEUE_RECORDS = Queued | QueueHeld | QueueReleased | Withdrawn | WorkEnded | WakeUpsHeld | SessionReset
WORK_LOST = "{} was running when Hark crashed, and is lost. Nothing was run again."
WORK_CLOSED = "{} was ended, because Hark exited."


def on_say(state: SessionState, say: Say, context: DecisionContext, *, is_stopped: bool = False) -> list[AnyRecord]:
    """Return the records for a message. With `is_stopped`, the message was stopped in flight and starts no work."""
    message = UserMessage(say.id, say.text, say.author, say.attachments)
    release: list[AnyRecord] = [QueueReleased(at=context.at)] if state.is_held else []
    if state.turn is None and not state.queue and not context.rules.is_paused:
        return [*automatic_reset(state, context), *release, _start_turn(state, (message,), context)]
    turn = state.turn.id if state.turn else ""
    is_first = goes_first(say.id, say.delivery, has_turn=state.turn is not None or not state.is_held)
    queued = Queued(
        message=message, delivery=say.delivery, turn=turn, is_first=is_first, inbox=context.inbox, at=context.at
    )
    if is_stopped:
        return [queued] if state.is_held else [queued, QueueHeld(at=context.at)]
    records: list[AnyRecord] = [queued, *release]
    if state.turn is None:
        records.extend(_next_turn(state, records, context))
    return records


def on_full_queue(state: SessionState, say: Say, context: DecisionContext) -> list[AnyRecord]:
    """Return the refusal of a message that doesn't fit in the queue, or []. A message that can start always fits."""
    if state.turn is None and not state.queue:
        return []
    reason = why_full(state.queue, say.text, say.attachments, context.rules.limits)
    return [refuse(say, QUEUE_FULL, reason, context)] if reason else []


def on_backlog(state: SessionState, say: Say, context: DecisionContext) -> list[AnyRecord]:
    """Queue a message that arrived between two turns, or while no process owned the session.

    `on_ready` starts the next turn later.
    """
    message = UserMessage(say.id, say.text, say.author, say.attachments)
    is_first = goes_first(say.id, say.delivery, has_turn=not state.is_held)
    queued = Queued(message=message, delivery=say.delivery, is_first=is_first, inbox=context.inbox, at=context.at)
    resets = automatic_reset(state, context) if state.turn is None and not state.queue else []
    return [*resets, queued, QueueReleased(at=context.at)] if state.is_held else [*resets, queued]


def on_interrupt(
    state: SessionState, interrupt: Interrupt, after_stop: AfterStop, context: DecisionContext
) -> list[AnyRecord]:
    """Return the records for a stop. A stop names its turn, so a late stop doesn't affect the next turn.

    Between two turns, a stop for the turn that just ended, or without a name, applies to the queue.
    """
    is_running = state.turn is not None and state.turn.id == interrupt.turn
    last_turn = state.last_end.turn if state.last_end else ""
    is_between_turns = state.turn is None and starts_queued_message(state) and interrupt.turn in ("", last_turn)
    if not is_running and (context.inbox or not is_between_turns):
        return [refuse(interrupt, "nothing_runs", "That turn is no longer running.", context)] if context.inbox else []
    records: list[AnyRecord] = []
    if context.inbox:
        records.append(CommandHandled(command=interrupt.id, turn=interrupt.turn, inbox=context.inbox, at=context.at))
    is_kept = after_stop is AfterStop.RUN or interrupt.source == PAUSE  # a pause of all sessions holds the queue
    if not state.queue or is_kept:
        return records
    if after_stop is AfterStop.HOLD:
        return [*records, QueueHeld(at=context.at)]
    return records + [
        Withdrawn(message=item.message.id, text=item.message.text, reason="handed back by a stop", at=context.at)
        for item in state.queue
    ]


def on_answer(answer: Answer, context: DecisionContext, *, is_open: bool) -> list[AnyRecord]:
    """Return the records for an answer. The answer is refused if its question is no longer open."""
    if not is_open:
        return [refuse(answer, "not_asked", "That question is no longer open.", context)]
    return [CommandHandled(command=answer.id, inbox=context.inbox, at=context.at)] if context.inbox else []


def automatic_reset(state: SessionState, context: DecisionContext) -> list[AnyRecord]:
    """Return the record that resets the session before a new message, if the settings say so; otherwise []."""
    rules = context.rules.sessions
    has_work = bool(state.work or state.reports)
    if rules.reset is ResetPolicy.OFF or has_work or not state.transcript.messages or not is_listed(context.session):
        return []
    if rules.reset is ResetPolicy.IDLE:
        idle_hours = (context.at - state.updated_at) / 3600
        reason = f"it was idle for {rules.idle_hours:g} hours" if idle_hours >= rules.idle_hours else ""
    else:
        is_new_day = _day(context.at, rules.daily_hour) > _day(state.updated_at, rules.daily_hour)
        reason = "a new day began" if is_new_day else ""
    return [SessionReset(reason=reason, at=context.at)] if reason else []


def _day(at: float, first_hour: int) -> date:
    """Return the local date of a time, if a day begins at `first_hour`."""
    return (datetime.fromtimestamp(at) - timedelta(hours=first_hour)).date()


def on_stop(state: SessionState, context: DecisionContext) -> list[AnyRecord]:
    """Return the records for a stop by the user: background work starts no turn until the user's next message.

    The open calls, and the queue if the stop doesn't hold it, may still start such work.
    """
    has_open_calls = state.turn is not None and bool(state.turn.calls)
    if state.are_wake_ups_held or not (state.work or state.reports or state.queue or has_open_calls):
        return []
    return [WakeUpsHeld(at=context.at)]


def end_all_work(
    state: SessionState, text: str, context: DecisionContext, *, wakes: bool, alive: Collection[str] = ()
) -> list[AnyRecord]:
    """Return the records that report the end of all running work except `alive`. `text` has a place for the name."""
    records: list[AnyRecord] = []
    for work, name in state.work.items():
        full_name = name or child_session_name(context.session, work)
        report = UserMessage(wake_up_id(work), f"[{text.format(full_name)}]", full_name)
        if work not in alive:
            records.append(WorkEnded(work=work, report=report, wakes=wakes, at=context.at))
    return records


def on_end(
    state: SessionState, records: list[AnyRecord], context: DecisionContext, *, starts_next: bool = True
) -> list[AnyRecord]:
    """Return a turn's last records, the requested reset or pause, and the start of the next turn.

    All are written together. Without `starts_next`, no turn starts.
    """
    records = [*records, *_requested_records(state, records, context)]
    return [*records, *_next_turn(state, records, context)] if starts_next else records


def _requested_records(state: SessionState, records: Sequence[AnyRecord], context: DecisionContext) -> list[AnyRecord]:
    """Return the records that a turn's end causes: a requested reset or pause, or a continuation after a restart."""
    turn, end = state.turn, records[-1]
    if turn is None or not isinstance(end, TurnEnded):
        return []
    if turn.is_resetting:
        return [SessionReset(at=context.at)]
    source = end.outcome.source if isinstance(end.outcome, Interrupted) else ""
    if turn.is_pausing and source not in (NEW_MESSAGE, VOICE_MESSAGE):
        return [] if state.is_held else [QueueHeld(at=context.at)]
    if source in (CRASH, RESTART) and context.rules.after_restart is AfterRestart.CONTINUE:
        return _continuation(state, turn.id, source, records, context)
    return []


def _continuation(
    state: SessionState, turn: str, source: str, records: Sequence[AnyRecord], context: DecisionContext
) -> list[AnyRecord]:
    """Queue the continuation of an interrupted turn. A turn that crashed while it was continued is not continued."""
    is_task = state.turn is not None and bool(state.turn.task)
    messages = state.transcript.messages_of_turn(turn) or []
    is_continuation = any(isinstance(one, UserMessage) and continued_turn(one.id) for one in messages)
    if is_task or not is_listed(context.session) or (source == CRASH and is_continuation):
        return []
    transcript = Transcript()
    results = [record.result for record in records if isinstance(record, CallEnded)]
    for message in (*messages, *results):
        transcript.add(turn, message)
    prompt = continue_prompt(transcript, turn, source)
    message = UserMessage(continue_message_id(turn), prompt)
    return [Queued(message=message, delivery=Delivery.QUEUE, is_first=True, at=context.at)]


def starts_queued_message(state: SessionState) -> bool:
    """Return whether a queued message starts the next turn, rather than an interrupting message or a steer."""
    return bool(state.queue) and not state.is_held and state.queue[0].delivery is Delivery.QUEUE


def on_load(state: SessionState, context: DecisionContext) -> list[AnyRecord]:
    """Close a turn that a crash left open, when the session is loaded. The turn is never run again."""
    turn = state.turn
    if turn is None:
        return []
    records: list[AnyRecord] = []
    if turn.progress:
        partial = AssistantMessage(turn.progress, is_partial=True)
        records.append(Replied(turn=turn.id, step=turn.step + 1, message=partial, at=context.at))
    records.extend(
        CallEnded(turn=turn.id, result=result, at=context.at)
        for result in close_calls(turn.calls.values(), turn.started, "the program crashed")
    )
    records.append(TurnEnded(turn=turn.id, outcome=Interrupted(CRASH), task=turn.task, at=context.at))
    return on_end(state, records, context, starts_next=False)


def on_ready(state: SessionState, context: DecisionContext) -> list[AnyRecord]:
    """Start the next turn once a session is loaded and its inbox is read, unless a turn has already started."""
    return [] if state.turn else _next_turn(state, [], context)


def _next_turn(state: SessionState, records: list[AnyRecord], context: DecisionContext) -> list[AnyRecord]:
    """Return the records that start the next turn once `records` are applied, or [] if no turn starts."""
    if context.rules.is_paused:
        return []
    preview = SessionState()
    preview.turns = state.turns
    preview.queue = list(state.queue)
    preview.is_held = state.is_held
    preview.reports, preview.waking_reports = list(state.reports), set(state.waking_reports)
    preview.wake_ups, preview.are_wake_ups_held = state.wake_ups, state.are_wake_ups_held
    for record in records:
        if isinstance(record, _QUEUE_RECORDS):
            preview.apply(record)
    messages = () if preview.is_held else next_turn_messages(preview.queue)
    if not messages and not preview.can_wake(context.rules.limits.wake_ups):
        return []
    return [_start_turn(preview, messages, replace(context, inbox=0))]


def _start_turn(state: SessionState, messages: tuple[UserMessage, ...], context: DecisionContext) -> TurnStarted:
    """Start a turn with the messages, after the reports about background work that ended since the last turn."""
    turn = turn_name(context.session, state.turns + 1)
    is_attended = any(is_from_user(message.id) for message in messages)
    reports = () if state.are_wake_ups_held and not is_attended else tuple(state.reports)
    return TurnStarted(turn=turn, messages=(*reports, *messages), inbox=context.inbox, at=context.at)
