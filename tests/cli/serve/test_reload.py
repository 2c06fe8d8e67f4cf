"""SIGHUP: new turns use the new settings, running turns keep the old ones, and unchanged services are not touched."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.command_line import Hark, gated, open_hark, shell_call
from tests.cli.serve.gateway_fixture import REAL_COMMAND, ServedGateway, serve_gateway
from tests.fakes.models.behaviours import call, delta, echo, events, failing, hanging, text
from tests.fakes.models.exchange import Exchange
from tests.fakes.models.server import ModelServer
from tests.mcp.mcp_fixture import small_server_settings, wait_for_note
from tests.tools.fake_context import find_processes
from tests.waiting import until

RELOADED = "the settings were reloaded"
NOT_RELOADED = "the settings were not reloaded"


def route_toml(server: ModelServer, name: str = "main", extra: str = "") -> str:
    return f'[[routes]]\nname = "{name}"\nbase_url = "{server.base_url}"\nmodel = "fake"\n{extra}\n'


def write_settings(hark: Hark, *parts: str) -> None:
    (hark.home / "config.toml").write_text("\n".join([*parts, "[serve]\nport = 0\n"]))


class ReloadableGateway:
    """A gateway whose settings can be reloaded."""

    def __init__(self, hark: Hark, served: ServedGateway) -> None:
        self.hark = hark
        self.served = served

    async def reload(self, *parts: str, expected: str = RELOADED) -> str:
        """Write new settings, reload them, and return the log lines written since."""
        write_settings(self.hark, *parts)
        before = len(self._log())
        self.served.running.signal(signal.SIGHUP)
        await until(lambda: expected in self._log()[before:], shows=lambda: (expected, self._log()))
        return self._log()[before:]

    async def until_connected(self, *names: str) -> None:
        """Wait until exactly these MCP servers are configured, and all are connected."""
        seen: list[dict[str, str]] = [{}]

        async def are_connected() -> bool:
            seen[0] = await self.servers()
            return seen[0] == dict.fromkeys(names, "connected")

        await until(are_connected, shows=lambda: seen[0])

    async def servers(self) -> dict[str, str]:
        """Return the state of each MCP server, by name."""
        return {row["name"]: row["state"] for row in (await self.served.call("GET", "/api/status"))[1]["mcp"]}

    def _log(self) -> str:
        file = self.hark.home / "logs" / "hark.log"
        return file.read_text() if file.exists() else ""


# ruff: noqa: SIM117 - a model and its gateway are separate contexts
@asynccontextmanager
async def serve_reloadable(hark: Hark, *parts: str) -> AsyncGenerator[ReloadableGateway]:
    write_settings(hark, *parts)
    async with serve_gateway(hark, program=REAL_COMMAND) as served:
        yield ReloadableGateway(hark, served)


async def test_a_running_turn_keeps_its_route_and_the_next_turn_uses_the_new_one(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_hark(tmp_path, [gated(gate, "the old one")]) as hark, ModelServer([text(["the new one"])]) as other:
        async with serve_reloadable(hark, route_toml(hark.server)) as gateway:
            served = gateway.served
            await served.say("demo", "long")
            await hark.server.request(1)
            log = await gateway.reload(route_toml(other, extra='api_key = "another-key"'))
            assert "routes changed" in log
            assert "another-key" not in log
            gate.set()
            await served.until_text("demo", "well, the old one")
            await served.say("demo", "next")
            await served.until_text("demo", "the new one")
            assert other.requests[0].headers["authorization"] == "Bearer another-key"


async def test_an_unchanged_route_keeps_its_health_after_a_reload(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [failing(401)]) as hark, ModelServer([text(["spare"]), text(["again"])]) as spare:
        failing_route = route_toml(hark.server, "ill", 'api_key = "k"')
        async with serve_reloadable(hark, failing_route, route_toml(spare, "spare")) as gateway:
            served = gateway.served
            await served.say("demo", "one")
            await served.until_text("demo", "spare")
            await gateway.reload(
                failing_route, route_toml(spare, "spare", "first_byte_seconds = 9"), "[limits]\nsteps = 7"
            )
            health = {row["name"]: row["is_well"] for row in (await served.call("GET", "/api/status"))[1]["routes"]}
            assert health == {"ill": False, "spare": True}
            await served.say("demo", "two")
            await served.until_text("demo", "again")
            await gateway.reload(route_toml(spare, "ill"), route_toml(spare, "spare"))
            health = {row["name"]: row["is_well"] for row in (await served.call("GET", "/api/status"))[1]["routes"]}
            assert health == {"ill": True, "spare": True}  # another server with the same name is healthy


async def test_a_running_turn_keeps_the_rules_that_it_started_with(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def call_shell_after_gate(exchange: Exchange) -> None:
        await gate.wait()
        await shell_call(f"echo ran >> {tmp_path}/ran")(exchange)

    script = [call_shell_after_gate, text(["one"]), shell_call(f"echo ran >> {tmp_path}/ran"), text(["two"])]
    async with open_hark(tmp_path, script) as hark:
        async with serve_reloadable(hark, route_toml(hark.server), '[approvals]\nmode = "all"') as gateway:
            served = gateway.served
            await served.say("demo", "first")
            await hark.server.request(1)
            await gateway.reload(
                route_toml(hark.server), '[approvals]\nmode = "all"\ndeny = ["shell"]', "[limits]\nsteps = 2"
            )
            gate.set()
            await served.until_text("demo", "one")
            assert (tmp_path / "ran").read_text() == "ran\n"
            await served.say("demo", "second")
            await served.until_text("demo", "two")
            assert (tmp_path / "ran").read_text() == "ran\n"
    assert "denied by the rules" in json.dumps(hark.server.requests[3].body)


async def test_messages_are_delivered_according_to_the_reloaded_settings(tmp_path: Path) -> None:
    async with (
        open_hark(tmp_path, [hanging(2), echo()]) as hark,
        serve_reloadable(hark, route_toml(hark.server)) as gateway,
    ):
        await gateway.served.say("demo", "long")
        await hark.server.request(1)
        await gateway.reload(route_toml(hark.server), '[delivery]\ndefault = "interrupt"\napi = "queue"')
        assert (await gateway.served.say("demo", "waits"))["state"] == "queued"


def server_toml(name: str, notes: Path, *arguments: str) -> str:
    server = small_server_settings(*arguments)
    table = f'command = "{server["command"]}"\nargs = {json.dumps(server["args"])}\nstart = "eager"\n'
    return f'[mcp.servers.{name}]\n{table}env = {{ NOTES = "{notes}" }}\n'


async def test_only_changed_mcp_servers_are_started_or_stopped(tmp_path: Path) -> None:
    notes = {name: tmp_path / name for name in ("same", "other", "gone", "new")}
    async with open_hark(tmp_path) as hark:
        first = [
            server_toml("same", notes["same"]),
            server_toml("other", notes["other"]),
            server_toml("gone", notes["gone"]),
        ]
        async with serve_reloadable(hark, route_toml(hark.server)) as gateway:
            assert "mcp changed" in await gateway.reload(route_toml(hark.server), *first)
            for name in ("same", "other", "gone"):
                await wait_for_note(notes[name], "started")
            later = [
                server_toml("same", notes["same"]),
                server_toml("other", notes["other"], "other"),
                server_toml("new", notes["new"]),
            ]
            await gateway.reload(route_toml(hark.server), *later)
            await wait_for_note(notes["new"], "started")
            await until(lambda: notes["other"].read_text().count("started") == 2)
            await until(lambda: not find_processes(f"NOTES={notes['gone']}"))
            await until(lambda: len(find_processes(f"NOTES={notes['other']}")) == 1)
            assert len(find_processes(f"NOTES={notes['same']}")) == 1
            await gateway.until_connected("same", "other", "new")
            await gateway.reload(route_toml(hark.server))
            assert await gateway.servers() == {}
    assert notes["same"].read_text().count("started") == 1
    assert notes["gone"].read_text().count("started") == 1


async def test_a_running_call_completes_when_its_mcp_server_is_removed(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    late_call = call(0, "call_1", "one__late", "{}")
    script = [events([delta(tool_calls=[late_call]), delta("tool_calls")]), text(["done"])]
    approvals = '[approvals]\nmode = "all"'
    async with open_hark(tmp_path, script) as hark:
        async with serve_reloadable(hark, route_toml(hark.server), approvals, server_toml("one", notes)) as gateway:
            await gateway.until_connected("one")
            await gateway.served.say("demo", "go")
            await wait_for_note(notes, "call late")
            await gateway.reload(route_toml(hark.server), approvals)
            await gateway.served.until_text("demo", "done")
    results = [message for message in hark.server.requests[1].body["messages"] if message["role"] == "tool"]
    assert results[0]["content"] == "late"


async def test_invalid_settings_are_reported_and_all_old_settings_remain_in_effect(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()]) as hark:
        good = [route_toml(hark.server), '[delivery]\napi = "steer"']
        async with serve_reloadable(hark, *good) as gateway:
            for broken, why in (
                (route_toml(hark.server, extra='api_key_env = "NOT_SET_ANYWHERE"'), "NOT_SET_ANYWHERE"),
                (route_toml(hark.server) + '[mcp.servers.x]\nurl = "ftp://x"\n', "mcp.servers.x"),
                (route_toml(hark.server) + "[limits]\nsteps = 0\n", "limits.steps"),
                ("this is not TOML", "not valid TOML"),
            ):
                assert why in await gateway.reload(broken, '[delivery]\ndefault = "queue"', expected=NOT_RELOADED)
            await gateway.served.say("demo", "hello")
            await gateway.served.until_text("demo", "hello")
            assert (await gateway.served.call("GET", "/api/status"))[1]["mcp"] == []


async def test_changed_settings_that_need_a_restart_are_reported(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark, serve_reloadable(hark, route_toml(hark.server)) as gateway:
        file = hark.home / "config.toml"
        file.write_text(route_toml(hark.server) + '[serve]\nport = 1\n[store]\nurl = "memory"\n')
        gateway.served.running.signal(signal.SIGHUP)
        await gateway.served.running.wait_for_stderr("restart to apply: store, serve.port")
        assert await gateway.served.health() == "ready"


async def test_many_reload_signals_at_once_do_not_stop_the_gateway(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()]) as hark, serve_reloadable(hark, route_toml(hark.server)) as gateway:
        for _ in range(20):
            gateway.served.running.signal(signal.SIGHUP)
        await gateway.reload(route_toml(hark.server), "[limits]\nsteps = 3")
        await gateway.served.say("demo", "still there")
        await gateway.served.until_text("demo", "still there")
