"""Routes made from settings and presets, and the route that is detected without settings."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from hark.app.settings import SettingsError
from hark.app.settings.presets import (
    OLLAMA,
    PROBE_SECONDS,
    VLLM,
    Preset,
    detect_route,
    find_local_servers,
    route_from_environment,
)
from hark.app.settings.routes import complete_route, open_route_maker
from hark.app.settings.types import RouteSettings
from hark.engine.turn.routes import Route
from hark.providers.anthropic.provider import Anthropic
from hark.providers.catalog import ModelFacts
from hark.providers.connections import open_session
from hark.providers.local.provider import LocalModel
from hark.providers.openai.chat import OpenAIChat
from hark.providers.openai.responses import OpenAIResponses
from tests.waiting import at_most

URL = "http://127.0.0.1:9/v1"


def fail_on_notice(text: str) -> None:
    raise AssertionError(f"unexpected notice: {text}")


@asynccontextmanager
async def route_factory(**models: ModelFacts) -> AsyncGenerator[Callable[[RouteSettings], Route]]:
    async with open_session() as http, open_route_maker(http, fail_on_notice) as route_maker:
        yield lambda route: route_maker.make([route], models)[0]


@asynccontextmanager
async def model_server(answer: object, status: int = 200) -> AsyncGenerator[str]:
    """Run a fake model server that sends this response to a request for its model list."""

    async def models(request: web.Request) -> web.Response:
        return web.json_response(answer, status=status)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def _without_model_variables(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for name in ("OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "HARK_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("provider", "kind"), [("openai", OpenAIChat), ("responses", OpenAIResponses), ("anthropic", Anthropic)]
)
async def test_the_provider_setting_selects_the_protocol(provider: str, kind: type) -> None:
    async with route_factory() as make_route:
        assert isinstance(make_route(RouteSettings(provider=provider, base_url=URL, model="m")).provider, kind)


async def test_an_embedded_fallback_model_needs_no_url_or_name_and_is_not_started_in_advance() -> None:
    async with route_factory() as make_route:
        make_route(RouteSettings(base_url=URL, model="m"))
        route = make_route(RouteSettings("spare", "local"))
        assert isinstance(route.provider, LocalModel)
        await asyncio.sleep(0)
        assert route.provider.server.pid is None
        assert (route.input_price, route.output_price) == (0.0, 0.0)


async def test_prices_come_from_the_catalogue_unless_the_route_sets_them() -> None:
    async with route_factory(mine=ModelFacts(input_price=3.0, output_price=4.0)) as make_route:
        known = make_route(RouteSettings(base_url=URL, model="gpt-5-nano"))
        own = make_route(RouteSettings(base_url=URL, model="gpt-5-nano", input_price=7.0))
        extended = make_route(RouteSettings(base_url=URL, model="mine"))
        unknown = make_route(RouteSettings(base_url=URL, model="unknown"))
    assert (known.input_price, known.output_price) == (0.05, 0.4)
    assert (own.input_price, own.output_price) == (7.0, 0.4)
    assert (extended.input_price, extended.output_price) == (3.0, 4.0)
    assert (unknown.input_price, unknown.output_price) == (None, None)


@pytest.mark.parametrize(
    ("route", "message"),
    [
        (RouteSettings(provider="nope", base_url=URL, model="m"), "unknown provider 'nope'; .*openai.*ollama"),
        (RouteSettings(base_url="localhost:1", model="m"), "'localhost:1' is not an http"),
        (RouteSettings(base_url=URL), "model is missing"),
        (RouteSettings(provider="ollama"), "model is missing"),
        (
            RouteSettings(base_url=URL, model="m", api_key_env="NOT_THERE"),
            "the environment variable NOT_THERE is not set",
        ),
        (RouteSettings(provider="anthropic", model="m"), "the environment variable ANTHROPIC_API_KEY is not set"),
    ],
)
async def test_an_unusable_route_is_reported_with_its_name(route: RouteSettings, message: str) -> None:
    async with route_factory() as make_route:
        with pytest.raises(SettingsError, match=rf"Route 'main': .*{message}"):
            make_route(route)


def test_a_preset_fills_in_missing_settings() -> None:
    ollama = complete_route(RouteSettings(provider="ollama", model="m"))
    assert (ollama.provider, ollama.base_url, ollama.api_key_env) == ("openai", "http://127.0.0.1:11434/v1", "")
    moved = complete_route(RouteSettings(provider="vllm", base_url="http://gpu:8000/v1", model="m"))
    assert (moved.provider, moved.base_url) == ("openai", "http://gpu:8000/v1")
    keyed = complete_route(RouteSettings(provider="openrouter"))
    assert (keyed.model, keyed.api_key_env) == ("openrouter/auto", "OPENROUTER_API_KEY")
    assert complete_route(RouteSettings(provider="openrouter", api_key="k")).api_key_env == ""


def test_a_route_without_a_base_url_uses_the_official_server_for_its_protocol() -> None:
    route = complete_route(RouteSettings(provider="anthropic", model="m"))
    assert (route.base_url, route.api_key_env) == ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")
    elsewhere = complete_route(RouteSettings(provider="anthropic", base_url=URL, model="m"))
    assert (elsewhere.base_url, elsewhere.api_key_env) == (URL, "")


def test_api_keys_in_the_environment_are_tried_in_a_fixed_order() -> None:
    keys = {"OPENROUTER_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "OPENAI_API_KEY": "c"}
    names: list[str] = []
    while (route := route_from_environment(keys)) is not None:
        names.append(route.name)
        del keys[route.api_key_env]
    assert names == ["openrouter", "anthropic", "openai"]


def test_the_environment_sets_the_model_and_the_base_url() -> None:
    own = route_from_environment({"OPENAI_API_KEY": "c", "HARK_MODEL": "m"})
    assert own is not None
    assert (own.provider, own.base_url, own.model) == ("responses", "https://api.openai.com/v1", "m")
    other = route_from_environment({"OPENAI_API_KEY": "c", "OPENAI_BASE_URL": URL, "HARK_MODEL": "m"})
    assert other is not None
    assert (other.provider, other.base_url, other.model) == ("openai", URL, "m")


def preset_at(preset: Preset, url: str) -> Preset:
    return Preset(preset.name, preset.title, preset.provider, url)


async def test_responding_local_servers_are_detected_in_a_fixed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"data": [{"id": "first"}, {"id": "second"}]}
    async with model_server(answer) as one, model_server(answer) as other, open_session() as http:
        servers = (preset_at(OLLAMA, URL), preset_at(VLLM, one), preset_at(OLLAMA, other))
        assert [route.base_url for _, route in await find_local_servers(http, servers=servers)] == [one, other]
        found = await detect_route(http, servers=servers)
        assert (found.name, found.provider, found.base_url, found.model) == ("vllm", "openai", one, "first")
        monkeypatch.setenv("HARK_MODEL", "second")
        assert (await detect_route(http, servers=servers)).model == "second"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"data": []}, 200),
        ({"detail": "no key"}, 401),
        ([1, 2], 200),
        ({"data": ["a"]}, 200),
        ("words", 200),
        ({"data": [{"id": "demo", "owned_by": "hark"}]}, 200),
    ],
)
async def test_a_server_without_a_valid_model_list_is_not_detected(answer: object, status: int) -> None:
    async with model_server(answer, status) as url, open_session() as http:
        assert await find_local_servers(http, servers=(preset_at(OLLAMA, url),)) == []


async def test_a_server_that_hangs_does_not_delay_route_detection() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server, open_session() as http:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with asyncio.timeout(at_most(5 * PROBE_SECONDS)):
            assert await find_local_servers(http, servers=(preset_at(OLLAMA, url),)) == []


async def test_the_embedded_model_is_the_last_fallback() -> None:
    async with open_session() as http:
        found = await detect_route(http, servers=())
    assert (found.name, found.provider) == ("embedded", "local")


async def test_without_any_model_the_error_explains_how_to_set_one_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.providers.local.server.find_spec", lambda name: None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    async with open_session() as http:
        with pytest.raises(SettingsError, match=r"OPENROUTER_API_KEY.*Ollama.*not installed.*hark setup"):
            await detect_route(http, servers=())
