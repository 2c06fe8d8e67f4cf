"""A broken route on real sockets: messages fail fast, and a probe without tokens restores the route."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hark import open as open_agent
from hark.app.agent import Agent
from hark.engine.turn import route_prober
from hark.engine.turn.retry import RETRIES_PER_TURN, RetryBudget
from hark.protocol.outcomes import Completed, Failed, Outcome
from tests.fakes.models.behaviours import Exchange, blackhole, failing, text
from tests.fakes.models.server import ModelServer
from tests.waiting import at_most, until

PROVIDERS = ("openai", "responses", "anthropic")
PROBE_SECONDS = 0.05
pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Skip the pauses between retries, shorten the pauses between probes, and return the skipped pauses."""
    pauses: list[float] = []

    async def pause(_: RetryBudget, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(RetryBudget, "pause", pause)
    monkeypatch.setattr(route_prober, "PROBE_SECONDS", PROBE_SECONDS)
    return pauses


class FlakyModel:
    """A model that answers with `status` until it is set to 200. The next `hiccups` requests then still fail."""

    def __init__(self, status: int = 503) -> None:
        self.status = status
        self.hiccups = 0

    async def play(self, exchange: Exchange) -> None:
        self.hiccups -= 1
        status = 503 if self.hiccups >= 0 else self.status
        await (text(["fine"]) if status == 200 else failing(status))(exchange)


@asynccontextmanager
async def agent_on(home: Path, base_url: str, provider: str = "openai") -> AsyncGenerator[Agent]:
    routes = [{"base_url": base_url, "model": "fake", "provider": provider, "name": "main"}]
    async with open_agent(home=home, workspace=home, routes=routes) as agent:
        yield agent


async def outcome_of(agent: Agent, message: str = "hello") -> Outcome | None:
    session = agent.session("demo")
    await session.say(message)
    return await session.idle()


async def error_within_two_seconds(agent: Agent) -> str:
    """Send a message that fails, and return the code of its error."""
    async with asyncio.timeout(at_most(2.0)):
        outcome = await outcome_of(agent)
    assert isinstance(outcome, Failed)
    return outcome.error.code


def is_restored(agent: Agent) -> bool:
    (status,) = agent.routes()
    return status.is_well and not status.failures


def unused_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_after_exhausted_retries_a_message_makes_one_attempt_and_a_probe_restores_the_route(
    tmp_path: Path, provider: str, short_pauses: list[float]
) -> None:
    model = FlakyModel()
    async with ModelServer([model.play] * 100) as server, agent_on(tmp_path, server.base_url, provider) as agent:
        server.models_status = 503
        assert await error_within_two_seconds(agent) == "overloaded"
        assert len(short_pauses) == RETRIES_PER_TURN
        for number in range(1, 4):
            assert await error_within_two_seconds(agent) == "overloaded"
            assert len(server.requests) == RETRIES_PER_TURN + 1 + number
        assert len(short_pauses) == RETRIES_PER_TURN
        count = len(server.requests)
        await server.probes(server.probe_count + 2)
        assert not is_restored(agent)
        model.status = server.models_status = 200
        await until(lambda: is_restored(agent))
        assert len(server.requests) == count  # no message was sent, and no probe asked the model
        probes = server.probe_count
        model.hiccups = 1
        assert await outcome_of(agent) == Completed("fine")  # its first request failed, and it has its retries again
        assert len(server.requests) == count + 2
        assert server.probe_count == probes


@pytest.mark.parametrize("status", [401, 404])
async def test_a_refused_connection_fails_fast_until_any_answer_restores_the_route(
    tmp_path: Path, status: int, short_pauses: list[float]
) -> None:
    server = ModelServer([text(["fine"])])
    server.models_status = status
    port = unused_port()
    async with agent_on(tmp_path, f"http://127.0.0.1:{port}/v1") as agent:
        for _ in range(3):
            assert await error_within_two_seconds(agent) == "network"
        assert len(short_pauses) == RETRIES_PER_TURN
        await server.start(port)
        try:
            await until(lambda: is_restored(agent))
            assert server.requests == []
            assert await outcome_of(agent) == Completed("fine")
        finally:
            await server.stop()


async def test_an_unknown_host_fails_fast(tmp_path: Path, short_pauses: list[float]) -> None:
    async with agent_on(tmp_path, "http://no-such-host.invalid/v1") as agent:
        await outcome_of(agent)
        for _ in range(3):
            assert await error_within_two_seconds(agent) == "network"
        assert len(short_pauses) == RETRIES_PER_TURN
        assert not is_restored(agent)


async def test_an_error_status_whose_body_never_arrives_is_reported(tmp_path: Path) -> None:
    async def stall(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nhalf")
        await asyncio.get_running_loop().create_future()

    async with ModelServer([failing(503)] * 7 + [stall]) as server, agent_on(tmp_path, server.base_url) as agent:
        await outcome_of(agent)
        assert await error_within_two_seconds(agent) == "overloaded"


async def test_a_server_that_answers_probes_but_rejects_requests_stays_on_one_attempt(
    tmp_path: Path, short_pauses: list[float]
) -> None:
    model = FlakyModel()
    async with ModelServer([model.play] * 100) as server, agent_on(tmp_path, server.base_url) as agent:
        await outcome_of(agent)
        await server.probes(1)
        await asyncio.sleep(PROBE_SECONDS * 4)  # the time of several probes, none of which may come
        assert await error_within_two_seconds(agent) == "overloaded"
        assert len(short_pauses) == RETRIES_PER_TURN
        assert server.probe_count == 1
        model.status = 200
        assert await outcome_of(agent) == Completed("fine")
        assert is_restored(agent)


async def test_a_rejected_key_is_not_probed(tmp_path: Path) -> None:
    async with ModelServer([failing(401)] * 9) as server, agent_on(tmp_path, server.base_url) as agent:
        for number in range(1, 4):
            assert await error_within_two_seconds(agent) == "bad_key"
            assert len(server.requests) == number
        await asyncio.sleep(PROBE_SECONDS * 2)
        assert server.probe_count == 0


async def test_a_working_route_is_not_probed(tmp_path: Path) -> None:
    async with ModelServer([failing(503), text(["fine"])]) as server, agent_on(tmp_path, server.base_url) as agent:
        assert await outcome_of(agent) == Completed("fine")
        await asyncio.sleep(PROBE_SECONDS * 2)
        assert server.probe_count == 0


async def test_the_one_attempt_can_be_stopped_without_changing_the_routes_health(tmp_path: Path) -> None:
    model = FlakyModel()
    behaviours = [*[model.play] * 7, blackhole(), text(["fine"])]
    async with ModelServer(behaviours) as server, agent_on(tmp_path, server.base_url) as agent:
        await outcome_of(agent)
        health = agent.engine.routes.health_of("main")
        failures, until_time = health.failures, health.cool_down_until
        session = agent.session("demo")
        await session.say("hello")
        await server.request(8)
        await session.interrupt()
        assert (health.failures, health.cool_down_until) == (failures, until_time)
        assert len(server.requests) == 8
        assert await outcome_of(agent) == Completed("fine")


async def test_closing_the_agent_ends_a_probe_that_gets_no_answer(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readline()).startswith(b"GET"):
            waiting.set()
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with asyncio.timeout(at_most(3.0)):
        async with agent_on(tmp_path, f"http://127.0.0.1:{port}/v1") as agent:
            assert isinstance(await outcome_of(agent), Failed)
            await waiting.wait()
    server.close()
