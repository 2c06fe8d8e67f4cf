"""One Chromium for all tests of a process: its start takes longer than most of what they do with it."""

import asyncio
from collections.abc import Generator

import pytest
from playwright.async_api import Browser

from tests.surfaces.web.browser import browser


@pytest.fixture(scope="session")
def runner() -> Generator[asyncio.Runner]:
    """The event loop that the browser belongs to, and so the tests that use it."""
    with asyncio.Runner() as running:
        yield running


@pytest.fixture(scope="session")
def shared(runner: asyncio.Runner) -> Generator[Browser]:
    opening = browser()
    yield runner.run(opening.__aenter__())
    runner.run(opening.__aexit__(None, None, None))


@pytest.fixture
def chromium(runner: asyncio.Runner, shared: Browser) -> Generator[Browser]:
    """The browser, with nothing open and nothing kept; what a test opens is closed behind it."""

    async def close() -> None:
        for context in shared.contexts:
            await context.close()

    yield shared
    runner.run(close())
