"""A session's decisions: pure functions from state and command to records.

The order in which messages run is defined in `queue_rule.py`.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from hark.engine.session.queue_rule import goes_first, next_turn_messages
from hark.engine.session.state import SessionState
from hark.engine.turn.transcript import CRASH, close_calls
from hark.protocol.commands import (
    AddNote,
    Answer,
    ChangeCommand,
    ChooseMode,
    ChooseRoute,
    Command,
    Compact,
    Delivery,
    Edit,
    EndWork,
    Interrupt,
    Move,
    QueueCommand,
    RecordSideAnswer,
    Rewind,
    Say,
    StartWork,
    Withdraw,
)
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.names import child_session_name, is_from_user, turn_name, wake_up_id
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CommandHandled,
    CommandRefused,
    Edited,
    ModeChosen,
    Moved,
    NoteAdded,
    Queued,
    QueueHeld,
    QueueReleased,
    Replied,
    Rewound,
    RouteChosen,
    SideAnswered,
    TurnEnded,
    TurnStarted,
    WakeUpsHeld,
    Withdrawn,
    WorkEnded,
    WorkStarted,
)
from hark.protocol.rules import AfterStop

WORK_LOST = "{} was running when Hark crashed, and is lost. Nothing was run again."
WORK_CLOSED = "{} was ended, because Hark exited."


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """A decision's input besides state and command.

    That is the time, the session's id, the inbox entry being processed, and the limit of wake-ups.
    """

    at: float
    session: str
    inbox: int = 0
    max_wake_ups: int = 10


def on_say(state: SessionState, say: Say, context: DecisionContext, *, is_stopped: bool = False) -> list[AnyRecord]:
    """Return the records for a message. With `is_stopped`, the message was stopped in flight and starts no work."""
    message = UserMessage(say.id, say.text, say.author, say.attachments)
    if state.turn is None and not state.queue:
        release: list[AnyRecord] = [QueueReleased(at=context.at)] if state.is_held else []
        return [*release, _start_turn(state, (message,), context)]
    turn = state.turn.id if state.turn else ""
    is_first = goes_first(say.delivery, has_turn=state.turn is not None or not state.is_held)
    queued = Queued(
        message=message, delivery=say.delivery, turn=turn, is_first=is_first, inbox=context.inbox, at=context.at
    )
    if is_stopped:
        return [queued] if state.is_held else [queued, QueueHeld(at=context.at)]
    records: list[AnyRecord] = [queued, QueueReleased(at=context.at)] if state.is_held else [queued]
    if state.turn is None:
        records.extend(_next_turn(state, records, context))
    return records


def on_backlog(state: SessionState, say: Say, context: DecisionContext) -> list[AnyRecord]:
    """Queue a message that arrived between two turns, or while no process owned the session.

    `on_ready` starts the next turn later.
    """
    message = UserMessage(say.id, say.text, say.author, say.attachments)
    is_first = goes_first(say.delivery, has_turn=not state.is_held)
    queued = Queued(message=message, delivery=say.delivery, is_first=is_first, inbox=context.inbox, at=context.at)
    return [queued, QueueReleased(at=context.at)] if state.is_held else [queued]


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
        return [_refuse(interrupt, "nothing_runs", "That turn is no longer running.", context)] if context.inbox else []
    records: list[AnyRecord] = []
    if context.inbox:
        records.append(CommandHandled(command=interrupt.id, turn=interrupt.turn, inbox=context.inbox, at=context.at))
    if not state.queue or after_stop is AfterStop.RUN:
        return records
    if after_stop is AfterStop.HOLD:
        return [*records, QueueHeld(at=context.at)]
    return records + [
        Withdrawn(message=item.message.id, text=item.message.text, reason="handed back by a stop", at=context.at)
        for item in state.queue
    ]


def on_queue_command(state: SessionState, command: QueueCommand, context: DecisionContext) -> AnyRecord:
    """Return the record for a change to a queued message, or for its refusal."""
    queued = state.find_queued(command.message)
    if queued is None:
        return _refuse(command, "not_waiting", "That message is not in the queue.", context)
    match command:
        case Edit():
            return Edited(message=command.message, text=command.text, inbox=context.inbox, at=context.at)
        case Move():
            position = min(max(command.position, 1), len(state.queue))
            return Moved(message=command.message, position=position, inbox=context.inbox, at=context.at)
        case Withdraw():
            text = queued.message.text
            return Withdrawn(message=command.message, text=text, reason="withdrawn", inbox=context.inbox, at=context.at)


def on_answer(answer: Answer, context: DecisionContext, *, is_open: bool) -> list[AnyRecord]:
    """Return the records for an answer. The answer is refused if its question is no longer open."""
    if not is_open:
        return [_refuse(answer, "not_asked", "That question is no longer open.", context)]
    return [CommandHandled(command=answer.id, inbox=context.inbox, at=context.at)] if context.inbox else []


def on_change(state: SessionState, command: ChangeCommand, context: DecisionContext) -> AnyRecord:
    """Return the record for a change to the session, or for its refusal."""
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
        case RecordSideAnswer(route=route, usage=usage, cost=cost):
            return SideAnswered(route=route, usage=usage, cost=cost, inbox=context.inbox, at=context.at)
        case AddNote(text=text):
            if state.turn is not None:
                return _refuse(command, "busy", "A turn is running, so no note can be added now.", context)
            return NoteAdded(text=text, inbox=context.inbox, at=context.at)
        case StartWork(work=work, name=name):
            return WorkStarted(work=work, name=name, inbox=context.inbox, at=context.at)
        case EndWork():
            return on_end_work(state, command, context)


def on_end_work(state: SessionState, end: EndWork, context: DecisionContext) -> AnyRecord:
    """Return the record for ended background work, or a refusal if its end was already delivered.

    A child may end before the record of the call that it outlived.
    """
    is_running = end.work in state.work or (state.turn is not None and end.work in state.turn.calls)
    is_pending = any(report.id == wake_up_id(end.work) for report in state.reports)
    if not is_running and (end.report or not is_pending):
        return _refuse(end, "unknown_work", "The end of that work was already reported.", context)
    report = UserMessage(wake_up_id(end.work), end.report, end.name) if end.report else None
    return WorkEnded(work=end.work, report=report, wakes=end.wakes, inbox=context.inbox, at=context.at)


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


def on_rewind(state: SessionState, rewind: Rewind, context: DecisionContext) -> AnyRecord:
    """Return the record that rewinds the session to before a turn, or a refusal."""
    if state.turn is not None:
        return _refuse(rewind, "busy", "A turn is running. Stop it or wait until it ends, then try again.", context)
    if rewind.turn and not state.transcript.has_full_turn(rewind.turn):
        return _refuse(rewind, "unknown_turn", "That turn is not in the conversation, or has been summarised.", context)
    return Rewound(turn=rewind.turn, inbox=context.inbox, at=context.at)


def on_compact(state: SessionState, compact: Compact, context: DecisionContext) -> AnyRecord:
    """Return a refusal, or the record that starts a compaction in a separate turn, which can be stopped."""
    if state.turn is not None:
        return _refuse(compact, "busy", "A turn is running. Stop it or wait until it ends, then try again.", context)
    turn = turn_name(context.session, state.turns + 1)
    instructions = compact.instructions
    return TurnStarted(
        turn=turn, messages=(), task="compact", instructions=instructions, inbox=context.inbox, at=context.at
    )


def starts_queued_message(state: SessionState) -> bool:
    """Return whether a queued message starts the next turn, rather than an interrupting message or a steer."""
    return bool(state.queue) and not state.is_held and state.queue[0].delivery is Delivery.QUEUE


def on_end(state: SessionState, records: list[AnyRecord], context: DecisionContext) -> list[AnyRecord]:
    """Return a turn's last records and the start of the next turn, to be written together."""
    return [*records, *_next_turn(state, records, context)]


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
    return records


