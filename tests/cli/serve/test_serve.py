"""`hark serve` as a process: start, drain, restart, kill, reload, and exit within a time limit."""

import asyncio
import json
import signal
import socket
import time
from pathlib import Path

import aiohttp
import pytest

from tests.cli.command_line import gated, open_hark
from tests.cli.serve.gateway_fixture import MODULE, configure, serve_gateway
from tests.fakes.models.behaviours import echo, hanging, text
from tests.waiting import at_most, until


async def test_serve_runs_until_a_signal_and_the_signal_determines_the_exit_code(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()]) as hark:
        configure(hark)
        async with serve_gateway(hark) as served:
            assert await served.health() == "ready"
            await served.say("demo", "hi")
            await served.until_text("demo", "hi")
            served.running.signal(signal.SIGTERM)
            ended = await served.running.wait_for_end()
        assert (ended.code, "Traceback" in ended.err) == (143, False)
        async with serve_gateway(hark) as served:
            assert "hi" in await served.texts("demo")
            served.running.signal(signal.SIGINT)
            assert (await served.running.wait_for_end()).code == 130


async def test_accepted_messages_survive_a_kill(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2), echo(), echo(), echo()]) as hark:
        configure(hark)
        async with serve_gateway(hark) as served:
            await served.say("demo", "long", id="a")
            await hark.server.request(1)
            for name in ("b", "c"):
                receipt = await served.say("demo", f"then {name}", id=name, delivery="queue")
                assert receipt["state"] == "queued"
            served.running.process.kill()
            await served.running.process.wait()
        async with serve_gateway(hark) as served:
            await served.until_text("demo", "then c")
            await until(served.is_idle)
            texts = await served.texts("demo")
            assert [message for message in texts if message in ("long", "then b", "then c")].count("long") == 1
            assert (texts.count("then b"), texts.count("then c")) == (2, 2)  # sent once and echoed once
            assert any("cut by a crash" in message for message in texts)
            assert (await served.say("demo", "then b", id="b"))["state"] == "duplicate"


async def test_a_drain_lets_the_running_turn_end_and_saves_new_messages_for_the_restart(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_hark(tmp_path, [gated(gate, "finished"), echo(), echo(), echo()]) as hark:
        configure(hark, drain_seconds=20)
        async with serve_gateway(hark) as served:
            await served.say("demo", "long")
            await hark.server.request(1)
            await served.say("demo", "queued before", delivery="queue")
            served.running.signal(signal.SIGTERM)
            await until(served.is_draining)
            for session, message in (("demo", "came while draining"), ("other", "came elsewhere")):
                assert (await served.say(session, message))["state"] == "queued"
            status, answer = await served.call(
                "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}
            )
            assert (status, answer["error"]["code"]) == (503, "draining")
            assert len(hark.server.requests) == 1
            gate.set()
            ended = await served.running.wait_for_end()
        assert ended.code == 143
        assert len(hark.server.requests) == 1
        async with serve_gateway(hark) as served:
            await served.until_text("other", "came elsewhere")
            texts = await served.until_text("demo", "queued before")
            await served.until_text("demo", "came while draining")
            assert "well, finished" in texts
            await hark.server.request(4)


async def test_send_during_a_drain_reports_that_the_message_is_saved(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_hark(tmp_path, [gated(gate, "finished"), echo()]) as hark:
        configure(hark, drain_seconds=60)
        async with serve_gateway(hark) as served:
            await served.say("demo", "long")
            await hark.server.request(1)
            served.running.signal(signal.SIGTERM)
            await until(served.is_draining)
            sent = await hark.run("send", "demo", "came by hand")
            assert (sent.code, sent.json["state"], sent.json["position"]) == (0, "queued", 1)
            assert "The gateway is stopping. The message is saved" in sent.err
            gate.set()
            await served.running.wait_for_end()
        async with serve_gateway(hark) as served:
            await served.until_text("demo", "came by hand")


async def test_a_turn_that_outlasts_the_drain_is_settled_as_interrupted_by_the_restart(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2)]) as hark:
        configure(hark, drain_seconds=0.2)
        async with serve_gateway(hark) as served:
            async with served.client.get("/api/sessions/demo/events") as stream:
                await served.say("demo", "long")
                await hark.server.request(1)
                sent = served.running.signal(signal.SIGTERM)
                stream_text = (await stream.read()).decode()
            ended = await served.running.wait_for_end()
            took = time.perf_counter() - sent
        assert '"outcome":{"type":"interrupted","source":"restart"}' in stream_text
        assert (ended.code, took < at_most(5)) == (143, True)
        await asyncio.wait_for(hark.server.requests[0].disconnected.wait(), at_most(1))
        async with serve_gateway(hark) as served:
            assert any("interrupted: restart" in message for message in await served.texts("demo"))
        assert len(hark.server.requests) == 1


