"""Looking up what was said before: the newest first, and never the question itself."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.messages import Effect
from hark.protocol.store import Hit, Query, StoreError
from hark.protocol.tool import ToolOutput
from hark.tools.notes.recall import Recall
from tests.tools.context import FakeContext, call_tool

NOW = datetime(2026, 5, 31, 12, 0)
HIT = Hit("demo", "demo.t3", NOW.timestamp(), "person", "the colour is teal")


class Shelf:
    """Answers with these hits, the first for all words, the second for any; keeps what was asked."""

    def __init__(self, all_words: list[Hit], any_word: list[Hit] | None = None) -> None:
        self.asked: list[Query] = []
        self._hits = {False: all_words, True: any_word or []}

    async def find(self, query: Query) -> list[Hit]:
        self.asked.append(query)
        return self._hits[query.is_any]


class BrokenShelf:
    async def find(self, query: Query) -> list[Hit]:
        raise StoreError("The disk is full.")


class WedgedShelf:
    async def find(self, query: Query) -> list[Hit]:
        await asyncio.Event().wait()
        return []


async def recall(shelf: Any, **arguments: Any) -> ToolOutput:
    return await call_tool(Recall(shelf, lambda: NOW), arguments, FakeContext(Path()))


async def test_a_hit_tells_when_where_who_and_what() -> None:
    output = await recall(Shelf([HIT]), query="teal")
    assert output.text.splitlines()[1:] == ["2026-05-31 12:00  demo  demo.t3  person: the colour is teal"]


async def test_the_running_turn_is_left_out() -> None:
    shelf = Shelf([HIT])
    await recall(shelf, query="teal")
    assert shelf.asked == [Query("teal", without_turn="turn")]


async def test_when_no_message_has_all_words_those_with_some_are_told() -> None:
    output = await recall(Shelf([], [HIT]), query="teal logo")
    assert output.text.startswith("No message has all of these words. These have some:\n")
    assert "the colour is teal" in output.text
    assert (await recall(Shelf([]), query="teal")).text.startswith("Nothing was found.")


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("", 0.0),
        ("2026-05-30", datetime(2026, 5, 30).timestamp()),
        ("2026-05-30T08:30", datetime(2026, 5, 30, 8, 30).timestamp()),
        ("3 days", datetime(2026, 5, 28, 12).timestamp()),
        ("2w", datetime(2026, 5, 17, 12).timestamp()),
        ("5 hours ago", datetime(2026, 5, 31, 7).timestamp()),
    ],
)
async def test_since_is_a_date_or_a_time_ago(since: str, expected: float) -> None:
    shelf = Shelf([HIT])
    await recall(shelf, query="x", since=since)
    assert shelf.asked[0].since == expected


async def test_the_session_and_the_limit_are_passed_on_in_bounds() -> None:
    shelf = Shelf([HIT])
    for limit in (None, 3, 0, -5, 10_000):
        await recall(shelf, query="x", session="de\ud83dmo", limit=limit)
    assert [query.limit for query in shelf.asked] == [10, 3, 10, 1, 50]
    assert {query.session for query in shelf.asked} == {"de?mo"}


@pytest.mark.parametrize(
    "arguments", [{}, {"query": 3}, {"query": "x", "since": "yesterday-ish"}, {"query": "x", "since": "99999 years"}]
)
async def test_bad_input_is_told(arguments: dict[str, Any]) -> None:
    output = await recall(Shelf([HIT]), **arguments)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)


async def test_a_store_that_fails_is_told_without_a_traceback() -> None:
    output = await recall(BrokenShelf(), query="x")
    assert output.is_error
    assert output.text == "The past sessions can't be searched now: The disk is full."


async def test_a_cut_search_ends_at_once() -> None:
    call = asyncio.ensure_future(recall(WedgedShelf(), query="x"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
