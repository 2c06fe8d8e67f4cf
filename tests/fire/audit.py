"""Holds journals, prompts and chats against the book: nothing lost, nothing doubled, and every word about it true."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Interrupted, Outcome
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    Edited,
    Queued,
    Replied,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from tests.crash.audit import Findings
from tests.fire.book import REPLY, Book, Written, message_of, tokens
from tests.fire.model import Asked
from tests.fire.seat import Shown

AGAIN = "(This may have reached you before.)"
CURSOR = "▌"
TAKEN_ALREADY = "I have that message already"
WITHDRAWN = "that voice message was not transcribed"
STOP = "Stop"
NO_MESSAGES = ("answer:", "again:")  # keys of the ledger under which nothing is sent
TOLD_BY_BUTTON = ":edit:"
STOP_SECONDS = 2.0
EDIT_SECONDS = 2.0


@dataclass(slots=True)
class Turn:
    """One turn, as the journal has it."""

    id: str
    replies: list[str] = field(default_factory=list[str])
    text: str = ""
    outcome: Outcome | None = None
    ends: int = 0

    @property
    def number(self) -> int:
        return int(self.id.rpartition(".t")[2])


@dataclass(slots=True)
class Place:
    """Where a message came to stand: its words there, and when."""

    where: str
    text: str
    at: float
    id: str = ""


class Story:
    """What a session's journal says of messages and turns."""

    def __init__(self, records: Sequence[AnyRecord]) -> None:
        self.turns: dict[str, Turn] = {}
        self.places: list[Place] = []
        self.answers: list[Place] = []
        self._queue: dict[str, Place] = {}
        for record in records:
            self._note(record)
        self.places += self._queue.values()

    def _note(self, record: AnyRecord) -> None:
        match record:
            case TurnStarted() | Steered():
                self.turns.setdefault(record.turn, Turn(record.turn))
                for message in record.messages:
                    self._place(message, record.turn, record.at)
            case Queued():
                self._queue[record.message.id] = Place("queue", record.message.text, record.at, record.message.id)
            case Edited() if record.message in self._queue:
                self._queue[record.message].text = record.text
            case Withdrawn():
                self._queue.pop(record.message, None)
                self.places.append(Place("withdrawn", record.text, record.at, record.message))
            case Replied():
                turn = self.turns[record.turn]
                turn.replies += REPLY.findall(record.message.text)
                turn.text += record.message.text
            case CallEnded():
                self.answers.append(Place("answer", record.result.text, record.at))
            case TurnEnded():
                self.turns[record.turn].outcome = record.outcome
                self.turns[record.turn].ends += 1
            case _:
                pass

    def _place(self, message: UserMessage, where: str, at: float) -> None:
        self._queue.pop(message.id, None)
        self.places.append(Place(where, message.text, at, message.id))


