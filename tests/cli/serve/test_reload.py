"""SIGHUP: what begins follows the new settings, what runs keeps the old ones, what is the same is not touched."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.command_line import Hark, gated, opened, shell_call
from tests.cli.serve.gateway import REAL, Served, serving
from tests.fakes.models.behaviours import call, delta, echo, events, failing, hanging, text
from tests.fakes.models.exchange import Exchange
from tests.fakes.models.server import ModelServer
from tests.mcp.mcp_fixture import noted, small
from tests.waiting import until

READ = "the settings were read again"
NOT_READ = "the settings were not read again"


def route(server: ModelServer, name: str = "main", more: str = "") -> str:
    return f'[[routes]]\nname = "{name}"\nbase_url = "{server.base_url}"\nmodel = "fake"\n{more}\n'


def settings(hark: Hark, *parts: str) -> None:
    (hark.home / "config.toml").write_text("\n".join([*parts, "[serve]\nport = 0\n"]))


class Reloading:
    """A gateway that reads its settings again."""

    def __init__(self, hark: Hark, served: Served) -> None:
        self.hark = hark
        self.served = served

    async def reload(self, *parts: str, said: str = READ) -> str:
        """Write other settings and have them read; return what was told of it."""
        settings(self.hark, *parts)
        before = len(self._log())
        self.served.running.signal(signal.SIGHUP)
        await until(lambda: said in self._log()[before:], shows=lambda: (said, self._log()))
        return self._log()[before:]

    async def until_connected(self, *names: str) -> None:
        """Return when these are all the MCP servers, and all are there."""
        seen: list[dict[str, str]] = [{}]

        async def are_connected() -> bool:
            seen[0] = await self.servers()
            return seen[0] == dict.fromkeys(names, "connected")

        await until(are_connected, shows=lambda: seen[0])

    async def servers(self) -> dict[str, str]:
        """Return how the MCP servers stand, by name."""
        return {row["name"]: row["state"] for row in (await self.served.call("GET", "/api/status"))[1]["mcp"]}

    def _log(self) -> str:
        file = self.hark.home / "logs" / "hark.log"
        return file.read_text() if file.exists() else ""


# ruff: noqa: SIM117 - a model and its gateway are two things
@asynccontextmanager
async def reloading(hark: Hark, *parts: str) -> AsyncGenerator[Reloading]:
    settings(hark, *parts)
    async with serving(hark, program=REAL) as served:
        yield Reloading(hark, served)


async def test_a_running_turn_ends_on_its_own_route_and_the_next_has_the_new_one(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with opened(tmp_path, [gated(gate, "the old one")]) as hark, ModelServer([text(["the new one"])]) as other:
        async with reloading(hark, route(hark.server)) as gateway:
            served = gateway.served
            await served.say("demo", "long")
            await hark.server.request(1)
            told = await gateway.reload(route(other, more='api_key = "another-key"'))
            assert "routes changed" in told
            assert "another-key" not in told
            gate.set()
            await served.until_text("demo", "well, the old one")
            await served.say("demo", "next")
            await served.until_text("demo", "the new one")
            assert other.requests[0].headers["authorization"] == "Bearer another-key"


async def test_a_route_that_is_the_same_stays_as_ill_as_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path, [failing(401)]) as hark, ModelServer([text(["spare"]), text(["again"])]) as spare:
        ill = route(hark.server, "ill", 'api_key = "k"')
        async with reloading(hark, ill, route(spare, "spare")) as gateway:
            served = gateway.served
            await served.say("demo", "one")
            await served.until_text("demo", "spare")
            await gateway.reload(ill, route(spare, "spare", "first_byte_seconds = 9"), "[limits]\nsteps = 7")
            health = {row["name"]: row["is_well"] for row in (await served.call("GET", "/api/status"))[1]["routes"]}
            assert health == {"ill": False, "spare": True}
            await served.say("demo", "two")
            await served.until_text("demo", "again")
            await gateway.reload(route(spare, "ill"), route(spare, "spare"))
            health = {row["name"]: row["is_well"] for row in (await served.call("GET", "/api/status"))[1]["routes"]}
            assert health == {"ill": True, "spare": True}  # another server under the same name is not ill


async def test_a_turn_keeps_the_rules_that_it_began_with(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def later(exchange: Exchange) -> None:
        await gate.wait()
        await shell_call(f"echo ran >> {tmp_path}/ran")(exchange)

    script = [later, text(["one"]), shell_call(f"echo ran >> {tmp_path}/ran"), text(["two"])]
    async with opened(tmp_path, script) as hark:
        async with reloading(hark, route(hark.server), '[approvals]\nmode = "all"') as gateway:
            served = gateway.served
            await served.say("demo", "first")
            await hark.server.request(1)
            await gateway.reload(
                route(hark.server), '[approvals]\nmode = "all"\ndeny = ["shell"]', "[limits]\nsteps = 2"
            )
            gate.set()
            await served.until_text("demo", "one")
            assert (tmp_path / "ran").read_text() == "ran\n"
            await served.say("demo", "second")
            await served.until_text("demo", "two")
            assert (tmp_path / "ran").read_text() == "ran\n"
    assert "denied by the rules" in json.dumps(hark.server.requests[3].body)


async def test_deliveries_follow(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(2), echo()]) as hark, reloading(hark, route(hark.server)) as gateway:
        await gateway.served.say("demo", "long")
        await hark.server.request(1)
        await gateway.reload(route(hark.server), '[delivery]\ndefault = "interrupt"\napi = "queue"')
        assert (await gateway.served.say("demo", "waits"))["state"] == "queued"


def server(name: str, notes: Path, *words: str) -> str:
    one = small(*words)
    table = f'command = "{one["command"]}"\nargs = {json.dumps(one["args"])}\nstart = "eager"\n'
    return f'[mcp.servers.{name}]\n{table}env = {{ NOTES = "{notes}" }}\n'


async def test_only_mcp_servers_that_changed_are_started_or_stopped(tmp_path: Path) -> None:
    notes = {name: tmp_path / name for name in ("same", "other", "gone", "new")}
    async with opened(tmp_path) as hark:
        first = [server("same", notes["same"]), server("other", notes["other"]), server("gone", notes["gone"])]
        async with reloading(hark, route(hark.server)) as gateway:
            assert "mcp changed" in await gateway.reload(route(hark.server), *first)
            for name in ("same", "other", "gone"):
                await noted(notes[name], "started")
            later = [
                server("same", notes["same"]),
                server("other", notes["other"], "other"),
                server("new", notes["new"]),
            ]
            await gateway.reload(route(hark.server), *later)
            await noted(notes["new"], "started")
            await until(lambda: notes["other"].read_text().count("started") == 2)
            await gateway.until_connected("same", "other", "new")
            await gateway.reload(route(hark.server))
            assert await gateway.servers() == {}
    assert notes["same"].read_text().count("started") == 1
    assert notes["gone"].read_text().count("started") == 1


async def test_a_call_that_a_server_has_under_way_is_not_cut_when_the_server_is_taken_away(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    late = call(0, "call_1", "one__late", "{}")
    script = [events([delta(tool_calls=[late]), delta("tool_calls")]), text(["done"])]
    approvals = '[approvals]\nmode = "all"'
    async with opened(tmp_path, script) as hark:
        async with reloading(hark, route(hark.server), approvals, server("one", notes)) as gateway:
            await gateway.until_connected("one")
            await gateway.served.say("demo", "go")
            await noted(notes, "call late")
            await gateway.reload(route(hark.server), approvals)
            await gateway.served.until_text("demo", "done")
    results = [message for message in hark.server.requests[1].body["messages"] if message["role"] == "tool"]
    assert results[0]["content"] == "late"


async def test_broken_settings_are_told_and_all_the_old_ones_stay(tmp_path: Path) -> None:
    async with opened(tmp_path, [echo()]) as hark:
        good = [route(hark.server), '[delivery]\napi = "steer"']
        async with reloading(hark, *good) as gateway:
            for broken, why in (
                (route(hark.server, more='api_key_env = "NOT_SET_ANYWHERE"'), "NOT_SET_ANYWHERE"),
                (route(hark.server) + '[mcp.servers.x]\nurl = "ftp://x"\n', "mcp.servers.x"),
                (route(hark.server) + "[limits]\nsteps = 0\n", "limits.steps"),
                ("this is no TOML", "not valid TOML"),
            ):
                assert why in await gateway.reload(broken, '[delivery]\ndefault = "queue"', said=NOT_READ)
            await gateway.served.say("demo", "hello")
            await gateway.served.until_text("demo", "hello")
            assert (await gateway.served.call("GET", "/api/status"))[1]["mcp"] == []


async def test_what_needs_a_restart_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark, reloading(hark, route(hark.server)) as gateway:
        file = hark.home / "config.toml"
        file.write_text(route(hark.server) + '[serve]\nport = 1\n[store]\nurl = "memory"\n')
        gateway.served.running.signal(signal.SIGHUP)
        await gateway.served.running.said("store, serve.port needs a restart")
        assert await gateway.served.health() == "ready"


async def test_many_signals_at_once_do_no_harm(tmp_path: Path) -> None:
    async with opened(tmp_path, [echo()]) as hark, reloading(hark, route(hark.server)) as gateway:
        for _ in range(20):
            gateway.served.running.signal(signal.SIGHUP)
        await gateway.reload(route(hark.server), "[limits]\nsteps = 3")
        await gateway.served.say("demo", "still there")
        await gateway.served.until_text("demo", "still there")
