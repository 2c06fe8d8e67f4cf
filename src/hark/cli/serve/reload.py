"""SIGHUP for `hark serve`: the settings are read again, one wish after the other, and it is told what came of it."""

import argparse
import asyncio
import logging
import signal
from collections.abc import Callable

import anyio

from hark.app.logs import apply_log_settings
from hark.app.reload import Follow, Followed
from hark.app.settings import SettingsError
from hark.app.settings.check import Chosen, choose, require
from hark.app.settings.secrets import known_secrets
from hark.app.settings.types import Settings
from hark.cli.io.printing import print_error
from hark.cli.serve.systemd import notify, notify_reloading

LOG = logging.getLogger(__name__)

Load = Callable[[], Settings]


class ServeReload:
    """Reads the settings again whenever `wish` is called. Broken ones are told, and all the old ones stay."""

    def __init__(
        self, load: Load, options: argparse.Namespace, follow: Follow, serving: Chosen, take: Callable[[Chosen], None]
    ) -> None:
        """`follow` applies the settings to the agent, `take` to the server. `serving` is its address, which stays."""
        self._load = load
        self._options = options
        self._follow = follow
        self._serving = serving
        self._take = take
        self._is_wished = anyio.Event()

    def listen(self) -> None:
        """Have SIGHUP wish for it, unless our starter has us ignore that."""
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.wish)

    def wish(self) -> None:
        """Have the settings read again; waits for nothing."""
        self._is_wished.set()

    async def run(self) -> None:
        """Do it whenever it is wished for, until cancelled."""
        while True:
            await self._is_wished.wait()
            self._is_wished = anyio.Event()
            notify_reloading()
            try:
                told = _told(await self._reload())
                LOG.info("%s", told)
            except SettingsError as error:
                told = f"the settings were not read again, and the old ones stay: {error}"
                LOG.warning("%s", told)
            print_error(told)
            notify("READY=1", f"STATUS={told.replace(chr(10), ' ')}")

    async def _reload(self) -> Followed:
        """Take the settings as they are now, all of them or none.

        Raises:
            SettingsError: They can't be used.
        """
        settings = self._load()
        require(settings, self._options)
        chosen = choose(settings.serve, self._options)
        followed = await self._follow(settings)
        apply_log_settings(settings.logs, [chosen.token, *known_secrets(settings)])
        self._take(chosen)
        return Followed(followed.changed, (*followed.needs_restart, *_moved(self._serving, chosen)))


def _moved(before: Chosen, now: Chosen) -> list[str]:
    """Return what of the address is another: the socket is where it is."""
    old, new = before.settings, now.settings
    moved = (("serve.host", old.host != new.host), ("serve.port", old.port != new.port))
    return [name for name, is_other in moved if is_other]


def _told(followed: Followed) -> str:
    changed = ", ".join(followed.changed)
    told = f"the settings were read again: {f'{changed} changed' if changed else 'nothing changed'}"
    if followed.needs_restart:
        told += f"; {', '.join(followed.needs_restart)} needs a restart, and is as before until then"
    return told
