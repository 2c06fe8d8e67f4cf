"""Every row of docs/errors.md is correct, and the page is complete."""

import pytest

from hark.protocol.provider import BadAddress, ProviderError, Unreachable
from tests.providers.error_cases import CASES, ErrorCase
from tests.providers.error_page import PAGE, render_page
from tests.providers.provider_fixture import collect_reply_to


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.server} {case.description[:60]}")
async def test_a_server_error_raises_the_error_that_the_error_page_lists(case: ErrorCase) -> None:
    for api in case.apis:
        collected = await collect_reply_to(case.behaviour, api=api)
        assert collected.error is not None
        assert (type(collected.error), collected.error.code) == (case.error, case.code)


def test_every_error_class_that_a_server_can_cause_is_on_the_error_page() -> None:
    def with_subclasses(kind: type[ProviderError]) -> set[type[ProviderError]]:
        return {kind}.union(*(with_subclasses(child) for child in kind.__subclasses__()))

    ours = {kind for kind in with_subclasses(ProviderError) if kind.__module__ == ProviderError.__module__}
    # Unreachable and BadAddress occur without a server, so no row can play them. test_chat.py covers them.
    assert {case.error for case in CASES} == ours - {Unreachable, BadAddress}


def test_the_error_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render_page(), "run python -m tests.providers.error_page to update it"
