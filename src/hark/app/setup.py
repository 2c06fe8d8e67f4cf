"""`hark setup`: a few questions, and a config.toml with a route in it."""

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hark.app import config
from hark.app.config_file import with_route, write_private
from hark.app.detect import local_servers, models_of
from hark.app.presets import EMBEDDED, LOCAL_SERVERS, PRESETS, WITH_KEYS, Preset
from hark.app.questions import Questions
from hark.app.settings import RouteSettings, SettingsError
from hark.app.shutdown import COMPLETED, FAILED
from hark.providers.connections import open_session

if TYPE_CHECKING:
    import aiohttp

MODELS_SECONDS = 5.0
MOST_MODELS = 10
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


async def setup(options: argparse.Namespace) -> int:
    """Ask, and write the route into the home's settings; what else stands there stays. Nothing is replaced unasked."""
    file = config.home_directory() / "config.toml"
    questions = Questions(sys.stdin, sys.stdout)
    async with open_session() as http:
        preset = await _preset(questions, http)
        key_env, key = _key(questions, preset)
        model = await _model(questions, preset, http)
    route = RouteSettings("main", preset.provider, preset.base_url, model, key_env, key)
    text = _read(file)
    if text and not questions.yes(f"{file} is there already. Put this route into it, in place of its routes?"):
        questions.say("Nothing was written.")
        return FAILED
    write_private(file, with_route(text, route))
    questions.say(f"Written: {file}")
    if key_env and not os.environ.get(key_env):
        questions.say(f"Set {key_env} before you start: export {key_env}=...")
    questions.say("Try it: hark doctor")
    return COMPLETED


async def _preset(questions: Questions, http: "aiohttp.ClientSession") -> Preset:
    """Ask for the model's server; what works already comes first."""
    running = {preset.name: route.model for preset, route in await local_servers(http)}
    keyed = [preset for preset in WITH_KEYS if os.environ.get(preset.key_env)]
    found = [*keyed, *(preset for preset in LOCAL_SERVERS if preset.name in running)]
    presets = [*found, *(preset for preset in PRESETS.values() if preset not in found)]
    if not found:
        presets.sort(key=lambda preset: preset is not EMBEDDED)
    lines = [f"{preset.title}{_state(preset, running)}" for preset in presets]
    return presets[questions.choice("Which model should answer?", lines)]


def _state(preset: Preset, running: dict[str, str]) -> str:
    if preset.name in running:
        return f" (runs here: {running[preset.name]})"
    if preset.is_local:
        return " (does not answer now)"
    if preset.key_env:
        return f" ({preset.key_env} is set)" if os.environ.get(preset.key_env) else " (needs a key)"
    return " (no key, no network; small)"


def _key(questions: Questions, preset: Preset) -> tuple[str, str]:
    """Return the name of the variable that holds the key, or the key itself."""
    if not preset.key_env:
        return "", ""
    if os.environ.get(preset.key_env):
        return preset.key_env, ""
    answer = questions.secret("The key, or the name of the environment variable that has it", preset.key_env)
    return (answer, "") if _VARIABLE.fullmatch(answer) else ("", answer)


async def _model(questions: Questions, preset: Preset, http: "aiohttp.ClientSession") -> str:
    if preset is EMBEDDED:
        return ""
    offered = await models_of(http, preset.base_url, MODELS_SECONDS) if preset.is_local else []
    if offered:
        questions.say("Its models: " + ", ".join(offered[:MOST_MODELS]) + (", ..." if offered[MOST_MODELS:] else ""))
    model = questions.text("Model", preset.model or next(iter(offered), ""))
    if not model:
        raise SettingsError("A model is needed. Start the server and try again, or name the model that it will have.")
    return model


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return ""
