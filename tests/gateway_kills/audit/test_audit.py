"""The audit finds each kind of defect, shown on one chat with one message that was answered."""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import AnyRecord, CallEnded, Queued, Replied, Steered, TurnEnded, TurnStarted, Withdrawn
from tests.crash.audit import Findings
from tests.gateway_kills.audit.chat_case import Case, sent_of
from tests.gateway_kills.audit.journal import Story
from tests.gateway_kills.audit.messages import MessageAudit
from tests.gateway_kills.audit.replies import ReplyAudit
from tests.gateway_kills.audit.stops import StopAudit
from tests.gateway_kills.expectations import Book, Deed, Steer, Stop, Written
from tests.gateway_kills.model import Asked
from tests.gateway_kills.platforms.platform import Shown

CHAT = "telegram:7"
API = "api-7"
FIRST, SECOND = "telegram:7.t1", "telegram:7.t2"
MESSAGE = UserMessage("telegram:7::100", "talk m0")
WITHDRAWN = Withdrawn(message=MESSAGE.id, text="talk m0", reason="x")
QUEUED = Queued(message=MESSAGE, delivery=Delivery.QUEUE)


def started(message: UserMessage = MESSAGE, turn: str = FIRST, at: float = 10.0) -> TurnStarted:
    return TurnStarted(turn=turn, messages=(message,), at=at)


def replied(turn: str = FIRST, text: str = "This is r0.") -> Replied:
    return Replied(turn=turn, step=1, message=AssistantMessage(text))


def ended(turn: str = FIRST, at: float = 0.0) -> TurnEnded:
    return TurnEnded(turn=turn, outcome=Completed("This is r0."), at=at)


ANSWERED: tuple[AnyRecord, ...] = (started(), replied(), ended())
SENT = {f"{FIRST}:0": "101"}
SHOWN = (Shown("101", "This is r0."),)
NOTHING: tuple[AnyRecord, ...] = ()


def book(*, kind: str = "text", chat: str = CHAT) -> Book:
    found = Book()
    found.write(chat, kind, "talk").id = "100"
    return found


def edited(at: float, taken: float | None = None, *, chat: str = CHAT) -> Book:
    found = book(chat=chat)
    found.written["m0"].edits.append(("talk m0e1", Deed(at, at if taken is None else taken)))
    return found


def deleted(at: float, *, kind: str = "text", chat: str = CHAT) -> Book:
    found = book(kind=kind, chat=chat)
    found.written["m0"].deleted = Deed(at, at)
    return found


def two(**fields: str) -> Book:
    """Two messages with the same fields."""
    found = Book()
    for number in ("100", "110"):
        one = found.write(CHAT, "text", "talk")
        one.id = number
        for name, value in fields.items():
            setattr(one, name, value)
    return found


def audited(
    records: Sequence[AnyRecord] = ANSWERED,
    shown: Sequence[Shown] = SHOWN,
    sent: Mapping[str, str] | None = None,
    of: Book | None = None,
    prompt: Counter[str] | None = None,
    chat: str = CHAT,
    told: Mapping[str, int] | None = None,
) -> Findings:
    findings = Findings()
    sent = SENT if sent is None else sent
    case = Case(findings, chat, of or book(), Story(records), shown, sent, prompt, told or {FIRST: 1})
    MessageAudit(case).run()
    ReplyAudit(case).run()
    return findings


# What is right.


def test_the_audit_is_content_with_a_message_that_was_answered() -> None:
    findings = audited(prompt=Counter({"m0": 1}))
    assert findings.problems == []
    assert (findings.counts["in a prompt"], findings.counts["replies delivered"]) == (1, 1)


def test_the_audit_is_content_with_what_waits_was_withdrawn_or_was_told_to_be_stopped() -> None:
    assert audited([QUEUED], (), {}).problems == []
    assert audited([QUEUED, WITHDRAWN], (), {}, prompt=Counter()).problems == []
    told = Shown("9", "A restart came just when you answered “talk m0”")
    assert audited(NOTHING, [told], {"x": "9"}).problems == []
    stopped = Shown("9", "🎙️ Stopped: that voice message was not transcribed, and goes nowhere.")
    assert audited(NOTHING, [stopped], {"voice:100": "9"}, book(kind="voice")).problems == []


