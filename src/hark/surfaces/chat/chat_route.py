"""One conversation: an address of a platform, its session, and the services that its parts share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hark.protocol.chat import Address, ChatSurface
from hark.protocol.chat_ledger import ChatLedger
from hark.protocol.session import Session
from hark.protocol.speech import Narrator
from hark.protocol.store import SessionLine
from hark.protocol.voice_messages import Ingress
from hark.surfaces.chat.message_batch import THROUGH
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.questions import OpenQuestions
from hark.surfaces.chat.settings import ChatSettings


@dataclass(frozen=True, slots=True)
class ChatServices:
    """What all platforms share. `is_stop` tells whether a text stops what runs, on the surface of that name."""

    ledger: ChatLedger
    open_session: Callable[[str], Session]
    sessions: Callable[[], Awaitable[list[SessionLine]]]
    ingress: Ingress
    is_stop: Callable[[str, str], bool]
    narrator: Narrator | None = None
    first_pause_seconds: float = 1.0  # before a platform or a chat that failed is tried again
    window_seconds: float = 0.8  # for the next part of a message that the client split
    sleep_seconds: float = 300.0  # after which a quiet chat is closed


@dataclass(frozen=True, slots=True)
class ChatRoute:
    """The platform, the address on it, the session behind it, and the surface's settings.

    `outbox` sends to the address. `questions` are those that are open there.
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
        """The ledger of all conversations."""
        return self.services.ledger

    def name_of(self, message: str) -> str:
        """Return what the session calls a message of the platform."""
        return self._prefix + message

    def own_name_of(self, what: str) -> str:
        """Return what the session calls a message that stands for something else, such as a button."""
        return f"~{self._prefix}{what}"

    def message_of(self, name: str) -> str:
        """Return the platform's id of a message that came from here (of its first part); "" for one that did not."""
        return name.removeprefix(self._prefix).partition(THROUGH)[0] if name.startswith(self._prefix) else ""

    @property
    def _prefix(self) -> str:
        return f"{self.address.surface}:{self.address.chat}:{self.address.thread}:"
