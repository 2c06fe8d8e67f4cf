"""A program that uses the HTTP API and retries requests that got no response."""

import asyncio
import random
from typing import Any

import aiohttp

from tests.gateway_kills.expectations import QUEUE, STEER, Expectations, UserAction
from tests.gateway_kills.platforms.event_reader import EventReader
from tests.gateway_kills.platforms.platform import PlatformFeatures, VisibleMessage

RETRY_SECONDS = 0.3
DUPLICATE_SHARE = 0.05  # the share of posts that are sent twice at the same time
FINAL_STATUSES = (200, 202, 404, 409)


class ApiClient:
    """An HTTP client that retries a request until it gets a final response."""

    def __init__(self, address: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.address = address
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30.0))
        self.repeated_posts = 0

    async def close(self) -> None:
        await self.http.close()

    async def request(self, method: str, path: str, *, is_once: bool = False, **more: Any) -> tuple[int, Any]:
        """Send a request. Return the status and body, or status 0 if `is_once` and the connection failed."""
        while True:
            try:
                async with self.http.request(method, self.address + path, **more) as response:
                    if response.status in FINAL_STATUSES:
                        return response.status, await response.json()
                    if response.status != 503:
                        raise AssertionError(f"{method} {path}: {response.status} {await response.text()}")
            except (aiohttp.ClientError, OSError):
                if is_once:
                    return 0, {}
            self.repeated_posts += 1
            await asyncio.sleep(RETRY_SECONDS)


class ApiFixture:
    """A simulated program with its own session. Each of its messages specifies its delivery."""

    author = author_id = ""
    features = PlatformFeatures(has_commands=False)

    def __init__(self, client: ApiClient, expectations: Expectations, number: int) -> None:
        self.session = f"api-{number}"
        self._client = client
        self._expectations = expectations
        self._path = f"/api/sessions/{self.session}"
        self.stream = EventReader(client.http, client.address + self._path)
        self._running_tasks: set[asyncio.Task[None]] = set()
        self._last = self._last_change = asyncio.create_task(_do_nothing())

    async def write(self, text: str, action: UserAction, token: str, *, is_aside: bool = False) -> str:
        one = self._expectations.find(token)
        if one is None:
            self._start_request(self._post("/interrupt", action, json={"source": "user"}))
            return ""
        delivery = one.kind if one.kind in (QUEUE, STEER) else "interrupt"
        body = {"id": token, "text": text, "delivery": delivery}
        self._start_request(self._post("/messages", action, self._last, json=body))
        return token

    async def send_picture(self, text: str, action: UserAction, album: str) -> str:
        raise NotImplementedError

    async def send_recording(self, recording: bytes, action: UserAction, token: str) -> str:
        headers = {"Content-Type": "audio/ogg"}
        sending = self._post(f"/voice?id={token}", action, self._last, data=recording, headers=headers, token=token)
        self._start_request(sending)
        return token

    async def edit(self, message: str, text: str, action: UserAction) -> None:
        self._last_change = self._start_task(
            self._change("PATCH", message, action, self._last_change, json={"text": text})
        )

    async def delete(self, message: str, action: UserAction) -> None:
        self._last_change = self._start_task(self._change("DELETE", message, action, self._last_change))

    async def press(self, label: str, action: UserAction) -> VisibleMessage | None:
        return None

    def visible_messages(self) -> list[VisibleMessage]:
        return []

    @property
    def is_idle(self) -> bool:
        return not self._running_tasks

    def _start_request(self, work: Any) -> None:
        self._last = self._start_task(work)

    def _start_task(self, work: Any) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._running_tasks.add(task)
        task.add_done_callback(self._running_tasks.discard)
        return task

    async def _post(
        self, path: str, action: UserAction, before: "asyncio.Task[None] | None" = None, token: str = "", **more: Any
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        times = 2 if self._client.random.random() < DUPLICATE_SHARE else 1
        self._client.repeated_posts += times - 1
        answers = await asyncio.gather(*(self._client.request("POST", self._path + path, **more) for _ in range(times)))
        action.mark_accepted()
        one = self._expectations.find(token) if token else None
        if one is not None and all(status == 409 for status, _ in answers):
            one.is_reported_stopped = True

    async def _change(
        self, method: str, message: str, action: UserAction, before: "asyncio.Task[None]", **more: Any
    ) -> None:
        await asyncio.wait([before])
        path = f"{self._path}/queue/{message}"
        status, _ = await self._client.request(method, path, is_once=True, **more)
        if status == 200:
            action.mark_accepted()


async def _do_nothing() -> None:
    return None
