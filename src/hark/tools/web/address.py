"""Web addresses: one spelling for each, and which of them are private."""

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
# What ipaddress calls global and is not, in some of the versions of Python that Hark runs on.
_MORE_PRIVATE = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",  # a cloud's own services, at an address that looks public
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "2001:db8::/32",
        "2001::/23",  # Teredo, which wraps any address, among them
        "2002::/16",  # 6to4, which does so too
        "3fff::/20",
    )
)


class WebAddress(Struct, frozen=True):
    """An address in its one spelling: small letters, no name or password, no default port, no fragment."""

    url: str
    host: str
    port: int


def read_address(text: str, behind: str = "") -> WebAddress:
    """Return the address that the text means; `behind` is the page that it stands on.

    Raises:
        ToolError: It is none, or not one for the web.
    """
    if len(text) > MAX_CHARACTERS:
        raise ToolError(f"The address is longer than {MAX_CHARACTERS:,} characters.")
    if _CONTROLS.search(text.strip()):
        raise ToolError("The address has line breaks or control characters in it. Write it on one line.")
    try:
        parts = urlsplit(urljoin(behind, text.strip()))
        port = parts.port
    except ValueError as error:
        raise ToolError(f"{text[:200]!r} is not an address: {error}.") from error
    if parts.scheme not in PORTS:
        raise ToolError(f"{text[:200]!r} is not an http or https address. Write it whole: https://host/path.")
    if "@" in parts.netloc:
        raise ToolError("The address has a name or password in it. Leave out what stands before the @.")
    host = _one_spelling(parts.hostname or "")
    number = PORTS[parts.scheme] if port is None else port
    return WebAddress(_joined(parts, host, number), host, number)


def _joined(parts: SplitResult, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    tail = "" if port == PORTS[parts.scheme] else f":{port}"
    query = f"?{parts.query}" if parts.query else ""
    # Without needless percent signs: %64enied is denied.
    path = _ESCAPED.sub(lambda found: _unescaped(found[0]), parts.path) or "/"
    return f"{parts.scheme}://{shown}{tail}{path}{query}"


def _unescaped(escape: str) -> str:
    letter = chr(int(escape[1:], 16))
    return letter if letter.isascii() and (letter.isalnum() or letter in "-._~") else escape.upper()


def _one_spelling(host: str) -> str:
    """Return a host as it is looked up. 0x7f.1, 2130706433 and １２７.0.0.1 become what they are: 127.0.0.1."""
    if ":" in host:
        try:
            return str(IPv6Address(host.replace("%", " ")))  # no zone: it would name a place on this machine
        except ValueError as error:
            raise ToolError(f"[{host}] is not an IPv6 address.") from error
    plain = unicodedata.normalize("NFKC", host).replace("。", ".").lower().rstrip(".")
    try:
        plain = plain if plain.isascii() else plain.encode("idna").decode()
    except UnicodeError as error:
        raise ToolError(f"{host[:200]!r} is not the name of a host.") from error
    if not _HOST.fullmatch(plain) or len(plain) > 253:
        raise ToolError(f"{host[:200]!r} is not the name of a host.")
    if not _ENDS_IN_NUMBER.fullmatch(plain):
        return plain
    try:
        return socket.inet_ntoa(socket.inet_aton(plain))
    except OSError as error:
        raise ToolError(f"{host[:200]!r} is neither a name nor an address.") from error


def is_private(address: IPv4Address | IPv6Address) -> bool:
    """Whether it belongs to this machine, its network or nobody, also when it is wrapped into another address."""
    if isinstance(address, IPv4Address):
        return not address.is_global or address.is_multicast or _is_more_private(address)
    if address.ipv4_mapped is not None:
        return is_private(address.ipv4_mapped)
    inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _NAT64:
        return is_private(inner)
    is_isatap = (int(address) >> 32) & 0xFDFF_FFFF == 0x5EFE
    if is_isatap and is_private(inner):
        return True
    return address not in _PUBLIC_V6 or not address.is_global or _is_more_private(address)


def _is_more_private(address: IPv4Address | IPv6Address) -> bool:
    return any(address in network for network in _MORE_PRIVATE if network.version == address.version)


class Reach:
    """What may be connected to: everything public, and what the settings allow."""

    def __init__(self, allow_private: bool = False, allow: tuple[str, ...] = ()) -> None:
        self._allows_all = allow_private
        self._allow = [_Allowed(text) for text in allow]

    def allows(self, host: str, port: int, address: str) -> bool:
        """Whether a connection to this address may be made for that host."""
        if self._allows_all:
            return True
        number = ip_address(address.partition("%")[0])
        return not is_private(number) or any(one.covers(host, port, number) for one in self._allow)


class _Allowed:
    """One entry of the allow list: `localhost`, `*.lan`, `10.0.0.0/8`, `localhost:3000`, `[::1]:80`."""

    def __init__(self, text: str) -> None:
        host, port = _with_port(text.strip().lower())
        self._pattern = host.rstrip(".")
        self._port = port
        self._network: IPv4Network | IPv6Network | None = None
        with suppress(ValueError):  # then it is a name, or a pattern of names
            self._network = ip_network(host, strict=False)

    def covers(self, host: str, port: int, address: IPv4Address | IPv6Address) -> bool:
        if self._port not in (None, port):
            return False
        if self._network is not None:
            return address.version == self._network.version and address in self._network
        return fnmatchcase(host, self._pattern)


def _with_port(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return host.strip("[]"), int(port)
    return text.strip("[]"), None
