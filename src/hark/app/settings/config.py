"""Where settings come from: the home's file, the project's over it, the environment over both, the caller last.

Until a project is trusted, its settings may not reach keys, start programs, or ask less often.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from hark.app.settings import SettingsError, home_directory, workspace
from hark.app.settings.types import RouteSettings, Settings
from hark.disk.private_files import append_private
from hark.protocol.commands import Delivery
from hark.protocol.rules import ApprovalMode

Layer = dict[str, Any]

_DELIVERY_KEYS = ("default", "after_stop", "steer_before", "stop_words", "surfaces")
_ENVIRONMENT_SECTIONS = ("delivery", "limits", "approvals", "memory", "sandbox", "schedules", "store", "web")
_LOOSENING = ("allow", "writable")
# Routes, voice and web would send the person's keys and words to servers of the project's choice, mcp and voice start
# programs, serve and surfaces open doors, sandbox takes walls away, and store and telemetry put what is said elsewhere.
_TRUSTED_ALONE = ("routes", "mcp", "serve", "surfaces", "voice", "web", "sandbox", "store", "telemetry")


def load_here() -> Settings:
    """Return the settings of the home and the current directory.

    Raises:
        SettingsError: A file can't be read, or something in it is wrong.
    """
    return load(home_directory(), workspace())


def load(home: Path, workspace: Path, given: Layer | None = None) -> Settings:
    """Return the settings of all layers.

    Raises:
        SettingsError: A file can't be read, or something in it is wrong.
    """
    settings = _read_checked(home / "config.toml")
    project = _read_checked(workspace / ".hark" / "config.toml")
    settings = _merge(settings, project if is_trusted(home, workspace) else _without_trust(project)[0])
    environment = _environment(os.environ)
    _convert(environment, "the environment (HARK_...)")
    return _convert(_merge(_merge(settings, environment), given or {}), "the given settings")


def left_out(home: Path, workspace: Path) -> str:
    """Return what to tell of the project's settings that don't hold, since it is not trusted; "" when all do."""
    left = _without_trust(_read(workspace / ".hark" / "config.toml"))[1]
    if not left or is_trusted(home, workspace):
        return ""
    return f"{', '.join(left)} of this project's .hark/config.toml do not hold until you trust it: hark config trust"


def is_trusted(home: Path, workspace: Path) -> bool:
    """Tell whether the person has said that this project's settings hold."""
    try:
        lines = (home / "trusted").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return str(workspace.resolve()) in lines


def trust(home: Path, workspace: Path) -> None:
    """Keep that this project's settings hold.

    Raises:
        OSError: It could not be kept.
    """
    if not is_trusted(home, workspace):
        append_private(home / "trusted", f"{workspace.resolve()}\n".encode(), is_durable=False)


def _without_trust(layer: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a project's settings as they hold without trust, and what was left out of them.

    It may always ask more often and deny more.
    """
    kept = dict(layer)
    left: list[str] = []
    left.extend(key for key in _TRUSTED_ALONE if kept.pop(key, None))
    approvals = kept.get("approvals")
    if isinstance(approvals, dict):
        given: dict[str, Any] = dict(approvals)  # pyright: ignore[reportUnknownArgumentType] - as TOML has it
        loose = [key for key in _LOOSENING if given.pop(key, None)]
        if given.get("mode") not in (None, ApprovalMode.ASK):
            loose.append("mode")
            del given["mode"]
        left.extend(f"approvals.{key}" for key in loose)
        kept["approvals"] = given
    return kept, left


def _read_checked(path: Path) -> Layer:
    layer = _read(path)
    _convert(layer, str(path))  # so that an error names the file it is in
    return layer


def read_routes(given: Sequence[Mapping[str, Any]]) -> tuple[RouteSettings, ...]:
    """Return routes from dicts with the keys of `[[routes]]`.

    Raises:
        SettingsError: One of them is wrong.
    """
    return _convert({"routes": list(given)}, "the given routes").routes


def _read(path: Path) -> Layer:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} can't be read: {error}. Mend or remove it.") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}. Mend that line, or remove the file.") from error


def _environment(environ: Mapping[str, str]) -> Layer:
    """Return what HARK_SECTION_KEY says: HARK_LIMITS_STEPS=5, HARK_DELIVERY_DEFAULT=queue."""
    layer: Layer = {}
    for name, value in environ.items():
        parts = name.lower().split("_", 2)
        if len(parts) == 3 and parts[0] == "hark" and parts[1] in _ENVIRONMENT_SECTIONS:
            layer.setdefault(parts[1], {})[parts[2]] = value
    return layer


def _merge(below: Layer, above: Layer) -> Layer:
    """Lay one over the other: tables are joined, everything else is replaced, routes as a whole."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _merge(cast("Layer", old), cast("Layer", value))
        else:
            merged[key] = value
    return merged


def _convert(layer: Layer, where: str) -> Settings:
    prepared = dict(layer)
    delivery = layer.get("delivery")
    if isinstance(delivery, dict):
        prepared["delivery"] = _delivery(cast("Layer", delivery), where)
    try:
        return msgspec.convert(prepared, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"In {where}: {error}. See docs/settings.md for what may stand there.") from error


def _delivery(table: Layer, where: str) -> Layer:
    """A key that is none of the known ones is a surface with its own delivery: telegram = "steer"."""
    known = {key: value for key, value in table.items() if key in _DELIVERY_KEYS}
    surfaces = dict(known.get("surfaces", {}))
    for key, value in table.items():
        if key in _DELIVERY_KEYS:
            continue
        if value not in list(Delivery):
            choices = ", ".join(Delivery)
            raise SettingsError(f"In {where}: delivery.{key} is {value!r}; it must be one of {choices}.")
        surfaces[key] = value
    return {**known, "surfaces": surfaces}
