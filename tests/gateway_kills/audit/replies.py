"""Compares a chat's replies with the journal: complete, once, in order, and showing how the turn ended."""

from collections import Counter

from hark.protocol.outcomes import Interrupted
from tests.gateway_kills.audit.chat_case import ChatCase
from tests.gateway_kills.audit.journal import TurnFacts
from tests.gateway_kills.expectations import REPLY, find_tokens
from tests.gateway_kills.platforms.platform import VisibleMessage

AGAIN = "(This may have reached you before.)"
CURSOR = "▌"
STOP = "Stop"
QUESTION = "❓"
NO_MESSAGES = ("answer:", "again:")  # keys of the ledger under which no message is sent


class ReplyAudit:
    """Audits the replies of one chat."""

    def __init__(self, case: ChatCase) -> None:
        self._case = case

    def run(self) -> None:
        """Check each turn's reply, then check for unrecorded and duplicate messages."""
        last = 0.0
        for turn in sorted(self._case.facts.turns.values(), key=lambda turn: turn.number):
            self._check_end(turn)
            if self._case.is_api:
                self._check_delivered_once(turn)
                continue
            pieces = self._visible_pieces(turn)
            if not pieces:
                self._case.add_problem("reply lost", f"{turn.id} has no reply in the chat")
                continue
            if pieces[0].position < last:
                self._case.add_problem("reply out of order", f"{turn.id} appears before the previous turn")
            last = pieces[0].position
            self._check_reply(turn, pieces)
        if not self._case.is_api:
            self._check_unrecorded()
            self._check_duplicates()

    def _check_end(self, turn: TurnFacts) -> None:
        self._case.count("turns")
        if turn.ends != 1:
            self._case.add_problem("open turn" if not turn.ends else "turn ended twice", turn.id)
        elif isinstance(turn.outcome, Interrupted):
            self._case.count("turns cut by a kill" if turn.outcome.source == "crash" else "turns interrupted")
        else:
            self._case.count("turns completed")

    def _check_delivered_once(self, turn: TurnFacts) -> None:
        """Check that a subscribed program received the turn's end exactly once."""
        times = self._case.delivered.get(turn.id, 0)
        self._case.count("replies delivered", times > 0)
        if times != 1:
            self._case.add_problem(
                "reply lost" if not times else "doubled silently", f"{turn.id} was delivered {times} times"
            )

    def _visible_pieces(self, turn: TurnFacts) -> list[VisibleMessage]:
        found: list[VisibleMessage] = []
        while (piece := self._case.visible_message(f"{turn.id}:{len(found)}")) is not None:
            found.append(piece)
        return found

    def _check_reply(self, turn: TurnFacts, pieces: list[VisibleMessage]) -> None:
        self._case.count("replies delivered")
        self._case.count("replies in several messages", len(pieces) > 1)
        text = _normalise(" ".join(piece.text.replace(AGAIN, "") for piece in pieces))
        if missing := [text_part for text_part in turn.texts if _normalise(text_part) not in text]:
            self._case.add_problem("reply lost", f"{turn.id} shows {text[-300:]!r} without {missing}")
        if CURSOR in text or any(STOP in button for piece in pieces for button in piece.buttons):
            self._case.add_problem("reply not finished", f"{turn.id} shows {text[-80:]!r}")
        if isinstance(turn.outcome, Interrupted) and "⏹" not in text:
            self._case.add_problem("reply not finished", f"{turn.id} was stopped, and shows {text[-80:]!r}")

    def _check_unrecorded(self) -> None:
        """Check that each visible message that is missing from the ledger was sent again.

        Such a message was sent by a process that died, or the response to it was lost.
        """
        known = set(self._case.sent.values())
        unrecorded = [shown for shown in self._case.visible_messages if shown.id not in known]
        repeated = sum(AGAIN in shown.text for shown in self._case.visible_messages)
        unsure = sum(not message and not key.startswith(NO_MESSAGES) for key, message in self._case.sent.items())
        self._case.count("sent again with a label", repeated)
        if len(unrecorded) > repeated + unsure:
            texts = [stray.text for stray in unrecorded]
            self._case.add_problem("doubled silently", f"{texts}, only {repeated} sent again and {unsure} unsure")
        turns = {reply: turn for turn in self._case.facts.turns.values() for reply in turn.replies}
        for stray in unrecorded:
            for reply in _replies_in(stray) & turns.keys():
                if not any(AGAIN in piece.text for piece in self._visible_pieces(turns[reply])):
                    self._case.add_problem("doubled silently", f"{reply} appears twice without a label")

    def _check_duplicates(self) -> None:
        unlabelled = [shown for shown in self._case.visible_messages if AGAIN not in shown.text]
        seen = Counter(reply for shown in unlabelled for reply in _replies_in(shown))
        notes = Counter(shown.text for shown in unlabelled if find_tokens(shown.text))
        for reply, times in seen.items():
            if times > 1:
                self._case.add_problem("doubled silently", f"{reply} appears {times} times in the chat")
        for text, times in notes.items():
            if times > 1:
                self._case.add_problem("note doubled", f"{text!r} appears {times} times in the chat")


def _replies_in(shown: VisibleMessage) -> set[str]:
    return set() if QUESTION in shown.text else set(REPLY.findall(shown.text))


def _normalise(text: str) -> str:
    return " ".join(text.split())
