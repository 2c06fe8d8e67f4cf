"""Fixtures for browser tests. All tests in a process share one Chromium, because it starts slowly."""

import asyncio
from collections.abc import Generator

import pytest
from playwright.async_api import Browser

from tests.surfaces.web.browser import launch_browser


@pytest.fixture(scope="session")
def runner() -> Generator[asyncio.Runner]:
    """The event loop shared by the browser and the tests that use it."""
    with asyncio.Runner() as running:
        yield running


@pytest.fixture(scope="session")
def shared_browser(runner: asyncio.Runner) -> Generator[Browser]:
    launching = launch_browser()
    yield runner.run(launching.__aenter__())
    runner.run(launching.__aexit__(None, None, None))


@pytest.fixture
def chromium(runner: asyncio.Runner, shared_browser: Browser) -> Generator[Browser]:
    """The shared browser with no open contexts. Contexts that the test opens are closed when the test ends."""

    async def close() -> None:
        for context in shared_browser.contexts:
            await context.close()

    yield shared_browser
    runner.run(close())
