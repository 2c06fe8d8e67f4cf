"""`hark setup`: a few questions, and a config.toml with a route in it."""

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import structs

from hark.app.doctor.models import ANSWER, tried
from hark.app.doctor.results import Level
from hark.app.settings import SettingsError, config
from hark.app.settings.config_file import read_config, with_route
from hark.app.settings.presets import EMBEDDED, LOCAL_SERVERS, PRESETS, WITH_KEYS, Preset, local_servers, models_of
from hark.app.settings.types import RouteSettings, Settings
from hark.app.shutdown import COMPLETED, FAILED
from hark.cli.io.prompts import TerminalPrompts
from hark.disk.private_files import replace_private
from hark.text.columns import look_of_output

if TYPE_CHECKING:
    import aiohttp

MODELS_SECONDS = 5.0
MOST_MODELS = 10
OTHER = Preset("other", "another server that speaks OpenAI's protocol", "openai")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    # It asks for everything.


async def run(options: argparse.Namespace) -> int:
    """Ask, and write the route into the home's settings; what else stands there stays. Nothing is replaced unasked."""
    from hark.providers.connections import open_session

    file = config.home_directory() / "config.toml"
    questions = TerminalPrompts(sys.stdin, sys.stdout)
    async with open_session() as http:
        preset = await _preset(questions, http)
        if preset is OTHER:
            preset = _at_address(questions)
        key_env, key = _key(questions, preset)
        model = await _model(questions, preset, http)
    route = RouteSettings("main", preset.provider, preset.base_url, model, key_env, key)
    text = read_config(file)
    if text and not questions.yes(f"{file} is there already. Put this route into it, in place of its routes?"):
        questions.say("Nothing was written.")
        return FAILED
    replace_private(file, with_route(text, route).encode())  # it may hold a key
    questions.say(f"Written: {file}")
    if key_env and not os.environ.get(key_env):
        questions.say(f"Set {key_env} before you start: export {key_env}=...")
    elif questions.is_person:
        await _try(questions, route)
    questions.say("Start with: hark    See that all is well: hark doctor")
    return COMPLETED


async def _try(questions: TerminalPrompts, route: RouteSettings) -> None:
    """Have the model say something, so that a wrong key is known now and not in the first conversation."""
    from hark.providers.connections import open_session

    questions.say("Trying it ... (Ctrl-C leaves; the settings are written)")
    async with open_session() as http:
        for finding in await tried(Settings(routes=(route,)), http):
            if finding.name == ANSWER or finding.level is not Level.OK:
                questions.say("\n".join(finding.lines(look_of_output())))


async def _preset(questions: TerminalPrompts, http: "aiohttp.ClientSession") -> Preset:
    """Ask for the model's server; what works already comes first."""
    running = {preset.name: route.model for preset, route in await local_servers(http)}
    keyed = [preset for preset in WITH_KEYS if os.environ.get(preset.key_env)]
    found = [*keyed, *(preset for preset in LOCAL_SERVERS if preset.name in running)]
    presets = [*found, *(preset for preset in PRESETS.values() if preset not in found)]
    if not found:
        presets.sort(key=lambda preset: preset is not EMBEDDED)
    presets.append(OTHER)
    lines = [f"{preset.title}{_state(preset, running)}" for preset in presets]
    return presets[questions.choice("Which model should answer?", lines)]


def _at_address(questions: TerminalPrompts) -> Preset:
    """Ask where the person's own server is."""
    while True:
        address = questions.text("Its address, up to /v1", "http://127.0.0.1:8080/v1").rstrip("/")
        if urlsplit(address).scheme in ("http", "https") and urlsplit(address).hostname:
            return structs.replace(OTHER, base_url=address)
        problem = f"{address!r} is no address: it begins with http:// or https://."
        if not questions.is_person:
            raise SettingsError(problem)
        questions.say(problem)


def _state(preset: Preset, running: dict[str, str]) -> str:
    if preset is OTHER:
        return " (you say where it is)"
    if preset.name in running:
        return f" (runs here: {running[preset.name]})"
    if preset.is_local:
        return " (does not answer now)"
    if preset.key_env:
        return f" ({preset.key_env} is set)" if os.environ.get(preset.key_env) else " (needs a key)"
    return " (no key, no network; small)"


def _key(questions: TerminalPrompts, preset: Preset) -> tuple[str, str]:
    """Return the name of the variable that holds the key, or the key itself."""
    is_other = preset.name == OTHER.name
    if not is_other and (not preset.key_env or os.environ.get(preset.key_env)):
        return preset.key_env, ""
    question = f"{'Its' if is_other else 'The'} key, or the name of the environment variable that has it"
    answer = questions.secret(f"{question}; empty for none" if is_other else question, preset.key_env)
    return (answer, "") if _VARIABLE.fullmatch(answer) else ("", answer)


async def _model(questions: TerminalPrompts, preset: Preset, http: "aiohttp.ClientSession") -> str:
    if preset is EMBEDDED:
        return ""
    offered = await models_of(http, preset.base_url, MODELS_SECONDS) if _is_asked(preset) else []
    if offered:
        questions.say("Its models: " + ", ".join(offered[:MOST_MODELS]) + (", ..." if offered[MOST_MODELS:] else ""))
    model = questions.text("Model", preset.model or next(iter(offered), ""))
    if not model:
        raise SettingsError("A model is needed. Start the server and try again, or name the model that it will have.")
    return model


def _is_asked(preset: Preset) -> bool:
    return preset.is_local or preset.name == OTHER.name
