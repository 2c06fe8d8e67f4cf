"""Turns are exported as traces without their content, and an unreachable collector has no effect on turns."""

import asyncio
import io
import logging
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import hark
from hark.app.agent import Agent
from tests.cli.command_line import open_hark, shell_call
from tests.fakes.collector import Collector, collector_server
from tests.fakes.models.behaviours import failing, hanging, text
from tests.fakes.models.server import ModelServer
from tests.waiting import at_most

TURN = "invoke_agent hark"
KEY = "sk-very-secret-key"
LONG_EXIT_SECONDS = 100.0  # exit timeout: on a busy machine, sending the last traces takes a share of it


def open_traced_agent(
    collector: Collector, home: Path, model: ModelServer, exit_seconds: float = LONG_EXIT_SECONDS, **more: Any
) -> Any:
    route = {"name": "main", "base_url": model.base_url, "model": "fake", "api_key": KEY}
    telemetry = {"traces": "otlp", "endpoint": collector.url, **more}
    sections: dict[str, Any] = {"telemetry": telemetry, "approvals": {"mode": "all"}}
    return hark.open(home=home, workspace=home, routes=[route], limits={"exit_seconds": exit_seconds}, **sections)


async def run_turns(agent: Agent, *texts: str) -> None:
    session = agent.session("demo")
    for prompt in texts:
        await session.say(prompt)
        await session.idle()


async def test_turn_with_a_tool_is_exported_as_a_trace_with_its_steps(tmp_path: Path) -> None:
    script = [shell_call("echo from the shell"), text(["all ", "done"])]
    async with collector_server() as collector, ModelServer(script) as model:
        async with open_traced_agent(collector, tmp_path, model) as agent:
            began = time.time_ns()
            await run_turns(agent, "run my secret plan")
        [turn] = collector.spans_named(TURN)
        first, second = collector.children_of(turn)
        asked, kept, ran = collector.children_of(first)
        [said] = collector.children_of(second)
    assert (first.name, second.name) == ("step 1", "step 2")
    assert [span.name for span in (asked, ran, said)] == ["chat fake", "execute_tool shell", "chat fake"]
    assert kept.attributes == {"hark.waits_for": "snapshot"}
    assert {span.trace for span in collector.spans} == {turn.trace}
    assert turn.status == "ok"
    assert abs(turn.start - began) < 60e9
    assert turn.start <= asked.start <= asked.end <= ran.start <= ran.end <= said.start <= said.end <= turn.end + 1e6
    expected = {"gen_ai.conversation.id": "demo", "hark.turn": "demo.t1", "hark.outcome": "completed"}
    assert expected.items() <= turn.attributes.items()
    chat = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "fake"}
    assert chat.items() <= said.attributes.items()
    assert (said.kind, turn.kind) == (3, 1)  # a client span and an internal span
    assert ran.attributes["gen_ai.tool.name"] == "shell"
    assert ran.attributes["hark.effect"] == "completed"
    assert collector.resources[0]["service.name"] == "hark"
    sent = b"".join(collector.bodies)
    for hidden in (b"secret plan", b"from the shell", b"done", KEY.encode()):
        assert hidden not in sent


async def test_tokens_are_exported_for_each_reply_and_for_the_turn(tmp_path: Path) -> None:
    async with collector_server() as collector, ModelServer([text(["hi"])]) as model:
        async with open_traced_agent(collector, tmp_path, model) as agent:
            await run_turns(agent, "hello")
        [turn], [chat] = collector.spans_named(TURN), collector.spans_named("chat fake")
    for span in (turn, chat):
        assert span.attributes["gen_ai.usage.input_tokens"] > 0
        assert span.attributes["gen_ai.usage.output_tokens"] > 0


async def test_interrupt_is_exported_as_an_event_with_its_stop_time_and_not_as_an_error(tmp_path: Path) -> None:
    script = [hanging(2), text(["next"])]
    async with collector_server() as collector, ModelServer(script) as model:
        async with open_traced_agent(collector, tmp_path, model) as agent:
            session = agent.session("demo")
            await session.say("long")
            await model.request(1)
            settled = await session.interrupt("user")
            await run_turns(agent, "go on")
        first, second = collector.spans_named(TURN)
        [(name, at, attributes)] = first.events
        [step] = collector.children_of(first)
        [chat] = collector.children_of(step)
    assert (first.status, first.attributes["hark.outcome"]) == ("unset", "interrupted")
    assert (second.status, second.events) == ("ok", [])
    assert (name, attributes["hark.interrupt.source"]) == ("interrupt", "user")
    assert attributes["hark.interrupt.settle_ms"] == pytest.approx(settled.timings.settle)
    assert first.start <= at <= first.end
    assert chat.attributes["hark.settle_ms"] <= settled.timings.settle


async def test_failed_turn_is_exported_as_an_error_without_the_servers_message(tmp_path: Path) -> None:
    async with collector_server() as collector, ModelServer([failing(400, message="you sent something odd")]) as model:
        async with open_traced_agent(collector, tmp_path, model) as agent:
            await run_turns(agent, "hello")
        [turn], [chat] = collector.spans_named(TURN), collector.spans_named("chat fake")
    assert (turn.status, chat.status) == ("error", "error")
    assert turn.attributes["error.type"]
    assert b"something odd" not in b"".join(collector.bodies)


