"""The queue rule: in which order waiting messages run, and which of them start a turn together.

- Messages wait in the order of their arrival. An interrupting message goes before all queued ones, behind earlier
  interrupting ones, and takes along the steers that the running turn has not taken.
- A steer that its turn did not take keeps its place in that order.
- When a turn ends, the first message starts the next one, unless the queue is held. Interrupting and steering messages
  at the head of the queue start one turn together, in order. A queued message starts a turn of its own.
- A stop holds the queue (or runs it, or hands it back: `after_stop`). The next message of any kind releases it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hark.protocol.commands import Delivery
from hark.protocol.messages import UserMessage


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message in the queue. With `turn`, it is a steer for that turn, as long as that turn runs."""

    message: UserMessage
    delivery: Delivery
    turn: str


def with_message(queue: Sequence[Waiting], waiting: Waiting, *, is_first: bool) -> list[Waiting]:
    """Return the queue with one more message. `is_first`: it interrupts."""
    if not is_first:
        return [*queue, waiting]
    # An interrupt takes the running turn's steers along: they were said before it, and are as urgent.
    urgent = [other for other in queue if _is_urgent(other, waiting.turn)]
    others = [other for other in queue if not _is_urgent(other, waiting.turn)]
    return [*urgent, waiting, *others]


def steers_for(queue: Sequence[Waiting], turn: str) -> list[UserMessage]:
    """Return the messages that wait for a running turn's next step."""
    return [waiting.message for waiting in queue if waiting.turn == turn and waiting.delivery is Delivery.STEER]


def next_messages(queue: Sequence[Waiting]) -> tuple[UserMessage, ...]:
    """Return what the next turn takes: the first message, with the interrupts and steers right behind it."""
    group: list[UserMessage] = []
    for waiting in queue:
        if group and waiting.delivery is Delivery.QUEUE:
            break
        group.append(waiting.message)
        if waiting.delivery is Delivery.QUEUE:
            break
    return tuple(group)


def _is_urgent(waiting: Waiting, turn: str) -> bool:
    is_steer = waiting.delivery is Delivery.STEER and waiting.turn == turn
    return waiting.delivery is Delivery.INTERRUPT or is_steer
