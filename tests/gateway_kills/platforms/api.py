"""A program that talks to the HTTP API, and does again what it got no answer to."""

import asyncio
import random
from typing import Any

import aiohttp

from tests.gateway_kills.expectations import QUEUE, STEER, Book, Deed
from tests.gateway_kills.platforms.event_reader import Stream
from tests.gateway_kills.platforms.platform import Habits, Shown

AGAIN_SECONDS = 0.3
AGAIN_SHARE = 0.05  # of what is posted is posted once more, at the same time
SURE = (200, 202, 404, 409)


class ApiClient:
    """Asks until it is answered."""

    def __init__(self, address: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.address = address
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30.0))
        self.posted_again = 0

    async def close(self) -> None:
        await self.http.close()

    async def ask(self, method: str, path: str, *, is_once: bool = False, **more: Any) -> tuple[int, Any]:
        """Return the status and the body; `is_once` gives up when there was no answer, with status 0."""
        while True:
            try:
                async with self.http.request(method, self.address + path, **more) as response:
                    if response.status in SURE:
                        return response.status, await response.json()
                    if response.status != 503:
                        raise AssertionError(f"{method} {path}: {response.status} {await response.text()}")
            except (aiohttp.ClientError, OSError):
                if is_once:
                    return 0, {}
            self.posted_again += 1
            await asyncio.sleep(AGAIN_SECONDS)


class ApiFixture:
    """A program with a session of its own. Its messages say themselves how they are meant."""

    author = author_id = ""
    habits = Habits(has_commands=False)

    def __init__(self, client: ApiClient, book: Book, number: int) -> None:
        self.session = f"api-{number}"
        self._client = client
        self._book = book
        self._path = f"/api/sessions/{self.session}"
        self.stream = Stream(client.http, client.address + self._path)
        self._doing: set[asyncio.Task[None]] = set()
        self._last = self._changing = asyncio.create_task(_nothing())

    async def write(self, text: str, deed: Deed, token: str, *, is_aside: bool = False) -> str:
        one = self._book.of(token)
        if one is None:
            self._do(self._post("/interrupt", deed, json={"source": "user"}))
            return ""
        delivery = one.kind if one.kind in (QUEUE, STEER) else "interrupt"
        body = {"id": token, "text": text, "delivery": delivery}
        self._do(self._post("/messages", deed, self._last, json=body))
        return token

    async def picture(self, text: str, deed: Deed, album: str) -> str:
        raise NotImplementedError

    async def speak(self, recording: bytes, deed: Deed, token: str) -> str:
        headers = {"Content-Type": "audio/ogg"}
        sending = self._post(f"/voice?id={token}", deed, self._last, data=recording, headers=headers, token=token)
        self._do(sending)
        return token

    async def rewrite(self, message: str, text: str, deed: Deed) -> None:
        self._changing = self._begin(self._change("PATCH", message, deed, self._changing, json={"text": text}))

    async def delete(self, message: str, deed: Deed) -> None:
        self._changing = self._begin(self._change("DELETE", message, deed, self._changing))

    async def press(self, label: str, deed: Deed) -> Shown | None:
        return None

    def shown(self) -> list[Shown]:
        return []

    @property
    def is_at_rest(self) -> bool:
        return not self._doing

    def _do(self, work: Any) -> None:
        self._last = self._begin(work)

    def _begin(self, work: Any) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)
        return task

    async def _post(
        self, path: str, deed: Deed, before: "asyncio.Task[None] | None" = None, token: str = "", **more: Any
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        times = 2 if self._client.random.random() < AGAIN_SHARE else 1
        self._client.posted_again += times - 1
        answers = await asyncio.gather(*(self._client.ask("POST", self._path + path, **more) for _ in range(times)))
        deed.take()
        one = self._book.of(token) if token else None
        if one is not None and all(status == 409 for status, _ in answers):
            one.is_told_stopped = True

    async def _change(self, method: str, message: str, deed: Deed, before: "asyncio.Task[None]", **more: Any) -> None:
        await asyncio.wait([before])
        path = f"{self._path}/queue/{message}"
        status, _ = await self._client.ask(method, path, is_once=True, **more)
        if status == 200:
            deed.take()


async def _nothing() -> None:
    return None
