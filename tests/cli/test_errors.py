"""What goes wrong is told in a sentence with the right code, and never as a traceback."""

import os
from pathlib import Path

import pytest

from tests.cli.command_line import Ended, opened
from tests.fakes.models.behaviours import text


def one_sentence(ended: Ended, code: int, *words: str) -> None:
    assert ended.code == code, ended
    assert ended.err.startswith("hark: "), ended
    assert len(ended.err.splitlines()) == 1, ended
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err, ended


async def test_settings_that_are_no_toml_name_the_file_and_the_line(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        (hark.home / "config.toml").write_text("[limits\nsteps = 5\n")
        for words in (["-p", "hi"], ["config", "check"], ["send", "demo", "hi"], ["--plain"]):
            one_sentence(await hark.run(*words), 2, "config.toml", "line 1")


async def test_a_route_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        one_sentence(await hark.run("-p", "hi", "--model", "nope"), 2, "'nope'", "main")


@pytest.mark.parametrize("name", ["bad/name", "", "two words", "x" * 201, "../up"])
async def test_a_name_that_no_session_can_have_is_told(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as hark:
        one_sentence(await hark.run("send", name, "hi"), 2, "can't name a session")
        if name:
            one_sentence(await hark.run("-p", "hi", "--session", name), 2, "can't name a session")


async def test_a_damaged_database_is_named_and_not_changed(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["a"])]) as hark:
        await hark.run("-p", "hi", "--session", "demo")
        database = hark.home / "hark.db"
        damaged = database.read_bytes()[:5000]
        database.write_bytes(damaged)
        for words in (["-p", "hi"], ["sessions"], ["send", "demo", "hi"], ["--plain"]):
            one_sentence(await hark.run(*words), 1, "hark.db", "is damaged")
        assert database.read_bytes() == damaged


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        (hark.home / "hark.db").write_text("my shopping list, which is not a database at all\n" * 40)
        one_sentence(await hark.run("-p", "hi"), 1, "is not a database")


async def test_a_home_that_is_a_file_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        file = tmp_path / "a file"
        file.write_text("")
        ended = await hark.run("-p", "hi", HARK_HOME=str(file))
    one_sentence(ended, 2, "a file")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
async def test_a_home_that_may_not_be_written_to_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        hark.home.chmod(0o500)
        ended = await hark.run("-p", "hi")
        hark.home.chmod(0o700)
    one_sentence(ended, 1, "written")


async def test_an_address_that_can_not_work_is_told_without_its_password(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        (hark.home / "config.toml").write_text('[[routes]]\nbase_url = "ftp://me:hush@host/v1"\nmodel = "x"\n')
        ended = await hark.run("-p", "hi")
    one_sentence(ended, 2, "ftp://(set)@host/v1", "not an http(s) address")
    assert "hush" not in ended.err


async def test_a_key_that_the_environment_lacks_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        hark.configure('api_key_env = "MY_MODEL_KEY"\n')
        one_sentence(await hark.run("-p", "hi"), 2, "MY_MODEL_KEY")


async def test_a_server_that_is_not_there_fails_the_turn_in_plain_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        await hark.server.stop()
        ended = await hark.run("-p", "hi", "--timeout", "1")
    assert ended.code in (1, 3)
    assert "Traceback" not in ended.err
    assert f"127.0.0.1:{hark.server.port}" in ended.err


@pytest.mark.parametrize(
    "words",
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
async def test_words_that_make_no_sense_are_bad_usage(tmp_path: Path, words: list[str]) -> None:
    async with opened(tmp_path) as hark:
        ended = await hark.run(*words)
    assert ended.code == 2
    assert ended.err.startswith("usage: hark")
    assert "Traceback" not in ended.err


async def test_a_prompt_of_half_a_letter_is_sent_as_well_as_it_can_be(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["ok"])]) as hark:
        ended = await hark.run("-p", "caf\udce9")
        assert ended.code == 0
        assert hark.server.requests[0].body["messages"][-1]["content"] == "caf?"


def test_the_helper_itself_would_notice_a_traceback() -> None:
    with pytest.raises(AssertionError):
        one_sentence(Ended(1, "", "hark: x\nTraceback (most recent call last):\n"), 1)
