"""`hark doctor` reports whether a turn can run and how to fix problems, and never prints a key."""

import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from hark.app.doctor.machine import check_database, check_voice
from hark.app.doctor.results import Level
from hark.app.settings.types import Settings
from hark.voice.settings import VoiceSettings
from tests.cli.command_line import open_hark
from tests.cli.pseudo_terminal import run_in_terminal
from tests.fakes.models.behaviours import failing, text

KEY = "sk-very-secret-0123456789"


async def test_doctor_succeeds_when_a_route_answers(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hi"])]) as hark:
        ended = await hark.run("doctor", OPENROUTER_API_KEY=KEY)
        assert (await hark.server.request(1)).body["max_tokens"] == 16
    assert ended.code == 0, ended
    lines = {line.split()[1]: line for line in ended.out.splitlines()[:-1]}
    assert lines["answer"].startswith("ok"), ended
    assert "main: openai fake at http://127.0.0.1:" in lines["route"]
    assert "OPENROUTER_API_KEY is set" in lines["keys"]
    assert "ANTHROPIC_API_KEY is not set" in lines["keys"]
    assert {"hark", "home", "database", "sandbox", "ripgrep", "processes", "terminal", "servers", "embedded"} < set(
        lines
    )
    assert ended.out.endswith("Ready.\n")
    assert KEY not in ended.out + ended.err


async def test_doctor_reports_a_failing_route_as_bad_with_the_servers_message(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [failing(401, message="no such key")]) as hark:
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert [line for line in ended.out.splitlines() if line.startswith("bad   answer") and "no such key" in line]


async def test_doctor_succeeds_when_one_of_several_routes_answers(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [failing(401), text(["hi"])]) as hark:
        hark.configure(f'[[routes]]\nname = "spare"\nbase_url = "{hark.server.base_url}"\nmodel = "fake"\n')
        ended = await hark.run("doctor")
    assert ended.code == 0
    # The routes are tested concurrently, so either may get the error.
    assert sorted(line.split()[0] for line in ended.out.splitlines() if "  answer  " in line) == ["bad", "ok"]


async def test_invalid_settings_are_reported_and_the_other_checks_still_run(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "config.toml").write_text("[limits\n")
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert "bad   settings" in ended.out
    assert "ok    home" in ended.out
    assert ended.err == ""


@pytest.mark.parametrize(("stt", "beginning"), [("off", "not set up"), ("moonshine", "set up")])
def test_voice_is_reported_as_set_up_unless_speech_recognition_is_off(
    stt: Literal["off", "moonshine"], beginning: str
) -> None:
    [result] = check_voice(Settings(voice=VoiceSettings(stt=stt)))
    assert result.text.startswith(beginning)


async def test_doctor_names_a_missing_api_key_variable(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        hark.configure('api_key_env = "NOT_THERE"\n')
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert "the environment variable NOT_THERE is not set" in ended.out


async def test_an_unwritable_home_is_reported_as_bad(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hi"])]) as hark:
        elsewhere = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": hark.server.base_url}
        ended = await hark.run("doctor", HARK_HOME="/proc/hark", **elsewhere)
    assert ended.code == 1
    assert "bad   home        /proc/hark is not writable" in ended.out
    assert "HARK_HOME" in ended.out
    assert "because OPENAI_API_KEY is set" in ended.out
    assert "ok    answer" in ended.out


def test_a_damaged_database_is_reported_as_bad_and_an_intact_one_as_ok(tmp_path: Path) -> None:
    file = tmp_path / "hark.db"
    assert [finding.level for finding in check_database(file)] == [Level.OK]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE a (b)")
    assert [finding.level for finding in check_database(file)] == [Level.OK]
    file.write_bytes(b"no database at all" * 100)
    (finding,) = check_database(file)
    assert finding.level is Level.BAD
    assert finding.advice


async def test_doctor_prints_its_results_as_json(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hi"])]) as hark:
        report = (await hark.run("doctor", "--json")).json
    assert report["can_run"] is True
    assert {"name", "level", "text", "advice"} == set(report["findings"][0])
    assert {finding["level"] for finding in report["findings"]} <= {"ok", "warn", "bad"}


async def test_mcp_servers_are_tested_and_a_failing_server_is_reported_as_a_warning(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with open_hark(tmp_path, [text(["hi"])]) as hark:
        hark.configure(
            '[mcp.servers.broken]\ncommand = "/no/such/program"\n'
            f'[mcp.servers.gone]\nurl = "http://127.0.0.1:{port}/mcp"\n'
            '[mcp.servers.off]\ncommand = "true"\nenabled = false\n'
        )
        ended = await hark.run("doctor")
    assert ended.code == 0, ended
    results = [line for line in ended.out.splitlines() if line.split()[1:2] == ["mcp"]]
    assert results[0].startswith("warn  mcp         broken: failed: ")
    assert results[1].startswith(f"warn  mcp         gone: no server listening on 127.0.0.1:{port}")
    assert results[2] == "ok    mcp         off: disabled in the settings"


async def test_invalid_settings_for_an_mcp_server_are_reported_as_bad(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hi"])]) as hark:
        hark.configure('[mcp.servers.odd]\ncommand = "a"\nurl = "http://b"\n')
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert "bad   mcp         mcp.servers.odd needs either a command" in ended.out


async def test_a_missing_sandbox_is_reported_as_bad_when_the_settings_require_it(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hi"])]) as hark:
        hark.configure('[sandbox]\nmode = "required"\n')
        ended = await hark.run("doctor", PATH="/nowhere")
    assert ended.code == 1
    assert "bad   sandbox     required by the settings, but bubblewrap (bwrap) is not installed" in ended.out
    assert "warn  ripgrep     missing" in ended.out
    assert "warn  git         missing" in ended.out


async def test_doctor_output_fits_the_terminal_and_reports_colour_support_and_an_ssh_connection(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hi"]), text(["hi"])]) as hark:
        shown = await run_in_terminal(hark, "doctor", COLORTERM="truecolor", SSH_CONNECTION="a", TMUX="")
        dumb = await run_in_terminal(hark, "doctor", TERM="dumb")
    assert (shown.code, dumb.code) == (0, 0)
    assert "\x1b[32mok  \x1b[0m" in shown.out
    output = " ".join(shown.out.split())
    assert "all colours" in output
    assert "over ssh: if the connection drops" in output
    assert "Use hark --plain" in " ".join(dumb.out.split())
    assert "\x1b" not in dumb.out
    assert max(len(line) for line in dumb.out.splitlines()) <= 80
