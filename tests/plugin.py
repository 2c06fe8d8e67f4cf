"""Runs `async def` tests on asyncio and fails every test that exceeds its time limit.

Each test has its own event loop, unless it uses the fixture `runner`, whose loop is shared.
"""

import asyncio
import inspect
import os
import signal
import tempfile
from collections.abc import Generator
from typing import Any

import pytest

from tests.time_limit import DEFAULT_SECONDS, TimeLimit

os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{tempfile.gettempdir()}/hark-hypothesis")

# The parent may have made us ignore signals, as nohup and background jobs do. Processes of the tests must receive
# them.
for _number, _default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _default)

_LIMIT = pytest.StashKey[TimeLimit]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("test_seconds", "time limit of each phase of a test", default=str(DEFAULT_SECONDS))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "time_limit(seconds, reason): a longer time limit, for a test that takes long on an idle machine"
    )
    config.addinivalue_line(
        "markers", "slow_setup(seconds, reason): a longer time limit for fixtures that install or start a program once"
    )


def _limit(item: pytest.Item, phase: str, marker_name: str = "time_limit") -> TimeLimit:
    seconds = float(item.config.getini("test_seconds"))
    for marker in item.iter_markers(marker_name):
        assert marker.kwargs["reason"]
        seconds = max(seconds, float(marker.args[0]))
    limit = item.stash[_LIMIT] = TimeLimit(f"{item.nodeid} ({phase})", seconds)
    return limit


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    with _limit(item, "setup", "slow_setup"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    with _limit(item, "call"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    with _limit(item, "teardown"):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}
    test = pyfuncitem.stash[_LIMIT].run(pyfuncitem.obj(**arguments))
    if isinstance(runner := pyfuncitem.funcargs.get("runner"), asyncio.Runner):
        runner.run(test)
    else:
        asyncio.run(test)
    return True
