"""Every row of docs/errors.md, end to end: the way that is taken is the one that the page names."""

from pathlib import Path

import pytest

from hark.engine.turn.retry import RetryBudget
from hark.protocol.events import Notice, RouteChanged
from hark.protocol.outcomes import Completed, Failed
from hark.providers.anthropic.provider import Anthropic
from hark.providers.openai.chat import OpenAIChat
from tests.fakes.models.behaviours import text
from tests.interrupts.agents import Conversation, conversing
from tests.providers.error_cases import CASES, Case
from tests.providers.error_page import remedy
from tests.providers.provider_fixture import Api

OK, OTHER = text(["ok"]), text(["other"])
ROWS = [(case, api) for case in CASES for api in case.apis]
NAMES = [f"{case.server}: {case.said} ({api.__name__})" for case, api in ROWS]


def provider_of(api: Api) -> str:
    return "openai" if api is OpenAIChat else "anthropic" if api is Anthropic else "responses"


def rows(way: str) -> pytest.MarkDecorator:
    """The rows whose way begins so."""
    chosen = [(row, name) for row, name in zip(ROWS, NAMES, strict=True) if remedy(row[0].error).startswith(way)]
    return pytest.mark.parametrize(("case", "api"), [row for row, _ in chosen], ids=[name for _, name in chosen])


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between tries, which take no time here."""
    taken: list[float] = []

    async def pause(_: RetryBudget, seconds: float) -> None:
        taken.append(seconds)

    monkeypatch.setattr(RetryBudget, "pause", pause)
    return taken


def counts(talk: Conversation) -> tuple[int, int]:
    return len(talk.server.requests), len(talk.second.requests)


async def check_again(case: Case, api: Api, pauses: list[float], home: Path) -> None:
    """Once: the same route answers the second time. Again and again: the other route does."""
    script = [case.behaviour, OK, *[case.behaviour] * 3]
    async with conversing(home, provider_of(api), script, [OTHER]) as talk:
        assert await talk.ask("go") == Completed("ok")
        assert counts(talk) == (2, 0)
        assert [event.code for event in talk.all(Notice)] == ["retry"]
        assert talk.all(RouteChanged) == []
        least = 7.0 if "Retry-After" in case.said else 0.25
        assert len(pauses) == 1
        assert least <= pauses[0] <= max(least, 0.5)
        assert await talk.ask("go") == Completed("other")
        assert counts(talk) == (5, 1)
        assert [event.route for event in talk.all(RouteChanged)] == ["second"]


@rows("retry with back-off")
async def test_a_failure_that_may_pass_is_tried_again(
    case: Case, api: Api, pauses: list[float], tmp_path: Path
) -> None:
    await check_again(case, api, pauses, tmp_path)


@rows("wait as long as the server asks")
async def test_a_rate_limit_is_waited_for(case: Case, api: Api, pauses: list[float], tmp_path: Path) -> None:
    await check_again(case, api, pauses, tmp_path)


@rows("compact and retry")
async def test_too_long_a_context_is_made_shorter(case: Case, api: Api, pauses: list[float], tmp_path: Path) -> None:
    script = [text(["a"]), text(["b"]), case.behaviour, text(["the notes"]), OK]
    async with conversing(tmp_path, provider_of(api), script) as talk:
        await talk.ask("one")
        await talk.ask("two")
        assert await talk.ask("three") == Completed("ok")
        assert counts(talk) == (5, 0)
        assert "the notes" in str(talk.server.requests[-1].body)
        assert {event.code for event in talk.all(Notice)} == {"compaction"}
    assert pauses == []


@rows("switch route")
async def test_what_a_route_can_not_do_another_one_does_and_without_one_the_turn_fails(
    case: Case, api: Api, pauses: list[float], tmp_path: Path
) -> None:
    async with conversing(tmp_path, provider_of(api), [case.behaviour], [OTHER]) as talk:
        assert await talk.ask("go") == Completed("other")
        assert counts(talk) == (1, 1)
        assert [event.route for event in talk.all(RouteChanged)] == ["second"]
    async with conversing(tmp_path, provider_of(api), [case.behaviour, OK], None) as talk:
        check_failed(await talk.ask("go"), case)
        assert counts(talk) == (1, 0)
        assert await talk.ask("again") == Completed("ok")
        assert talk.all(Notice) == []
    assert pauses == []


@rows("fail")
async def test_what_nothing_would_mend_fails_at_once(case: Case, api: Api, pauses: list[float], tmp_path: Path) -> None:
    async with conversing(tmp_path, provider_of(api), [case.behaviour, OK], [OTHER]) as talk:
        check_failed(await talk.ask("go"), case)
        assert counts(talk) == (1, 0)
        assert await talk.ask("again") == Completed("ok")
        assert talk.all(Notice) == []
        assert talk.all(RouteChanged) == []
    assert pauses == []


def check_failed(outcome: object, case: Case) -> None:
    assert isinstance(outcome, Failed)
    assert outcome.error.code == case.code
    words = case.said.partition("“")[2].rstrip("”")
    assert words.rstrip(".") in outcome.error.message


def test_the_failures_that_people_meet_most_are_among_the_rows() -> None:
    page = " ".join(case.said for case in CASES)
    for said in ("429 with", "500,", "503,", "529,", "too long", "401,", "404,", "inside a reply", "breaks off"):
        assert said in page
    for said in ("no JSON", "web page"):
        assert said in page
