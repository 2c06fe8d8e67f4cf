"""Holds what was written against journals and prompts: each message once, in its last words, and in its order."""

import itertools
import zlib
from collections import Counter

from tests.gateway_kills.audit.chat_case import Case
from tests.gateway_kills.audit.journal import ANSWER, WITHDRAWN, Place
from tests.gateway_kills.audit.journal import QUEUE as WAITING
from tests.gateway_kills.expectations import (
    ASIDE,
    QUEUE,
    RECORDINGS,
    VOICE,
    WORDLESS,
    Deed,
    Written,
    message_of,
    tokens,
)

MICROPHONE = "🎙️"
NOT_HEARD = "that voice message was not transcribed"
CUT_ANSWER = "A restart came just when you answered"
FORGOTTEN = "That button is too old"
TOLD_BY_BUTTON = ":edit:"


class MessageAudit:
    """The messages of one chat."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._places: dict[str, list[Place]] = {}
        self._by_id: dict[str, Place] = {}
        for place in case.story.places:
            for token in tokens(place.text):
                self._places.setdefault(message_of(token), []).append(place)
            if place.id:
                self._by_id[place.id.rpartition(":")[2]] = place
        self._told = {place.id: place for place in case.story.places if TOLD_BY_BUTTON in place.id}

    def run(self) -> None:
        """Look at each message, then at all of them together."""
        found: list[tuple[Written, Place]] = []
        expected: Counter[str] = Counter()
        for one in self._case.written:
            self._case.count("messages")
            place = self._place_of(one)
            if place is not None:
                found.append((one, place))
                expected[one.token] += place.is_prompt or place.where == ANSWER
                self._look(one, place)
        self._buttons(expected)
        self._order([(one, place) for one, place in found if one.delivery == QUEUE and place.is_prompt])
        for token in self._places.keys() - self._case.book.written.keys():
            self._case.wrong("invented", f"{token} was never written")
        self._prompts(expected, {one.token for one, _ in found if one.kind in WORDLESS})

    def _place_of(self, one: Written) -> Place | None:
        """Return the one place of a message; say what is wrong when there is none, and not rightly, or more."""
        places = [place for place in self._places.get(one.token, []) if place.id not in self._told]
        if not places and one.kind in WORDLESS and one.id in self._by_id:
            places = [self._by_id[one.id]]
        if one.kind == ASIDE:
            if places:
                self._case.wrong("overheard", f"{one.token} was said to others, and is in {places[0].where}")
            self._case.count("said to others in a group")
            return None
        if len(places) > 1:
            self._case.wrong("doubled", f"{one.token} ({one.kind}) is in {[place.where for place in places]}")
        elif not places and (reason := self._reason_of_absence(one)):
            self._case.count(reason)
        elif not places:
            self._case.wrong("lost", f"{one.token} ({one.kind}) is nowhere, and nothing was said about it")
        return places[0] if len(places) == 1 else None

    def _reason_of_absence(self, one: Written) -> str:
        """Return why a message may be nowhere: its author deleted it, or was told. An echo tells nothing of that."""
        if one.is_told_stopped:
            return "stopped before it ran, and told"
        if any(CUT_ANSWER in shown.text and one.token in _messages_in(shown.text) for shown in self._case.shown):
            return "an answer that a restart cut, and told"
        echo = self._case.shown_under(f"voice:{one.id}") if one.kind in RECORDINGS else None
        if echo is not None and NOT_HEARD in echo.text:
            return "stopped before it ran, and told"
        is_gone = one.deleted is not None and not self._case.is_api  # there, a deletion has its record
        return "deleted before it was taken" if is_gone else ""

    def _look(self, one: Written, place: Place) -> None:
        if place.where == WAITING and self._case.prompt is not None:  # a last word was said: nothing is held any more
            self._case.wrong("still queued", f"{one.token} ({one.kind}) waits")
        else:
            self._case.count(_kind_of(place))
        if one.author and place.is_prompt and place.author not in (one.author, one.author_id or one.author):
            self._case.wrong("wrong author", f"{one.token} of {one.author} ran as {place.author}'s")
        self._words(one, place)
        self._edits(one, place)
        self._deletion(one, place)
        if one.kind in RECORDINGS and not self._case.is_api:
            self._echo(one)

    def _words(self, one: Written, place: Place) -> None:
        found = place.text.removeprefix(f"/{one.kind} ")
        if not any(text in found for text in one.texts()) and one.kind not in WORDLESS:
            self._case.wrong("another text", f"{one.token} ran as {found!r}")

    def _edits(self, one: Written, place: Place) -> None:
        """The last edit that was taken before the message was consumed is in force, or its person was told otherwise.

        One that was taken just before may have come too late. Over HTTP, an edit that was answered was made.
        """
        in_time = [text for text, deed in one.edits if self._is_in_time(deed, place)]
        if not in_time or place.where == WITHDRAWN:
            return
        text = in_time[-1]
        later = [edit for edit, _ in one.edits[[edit for edit, _ in one.edits].index(text) :]]
        is_offered = any(f"edit:{one.id}:{self._mark(one, edit)}" in self._case.sent for edit in later)
        if not any(edit in place.text for edit in later) and not is_offered:
            self._case.wrong("edit lost", f"{one.token} is in {place.where} as {place.text!r}; {text!r} was before")
        self._case.count("edits that came in time")

    def _is_in_time(self, deed: Deed, place: Place) -> bool:
        if deed.taken is None:
            return False
        return self._case.is_api or place.where == WAITING or place.at > deed.taken + self._case.late_seconds

    def _mark(self, one: Written, text: str) -> str:
        sent = one.as_sent(text, has_commands=not self._case.is_api)
        return f"{zlib.crc32(sent.encode()):x}"

    def _deletion(self, one: Written, place: Place) -> None:
        if one.deleted is not None and place.where != WITHDRAWN and self._is_in_time(one.deleted, place):
            self._case.wrong("deletion ignored", f"{one.token} is in {place.where}; it was deleted before")

    def _echo(self, one: Written) -> None:
        echo = self._case.shown_under(f"voice:{one.id}")
        if echo is None or MICROPHONE not in echo.text or (one.kind == VOICE and one.token not in echo.text):
            self._case.wrong("echo lost", f"{one.token} ({one.kind}) shows {echo.text if echo else 'nothing'!r}")

    def _buttons(self, expected: Counter[str]) -> None:
        """Each button that tells an edited text did so once, and only when it was pressed."""
        mine = [steer for steer in self._case.book.steers if steer.chat == self._case.session]
        pressed = {steer.message for steer in mine}
        taken = {steer.message for steer in mine if steer.deed.taken is not None}
        forgotten = sum(FORGOTTEN in shown.text for shown in self._case.shown)
        told = [place for place in self._case.story.places if place.id in self._told]
        self._case.count("edits told by a button", len(told))
        if len(told) > len(pressed):
            self._case.wrong("doubled", f"{len(pressed)} buttons told {[place.text for place in told]}")
        if len(told) + forgotten < len(taken):
            self._case.wrong("steer lost", f"{len(taken)} buttons were pressed, {len(told)} told their text")
        for place in told:
            for token in tokens(place.text):
                expected[message_of(token)] += place.is_prompt

    def _order(self, found: list[tuple[Written, Place]]) -> None:
        """What is to wait its turn runs in the order in which it was written."""
        for (before, earlier), (after, later) in itertools.pairwise(found):
            if (earlier.number, earlier.text.find(before.token)) > (later.number, later.text.find(after.token)):
                self._case.wrong("out of order", f"{after.token} ran before {before.token}, which was written before")

    def _prompts(self, expected: Counter[str], wordless: set[str]) -> None:
        """The last prompt, as the model got it, has what the journal says is in prompts, each as often."""
        if self._case.prompt is None:
            return
        self._case.count("messages seen by the model", sum(self._case.prompt.values()))
        for token in sorted((expected.keys() | self._case.prompt.keys()) - wordless):
            if expected[token] != self._case.prompt[token]:
                times = f"{self._case.prompt[token]} times, not {expected[token]}"
                self._case.wrong("wrong prompt", f"{token} is in the last prompt {times}")


def _messages_in(text: str) -> set[str]:
    return {message_of(token) for token in tokens(text)}


def _kind_of(place: Place) -> str:
    names = {WAITING: "still queued", WITHDRAWN: "withdrawn", ANSWER: "in an answer"}
    return names.get(place.where, "in a prompt")
