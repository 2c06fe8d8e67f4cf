"""The output and exit codes of `hark mcp`."""

import argparse
import sys
from pathlib import Path

import pytest

from hark.app.settings import SettingsError
from hark.cli import mcp
from tests.mcp.mcp_fixture import SMALL_SERVER_FILE

GOOD = f"""
[mcp.servers.good]
command = "{sys.executable}"
args = ["-S", "-E", "{SMALL_SERVER_FILE}"]
env = {{ KEY = "s3cret" }}
"""
DEAD = """
[mcp.servers.dead]
command = "/nowhere/at-all"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARK_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def run(action: str, server: str | None = None) -> int:
    return await mcp.run_action(argparse.Namespace(action=action, server=server))


async def test_mcp_test_prints_tools_and_failures_and_fails_if_a_server_fails(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text(GOOD + DEAD)
    assert await run("test") == 1
    out = capfd.readouterr().out
    assert "good: works, " in out
    assert "echo, wait" in out
    assert "dead: failed: the command '/nowhere/at-all' can't be started" in out
    assert "1 of 2 work" in out
    assert await run("test", "good") == 0
    assert await run("test", "dead") == 1
    assert await run("test", "other") == 2
    assert "configured servers: good, dead" in capfd.readouterr().err


async def test_mcp_list_starts_no_server_and_prints_no_secrets(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "config.toml").write_text(GOOD + DEAD)
    assert await run("list") == 0
    before = capfd.readouterr().out
    await run("test", "good")
    capfd.readouterr()
    assert await run("list") == 0
    after = capfd.readouterr().out
    assert "tools not known yet" in before.splitlines()[0]
    assert " tools " in after.splitlines()[0]
    assert "/nowhere/at-all" in before
    assert "s3cret" not in before + after


async def test_mcp_list_and_test_report_that_no_servers_are_configured(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await run("list") == 0
    assert await run("test") == 0
    assert "No MCP servers" in capfd.readouterr().out
    assert (home / "config.toml").exists() is False


async def test_invalid_server_settings_raise_a_settings_error(home: Path) -> None:
    (home / "config.toml").write_text("[mcp.servers.one]\ncomand = 'x'\n")
    with pytest.raises(SettingsError, match=r"mcp\.servers\.one"):
        await run("list")


async def test_mcp_login_needs_a_server_with_oauth(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "config.toml").write_text(GOOD)
    assert await run("login", "good") == 2
    assert "oauth = true" in capfd.readouterr().err
