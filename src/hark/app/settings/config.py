"""Loads the settings from the home's file, the project's file, the environment and the caller's arguments.

Later sources override earlier ones. Until the user trusts a project, its settings can't access keys, start programs,
or reduce approvals.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from hark.app.settings import SettingsError, home_directory, workspace
from hark.app.settings.types import RouteSettings, Settings
from hark.disk.line_file import append_line
from hark.protocol.commands import Delivery
from hark.protocol.rules import ApprovalMode

Layer = dict[str, Any]

_DELIVERY_KEYS = (
    "default",
    "after_stop",
    "after_restart",
    "steer_before",
    "children",
    "stop_words",
    "status_words",
    "surfaces",
)
_ENVIRONMENT_SECTIONS = (
    "delivery",
    "limits",
    "approvals",
    "memory",
    "sandbox",
    "schedules",
    "sessions",
    "store",
    "web",
)
_APPROVALS_NEEDING_TRUST = ("allow", "writable")
# Routes, voice and web would send the user's keys and messages to servers that the project chooses. mcp and voice
# start programs, serve and surfaces open ports, sandbox removes protection, store and telemetry send conversations
# elsewhere.
_SECTIONS_NEEDING_TRUST = ("routes", "mcp", "serve", "surfaces", "voice", "web", "sandbox", "store", "telemetry")


def load_here() -> Settings:
    """Load the settings for the home and the current directory.

    Raises:
        SettingsError: A file can't be read, or a setting in it is invalid.
    """
    return load(home_directory(), workspace())


def load(home: Path, workspace: Path, overrides: Layer | None = None) -> Settings:
    """Load the settings and merge all layers.

    Raises:
        SettingsError: A file can't be read, or a setting in it is invalid.
    """
    settings = _read_valid_file(home / "config.toml")
    project = _read_valid_file(workspace / ".hark" / "config.toml")
    settings = _merge(settings, project if is_trusted(home, workspace) else _drop_untrusted(project)[0])
    environment = _environment_settings(os.environ)
    _convert(environment, "the environment (HARK_...)")
    return _convert(_merge(_merge(settings, environment), overrides or {}), "the given settings")


def ignored_settings_notice(home: Path, workspace: Path) -> str:
    """Return a notice listing the settings ignored because the project is not trusted, or "" if none are."""
    ignored = _drop_untrusted(_read_file(workspace / ".hark" / "config.toml"))[1]
    if not ignored or is_trusted(home, workspace):
        return ""
    names = ", ".join(ignored)
    return f"{names} in .hark/config.toml: ignored until you trust this project. To trust it: hark config trust"


def is_trusted(home: Path, workspace: Path) -> bool:
    """Return whether the user has trusted this project's settings."""
    try:
        lines = (home / "trusted").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return str(workspace.resolve()) in lines


def trust(home: Path, workspace: Path) -> None:
    """Record that the user trusts this project's settings.

    Raises:
        OSError: The record could not be stored.
    """
    if not is_trusted(home, workspace):
        append_line(home / "trusted", str(workspace.resolve()).encode())


def _drop_untrusted(layer: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a project's settings without those that need trust, and the names of the ignored ones.

    A project may always make approvals stricter and deny more.
    """
    allowed = dict(layer)
    ignored: list[str] = []
    ignored.extend(key for key in _SECTIONS_NEEDING_TRUST if allowed.pop(key, None))
    approvals = allowed.get("approvals")
    if isinstance(approvals, dict):
        remaining: dict[str, Any] = dict(approvals)  # pyright: ignore[reportUnknownArgumentType] - as TOML has it
        ignored_approvals = [key for key in _APPROVALS_NEEDING_TRUST if remaining.pop(key, None)]
        if remaining.get("mode") not in (None, ApprovalMode.ASK):
            ignored_approvals.append("mode")
            del remaining["mode"]
        ignored.extend(f"approvals.{key}" for key in ignored_approvals)
        allowed["approvals"] = remaining
    return allowed, ignored


def _read_valid_file(path: Path) -> Layer:
    layer = _read_file(path)
    _convert(layer, str(path))  # so that an error names the file it is in
    return layer


def read_routes(route_dicts: Sequence[Mapping[str, Any]]) -> tuple[RouteSettings, ...]:
    """Parse routes from dicts with the keys of `[[routes]]`.

    Raises:
        SettingsError: A route is invalid.
    """
    return _convert({"routes": list(route_dicts)}, "the given routes").routes


def _read_file(path: Path) -> Layer:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} can't be read: {error}. Fix or remove it.") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}. Fix that line, or remove the file.") from error


def _environment_settings(environ: Mapping[str, str]) -> Layer:
    """Return the settings in HARK_SECTION_KEY variables, such as HARK_LIMITS_STEPS=5 or HARK_DELIVERY_DEFAULT=queue."""
    layer: Layer = {}
    for name, value in environ.items():
        parts = name.lower().split("_", 2)
        if len(parts) == 3 and parts[0] == "hark" and parts[1] in _ENVIRONMENT_SECTIONS:
            layer.setdefault(parts[1], {})[parts[2]] = value
    return layer


def _merge(below: Layer, above: Layer) -> Layer:
    """Merge two layers. Tables are merged recursively; other values in `above`, including routes, win."""
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
        prepared["delivery"] = _convert_delivery(cast("Layer", delivery), where)
    try:
        return msgspec.convert(prepared, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"In {where}: {error}. docs/settings.md lists the valid settings.") from error


def _convert_delivery(table: Layer, where: str) -> Layer:
    """Move the delivery of each surface, such as telegram = "steer", to the `surfaces` table."""
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
