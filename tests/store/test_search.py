"""What every store finds again: the same sentences for memory, a file, and the SQL without threads."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    Progress,
    Quarantined,
    Queued,
    Replied,
    Steered,
    TurnEnded,
    TurnStarted,
)
from hark.protocol.store import Hit, Query, Store, Summary
from tests.store.store_fixtures import WORLDS, World, opened, owned

ODD = [
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


@pytest.fixture(params=WORLDS, ids=["memory", "file", "inline"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    make: Callable[[Path], World] = request.param
    return make(tmp_path)


def asked(text: str, turn: str = "s.t1", at: float = 1.0, author: str = "") -> TurnStarted:
    return TurnStarted(turn=turn, messages=(UserMessage("m", text, author),), at=at)


def replied(text: str, turn: str = "s.t1", at: float = 2.0, calls: tuple[Call, ...] = ()) -> Replied:
    return Replied(turn=turn, step=1, message=AssistantMessage(text, calls), at=at)


async def told(store: Store, *records: AnyRecord, session: str = "s") -> None:
    """Append records to a session's journal."""
    expected = len(await store.journal.read(session))
    await store.journal.append(await owned(store, session), expected, records, Summary(updated_at=1.0))


async def found(store: Store, words: str, session: str = "", since: float = 0.0, limit: int = 10) -> list[str]:
    return [hit.snippet for hit in await store.search.find(Query(words, session, since, limit))]


async def test_what_was_said_is_found_with_where_when_and_who(world: World) -> None:
    async with opened(world) as store:
        await told(store, asked("Which colour?", author="Ada"), replied("The colour is teal."))
        [hit] = await store.search.find(Query("teal"))
        assert hit == Hit("s", "s.t1", 2.0, "hark", "The colour is teal.")
        assert [hit.who for hit in await store.search.find(Query("colour"))] == ["hark", "Ada"]


async def test_steers_calls_and_results_are_found(world: World) -> None:
    async with opened(world) as store:
        steer = Steered(turn="s.t1", step=2, messages=(UserMessage("m2", "use the mirror"),), at=3.0)
        picture = (Attachment("image/png", "harbour.png"),)
        await told(
            store,
            TurnStarted(turn="s.t1", messages=(UserMessage("m", "look", attachments=picture),), at=1.0),
            replied("I fetch it.", calls=(Call("c", "shell", '{"command": "rsync --archive"}'),)),
            CallEnded(turn="s.t1", result=CallResult("c", "shell", "sent 12 bytes", Effect.COMPLETED), at=2.5),
            steer,
        )
        whos = [(await store.search.find(Query(words)))[0].who for words in ("harbour.png", "rsync", "12", "mirror")]
        assert whos == ["person", "hark", "shell", "person"]


async def test_what_no_turn_said_is_not_found(world: World) -> None:
    async with opened(world) as store:
        await told(
            store,
            Queued(message=UserMessage("m", "waiting"), delivery=Delivery.QUEUE),
            Progress(turn="s.t1", step=1, text="streaming"),
            Quarantined(turn="s.t1", call="c", name="shell", text="belated"),
            replied("", calls=(Call("c", "recall", '{"query": "looking"}'),)),
            CallEnded(turn="s.t1", result=CallResult("c", "recall", "repeated", Effect.COMPLETED)),
            TurnEnded(turn="s.t1", outcome=Completed("ended")),
        )
        await told(store, asked("reflected"), session="s.m-1")
        for word in ("waiting", "streaming", "belated", "looking", "repeated", "ended", "reflected"):
            assert await found(store, word) == [], word


async def test_all_words_must_stand_in_a_message_unless_any_is_enough(world: World) -> None:
    async with opened(world) as store:
        await told(store, asked("a red apple"), asked("a green pear", "s.t2"), asked("a red pear", "s.t3", 3.0))
        assert await found(store, "pear red") == ["a red pear"]
        any_of = await store.search.find(Query("pear red plum", is_any=True))
        assert any_of[0].snippet == "a red pear"
        assert {hit.snippet for hit in any_of} == {"a red apple", "a green pear", "a red pear"}


