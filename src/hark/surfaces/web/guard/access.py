"""Access rules: the token, login cookies, and the host names of this server."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from hark.surfaces.web.settings import ServeSettings

MAX_WRONG_TOKENS = 100
WINDOW_SECONDS = 60.0
MAX_TRACKED_CLIENTS = 10_000
_NETWORK_BITS = 64  # a client usually controls a whole /64 network of IPv6 addresses
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
ALL_INTERFACES = ("", "0.0.0.0", "::")  # noqa: S104 listed so that they can be refused without a token
COOKIE = "hark_login"
LOGIN_SECONDS = 30 * 24 * 3600
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class WrongTokenCounter:
    """Counts wrong tokens per client in the current time window.

    Loopback addresses are not counted: a local reverse proxy forwards the requests of all its users, so one attacker
    would lock them all out. The proxy has to limit its own clients.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._window_start = clock()
        self._wrong_tokens: dict[str, int] = {}

    def count_wrong_token(self, address: str) -> None:
        """Count a wrong token from this address."""
        client = _client_key(address)
        if client and (client in self._wrong_tokens or len(self._wrong_tokens) < MAX_TRACKED_CLIENTS):
            self._wrong_tokens[client] = self._wrong_tokens.get(client, 0) + 1

    def lockout_seconds(self, address: str) -> int:
        """Return how many seconds the client must wait before the next attempt, or 0 if it need not wait."""
        remaining = self._window_start + WINDOW_SECONDS - self._clock()
        if remaining <= 0:
            self._window_start, remaining = self._clock(), WINDOW_SECONDS
            self._wrong_tokens.clear()
        return max(1, round(remaining)) if self._wrong_tokens.get(_client_key(address), 0) >= MAX_WRONG_TOKENS else 0


def _client_key(address: str) -> str:
    """Return the key under which a client's wrong tokens are counted, or "" for loopback addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if parsed.is_loopback:
        return ""
    if isinstance(parsed, IPv6Address):
        return _client_key(str(parsed.ipv4_mapped)) if parsed.ipv4_mapped else str(int(parsed) >> (128 - _NETWORK_BITS))
    return address


def is_loopback(host: str) -> bool:
    """Return whether a host is reachable from this machine only."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Access:
    """The access rules. Reloading the settings updates this object in place, so that all its users see the change."""

    def __init__(self, settings: ServeSettings, token: str = "") -> None:
        self._is_on_all_interfaces = False
        self._names: frozenset[str] = frozenset()
        self._token = b""
        self.wrong_tokens = WrongTokenCounter()
        self.max_body_bytes = 0
        self.update(settings, token)

    def update(self, settings: ServeSettings, token: str) -> None:
        """Apply new settings and a new token."""
        self._is_on_all_interfaces = settings.host in ALL_INTERFACES
        self._names = frozenset(name.lower() for name in (*LOOPBACK_NAMES, settings.host, *settings.hosts) if name)
        self._token = token.encode()
        self.max_body_bytes = round(settings.max_body_mb * 1_000_000)

    @property
    def needs_token(self) -> bool:
        """Whether requests need the token."""
        return bool(self._token)

    def new_cookie(self) -> str:
        """Return a login cookie. It expires, and does not reveal the token."""
        return self._make_cookie(f"{int(time.time()) + LOGIN_SECONDS:x}")

    def is_valid_token(self, token: str) -> bool:
        """Return whether `token` is the server's token. Compares in constant time."""
        return self.needs_token and secrets.compare_digest(token.encode(errors="surrogateescape"), self._token)

    def is_valid_cookie(self, cookie: str) -> bool:
        """Return whether `cookie` is an unexpired login cookie of this server."""
        expiry = cookie.partition(".")[0]
        is_ours = secrets.compare_digest(
            cookie.encode(errors="surrogateescape"), self._make_cookie(expiry).encode(errors="surrogateescape")
        )
        return self.needs_token and is_ours and int(expiry, 16) > time.time()

    def _make_cookie(self, expiry: str) -> str:
        proof = hmac.new(self._token, f"hark web login until {expiry}".encode(errors="surrogateescape"), hashlib.sha256)
        return f"{expiry}.{proof.hexdigest()}"

    def is_our_host(self, host: str) -> bool:
        """Return whether a Host header names this server. Other names are rejected to prevent DNS rebinding attacks.

        Any IP address is accepted if the server listens on all interfaces, because an IP address can't be rebound.
        """
        name = split_host(host)[0]
        if name in self._names:
            return True
        try:
            return self._is_on_all_interfaces and bool(ip_address(name))
        except ValueError:
            return False

    def is_same_origin(self, origin: str, host: str) -> bool:
        """Return whether an Origin header has the same host name and port as the request's Host header."""
        scheme, separator, authority = origin.partition("://")
        if not separator or scheme not in _DEFAULT_PORTS:
            return False
        default_port = _DEFAULT_PORTS[scheme]
        name, port = split_host(authority)
        host_name, host_port = split_host(host)
        return (name, port or default_port) == (host_name, host_port or default_port)


def split_host(host: str) -> tuple[str, str]:
    """Return the host name (lower case, without brackets) and the port of a Host header, or "" if it has no port."""
    host = host.strip().lower()
    if host.startswith("["):
        name, _, suffix = host[1:].partition("]")
        return name, suffix.removeprefix(":")
    name, _, port = host.partition(":")
    return name.removesuffix("."), port
