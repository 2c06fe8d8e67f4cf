"""A program that talks to the HTTP API, and does again what it got no answer to."""

import asyncio
from typing import Any

import aiohttp

from tests.fire.book import Book, Deed
from tests.fire.seat import Shown

AGAIN_SECONDS = 0.3
SURE = (200, 202, 404, 409, 422)


class ApiClient:
    """Asks until it is answered."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30.0))
        self.posted_again = 0

    async def close(self) -> None:
        await self._http.close()

    async def ask(self, method: str, path: str, *, is_once: bool = False, **more: Any) -> tuple[int, Any]:
        """Return the status and the body; `is_once` gives up when there was no answer, with status 0."""
        while True:
            try:
                async with self._http.request(method, self._address + path, **more) as response:
                    if response.status in SURE:
                        return response.status, await response.json()
                    if response.status != 503:
                        raise AssertionError(f"{method} {path}: {response.status} {await response.text()}")
            except (aiohttp.ClientError, OSError):
                if is_once:
                    return 0, {}
            self.posted_again += 1
            await asyncio.sleep(AGAIN_SECONDS)


class ApiSeat:
    """A program with a session of its own. Its messages say themselves how they are meant."""

    can_delete = True
    has_commands = False

    def __init__(self, client: ApiClient, book: Book, number: int) -> None:
        self.session = f"api-{number}"
        self._client = client
        self._book = book
        self._path = f"/api/sessions/{self.session}"
        self._doing: set[asyncio.Task[None]] = set()
        self._last = asyncio.create_task(_nothing())

    async def write(self, text: str, deed: Deed, token: str) -> str:
        one = self._book.of(token)
        if one is None:
            self._do(self._post("/interrupt", deed, json={"source": "user"}))
            return ""
        delivery = one.kind if one.kind in ("queue", "steer") else "interrupt"
        body = {"id": token, "text": text, "delivery": delivery}
        self._do(self._post("/messages", deed, self._last, json=body))
        return token

    async def speak(self, recording: bytes, deed: Deed, token: str) -> str:
        headers = {"Content-Type": "audio/ogg"}
        sending = self._post(f"/voice?id={token}", deed, self._last, data=recording, headers=headers, token=token)
        self._do(sending)
        return token

    async def rewrite(self, message: str, text: str, deed: Deed) -> None:
        self._do(self._change("PATCH", message, deed, json={"text": text}))

    async def delete(self, message: str, deed: Deed) -> None:
        self._do(self._change("DELETE", message, deed))

    async def press(self, label: str, deed: Deed) -> str:
        return ""

    def shown(self) -> list[Shown]:
        return []

    @property
    def is_at_rest(self) -> bool:
        return not self._doing

    def _do(self, work: Any) -> None:
        self._last = asyncio.create_task(work)
        self._doing.add(self._last)
        self._last.add_done_callback(self._doing.discard)

    async def _post(
        self, path: str, deed: Deed, before: "asyncio.Task[None] | None" = None, token: str = "", **more: Any
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        status, _ = await self._client.ask("POST", self._path + path, **more)
        deed.take()
        one = self._book.of(token) if token else None
        if one is not None and status in (409, 422):
            one.is_told_stopped = True

    async def _change(self, method: str, message: str, deed: Deed, **more: Any) -> None:
        path = f"{self._path}/queue/{message}"
        status, _ = await self._client.ask(method, path, is_once=True, **more)
        if status == 200:
            deed.take()


async def _nothing() -> None:
    return None
