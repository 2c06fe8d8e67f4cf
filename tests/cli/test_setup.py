"""`hark setup` asks a few questions, writes a private file, and replaces nothing without asking."""

import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hark.app.settings import SettingsError
from hark.app.settings.config_file import read_config, replace_routes
from hark.app.settings.types import RouteSettings
from hark.disk.private_files import replace_file
from tests.cli.command_line import CommandResult, Hark, open_hark
from tests.cli.pseudo_terminal import run_in_terminal
from tests.fakes.models.behaviours import Behaviour, failing, text

KEY = "sk-very-secret-0123456789"
ROUTE = RouteSettings("main", "openai", "http://a/v1", 'a "quoted" \\ näme')


def read_settings(hark: Hark) -> dict[str, Any]:
    file = hark.home / "config.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return tomllib.loads(file.read_text("utf-8"))


def choice_number(ended: CommandResult, title: str) -> str:
    line = next(line for line in ended.out.splitlines() if title in line)
    return line.strip().partition(".")[0]


async def test_the_first_choice_is_an_available_server(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "config.toml").unlink()
        ended = await hark.run("setup", typed="1\n\n", ANTHROPIC_API_KEY=KEY)
        assert ended.code == 0, ended
        (route,) = read_settings(hark)["routes"]
        text = (hark.home / "config.toml").read_text()
    assert "1. Anthropic (ANTHROPIC_API_KEY is set)" in ended.out
    assert (route["provider"], route["api_key_env"]) == ("anthropic", "ANTHROPIC_API_KEY")
    assert route["model"]
    assert KEY not in text + ended.out


async def test_an_entered_key_is_stored_and_never_printed(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "config.toml").unlink()
        number = choice_number(await hark.run("setup"), "OpenRouter")
        (hark.home / "config.toml").unlink()
        ended = await hark.run("setup", typed=f"{number}\n{KEY}\nsome/model\n")
        assert ended.code == 0, ended
        (route,) = read_settings(hark)["routes"]
    assert (route["api_key"], route["model"], "api_key_env" in route) == (KEY, "some/model", False)
    assert KEY not in ended.out + ended.err


async def test_an_entered_variable_name_is_stored_as_a_name_and_not_as_a_key(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "config.toml").unlink()
        number = choice_number(await hark.run("setup"), "OpenAI")
        (hark.home / "config.toml").unlink()
        ended = await hark.run("setup", typed=f"{number}\nMY_KEY\n\n")
        (route,) = read_settings(hark)["routes"]
    assert (route["api_key_env"], "api_key" in route) == ("MY_KEY", False)
    assert "export MY_KEY=" in ended.out


async def test_without_answers_the_embedded_model_is_set_up_and_answers(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "config.toml").unlink()
        assert (await hark.run("setup")).code == 0
        assert read_settings(hark)["routes"] == [{"name": "main", "provider": "local"}]
        ended = await hark.run("-p", "hello")
    assert ended.code == 0, ended
    assert ended.out.strip()
    assert "built-in demo model" in ended.err


