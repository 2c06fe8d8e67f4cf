"""The checks of `hark doctor` and `/doctor`: whether a turn can run, and what to do when not."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from pathlib import Path
from typing import Any

from hark.app.doctor import machine
from hark.app.doctor.machine import terminal
from hark.app.doctor.models import ANSWER, models
from hark.app.doctor.results import Finding, Level, in_time
from hark.app.settings import SettingsError, config
from hark.app.settings.types import Settings

WELL, UNWELL = "A turn can run.", "No turn can run: see what is bad."


async def report() -> str:
    """Return what is found as a text."""
    found = [finding async for finding in findings()]
    return "\n".join([*map(str, found), WELL if can_run(found) else UNWELL])


async def findings() -> AsyncGenerator[Finding]:
    """Yield what is found, always in the same order. All looks are made side by side, and each is bounded."""
    home = config.home_directory()
    settings, about_settings = _settings(home)
    looks = [asyncio.ensure_future(look) for look in _looks(home, settings, about_settings)]
    try:
        for look in looks:
            for finding in await look:
                yield finding
    finally:
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)


def _looks(
    home: Path, settings: Settings | None, about_settings: list[Finding]
) -> list[Coroutine[Any, Any, Sequence[Finding]]]:
    workspace = config.workspace()
    return [
        in_time("hark", machine.version),
        in_time("home", lambda: machine.home_disk(home)),
        in_time("database", lambda: machine.database(home / "hark.db")),
        in_time("settings", lambda: about_settings),
        in_time("keys", machine.keys),
        in_time("sandbox", lambda: machine.sandbox(settings, workspace)),
        in_time("programs", machine.programs),
        in_time("processes", machine.processes),
        in_time("terminal", terminal),
        in_time("voice", lambda: machine.voice(settings)),
        _mcp(home, settings),
        *([models(settings)] if settings else []),
    ]


async def _mcp(home: Path, settings: Settings | None) -> list[Finding]:
    if settings is None or not settings.mcp:
        return [Finding("mcp", Level.OK, "no servers in the settings")] if settings else []
    from hark.app.doctor.mcp_servers import mcp_servers

    return await mcp_servers(home, settings)


def _settings(home: Path) -> tuple[Settings | None, list[Finding]]:
    workspace = config.workspace()
    try:
        settings = config.load(home, workspace)
    except SettingsError as error:
        return None, [Finding("settings", Level.BAD, str(error))]
    files = (home / "config.toml", workspace / ".hark" / "config.toml")
    places = ", ".join(str(file) for file in files if file.exists())
    found = [Finding("settings", Level.OK, places or "no config.toml: `hark setup` writes one")]
    if left := config.left_out(home, workspace):
        found.append(Finding("settings", Level.WARN, left))
    return settings, found


def can_run(found: Sequence[Finding]) -> bool:
    """Tell whether nothing is bad but, perhaps, some of several models."""
    others = [finding for finding in found if finding.name not in (ANSWER, "route")]
    answers = any(finding.name == ANSWER and finding.level is Level.OK for finding in found)
    return answers and all(finding.level is not Level.BAD for finding in others)