async def test_a_second_signal_exits_immediately(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2)]) as hark:
        configure(hark, drain_seconds=60)
        async with serve_gateway(hark) as served:
            await served.say("demo", "long")
            await hark.server.request(1)
            served.running.signal(signal.SIGTERM)
            await served.running.wait_for_stderr("SIGTERM: stopping")
            sent = served.running.signal(signal.SIGTERM)
            code = await served.running.process.wait()
        assert (code, time.perf_counter() - sent < at_most(1)) == (143, True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "example.org"])
async def test_a_non_loopback_address_without_a_token_is_refused(tmp_path: Path, host: str) -> None:
    async with open_hark(tmp_path) as hark:
        running = await hark.start_python(*MODULE, "--host", host, PYTHONPATH=str(Path.cwd()))
        ended = await running.wait_for_end()
    assert ended.code == 2
    assert "token" in ended.err
    assert "Traceback" not in ended.err


async def test_a_non_loopback_address_with_a_token_is_accepted(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        configure(hark, token_env="HARK_TEST_TOKEN")
        async with serve_gateway(hark, "--host", "0.0.0.0", HARK_TEST_TOKEN="quite-secret-indeed") as served:
            url = f"{served.base.replace('0.0.0.0', '127.0.0.1')}/api/sessions"
            async with aiohttp.ClientSession() as client:
                async with client.get(url) as answer:
                    assert answer.status == 401
                async with client.get(url, headers={"Authorization": "Bearer quite-secret-indeed"}) as answer:
                    assert answer.status == 200


async def test_a_listen_address_already_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        async with open_hark(tmp_path) as hark:
            port = str(occupied.getsockname()[1])
            running = await hark.start_python(*MODULE, "--port", port, PYTHONPATH=str(Path.cwd()))
            ended = await running.wait_for_end()
    assert ended.code == 1
    assert "Can't listen on" in ended.err
    assert "Traceback" not in ended.err


async def test_a_reload_applies_valid_settings_and_rejects_invalid_ones(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        configure(hark, token="the-first-token")
        async with serve_gateway(hark, "--verbose") as served:

            async def is_accepted(token: str) -> bool:
                headers = {"Authorization": f"Bearer {token}"}
                return (await served.call("GET", "/api/sessions", headers=headers))[0] == 200

            assert await is_accepted("the-first-token")
            configure(hark, token="the-other-token")
            served.running.signal(signal.SIGHUP)
            await served.running.wait_for_stderr("the settings were reloaded")
            assert (await is_accepted("the-first-token"), await is_accepted("the-other-token")) == (False, True)
            configure(hark, token=5)
            served.running.signal(signal.SIGHUP)
            await served.running.wait_for_stderr("the settings were not reloaded")
            assert await is_accepted("the-other-token")


async def test_the_service_manager_is_notified_of_start_and_stop(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(20)
        async with open_hark(tmp_path) as hark:
            configure(hark)
            async with serve_gateway(hark, NOTIFY_SOCKET=address) as served:
                assert manager.recv(500).startswith(b"READY=1\nSTATUS=serving on http://127.0.0.1:")
                served.running.signal(signal.SIGTERM)
                assert await asyncio.to_thread(manager.recv, 500) == b"STOPPING=1"


async def test_the_watchdog_is_pinged_and_a_reload_is_announced(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(20)
        async with open_hark(tmp_path) as hark:
            configure(hark)
            async with serve_gateway(hark, NOTIFY_SOCKET=address, WATCHDOG_USEC="300000") as served:

                async def next_notice(text: bytes) -> bytes:
                    while text not in (notice := await asyncio.to_thread(manager.recv, 500)):
                        assert notice
                    return notice

                await next_notice(b"READY=1")
                for _ in range(3):
                    await next_notice(b"WATCHDOG=1")
                served.running.signal(signal.SIGHUP)
                assert (await next_notice(b"RELOADING=1")).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
                assert b"STATUS=the settings were reloaded" in await next_notice(b"READY=1")


async def test_json_logs_contain_no_token(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["ok"])]) as hark:
        settings = {"serve": {"port": 0, "token": "the-only-token"}, "logs": {"format": "json"}}
        (hark.home / "serve.json").write_text(json.dumps(settings))
        async with serve_gateway(hark) as served:
            served.running.signal(signal.SIGHUP)
            log = hark.home / "logs" / "hark.log"
            await until(lambda: log.exists() and "reloaded" in log.read_text())
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert {"at", "level", "logger", "message"} <= set(lines[0])
        assert "the-only-token" not in log.read_text()