def on_ready(state: SessionState, context: DecisionContext) -> list[AnyRecord]:
    """Start the next turn once a session is loaded and its inbox is read, unless a turn has already started."""
    return [] if state.turn else _next_turn(state, [], context)


def _next_turn(state: SessionState, records: list[AnyRecord], context: DecisionContext) -> list[AnyRecord]:
    """Return the records that start the next turn once `records` are applied, or [] if no turn starts."""
    preview = SessionState()
    preview.turns = state.turns
    preview.queue = list(state.queue)
    preview.is_held = state.is_held
    preview.reports, preview.waking_reports = list(state.reports), set(state.waking_reports)
    preview.wake_ups, preview.are_wake_ups_held = state.wake_ups, state.are_wake_ups_held
    for record in records:
        if isinstance(record, Queued | QueueHeld | QueueReleased | Withdrawn | WorkEnded | WakeUpsHeld):
            preview.apply(record)
    messages = () if preview.is_held else next_turn_messages(preview.queue)
    if not messages and not preview.can_wake(context.max_wake_ups):
        return []
    return [_start_turn(preview, messages, replace(context, inbox=0))]


def _start_turn(state: SessionState, messages: tuple[UserMessage, ...], context: DecisionContext) -> TurnStarted:
    """Start a turn with the messages, after the reports about background work that ended since the last turn."""
    turn = turn_name(context.session, state.turns + 1)
    is_attended = any(is_from_user(message.id) for message in messages)
    reports = () if state.are_wake_ups_held and not is_attended else tuple(state.reports)
    return TurnStarted(turn=turn, messages=(*reports, *messages), inbox=context.inbox, at=context.at)


def _refuse(command: Command, code: str, message: str, context: DecisionContext) -> CommandRefused:
    return CommandRefused(command=command.id, code=code, message=message, inbox=context.inbox, at=context.at)
