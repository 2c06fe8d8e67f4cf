"""`hark setup`: asks a few questions and writes a config.toml with a route."""

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import structs

from hark.app.doctor.models import ANSWER, check_routes
from hark.app.doctor.results import Level
from hark.app.settings import SettingsError, config
from hark.app.settings.config_file import read_config, replace_routes
from hark.app.settings.presets import (
    EMBEDDED,
    KEYED_PRESETS,
    LOCAL_SERVERS,
    PRESETS,
    Preset,
    find_local_servers,
    list_models,
)
from hark.app.settings.types import RouteSettings, Settings
from hark.app.shutdown import COMPLETED, FAILED
from hark.cli.io.prompts import TerminalPrompts
from hark.disk.private_files import replace_file
from hark.text.columns import detect_output_style

if TYPE_CHECKING:
    import aiohttp

MODELS_SECONDS = 5.0
MAX_LISTED_MODELS = 10
OTHER = Preset("other", "another OpenAI-compatible server", "openai")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    # None: the command asks for every value.


async def run(options: argparse.Namespace) -> int:
    """Ask for a route and write it to the home's config.toml. Other settings stay; replacing routes needs consent."""
    from hark.providers.connections import open_session

    file = config.home_directory() / "config.toml"
    prompts = TerminalPrompts(sys.stdin, sys.stdout)
    async with open_session() as http:
        preset = await _ask_preset(prompts, http)
        if preset is OTHER:
            preset = _ask_address(prompts)
        key_env, key = _ask_key(prompts, preset)
        model = await _ask_model(prompts, preset, http)
    route = RouteSettings("main", preset.provider, preset.base_url, model, key_env, key)
    text = read_config(file)
    if text and not prompts.confirm(f"{file} already exists. Replace its routes with the new route?"):
        prompts.write_line("Nothing was written.")
        return FAILED
    replace_file(file, replace_routes(text, route).encode())  # it may hold a key
    prompts.write_line(f"Written to {file}")
    if key_env and not os.environ.get(key_env):
        prompts.write_line(f"Set {key_env} before you start: export {key_env}=...")
    elif prompts.is_interactive:
        await _test_route(prompts, route)
    prompts.write_line("Start with: hark    Check the setup with: hark doctor")
    return COMPLETED


async def _test_route(prompts: TerminalPrompts, route: RouteSettings) -> None:
    """Send the model a test request, so that a wrong key is found now and not during the first conversation."""
    from hark.providers.connections import open_session

    prompts.write_line("Testing the route ... (Ctrl-C quits; the settings are already written)")
    async with open_session() as http:
        for result in await check_routes(Settings(routes=(route,)), http):
            if result.name == ANSWER or result.level is not Level.OK:
                prompts.write_line("\n".join(result.lines(detect_output_style())))


async def _ask_preset(prompts: TerminalPrompts, http: "aiohttp.ClientSession") -> Preset:
    """Ask for the model's server. Available servers are listed first."""
    running = {preset.name: route.model for preset, route in await find_local_servers(http)}
    keyed = [preset for preset in KEYED_PRESETS if os.environ.get(preset.key_env)]
    found = [*keyed, *(preset for preset in LOCAL_SERVERS if preset.name in running)]
    presets = [*found, *(preset for preset in PRESETS.values() if preset not in found)]
    if not found:
        presets.sort(key=lambda preset: preset is not EMBEDDED)
    presets.append(OTHER)
    choices = [f"{preset.title}{_availability(preset, running)}" for preset in presets]
    return presets[prompts.ask_choice("Which model should Hark use?", choices)]


def _ask_address(prompts: TerminalPrompts) -> Preset:
    """Ask for the URL of the user's own server."""
    while True:
        address = prompts.ask_text("Base URL (ending in /v1)", "http://127.0.0.1:8080/v1").rstrip("/")
        if urlsplit(address).scheme in ("http", "https") and urlsplit(address).hostname:
            return structs.replace(OTHER, base_url=address)
        problem = f"{address!r} is not a URL that begins with http:// or https://."
        if not prompts.is_interactive:
            raise SettingsError(problem)
        prompts.write_line(problem)


def _availability(preset: Preset, running: dict[str, str]) -> str:
    if preset is OTHER:
        return " (you enter its URL)"
    if preset.name in running:
        return f" (running here: {running[preset.name]})"
    if preset.is_local:
        return " (not answering)"
    if preset.key_env:
        return f" ({preset.key_env} is set)" if os.environ.get(preset.key_env) else " (needs a key)"
    return " (small; needs no key or network)"


def _ask_key(prompts: TerminalPrompts, preset: Preset) -> tuple[str, str]:
    """Ask for the API key. Return the name of the variable that holds it, or the key itself."""
    is_other = preset.name == OTHER.name
    if not is_other and (not preset.key_env or os.environ.get(preset.key_env)):
        return preset.key_env, ""
    optional = "; press Enter for none" if is_other else ""
    answer = prompts.ask_secret(f"API key, or the variable holding it (hidden{optional})", preset.key_env)
    return (answer, "") if _VARIABLE.fullmatch(answer) else ("", answer)


async def _ask_model(prompts: TerminalPrompts, preset: Preset, http: "aiohttp.ClientSession") -> str:
    if preset is EMBEDDED:
        return ""
    available = await list_models(http, preset.base_url, MODELS_SECONDS) if _can_list_models(preset) else []
    if available:
        more = ", ..." if available[MAX_LISTED_MODELS:] else ""
        prompts.write_line(f"Available models: {', '.join(available[:MAX_LISTED_MODELS])}{more}")
    model = prompts.ask_text("Model", preset.model or next(iter(available), ""))
    if not model:
        raise SettingsError("A model is required. Start the server and try again, or enter the model's name.")
    return model


def _can_list_models(preset: Preset) -> bool:
    return preset.is_local or preset.name == OTHER.name
