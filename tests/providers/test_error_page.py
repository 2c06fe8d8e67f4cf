"""Every row of docs/errors.md is true, and the page has them all."""

import pytest

from hark.protocol.provider import BadAddress, ProviderError, Unreachable
from tests.providers.error_cases import CASES, Case
from tests.providers.error_page import PAGE, page
from tests.providers.provider_fixture import hear_one


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.server} {case.said[:60]}")
async def test_what_a_server_says_becomes_the_named_error(case: Case) -> None:
    for api in case.apis:
        heard = await hear_one(case.behaviour, api=api)
        assert heard.error is not None
        assert (type(heard.error), heard.error.code) == (case.error, case.code)


def test_every_error_has_a_row() -> None:
    def below(kind: type[ProviderError]) -> set[type[ProviderError]]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    ours = {kind for kind in below(ProviderError) if kind.__module__ == ProviderError.__module__}
    # Where nobody listens, or nothing can be sent, no server could be told how to behave: test_openai_chat has those.
    assert {case.error for case in CASES} == ours - {Unreachable, BadAddress}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.providers.error_page"
