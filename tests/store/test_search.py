"""The search contract of every store: the same tests for the memory, file and inline stores."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    Quarantined,
    Queued,
    Replied,
    ReplyTextSaved,
    Steered,
    TurnEnded,
    TurnStarted,
)
from hark.protocol.store import SearchHit, SearchQuery, SessionSummary, Store
from tests.store.store_fixtures import ENVIRONMENTS, StoreEnvironment, acquire_lease, open_store

ODD_QUERIES = [
    "",
    " ",
    "\n\t",
    '"',
    '""',
    "'",
    "*",
    "^",
    "(",
    ")",
    "AND",
    "OR NOT",
    "NEAR(a b, 3)",
    "text: x",
    "-teal",
    "+",
    "a*b",
    '"unclosed',
    "%_",
    "\\",
    "\x00",
    "a\x00b",
    "🎉",
    "👩‍👩‍👧",
    "\ud83d",
    "東京",
    "{}[];--",
    "x" * 100_000,
    "a " * 5_000,
    "'; DROP TABLE lines; --",
]


@pytest.fixture(params=ENVIRONMENTS, ids=["memory", "file", "inline"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> StoreEnvironment:
    create: Callable[[Path], StoreEnvironment] = request.param
    return create(tmp_path)


def make_user_record(text: str, turn: str = "s.t1", at: float = 1.0, author: str = "") -> TurnStarted:
    return TurnStarted(turn=turn, messages=(UserMessage("m", text, author),), at=at)


def make_reply_record(text: str, turn: str = "s.t1", at: float = 2.0, calls: tuple[Call, ...] = ()) -> Replied:
    return Replied(turn=turn, step=1, message=AssistantMessage(text, calls), at=at)


async def append_records(store: Store, *records: AnyRecord, session: str = "s") -> None:
    """Append records to a session's journal."""
    expected = len(await store.journal.read(session))
    await store.journal.append(await acquire_lease(store, session), expected, records, SessionSummary(updated_at=1.0))


async def find_snippets(store: Store, words: str, session: str = "", since: float = 0.0, limit: int = 10) -> list[str]:
    return [hit.snippet for hit in await store.search.find(SearchQuery(words, session, since, limit))]


