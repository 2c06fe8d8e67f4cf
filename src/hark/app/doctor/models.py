"""What `hark doctor` says about models: which would answer, and whether they do."""

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hark.app.doctor.results import Finding, Level, reach
from hark.app.settings import SettingsError
from hark.app.settings.presets import detect, local_servers
from hark.app.settings.routes import RouteMaker, completed, opened_maker
from hark.app.settings.types import RouteSettings, Settings
from hark.engine.turn.routes import Route
from hark.protocol.messages import UserMessage
from hark.protocol.provider import ProviderError, Request, TransientProviderError

if TYPE_CHECKING:
    import aiohttp

ANSWER = "answer"
UNREACHABLE = "Check the address and the network, or choose another model: hark setup."
# A server that can be reached may have to load its model first.
TRIAL_SECONDS = 60.0
# A reply is cut at its first piece; some servers refuse to promise fewer tokens.
TRIAL = Request("", (UserMessage("doctor", "Say: hi"),), max_tokens=16)


async def models(settings: Settings) -> list[Finding]:
    """Look for servers on this machine, and try every configured route side by side, or the one that is detected."""
    from hark.providers.connections import open_session

    async with open_session() as http:
        answering, routes = await asyncio.gather(local_servers(http), tried(settings, http))
    servers = [f"{preset.title} ({route.model})" for preset, route in answering]
    text = ", ".join(servers) or "no local one answers (Ollama, llama.cpp, ...)"
    return [Finding("servers", Level.OK, text), _embedded(), *routes]


def _embedded() -> Finding:
    from hark.providers.local.server import find_weights

    try:
        return Finding("embedded", Level.OK, find_weights().stem)
    except ProviderError as error:
        return Finding("embedded", Level.WARN, str(error))


async def tried(settings: Settings, http: "aiohttp.ClientSession") -> list[Finding]:
    """Return, for every configured route or the one that is detected, what it is and whether it answers."""
    try:
        routes = settings.routes or (await detect(http),)
    except SettingsError as error:
        return [Finding("route", Level.BAD, str(error), "hark setup helps to choose one.")]
    async with opened_maker(http, lambda _: None) as maker:
        found = await asyncio.gather(*(_route(maker, settings, given) for given in routes))
    return [finding for findings in found for finding in findings]


async def _route(maker: RouteMaker, settings: Settings, given: RouteSettings) -> list[Finding]:
    try:
        route = maker.make([given], settings.models)[0]
    except SettingsError as error:
        return [Finding("route", Level.BAD, str(error))]
    return [
        Finding("route", Level.OK, _described(given, is_detected=not settings.routes)),
        await _trial(route, completed(given).base_url),
    ]


def _described(given: RouteSettings, *, is_detected: bool) -> str:
    route = completed(given)
    place = urlsplit(route.base_url)
    where = f" {route.model} at {place.scheme}://{place.netloc.rpartition('@')[2]}{place.path}" if place.netloc else ""
    why = ""
    if is_detected:
        why = f", because {route.api_key_env} is set" if route.api_key_env else ", as found here"
    return f"{route.name}: {route.provider}{where}{why}"


async def _trial(route: Route, base_url: str) -> Finding:
    """Reach the server first, which is known soon; then have the model say something."""
    if urlsplit(base_url).hostname and (problem := await reach(base_url)):
        return Finding(ANSWER, Level.BAD, f"{route.name}: {problem}", UNREACHABLE)
    begin = time.perf_counter()
    try:
        async with asyncio.timeout(TRIAL_SECONDS), aclosing(route.provider.stream(TRIAL)) as chunks:
            async for _ in chunks:
                break
    except TransientProviderError as error:
        return Finding(ANSWER, Level.BAD, f"{route.name}: {error}", UNREACHABLE)
    except ProviderError as error:
        return Finding(ANSWER, Level.BAD, f"{route.name}: {error}", "Choose another key or model: hark setup.")
    except TimeoutError:
        text = f"{route.name}: nothing came within {TRIAL_SECONDS:.0f} s."
        return Finding(ANSWER, Level.BAD, text, "Look at the server, or choose another model: hark setup.")
    return Finding(ANSWER, Level.OK, f"{route.name}: the first piece came after {time.perf_counter() - begin:.2f} s")