async def test_failed_attempt_and_its_retry_pause_are_spans_of_the_step(tmp_path: Path) -> None:
    async with collector_server() as collector, ModelServer([failing(500, "0"), text(["hello"])]) as model:
        async with open_traced_agent(collector, tmp_path, model) as agent:
            await run_turns(agent, "hello")
        [turn] = collector.spans_named(TURN)
        [step] = collector.children_of(turn)
        failed, pause, chat = collector.children_of(step)
    assert [span.name for span in (failed, pause, chat)] == ["chat fake", "pause retry", "chat fake"]
    assert [span.status for span in (turn, failed, chat)] == ["ok", "error", "unset"]


SECRET_NAMES = ("DB_PWD", "PROXY_AUTH", "SERVICE_BEARER", "X_AUTHORIZATION", "SSH_PASSPHRASE", "A_COOKIE", "MY_KEY")


async def test_traces_mask_the_same_secrets_as_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {name: f"value-of-{name}" for name in SECRET_NAMES}
    plain = {"GIT_AUTHOR_NAME": "value-of-author", "OAUTH_PORT": "value-of-port"}
    for name, value in {**secrets, **plain}.items():
        monkeypatch.setenv(name, value)
    words = " ".join([*secrets.values(), *plain.values()])
    lines = io.StringIO()
    handler, logger = logging.StreamHandler(lines), logging.getLogger("hark")
    logger.addHandler(handler)
    try:
        async with collector_server() as collector, ModelServer([text(["well"])]) as model:
            async with open_traced_agent(collector, tmp_path, model, content=True) as agent:
                await run_turns(agent, words)
                logger.warning(words)
            [turn] = collector.spans_named(TURN)
    finally:
        logger.removeHandler(handler)
    expected = "(secret) " * len(secrets) + "value-of-author value-of-port"
    assert lines.getvalue().rstrip().endswith(expected)
    assert expected in turn.attributes["gen_ai.input.messages"]


async def test_message_texts_are_exported_without_secrets_when_content_export_is_on(tmp_path: Path) -> None:
    script = [shell_call(f"echo {KEY} is the key"), text(["all ", "done"])]
    async with collector_server() as collector, ModelServer(script) as model:
        async with open_traced_agent(collector, tmp_path, model, content=True) as agent:
            await run_turns(agent, f"my key is {KEY}, use it")
        [turn], [tool] = collector.spans_named(TURN), collector.spans_named("execute_tool shell")
        said = collector.spans_named("chat fake")[-1]
    assert "my key is (secret), use it" in turn.attributes["gen_ai.input.messages"]
    assert "echo (secret) is the key" in tool.attributes["gen_ai.tool.call.arguments"]
    assert "(secret) is the key" in tool.attributes["gen_ai.tool.call.result"]
    assert said.attributes["gen_ai.output.messages"] == "all done"
    assert KEY.encode() not in b"".join(collector.bodies)


async def test_unreachable_collector_does_not_affect_turns_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    unreachable = Collector(url="http://127.0.0.1:1")
    async with ModelServer([text(["one"]), text(["two"]), text(["three"])]) as model:
        async with open_traced_agent(unreachable, tmp_path, model, exit_seconds=5.0) as agent:
            await run_turns(agent, "a", "b", "c")
            leaving = time.monotonic()
        assert time.monotonic() - leaving < at_most(10)  # bounded, whatever the collector does
        assert len(model.requests) == 3
    warnings = [record for record in caplog.records if "collector" in record.getMessage()]
    assert len(warnings) <= 1
    assert capfd.readouterr().err == ""


async def test_collector_receives_later_turns_after_it_recovers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with collector_server() as collector, ModelServer([text(["one"]), text(["two"])]) as model:
        collector.status = 400
        async with open_traced_agent(collector, tmp_path, model) as agent:
            await run_turns(agent, "a")
            await collector.until(lambda: collector.requests > 0)
            collector.status = 200
            await run_turns(agent, "b")
        assert [span.attributes["hark.turn"] for span in collector.spans_named(TURN)] == ["demo.t2"]
    assert len([span for span in caplog.records if "collector does not accept traces" in span.getMessage()]) == 1


async def test_command_line_uses_the_standard_otel_environment_variables(tmp_path: Path) -> None:
    async with collector_server() as collector, open_hark(tmp_path, [text(["hello"])]) as program:
        program.configure(f'[telemetry]\ntraces = "otlp"\n[limits]\nexit_seconds = {LONG_EXIT_SECONDS}\n')
        ended = await program.run(
            *("-p", "hi"),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_EXPORTER_OTLP_HEADERS="x-team=blue",
            OTEL_SERVICE_NAME="my-agent",
        )
        assert (ended.code, ended.out.strip(), ended.err.count("Traceback")) == (0, "hello", 0)
        assert len(collector.spans_named(TURN)) == 1
        assert collector.headers[0]["x-team"] == "blue"
        assert collector.resources[0]["service.name"] == "my-agent"


async def test_process_exits_in_time_when_its_collector_hangs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts connections and never answers
        async with open_hark(tmp_path, [text(["hello"])]) as program:
            address = f"http://127.0.0.1:{silent.getsockname()[1]}"
            program.configure(f'[telemetry]\ntraces = "otlp"\nendpoint = "{address}"\n')
            async with asyncio.timeout(30):
                ended = await program.run("-p", "hi")
    assert (ended.code, ended.out.strip()) == (0, "hello")


async def test_telemetry_modules_are_not_imported_when_telemetry_is_off(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hello"])]) as program:
        code = (
            "import sys; from hark.cli.main import main; code = main(['-p', 'hi']); "
            "print([name for name in sys.modules if 'opentelemetry' in name or 'telemetry_' in name]); sys.exit(code)"
        )
        running = await program.start_python("-c", code)
        ended = await running.wait_for_end()
    assert ended.out.splitlines() == ["hello", "[]"]
