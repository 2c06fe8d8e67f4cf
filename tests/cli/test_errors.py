"""Errors are reported in one sentence with the right exit code, and never as a traceback."""

import os
from pathlib import Path

import pytest

from tests.cli.command_line import CommandResult, open_hark
from tests.fakes.models.behaviours import text


def assert_one_sentence(ended: CommandResult, code: int, *parts: str) -> None:
    assert ended.code == code, ended
    assert ended.err.startswith("hark: "), ended
    assert len(ended.err.splitlines()) == 1, ended
    assert "Traceback" not in ended.err
    for part in parts:
        assert part in ended.err, ended


async def test_invalid_toml_is_reported_with_the_file_and_line(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "config.toml").write_text("[limits\nsteps = 5\n")
        for arguments in (["-p", "hi"], ["config", "check"], ["send", "demo", "hi"], ["--plain"]):
            assert_one_sentence(await hark.run(*arguments), 2, "config.toml", "line 1")


async def test_an_unknown_route_is_reported_with_the_known_routes(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        assert_one_sentence(await hark.run("-p", "hi", "--model", "nope"), 2, "'nope'", "main")


@pytest.mark.parametrize("name", ["bad/name", "", "two words", "x" * 201, "../up"])
async def test_an_invalid_session_name_is_reported(tmp_path: Path, name: str) -> None:
    async with open_hark(tmp_path) as hark:
        assert_one_sentence(await hark.run("send", name, "hi"), 2, "not a valid session name")
        if name:
            assert_one_sentence(await hark.run("-p", "hi", "--session", name), 2, "not a valid session name")


async def test_a_damaged_database_is_reported_and_not_changed(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["a"])]) as hark:
        await hark.run("-p", "hi", "--session", "demo")
        database = hark.home / "hark.db"
        damaged = database.read_bytes()[:5000]
        database.write_bytes(damaged)
        for arguments in (["-p", "hi"], ["sessions"], ["send", "demo", "hi"], ["--plain"]):
            assert_one_sentence(await hark.run(*arguments), 1, "hark.db", "is damaged")
        assert database.read_bytes() == damaged


async def test_a_file_that_is_not_a_database_is_reported_and_not_changed(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "hark.db").write_text("my shopping list, which is not a database at all\n" * 40)
        assert_one_sentence(await hark.run("-p", "hi"), 1, "is not a database")


async def test_a_home_that_is_a_file_is_reported(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        file = tmp_path / "a file"
        file.write_text("")
        ended = await hark.run("-p", "hi", HARK_HOME=str(file))
    assert_one_sentence(ended, 2, "a file")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
async def test_an_unwritable_home_is_reported(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        hark.home.chmod(0o500)
        ended = await hark.run("-p", "hi")
        hark.home.chmod(0o700)
    assert_one_sentence(ended, 1, "written")


async def test_an_invalid_base_url_is_reported_without_its_password(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "config.toml").write_text('[[routes]]\nbase_url = "ftp://me:hush@host/v1"\nmodel = "x"\n')
        ended = await hark.run("-p", "hi")
    assert_one_sentence(ended, 2, "ftp://(set)@host/v1", "not an http(s) URL")
    assert "hush" not in ended.err


async def test_a_missing_api_key_variable_is_reported_by_name(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        hark.configure('api_key_env = "MY_MODEL_KEY"\n')
        assert_one_sentence(await hark.run("-p", "hi"), 2, "MY_MODEL_KEY")


async def test_an_unreachable_server_fails_the_turn_with_a_plain_message(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        await hark.server.stop()
        ended = await hark.run("-p", "hi", "--timeout", "1")
    assert ended.code in (1, 3)
    assert "Traceback" not in ended.err
    assert f"127.0.0.1:{hark.server.port}" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "hi", "--max-steps", "x"],
        ["-p", "hi", "--max-steps", "0"],
        ["-p", "hi", "--timeout", "-1"],
        ["-p", "hi", "--timeout", "nan"],
        ["-p", "hi", "--max-cost", "0"],
        ["-p", "hi", "--output", "yaml"],
        ["-p"],
        ["frobnicate"],
        ["send", "demo"],
        ["send", "demo", "hi", "--delivery", "later"],
        ["queue"],
        ["sessions", "burn"],
    ],
    ids=" ".join,
)
async def test_invalid_arguments_exit_with_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    async with open_hark(tmp_path) as hark:
        ended = await hark.run(*arguments)
    assert ended.code == 2
    assert ended.err.startswith("usage: hark")
    assert "Traceback" not in ended.err


async def test_a_prompt_with_an_invalid_character_is_sent_with_a_replacement(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["ok"])]) as hark:
        ended = await hark.run("-p", "caf\udce9")
        assert ended.code == 0
        assert hark.server.requests[0].body["messages"][-1]["content"] == "caf?"


def test_assert_one_sentence_rejects_a_traceback() -> None:
    with pytest.raises(AssertionError):
        assert_one_sentence(CommandResult(1, "", "hark: x\nTraceback (most recent call last):\n"), 1)
