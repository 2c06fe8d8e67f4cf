"""Generates docs/errors.md from the table of cases. Run it with `python -m tests.providers.error_page`."""

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
from tests.providers.error_cases import CASES, ErrorCase

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
HEAD = """# Errors of model servers

This page lists how Hark reacts to each error of a model server. Error messages quote the server's own text. If Hark
doesn't know the reason that a server gives, the status code decides.

`python -m tests.providers.error_page` generates this page. A test checks every row with the real provider code.

| server | response | error | code | Hark's action |
|---|---|---|---|---|
"""


def describe_action(error: type[ProviderError]) -> str:
    """Describe how Hark reacts to an error, based on the most specific error class."""
    if issubclass(error, RateLimited):
        return "wait as long as the server asks, then retry; otherwise switch the route"
    if issubclass(error, TransientProviderError):
        return "retry with backoff; otherwise switch the route"
    if issubclass(error, ContextTooLong):
        return "compact and retry"
    if issubclass(error, BadKey | BadModel | QuotaExhausted):
        return "switch the route; otherwise fail"
    return "fail"


def render_page() -> str:
    """Render docs/errors.md from the current cases."""
    return HEAD + "".join(f"{_render_row(case)}\n" for case in CASES)


def _render_row(case: ErrorCase) -> str:
    description = case.description.replace("|", "\\|")
    return f"| {case.server} | {description} | {case.error.__name__} | `{case.code}` | {describe_action(case.error)} |"


if __name__ == "__main__":
    PAGE.write_text(render_page())
