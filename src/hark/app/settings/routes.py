"""Creates routes from settings: the provider, endpoint, key and prices of each."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
from msgspec import structs

from hark.app.settings import SettingsError
from hark.app.settings.presets import ANTHROPIC, OPENAI, PRESETS
from hark.app.settings.secrets import hide_secrets
from hark.app.settings.types import RouteSettings
from hark.engine.turn.routes import Route
from hark.protocol.provider import Provider
from hark.providers.catalog import ModelCatalog, ModelFacts

if TYPE_CHECKING:
    import aiohttp

    from hark.providers.endpoint import Endpoint
    from hark.providers.http_provider import HttpProvider

PROVIDERS = ("openai", "responses", "anthropic", "local")
EMBEDDED_MODEL = "SmolLM2-135M"
DEFAULT_PRESETS = {"openai": OPENAI, "responses": OPENAI, "anthropic": ANTHROPIC}


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """The complete specification of a route. Equal specifications yield the same route."""

    route: RouteSettings
    key: str = field(repr=False)
    facts: ModelFacts


class RouteMaker:
    """Creates routes that share a connection pool. On exit, `exit_stack` stops the processes of the routes."""

    def __init__(
        self, http: "aiohttp.ClientSession", notice: Callable[[str], None], exit_stack: AsyncExitStack
    ) -> None:
        self._http = http
        self._notice = notice
        self._exit_stack = exit_stack
        self._routes: dict[RouteSpec, Route] = {}
        self._limiters: dict[tuple[str, str], anyio.CapacityLimiter] = {}

    def make(self, route_settings: Sequence[RouteSettings], models: Mapping[str, ModelFacts]) -> list[Route]:
        """Return the routes, ready to use. A route whose settings are unchanged is reused.

        Raises:
            SettingsError: A route can't work. Nothing has changed.
        """
        catalog = ModelCatalog(models)
        specs = [_route_spec(complete_route(settings), catalog) for settings in route_settings]
        is_first = not self._routes
        routes: dict[RouteSpec, Route] = {}
        for spec in specs:
            routes[spec] = self._routes.get(spec) or self._make_route(spec, is_preloaded=is_first and not routes)
        self._routes = routes
        return list(routes.values())

    def _make_route(self, spec: RouteSpec, *, is_preloaded: bool) -> Route:
        route, facts = spec.route, spec.facts
        is_embedded = route.provider == "local"
        http_provider = None if is_embedded else self._make_provider(route, _endpoint(spec))
        return Route(
            route.name,
            http_provider or self._make_embedded_provider(is_preloaded=is_preloaded),
            facts.input_price,
            facts.output_price,
            facts.cached_price,
            facts.context_tokens,
            model=EMBEDDED_MODEL if is_embedded else route.model,
            is_local=is_embedded or _is_local(route.base_url),
            offers_tools=not is_embedded,
            first_byte_seconds=route.first_byte_seconds,
            idle_seconds=route.idle_seconds,
            limiter=self._request_limiter(route),
            probe=http_provider.is_reachable if http_provider else None,
        )

    def _request_limiter(self, route: RouteSettings) -> anyio.CapacityLimiter | None:
        """Return the shared limiter for concurrent requests to the route's server, or None without a limit."""
        if not route.max_concurrent:
            return None
        limiter = self._limiters.setdefault((route.name, route.base_url), anyio.CapacityLimiter(route.max_concurrent))
        limiter.total_tokens = route.max_concurrent
        return limiter

    def _make_provider(self, route: RouteSettings, endpoint: "Endpoint") -> "HttpProvider":
        match route.provider:
            case "anthropic":
                from hark.providers.anthropic.provider import Anthropic

                return Anthropic(self._http, endpoint)
            case "responses":
                from hark.providers.openai.responses import OpenAIResponses

                return OpenAIResponses(self._http, endpoint)
            case _:
                from hark.providers.openai.chat import OpenAIChat

                return OpenAIChat(self._http, endpoint)

    def _make_embedded_provider(self, *, is_preloaded: bool) -> Provider:
        from hark.providers.local.provider import LocalModel

        model = LocalModel(self._http, self._notice)
        self._exit_stack.push_async_callback(model.close)
        if is_preloaded:
            model.server.start()  # while the user is still typing
        return model


@asynccontextmanager
async def open_route_maker(http: "aiohttp.ClientSession", notice: Callable[[str], None]) -> AsyncGenerator[RouteMaker]:
    """Yield a route maker, and stop its processes on exit. `notice` receives messages for the user."""
    async with AsyncExitStack() as exit_stack:
        yield RouteMaker(http, notice, exit_stack)


def complete_route(route: RouteSettings) -> RouteSettings:
    """Return the route with its provider's defaults. With `provider = "ollama"`, no `base_url` is needed.

    Raises:
        SettingsError: The provider is unknown, or a required setting is missing.
    """
    where = f"Route {route.name!r}"
    preset = PRESETS.get(route.provider)
    if route.provider in PROVIDERS:
        route = _with_default_server(route)
    elif preset is not None:
        route = structs.replace(
            route,
            provider=preset.provider,
            base_url=route.base_url or preset.base_url,
            model=route.model or preset.model,
            api_key_env=route.api_key_env or ("" if route.api_key else preset.key_env),
        )
    else:
        names = ", ".join(dict.fromkeys([*PROVIDERS, *PRESETS]))
        raise SettingsError(f"{where}: unknown provider {route.provider!r}; it must be one of {names}.")
    if route.provider == "local":
        return route
    if urlsplit(route.base_url).scheme not in ("http", "https"):
        raise SettingsError(f"{where}: base_url {hide_secrets(route.base_url)!r} is not an http(s) URL.")
    if not route.model:
        raise SettingsError(f"{where}: model is missing.")
    return route


def route_problem(route: RouteSettings) -> str:
    """Return why a route can't work, or "" if no problem was found. The server is not contacted."""
    try:
        _api_key(complete_route(route))
    except SettingsError as error:
        return str(error)
    return ""


def _with_default_server(route: RouteSettings) -> RouteSettings:
    """Return the route. If it has no base URL, the official server for its protocol is used."""
    preset = DEFAULT_PRESETS.get(route.provider)
    if preset is None or route.base_url:
        return route
    key_env = route.api_key_env or ("" if route.api_key else preset.key_env)
    return structs.replace(route, base_url=preset.base_url, api_key_env=key_env)


def _route_spec(route: RouteSettings, catalog: ModelCatalog) -> RouteSpec:
    if route.provider == "local":
        return RouteSpec(route, "", catalog.get_facts(EMBEDDED_MODEL))
    configured = ModelFacts(route.context_tokens, route.input_price, route.output_price, route.cached_price)
    return RouteSpec(route, _api_key(route), configured.with_defaults(catalog.get_facts(route.model)))


def _endpoint(spec: RouteSpec) -> "Endpoint":
    from hark.providers.endpoint import Endpoint

    route = spec.route
    return Endpoint(route.base_url, route.model, spec.key, route.stream)


def _is_local(base_url: str) -> bool:
    """Return whether a server is on this machine or the local network. Such a server may be slow."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".localhost", ".lan"))


def _api_key(route: RouteSettings) -> str:
    if route.api_key or not route.api_key_env:
        return route.api_key
    key = os.environ.get(route.api_key_env)
    if not key:
        name = route.api_key_env
        raise SettingsError(
            f"Route {route.name!r}: the environment variable {name} is not set. Set it, or change api_key_env."
        )
    return key
