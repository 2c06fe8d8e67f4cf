"""Who may talk to the gateway: the token, and the names under which it is reached."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from hark.surfaces.web.settings import ServeSettings

MOST_WRONG = 100
WINDOW_SECONDS = 60.0
MOST_SENDERS = 10_000
_NETWORK_BITS = 64  # who has one address of IPv6 has all of its network
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 named so that it can be refused without a token
COOKIE = "hark_login"
LOGIN_SECONDS = 30 * 24 * 3600
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class Guesses:
    """How often each sender was wrong in the current window.

    Programs on this machine are not counted: a proxy among them stands for everybody, and one stranger would shut all
    others out. It has to bound its own clients.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._wrong: dict[str, int] = {}

    def wrong(self, address: str) -> None:
        """Count a wrong token."""
        sender = _sender(address)
        if sender and (sender in self._wrong or len(self._wrong) < MOST_SENDERS):
            self._wrong[sender] = self._wrong.get(sender, 0) + 1

    def wait_seconds(self, address: str) -> int:
        """Return how long a sender has to wait before another try; 0 for not at all."""
        left = self._began + WINDOW_SECONDS - self._clock()
        if left <= 0:
            self._began, left = self._clock(), WINDOW_SECONDS
            self._wrong.clear()
        return max(1, round(left)) if self._wrong.get(_sender(address), 0) >= MOST_WRONG else 0


def _sender(address: str) -> str:
    """Return who sends from an address; "" for this machine."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if known.is_loopback:
        return ""
    if isinstance(known, IPv6Address):
        return _sender(str(known.ipv4_mapped)) if known.ipv4_mapped else str(int(known) >> (128 - _NETWORK_BITS))
    return address


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine alone."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Access:
    """The rules of who may come in. A reload of the settings changes them in place, for all who ask."""

    def __init__(self, settings: ServeSettings, token: str = "") -> None:
        self._is_everywhere = False
        self._names: frozenset[str] = frozenset()
        self._token = b""
        self.guesses = Guesses()
        self.max_body = 0
        self.change(settings, token)

    def change(self, settings: ServeSettings, token: str) -> None:
        """Follow these settings from now on."""
        self._is_everywhere = settings.host in EVERYWHERE
        self._names = frozenset(name.lower() for name in (*LOOPBACK_NAMES, settings.host, *settings.hosts) if name)
        self._token = token.encode()
        self.max_body = round(settings.max_body_mb * 1_000_000)

    @property
    def needs_token(self) -> bool:
        """True when only who knows the token may come in."""
        return bool(self._token)

    def new_cookie(self) -> str:
        """Return what the page holds instead of the token after its login: it tells nothing of the token, and ends."""
        return self._cookie(f"{int(time.time()) + LOGIN_SECONDS:x}")

    def is_token(self, given: str) -> bool:
        """Tell whether this is the token, in the same time whatever it is."""
        return self.needs_token and secrets.compare_digest(given.encode(errors="surrogateescape"), self._token)

    def is_cookie(self, given: str) -> bool:
        """Tell whether this is what a login gave, not too long ago."""
        end = given.partition(".")[0]
        is_ours = secrets.compare_digest(
            given.encode(errors="surrogateescape"), self._cookie(end).encode(errors="surrogateescape")
        )
        return self.needs_token and is_ours and int(end, 16) > time.time()

    def _cookie(self, end: str) -> str:
        proof = hmac.new(self._token, f"hark web login until {end}".encode(errors="surrogateescape"), hashlib.sha256)
        return f"{end}.{proof.hexdigest()}"

    def is_our_host(self, host: str) -> bool:
        """Tell whether a Host header names us: a foreign name that leads here is an attack on the browser's rules.

        An address is no name, so nobody can have it lead elsewhere: it is fine where we listen everywhere.
        """
        name = split_host(host)[0]
        if name in self._names:
            return True
        try:
            return self._is_everywhere and bool(ip_address(name))
        except ValueError:
            return False

    def is_same_origin(self, origin: str, host: str) -> bool:
        """Tell whether a page of this origin was served by us, under the very name that it talks to."""
        scheme, separator, place = origin.partition("://")
        if not separator or scheme not in _DEFAULT_PORTS:
            return False
        usual = _DEFAULT_PORTS[scheme]
        name, port = split_host(place)
        host_name, host_port = split_host(host)
        return (name, port or usual) == (host_name, host_port or usual)


def split_host(host: str) -> tuple[str, str]:
    """Return a Host header's name, in small letters and without brackets, and its port; "" where there is none."""
    host = host.strip().lower()
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return name, rest.removeprefix(":")
    name, _, port = host.partition(":")
    return name.removesuffix("."), port
