"""One page of the web: asked for, redirects followed by hand, never larger than it may be."""

import zlib
from collections.abc import Callable

import aiohttp
from msgspec import Struct
from yarl import URL

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolError
from hark.tools.web.address import Reach, WebAddress, read_address
from hark.tools.web.connection import HostConnector, Lookup, open_session, system_lookup

MAX_BYTES = 5_000_000
MAX_REDIRECTS = 5
READ_BYTES = 65_536
REDIRECTS = frozenset({301, 302, 303, 307, 308})
ENCODINGS = "gzip, deflate"

Wanted = Callable[[str], bool]


class WebFailure(ToolError):
    """The page could not be had; the text says why, and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text, Effect.COMPLETED)


class WebPage(Struct, frozen=True):
    """What a server sent. `body` is empty when its type was not wanted; `size` is what the server said, or None."""

    url: str
    status: int
    content_type: str
    body: bytes
    size: int | None = None
    is_cut: bool = False


class Getter:
    """Gets pages within reach. `is_denied` is asked for every address on the way: no redirect leads around a rule."""

    def __init__(self, reach: Reach, user_agent: str, is_denied: Callable[[str], bool], lookup: Lookup | None) -> None:
        self._reach = reach
        self._is_denied = is_denied
        self._lookup = lookup or system_lookup
        self._headers = {
            "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,*/*;q=0.5",
            "Accept-Encoding": ENCODINGS,
            "Accept-Language": "en,*;q=0.5",
            "User-Agent": user_agent,
        }

    async def get(self, address: WebAddress, is_wanted: Wanted) -> WebPage:
        """Return the page at the end of the redirects. `is_wanted` tells whether a body of that type shall be read.

        Cancelling closes the connection at once.

        Raises:
            WebFailure: There is no such page, or it may not be reached.
        """
        for _ in range(MAX_REDIRECTS + 1):
            if self._is_denied(address.url):
                raise WebFailure(f"{address.url} is denied by the rules of this machine's owner.")
            answer = await self._ask(address, is_wanted)
            if isinstance(answer, WebPage):
                return answer
            try:
                address = read_address(answer, behind=address.url)
            except ToolError as error:
                raise WebFailure(f"{address.url} redirects to an address that can't be used. {error}") from error
        raise WebFailure(f"More than {MAX_REDIRECTS} redirects; the last one leads to {address.url}.")

    async def _ask(self, address: WebAddress, is_wanted: Wanted) -> WebPage | str:
        """Return the page, or where it redirects to."""
        door = HostConnector(address, self._reach)
        try:
            async with (
                open_session(door, self._lookup) as session,
                session.get(URL(address.url), headers=self._headers, allow_redirects=False) as response,
            ):
                place = response.headers.get("Location")
                if response.status in REDIRECTS and place:
                    return place
                kind = response.headers.get("Content-Type", "")
                body, is_cut = await read_body(response) if is_wanted(kind) else (b"", False)
                return WebPage(address.url, response.status, kind, body, response.content_length, is_cut)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise WebFailure(_why(address, error, door.refused)) from error


async def read_body(response: aiohttp.ClientResponse, max_bytes: int = MAX_BYTES) -> tuple[bytes, bool]:
    """Return a body, unpacked, up to `max_bytes`, and whether there was more. Never holds more than that.

    Raises:
        ValueError: It is packed in a way that nobody asked for, or wrongly.
    """
    unpack = _unpacker(response.headers.get("Content-Encoding", ""))
    body = bytearray()
    received = 0
    async for piece in response.content.iter_chunked(READ_BYTES):
        received += len(piece)
        body += unpack(piece, max_bytes + 1 - len(body))
        if len(body) > max_bytes or received > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    match encoding.strip().lower():
        case "" | "identity":
            return lambda piece, room: piece[:room]
        case "gzip" | "x-gzip":
            return _Unpacker(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Unpacker(zlib.MAX_WBITS)
        case other:
            raise ValueError(f"the server packed the page as {other[:40]!r}, which was not asked for")


class _Unpacker:
    """Unpacks as much as there is room for: a small body that becomes endless is cut, not held."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)
        self._is_first = True

    def __call__(self, piece: bytes, room: int) -> bytes:
        if self._is_first and self._window == zlib.MAX_WBITS and piece[:1] and piece[0] & 0x0F != 8:
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without its header: some servers send it so
        self._is_first = False
        try:
            return self._stream.decompress(piece, room)
        except zlib.error as error:
            raise ValueError(f"the server packed the page wrongly ({error})") from error


def _why(address: WebAddress, error: Exception, refused: list[str]) -> str:
    if refused:
        where = "" if address.host == refused[0] else f" ({refused[0]})"
        return (
            f"{address.host}{where} is a private address: this machine, its network or a cloud's inside, so nothing "
            "was asked of it. Its owner can allow it in the settings: allow or allow_private under [web]."
        )
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"There is no host {address.host}: its name could not be looked up. Check the spelling."
        case aiohttp.ClientConnectorCertificateError():
            return f"The certificate of {address.host} is not valid: {error.certificate_error}."
        case aiohttp.ClientResponseError():
            return f"{address.host} does not answer as a web server should on port {address.port}."
        case aiohttp.ClientConnectorError():
            reason = error.os_error.strerror or error.os_error
            return f"{address.host} can't be reached on port {address.port}: {reason}."
        case _:
            return f"The exchange with {address.host} failed: {str(error)[:300] or type(error).__name__}."
