"""One chat address with its session and the services that it uses."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hark.protocol.chat import Address, ChatSurface
from hark.protocol.chat_ledger import ChatLedger
from hark.protocol.session import Session
from hark.protocol.speech import Narrator
from hark.protocol.store import SessionListEntry
from hark.protocol.voice_messages import VoiceInbox
from hark.surfaces.chat.message_batch import ID_RANGE
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.questions import OpenQuestions
from hark.surfaces.chat.settings import ChatSettings


@dataclass(frozen=True, slots=True)
class ChatServices:
    """Services that all chat platforms share. `is_stop(text, surface)` detects stop requests."""

    ledger: ChatLedger
    open_session: Callable[[str], Session]
    list_sessions: Callable[[], Awaitable[list[SessionListEntry]]]
    ingress: VoiceInbox
    is_stop: Callable[[str, str], bool]
    narrator: Narrator | None = None
    first_retry_seconds: float = 1.0  # before a failed platform or chat is retried
    batch_window_seconds: float = 0.8  # the time to wait for the next part of a message that the client split
    idle_seconds: float = 300.0  # after which an idle chat is closed


@dataclass(frozen=True, slots=True)
class ChatRoute:
    """A chat address: its platform, its session and its settings.

    `outbox` sends messages to the address. `questions` holds its open questions.
    """

    surface: ChatSurface
    address: Address
    session: Session
    settings: ChatSettings
    services: ChatServices
    outbox: Outbox
    questions: OpenQuestions = field(default_factory=OpenQuestions)

    @property
    def ledger(self) -> ChatLedger:
        """The ledger of all chats."""
        return self.services.ledger

    def session_message_id(self, platform_id: str) -> str:
        """Return the id that a platform message has in the session."""
        return self._prefix + platform_id

    def derived_id(self, suffix: str) -> str:
        """Return a session message id for an action that isn't a platform message, such as a pressed button."""
        return f"~{self._prefix}{suffix}"

    def platform_message_id(self, message_id: str) -> str:
        """Return the platform's id of a session message (of its first part), or "" for a message from another
        address.
        """
        return (
            message_id.removeprefix(self._prefix).partition(ID_RANGE)[0] if message_id.startswith(self._prefix) else ""
        )

    @property
    def _prefix(self) -> str:
        return f"{self.address.surface}:{self.address.chat}:{self.address.thread}:"
