"""A program that reads a session's events, resumes after a reconnect, and reads the transcript on a resync."""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from typing import Any

import aiohttp

PAUSE_SECONDS = 0.2


class EventReader:
    """Counts the turn ends that it receives, across all processes of the gateway."""

    def __init__(self, http: aiohttp.ClientSession, address: str) -> None:
        self.ended: Counter[str] = Counter()  # turns, by the number of received end events
        self.read: set[str] = set()  # turns that were in a transcript
        self.resyncs = 0
        self._http = http
        self._address = address
        self._last = ""

    @property
    def delivered(self) -> Counter[str]:
        """How often each turn's end was delivered. A turn seen only in a transcript counts once."""
        return self.ended + Counter(self.read - self.ended.keys())

    async def run(self) -> None:
        """Read events until cancelled, and reconnect after an error."""
        while True:
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                await self._read_events()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _read_events(self) -> None:
        headers = {"Last-Event-ID": self._last} if self._last else {}
        no_timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0)
        async with self._http.get(f"{self._address}/events", headers=headers, timeout=no_timeout) as response:
            if response.status != 200:
                return
            if not self._last:
                await self._read_transcript()
            name = ""
            async for line in response.content:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "id":
                    name = value
                elif field == "data":
                    await self._on_event(json.loads(value))
                    self._last = name or self._last

    async def _on_event(self, event: dict[str, Any]) -> None:
        if event["type"] == "turn.ended":
            self.ended[event["turn"]] += 1
        elif event["type"] == "notice" and event.get("code") == "resync":
            self.resyncs += 1
            await self._read_transcript()

    async def _read_transcript(self) -> None:
        async with self._http.get(f"{self._address}/transcript") as response:
            if response.status == 200:
                body: dict[str, Any] = await response.json()
                running = body["running"]["turn"] if body["running"] else ""
                self.read |= {message["turn"] for message in body["messages"]} - {running}