async def test_existing_settings_are_replaced_only_after_a_confirmation(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        before = (hark.home / "config.toml").read_text()
        for typed in ("1\n", "1\nn\n", "1\nwhat\n"):
            ended = await hark.run("setup", typed=typed)
            assert ended.code == 1
            assert "Nothing was written" in ended.out
        assert (hark.home / "config.toml").read_text() == before
        assert (await hark.run("setup", typed="1\ny\n")).code == 0
        assert [route["provider"] for route in read_settings(hark)["routes"]] == ["local"]


async def test_other_settings_in_the_file_are_unchanged(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        hark.configure("\n# how long\n[limits]\nsteps = 5 # enough\n")
        assert (await hark.run("setup", typed="1\ny\n")).code == 0
        settings = read_settings(hark)
        text = (hark.home / "config.toml").read_text()
    assert settings["limits"] == {"steps": 5}
    assert "steps = 5 # enough" in text


@pytest.mark.parametrize("typed", ["0\n", "99\n", "ollama\n"])
async def test_an_invalid_choice_ends_the_setup(tmp_path: Path, typed: str) -> None:
    async with open_hark(tmp_path) as hark:
        before = (hark.home / "config.toml").read_text()
        ended = await hark.run("setup", typed=typed)
        assert (hark.home / "config.toml").read_text() == before
    assert ended.code == 2
    assert "Please enter a number from 1 to" in ended.err


async def test_a_custom_server_is_set_up_with_its_base_url(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        (hark.home / "config.toml").unlink()
        number = choice_number(await hark.run("setup"), "another OpenAI-compatible server")
        (hark.home / "config.toml").unlink()
        ended = await hark.run("setup", typed=f"{number}\n{hark.server.base_url}/\n\nsome-model\n")
        wrong = await hark.run("setup", typed=f"{number}\nhere\n")
        (route,) = read_settings(hark)["routes"]
    assert ended.code == 0, ended
    assert route == {"name": "main", "provider": "openai", "base_url": hark.server.base_url, "model": "some-model"}
    assert wrong.code == 2
    assert "'here' is not a URL" in wrong.err


@pytest.mark.parametrize("keys", [[("Number", "\x04")], [("Number", "3\n"), ("API key", "\x04")]])
async def test_end_of_input_cancels_the_setup_and_writes_nothing(tmp_path: Path, keys: list[tuple[str, str]]) -> None:
    async with open_hark(tmp_path) as hark:
        before = (hark.home / "config.toml").read_text()
        ended = await run_in_terminal(hark, "setup", keys=keys)
        assert (hark.home / "config.toml").read_text() == before
    assert ended.code == 2
    assert ended.out.rstrip().endswith("hark: Cancelled. Nothing was written.")


@pytest.mark.parametrize(
    ("reply", "message"),
    [(text(["hi"]), "main: first reply after"), (failing(401, message="no such key"), "no such key")],
)
async def test_setup_reports_the_result_of_a_test_request(tmp_path: Path, reply: Behaviour, message: str) -> None:
    async with open_hark(tmp_path, [reply]) as hark:
        number = choice_number(await hark.run("setup"), "another OpenAI-compatible server")
        keys = [
            ("Number", f"{number}\n"),
            ("Base URL", f"{hark.server.base_url}\n"),
            ("API key", f"{KEY}\n"),
            ("Model", "some-model\n"),
            ("[y/N]", "y\n"),
        ]
        ended = await run_in_terminal(hark, "setup", keys=keys)
    assert ended.code == 0, ended
    assert message in " ".join(ended.out.split())
    assert KEY not in ended.out


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        '[[routes]]\nname = "a"\n[[routes]]\nname = "b"\n',
        '[limits]\nsteps = 1\n[[routes]]\nname = "a"\n\n[store]\nurl = "memory"\n',
        "[ [routes] ]\n",
        '[[ routes ]]\nname = "[limits]"\n[approvals]\nallow = [\n  "shell:ls",\n]\n',
    ],
)
def test_a_new_route_replaces_only_the_existing_routes(text: str) -> None:
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(SettingsError, match="not valid TOML"):
            replace_routes(text, ROUTE)
        return
    after = tomllib.loads(replace_routes(text, ROUTE))
    assert after.pop("routes") == [
        {"name": "main", "provider": "openai", "base_url": "http://a/v1", "model": ROUTE.model}
    ]
    before.pop("routes", None)
    assert after == before


NEW = """
[[routes]]
name = "main"
provider = "openai"
base_url = "http://a/v1"
model = "a \\"quoted\\" \\\\ näme"
"""


@pytest.mark.parametrize(
    ("text", "remaining"),
    [
        ('routes = [{name = "a"}]\n', ""),
        ('x = 1 # one\nroutes = [ # all of them\n  {name = "a"}, # the first\n]\ny.z = 2\n', "x = 1 # one\ny.z = 2\n"),
        ('[[routes]]\nname = """\n[x]\n"""\n', ""),
        ('[limits]\n"a" = """\n[[routes]]\n"""\n', '[limits]\n"a" = """\n[[routes]]\n"""\n'),
        (
            '# top\n[["routes"]] # a\nname = "x"\n\n# lim\n[limits]\nsteps=3\n',
            "# top\n\n# lim\n[limits]\nsteps=3\n",
        ),
        ('[[routes]]\nname="a"\n[routes.more]\nb=1\n# b\n[[routes]]\nname="b"\n[l]\n', "[l]\n"),
        ('[[routes]]\nname="a"\n[l]\nb = {c = 1,d=2}\n[[routes]]\nname="b"\n[m]\n', "[l]\nb = {c = 1,d=2}\n[m]\n"),
        ('a.b = 1\n[t.u]\n[v]\n[t.w]\n[[routes]]\nname="b"\n', "a.b = 1\n[t.u]\n[v]\n[t.w]\n"),
        ('[[routes]]\r\nname="a"\r\n# l\r\n[l]\r\nb = 1\r\n', "# l\r\n[l]\r\nb = 1\r\n"),
    ],
)
def test_routes_in_any_toml_notation_are_replaced_and_other_text_stays_unchanged(text: str, remaining: str) -> None:
    new = NEW.replace("\n", "\r\n") if "\r\n" in text else NEW
    assert replace_routes(text, ROUTE) == (remaining + new if remaining else new.lstrip())


async def test_setup_preserves_the_line_endings_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"# mine\r\n[limits]\r\nsteps = 3\r\n")
    replace_file(file, replace_routes(read_config(file), ROUTE).encode())
    assert file.read_bytes().startswith(b"# mine\r\n[limits]\r\nsteps = 3\r\n\r\n[[routes]]\r\n")


def test_tomlkit_is_imported_only_when_a_file_is_edited() -> None:
    code = "import sys, hark.cli.setup; sys.exit('tomlkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
