"""A program that reads a session's events, comes back where it was, and reads the transcript when it is told to."""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from typing import Any

import aiohttp

PAUSE_SECONDS = 0.2


class Stream:
    """What it heard of the ends of turns, over all lives of the gateway."""

    def __init__(self, http: aiohttp.ClientSession, address: str) -> None:
        self.ended: Counter[str] = Counter()  # turns, by how often their end was told
        self.read: set[str] = set()  # turns that stood in a transcript
        self.resyncs = 0
        self._http = http
        self._address = address
        self._last = ""

    @property
    def delivered(self) -> Counter[str]:
        """Return how often each turn was delivered: by an event, or else by the transcript."""
        return self.ended + Counter(self.read - self.ended.keys())

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                await self._follow()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self) -> None:
        headers = {"Last-Event-ID": self._last} if self._last else {}
        patient = aiohttp.ClientTimeout(total=None, sock_connect=10.0)
        async with self._http.get(f"{self._address}/events", headers=headers, timeout=patient) as response:
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
                    await self._take(json.loads(value))
                    self._last = name or self._last

    async def _take(self, event: dict[str, Any]) -> None:
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
