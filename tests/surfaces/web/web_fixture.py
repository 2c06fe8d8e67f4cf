"""A web server on a real socket, with a real agent on a fake model, and an HTTP client."""

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
from hark.app.voice import speak_to_wav
from hark.protocol.speech import Transcriber
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.app import make_app
from hark.surfaces.web.guard.access import Access
from hark.surfaces.web.live.feed import Feeds
from hark.surfaces.web.metrics import Metrics
from hark.surfaces.web.server import bind_socket, make_server
from hark.surfaces.web.settings import ServeSettings
from hark.voice.inbox import TranscribingVoiceInbox
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings
from tests.fakes.models.behaviours import Behaviour
from tests.fakes.models.server import ModelServer

Json = dict[str, Any]


class EventStreamReader:
    """Reads server-sent events, and records them."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.events: list[Json] = []
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
                self.events.append(event)
                self.ids.append(int(fields["id"]) if "id" in fields else None)
                fields = {}
                yield event
            else:
                fields = {}

    async def wait_for(self, event_type: str, **values: Any) -> Json:
        """Return the next event of this type that has these values."""
        async for event in self:
            if event["type"] == event_type and all(event[key] == value for key, value in values.items()):
                return event
        raise AssertionError(f"the stream ended before {event_type}: {self.events}")


class WebFixture:
    """A client of a running web server, with the server's agent and fake model."""

    def __init__(
        self, base: str, client: aiohttp.ClientSession, agent: Agent, model: ModelServer, context: WebContext
    ) -> None:
        self.base = base
        self.client = client
        self.agent = agent
        self.model = model
        self.context = context

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Send a request. Return the status code and the decoded JSON response."""
        if body is not None:
            options["json"] = body
        async with self.client.request(method, path, **options) as response:
            return response.status, await response.json()

    async def fetch(self, path: str | URL, method: str = "GET", **options: Any) -> tuple[int, Mapping[str, str], str]:
        """Send a request. Return the status code, the headers and the text of the response."""
        async with self.client.request(method, path, **options) as response:
            return response.status, response.headers, await response.text()

    async def say(self, session: str, text: str, **fields: Any) -> Json:
        """Send a message and return its receipt."""
        status, receipt = await self.call("POST", f"/api/sessions/{session}/messages", {"text": text, **fields})
        assert status == 202, receipt
        return receipt

    async def messages(self, session: str) -> list[Json]:
        """Return the messages in the session's transcript."""
        status, body = await self.call("GET", f"/api/sessions/{session}/transcript")
        assert status == 200
        return body["messages"]

    @asynccontextmanager
    async def events(
        self, session: str, last_event_id: str | int = "", **options: Any
    ) -> AsyncGenerator[EventStreamReader]:
        """Open a session's event stream."""
        headers = {"Last-Event-ID": str(last_event_id)} if last_event_id != "" else {}
        async with self.client.get(f"/api/sessions/{session}/events", headers=headers, **options) as response:
            assert response.status == 200, await response.text()
            yield EventStreamReader(response)

    async def idle(self, session: str) -> None:
        """Wait until the session is idle."""
        await self.agent.session(session).idle()


@asynccontextmanager
async def run_web_server(
    tmp_path: Path,
    script: Sequence[Behaviour] | None = (),
    *,
    settings: ServeSettings | None = None,
    token: str = "",
    transcriber: Transcriber | None = None,
    **sections: Any,
) -> AsyncGenerator[WebFixture]:
    """Run a web server on a free port, with an agent on a scripted model."""
    serve_settings = settings or ServeSettings()
    metrics = Metrics(0.0)
    feeds = Feeds()
    listener = bind_socket("127.0.0.1", 0)
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
            voice_inbox = TranscribingVoiceInbox(transcriber, PendingRecordings(agent.home / "voice"), VoiceSettings())
            agent.engine.turn_ended.add(metrics.count_turn)
            context = WebContext(
                agent,
                Access(serve_settings, token),
                feeds,
                metrics,
                voice_inbox,
                speak=partial(speak_to_wav, agent.services.speaker()),
                version="0",
            )
            server = make_server(make_app(context))
            serving = asyncio.create_task(server.serve([listener]))
            try:
                yield WebFixture(base, client, agent, model, context)
            finally:
                tasks.cancel_scope.cancel()  # close the feeds first, so that no event stream stays open
                with anyio.CancelScope(shield=True):
                    await client.close()
                    await voice_inbox.close()
                    server.should_exit = True
                    await serving
