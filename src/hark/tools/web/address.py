"""Parses and normalises URLs, and detects private IP addresses."""

import re
import socket
import unicodedata
from contextlib import suppress
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from hark.protocol.tool import ToolError

MAX_CHARACTERS = 8_000
PORTS = {"http": 80, "https": 443}

_ESCAPED = re.compile("%[0-9A-Fa-f]{2}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_ENDS_IN_NUMBER = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")

_PUBLIC_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# Networks that ipaddress wrongly calls global in some of the Python versions that Hark supports.
_MORE_PRIVATE_NETWORKS = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",  # internal services of a cloud, at an address that looks public
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "2001:db8::/32",
        "2001::/23",  # includes Teredo, which wraps any address
        "2002::/16",  # 6to4, which also wraps any address
        "3fff::/20",
    )
)


class WebAddress(Struct, frozen=True):
    """A normalised URL: host in lower case, no user name or password, no default port, no fragment."""

    url: str
    host: str
    port: int


def parse_address(text: str, base_url: str = "") -> WebAddress:
    """Parse a URL. A relative URL is resolved against `base_url`.

    Raises:
        ToolError: The text is not an http or https URL.
    """
    if len(text) > MAX_CHARACTERS:
        raise ToolError(f"The URL is longer than {MAX_CHARACTERS:,} characters.")
    if _CONTROLS.search(text.strip()):
        raise ToolError("The URL contains line breaks or control characters. Write it on one line.")
    try:
        parts = urlsplit(urljoin(base_url, text.strip()))
        port = parts.port
    except ValueError as error:
        raise ToolError(f"{text[:200]!r} is not a valid URL: {error}.") from error
    if parts.scheme not in PORTS:
        raise ToolError(f"{text[:200]!r} is not an http or https URL. Write it in full: https://host/path.")
    if "@" in parts.netloc:
        raise ToolError("The URL contains a user name or password. Remove the part before the @.")
    host = _normalise_host(parts.hostname or "")
    number = PORTS[parts.scheme] if port is None else port
    return WebAddress(_build_url(parts, host, number), host, number)


def _build_url(parts: SplitResult, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    tail = "" if port == PORTS[parts.scheme] else f":{port}"
    query = f"?{parts.query}" if parts.query else ""
    # Normalise needless percent escapes: %64enied is denied.
    path = _ESCAPED.sub(lambda found: _unescape(found[0]), parts.path) or "/"
    return f"{parts.scheme}://{shown}{tail}{path}{query}"


def _unescape(escape: str) -> str:
    character = chr(int(escape[1:], 16))
    return character if character.isascii() and (character.isalnum() or character in "-._~") else escape.upper()


def _normalise_host(host: str) -> str:
    """Normalise a host for its lookup. For example, 0x7f.1, 2130706433 and １２７.0.0.1 all become 127.0.0.1."""
    if ":" in host:
        try:
            # Rejects a zone, which would name an interface of this machine.
            return str(IPv6Address(host.replace("%", " ")))
        except ValueError as error:
            raise ToolError(f"[{host}] is not an IPv6 address.") from error
    plain = unicodedata.normalize("NFKC", host).replace("。", ".").lower().rstrip(".")
    try:
        plain = plain if plain.isascii() else plain.encode("idna").decode()
    except UnicodeError as error:
        raise ToolError(f"{host[:200]!r} is not a host name.") from error
    if not _HOST.fullmatch(plain) or len(plain) > 253:
        raise ToolError(f"{host[:200]!r} is not a host name.")
    if not _ENDS_IN_NUMBER.fullmatch(plain):
        return plain
    try:
        return socket.inet_ntoa(socket.inet_aton(plain))
    except OSError as error:
        raise ToolError(f"{host[:200]!r} is neither a host name nor an IP address.") from error


def is_private(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an IP address is local, private or unassigned. Also checks IPv4 addresses embedded in IPv6."""
    if isinstance(address, IPv4Address):
        return not address.is_global or address.is_multicast or _is_listed_private(address)
    if address.ipv4_mapped is not None:
        return is_private(address.ipv4_mapped)
    inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _NAT64:
        return is_private(inner)
    is_isatap = (int(address) >> 32) & 0xFDFF_FFFF == 0x5EFE
    if is_isatap and is_private(inner):
        return True
    return address not in _PUBLIC_V6 or not address.is_global or _is_listed_private(address)


def _is_listed_private(address: IPv4Address | IPv6Address) -> bool:
    return any(address in network for network in _MORE_PRIVATE_NETWORKS if network.version == address.version)


class AddressPolicy:
    """Decides which IP addresses Hark may connect to: public addresses, and those that the settings allow."""

    def __init__(self, allow_private: bool = False, allow: tuple[str, ...] = ()) -> None:
        self._allows_all = allow_private
        self._allow = [_AllowListEntry(text) for text in allow]

    def allows(self, host: str, port: int, address: str) -> bool:
        """Return whether Hark may connect to the IP address `address` for this host and port."""
        if self._allows_all:
            return True
        number = ip_address(address.partition("%")[0])
        return not is_private(number) or any(one.matches(host, port, number) for one in self._allow)


class _AllowListEntry:
    """An entry of the allow-list, such as `localhost`, `*.lan`, `10.0.0.0/8`, `localhost:3000` or `[::1]:80`."""

    def __init__(self, text: str) -> None:
        host, port = _split_port(text.strip().lower())
        self._pattern = host.rstrip(".")
        self._port = port
        self._network: IPv4Network | IPv6Network | None = None
        with suppress(ValueError):  # not a network, so it is a host name or a pattern of host names
            self._network = ip_network(host, strict=False)

    def matches(self, host: str, port: int, address: IPv4Address | IPv6Address) -> bool:
        if self._port not in (None, port):
            return False
        if self._network is not None:
            return address.version == self._network.version and address in self._network
        return fnmatchcase(host, self._pattern)


def _split_port(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return host.strip("[]"), int(port)
    return text.strip("[]"), None
