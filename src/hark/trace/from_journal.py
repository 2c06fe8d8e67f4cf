"""Builds the trace of a turn from its session's journal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hark.protocol.commands import Delivery
from hark.protocol.names import child_session_name, session_of_turn, short_turn_name
from hark.protocol.records import AnyRecord, CallStarted, Queued, TurnStarted
from hark.protocol.store import Journal
from hark.trace.segments import TurnRecords, build_segments
from hark.trace.turn_trace import MessageArrival, Segment, TurnTrace, format_duration

Journals = Mapping[str, Sequence[AnyRecord]]


def turn_names(records: Sequence[AnyRecord]) -> list[str]:
    """Return the names of the turns in a journal, in order."""
    return [record.turn for record in records if isinstance(record, TurnStarted)]


def find_turn(records: Sequence[AnyRecord], name: str = "") -> str | None:
    """Resolve a turn reference such as `demo.t4`, `t4` or `4` (default: the last turn) to its full name, or None."""
    turns = turn_names(records)
    if not name:
        return turns[-1] if turns else None
    number = f"t{name.removeprefix('t')}"
    return next((turn for turn in reversed(turns) if name == turn or short_turn_name(turn) == number), None)


def call_session_name(turn: str, call: str) -> str:
    """Return the name that a child session has if this call in this turn started it."""
    return child_session_name(session_of_turn(turn), call)


async def read_child_journals(
    journal: Journal, records: Sequence[AnyRecord], turns: Sequence[str]
) -> dict[str, Sequence[AnyRecord]]:
    """Return the journals, by name, of all child sessions that these turns started, directly or indirectly.

    Raises:
        StoreError: A journal can't be read.
    """
    found: dict[str, Sequence[AnyRecord]] = {}
    for record in records:
        if isinstance(record, CallStarted) and record.turn in turns:
            name = call_session_name(record.turn, record.call)
            child_records = await journal.read(name)
            if child_records:
                found[name] = child_records
                found.update(await read_child_journals(journal, child_records, turn_names(child_records)))
    return found


def build_trace(records: Sequence[AnyRecord], turn: str, children: Journals | None = None) -> TurnTrace:
    """Return the trace of a turn in `records`. `children` are the journals of child sessions, by name."""
    turn_records = TurnRecords(turn, records)
    segments = build_segments(turn_records)
    timings, end = turn_records.timings, turn_records.end
    return TurnTrace(
        turn,
        turn_records.start.at,
        timings.total if timings else max(turn_records.recorded_ms, 0.001),
        tuple(one for part in segments for one in (part, *_child_segments(part, turn_records, children or {}))),
        tuple(sorted(_message_arrivals(turn_records), key=lambda arrival: arrival.at)),
        end.outcome if end else None,
        turn_records.usage,
        end.cost if end else None,
        timings.interrupted_at if timings else None,
        timings.settle if timings else 0.0,
        timings is not None,
        end.at if end else 0.0,
    )


def _child_segments(segment: Segment, turn_records: TurnRecords, children: Journals) -> Iterator[Segment]:
    """Yield the segments of a call's child session, with times relative to the parent's turn."""
    records = children.get(call_session_name(turn_records.turn, segment.call)) if segment.call else None
    for turn in turn_names(records or ()):
        trace = build_trace(records or (), turn, children)
        shift = turn_records.ms_since_start(trace.began_at)
        for child in trace.parts:
            first = None if child.first is None else child.first + shift
            yield replace(child, start=child.start + shift, end=child.end + shift, first=first, depth=child.depth + 1)


def _message_arrivals(turn_records: TurnRecords) -> Iterator[MessageArrival]:
    """Yield the messages of a turn: its prompt, and the messages that arrived during the turn."""
    for message in turn_records.start.messages:
        queued = turn_records.queued.get(message.id)
        waited = (turn_records.start.at - queued.at) * 1000 if queued else 0.0
        queue_time = f", after {format_duration(waited)} in the queue" if waited >= 1 else ""
        became = f"started this turn{queue_time}"
        yield MessageArrival(0.0, "prompt", message.text, became)
    if turn_records.start.task:
        yield MessageArrival(
            0.0, "prompt", f"/{turn_records.start.task} {turn_records.start.instructions}".strip(), "started this turn"
        )
    for name, queued in turn_records.queued.items():
        if queued.turn == turn_records.turn:
            at, became = turn_records.ms_since_start(queued.at), _describe_arrival(name, queued, turn_records)
            yield MessageArrival(at, str(queued.delivery), queued.message.text, became)
    for name, steered in turn_records.steered.items():
        if name not in turn_records.queued:
            text = next(message.text for message in steered.messages if message.id == name)
            at = turn_records.ms_since_start(steered.at)
            yield MessageArrival(at, "steer", text, f"steered into step {steered.step}")


def _describe_arrival(message_id: str, queued: Queued, turn_records: TurnRecords) -> str:
    """Describe the outcome of a message that arrived during the turn."""
    if message_id in turn_records.steered:
        steered = turn_records.steered[message_id]
        return f"steered into step {steered.step}, after {format_duration((steered.at - queued.at) * 1000)}"
    if message_id in turn_records.withdrawn:
        return turn_records.withdrawn[message_id]
    if message_id not in turn_records.turn_by_message:
        return "queued"
    number = short_turn_name(turn_records.turn_by_message[message_id])
    return f"interrupted this turn, started {number}" if queued.delivery is Delivery.INTERRUPT else f"started {number}"
