"""Holds what a chat shows against the journal: each reply whole, once, in order, and ended as its turn did."""

from collections import Counter

from hark.protocol.outcomes import Interrupted
from tests.gateway_kills.audit.chat_case import Case
from tests.gateway_kills.audit.journal import Turn
from tests.gateway_kills.expectations import REPLY, tokens
from tests.gateway_kills.platforms.platform import Shown

AGAIN = "(This may have reached you before.)"
CURSOR = "▌"
STOP = "Stop"
QUESTION = "❓"
NO_MESSAGES = ("answer:", "again:")  # keys of the ledger under which nothing is sent


class ReplyAudit:
    """The replies of one chat."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def run(self) -> None:
        """Look at each turn's reply, then for what stands there twice."""
        last = 0.0
        for turn in sorted(self._case.story.turns.values(), key=lambda turn: turn.number):
            self._count(turn)
            if self._case.is_api:
                self._told(turn)
                continue
            pieces = self._pieces(turn)
            if not pieces:
                self._case.wrong("reply lost", f"{turn.id} has no reply in the chat")
                continue
            if pieces[0].place < last:
                self._case.wrong("reply out of order", f"{turn.id} stands before the turn before it")
            last = pieces[0].place
            self._reply(turn, pieces)
        if not self._case.is_api:
            self._strays()
            self._doubles()

    def _count(self, turn: Turn) -> None:
        self._case.count("turns")
        if turn.ends != 1:
            self._case.wrong("open turn" if not turn.ends else "turn ended twice", turn.id)
        elif isinstance(turn.outcome, Interrupted):
            self._case.count("turns cut by a kill" if turn.outcome.source == "crash" else "turns interrupted")
        else:
            self._case.count("turns completed")

    def _told(self, turn: Turn) -> None:
        """A program that reads along is told of each end once."""
        times = self._case.delivered.get(turn.id, 0)
        self._case.count("replies delivered", times > 0)
        if times != 1:
            self._case.wrong("reply lost" if not times else "doubled silently", f"{turn.id} was told {times} times")

    def _pieces(self, turn: Turn) -> list[Shown]:
        found: list[Shown] = []
        while (piece := self._case.shown_under(f"{turn.id}:{len(found)}")) is not None:
            found.append(piece)
        return found

    def _reply(self, turn: Turn, pieces: list[Shown]) -> None:
        self._case.count("replies delivered")
        self._case.count("replies in several messages", len(pieces) > 1)
        text = _words(" ".join(piece.text.replace(AGAIN, "") for piece in pieces))
        if missing := [said for said in turn.texts if _words(said) not in text]:
            self._case.wrong("reply lost", f"{turn.id} shows {text[-300:]!r} without {missing}")
        if CURSOR in text or any(STOP in button for piece in pieces for button in piece.buttons):
            self._case.wrong("reply not finished", f"{turn.id} shows {text[-80:]!r}")
        if isinstance(turn.outcome, Interrupted) and "⏹" not in text:
            self._case.wrong("reply not finished", f"{turn.id} was stopped, and shows {text[-80:]!r}")

    def _strays(self) -> None:
        """What the ledger does not know was said by a process that died, or its answer was lost: it was said again."""
        known = set(self._case.sent.values())
        strays = [shown for shown in self._case.shown if shown.id not in known]
        again = sum(AGAIN in shown.text for shown in self._case.shown)
        unsure = sum(not message and not key.startswith(NO_MESSAGES) for key, message in self._case.sent.items())
        self._case.count("said again with a word about it", again)
        if len(strays) > again + unsure:
            texts = [stray.text for stray in strays]
            self._case.wrong("doubled silently", f"{texts}, only {again} said again and {unsure} unsure")
        turns = {reply: turn for turn in self._case.story.turns.values() for reply in turn.replies}
        for stray in strays:
            for reply in _replies_in(stray) & turns.keys():
                if not any(AGAIN in piece.text for piece in self._pieces(turns[reply])):
                    self._case.wrong("doubled silently", f"{reply} stands there twice, and nothing says so")

    def _doubles(self) -> None:
        clear = [shown for shown in self._case.shown if AGAIN not in shown.text]
        seen = Counter(reply for shown in clear for reply in _replies_in(shown))
        notes = Counter(shown.text for shown in clear if tokens(shown.text))
        for reply, times in seen.items():
            if times > 1:
                self._case.wrong("doubled silently", f"{reply} stands {times} times in the chat")
        for text, times in notes.items():
            if times > 1:
                self._case.wrong("note doubled", f"{text!r} stands {times} times in the chat")


def _replies_in(shown: Shown) -> set[str]:
    return set() if QUESTION in shown.text else set(REPLY.findall(shown.text))


def _words(text: str) -> str:
    return " ".join(text.split())
