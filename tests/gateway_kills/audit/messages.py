"""Compares the sent messages with journals and prompts: each message once, with its last text, and in order."""

import itertools
import zlib
from collections import Counter

from tests.gateway_kills.audit.chat_case import ChatCase
from tests.gateway_kills.audit.journal import ANSWER, WITHDRAWN, MessageLocation
from tests.gateway_kills.audit.journal import QUEUE as QUEUED
from tests.gateway_kills.expectations import (
    ASIDE,
    QUEUE,
    RECORDINGS,
    VOICE,
    WORDLESS,
    UserAction,
    UserMessageRecord,
    find_tokens,
    message_of,
)

MICROPHONE = "🎙️"
NOT_TRANSCRIBED = "voice message was not transcribed"
INTERRUPTED_ANSWER = "Hark restarted just as you answered"
EXPIRED_BUTTON = "This button has expired"
SENT_BY_BUTTON = ":edit:"


class MessageAudit:
    """Audits the messages of one chat."""

    def __init__(self, case: ChatCase) -> None:
        self._case = case
        self._locations: dict[str, list[MessageLocation]] = {}
        self._by_id: dict[str, MessageLocation] = {}
        for place in case.facts.locations:
            for token in find_tokens(place.text):
                self._locations.setdefault(message_of(token), []).append(place)
            if place.id:
                self._by_id[place.id.rpartition(":")[2]] = place
        self._sent_by_button = {place.id: place for place in case.facts.locations if SENT_BY_BUTTON in place.id}

    def run(self) -> None:
        """Check each message, then the buttons, the order and the last prompt."""
        located: list[tuple[UserMessageRecord, MessageLocation]] = []
        expected: Counter[str] = Counter()
        for one in self._case.written:
            self._case.count("messages")
            location = self._find_location(one)
            if location is not None:
                located.append((one, location))
                expected[one.token] += location.is_prompt or location.location == ANSWER
                self._check_message(one, location)
        self._check_buttons(expected)
        self._check_order([(one, place) for one, place in located if one.delivery == QUEUE and place.is_prompt])
        for token in self._locations.keys() - self._case.book.messages.keys():
            self._case.add_problem("invented", f"{token} was never written")
        self._check_prompts(expected, {one.token for one, _ in located if one.kind in WORDLESS})

    def _find_location(self, one: UserMessageRecord) -> MessageLocation | None:
        """Return a message's location. Report several locations, or an unexplained absence, as a problem."""
        places = [place for place in self._locations.get(one.token, []) if place.id not in self._sent_by_button]
        if not places and one.kind in WORDLESS and one.id in self._by_id:
            places = [self._by_id[one.id]]
        if one.kind == ASIDE:
            if places:
                self._case.add_problem(
                    "overheard", f"{one.token} was not addressed to the bot and is in {places[0].location}"
                )
            self._case.count("not addressed to the bot in a group")
            return None
        if len(places) > 1:
            self._case.add_problem("doubled", f"{one.token} ({one.kind}) is in {[place.location for place in places]}")
        elif not places and (reason := self._reason_of_absence(one)):
            self._case.count(reason)
        elif not places:
            self._case.add_problem("lost", f"{one.token} ({one.kind}) is lost without a notice")
        return places[0] if len(places) == 1 else None

    def _reason_of_absence(self, one: UserMessageRecord) -> str:
        """Return why a message may be missing, or "". A notice to the user is a valid reason; an echo is not."""
        if one.is_reported_stopped:
            return "stopped before it ran, with a notice"
        if any(
            INTERRUPTED_ANSWER in shown.text and one.token in _messages_in(shown.text)
            for shown in self._case.visible_messages
        ):
            return "an answer interrupted by a restart, with a notice"
        echo = self._case.visible_message(f"voice:{one.id}") if one.kind in RECORDINGS else None
        if echo is not None and NOT_TRANSCRIBED in echo.text:
            return "stopped before it ran, with a notice"
        is_gone = one.deleted is not None and not self._case.is_api  # the API records a deletion
        return "deleted before it was accepted" if is_gone else ""

    def _check_message(self, one: UserMessageRecord, location: MessageLocation) -> None:
        # the final message was sent, so nothing is held any more
        if location.location == QUEUED and self._case.prompt is not None:
            self._case.add_problem("still queued", f"{one.token} ({one.kind}) is still queued")
        else:
            self._case.count(_location_name(location))
        if one.author and location.is_prompt and location.author not in (one.author, one.author_id or one.author):
            self._case.add_problem("wrong author", f"{one.token} of {one.author} ran as {location.author}'s")
        self._check_text(one, location)
        self._check_edits(one, location)
        self._check_deletion(one, location)
        if one.kind in RECORDINGS and not self._case.is_api:
            self._check_echo(one)

    def _check_text(self, one: UserMessageRecord, location: MessageLocation) -> None:
        found = location.text.removeprefix(f"/{one.kind} ")
        if not any(text in found for text in one.texts()) and one.kind not in WORDLESS:
            self._case.add_problem("another text", f"{one.token} ran as {found!r}")

    def _check_edits(self, one: UserMessageRecord, location: MessageLocation) -> None:
        """Check that the last edit accepted in time was applied, or that its author was notified.

        An edit accepted shortly before its message ran may be too late. Over HTTP, an acknowledged edit must be
        applied.
        """
        in_time = [text for text, deed in one.edits if self._is_in_time(deed, location)]
        if not in_time or location.location == WITHDRAWN:
            return
        text = in_time[-1]
        later = [edit for edit, _ in one.edits[[edit for edit, _ in one.edits].index(text) :]]
        is_offered = any(f"edit:{one.id}:{self._edit_checksum(one, edit)}" in self._case.sent for edit in later)
        if not any(edit in location.text for edit in later) and not is_offered:
            self._case.add_problem(
                "edit lost", f"{one.token} is in {location.location} as {location.text!r}; {text!r} was before"
            )
        self._case.count("edits that came in time")

    def _is_in_time(self, action: UserAction, location: MessageLocation) -> bool:
        if action.accepted_at is None:
            return False
        return (
            self._case.is_api
            or location.location == QUEUED
            or location.at > action.accepted_at + self._case.late_seconds
        )

    def _edit_checksum(self, one: UserMessageRecord, text: str) -> str:
        sent = one.as_sent(text, has_commands=not self._case.is_api)
        return f"{zlib.crc32(sent.encode()):x}"

    def _check_deletion(self, one: UserMessageRecord, location: MessageLocation) -> None:
        if one.deleted is not None and location.location != WITHDRAWN and self._is_in_time(one.deleted, location):
            self._case.add_problem("deletion ignored", f"{one.token} is in {location.location}; it had been deleted")

    def _check_echo(self, one: UserMessageRecord) -> None:
        echo = self._case.visible_message(f"voice:{one.id}")
        if echo is None or MICROPHONE not in echo.text or (one.kind == VOICE and one.token not in echo.text):
            self._case.add_problem("echo lost", f"{one.token} ({one.kind}) shows {echo.text if echo else 'nothing'!r}")

    def _check_buttons(self, expected: Counter[str]) -> None:
        """Check that each pressed edit button sent its text once, and that no other button sent its text."""
        steers = [steer for steer in self._case.book.steers if steer.chat == self._case.session]
        pressed = {steer.message for steer in steers}
        accepted = {steer.message for steer in steers if steer.action.accepted_at is not None}
        expired = sum(EXPIRED_BUTTON in shown.text for shown in self._case.visible_messages)
        sent = [place for place in self._case.facts.locations if place.id in self._sent_by_button]
        self._case.count("edits sent by a button", len(sent))
        if len(sent) > len(pressed):
            self._case.add_problem("doubled", f"{len(pressed)} buttons sent {[place.text for place in sent]}")
        if len(sent) + expired < len(accepted):
            self._case.add_problem("steer lost", f"{len(accepted)} buttons were pressed, {len(sent)} sent their text")
        for place in sent:
            for token in find_tokens(place.text):
                expected[message_of(token)] += place.is_prompt

    def _check_order(self, found: list[tuple[UserMessageRecord, MessageLocation]]) -> None:
        """Check that queued messages ran in the order in which they were sent."""
        for (before, earlier), (after, later) in itertools.pairwise(found):
            if (earlier.number, earlier.text.find(before.token)) > (later.number, later.text.find(after.token)):
                self._case.add_problem(
                    "out of order", f"{after.token} ran before {before.token}, which was sent before"
                )

    def _check_prompts(self, expected: Counter[str], wordless: set[str]) -> None:
        """Check that the last prompt contains exactly the messages that the journal records as prompts."""
        if self._case.prompt is None:
            return
        self._case.count("messages seen by the model", sum(self._case.prompt.values()))
        for token in sorted((expected.keys() | self._case.prompt.keys()) - wordless):
            if expected[token] != self._case.prompt[token]:
                times = f"{self._case.prompt[token]} times, not {expected[token]}"
                self._case.add_problem("wrong prompt", f"{token} is in the last prompt {times}")


def _messages_in(text: str) -> set[str]:
    return {message_of(token) for token in find_tokens(text)}


def _location_name(location: MessageLocation) -> str:
    names = {QUEUED: "still queued", WITHDRAWN: "withdrawn", ANSWER: "in an answer"}
    return names.get(location.location, "in a prompt")
