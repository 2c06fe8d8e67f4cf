"""Runs `async def` tests on asyncio, each on a loop of its own, with a limit that names the stuck test."""

import asyncio
import faulthandler
import inspect
from typing import Any

import pytest

TEST_SECONDS = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}

    async def bounded() -> None:
        async with asyncio.timeout(TEST_SECONDS):
            await pyfuncitem.obj(**arguments)

    faulthandler.dump_traceback_later(TEST_SECONDS * 2, exit=True)
    try:
        asyncio.run(bounded())
    finally:
        faulthandler.cancel_dump_traceback_later()
    return True
