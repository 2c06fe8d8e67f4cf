"""The queue rule: the order in which queued messages run, and which of them start a turn together.

- Messages are queued in order of arrival. An interrupting message goes before all queued ones and after earlier
  interrupting ones. It moves pending steers of the running turn ahead with it.
- A steer that its turn did not accept keeps its position in that order.
- When a turn ends, the first message starts the next one, unless the queue is held. Interrupting and steering messages
  at the head of the queue start one turn together, in order. A queued message starts a separate turn.
- A stop holds the queue (or runs it, or hands it back: `after_stop`). The next message of any kind releases it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hark.protocol.commands import Delivery
from hark.protocol.messages import UserMessage


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message in the queue. `turn` names the turn that a steer is for, while that turn is running."""

    message: UserMessage
    delivery: Delivery
    turn: str


def insert_message(queue: Sequence[QueuedMessage], item: QueuedMessage, *, is_first: bool) -> list[QueuedMessage]:
    """Return the queue with `item` inserted. `is_first` means that the message interrupts."""
    if not is_first:
        return [*queue, item]
    # An interrupt moves the running turn's steers ahead with it: they were sent before it and are as urgent.
    urgent = [other for other in queue if _is_urgent(other, item.turn)]
    others = [other for other in queue if not _is_urgent(other, item.turn)]
    return [*urgent, item, *others]


def steers_for(queue: Sequence[QueuedMessage], turn: str) -> list[UserMessage]:
    """Return the messages that are pending for a running turn's next step."""
    return [item.message for item in queue if item.turn == turn and item.delivery is Delivery.STEER]


def next_turn_messages(queue: Sequence[QueuedMessage]) -> tuple[UserMessage, ...]:
    """Return the next turn's messages: the interrupts and steers at the queue's head, or else one queued message."""
    group: list[UserMessage] = []
    for item in queue:
        if group and item.delivery is Delivery.QUEUE:
            break
        group.append(item.message)
        if item.delivery is Delivery.QUEUE:
            break
    return tuple(group)


def _is_urgent(item: QueuedMessage, turn: str) -> bool:
    is_steer = item.delivery is Delivery.STEER and item.turn == turn
    return item.delivery is Delivery.INTERRUPT or is_steer
