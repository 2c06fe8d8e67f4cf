"""`hark -p`: one prompt, one answer, and an accurate exit code."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import Hark, gated, open_hark, shell_call
from tests.fakes.models.behaviours import echo, failing, hanging, text, tokens
from tests.fakes.models.server import ModelServer


async def test_only_the_answer_is_written_to_stdout(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["Hello, ", "you."])]) as hark:
        ended = await hark.run("-p", "hi")
    assert (ended.code, ended.out, ended.err) == (0, "Hello, you.\n", "")


async def test_json_output_is_one_object_with_all_documented_keys(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [shell_call("echo made"), text(["done"])]) as hark:
        ended = await hark.run("-p", "hi", "--output", "json", "--session", "demo")
    assert ended.code == 0
    assert ended.json.keys() == {"session", "turn", "outcome", "text", "usage", "cost", "timings", "calls"}
    assert ended.json["session"] == "demo"
    assert ended.json["outcome"] == {"type": "completed", "text": "done"}
    assert ended.json["calls"] == [{"name": "shell", "call": "call_1", "effect": "completed", "is_error": False}]


async def test_events_output_is_one_json_object_per_line_up_to_the_end_of_the_turn(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["a", "b"])]) as hark:
        ended = await hark.run("-p", "hi", "--output", "events")
    kinds = [event["type"] for event in ended.lines]
    assert kinds == [
        "message.accepted",
        "receipt",
        "turn.started",
        "step.started",
        "reply.delta",
        "reply.delta",
        "turn.ended",
    ]
    assert all({"session", "turn", "seq", "at"} <= event.keys() for event in ended.lines)


async def test_piped_input_follows_the_prompt(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()]) as hark:
        ended = await hark.run("-p", "sum this up:", typed="line one\nline two\n")
    assert ended.out == "sum this up:\n\nline one\nline two\n"


async def test_piped_input_that_is_not_text_is_decoded_with_replacements(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()]) as hark:
        running = await hark.start("-p", "what is this?")
        assert running.process.stdin is not None
        running.process.stdin.write(b"caf\xe9")
        ended = await running.wait_for_end()
    assert (ended.code, ended.out) == (0, "what is this?\n\ncaf\N{REPLACEMENT CHARACTER}\n")


async def test_an_empty_prompt_is_a_usage_error(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        ended = await hark.run("-p", "  ")
    assert ended.code == 2
    assert ended.err == 'hark: The prompt is empty. Use hark -p "PROMPT", or pipe it in.\n'


async def test_an_error_from_the_model_server_is_quoted(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [failing(401)]) as hark:
        ended = await hark.run("-p", "hi")
    assert (ended.code, ended.out) == (1, "")
    assert "the server says 401" in ended.err
    assert len(ended.err.splitlines()) == 1


async def test_reaching_a_limit_has_its_own_exit_code(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [shell_call("true"), text(["never"])]) as hark:
        ended = await hark.run("-p", "hi", "--max-steps", "1")
    assert ended.code == 3
    assert "Step limit reached (1)" in ended.err


async def test_a_timeout_stops_a_hanging_model_and_prints_the_partial_reply(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2)]) as hark:
        ended = await hark.run("-p", "hi", "--timeout", "1.5")
    assert (ended.code, ended.out) == (3, "tok0 tok1 \n")


async def test_a_dangerous_command_runs_only_with_the_yes_option(tmp_path: Path) -> None:
    command = "rm -rf ./precious"
    async with open_hark(tmp_path, [shell_call(command), text(["ok"]), shell_call(command), text(["ok"])]) as hark:
        precious = hark.home / "precious"
        precious.mkdir()
        refused = await hark.run("-p", "clean up", "--output", "json")
        assert refused.json["calls"][0]["effect"] == "not_started"
        assert precious.exists()
        allowed = await hark.run("-p", "clean up", "--output", "json", "--yes")
    assert allowed.json["calls"][0]["effect"] == "completed"
    assert not precious.exists()


async def test_a_session_continues_with_its_history(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["one"]), text(["two"])]) as hark:
        await hark.run("-p", "first", "--session", "demo")
        await hark.run("-p", "second", "--session", "demo")
        contents = [message["content"] for message in hark.server.requests[1].body["messages"][1:]]
    assert contents == ["first", "one", "second"]


async def test_a_reader_that_closes_the_pipe_early_causes_no_traceback(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [tokens(2000, rate=2000)]) as hark:
        command = f'"{sys.executable}" -m hark.cli.main -p hi --output events </dev/null | head -n 1'
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=hark.environment,
        )
        out, err = await process.communicate()
    assert (process.returncode, err) == (1, b"")
    assert out.startswith(b'{"type":"message.accepted"')


async def test_characters_that_the_output_encoding_lacks_are_replaced(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["caf\N{LATIN SMALL LETTER E WITH ACUTE}!"])]) as hark:
        ended = await hark.run("-p", "hi", PYTHONIOENCODING="ascii")
    assert (ended.code, ended.out) == (0, "caf?!\n")


async def test_messages_queued_by_another_process_still_run_after_the_answer(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_hark(tmp_path, [gated(gate, "done"), text(["the queued answer"])]) as hark:
        first = await hark.start("-p", "first", "--session", "demo", "--output", "events")
        assert first.process.stdin is not None
        first.process.stdin.close()
        await first.wait_for_line("reply.delta")
        receipt = (await hark.run("send", "demo", "second", "--delivery", "queue")).json
        assert (receipt["state"], receipt["position"]) == ("queued", 1)
        gate.set()
        ended = await first.wait_for_end()
        assert ended.code == 0
        shown = await hark.run("sessions", "show", "demo")
    assert "the queued answer" in shown.out
    assert "interrupted" not in shown.out


async def test_an_interrupting_message_replaces_the_prompt_and_is_answered(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2), text(["the better answer"])]) as hark:
        first = await hark.start("-p", "first", "--session", "demo")
        assert first.process.stdin is not None
        first.process.stdin.close()
        await hark.wait_for_request(1, first)
        receipt = (await hark.run("send", "demo", "no, this")).json
        assert receipt["state"] == "interrupting"
        ended = await first.wait_for_end()
    assert (ended.code, ended.out) == (0, "the better answer\n")


async def test_a_prompt_to_a_session_that_another_process_owns_is_answered_by_that_process(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["one"]), text(["two"])]) as hark:
        owner = await hark.start("--plain", "--session", "demo")
        owner.type("hello\n")
        await owner.wait_for_line("one")
        follower = await hark.run("-p", "and you?", "--session", "demo")
        assert (follower.code, follower.out) == (0, "two\n")
        await owner.wait_for_line("two")
        assert (await owner.wait_for_end()).code == 0


async def test_the_model_can_be_configured_with_environment_variables_alone(tmp_path: Path) -> None:
    async with ModelServer([text(["from the environment"])]) as server:
        hark = Hark(tmp_path, server)
        ended = await hark.run(
            "-p", "hi", OPENAI_API_KEY="sk-secret", OPENAI_BASE_URL=server.base_url, HARK_MODEL="fake"
        )
        assert server.requests[0].headers["authorization"] == "Bearer sk-secret"
    assert (ended.code, ended.out) == (0, "from the environment\n")


async def test_concurrent_prompts_on_one_home_are_all_answered(tmp_path: Path) -> None:
    count = 6
    async with open_hark(tmp_path, [text(["yes"])] * count) as hark:
        ended = await asyncio.gather(*(hark.run("-p", f"question {n}") for n in range(count)))
        listed = (await hark.run("sessions", "list", "--json")).json
    assert [(result.code, result.out) for result in ended] == [(0, "yes\n")] * count
    assert len(listed["sessions"]) == count


@pytest.mark.parametrize("command", ["/status", "/help", "/undo", "/usage"])
async def test_a_slash_command_as_the_prompt_prints_its_notice_and_ends(tmp_path: Path, command: str) -> None:
    async with open_hark(tmp_path) as hark:
        ended = await hark.run("-p", command)
    assert ended.code == 0
    assert ended.out.strip()
    assert not hark.server.requests