async def test_case_accents_and_word_ends_do_not_matter(world: World) -> None:
    async with opened(world) as store:
        await told(store, asked("Das CAFÉ in Zürich: tokenizers, straße"))
        for words in ("cafe", "Café", "zurich", "ZÜRICH", "token", "tokenizers", "STRASSE", "zürich:"):
            assert await found(store, words), words
        for words in ("afe", "to", "okenizers", "zurich cafe plum"):
            assert not await found(store, words), words


async def test_names_with_signs_in_them_are_phrases(world: World) -> None:
    async with opened(world) as store:
        await told(store, asked("see src/hark/store_error.py"), asked("error in the store", "s.t2"))
        assert await found(store, "store_error.py") == ["see src/hark/store_error.py"]
        assert await found(store, "hark/store_err") == ["see src/hark/store_error.py"]
        assert len(await found(store, "store error")) == 2


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
async def test_every_script_is_found(world: World, text: str, words: str) -> None:
    async with opened(world) as store:
        await told(store, asked(text), asked("something else", "s.t2"))
        assert await found(store, words) == [text]
        assert await found(store, "犬🚀") == []


async def test_odd_queries_find_nothing_and_never_raise(world: World) -> None:
    async with opened(world) as store:
        await told(store, asked("plain speech"))
        for words in ODD:
            for is_any in (False, True):
                assert await store.search.find(Query(words, is_any=is_any)) == [], words[:50]
        assert await store.search.find(Query("plain", limit=0)) == []


async def test_a_session_a_time_a_number_and_a_turn_narrow_it(world: World) -> None:
    async with opened(world) as store:
        for number in range(5):
            await told(store, asked(f"note {number}", f"s.t{number}", at=float(number)))
        await told(store, asked("note other", "o.t1", at=9.0), session="other")
        assert await found(store, "note", limit=3) == ["note other", "note 4", "note 3"]
        assert await found(store, "note", session="other") == ["note other"]
        assert await found(store, "note", session="unknown") == []
        assert await found(store, "note", since=3.0) == ["note other", "note 4", "note 3"]
        hits = await store.search.find(Query("note", session="s", since=3.0, without_turn="s.t4"))
        assert [hit.turn for hit in hits] == ["s.t3"]


async def test_what_came_since_the_last_search_is_found_too(world: World) -> None:
    async with opened(world) as store:
        assert await found(store, "teal") == []
        for number in range(3):
            await told(store, asked("teal", f"s.t{number}"))
            assert len(await found(store, "teal")) == number + 1
        other = await world.open("other")
        await told(other, asked("teal", "o.t1"), session="o")
        assert len(await found(store, "teal")) == 4
        assert len(await found(other, "teal")) == 4
        await other.close()


async def test_more_than_a_slice_of_records_is_found_whole(world: World) -> None:
    async with opened(world) as store:
        await told(store, *(asked(f"item {number} of many", f"s.t{number}") for number in range(1000)))
        assert len(await found(store, "item many", limit=2000)) == 1000
        assert await found(store, "999") == ["item 999 of many"]


async def test_a_deleted_session_is_not_found_and_what_takes_its_place_is(world: World) -> None:
    async with opened(world) as store:
        await told(store, asked("first teal"), session="a")
        await told(store, asked("second teal"), asked("third teal"), session="b")
        assert len(await found(store, "teal")) == 3
        await store.journal.delete("b")
        assert await found(store, "teal") == ["first teal"]
        await told(store, asked("new teal", at=2.0), session="b")
        assert await found(store, "teal") == ["new teal", "first teal"]
        await store.journal.delete("b")
        await told(store, asked("newest teal"), session="c")
        await store.journal.delete("a")
        assert await found(store, "teal") == ["newest teal"]
        assert await found(store, "first") == []


async def test_a_long_message_is_shown_around_the_word(world: World) -> None:
    async with opened(world) as store:
        await told(store, replied("before " * 500 + "the Needle is here" + " behind" * 500))
        [snippet] = await found(store, "needle")
        assert "the Needle is here" in snippet
        assert snippet.startswith("…")
        assert snippet.endswith("…")
        assert len(snippet) < 300