async def test_a_message_is_found_with_its_session_turn_time_and_author(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(
            store, make_user_record("Which colour?", author="Ada"), make_reply_record("The colour is teal.")
        )
        [hit] = await store.search.find(SearchQuery("teal"))
        assert hit == SearchHit("s", "s.t1", 2.0, "hark", "The colour is teal.")
        assert [hit.who for hit in await store.search.find(SearchQuery("colour"))] == ["hark", "Ada"]


async def test_steers_calls_and_results_are_found(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        steer = Steered(turn="s.t1", step=2, messages=(UserMessage("m2", "use the mirror"),), at=3.0)
        picture = (Attachment("image/png", "harbour.png"),)
        await append_records(
            store,
            TurnStarted(turn="s.t1", messages=(UserMessage("m", "look", attachments=picture),), at=1.0),
            make_reply_record("I fetch it.", calls=(Call("c", "shell", '{"command": "rsync --archive"}'),)),
            CallEnded(turn="s.t1", result=CallResult("c", "shell", "sent 12 bytes", Effect.COMPLETED), at=2.5),
            steer,
        )
        authors = [
            (await store.search.find(SearchQuery(words)))[0].who for words in ("harbour.png", "rsync", "12", "mirror")
        ]
        assert authors == ["person", "hark", "shell", "person"]


async def test_records_outside_the_conversation_are_not_found(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(
            store,
            Queued(message=UserMessage("m", "waiting"), delivery=Delivery.QUEUE),
            ReplyTextSaved(turn="s.t1", step=1, text="streaming"),
            Quarantined(turn="s.t1", call="c", name="shell", text="belated"),
            make_reply_record("", calls=(Call("c", "recall", '{"query": "looking"}'),)),
            CallEnded(turn="s.t1", result=CallResult("c", "recall", "repeated", Effect.COMPLETED)),
            TurnEnded(turn="s.t1", outcome=Completed("ended")),
        )
        await append_records(store, make_user_record("reflected"), session="s.m-1")
        for word in ("waiting", "streaming", "belated", "looking", "repeated", "ended", "reflected"):
            assert await find_snippets(store, word) == [], word


async def test_all_words_must_match_unless_the_query_asks_for_any_word(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(
            store,
            make_user_record("a red apple"),
            make_user_record("a green pear", "s.t2"),
            make_user_record("a red pear", "s.t3", 3.0),
        )
        assert await find_snippets(store, "pear red") == ["a red pear"]
        any_of = await store.search.find(SearchQuery("pear red plum", is_any=True))
        assert any_of[0].snippet == "a red pear"
        assert {hit.snippet for hit in any_of} == {"a red apple", "a green pear", "a red pear"}


async def test_search_ignores_case_and_accents_and_matches_prefixes(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(store, make_user_record("Das CAFÉ in Zürich: tokenizers, straße"))
        for words in ("cafe", "Café", "zurich", "ZÜRICH", "token", "tokenizers", "STRASSE", "zürich:"):
            assert await find_snippets(store, words), words
        for words in ("afe", "to", "okenizers", "zurich cafe plum"):
            assert not await find_snippets(store, words), words


async def test_names_with_punctuation_are_searched_as_phrases(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(
            store, make_user_record("see src/hark/store_error.py"), make_user_record("error in the store", "s.t2")
        )
        assert await find_snippets(store, "store_error.py") == ["see src/hark/store_error.py"]
        assert await find_snippets(store, "hark/store_err") == ["see src/hark/store_error.py"]
        assert len(await find_snippets(store, "store error")) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我们明天去东京看电影", "东京"),
        ("我们明天去东京看电影", "电影"),
        ("東京タワーに行きました", "タワー"),
        ("서울에서 만나요", "서울"),
        ("ไปเที่ยวกรุงเทพ", "กรุงเทพ"),
        ("нужна помощь с Москвой", "МОСКВ"),
        ("שלום עולם", "עולם"),
        ("done 🎉 at last", "🎉"),
        ("done🎉", "done"),
        ("mixed日本語text", "日本"),
    ],
)
async def test_words_in_every_script_are_found(environment: StoreEnvironment, text: str, words: str) -> None:
    async with open_store(environment) as store:
        await append_records(store, make_user_record(text), make_user_record("something else", "s.t2"))
        assert await find_snippets(store, words) == [text]
        assert await find_snippets(store, "犬🚀") == []


async def test_empty_queries_and_query_syntax_find_nothing_and_never_raise(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(store, make_user_record("plain speech"))
        for words in ODD_QUERIES:
            for is_any in (False, True):
                assert await store.search.find(SearchQuery(words, is_any=is_any)) == [], words[:50]
        assert await store.search.find(SearchQuery("plain", limit=0)) == []


async def test_a_search_can_be_restricted_by_session_time_count_and_turn(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        for number in range(5):
            await append_records(store, make_user_record(f"note {number}", f"s.t{number}", at=float(number)))
        await append_records(store, make_user_record("note other", "o.t1", at=9.0), session="other")
        assert await find_snippets(store, "note", limit=3) == ["note other", "note 4", "note 3"]
        assert await find_snippets(store, "note", session="other") == ["note other"]
        assert await find_snippets(store, "note", session="unknown") == []
        assert await find_snippets(store, "note", since=3.0) == ["note other", "note 4", "note 3"]
        hits = await store.search.find(SearchQuery("note", session="s", since=3.0, without_turn="s.t4"))
        assert [hit.turn for hit in hits] == ["s.t3"]


async def test_messages_added_since_the_last_search_are_found(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        assert await find_snippets(store, "teal") == []
        for number in range(3):
            await append_records(store, make_user_record("teal", f"s.t{number}"))
            assert len(await find_snippets(store, "teal")) == number + 1
        other = await environment.open("other")
        await append_records(other, make_user_record("teal", "o.t1"), session="o")
        assert len(await find_snippets(store, "teal")) == 4
        assert len(await find_snippets(other, "teal")) == 4
        await other.close()


async def test_all_records_are_found_when_they_exceed_one_batch(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(
            store, *(make_user_record(f"item {number} of many", f"s.t{number}") for number in range(1000))
        )
        assert len(await find_snippets(store, "item many", limit=2000)) == 1000
        assert await find_snippets(store, "999") == ["item 999 of many"]


async def test_a_deleted_session_is_not_found_but_a_new_session_with_its_name_is(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(store, make_user_record("first teal"), session="a")
        await append_records(store, make_user_record("second teal"), make_user_record("third teal"), session="b")
        assert len(await find_snippets(store, "teal")) == 3
        await store.journal.delete("b")
        assert await find_snippets(store, "teal") == ["first teal"]
        await append_records(store, make_user_record("new teal", at=2.0), session="b")
        assert await find_snippets(store, "teal") == ["new teal", "first teal"]
        await store.journal.delete("b")
        await append_records(store, make_user_record("newest teal"), session="c")
        await store.journal.delete("a")
        assert await find_snippets(store, "teal") == ["newest teal"]
        assert await find_snippets(store, "first") == []


async def test_a_snippet_shows_the_text_around_the_match(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        await append_records(store, make_reply_record("before " * 500 + "the Needle is here" + " behind" * 500))
        [snippet] = await find_snippets(store, "needle")
        assert "the Needle is here" in snippet
        assert snippet.startswith("…")
        assert snippet.endswith("…")
        assert len(snippet) < 300