def test_the_audit_is_content_with_a_reply_that_was_said_again_with_a_word_about_it() -> None:
    again = "(This may have reached you before.)\nThis is r0."
    shown = [Shown("99", "This is r0. ▌", ("⏹ Stop",)), Shown("101", again)]
    assert audited(shown=shown).problems == []


def test_the_audit_is_content_with_a_reply_in_several_messages() -> None:
    records = (started(), replied(text="This is r0. one two three"), ended())
    shown = [Shown("101", "This is r0. one"), Shown("102", "two three")]
    assert audited(records, shown, {**SENT, f"{FIRST}:1": "102"}).problems == []


def test_the_audit_is_content_with_a_recording_that_its_author_deleted_before_it_was_said() -> None:
    assert audited(NOTHING, (), {}, deleted(1.0, kind="voice")).problems == []


def test_the_audit_is_content_with_a_recording_that_was_echoed_and_said() -> None:
    shown = (*SHOWN, Shown("90", '🎙️ "talk m0"'))
    assert audited(ANSWERED, shown, {**SENT, "voice:100": "90"}, book(kind="voice")).problems == []


# What is wrong in the journal or in the chat.


@pytest.mark.parametrize(
    ("kind", "records", "shown", "sent"),
    [
        ("lost", NOTHING, (), {}),
        ("doubled", (*ANSWERED, started(turn=SECOND), ended(SECOND)), SHOWN, SENT),
        ("doubled", (*ANSWERED, Steered(turn=FIRST, step=2, messages=(MESSAGE,))), SHOWN, SENT),
        ("doubled", (*ANSWERED, QUEUED), SHOWN, SENT),
        (
            "doubled",
            (*ANSWERED, CallEnded(turn=FIRST, result=CallResult("c", "ask", "talk m0", Effect.COMPLETED))),
            SHOWN,
            SENT,
        ),
        ("invented", (started(UserMessage("x", "talk m0 m9")), replied(), ended()), SHOWN, SENT),
        ("another text", (started(UserMessage("x", "shout m0")), replied(), ended()), SHOWN, SENT),
        ("open turn", (started(), replied()), SHOWN, SENT),
        ("turn ended twice", (*ANSWERED, ended()), SHOWN, SENT),
        ("reply lost", ANSWERED, (), {}),
        ("reply lost", ANSWERED, (), SENT),
        ("reply lost", ANSWERED, (Shown("101", "This is r5."),), SENT),
        ("reply lost", (started(), replied(text="This is r0. one two"), ended()), SHOWN, SENT),
        ("reply not finished", ANSWERED, (Shown("101", "This is r0. ▌"),), SENT),
        ("reply not finished", ANSWERED, (Shown("101", "This is r0.", ("⏹ Stop",)),), SENT),
        (
            "reply not finished",
            (started(), replied(), TurnEnded(turn=FIRST, outcome=Interrupted("user"))),
            SHOWN,
            SENT,
        ),
        ("doubled silently", ANSWERED, (*SHOWN, Shown("102", "This is r0.")), SENT),
        ("doubled silently", ANSWERED, (*SHOWN, Shown("102", "This is r0.")), {**SENT, "x": "102"}),
        ("doubled silently", ANSWERED, (*SHOWN, Shown("99", "▌")), SENT),
        (
            "doubled silently",  # that something else was said again with a word about it excuses nothing
            ANSWERED,
            (*SHOWN, Shown("99", "This is r0. ▌"), Shown("90", "(This may have reached you before.)\nHello")),
            {**SENT, "x": "90"},
        ),
        (
            "note doubled",
            ANSWERED,
            (*SHOWN, Shown("5", "🎙️ m0"), Shown("6", "🎙️ m0")),
            {"a": "5", "b": "6"},
        ),
        (
            "reply out of order",
            (*ANSWERED, started(UserMessage("y", ""), SECOND), ended(SECOND)),
            (Shown("101", "This is r0."), Shown("99", "(no words)")),
            {**SENT, f"{SECOND}:0": "99"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_audit_notices(
    kind: str, records: Sequence[AnyRecord], shown: Sequence[Shown], sent: Mapping[str, str]
) -> None:
    findings = audited(records, shown, sent)
    assert findings.counts[kind] > 0, findings.problems


@pytest.mark.parametrize(("times", "kind"), [(0, "reply lost"), (2, "doubled silently")])
def test_the_audit_notices_a_reply_of_which_a_program_was_not_told_once(times: int, kind: str) -> None:
    assert audited(of=book(chat=API), chat=API).problems == []
    assert audited(of=book(chat=API), chat=API, told={FIRST: times}).counts[kind] == 1


# Recordings.


def test_the_audit_notices_a_recording_that_was_echoed_and_not_said() -> None:
    echoed = Shown("9", '🎙️ "talk m0"')
    assert audited(NOTHING, [echoed], {"voice:100": "9"}, book(kind="voice")).counts["lost"] == 1


@pytest.mark.parametrize("kind", ["voice", "noise", "silence"])
def test_the_audit_notices_a_recording_that_is_nowhere_while_another_was_told_to_be_stopped(kind: str) -> None:
    stopped = Shown("9", "🎙️ Stopped: that voice message was not transcribed, and goes nowhere.")
    assert audited(NOTHING, [stopped], {"voice:99": "9"}, book(kind=kind)).counts["lost"] == 1


def test_the_audit_notices_a_recording_that_was_said_and_not_echoed() -> None:
    assert audited(of=book(kind="voice")).counts["echo lost"] == 1
    wrong = (*SHOWN, Shown("90", '🎙️ "talk m8"'))
    assert audited(ANSWERED, wrong, {**SENT, "voice:100": "90"}, book(kind="voice")).counts["echo lost"] == 1


def test_the_audit_notices_a_recording_without_words_of_which_nothing_was_told() -> None:
    records = (started(UserMessage(MESSAGE.id, "[A voice message came whose words are not known]")), *ANSWERED[1:])
    assert audited(records, of=book(kind="noise")).counts["echo lost"] == 1
    told = {**SENT, "voice:100": "90"}
    assert audited(records, (*SHOWN, Shown("90", "🎙️ that is no speech")), told, book(kind="noise")).problems == []


# Edits and deletions.


def test_the_audit_notices_an_edit_that_was_taken_in_time_and_is_not_in_force() -> None:
    assert audited(of=edited(1.0)).counts["edit lost"] == 1
    assert audited(of=edited(11.0)).problems == []


def test_the_audit_notices_an_edit_in_time_that_is_not_in_force_though_a_later_one_came_too_late() -> None:
    of = edited(1.0)
    of.written["m0"].edits.append(("talk m0e2", Deed(20.0, 20.0)))
    assert audited(of=of).counts["edit lost"] == 1


def test_an_edit_that_was_offered_to_be_told_is_not_lost_and_excuses_no_other() -> None:
    mark, other = (f"{zlib.crc32(text.encode()):x}" for text in ("talk m0e1", "talk m5e1"))
    assert audited(sent={**SENT, f"edit:100:{mark}": "90"}, of=edited(1.0)).counts["edit lost"] == 0
    assert audited(sent={**SENT, f"edit:105:{other}": "90"}, of=edited(1.0)).counts["edit lost"] == 1


def test_an_edit_over_http_that_was_answered_is_in_force_whenever_it_came() -> None:
    assert audited(of=edited(9.9, chat=API), chat=API).counts["edit lost"] == 1


def test_the_audit_notices_a_deletion_that_was_taken_in_time_and_ignored() -> None:
    assert audited(of=deleted(1.0)).counts["deletion ignored"] == 1
    assert audited(of=deleted(11.0)).problems == []
    assert audited([QUEUED], (), {}, deleted(11.0)).counts["deletion ignored"] == 1
    assert audited(of=deleted(9.9, chat=API), chat=API).counts["deletion ignored"] == 1


def test_over_http_a_message_that_was_deleted_is_still_somewhere() -> None:
    assert audited(NOTHING, (), {}, deleted(1.0, chat=API), chat=API).counts["lost"] == 1


# Buttons, order, people, prompts.


def pressed(of: Book, *messages: str) -> Book:
    of.steers += [Steer(CHAT, message, Deed(1.0, 1.0)) for message in messages]
    return of


def test_the_audit_notices_a_steer_by_button_that_was_lost_or_told_twice() -> None:
    told = started(UserMessage("~telegram:7::edit:100:ab", "talk m0e1"), SECOND, 20.0)
    again = Steered(turn=SECOND, step=2, messages=told.messages)
    records = (*ANSWERED, told, ended(SECOND))
    shown, sent = (*SHOWN, Shown("102", "(no words)")), {**SENT, f"{SECOND}:0": "102"}
    assert audited(records, shown, sent, pressed(edited(11.0), "90")).problems == []
    assert audited(of=pressed(edited(11.0), "90")).counts["steer lost"] == 1
    assert audited((*records, again), shown, sent, pressed(edited(11.0), "90")).counts["doubled"] == 1
    assert audited(records, shown, sent, edited(11.0)).counts["doubled"] == 1


def test_the_audit_notices_a_broken_order_of_what_is_queued() -> None:
    first, second = UserMessage("x:100", "talk m0"), UserMessage("x:110", "talk m1")
    wrong = (started(second), ended(), started(first, SECOND), ended(SECOND))
    right = (started(first), ended(), started(second, SECOND), ended(SECOND))
    assert audited(wrong, of=two(delivery="queue")).counts["out of order"] == 1
    assert audited(right, of=two(delivery="queue")).counts["out of order"] == 0


def test_the_audit_notices_whose_message_it_was_and_what_was_not_for_us() -> None:
    of = book()
    of.written["m0"].author = "Ann"
    assert audited(of=of).counts["wrong author"] == 1
    assert audited(of=book(kind="aside")).counts["overheard"] == 1
    assert audited(NOTHING, (), {}, book(kind="aside")).problems == []


@pytest.mark.parametrize("times", [0, 2])
def test_the_audit_notices_a_message_that_the_model_did_not_get_once(times: int) -> None:
    assert audited(prompt=Counter({"m0": times})).counts["wrong prompt"] == 1


def test_the_audit_notices_a_withdrawn_message_that_the_model_got() -> None:
    assert audited([QUEUED, WITHDRAWN], (), {}, prompt=Counter({"m0": 1})).counts["wrong prompt"] == 1


def test_after_a_last_word_nothing_waits() -> None:
    assert audited([QUEUED], (), {}, prompt=Counter()).counts["still queued"] == 1


# Stops.


def stopped_by(records: Sequence[AnyRecord], asked: Sequence[Asked]) -> Findings:
    findings = Findings()
    stops = Book(stops=[Stop(CHAT, "word", Deed(20.0, 20.5))])
    StopAudit(Case(findings, CHAT, stops, Story(records), SHOWN, SENT), asked).run()
    return findings


def test_the_audit_notices_a_stop_that_was_taken_and_did_not_stop_the_model() -> None:
    for ended_at, outcome, lost in ((20.6, Interrupted("user"), 0), (30.0, Completed("This is r0."), 1)):
        records = [started(), replied(), TurnEnded(turn=FIRST, outcome=outcome)]
        asked = Asked("r0", CHAT, 10.0, ended=ended_at, is_whole=bool(lost))
        assert stopped_by(records, [asked]).counts["stop lost"] == lost


def test_the_audit_notices_a_stop_that_did_not_end_a_turn_with_a_tool_or_a_question() -> None:
    assert stopped_by([started(), ended(at=30.0)], []).counts["stop lost"] == 1
    assert stopped_by([started(), ended(at=20.6)], []).problems == []


def test_the_ledger_is_read_by_session() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE lines (address, session); CREATE TABLE sent (address, key, message);"
        "INSERT INTO lines VALUES ('a', 'telegram:7'); INSERT INTO sent VALUES ('a', 'telegram:7.t1:0', '101');"
    )
    assert sent_of(connection) == {CHAT: SENT}


def test_a_message_is_written_as_its_person_means_it() -> None:
    one = Written("m0", CHAT, "queue", "talk m0", Deed(1.0))
    assert one.as_sent(one.text, has_commands=True) == "/queue talk m0"
    assert one.as_sent(one.text, has_commands=False) == "talk m0"
