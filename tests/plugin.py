"""Runs `async def` tests on asyncio, with a limit that names the stuck test.

Each has a loop of its own, unless it asks for a fixture named `runner`: that one's loop is then shared.
"""

import asyncio
import faulthandler
import inspect
import signal
from typing import Any

import pytest

TEST_SECONDS = 180.0  # on a machine that is busy with other things

# Who started us may have us ignore signals, as nohup and a shell's background do: what the tests start must hear them.
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


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
        if isinstance(runner := pyfuncitem.funcargs.get("runner"), asyncio.Runner):
            runner.run(bounded())
        else:
            asyncio.run(bounded())
    finally:
        faulthandler.cancel_dump_traceback_later()
    return True
