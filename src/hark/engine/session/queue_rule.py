"""The queue rule: the order in which queued messages run, and which of them start a turn together.

- Messages are queued in order of arrival. Interrupting messages, and steers for a running turn, go before all queued
  ones and keep the order of arrival among themselves. So a steer that its turn did not accept runs first.
- A steer that finds no turn running is queued. Between two turns, or if no process owned the session, it counts as
  meant for the last turn, unless the queue is held.
- A queued message starts a turn only after the end of the last turn is durable, and after the messages that were sent
  before that are read. So a steer that was sent before users saw the end runs first.
- When a turn ends, the first message starts the next one, unless the queue is held. Interrupting and steering messages
  at the head of the queue start one turn together, in order. A queued message starts a separate turn.
- A message that continues an interrupted turn (`/continue`) goes before the queued ones, and never interrupts.
- A stop holds the queue (or runs it, or hands it back: `after_stop`). The next message of any kind releases it.
- The queue has a maximum size. A message beyond it is refused, and never dropped later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hark.protocol.commands import Delivery
from hark.protocol.messages import Attachment, UserMessage
from hark.protocol.names import continued_turn
from hark.protocol.rules import Limits

QUEUE_FULL = "queue_full"
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message in the queue. `turn` names the turn that a steer is for, while that turn is running.

    `is_first` means that it was put before the messages that are only queued.
    """

    message: UserMessage
    delivery: Delivery
    turn: str
    is_first: bool = False


def goes_first(message: str, delivery: Delivery, *, has_turn: bool) -> bool:
    """Return whether a message goes before the queued ones. `has_turn`: a turn is running that a steer is for."""
    is_steer = delivery is Delivery.STEER and has_turn
    return delivery is Delivery.INTERRUPT or is_steer or bool(continued_turn(message))


def why_full(
    queue: Sequence[QueuedMessage], text: str, attachments: Sequence[Attachment], limits: Limits, in_flight: int = 0
) -> str:
    """Return why the queue can't accept a message, or "". `in_flight` counts messages that are about to be queued."""
    if len(queue) + in_flight >= limits.queue_messages:
        return f"The queue is full ({limits.queue_messages:,} messages). Withdraw some, or send it again later."
    size = _size(text, attachments) + sum(_size(item.message.text, item.message.attachments) for item in queue)
    if size > limits.queue_mb * _MEGABYTE:
        return f"The queue is full ({limits.queue_mb:g} MB). Withdraw some messages, or send it again later."
    return ""


def insert_message(queue: Sequence[QueuedMessage], item: QueuedMessage) -> list[QueuedMessage]:
    """Return the queue with `item` inserted."""
    if not item.is_first:
        return [*queue, item]
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
    # Older journals have steers behind queued messages. An interrupt moves these ahead with it.
    is_old_steer = item.delivery is Delivery.STEER and item.turn == turn
    return item.is_first or is_old_steer


def _size(text: str, attachments: Sequence[Attachment]) -> int:
    """Return the size of a message in bytes. Attachments that are stored as files don't count."""
    text_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return text_bytes + sum(len(attachment.data) for attachment in attachments)
