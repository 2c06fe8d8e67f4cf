"""`hark doctor` tells whether a turn can run, what is in the way, and never a key."""

import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from hark.app.doctor.machine import database, voice
from hark.app.doctor.results import Level
from hark.app.settings.types import Settings
from hark.voice.settings import VoiceSettings
from tests.cli.command_line import opened
from tests.cli.pseudo_terminal import run_in_terminal
from tests.fakes.models.behaviours import failing, text

KEY = "sk-very-secret-0123456789"


async def test_a_route_that_answers_is_well(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["hi"])]) as hark:
        ended = await hark.run("doctor", OPENROUTER_API_KEY=KEY)
        assert (await hark.server.request(1)).body["max_tokens"] == 16
    assert ended.code == 0, ended
    lines = {line.split()[1]: line for line in ended.out.splitlines()[:-1]}
    assert lines["answer"].startswith("ok"), ended
    assert "main: openai fake at http://127.0.0.1:" in lines["route"]
    assert "OPENROUTER_API_KEY is set" in lines["keys"]
    assert "ANTHROPIC_API_KEY not set" in lines["keys"]
    assert {"hark", "home", "database", "sandbox", "ripgrep", "processes", "terminal", "servers", "embedded"} < set(
        lines
    )
    assert ended.out.endswith("A turn can run.\n")
    assert KEY not in ended.out + ended.err


async def test_a_route_that_fails_is_bad_with_the_servers_words(tmp_path: Path) -> None:
    async with opened(tmp_path, [failing(401, words="no such key")]) as hark:
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert [line for line in ended.out.splitlines() if line.startswith("bad   answer") and "no such key" in line]


async def test_one_route_that_answers_is_enough(tmp_path: Path) -> None:
    async with opened(tmp_path, [failing(401), text(["hi"])]) as hark:
        hark.configure(f'[[routes]]\nname = "spare"\nbase_url = "{hark.server.base_url}"\nmodel = "fake"\n')
        ended = await hark.run("doctor")
    assert ended.code == 0
    # They are asked side by side: which one got which reply is not known.
    assert sorted(line.split()[0] for line in ended.out.splitlines() if "  answer  " in line) == ["bad", "ok"]


async def test_wrong_settings_are_told_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        (hark.home / "config.toml").write_text("[limits\n")
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert "bad   settings" in ended.out
    assert "ok    home" in ended.out
    assert ended.err == ""


@pytest.mark.parametrize(("stt", "words"), [("off", "not set up:"), ("moonshine", "set up:")])
def test_voice_is_set_up_unless_speech_recognition_is_off(stt: Literal["off", "moonshine"], words: str) -> None:
    [found] = voice(Settings(voice=VoiceSettings(stt=stt)))
    assert found.text.startswith(words)


async def test_a_missing_key_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        hark.configure('api_key_env = "NOT_THERE"\n')
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert "the environment has no NOT_THERE" in ended.out


async def test_a_home_that_can_not_be_written_is_bad(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["hi"])]) as hark:
        elsewhere = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": hark.server.base_url}
        ended = await hark.run("doctor", HARK_HOME="/proc/hark", **elsewhere)
    assert ended.code == 1
    assert "bad   home        /proc/hark can't be written" in ended.out
    assert "HARK_HOME" in ended.out
    assert "because OPENAI_API_KEY is set" in ended.out
    assert "ok    answer" in ended.out


def test_a_sound_database_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    file = tmp_path / "hark.db"
    assert [finding.level for finding in database(file)] == [Level.OK]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE a (b)")
    assert [finding.level for finding in database(file)] == [Level.OK]
    file.write_bytes(b"no database at all" * 100)
    (finding,) = database(file)
    assert finding.level is Level.BAD
    assert finding.advice


async def test_programs_read_it_as_json(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["hi"])]) as hark:
        told = (await hark.run("doctor", "--json")).json
    assert told["can_run"] is True
    assert {"name", "level", "text", "advice"} == set(told["findings"][0])
    assert {finding["level"] for finding in told["findings"]} <= {"ok", "warn", "bad"}


async def test_mcp_servers_are_tried_and_a_dead_one_costs_no_turn(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with opened(tmp_path, [text(["hi"])]) as hark:
        hark.configure(
            '[mcp.servers.broken]\ncommand = "/no/such/program"\n'
            f'[mcp.servers.gone]\nurl = "http://127.0.0.1:{port}/mcp"\n'
            '[mcp.servers.off]\ncommand = "true"\nenabled = false\n'
        )
        ended = await hark.run("doctor")
    assert ended.code == 0, ended
    told = [line for line in ended.out.splitlines() if line.split()[1] == "mcp"]
    assert told[0].startswith("warn  mcp         broken: does not work: ")
    assert told[1].startswith(f"warn  mcp         gone: nothing listens at 127.0.0.1:{port}")
    assert told[2] == "ok    mcp         off: disabled in the settings"


async def test_wrong_settings_of_a_server_are_bad(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["hi"])]) as hark:
        hark.configure('[mcp.servers.odd]\ncommand = "a"\nurl = "http://b"\n')
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert "bad   mcp         mcp.servers.odd needs either a command" in ended.out


async def test_a_sandbox_that_is_required_and_missing_is_bad(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["hi"])]) as hark:
        hark.configure('[sandbox]\nmode = "required"\n')
        ended = await hark.run("doctor", PATH="/nowhere")
    assert ended.code == 1
    assert "bad   sandbox     required by the settings, but bubblewrap (bwrap) is not installed" in ended.out
    assert "warn  ripgrep     missing" in ended.out
    assert "warn  git         missing" in ended.out


async def test_on_a_terminal_it_fits_and_says_what_follows_from_its_kind(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["hi"]), text(["hi"])]) as hark:
        shown = await run_in_terminal(hark, "doctor", COLORTERM="truecolor", SSH_CONNECTION="a", TMUX="")
        dumb = await run_in_terminal(hark, "doctor", TERM="dumb")
    assert (shown.code, dumb.code) == (0, 0)
    assert "\x1b[32mok  \x1b[0m" in shown.out
    words = " ".join(shown.out.split())
    assert "all colours" in words
    assert "over ssh: when the connection breaks" in words
    assert "use hark --plain here" in " ".join(dumb.out.split())
    assert "\x1b" not in dumb.out
    assert max(len(line) for line in dumb.out.splitlines()) <= 80
