"""Downloads one web page, follows its redirects, and limits its size."""

import zlib
from collections.abc import Callable

import aiohttp
from msgspec import Struct
from yarl import URL

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolError
from hark.tools.web.address import AddressPolicy, WebAddress, parse_address
from hark.tools.web.connection import HostConnector, Lookup, open_session, system_lookup

MAX_BYTES = 5_000_000
MAX_REDIRECTS = 5
READ_BYTES = 65_536
REDIRECTS = frozenset({301, 302, 303, 307, 308})
ENCODINGS = "gzip, deflate"

ContentTypeFilter = Callable[[str], bool]


class WebError(ToolError):
    """The page could not be downloaded. The error's text gives the reason and explains what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text, Effect.COMPLETED)


class WebPage(Struct, frozen=True):
    """A server's response. `body` is empty if its type was not wanted. `size` is the Content-Length, or None."""

    url: str
    status: int
    content_type: str
    body: bytes
    size: int | None = None
    is_cut: bool = False


class PageDownloader:
    """Downloads pages that the policy allows. `is_denied` is checked for each redirect, so it can't be evaded."""

    def __init__(
        self, policy: AddressPolicy, user_agent: str, is_denied: Callable[[str], bool], lookup: Lookup | None
    ) -> None:
        self._policy = policy
        self._is_denied = is_denied
        self._lookup = lookup or system_lookup
        self._headers = {
            "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,*/*;q=0.5",
            "Accept-Encoding": ENCODINGS,
            "Accept-Language": "en,*;q=0.5",
            "User-Agent": user_agent,
        }

    async def get(self, address: WebAddress, is_wanted: ContentTypeFilter) -> WebPage:
        """Return the page after all redirects. `is_wanted` decides by the content type whether the body is read.

        Cancelling closes the connection immediately.

        Raises:
            WebError: The page does not exist, or may not be reached.
        """
        for _ in range(MAX_REDIRECTS + 1):
            if self._is_denied(address.url):
                raise WebError(f"{address.url} is denied by the rules of this machine's owner.")
            page = await self._request(address, is_wanted)
            if isinstance(page, WebPage):
                return page
            try:
                address = parse_address(page, base_url=address.url)
            except ToolError as error:
                raise WebError(f"{address.url} redirects to an invalid URL. {error}") from error
        raise WebError(f"More than {MAX_REDIRECTS} redirects; the last one leads to {address.url}.")

    async def _request(self, address: WebAddress, is_wanted: ContentTypeFilter) -> WebPage | str:
        """Return the page, or the URL that it redirects to."""
        connector = HostConnector(address, self._policy)
        try:
            async with (
                open_session(connector, self._lookup) as session,
                session.get(URL(address.url), headers=self._headers, allow_redirects=False) as response,
            ):
                location = response.headers.get("Location")
                if response.status in REDIRECTS and location:
                    return location
                kind = response.headers.get("Content-Type", "")
                body, is_cut = await read_body(response) if is_wanted(kind) else (b"", False)
                return WebPage(address.url, response.status, kind, body, response.content_length, is_cut)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise WebError(_explain_failure(address, error, connector.refused)) from error


async def read_body(response: aiohttp.ClientResponse, max_bytes: int = MAX_BYTES) -> tuple[bytes, bool]:
    """Return the decompressed body, up to `max_bytes`, and whether it was truncated. Never holds more in memory.

    Raises:
        ValueError: The compression is invalid, or was not requested.
    """
    decompress = _choose_decompressor(response.headers.get("Content-Encoding", ""))
    body = bytearray()
    received = 0
    async for piece in response.content.iter_chunked(READ_BYTES):
        received += len(piece)
        body += decompress(piece, max_bytes + 1 - len(body))
        if len(body) > max_bytes or received > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


def _choose_decompressor(encoding: str) -> Callable[[bytes, int], bytes]:
    match encoding.strip().lower():
        case "" | "identity":
            return lambda piece, room: piece[:room]
        case "gzip" | "x-gzip":
            return _Decompressor(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Decompressor(zlib.MAX_WBITS)
        case other:
            raise ValueError(f"the server compressed the page as {other[:40]!r}, which was not requested")


class _Decompressor:
    """Decompresses at most `max_bytes` at a time, so that a decompression bomb can't exhaust memory."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)
        self._is_first = True

    def __call__(self, piece: bytes, max_bytes: int) -> bytes:
        if self._is_first and self._window == zlib.MAX_WBITS and piece[:1] and piece[0] & 0x0F != 8:
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without its header, which some servers send
        self._is_first = False
        try:
            return self._stream.decompress(piece, max_bytes)
        except zlib.error as error:
            raise ValueError(f"the server compressed the page incorrectly ({error})") from error


def _explain_failure(address: WebAddress, error: Exception, refused: list[str]) -> str:
    if refused:
        where = "" if address.host == refused[0] else f" ({refused[0]})"
        return (
            f"{address.host}{where} is a private address (this machine, its network or a cloud's internal network), so "
            "no request was made. The owner can allow it in the settings: allow or allow_private under [web]."
        )
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"Host name not found: {address.host}. Check the spelling."
        case aiohttp.ClientConnectorCertificateError():
            return f"The certificate of {address.host} is not valid: {error.certificate_error}."
        case aiohttp.ClientResponseError():
            return f"{address.host} did not send a valid HTTP response on port {address.port}."
        case aiohttp.ClientConnectorError():
            reason = error.os_error.strerror or error.os_error
            return f"{address.host} can't be reached on port {address.port}: {reason}."
        case _:
            return f"The request to {address.host} failed: {str(error)[:300] or type(error).__name__}."
