"""Writes docs/errors.md from the table of cases: `python -m tests.providers.error_page`."""

from pathlib import Path

from hark.protocol.provider import (
    BadKey,
    BadModel,
    ContextTooLong,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    TransientProviderError,
)
from tests.providers.error_cases import CASES, Case

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
HEAD = """# What a model server says, and what Hark does

A test makes this page (`python -m tests.providers.error_page` writes it anew) and plays every row of it to the real
providers. What the server said stays in the message; a reason that Hark does not know fails with these words.

| server | what it says | our error | code | what Hark does |
|---|---|---|---|---|
"""


def remedy(error: type[ProviderError]) -> str:
    """Return what is done about an error: the most exact class counts."""
    if issubclass(error, RateLimited):
        return "wait as long as the server asks, then retry; else switch route"
    if issubclass(error, TransientProviderError):
        return "retry with back-off; else switch route"
    if issubclass(error, ContextTooLong):
        return "compact and retry"
    if issubclass(error, BadKey | BadModel | QuotaExhausted):
        return "switch route; else fail"
    return "fail"


def page() -> str:
    """Return the page as it should be."""
    return HEAD + "".join(f"{_row(case)}\n" for case in CASES)


def _row(case: Case) -> str:
    said = case.said.replace("|", "\\|")
    return f"| {case.server} | {said} | {case.error.__name__} | `{case.code}` | {remedy(case.error)} |"


if __name__ == "__main__":
    PAGE.write_text(page())
