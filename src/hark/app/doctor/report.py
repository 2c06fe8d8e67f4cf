"""The checks of `hark doctor` and `/doctor`: whether a turn can run, and how to fix problems."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from pathlib import Path
from typing import Any

from hark.app.doctor import machine
from hark.app.doctor.machine import check_terminal
from hark.app.doctor.models import ANSWER, check_models
from hark.app.doctor.results import CheckResult, Level, run_check
from hark.app.global_pause import PauseFile
from hark.app.settings import SettingsError, config
from hark.app.settings.types import Settings

READY, NOT_READY = "Ready.", 'Not ready: fix the lines marked "bad".'


async def make_report() -> str:
    """Run all checks and return the report as text."""
    results = [result async for result in run_checks()]
    return "\n".join([*map(str, results), READY if is_ready(results) else NOT_READY])


async def run_checks() -> AsyncGenerator[CheckResult]:
    """Run all checks concurrently, each with a time limit. Yield their results in a fixed order."""
    home = config.home_directory()
    settings, settings_results = _load_settings(home)
    tasks = [asyncio.ensure_future(check) for check in _make_checks(home, settings, settings_results)]
    try:
        for task in tasks:
            for result in await task:
                yield result
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _make_checks(
    home: Path, settings: Settings | None, settings_results: list[CheckResult]
) -> list[Coroutine[Any, Any, Sequence[CheckResult]]]:
    workspace = config.workspace()
    return [
        run_check("hark", machine.check_version),
        run_check("home", lambda: machine.check_home(home)),
        run_check("database", lambda: machine.check_database(home / "hark.db")),
        run_check("settings", lambda: settings_results),
        run_check("keys", machine.check_keys),
        run_check("sandbox", lambda: machine.check_sandbox(settings, workspace)),
        run_check("programs", machine.check_programs),
        run_check("processes", machine.check_processes),
        run_check("terminal", check_terminal),
        run_check("voice", lambda: machine.check_voice(settings)),
        _check_mcp(home, settings),
        *([check_models(settings)] if settings else []),
    ]


async def _check_mcp(home: Path, settings: Settings | None) -> list[CheckResult]:
    if settings is None or not settings.mcp:
        return [CheckResult("mcp", Level.OK, "no servers in the settings")] if settings else []
    from hark.app.doctor.mcp_servers import check_mcp_servers

    return await check_mcp_servers(home, settings)


def _load_settings(home: Path) -> tuple[Settings | None, list[CheckResult]]:
    workspace = config.workspace()
    try:
        settings = config.load(home, workspace)
    except SettingsError as error:
        return None, [CheckResult("settings", Level.BAD, str(error))]
    files = (home / "config.toml", workspace / ".hark" / "config.toml")
    existing = ", ".join(str(file) for file in files if file.exists())
    results = [CheckResult("settings", Level.OK, existing or "no config.toml; `hark setup` writes one")]
    if warning := config.ignored_settings_notice(home, workspace):
        results.append(CheckResult("settings", Level.WARN, warning))
    if PauseFile(home).exists:
        results.append(CheckResult("pause", Level.WARN, "all sessions are paused; `hark unpause` ends the pause"))
    return settings, results


def is_ready(results: Sequence[CheckResult]) -> bool:
    """Return whether at least one model answers and no other check failed."""
    others = [result for result in results if result.name not in (ANSWER, "route")]
    answers = any(result.name == ANSWER and result.level is Level.OK for result in results)
    return answers and all(result.level is not Level.BAD for result in others)
