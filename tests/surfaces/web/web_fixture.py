"""The HTTP side on a real socket: a real agent on a fake model, and a client."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import anyio
from yarl import URL

from hark.app.agent import Agent
from hark.app.build import open_agent
from hark.app.voice import spoken
from hark.protocol.speech import Transcriber
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.app import make_app
from hark.surfaces.web.guard.access import Access
from hark.surfaces.web.live.feed import Feeds
from hark.surfaces.web.metrics import Metrics
from hark.surfaces.web.server import bound_socket, make_server
from hark.surfaces.web.settings import ServeSettings
from hark.voice.inbox import VoiceIngress
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings
from tests.fakes.models.behaviours import Behaviour
from tests.fakes.models.server import ModelServer

Json = dict[str, Any]


class Stream:
    """A reader of server-sent events."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.seen: list[Json] = []
        self.ids: list[int | None] = []
        self.comments = 0

    async def __aiter__(self) -> AsyncIterator[Json]:
        fields: dict[str, str] = {}
        async for raw in self.response.content:
            line = raw.decode().rstrip("\n")
            if line.startswith(":"):
                self.comments += 1
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                event: Json = json.loads(fields["data"])
                assert fields["event"] == event["type"]
                self.seen.append(event)
                self.ids.append(int(fields["id"]) if "id" in fields else None)
                fields = {}
                yield event
            else:
                fields = {}

    async def until(self, kind: str, **having: Any) -> Json:
        """Return the next event of that kind, with these values."""
        async for event in self:
            if event["type"] == kind and all(event[key] == value for key, value in having.items()):
                return event
        raise AssertionError(f"the stream ended before {kind}: {self.seen}")


class World:
    """A client of the gateway, and the model behind it."""

    def __init__(
        self, base: str, client: aiohttp.ClientSession, agent: Agent, model: ModelServer, place: WebContext
    ) -> None:
        self.base = base
        self.client = client
        self.agent = agent
        self.model = model
        self.place = place

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        if body is not None:
            options["json"] = body
        async with self.client.request(method, path, **options) as response:
            return response.status, await response.json()

    async def fetch(self, path: str | URL, method: str = "GET", **options: Any) -> tuple[int, Mapping[str, str], str]:
        """Return the status, the headers and the text of an answer."""
        async with self.client.request(method, path, **options) as response:
            return response.status, response.headers, await response.text()

    async def say(self, session: str, text: str, **more: Any) -> Json:
        """Say something; return its receipt."""
        status, receipt = await self.call("POST", f"/api/sessions/{session}/messages", {"text": text, **more})
        assert status == 202, receipt
        return receipt

    async def messages(self, session: str) -> list[Json]:
        """Return the transcript."""
        status, body = await self.call("GET", f"/api/sessions/{session}/transcript")
        assert status == 200
        return body["messages"]

    @asynccontextmanager
    async def events(self, session: str, last: str | int = "", **options: Any) -> AsyncGenerator[Stream]:
        """Read a session's events."""
        headers = {"Last-Event-ID": str(last)} if last != "" else {}
        async with self.client.get(f"/api/sessions/{session}/events", headers=headers, **options) as response:
            assert response.status == 200, await response.text()
            yield Stream(response)

    async def idle(self, session: str) -> None:
        """Return when nothing runs in a session."""
        await self.agent.session(session).idle()


@asynccontextmanager
async def served(
    tmp_path: Path,
    script: Sequence[Behaviour] | None = (),
    *,
    settings: ServeSettings | None = None,
    token: str = "",
    transcriber: Transcriber | None = None,
    **sections: Any,
) -> AsyncGenerator[World]:
    """The gateway on a free port, over an agent whose model behaves like this."""
    chosen = settings or ServeSettings()
    metrics = Metrics(0.0)
    feeds = Feeds()
    listener = bound_socket("127.0.0.1", 0)
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with ModelServer(script) as model:
        model_name = "echo" if script is None else "fake"
        route = {"name": "main", "base_url": model.base_url, "model": model_name}
        sections.setdefault("routes", [route])
        async with (
            open_agent(home=tmp_path / "home", workspace=tmp_path, **sections) as agent,
            anyio.create_task_group() as tasks,
            aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(30), trust_env=False) as client,
        ):
            tasks.start_soon(agent.loop_lag.run)
            await tasks.start(feeds.run)
            ingress = VoiceIngress(transcriber, PendingRecordings(agent.home / "voice"), VoiceSettings())
            agent.bench.ends.listen(metrics.ended)
            place = WebContext(
                agent,
                Access(chosen, token),
                feeds,
                metrics,
                ingress,
                speak=partial(spoken, agent.parts.speaker()),
                version="0",
            )
            server = make_server(make_app(place))
            serving = asyncio.create_task(server.serve([listener]))
            try:
                yield World(base, client, agent, model, place)
            finally:
                tasks.cancel_scope.cancel()  # the feeds first, so that no stream is left open
                with anyio.CancelScope(shield=True):
                    await client.close()
                    await ingress.close()
                    server.should_exit = True
                    await serving
