"""The `recall` tool: newest matches first, without the current turn."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.messages import Effect
from hark.protocol.store import SearchHit, SearchQuery, StoreError
from hark.protocol.tool import ToolOutput
from hark.tools.notes.recall import RecallTool
from tests.tools.fake_context import FakeContext, call_tool

NOW = datetime(2026, 5, 31, 12, 0)
HIT = SearchHit("demo", "demo.t3", NOW.timestamp(), "person", "the colour is teal")


class FakeSearch:
    """A fake search that records queries. Returns `any_word` for any-word queries, otherwise `all_words`."""

    def __init__(self, all_words: list[SearchHit], any_word: list[SearchHit] | None = None) -> None:
        self.queries: list[SearchQuery] = []
        self._hits = {False: all_words, True: any_word or []}

    async def find(self, query: SearchQuery) -> list[SearchHit]:
        self.queries.append(query)
        return self._hits[query.is_any]


class FailingSearch:
    async def find(self, query: SearchQuery) -> list[SearchHit]:
        raise StoreError("The disk is full.")


class HangingSearch:
    async def find(self, query: SearchQuery) -> list[SearchHit]:
        await asyncio.Event().wait()
        return []


async def recall(search: Any, **arguments: Any) -> ToolOutput:
    return await call_tool(RecallTool(search, lambda: NOW), arguments, FakeContext(Path()))


async def test_a_match_shows_time_session_turn_author_and_text() -> None:
    output = await recall(FakeSearch([HIT]), query="teal")
    assert output.text.splitlines()[1:] == ["2026-05-31 12:00  demo  demo.t3  person: the colour is teal"]


async def test_the_current_turn_is_excluded_from_the_search() -> None:
    search = FakeSearch([HIT])
    await recall(search, query="teal")
    assert search.queries == [SearchQuery("teal", without_turn="turn")]


async def test_messages_with_some_of_the_words_are_returned_if_no_message_has_all_words() -> None:
    output = await recall(FakeSearch([], [HIT]), query="teal logo")
    assert output.text.startswith("No message contains all of these words. These contain some:\n")
    assert "the colour is teal" in output.text
    assert (await recall(FakeSearch([]), query="teal")).text.startswith("No matches.")


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
async def test_since_accepts_a_date_or_an_age(since: str, expected: float) -> None:
    search = FakeSearch([HIT])
    await recall(search, query="x", since=since)
    assert search.queries[0].since == expected


async def test_session_and_limit_are_passed_to_the_search_within_bounds() -> None:
    search = FakeSearch([HIT])
    for limit in (None, 3, 0, -5, 10_000):
        await recall(search, query="x", session="de\ud83dmo", limit=limit)
    assert [query.limit for query in search.queries] == [10, 3, 10, 1, 50]
    assert {query.session for query in search.queries} == {"de?mo"}


@pytest.mark.parametrize(
    "arguments", [{}, {"query": 3}, {"query": "x", "since": "yesterday-ish"}, {"query": "x", "since": "99999 years"}]
)
async def test_invalid_arguments_cause_an_error(arguments: dict[str, Any]) -> None:
    output = await recall(FakeSearch([HIT]), **arguments)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)


async def test_a_failing_store_is_reported_without_a_traceback() -> None:
    output = await recall(FailingSearch(), query="x")
    assert output.is_error
    assert output.text == "Past sessions can't be searched at the moment: The disk is full."


async def test_cancelling_ends_a_hanging_search() -> None:
    call = asyncio.ensure_future(recall(HangingSearch(), query="x"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
