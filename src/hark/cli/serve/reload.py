"""Reloads the settings of `hark serve` on SIGHUP, one request at a time, and reports the result."""

import argparse
import logging
from collections.abc import Callable

import anyio

from hark.app.logs import apply_log_settings
from hark.app.reload import ApplySettings, ReloadResult
from hark.app.settings import SettingsError
from hark.app.settings.check import ResolvedServeSettings, require_valid, resolve_serve_settings
from hark.app.settings.secrets import known_secrets
from hark.app.settings.types import Settings
from hark.cli.io.printing import print_error
from hark.cli.serve.systemd import notify, notify_reloading

LOG = logging.getLogger(__name__)

LoadSettings = Callable[[], Settings]


class Reloader:
    """Reloads the settings whenever `request` is called. Invalid settings are reported and change nothing."""

    def __init__(
        self,
        load: LoadSettings,
        options: argparse.Namespace,
        apply_to_agent: ApplySettings,
        current: ResolvedServeSettings,
        apply_to_server: Callable[[ResolvedServeSettings], None],
    ) -> None:
        """`current` holds the address that the server listens on, which can't change without a restart."""
        self._load = load
        self._options = options
        self._apply_to_agent = apply_to_agent
        self._current = current
        self._apply_to_server = apply_to_server
        self._requested = anyio.Event()

    def request(self) -> None:
        """Request a reload. Returns immediately."""
        self._requested.set()

    async def run(self) -> None:
        """Reload at each request, until cancelled."""
        while True:
            await self._requested.wait()
            self._requested = anyio.Event()
            notify_reloading()
            try:
                report = _reload_report(await self._reload())
                LOG.info("%s", report)
            except SettingsError as error:
                report = f"the settings were not reloaded; the previous settings stay in effect: {error}"
                LOG.warning("%s", report)
            print_error(report)
            notify("READY=1", f"STATUS={report.replace(chr(10), ' ')}")

    async def _reload(self) -> ReloadResult:
        """Load the settings and apply all of them. On an error, nothing is applied.

        Raises:
            SettingsError: The settings can't be used.
        """
        settings = self._load()
        require_valid(settings, self._options)
        serve_settings = resolve_serve_settings(settings.serve, self._options)
        result = await self._apply_to_agent(settings)
        apply_log_settings(settings.logs, [serve_settings.token, *known_secrets(settings)])
        self._apply_to_server(serve_settings)
        return ReloadResult(
            result.changed, (*result.needs_restart, *_changed_address_settings(self._current, serve_settings))
        )


def _changed_address_settings(before: ResolvedServeSettings, now: ResolvedServeSettings) -> list[str]:
    """Return the names of the address settings that changed. The socket keeps its address until a restart."""
    old, new = before.settings, now.settings
    changes = (("serve.host", old.host != new.host), ("serve.port", old.port != new.port))
    return [name for name, is_changed in changes if is_changed]


def _reload_report(result: ReloadResult) -> str:
    changed = ", ".join(result.changed)
    text = f"the settings were reloaded: {f'{changed} changed' if changed else 'nothing changed'}"
    if result.needs_restart:
        text += f"; restart to apply: {', '.join(result.needs_restart)}"
    return text
