"""The port between a surface and one conversation, the same for every surface."""

from collections.abc import Collection, Sequence
from typing import Protocol, Self, TypedDict, Unpack

from msgspec import Struct

from hark.protocol.commands import Delivery, ShownText
from hark.protocol.events import AnyEvent, QuestionAsked
from hark.protocol.meaning import AnswerRule, CommandMeaning, Meaning, StopMeaning, not_an_answer
from hark.protocol.messages import Attachment, Call, Message
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, Refusal, Settled
from hark.protocol.rules import ApprovalMode


class MessageDetails(TypedDict, total=False):
    """Optional details of a message.

    `id`: a message with the same id is accepted only once; without an id, a new one is used. `is_stopped`: a stop
    arrived while the message was in flight, so it starts no work. `shown`: how much of the partial reply the user had
    seen or heard; if the message interrupts the reply, the rest is dropped.
    """

    id: str
    author: str
    attachments: Sequence[Attachment]
    is_stopped: bool
    shown: ShownText | None


class SessionStatus(Struct, frozen=True):
    """A session's title, approval mode, preferred route, all routes, and working folder."""

    title: str
    mode: ApprovalMode
    route: str
    routes: tuple[str, ...]
    folder: str


class RunningTurn(Struct, frozen=True):
    """The running turn's state for a late subscriber: open questions, and the reply as last saved."""

    turn: str
    text: str = ""
    questions: tuple[QuestionAsked, ...] = ()


class RewindPoint(Struct, frozen=True):
    """A turn that the user can rewind to, and the user's message that started it."""

    turn: str
    text: str


class SessionHistory(Struct, frozen=True):
    """A transcript: its messages, the turn of each, the rewind points, and the turns that `/continue` would resume.

    The turns in `cut` were interrupted when the program ended. `resumable` also has those that the user interrupted.
    """

    messages: tuple[Message, ...]
    turns: tuple[str, ...]
    points: tuple[RewindPoint, ...]
    cut: tuple[str, ...]
    resumable: tuple[str, ...]


class EventReader(Protocol):
    """A reader of a session's events, starting when the reader is created."""

    def __aiter__(self) -> Self:
        """Iterate over the events until the session closes."""
        ...

    async def __anext__(self) -> AnyEvent:
        """Return the next event."""
        ...

    async def next_batch(self) -> list[AnyEvent]:
        """Wait for events and return all new ones, in order. An empty list means the session closed."""
        ...

    def close(self) -> None:
        """Stop reading. `next_batch` returns the remaining events, then empty lists."""
        ...


class Session(Protocol):
    """One conversation, whichever process owns it.

    Reading neither creates a session nor loads one that no process has open. A message sent while the gateway drains
    is stored until after the restart. A message can be interrupted as soon as `say` is called.
    """

    @property
    def id(self) -> str:
        """The session's name."""
        ...

    @property
    def delivery(self) -> Delivery:
        """The default delivery mode for messages."""
        ...

    def new_id(self) -> str:
        """Return a new unique id."""
        ...

    async def wait_until_loaded(self) -> None:
        """Wait until the session is loaded. Readers then receive every event, in order."""
        ...

    def events(self) -> EventReader:
        """Return a reader for the events that are published after this call."""
        ...

    # Input.

    async def say(
        self, text: str, delivery: Delivery | str | None = None, **details: Unpack[MessageDetails]
    ) -> Receipt:
        """Accept a message durably and return its receipt. A slash command is run instead.

        Raises:
            ValueError: The delivery is unknown.
            StoreError: The message was not accepted.
        """
        ...

    async def interrupt(
        self, source: str = "user", turn: str = "", shown: int | None = None, messages: Collection[str] = ()
    ) -> Settled | None:
        """Stop all running turns and wait until they have settled. Return None if none was running.

        With `turn` or `messages`, stop only that turn and the turns of these messages. A message in flight is still
        accepted but starts no work. `shown` is the number of characters of the partial reply that the user had seen;
        the rest is dropped.
        """
        ...

    def interpret(self, text: str, answer: AnswerRule = not_an_answer) -> Meaning:
        """Return the meaning of a text sent on this surface. `answer` decides which texts answer an open question."""
        ...

    async def run_command(self, command: CommandMeaning | StopMeaning) -> str:
        """Run a slash command and return its reply. `say` publishes the reply as a notice instead."""
        ...

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question. Return a refusal if that is not possible."""
        ...

    async def edit(self, message: str, text: str) -> Refusal | None:
        """Change the text of a queued message. Return a refusal if that is not possible."""
        ...

    async def move(self, message: str, position: int) -> Refusal | None:
        """Move a queued message to another position, counted from 1. Return a refusal if that is not possible."""
        ...

    async def withdraw(self, message: str) -> Refusal | None:
        """Remove a message from the queue. Return a refusal if that is not possible."""
        ...

    async def choose_mode(self, mode: ApprovalMode) -> Refusal | None:
        """Set the approval mode. Return a refusal if that is not possible."""
        ...

    async def choose_route(self, route: str) -> Refusal | None:
        """Set the route to try first from the next turn on; "" for the default order. Return a refusal on failure."""
        ...

    async def rewind(self, turn: str, *, with_files: bool) -> str:
        """Rewind to before a turn, optionally undoing its file changes. Return the result, or why it was refused."""
        ...

    def stop_side_questions(self) -> bool:
        """Stop the side questions that were asked in this process. Return False if none was open."""
        ...

    def publish_notice(self, code: str, text: str) -> None:
        """Publish a notice to the session's readers."""
        ...

    def release(self) -> None:
        """Unload the session in this process as soon as it is idle. The next message loads it again."""
        ...

    # Output.

    async def idle(self) -> Outcome | None:
        """Wait until no turn is running or about to run, and return the last turn's outcome."""
        ...

    async def queue(self) -> list[QueueItem]:
        """Return the queued messages, in running order."""
        ...

    async def has_message(self, message: str) -> bool:
        """Return whether a message with that id was ever accepted in this session."""
        ...

    def running_turn(self) -> RunningTurn | None:
        """Return the running turn as known in this process. None if no turn is running or the session is not loaded."""
        ...

    def open_questions(self) -> list[QuestionAsked]:
        """Return the open questions of the session's turns and children in this process, oldest first."""
        ...

    def find_call(self, call: str) -> Call | None:
        """Return the call with this id from the running turn's last reply, or None."""
        ...

    def describe_work(self) -> list[str]:
        """Return the running turn, background work and queued messages known to this process, for the user."""
        ...

    async def status(self) -> SessionStatus:
        """Return the title, the effective settings and the folder. Loads the session."""
        ...

    async def history(self) -> SessionHistory:
        """Return the transcript with its turns and rewind points."""
        ...

    async def ended_turns(self, after: int) -> list[tuple[str, Outcome]]:
        """Return the turns after turn number `after` that have ended, with their outcomes, oldest first."""
        ...

    async def reply_of(self, turn: str) -> str:
        """Return the full text of the model's replies in a turn."""
        ...
