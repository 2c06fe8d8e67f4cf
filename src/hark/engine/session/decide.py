"""What a session does about a command: pure functions from state and command to records.

In which order messages run is the queue rule (`queue_rule.py`).
"""

from dataclasses import dataclass

from hark.engine.session.queue_rule import next_messages
from hark.engine.session.state import SessionState
from hark.engine.turn.transcript import CRASH, close_calls
from hark.protocol.commands import (
    Answer,
    Change,
    ChooseMode,
    ChooseRoute,
    Command,
    Compact,
    Delivery,
    Edit,
    Interrupt,
    Move,
    QueueCommand,
    Remark,
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
    Edited,
    Handled,
    Held,
    ModeChosen,
    Moved,
    Queued,
    Refused,
    Released,
    Remarked,
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
class Moment:
    """What a decision knows besides state and command: the time, the session's id, and the inbox entry it answers."""

    at: float
    session: str
    inbox: int = 0


def on_say(state: SessionState, say: Say, moment: Moment, *, is_stopped: bool = False) -> list[AnyRecord]:
    """A message came. `is_stopped`: a stop was asked for while it was on its way in, so it must not set work off."""
    message = UserMessage(say.id, say.text, say.author, say.attachments)
    if state.turn is None and not state.queue:
        release: list[AnyRecord] = [Released(at=moment.at)] if state.is_held else []
        return [*release, _start(state, (message,), moment)]
    turn = state.turn.id if state.turn else ""
    is_first = say.delivery is Delivery.INTERRUPT
    queued = Queued(
        message=message, delivery=say.delivery, turn=turn, is_first=is_first, inbox=moment.inbox, at=moment.at
    )
    if is_stopped:
        return [queued] if state.is_held else [queued, Held(at=moment.at)]
    records: list[AnyRecord] = [queued, Released(at=moment.at)] if state.is_held else [queued]
    if state.turn is None:
        records.extend(_after(state, records, moment))
    return records


def on_backlog(state: SessionState, say: Say, moment: Moment) -> list[AnyRecord]:
    """A message came while nobody owned the session: it waits until all that came is read, then `on_ready`."""
    message = UserMessage(say.id, say.text, say.author, say.attachments)
    is_first = say.delivery is Delivery.INTERRUPT
    queued = Queued(message=message, delivery=say.delivery, is_first=is_first, inbox=moment.inbox, at=moment.at)
    return [queued, Released(at=moment.at)] if state.is_held else [queued]


def on_interrupt(state: SessionState, interrupt: Interrupt, after_stop: AfterStop, moment: Moment) -> list[AnyRecord]:
    """A stop came. It names a turn, so one that comes too late meets nothing."""
    if state.turn is None or state.turn.id != interrupt.turn:
        return [_refuse(interrupt, "nothing_runs", "That turn does not run any more.", moment)] if moment.inbox else []
    records: list[AnyRecord] = []
    if moment.inbox:
        records.append(Handled(command=interrupt.id, turn=interrupt.turn, inbox=moment.inbox, at=moment.at))
    if not state.queue or after_stop is AfterStop.RUN:
        return records
    if after_stop is AfterStop.HOLD:
        return [*records, Held(at=moment.at)]
    return records + [
        Withdrawn(message=waiting.message.id, text=waiting.message.text, reason="handed back by a stop", at=moment.at)
        for waiting in state.queue
    ]


def on_queue_command(state: SessionState, command: QueueCommand, moment: Moment) -> AnyRecord:
    """Someone wants to change a message that waits."""
    waiting = state.waiting(command.message)
    if waiting is None:
        return _refuse(command, "not_waiting", "That message does not wait any more, or never did.", moment)
    match command:
        case Edit():
            return Edited(message=command.message, text=command.text, inbox=moment.inbox, at=moment.at)
        case Move():
            position = min(max(command.position, 1), len(state.queue))
            return Moved(message=command.message, position=position, inbox=moment.inbox, at=moment.at)
        case Withdraw():
            text = waiting.message.text
            return Withdrawn(message=command.message, text=text, reason="withdrawn", inbox=moment.inbox, at=moment.at)


def on_answer(answer: Answer, moment: Moment, *, is_open: bool) -> list[AnyRecord]:
    """Someone answers a question; one that is not open any more is told so."""
    if not is_open:
        return [_refuse(answer, "not_asked", "That question is not open any more.", moment)]
    return [Handled(command=answer.id, inbox=moment.inbox, at=moment.at)] if moment.inbox else []


def on_change(state: SessionState, command: Change, moment: Moment) -> AnyRecord:
    """Someone wants something of the session changed."""
    match command:
        case Edit() | Move() | Withdraw():
            return on_queue_command(state, command, moment)
        case Compact():
            return on_compact(state, command, moment)
        case Rewind():
            return on_rewind(state, command, moment)
        case ChooseRoute(route=route):
            return RouteChosen(route=route, inbox=moment.inbox, at=moment.at)
        case ChooseMode(mode=mode):
            return ModeChosen(mode=mode, inbox=moment.inbox, at=moment.at)
        case Remark(text=text):
            if state.turn is not None:
                return _refuse(command, "busy", "A turn runs: its transcript is its own.", moment)
            return Remarked(text=text, inbox=moment.inbox, at=moment.at)


def on_rewind(state: SessionState, rewind: Rewind, moment: Moment) -> AnyRecord:
    """Someone wants to go back to before a turn."""
    if state.turn is not None:
        return _refuse(rewind, "busy", "A turn runs. Stop it, or wait for its end, and ask again.", moment)
    if rewind.turn and not state.transcript.knows(rewind.turn):
        return _refuse(rewind, "unknown_turn", "That turn is not in the conversation, or is summarised by now.", moment)
    return Rewound(turn=rewind.turn, inbox=moment.inbox, at=moment.at)


def on_compact(state: SessionState, compact: Compact, moment: Moment) -> AnyRecord:
    """Someone wants room: that is a turn of its own, so it can be stopped like any other."""
    if state.turn is not None:
        return _refuse(compact, "busy", "A turn runs. Stop it, or wait for its end, and ask again.", moment)
    turn = turn_name(moment.session, state.turns + 1)
    instructions = compact.instructions
    return TurnStarted(
        turn=turn, messages=(), task="compact", instructions=instructions, inbox=moment.inbox, at=moment.at
    )


def on_end(state: SessionState, records: list[AnyRecord], moment: Moment) -> list[AnyRecord]:
    """A turn is over: write what it left, its end, and the start of the next one, all at once."""
    return [*records, *_after(state, records, moment)]


def on_load(state: SessionState, moment: Moment) -> list[AnyRecord]:
    """A session is opened. A turn that is still open was cut by a crash: it is closed, and never run again."""
    turn = state.turn
    if turn is None:
        return []
    records: list[AnyRecord] = []
    if turn.progress:
        partial = AssistantMessage(turn.progress, is_partial=True)
        records.append(Replied(turn=turn.id, step=turn.step + 1, message=partial, at=moment.at))
    records.extend(
        CallEnded(turn=turn.id, result=result, at=moment.at)
        for result in close_calls(turn.calls.values(), turn.started, "the program crashed")
    )
    records.append(TurnEnded(turn=turn.id, outcome=Interrupted(CRASH), at=moment.at))
    return records


def on_ready(state: SessionState, moment: Moment) -> list[AnyRecord]:
    """A session is loaded, and all that waited for it is read: what may run, runs, unless a turn was begun already."""
    return [] if state.turn else _after(state, [], moment)


def _after(state: SessionState, records: list[AnyRecord], moment: Moment) -> list[AnyRecord]:
    """Return the next turn's start as it will be once `records` are applied; nothing when there is none."""
    preview = SessionState()
    preview.turns = state.turns
    preview.queue = list(state.queue)
    preview.is_held = state.is_held
    for record in records:
        if isinstance(record, Queued | Held | Released | Withdrawn):
            preview.apply(record)
    if preview.is_held or not preview.queue:
        return []
    return [_start(state, next_messages(preview.queue), Moment(moment.at, moment.session))]


def _start(state: SessionState, messages: tuple[UserMessage, ...], moment: Moment) -> TurnStarted:
    turn = turn_name(moment.session, state.turns + 1)
    return TurnStarted(turn=turn, messages=messages, inbox=moment.inbox, at=moment.at)


def _refuse(command: Command, code: str, message: str, moment: Moment) -> Refused:
    return Refused(command=command.id, code=code, message=message, inbox=moment.inbox, at=moment.at)