class ChatAudit:
    """The audit of one chat and its session."""

    def __init__(self, findings: Findings, session: str, story: Story, shown: Sequence[Shown]) -> None:
        self._findings = findings
        self._session = session
        self._story = story
        self._shown = shown
        self._places: dict[str, list[Place]] = {}
        self._by_id: dict[str, Place] = {}
        for place in (*story.places, *story.answers):
            for token in tokens(place.text):
                self._places.setdefault(message_of(token), []).append(place)
            if place.id:
                self._by_id[place.id.rpartition(":")[2]] = place

    # What was written.

    def messages(self, book: Book) -> None:
        """Each message is in one place, or its person was told why not."""
        presses = sum(steer.chat == self._session for steer in book.steers)
        recordings = 0
        for one in book.in_chat(self._session):
            self._findings.counts["messages"] += 1
            places = self._places.get(one.token, [])
            if not places and one.kind in ("noise", "silence") and one.id in self._by_id:
                places = [self._by_id[one.id]]
            told = [place for place in places if TOLD_BY_BUTTON in place.id]
            if told and len(told) <= presses:  # the person had an edit told again; the button is pressed as often
                presses -= len(told)
                places = [place for place in places if place not in told]
            if len(places) > 1:
                self._wrong("doubled", f"{one.token} ({one.kind}) is in {[place.where for place in places]}")
            elif places:
                self._findings.counts[_kind_of_place(places[0])] += 1
                self._edits(one, places[0])
            elif self._is_told(one):
                self._findings.counts["stopped before it ran, and told"] += 1
            elif one.deleted is not None:
                self._findings.counts["deleted before it was taken"] += 1
            elif one.kind in ("voice", "noise", "silence"):
                recordings += 1
            else:
                self._wrong("lost", f"{one.token} ({one.kind}) is nowhere, and nothing was said about it")
        self._recordings(recordings)
        for token in self._places.keys() - book.written.keys():
            self._wrong("invented", f"{token} was never written")

    def _is_told(self, one: Written) -> bool:
        return one.is_told_stopped or any(one.token in map(message_of, tokens(shown.text)) for shown in self._shown)

    def _recordings(self, missing: int) -> None:
        """Recordings that were stopped before they became words have no name in what was said about them."""
        told = sum(WITHDRAWN in shown.text for shown in self._shown)
        self._findings.counts["stopped before it ran, and told"] += min(missing, told)
        if missing > told:
            self._wrong("lost", f"{missing} recordings are nowhere, and only of {told} something was said")

    def _edits(self, one: Written, place: Place) -> None:
        """An edit that was taken before the message was consumed is in force, or its person was told otherwise."""
        found = place.text.removeprefix(f"/{one.kind} ")
        if not any(text in found for text in one.texts()) and one.kind not in ("noise", "silence"):
            self._wrong("another text", f"{one.token} ran as {found!r}")
        taken = [(text, deed.taken) for text, deed in one.edits if deed.taken is not None]
        if not taken or place.where == "withdrawn":
            return
        text, at = taken[-1]
        is_later = place.where == "queue" or place.at > at + EDIT_SECONDS
        if is_later and text not in place.text and not any(TAKEN_ALREADY in shown.text for shown in self._shown):
            self._wrong("edit lost", f"{one.token} is in {place.where} as {place.text!r}; {text!r} was taken before")

    # What was replied.

    def turns(self) -> None:
        for turn in self._story.turns.values():
            self._findings.counts["turns"] += 1
            if turn.ends != 1:
                self._wrong("open turn" if not turn.ends else "turn ended twice", turn.id)
            elif isinstance(turn.outcome, Interrupted):
                kind = "turns cut by a kill" if turn.outcome.source == "crash" else "turns interrupted"
                self._findings.counts[kind] += 1
            else:
                self._findings.counts["turns completed"] += 1

    def replies(self, sent: Mapping[str, str]) -> None:
        """Each ended turn's reply stands in the chat as the journal has it, once, in order."""
        shown = {one.id: one for one in self._shown}
        last = -1.0
        for turn in sorted(self._story.turns.values(), key=lambda turn: turn.number):
            message = shown.get(sent.get(f"{turn.id}:0", ""))
            if message is None:
                self._wrong("reply lost", f"{turn.id} has no reply in the chat")
                continue
            if float(message.id) < last:
                self._wrong("reply out of order", f"{turn.id} stands before the turn before it")
            last = float(message.id)
            self._reply(turn, message)
        self._doubles(sent)

    def _reply(self, turn: Turn, message: Shown) -> None:
        self._findings.counts["replies delivered"] += 1
        if missing := [reply for reply in turn.replies if reply not in REPLY.findall(message.text)]:
            self._wrong("reply lost", f"{turn.id} shows {message.text!r} without {missing}")
        if CURSOR in message.text or any(STOP in button for button in message.buttons):
            self._wrong("reply not finished", f"{turn.id} shows {message.text[-80:]!r}")
        if isinstance(turn.outcome, Interrupted) and "⏹" not in message.text:
            self._wrong("reply not finished", f"{turn.id} was stopped, and shows {message.text[-80:]!r}")

    def _doubles(self, sent: Mapping[str, str]) -> None:
        """What the ledger does not know of was said once, its answer never heard; or again, with a word about it."""
        known = set(sent.values())
        strays = [shown.text for shown in self._shown if shown.id not in known]
        again = sum(AGAIN in shown.text for shown in self._shown)
        unsure = sum(not message and not key.startswith(NO_MESSAGES) for key, message in sent.items())
        self._findings.counts["said again with a word about it"] += again
        if len(strays) > again + unsure:
            self._wrong("doubled silently", f"{strays}, only {again} said again and {unsure} unsure")
        seen = Counter(reply for shown in self._shown if AGAIN not in shown.text for reply in _names(shown.text))
        for reply, times in seen.items():
            if times > 1:
                self._wrong("doubled silently", f"{reply} stands {times} times in the chat")
        notes = Counter(shown.text for shown in self._shown if tokens(shown.text) and AGAIN not in shown.text)
        for text, times in notes.items():
            if times > 1:
                self._wrong("note doubled", f"{text!r} stands {times} times in the chat")

    # What was stopped.

    def stops(self, book: Book, asked: Sequence[Asked]) -> list[float]:
        """Return how long after a stop was taken the replies that it met went on."""
        seconds: list[float] = []
        outcomes = {reply: turn.outcome for turn in self._story.turns.values() for reply in turn.replies}
        mine = [one for one in asked if one.chat == self._session]
        for stop in book.stops:
            taken = stop.deed.taken
            if stop.chat != self._session or taken is None or stop.kind == "voice":
                continue
            self._findings.counts["stops"] += 1
            for one in mine:
                is_met = one.began < stop.deed.at and (one.ended is None or one.ended > taken)
                if not is_met or (stop.kind == "button" and stop.reply != one.reply):
                    continue
                late = (one.ended or float("inf")) - taken
                seconds.append(late)
                is_cut = isinstance(outcomes.get(one.reply), Interrupted)
                if late > STOP_SECONDS and not (is_cut and not one.is_whole):
                    self._wrong("stop lost", f"{one.reply} went on for {late:.1f} s after a stop by {stop.kind}")
        return seconds

    def _wrong(self, kind: str, what: str) -> None:
        self._findings.wrong(kind, f"{self._session}: {what}")


def _names(text: str) -> set[str]:
    return set() if "❓" in text else set(REPLY.findall(text))


def _kind_of_place(place: Place) -> str:
    match place.where:
        case "queue":
            return "still queued"
        case "withdrawn":
            return "withdrawn"
        case "answer":
            return "in an answer"
        case _:
            return "in a prompt"


def sent_of(connection: sqlite3.Connection) -> dict[str, dict[str, str]]:
    """Return what the ledger says was sent, by session: key to the platform's id."""
    sessions = dict(connection.execute("SELECT address, session FROM lines"))
    found: dict[str, dict[str, str]] = {session: {} for session in sessions.values()}
    for address, key, message in connection.execute("SELECT address, key, message FROM sent"):
        found.setdefault(sessions.get(address, ""), {})[key] = message
    return found
