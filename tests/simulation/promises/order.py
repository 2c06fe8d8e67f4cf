"""Guarantees about the order in which messages run."""

from itertools import pairwise

from hark.protocol.commands import Delivery
from hark.protocol.records import (
    Moved,
    Queued,
    QueueHeld,
    QueueReleased,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from tests.simulation.observations import Observations


def check_order(observations: Observations, *, is_alone: bool) -> None:
    """Check the order of all messages. `is_alone` means one machine without faults."""
    _check_order_of_arrival(observations)
    _check_steers_run_first(observations)
    if is_alone:
        _check_last_steers_run_first(observations)


def _check_order_of_arrival(observations: Observations) -> None:
    """Check that queued and interrupting messages each start in inbox order, unless a user moved them."""
    position = {entry.command.id: entry.seq for _, entry in observations.entries}
    moved = {one.record.message for one in observations.records if isinstance(one.record, Moved)}
    started = [
        message.id
        for one in observations.records
        if isinstance(one.record, TurnStarted)
        for message in one.record.messages
    ]
    for delivery in (Delivery.QUEUE, Delivery.INTERRUPT):
        names = [
            name
            for name in started
            if name not in moved and name in observations.messages and observations.messages[name].delivery is delivery
        ]
        for first, second in pairwise(names):
            if position[first] > position[second]:
                observations.add_violation(f"order: {first} ran before {second}, which came first ({delivery})")


def _check_steers_run_first(observations: Observations) -> None:
    """Check that no queued message starts a turn while a steer for an earlier turn waits, unless a user moved one."""
    moved = {one.record.message for one in observations.records if isinstance(one.record, Moved)}
    steers: list[str] = []
    for one in observations.records:
        match one.record:
            case Queued(message=message, delivery=Delivery.STEER, turn=turn) if turn and message.id not in moved:
                steers.append(message.id)
            case TurnStarted(messages=messages) | Steered(messages=messages):
                names = [message.id for message in messages]
                steers = [name for name in steers if name not in names]
                queued = {name for name in names if _is_queued(observations, name)}
                if steers and isinstance(one.record, TurnStarted) and queued - moved:
                    observations.add_violation(f"order: {names} started a turn before the steers {steers}")
            case Withdrawn(message=name) if name in steers:
                steers.remove(name)
            case _:
                pass


def _check_last_steers_run_first(observations: Observations) -> None:
    """Check that a steer which was sent before a turn's end was durable runs before the messages queued by then.

    A message releases a held queue, so a steer that was sent directly after it may run later.
    """
    moved = {one.record.message for one in observations.records if isinstance(one.record, Moved)}
    ended, queue, waiting, is_held = 0, set[str](), set[str](), False
    pending = {name: sent for name, sent in observations.messages.items() if sent.delivery is Delivery.STEER}
    for one in observations.records:
        match one.record:
            case Queued(message=message):
                pending.pop(message.id, None)
                queue.update({message.id} if _is_queued(observations, message.id) else ())
            case TurnEnded():
                ended, waiting = one.mark, set[str]() if is_held else queue - moved
            case QueueHeld():
                is_held, waiting = True, set[str]()
            case QueueReleased():
                is_held = False
            case TurnStarted(messages=messages):
                for message in messages:
                    pending.pop(message.id, None)
                late = [name for name, sent in pending.items() if sent.said_mark and sent.said_mark < ended]
                queued = waiting.intersection(message.id for message in messages)
                if late and queued:
                    observations.add_violation(f"order: {queued} started a turn before {late}, which had been sent")
            case _:
                pass


def _is_queued(observations: Observations, message: str) -> bool:
    return message in observations.messages and observations.messages[message].delivery is Delivery.QUEUE
