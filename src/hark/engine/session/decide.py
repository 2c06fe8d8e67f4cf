"""A session's decisions: pure functions from state and command to records.

The order in which messages run is defined in `queue_rule.py`.
"""

from dataclasses import dataclass

from hark.engine.session.queue_rule import next_turn_messages
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
    Interrupt,
    Move,
    QueueCommand,
    Rewind,
    Say,
    Withdraw,
)
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.names import turn_name
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
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.rules import AfterStop

NEW_MESSAGE = "new message"


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """A decision's input besides state and command: the time, the session's id, and the inbox entry being processed."""

    at: float
    session: str
    inbox: int = 0


def on_say(state: SessionState, say: Say, context: DecisionContext, *, is_stopped: bool = False) -> list[AnyRecord]:
    """Return the records for a message. With `is_stopped`, the message was stopped in flight and starts no work."""
    message = UserMessage(say.id, say.text, say.author, say.attachments)
    if state.turn is None and not state.queue:
        release: list[AnyRecord] = [QueueReleased(at=context.at)] if state.is_held else []
        return [*release, _start_turn(state, (message,), context)]
    turn = state.turn.id if state.turn else ""
    is_first = say.delivery is Delivery.INTERRUPT
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
    """Queue a message that arrived while no process owned the session. `on_ready` starts the first turn later."""
    message = UserMessage(say.id, say.text, say.author, say.attachments)
    is_first = say.delivery is Delivery.INTERRUPT
    queued = Queued(message=message, delivery=say.delivery, is_first=is_first, inbox=context.inbox, at=context.at)
    return [queued, QueueReleased(at=context.at)] if state.is_held else [queued]


def on_interrupt(
    state: SessionState, interrupt: Interrupt, after_stop: AfterStop, context: DecisionContext
) -> list[AnyRecord]:
    """Return the records for a stop. A stop names its turn, so a late stop doesn't affect the next turn."""
    if state.turn is None or state.turn.id != interrupt.turn:
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
        case AddNote(text=text):
            if state.turn is not None:
                return _refuse(command, "busy", "A turn is running, so no note can be added now.", context)
            return NoteAdded(text=text, inbox=context.inbox, at=context.at)


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
    records.append(TurnEnded(turn=turn.id, outcome=Interrupted(CRASH), at=context.at))
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
    for record in records:
        if isinstance(record, Queued | QueueHeld | QueueReleased | Withdrawn):
            preview.apply(record)
    if preview.is_held or not preview.queue:
        return []
    return [_start_turn(state, next_turn_messages(preview.queue), DecisionContext(context.at, context.session))]


def _start_turn(state: SessionState, messages: tuple[UserMessage, ...], context: DecisionContext) -> TurnStarted:
    turn = turn_name(context.session, state.turns + 1)
    return TurnStarted(turn=turn, messages=messages, inbox=context.inbox, at=context.at)


def _refuse(command: Command, code: str, message: str, context: DecisionContext) -> CommandRefused:
    return CommandRefused(command=command.id, code=code, message=message, inbox=context.inbox, at=context.at)
