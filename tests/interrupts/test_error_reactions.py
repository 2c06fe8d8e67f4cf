"""End-to-end tests for every row of docs/errors.md: Hark reacts as documented."""

from pathlib import Path

import pytest

from hark.engine.turn.retry import RetryBudget
from hark.protocol.events import Notice, RouteChanged
from hark.protocol.outcomes import Completed, Failed
from hark.providers.anthropic.provider import Anthropic
from hark.providers.openai.chat import OpenAIChat
from tests.fakes.models.behaviours import text
from tests.interrupts.agents import Conversation, open_conversation
from tests.providers.error_cases import CASES, ErrorCase
from tests.providers.error_page import describe_action
from tests.providers.provider_fixture import Api

OK, OTHER = text(["ok"]), text(["other"])
ROWS = [(case, api) for case in CASES for api in case.apis]
NAMES = [f"{case.server}: {case.description} ({api.__name__})" for case, api in ROWS]


def provider_name(api: Api) -> str:
    return "openai" if api is OpenAIChat else "anthropic" if api is Anthropic else "responses"


def parametrize_rows(reaction: str) -> pytest.MarkDecorator:
    """Parametrize a test with the rows whose reaction starts with this text."""
    chosen = [
        (row, name) for row, name in zip(ROWS, NAMES, strict=True) if describe_action(row[0].error).startswith(reaction)
    ]
    return pytest.mark.parametrize(("case", "api"), [row for row, _ in chosen], ids=[name for _, name in chosen])


@pytest.fixture
def retry_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make the pauses between retries take no time. Return a list that records their durations."""
    pauses: list[float] = []

    async def pause(_: RetryBudget, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(RetryBudget, "pause", pause)
    return pauses


def request_counts(conversation: Conversation) -> tuple[int, int]:
    return len(conversation.server.requests), len(conversation.second_server.requests)


async def check_retry(case: ErrorCase, api: Api, retry_pauses: list[float], home: Path) -> None:
    """Check that the same route answers after one failure, and the second route after repeated failures."""
    script = [case.behaviour, OK, *[case.behaviour] * 3]
    async with open_conversation(home, provider_name(api), script, [OTHER]) as talk:
        assert await talk.ask("go") == Completed("ok")
        assert request_counts(talk) == (2, 0)
        assert [event.code for event in talk.events_of(Notice)] == ["retry"]
        assert talk.events_of(RouteChanged) == []
        min_seconds = 7.0 if "Retry-After" in case.description else 0.25
        assert len(retry_pauses) == 1
        assert min_seconds <= retry_pauses[0] <= max(min_seconds, 0.5)
        assert await talk.ask("go") == Completed("other")
        assert request_counts(talk) == (5, 1)
        assert [event.route for event in talk.events_of(RouteChanged)] == ["second"]


@parametrize_rows("retry with backoff")
async def test_a_transient_failure_is_retried(
    case: ErrorCase, api: Api, retry_pauses: list[float], tmp_path: Path
) -> None:
    await check_retry(case, api, retry_pauses, tmp_path)


@parametrize_rows("wait as long as the server asks")
async def test_a_rate_limited_request_is_retried_after_the_wait_time_that_the_server_requested(
    case: ErrorCase, api: Api, retry_pauses: list[float], tmp_path: Path
) -> None:
    await check_retry(case, api, retry_pauses, tmp_path)


@parametrize_rows("compact and retry")
async def test_a_conversation_that_exceeds_the_context_window_is_compacted(
    case: ErrorCase, api: Api, retry_pauses: list[float], tmp_path: Path
) -> None:
    script = [text(["a"]), text(["b"]), case.behaviour, text(["the notes"]), OK]
    async with open_conversation(tmp_path, provider_name(api), script) as talk:
        await talk.ask("one")
        await talk.ask("two")
        assert await talk.ask("three") == Completed("ok")
        assert request_counts(talk) == (5, 0)
        assert "the notes" in str(talk.server.requests[-1].body)
        assert {event.code for event in talk.events_of(Notice)} == {"compaction"}
    assert retry_pauses == []


@parametrize_rows("switch the route")
async def test_a_route_failure_switches_the_turn_to_another_route_or_fails_the_turn_if_there_is_none(
    case: ErrorCase, api: Api, retry_pauses: list[float], tmp_path: Path
) -> None:
    async with open_conversation(tmp_path, provider_name(api), [case.behaviour], [OTHER]) as talk:
        assert await talk.ask("go") == Completed("other")
        assert request_counts(talk) == (1, 1)
        assert [event.route for event in talk.events_of(RouteChanged)] == ["second"]
    async with open_conversation(tmp_path, provider_name(api), [case.behaviour, OK], None) as talk:
        check_failed(await talk.ask("go"), case)
        assert request_counts(talk) == (1, 0)
        assert await talk.ask("again") == Completed("ok")
        assert talk.events_of(Notice) == []
    assert retry_pauses == []


@parametrize_rows("fail")
async def test_a_permanent_failure_fails_the_turn_without_a_retry(
    case: ErrorCase, api: Api, retry_pauses: list[float], tmp_path: Path
) -> None:
    async with open_conversation(tmp_path, provider_name(api), [case.behaviour, OK], [OTHER]) as talk:
        check_failed(await talk.ask("go"), case)
        assert request_counts(talk) == (1, 0)
        assert await talk.ask("again") == Completed("ok")
        assert talk.events_of(Notice) == []
        assert talk.events_of(RouteChanged) == []
    assert retry_pauses == []


def check_failed(outcome: object, case: ErrorCase) -> None:
    assert isinstance(outcome, Failed)
    assert outcome.error.code == case.code
    server_text = case.description.partition("“")[2].rstrip("”")
    assert server_text.rstrip(".") in outcome.error.message


def test_the_error_page_covers_the_most_common_failures() -> None:
    page = " ".join(case.description for case in CASES)
    for description in (
        "429 with",
        "500,",
        "503,",
        "529,",
        "too long",
        "401,",
        "404,",
        "inside a reply",
        "truncated reply",
    ):
        assert description in page
    for description in ("invalid JSON", "web page"):
        assert description in page
