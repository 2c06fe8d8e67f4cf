"""A session in a program's hand: the Python API of one conversation, and what every surface uses of it."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import Unpack

from anyio import to_thread

from hark.app.services import Services
from hark.app.sessions.attachments import kept
from hark.app.sessions.rewind import rewind_points, rewind_with_files
from hark.app.sessions.unheard_reply import note_heard
from hark.app.slash.meaning import meaning_of
from hark.app.slash.table import COMMANDS, told
from hark.engine.services import EngineServices
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.router import Router
from hark.protocol.commands import (
    Answer,
    ChooseMode,
    ChooseRoute,
    Delivery,
    Edit,
    Interrupt,
    Move,
    QueueCommand,
    Rewind,
    Say,
    Withdraw,
)
from hark.protocol.meaning import AnswerRule, CommandMeaning, Meaning, MessageMeaning, StopMeaning, no_answer
from hark.protocol.messages import AssistantMessage, Attachment, Call, Message
from hark.protocol.names import check_name, is_child_of, number_of
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.records import Replied, TurnEnded
from hark.protocol.rules import ApprovalMode
from hark.protocol.session import Details, EventReader, RunningTurn, SessionHistory, SessionStatus
from hark.text.clean import clean

_NOT_WAITING = Refusal("not_waiting", "That message does not wait any more, or never did.")
_NOT_ASKED = Refusal("not_asked", "That question is not open any more.")
API = "api"
HTTP_SURFACES = (API, "page", "v1")  # for deliveries all of them are the API
_BUSY = "A turn runs. Stop it, or wait for its end, and go back then."


class SessionHandle:
    """One session. Every method may be called from any task of the loop; `interrupt_soon` from any thread."""

    def __init__(self, session: str, router: Router, bench: EngineServices, parts: Services, surface: str) -> None:
        self._id = check_name(session)
        self._router = router
        self.bench = bench
        self.parts = parts
        self._surface = surface
        self._loop = asyncio.get_running_loop()

    @property
    def id(self) -> str:
        """The session's name."""
        return self._id

    @property
    def door(self) -> SessionProxy:
        """Where its commands go in. Asking for it opens the session."""
        return self._router.door(self._id)

    @property
    def delivery(self) -> Delivery:
        """What a message does to a running turn, if it does not say so itself."""
        usual = self.parts.settings.delivery
        surface = API if self._surface in HTTP_SURFACES else self._surface
        return self.parts.deliveries.get(self._id) or usual.surfaces.get(surface, usual.default)

    def choose_delivery(self, delivery: Delivery) -> None:
        """Have messages do this to a running turn, on every surface, as long as the program runs."""
        self.parts.deliveries[self._id] = delivery

    def children(self) -> "list[SessionHandle]":
        """Return the sessions that calls of this one started, as far as they are open here."""
        return [self.beside(door.id) for door in self._router.doors if is_child_of(door.id, self._id)]

    def beside(self, name: str) -> "SessionHandle":
        """Return another session of the same agent.

        Raises:
            ValueError: A session can't have that name.
        """
        return SessionHandle(name, self._router, self.bench, self.parts, "")

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        return self.bench.clock.new_id()

    async def opened(self) -> None:
        """Return when the session is loaded, here or in the process that owns it: from then on no event is missed."""
        await self.door.known()

    @property
    def is_busy_here(self) -> bool:
        """True when this very process has work to do in the session."""
        return self.door.is_busy

    def events(self) -> EventReader:
        """Return the events from this call on, until the session closes."""
        return self.door.subscribe()

    # In.

    async def say(self, text: str, delivery: Delivery | str | None = None, **details: Unpack[Details]) -> Receipt:
        """Accept a message, durably; return what became of it. `Details` tells what may be said about it.

        A message that is a slash command is that command; what comes of it is a notice.

        Raises:
            ValueError: There is no such delivery.
            StoreError: It was not accepted.
        """
        way = self.delivery if delivery is None else Delivery(delivery)
        name, shown = details.get("id") or self.new_id(), details.get("shown")
        attachments = details.get("attachments", ())
        meaning = meaning_of(text) if attachments else self.meaning(text)  # a stop word comes alone
        if isinstance(meaning, CommandMeaning | StopMeaning):
            return await self._command(meaning, name)
        if shown is not None:
            await note_heard(self.door, shown, self.new_id())
        files = await self._kept(name, attachments)
        prefix = meaning.delivery if isinstance(meaning, MessageMeaning) else None
        said = Say(name, meaning.text, prefix or way, details.get("author", ""), files, shown)
        is_stopped = details.get("is_stopped") or self.parts.stopped.forget(self._id, name)
        receipt = await self.door.say(said, Interrupt(self.new_id(), "user") if is_stopped else None)
        if prefix and receipt.state is not ReceiptState.DUPLICATE:
            self.notice(prefix, told(receipt))
        return receipt

    def meaning(self, text: str, answer: AnswerRule = no_answer) -> Meaning:
        """Return what a text means when it is said on this surface; `answer` is its rule for open questions."""
        return meaning_of(text, partial(self.parts.is_stop_word, surface=self._surface), answer)

    async def run_command(self, command: CommandMeaning | StopMeaning) -> str:
        """Run a slash command; return what it says."""
        name, words = (command.name, command.words) if isinstance(command, CommandMeaning) else ("stop", "")
        return await COMMANDS[name].run(self, words)

    async def interrupt(
        self, source: str = "user", turn: str = "", shown: int | None = None, messages: Collection[str] = ()
    ) -> Settled | None:
        """End everything that runs; return when it has settled, or None when nothing ran.

        With `turn` or `messages`, end only that turn and the turns of these messages. A message may still be on its
        way: it is accepted when it comes, and sets nothing off. `shown` is how many characters of the running reply
        the person had seen; the rest is not kept.
        """
        for message in messages:
            self.parts.stopped.note(self._id, message)
        door = await self._router.owned(self._id)
        return await door.interrupt(Interrupt(self.new_id(), source, turn, shown), messages) if door else None

    def interrupt_soon(self, source: str = "user") -> None:
        """Interrupt from any thread, without waiting."""
        asyncio.run_coroutine_threadsafe(self.interrupt(source), self._loop)

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question of the running turn; return why not."""
        door = await self._router.owned(self._id)
        return await door.answer(Answer(self.new_id(), question, text)) if door else _NOT_ASKED

    async def edit(self, message: str, text: str) -> Refusal | None:
        """Change the text of a message that waits; return why not. `/queue TEXT` is this text here, too."""
        meaning = meaning_of(text)
        words = meaning.text if isinstance(meaning, MessageMeaning) else text
        return await self._change(Edit(self.new_id(), message, clean(words)))

    async def move(self, message: str, position: int) -> Refusal | None:
        """Put a message that waits at another position, from 1; return why not."""
        return await self._change(Move(self.new_id(), message, position))

    async def withdraw(self, message: str) -> Refusal | None:
        """Take a message that waits out of the queue; return why not."""
        return await self._change(Withdraw(self.new_id(), message))

    async def choose_mode(self, mode: ApprovalMode) -> Refusal | None:
        """Ask more or less often from now on; return why not."""
        return await self.door.change(ChooseMode(self.new_id(), mode))

    async def choose_route(self, route: str) -> Refusal | None:
        """Have a route serve first, from the next turn on; "" for the usual order. Return why not."""
        return await self.door.change(ChooseRoute(self.new_id(), route))

    async def rewind(self, turn: str, *, with_files: bool) -> str:
        """Go back to before a turn, with its file changes or without; return what was done, or why not."""
        if self.running():
            return _BUSY
        if with_files:
            return await rewind_with_files(self.door, turn, self.bench.snapshots, self.bench.clock)
        refusal = await self.door.change(Rewind(self.new_id(), turn))
        return refusal.message if refusal else f"Back to before {turn}."

    def notice(self, code: str, text: str) -> None:
        """Publish a notice to the session's readers."""
        self.door.notice(code, text)

    def let_go(self) -> None:
        """Close it in this process as soon as nothing runs."""
        if door := self._router.opened(self._id):
            door.drain()

    # Out.

    async def idle(self) -> Outcome | None:
        """Return the last turn's outcome when nothing runs and nothing may run."""
        return await self.door.idle()

    async def queue(self) -> list[QueueItem]:
        """Return what waits, in running order."""
        return await self._router.queue(self._id)

    async def has_known(self, message: str) -> bool:
        """Return whether a message of that id was ever accepted here."""
        entries = await self.bench.store.inbox.after(self._id, 0)
        return any(isinstance(entry.command, Say) and entry.command.id == message for entry in entries)

    def running(self) -> RunningTurn | None:
        """Return the turn that runs, as far as this process knows it; None when the session is not loaded yet."""
        door = self._router.opened(self._id)
        turn = door.state.turn if door else None
        return RunningTurn(turn.id, turn.progress, tuple(door.asked)) if door and turn else None

    def call(self, name: str) -> Call | None:
        """Return a call of the running turn's last reply."""
        turn = self.door.state.turn
        return turn.calls.get(name) if turn else None

    async def status(self) -> SessionStatus:
        """Return the title, the settings in force and the folder; loads the session."""
        await self.opened()
        state, bench = self.door.state, self.bench
        names = tuple(bench.routes.names)
        route = state.chosen_route if state.chosen_route in names else names[0]
        mode = state.mode or bench.rules.approvals.mode
        return SessionStatus(state.title, mode, route, names, str(bench.workspace))

    async def transcript(self) -> list[Message]:
        """Return what the model would see."""
        door = self.door
        await door.known()
        return list(door.state.transcript.messages)

    async def history(self) -> SessionHistory:
        """Return what was said so far."""
        state = await self._router.state(self._id)
        transcript = state.transcript
        cut = (turn for turn in state.cut if transcript.knows(turn))
        points = tuple(rewind_points(state))
        return SessionHistory(tuple(transcript.messages), tuple(transcript.turns), points, tuple(cut))

    async def ended_turns(self, after: int) -> list[tuple[str, Outcome]]:
        """Return the turns that ended, from behind this number on, the oldest first."""
        if self.door.state.turns <= after:
            return []
        records = await self.bench.store.journal.read(self.id)
        ends = [record for record in records if isinstance(record, TurnEnded)]
        return [(end.turn, end.outcome) for end in ends if number_of(end.turn) > after]

    async def reply_of(self, turn: str) -> str:
        """Return all that the model said in a turn. The journal is asked only when it is not known any more."""
        messages = self.door.state.transcript.of(turn)
        if messages is None:
            records = await self.bench.store.journal.read(self.id)
            messages = [record.message for record in records if isinstance(record, Replied) and record.turn == turn]
        texts = [message.text for message in messages if isinstance(message, AssistantMessage)]
        return "\n\n".join(text.strip() for text in texts if text.strip())

    async def _command(self, command: CommandMeaning | StopMeaning, name: str) -> Receipt:
        if not self.parts.taken.note(self._id, name):
            return Receipt(name, self._id, ReceiptState.DUPLICATE)
        code = "stop"
        if isinstance(command, CommandMeaning):
            code = command.name
            await self.opened()  # so that its notice comes behind all that was told before; a stop waits for nothing
        self.notice(code, await self.run_command(command))
        return Receipt(name, self._id, ReceiptState.STARTED)

    async def _change(self, command: QueueCommand) -> Refusal | None:
        """Change the queue. A session that nobody has open is loaded only if the message waits there."""
        is_open = self._router.opened(self._id) is not None
        if not is_open and all(item.id != command.message for item in await self.queue()):
            return _NOT_WAITING
        return await self.door.change(command)

    async def _kept(self, message: str, attachments: Sequence[Attachment]) -> tuple[Attachment, ...]:
        """Return a message's attachments; files that came over HTTP are stored first."""
        if not attachments or self._surface not in HTTP_SURFACES:
            return tuple(attachments)
        home = self.parts.places.home

        def store() -> tuple[Attachment, ...]:
            return tuple(kept(home, self._id, message, attachment) for attachment in attachments)

        return await to_thread.run_sync(store)
