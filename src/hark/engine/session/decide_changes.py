"""Decisions about changes to a session: its queue, settings, conversation and background work. Pure functions."""

from hark.engine.session.decision_context import DecisionContext, refuse
from hark.engine.session.state import SessionState
from hark.protocol.commands import (
    AddNote,
    ChangeCommand,
    ChooseMode,
    ChooseRoute,
    Compact,
    Edit,
    EndWork,
    Move,
    PauseTurn,
    QueueCommand,
    RecordUsage,
    Reset,
    Rewind,
    StartWork,
    UndoReset,
    Withdraw,
)
from hark.protocol.messages import UserMessage
from hark.protocol.names import turn_name, wake_up_id
from hark.protocol.records import (
    AnyRecord,
    Edited,
    ModeChosen,
    Moved,
    NoteAdded,
    PauseRequested,
    QueueHeld,
    ResetRequested,
    ResetUndone,
    Rewound,
    RouteChosen,
    SessionReset,
    TurnStarted,
    UsageRecorded,
    Withdrawn,
    WorkEnded,
    WorkStarted,
)


def on_change(state: SessionState, command: ChangeCommand, context: DecisionContext) -> list[AnyRecord]:
    """Return the records for a change to the session, or for its refusal. The last one has the inbox entry."""
    match command:
        case Reset():
            return on_reset(state, context)
        case UndoReset():
            return [on_undo_reset(state, command, context)]
        case PauseTurn():
            return [on_pause(state, command, context)]
        case _:
            return [_change_record(state, command, context)]


def _change_record(state: SessionState, command: ChangeCommand, context: DecisionContext) -> AnyRecord:
    match command:
        case Edit() | Move() | Withdraw():
            return on_queue_command(state, command, context)
        case Compact():
            return on_compact(state, command, context)
        case Rewind():
            return on_rewind(state, command, context)
        case ChooseRoute(route=route):
            return RouteChosen(route=route, inbox=context.inbox, at=context.at)
        case ChooseMode(mode=mode):
            return ModeChosen(mode=mode, inbox=context.inbox, at=context.at)
        case RecordUsage(route=route, usage=usage, cost=cost, child=child):
            return UsageRecorded(route=route, usage=usage, cost=cost, child=child, inbox=context.inbox, at=context.at)
        case AddNote(text=text):
            if state.turn is not None:
                return refuse(command, "busy", "A turn is running, so no note can be added now.", context)
            return NoteAdded(text=text, inbox=context.inbox, at=context.at)
        case StartWork(work=work, name=name):
            return WorkStarted(work=work, name=name, inbox=context.inbox, at=context.at)
        case EndWork():
            return on_end_work(state, command, context)
        case Reset() | UndoReset() | PauseTurn():
            raise AssertionError("decided in on_change")


def on_queue_command(state: SessionState, command: QueueCommand, context: DecisionContext) -> AnyRecord:
    """Return the record for a change to a queued message, or for its refusal."""
    queued = state.find_queued(command.message)
    if queued is None:
        return refuse(command, "not_waiting", "That message is not in the queue.", context)
    match command:
        case Edit():
            return Edited(message=command.message, text=command.text, inbox=context.inbox, at=context.at)
        case Move():
            position = min(max(command.position, 1), len(state.queue))
            return Moved(message=command.message, position=position, inbox=context.inbox, at=context.at)
        case Withdraw():
            text = queued.message.text
            return Withdrawn(message=command.message, text=text, reason="withdrawn", inbox=context.inbox, at=context.at)


def on_reset(state: SessionState, context: DecisionContext) -> list[AnyRecord]:
    """Withdraw all queued messages and reset the session: now, or when the running turn has ended."""
    records: list[AnyRecord] = [
        Withdrawn(message=item.message.id, text=item.message.text, reason="the session was reset", at=context.at)
        for item in state.queue
    ]
    if state.turn is None:
        return [*records, SessionReset(inbox=context.inbox, at=context.at)]
    return [*records, ResetRequested(turn=state.turn.id, inbox=context.inbox, at=context.at)]


def on_undo_reset(state: SessionState, undo: UndoReset, context: DecisionContext) -> AnyRecord:
    """Return the record that restores the conversation from before the last reset, or a refusal."""
    if state.turn is not None:
        return refuse(undo, "busy", "A turn is running. Stop it or wait until it ends, then try again.", context)
    if state.cleared is None:
        return refuse(undo, "not_reset", "No reset to undo.", context)
    return ResetUndone(inbox=context.inbox, at=context.at)


def on_pause(state: SessionState, pause: PauseTurn, context: DecisionContext) -> AnyRecord:
    """Return the record that pauses the running turn after its step, or holds the queue if no turn is running."""
    if state.turn is not None:
        return PauseRequested(turn=state.turn.id, inbox=context.inbox, at=context.at)
    if state.queue and not state.is_held:
        return QueueHeld(inbox=context.inbox, at=context.at)
    return refuse(pause, "nothing_runs", "No turn is running.", context)


def on_rewind(state: SessionState, rewind: Rewind, context: DecisionContext) -> AnyRecord:
    """Return the record that rewinds the session to before a turn, or a refusal."""
    if state.turn is not None:
        return refuse(rewind, "busy", "A turn is running. Stop it or wait until it ends, then try again.", context)
    if rewind.turn and not state.transcript.has_full_turn(rewind.turn):
        return refuse(rewind, "unknown_turn", "That turn is not in the conversation, or has been summarised.", context)
    return Rewound(turn=rewind.turn, inbox=context.inbox, at=context.at)


def on_compact(state: SessionState, compact: Compact, context: DecisionContext) -> AnyRecord:
    """Return a refusal, or the record that starts a compaction in a separate turn, which can be stopped."""
    if state.turn is not None:
        return refuse(compact, "busy", "A turn is running. Stop it or wait until it ends, then try again.", context)
    turn = turn_name(context.session, state.turns + 1)
    instructions = compact.instructions
    return TurnStarted(
        turn=turn, messages=(), task="compact", instructions=instructions, inbox=context.inbox, at=context.at
    )


def on_end_work(state: SessionState, end: EndWork, context: DecisionContext) -> AnyRecord:
    """Return the record for ended background work, or a refusal if its end was already delivered.

    A child may end before the record of the call that it outlived.
    """
    is_running = end.work in state.work or (state.turn is not None and end.work in state.turn.calls)
    is_pending = any(report.id == wake_up_id(end.work) for report in state.reports)
    if not is_running and (end.report or not is_pending):
        return refuse(end, "unknown_work", "The end of that work was already reported.", context)
    report = UserMessage(wake_up_id(end.work), end.report, end.name) if end.report else None
    return WorkEnded(work=end.work, report=report, wakes=end.wakes, inbox=context.inbox, at=context.at)
