"""Runs `async def` tests on asyncio, with a time limit that reports the stuck test.

Each test has its own event loop, unless it uses the fixture `runner`, whose loop is shared.
"""

import asyncio
import faulthandler
import inspect
import os
import signal
import tempfile
from typing import Any

import pytest

os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{tempfile.gettempdir()}/hark-hypothesis")

TEST_SECONDS = 180.0  # on a busy machine

# The parent may have made us ignore signals, as nohup and background jobs do. Processes of the tests must receive
# them.
for _number, _default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _default)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}

    async def run_with_timeout() -> None:
        async with asyncio.timeout(TEST_SECONDS):
            await pyfuncitem.obj(**arguments)

    faulthandler.dump_traceback_later(TEST_SECONDS * 2, exit=True)
    try:
        if isinstance(runner := pyfuncitem.funcargs.get("runner"), asyncio.Runner):
            runner.run(run_with_timeout())
        else:
            asyncio.run(run_with_timeout())
    finally:
        faulthandler.cancel_dump_traceback_later()
    return True
