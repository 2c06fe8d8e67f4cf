"""From settings to routes: which model answers, through which protocol, at which price."""

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
from hark.app.settings.secrets import without_secrets
from hark.app.settings.types import RouteSettings
from hark.engine.turn.routes import Route
from hark.protocol.provider import Provider
from hark.providers.catalog import Catalog, ModelFacts

if TYPE_CHECKING:
    import aiohttp

    from hark.providers.endpoint import Endpoint

PROVIDERS = ("openai", "responses", "anthropic", "local")
EMBEDDED_MODEL = "SmolLM2-135M"
HOMES = {"openai": OPENAI, "responses": OPENAI, "anthropic": ANTHROPIC}


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that a route is made of: two that are equal make the same route."""

    route: RouteSettings
    key: str = field(repr=False)
    facts: ModelFacts


class RouteMaker:
    """Makes routes over one pool of connections; `ends` gets what ends the processes that they start."""

    def __init__(self, http: "aiohttp.ClientSession", notice: Callable[[str], None], ends: AsyncExitStack) -> None:
        self._http = http
        self._notice = notice
        self._ends = ends
        self._made: dict[Recipe, Route] = {}
        self._gates: dict[tuple[str, str], anyio.CapacityLimiter] = {}

    def make(self, given: Sequence[RouteSettings], models: Mapping[str, ModelFacts]) -> list[Route]:
        """Return routes, ready to use; one of which nothing has changed is the same object as the last time.

        Raises:
            SettingsError: One can't work; then nothing has changed.
        """
        catalog = Catalog(models)
        recipes = [_recipe(completed(one), catalog) for one in given]
        is_first = not self._made
        made: dict[Recipe, Route] = {}
        for recipe in recipes:
            made[recipe] = self._made.get(recipe) or self._route(recipe, starts=is_first and not made)
        self._made = made
        return list(made.values())

    def _route(self, recipe: Recipe, *, starts: bool) -> Route:
        route, facts = recipe.route, recipe.facts
        is_embedded = route.provider == "local"
        return Route(
            route.name,
            self._embedded(starts=starts) if is_embedded else self._provider(route, _endpoint(recipe)),
            facts.input_price,
            facts.output_price,
            facts.cached_price,
            facts.context_tokens,
            model=EMBEDDED_MODEL if is_embedded else route.model,
            is_local=is_embedded or _is_local(route.base_url),
            offers_tools=not is_embedded,
            first_byte_seconds=route.first_byte_seconds,
            idle_seconds=route.idle_seconds,
            gate=self._gate(route),
        )

    def _gate(self, route: RouteSettings) -> anyio.CapacityLimiter | None:
        """Return what lets so many requests through at a time: the same one for the same server, as long as we run."""
        if not route.max_concurrent:
            return None
        gate = self._gates.setdefault((route.name, route.base_url), anyio.CapacityLimiter(route.max_concurrent))
        gate.total_tokens = route.max_concurrent
        return gate

    def _provider(self, route: RouteSettings, endpoint: "Endpoint") -> Provider:
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

    def _embedded(self, *, starts: bool) -> Provider:
        from hark.providers.local.provider import LocalModel

        model = LocalModel(self._http, self._notice)
        self._ends.push_async_callback(model.close)
        if starts:
            model.server.start()  # while the person still types
        return model


@asynccontextmanager
async def opened_maker(http: "aiohttp.ClientSession", notice: Callable[[str], None]) -> AsyncGenerator[RouteMaker]:
    """A maker of routes, for as long as they are needed. `notice` gets lines that a person should see."""
    async with AsyncExitStack() as ends:
        yield RouteMaker(http, notice, ends)


def completed(route: RouteSettings) -> RouteSettings:
    """Return the route with what is known of its provider: `provider = "ollama"` is enough to find the server.

    Raises:
        SettingsError: There is no such provider, or something that it needs is missing.
    """
    where = f"Route {route.name!r}"
    preset = PRESETS.get(route.provider)
    if route.provider in PROVIDERS:
        route = _at_home(route)
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
        raise SettingsError(f"{where}: provider {route.provider!r} is not known; it must be one of {names}.")
    if route.provider == "local":
        return route
    if urlsplit(route.base_url).scheme not in ("http", "https"):
        raise SettingsError(f"{where}: base_url {without_secrets(route.base_url)!r} is not an http(s) address.")
    if not route.model:
        raise SettingsError(f"{where}: model is missing.")
    return route


def problem_of(route: RouteSettings) -> str:
    """Return why a route can't work, as far as that can be told without asking its server; "" when it can."""
    try:
        _key(completed(route))
    except SettingsError as error:
        return str(error)
    return ""


def _at_home(route: RouteSettings) -> RouteSettings:
    """Return the route; without an address, a protocol is spoken where it comes from."""
    home = HOMES.get(route.provider)
    if home is None or route.base_url:
        return route
    key_env = route.api_key_env or ("" if route.api_key else home.key_env)
    return structs.replace(route, base_url=home.base_url, api_key_env=key_env)


def _recipe(route: RouteSettings, catalog: Catalog) -> Recipe:
    if route.provider == "local":
        return Recipe(route, "", catalog.facts(EMBEDDED_MODEL))
    own = ModelFacts(route.context_tokens, route.input_price, route.output_price, route.cached_price)
    return Recipe(route, _key(route), own.over(catalog.facts(route.model)))


def _endpoint(recipe: Recipe) -> "Endpoint":
    from hark.providers.endpoint import Endpoint

    route = recipe.route
    return Endpoint(route.base_url, route.model, recipe.key, route.stream)


def _is_local(base_url: str) -> bool:
    """Tell whether a server is on this machine or in this network: such a one may take its time."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".localhost", ".lan"))


def _key(route: RouteSettings) -> str:
    if route.api_key or not route.api_key_env:
        return route.api_key
    key = os.environ.get(route.api_key_env)
    if not key:
        name = route.api_key_env
        raise SettingsError(f"Route {route.name!r}: the environment has no {name}. Set it, or change api_key_env.")
    return key
