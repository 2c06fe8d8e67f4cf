"""The port for voice messages: a recording is transcribed, and the transcript is handled like a typed message."""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Protocol, TypeVar

from msgspec import Struct, field

from hark.protocol.receipts import Receipt
from hark.protocol.session import Session
from hark.protocol.speech import Audio

T = TypeVar("T")

WITHDRAWN = "🎙️ Stopped. The voice message was not transcribed and was not sent."


class VoiceNote(Struct, frozen=True):
    """A recording that replaces a message's text. `id` is the message's id, which stays the same on redelivery.

    Messages in one `conversation` stay in order. `about` is stored with the recording and used to continue after a
    restart. `is_said`: an earlier process already delivered the transcript to the session. The recording is then
    transcribed only to show the transcript, and can't be withdrawn.
    """

    id: str
    conversation: str
    audio: Audio
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    is_said: bool = False


class VoiceOutcome(StrEnum):
    """The outcome of a voice message."""

    SAID = "said"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"
    LOST = "lost"


class VoiceResult(Struct, frozen=True):
    """The result of a voice message: its transcript, and the receipt of the message that was sent.

    STOPPED: the transcript was a stop word. WITHDRAWN: a stop arrived before the transcription finished. LOST:
    transcription failed, and a message that says where the recording is stored was queued instead.
    """

    outcome: VoiceOutcome
    text: str = ""
    receipt: Receipt | None = None


class VoiceClient(Protocol):
    """The sender's side of a voice message: shows its progress and sends the transcript."""

    @property
    def session(self) -> Session:
        """The session that the transcript is sent to."""
        ...

    def show(self, text: str) -> None:
        """Show the user the partial transcript or the recording's outcome. Replaces the previously shown text.

        Doesn't wait until the text is sent.
        """
        ...

    async def say(self, text: str, *, is_stopped: bool) -> Receipt | None:
        """Send the transcript like a typed message. `is_stopped`: a stop arrived before the transcript was ready."""
        ...

    async def queue(self, text: str) -> Receipt | None:
        """Queue a message after the running turn."""
        ...

    async def withdraw(self) -> None:
        """Record durably that a stop withdrew the voice message. Its author is notified afterwards."""
        ...


class VoiceDelivery(Protocol):
    """A voice message being processed. Processing continues whether or not a caller waits for the result."""

    async def result(self) -> VoiceResult:
        """Wait for the voice message's result. Cancelling ends the wait, not the transcription.

        Raises:
            SpeechError: The recording can't be stored and was not accepted; or Hark is stopping, and processes it
                after the next start.
        """
        ...


class VoiceInbox(Protocol):
    """Accepts voice messages, and delivers them in order with the text messages around them."""

    @property
    def is_on(self) -> bool:
        """Whether a transcriber is available."""
        ...

    def accept(self, note: VoiceNote, client: VoiceClient) -> VoiceDelivery:
        """Accept a voice message and reserve its position. A message already in progress is not processed twice."""
        ...

    def pending_count(self, conversation: str) -> int:
        """Return the number of the conversation's messages that are still in progress."""
        ...

    async def send_in_order(self, conversation: str, send: Callable[[bool], Awaitable[T]]) -> T:
        """Send a text message after all earlier messages of its conversation, or immediately if none is in progress.

        Its position is reserved before the first await. `send` receives True if a stop arrived in the meantime; the
        message is then accepted but starts no work.
        """
        ...

    async def stop(self, conversation: str, interrupt: Callable[[], Awaitable[T]]) -> T:
        """Interrupt immediately, and withdraw the conversation's voice messages that are not transcribed yet.

        Text messages queued after them are accepted but start no work.
        """
        ...

    def withdraw(self, conversation: str, id: str) -> bool:  # noqa: A002
        """Withdraw one voice message. Return False if it is not in progress or is already transcribed."""
        ...
