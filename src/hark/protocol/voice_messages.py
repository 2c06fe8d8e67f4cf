"""The port to the way of a voice message: from a recording to words that go on like typed ones."""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Protocol, TypeVar

from msgspec import Struct, field

from hark.protocol.receipts import Receipt
from hark.protocol.session import Session
from hark.protocol.speech import Audio

T = TypeVar("T")

WITHDRAWN = "🎙️ Stopped: that voice message was not transcribed, and goes nowhere."


class VoiceNote(Struct, frozen=True):
    """A recording that stands for a message. `id` is the message's, the same when it is delivered again.

    `line` names the conversation: what comes in one line stays in order. `about` is whatever is needed to go on with
    it after a restart: it is kept with the recording, and given back. `is_said`: a process that is gone had brought it
    to the session. It is heard again to be echoed, and is too late to be withdrawn.
    """

    id: str
    line: str
    audio: Audio
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    is_said: bool = False


class Fate(StrEnum):
    """What became of a voice message."""

    SAID = "said"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"
    LOST = "lost"


class VoiceResult(Struct, frozen=True):
    """How a voice message ended: its words, and the receipt that they got.

    STOPPED: its words were a stop. WITHDRAWN: a stop came before its words were known. LOST: there are no words, and a
    message that says where the recording is was queued for it.
    """

    fate: Fate
    text: str = ""
    receipt: Receipt | None = None


class Listener(Protocol):
    """What a voice message needs of the place that it came from."""

    @property
    def session(self) -> Session:
        """The session that the words go to."""
        ...

    def show(self, text: str) -> None:
        """Show the user what was heard so far, or what became of the recording. It replaces what was shown before.

        It passes the text to whatever sends it, and doesn't wait.
        """
        ...

    async def say(self, text: str, *, is_stopped: bool) -> Receipt | None:
        """Go on with the words exactly as if they had been typed; `is_stopped`: a stop came before they got here."""
        ...

    async def queue(self, text: str) -> Receipt | None:
        """Put a message into the queue, behind the turn that runs."""
        ...

    async def withdraw(self) -> None:
        """A stop withdrew it: return when that survives a crash. Its author is told after that."""
        ...


class VoiceDelivery(Protocol):
    """A voice message on its way. It goes on whether anybody waits for it or not."""

    async def ended(self) -> VoiceResult:
        """Return what became of it. Cancelling ends the wait, not the hearing.

        Raises:
            SpeechError: It can't be kept, and is not taken; or Hark ends, and goes on with it at the next start.
        """
        ...


class Ingress(Protocol):
    """Takes voice messages, and keeps their order with the texts around them."""

    @property
    def is_on(self) -> bool:
        """Whether there is somebody who turns speech into words."""
        ...

    def hear(self, note: VoiceNote, listener: Listener) -> VoiceDelivery:
        """Take a voice message; its place in the line is taken when this returns. One on its way is not doubled."""
        ...

    def waiting(self, line: str) -> int:
        """Return how many of that line are still on their way."""
        ...

    async def read(self, line: str, say: Callable[[bool], Awaitable[T]]) -> T:
        """Say a text when all that came before it in its line has been said; at once when there is nothing.

        Its place is taken before the first wait. `say` is told whether a stop came while it waited: then the text is
        accepted, and sets nothing off.
        """
        ...

    async def stop(self, line: str, interrupt: Callable[[], Awaitable[T]]) -> T:
        """Interrupt at once, and withdraw the voice messages of a line whose words are not yet known.

        What waits behind them is said as stopped.
        """
        ...

    def withdraw(self, line: str, id: str) -> bool:  # noqa: A002
        """Withdraw one voice message; False when it is not on its way, or its words are known."""
        ...
