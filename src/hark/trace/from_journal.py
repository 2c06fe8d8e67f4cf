"""Reads the story of a turn out of its session's journal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hark.protocol.commands import Delivery
from hark.protocol.names import child_name, session_of, short_name
from hark.protocol.records import AnyRecord, CallStarted, Queued, TurnStarted
from hark.protocol.store import Journal
from hark.trace.segments import TurnRecords, parts_of
from hark.trace.turn_trace import MessageArrival, Segment, TurnTrace, time_words

Journals = Mapping[str, Sequence[AnyRecord]]


def turns_of(records: Sequence[AnyRecord]) -> list[str]:
    """Return the turns of a journal, in order."""
    return [record.turn for record in records if isinstance(record, TurnStarted)]


def find_turn(records: Sequence[AnyRecord], wanted: str = "") -> str | None:
    """Return the turn that `demo.t4`, `t4` or `4` means; the last one when nothing is said; None when there is none."""
    turns = turns_of(records)
    if not wanted:
        return turns[-1] if turns else None
    number = f"t{wanted.removeprefix('t')}"
    return next((turn for turn in reversed(turns) if wanted == turn or short_name(turn) == number), None)


def child_of(turn: str, call: str) -> str:
    """Return the name of the session that a call of a turn would have started."""
    return child_name(session_of(turn), call)


async def children_of(
    journal: Journal, records: Sequence[AnyRecord], turns: Sequence[str]
) -> dict[str, Sequence[AnyRecord]]:
    """Return the journals of the sessions that calls of these turns started, theirs included, by name.

    Raises:
        StoreError: They can't be read.
    """
    found: dict[str, Sequence[AnyRecord]] = {}
    for record in records:
        if isinstance(record, CallStarted) and record.turn in turns:
            name = child_of(record.turn, record.call)
            theirs = await journal.read(name)
            if theirs:
                found[name] = theirs
                found.update(await children_of(journal, theirs, turns_of(theirs)))
    return found


def story_of(records: Sequence[AnyRecord], turn: str, children: Journals | None = None) -> TurnTrace:
    """Return the story of a turn that `records` have. `children` are the journals of child sessions, by name."""
    found = TurnRecords(turn, records)
    parts = parts_of(found)
    timings, end = found.timings, found.end
    return TurnTrace(
        turn,
        found.start.at,
        timings.total if timings else max(found.known_total, 0.001),
        tuple(one for part in parts for one in (part, *_childs_parts(part, found, children or {}))),
        tuple(sorted(_arrivals(found), key=lambda arrival: arrival.at)),
        end.outcome if end else None,
        found.usage,
        end.cost if end else None,
        timings.interrupted_at if timings else None,
        timings.settle if timings else 0.0,
        timings is not None,
        end.at if end else 0.0,
    )


def _childs_parts(part: Segment, found: TurnRecords, children: Journals) -> Iterator[Segment]:
    """Yield what the child of a call did, in its parent's time."""
    records = children.get(child_of(found.turn, part.call)) if part.call else None
    for turn in turns_of(records or ()):
        story = story_of(records or (), turn, children)
        shift = found.since(story.began_at)
        for one in story.parts:
            first = None if one.first is None else one.first + shift
            yield replace(one, start=one.start + shift, end=one.end + shift, first=first, depth=one.depth + 1)


def _arrivals(found: TurnRecords) -> Iterator[MessageArrival]:
    """Yield the messages that met the turn: its prompt, and what came while it ran."""
    for message in found.start.messages:
        queued = found.queued.get(message.id)
        waited = (found.start.at - queued.at) * 1000 if queued else 0.0
        became = f"started this turn, after {time_words(waited)} in the queue" if waited >= 1 else "started this turn"
        yield MessageArrival(0.0, "prompt", message.text, became)
    if found.start.task:
        yield MessageArrival(
            0.0, "prompt", f"/{found.start.task} {found.start.instructions}".strip(), "started this turn"
        )
    for name, queued in found.queued.items():
        if queued.turn == found.turn:
            at, became = found.since(queued.at), _became(name, queued, found)
            yield MessageArrival(at, str(queued.delivery), queued.message.text, became)
    for name, steered in found.steered.items():
        if name not in found.queued:
            text = next(message.text for message in steered.messages if message.id == name)
            yield MessageArrival(found.since(steered.at), "steer", text, f"steered into step {steered.step}")


def _became(name: str, queued: Queued, found: TurnRecords) -> str:
    """Return what became of a message that came while the turn ran."""
    if name in found.steered:
        steered = found.steered[name]
        return f"steered into step {steered.step}, after {time_words((steered.at - queued.at) * 1000)}"
    if name in found.withdrawn:
        return found.withdrawn[name]
    if name not in found.started_by:
        return "waits"
    number = short_name(found.started_by[name])
    return f"interrupted this turn, started {number}" if queued.delivery is Delivery.INTERRUPT else f"started {number}"
