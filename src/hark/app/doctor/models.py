"""Model checks of `hark doctor`: which routes are configured or detected, and whether they answer."""

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hark.app.doctor.results import CheckResult, Level, connection_problem
from hark.app.settings import SettingsError
from hark.app.settings.presets import detect_route, find_local_servers
from hark.app.settings.routes import RouteMaker, complete_route, open_route_maker
from hark.app.settings.types import RouteSettings, Settings
from hark.engine.turn.routes import Route
from hark.protocol.messages import UserMessage
from hark.protocol.provider import ProviderError, Request, TransientProviderError

if TYPE_CHECKING:
    import aiohttp

ANSWER = "answer"
UNREACHABLE = "Check base_url and the network, or choose another model with hark setup."
# A server that can be reached may have to load its model first.
REPLY_TIMEOUT_SECONDS = 60.0
# The reply is cancelled at its first chunk. Some servers refuse a smaller token limit.
TEST_REQUEST = Request("", (UserMessage("doctor", "Say: hi"),), max_tokens=16)


async def check_models(settings: Settings) -> list[CheckResult]:
    """Find local model servers, and test all configured routes, or the detected route if none is configured."""
    from hark.providers.connections import open_session

    async with open_session() as http:
        answering, routes = await asyncio.gather(find_local_servers(http), check_routes(settings, http))
    servers = [f"{preset.title} ({route.model})" for preset, route in answering]
    text = ", ".join(servers) or "no local server is responding (Ollama, llama.cpp, ...)"
    return [CheckResult("servers", Level.OK, text), _check_embedded_model(), *routes]


def _check_embedded_model() -> CheckResult:
    from hark.providers.local.server import find_weights

    try:
        return CheckResult("embedded", Level.OK, find_weights().stem)
    except ProviderError as error:
        return CheckResult("embedded", Level.WARN, str(error))


async def check_routes(settings: Settings, http: "aiohttp.ClientSession") -> list[CheckResult]:
    """Describe and test every configured route, or the detected route if none is configured."""
    try:
        routes = settings.routes or (await detect_route(http),)
    except SettingsError as error:
        return [CheckResult("route", Level.BAD, str(error), "Choose a model with hark setup.")]
    async with open_route_maker(http, lambda _: None) as maker:
        results = await asyncio.gather(*(_check_route(maker, settings, route_settings) for route_settings in routes))
    return [result for route_results in results for result in route_results]


async def _check_route(maker: RouteMaker, settings: Settings, route_settings: RouteSettings) -> list[CheckResult]:
    try:
        route = maker.make([route_settings], settings.models)[0]
    except SettingsError as error:
        return [CheckResult("route", Level.BAD, str(error))]
    return [
        CheckResult("route", Level.OK, _describe_route(route_settings, is_detected=not settings.routes)),
        await _test_route(route, complete_route(route_settings).base_url),
    ]


def _describe_route(route_settings: RouteSettings, *, is_detected: bool) -> str:
    route = complete_route(route_settings)
    url = urlsplit(route.base_url)
    where = f" {route.model} at {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}" if url.netloc else ""
    why = ""
    if is_detected:
        why = f", because {route.api_key_env} is set" if route.api_key_env else ", detected on this machine"
    return f"{route.name}: {route.provider}{where}{why}"


async def _test_route(route: Route, base_url: str) -> CheckResult:
    """Test the connection, which fails fast, and then request a short reply from the model."""
    if urlsplit(base_url).hostname and (problem := await connection_problem(base_url)):
        return CheckResult(ANSWER, Level.BAD, f"{route.name}: {problem}", UNREACHABLE)
    begin = time.perf_counter()
    try:
        async with asyncio.timeout(REPLY_TIMEOUT_SECONDS), aclosing(route.provider.stream(TEST_REQUEST)) as chunks:
            async for _ in chunks:
                break
    except TransientProviderError as error:
        return CheckResult(ANSWER, Level.BAD, f"{route.name}: {error}", UNREACHABLE)
    except ProviderError as error:
        return CheckResult(ANSWER, Level.BAD, f"{route.name}: {error}", "Choose another key or model with hark setup.")
    except TimeoutError:
        text = f"{route.name}: no reply within {REPLY_TIMEOUT_SECONDS:.0f} s."
        return CheckResult(ANSWER, Level.BAD, text, "Check the server, or choose another model with hark setup.")
    return CheckResult(ANSWER, Level.OK, f"{route.name}: first reply after {time.perf_counter() - begin:.2f} s")
