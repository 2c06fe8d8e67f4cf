"""What became of each message, told by how the turns around it went."""

from hark.protocol.events import AnyEvent, ReceiptChanged, StepStart, TurnEnd
from hark.protocol.outcomes import Interrupted
from hark.protocol.receipts import Receipt, ReceiptState
from hark.text.status_text import milliseconds, turn_number

KEPT = 200


class Fates:
    """Remembers which message was to cut which turn, and how those turns ended."""

    def __init__(self) -> None:
        self._cuts: dict[str, str] = {}
        self._settles: dict[str, float | None] = {}
        self._step = 0

    def take(self, event: AnyEvent) -> None:
        """Take one more event."""
        match event:
            case StepStart(step=step):
                self._step = step  # a steer is taken before its step starts
            case TurnEnd(outcome=outcome, timings=timings):
                self._settles[event.turn or ""] = timings.settle if isinstance(outcome, Interrupted) else None
                self._step = 0
                if len(self._settles) > KEPT:
                    del self._settles[next(iter(self._settles))]
            case ReceiptChanged(receipt=receipt) if receipt.state is ReceiptState.INTERRUPTING and receipt.turn:
                self._cuts[receipt.id] = receipt.turn
            case _:
                pass

    def words(self, receipt: Receipt) -> str:
        """Return what became of a message, in a few words."""
        turn = turn_number(receipt.turn)
        match receipt.state:
            case ReceiptState.STARTED:
                return self._started(receipt.id, turn)
            case ReceiptState.INTERRUPTING:
                return f"interrupts turn {turn} …"
            case ReceiptState.STEERING:
                return f"steers turn {turn} at its next step"
            case ReceiptState.STEERED:
                return f"steered into turn {turn}, step {self._step + 1}"
            case ReceiptState.QUEUED:
                return f"queued #{receipt.position}"
            case ReceiptState.HELD:
                return f"held #{receipt.position}: the next message releases it"
            case ReceiptState.EDITED:
                return f"edited, queued #{receipt.position}"
            case ReceiptState.WITHDRAWN:
                return "withdrawn"
            case ReceiptState.DUPLICATE:
                return "known already"

    def _started(self, message: str, turn: str) -> str:
        cut = self._cuts.pop(message, "")
        if not cut:
            return f"turn {turn}" if turn else ""
        settle = self._settles.get(cut)
        if settle is None:
            return f"turn {turn_number(cut)} had ended by itself: runs as turn {turn}"
        return f"interrupted turn {turn_number(cut)} in {milliseconds(settle)}: turn {turn}"
