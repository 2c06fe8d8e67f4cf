"""The port between a surface and one conversation, the same for every surface."""

from collections.abc import Collection, Sequence
from typing import Protocol, Self, TypedDict, Unpack

from msgspec import Struct

from hark.protocol.commands import Delivery, Shown
from hark.protocol.events import AnyEvent, QuestionAsked
from hark.protocol.meaning import AnswerRule, CommandMeaning, Meaning, StopMeaning, no_answer
from hark.protocol.messages import Attachment, Call, Message
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, Refusal, Settled
from hark.protocol.rules import ApprovalMode


class Details(TypedDict, total=False):
    """What may be told of a message beside its words and their delivery.

    `id`: the same one is taken once; without it the message gets one. `is_stopped`: a stop came while the message was
    on its way, so that it sets nothing off. `shown`: how much of the running reply the person had seen or heard; if
    the message interrupts it, the rest is not kept.
    """

    id: str
    author: str
    attachments: Sequence[Attachment]
    is_stopped: bool
    shown: Shown | None


class SessionStatus(Struct, frozen=True):
    """A session's title, how often it asks, the route that serves it first, all routes, and the folder it works in."""

    title: str
    mode: ApprovalMode
    route: str
    routes: tuple[str, ...]
    folder: str


class RunningTurn(Struct, frozen=True):
    """The running turn, for a reader that comes late: the reply but for about its last second, and open questions."""

    turn: str
    text: str = ""
    questions: tuple[QuestionAsked, ...] = ()


class RewindPoint(Struct, frozen=True):
    """A turn that one can go back to before, with the person's words."""

    turn: str
    text: str


class SessionHistory(Struct, frozen=True):
    """A transcript: its messages, the turn of each, the turns to go back to, and those that `/continue` would continue.

    An end of the program cut the latter.
    """

    messages: tuple[Message, ...]
    turns: tuple[str, ...]
    points: tuple[RewindPoint, ...]
    cut: tuple[str, ...]


class EventReader(Protocol):
    """A session's events, from the moment that it was made."""

    def __aiter__(self) -> Self:
        """Read them one by one, until the session closes."""
        ...

    async def __anext__(self) -> AnyEvent:
        """Return the next one."""
        ...

    async def take(self) -> list[AnyEvent]:
        """Return all that came, in order; wait when nothing did. None means that the session is closed."""
        ...

    def close(self) -> None:
        """Take no more; `take` returns what came, and then nothing."""
        ...


class Session(Protocol):
    """One conversation, whichever process owns it.

    Reading neither creates a session nor loads one that nobody has open. A message that is said while the gateway
    drains is kept for after the restart. What is said can be interrupted from the call's first step on.
    """

    @property
    def id(self) -> str:
        """The session's name."""
        ...

    @property
    def delivery(self) -> Delivery:
        """What a message does to a running turn, if it does not say so itself."""
        ...

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        ...

    async def opened(self) -> None:
        """Return when the session is loaded: what is told from then on comes behind all that was told before."""
        ...

    def events(self) -> EventReader:
        """Return the events from this call on."""
        ...

    # In.

    async def say(self, text: str, delivery: Delivery | str | None = None, **details: Unpack[Details]) -> Receipt:
        """Accept a message, durably; return what became of it. One that is a slash command is that command.

        Raises:
            ValueError: There is no such delivery.
            StoreError: It was not accepted.
        """
        ...

    async def interrupt(
        self, source: str = "user", turn: str = "", shown: int | None = None, messages: Collection[str] = ()
    ) -> Settled | None:
        """End everything that runs; return when it has settled, or None when nothing ran.

        With `turn` or `messages`, end only that turn and the turns of these messages. A message may still be on its
        way: it is accepted when it comes, and sets nothing off. `shown` is how many characters of the running reply
        the person had seen; the rest is not kept.
        """
        ...

    def meaning(self, text: str, answer: AnswerRule = no_answer) -> Meaning:
        """Return what a text means when it is said on this surface; `answer` is its rule for open questions."""
        ...

    async def run_command(self, command: CommandMeaning | StopMeaning) -> str:
        """Run a slash command; return what it says. `say` publishes that as a notice instead."""
        ...

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question; return why not."""
        ...

    async def edit(self, message: str, text: str) -> Refusal | None:
        """Change the text of a message that waits; return why not."""
        ...

    async def move(self, message: str, position: int) -> Refusal | None:
        """Put a message that waits at another position, from 1; return why not."""
        ...

    async def withdraw(self, message: str) -> Refusal | None:
        """Take a message that waits out of the queue; return why not."""
        ...

    async def choose_mode(self, mode: ApprovalMode) -> Refusal | None:
        """Ask more or less often from now on; return why not."""
        ...

    async def choose_route(self, route: str) -> Refusal | None:
        """Have a route serve first, from the next turn on; "" for the usual order. Return why not."""
        ...

    async def rewind(self, turn: str, *, with_files: bool) -> str:
        """Go back to before a turn, with its file changes or without; return what was done, or why not."""
        ...

    def notice(self, code: str, text: str) -> None:
        """Publish a notice to the session's readers."""
        ...

    def let_go(self) -> None:
        """Close it in this process as soon as nothing runs: nobody will say more soon. The next word opens it again."""
        ...

    # Out.

    async def idle(self) -> Outcome | None:
        """Return the last turn's outcome when nothing runs and nothing may run."""
        ...

    async def queue(self) -> list[QueueItem]:
        """Return what waits, in running order."""
        ...

    async def has_known(self, message: str) -> bool:
        """Return whether a message of that id was ever accepted here."""
        ...

    def running(self) -> RunningTurn | None:
        """Return the turn that runs, as far as this process knows it; None when the session is not loaded yet."""
        ...

    def call(self, name: str) -> Call | None:
        """Return a call of the running turn's last reply."""
        ...

    async def status(self) -> SessionStatus:
        """Return the title, the settings in force and the folder; loads the session."""
        ...

    async def history(self) -> SessionHistory:
        """Return what was said so far."""
        ...

    async def ended_turns(self, after: int) -> list[tuple[str, Outcome]]:
        """Return the turns that ended, from behind this number on, the oldest first."""
        ...

    async def reply_of(self, turn: str) -> str:
        """Return all that the model said in a turn."""
        ...
