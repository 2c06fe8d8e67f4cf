"""`hark doctor` tells whether a turn can run, what is in the way, and never a key."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hark.app.checks import Level, database
from tests.app.command_line import opened
from tests.fakes.behaviours import failing, text

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
    assert "bad   answer      main: " in ended.out
    assert "ok    answer      spare: " in ended.out


async def test_wrong_settings_are_told_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        (hark.home / "config.toml").write_text("[limits\n")
        ended = await hark.run("doctor")
    assert ended.code == 1
    assert "bad   settings" in ended.out
    assert "ok    home" in ended.out
    assert ended.err == ""


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
    assert database(file).level is Level.OK
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE a (b)")
    assert database(file).level is Level.OK
    file.write_bytes(b"no database at all" * 100)
    finding = database(file)
    assert finding.level is Level.BAD
    assert finding.advice
