"""`hark doctor`: which model would answer, whether it does, and what else a turn needs of this machine."""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hark.app import config
from hark.app.checks import Finding, Level, machine
from hark.app.detect import detect, local_servers
from hark.app.routes import completed, opened_maker
from hark.app.settings import RouteSettings, Settings, SettingsError
from hark.app.shutdown import COMPLETED, FAILED
from hark.engine.routes import Route
from hark.protocol.messages import UserMessage
from hark.protocol.provider import ProviderError, Request, TransientProviderError
from hark.providers.connections import open_session

if TYPE_CHECKING:
    import aiohttp

TRIAL_SECONDS = 60.0
# A reply is cut at its first piece; some servers refuse to promise fewer tokens.
TRIAL = Request("", (UserMessage("doctor", "Say: hi"),), max_tokens=16)


async def doctor(options: argparse.Namespace) -> int:
    """Print what is found, line by line; 0 when a turn could run."""
    home = config.home_directory()
    is_well = True
    for finding in machine(home):
        is_well &= finding.level is not Level.BAD
        _print(finding)
    answers = 0
    async for finding in _models(home):
        answers += finding.name == "answer" and finding.level is Level.OK
        _print(finding)
    if is_well and answers:
        _print("A turn can run.")
        return COMPLETED
    _print("No turn can run: see what is bad.")
    return FAILED


async def _models(home: Path) -> AsyncIterator[Finding]:
    try:
        settings = config.load(home, config.workspace())
    except SettingsError as error:
        yield Finding("settings", Level.BAD, str(error))
        return
    yield Finding("settings", Level.OK, _places(home) or "no config.toml: `hark setup` writes one")
    async with open_session() as http:
        servers = [f"{preset.title} ({route.model})" for preset, route in await local_servers(http)]
        yield Finding("servers", Level.OK, ", ".join(servers) or "no local one answers (Ollama, llama.cpp, ...)")
        yield _embedded()
        async for finding in _tried(settings, http):
            yield finding


def _places(home: Path) -> str:
    files = (home / "config.toml", config.workspace() / ".hark" / "config.toml")
    return ", ".join(str(file) for file in files if file.exists())


def _embedded() -> Finding:
    from hark.providers.local_server import find_weights

    try:
        return Finding("embedded", Level.OK, find_weights().stem)
    except ProviderError as error:
        return Finding("embedded", Level.NOTE, str(error))


async def _tried(settings: Settings, http: "aiohttp.ClientSession") -> AsyncIterator[Finding]:
    """Try every configured route, in the order in which they would serve; without any, the one that is detected."""
    try:
        routes = settings.routes or (await detect(http),)
    except SettingsError as error:
        yield Finding("route", Level.BAD, str(error))
        return
    async with opened_maker(http, settings.models, lambda _: None) as maker:
        for given in routes:
            try:
                route = maker.make(given)
            except SettingsError as error:
                yield Finding("route", Level.BAD, str(error))
                continue
            yield Finding("route", Level.OK, _described(given, is_detected=not settings.routes))
            yield await _trial(route)


def _described(given: RouteSettings, *, is_detected: bool) -> str:
    route = completed(given)
    place = urlsplit(route.base_url)
    where = f" {route.model} at {place.scheme}://{place.netloc.rpartition('@')[2]}{place.path}" if place.netloc else ""
    why = ""
    if is_detected:
        why = f", because {route.api_key_env} is set" if route.api_key_env else ", as found here"
    return f"{route.name}: {route.provider}{where}{why}"


async def _trial(route: Route) -> Finding:
    begin = time.perf_counter()
    try:
        async with asyncio.timeout(TRIAL_SECONDS), aclosing(route.provider.stream(TRIAL)) as chunks:
            async for _ in chunks:
                break
    except TransientProviderError as error:
        advice = "Check the address and the network, or choose another model: hark setup."
        return Finding("answer", Level.BAD, f"{route.name}: {error}", advice)
    except ProviderError as error:
        return Finding("answer", Level.BAD, f"{route.name}: {error}")
    except TimeoutError:
        text = f"{route.name}: nothing came within {TRIAL_SECONDS:.0f} s."
        return Finding("answer", Level.BAD, text, "Look at the server, or choose another model: hark setup.")
    return Finding("answer", Level.OK, f"{route.name}: the first piece came after {time.perf_counter() - begin:.2f} s")


def _print(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
