"""A home is private to its owner: every file is 0600 and every folder 0700, whatever the umask."""

import asyncio
import base64
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hark.app.grants import GrantsFile
from hark.app.pairing import PairingFile
from hark.app.sessions.editor_session_file import EditorSessionFile
from hark.app.settings.config import trust
from hark.app.voice import SpeechPreference, SpeechPreferences
from hark.mcp.auth import TokenFile
from hark.protocol.chat import Author
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceNote
from hark.surfaces.matrix.sync_state import SyncState
from hark.voice.pending_recordings import PendingRecordings
from tests.cli.command_line import CommandResult, Hark, RunningCommand, open_hark, shell_call
from tests.fakes.models.behaviours import Behaviour, call, delta, echo, events, text
from tests.fakes.webhook_program import SECRET, WebhookProgram, program_server, signature_headers
from tests.surfaces.terminal.pseudo_terminal import open_pseudo_terminal

SMALL_SERVER = Path(__file__).parents[1] / "mcp" / "small_server.py"
UMASK = "import os, sys; os.umask(int(sys.argv.pop(1), 8)); from hark.cli.main import main; sys.exit(main())"
SETTINGS = """
[approvals]
mode = "all"
[surfaces.webhook.hooks.ci]
secret_env = "CI_SECRET"
url = "{url}"
[mcp.servers.small]
command = "{python}"
args = ["{server}"]
"""
LONG_OUTPUT = "echo new > notes.txt; head -c 40000 /dev/zero | tr '\\0' x"
FILES = ("hark.db", "gateway.db", "schedules.db", "search.db", "logs/hark.log", "logs/mcp-small.log", "history.jsonl")
FOLDERS = ("outputs", "undo", "attachments", "cache/mcp", "drafts", "skills/one", "memory")


class PrivateHome:
    """Runs commands on a home with a given umask."""

    def __init__(self, hark: Hark, umask: str) -> None:
        self.hark = hark
        self.umask = umask

    async def start(self, *arguments: str) -> RunningCommand:
        return await self.hark.start_python("-c", UMASK, self.umask, *arguments, CI_SECRET=SECRET)

    async def run(self, *arguments: str) -> CommandResult:
        ended = await (await self.start(*arguments)).wait_for_end()
        assert ended.code == 0, ended
        return ended

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[aiohttp.ClientSession]:
        running = await self.start("serve", "--port", "0", "--token", "what only people know")
        try:
            base = (await running.wait_for_line("serving on")).rpartition(" ")[2].strip()
            headers = {"Authorization": "Bearer what only people know"}
            async with aiohttp.ClientSession(base, headers=headers) as client:
                yield client
                running.signal(signal.SIGHUP)  # the reload is logged
                while not (self.hark.home / "logs" / "hark.log").exists():  # noqa: ASYNC110 another process writes it
                    await asyncio.sleep(0.01)
                assert find_accessible(self.hark.home) == []  # sockets, locks and database logs exist now
        finally:
            if running.process.returncode is None:
                running.process.terminate()
            await running.wait_for_end()

    async def type(self, text: str) -> None:
        """Send a message in the terminal, and leave an unsent draft."""
        command = (sys.executable, "-c", UMASK, self.umask)
        environment = {**self.hark.environment, "CI_SECRET": SECRET}
        async with open_pseudo_terminal(
            environment, ("--session", "typed"), command=command, directory=str(self.hark.folder)
        ) as terminal_app:
            await terminal_app.until("Enter send")
            terminal_app.type(f"{text}\r")
            await terminal_app.until("done in")
            terminal_app.type("left unsent")
            await terminal_app.until(lambda: any((self.hark.home / "drafts").glob("*")))
            assert find_accessible(self.hark.home) == []


def memory_call(note: str) -> Behaviour:
    arguments = json.dumps({"action": "add", "text": note, "scope": "user"})
    return events([delta(tool_calls=[call(0, "call_2", "memory", arguments)]), delta("tool_calls")])


def find_accessible(home: Path) -> list[str]:
    """Return the files and folders in a home that other users can access, with their modes."""
    accessible: list[str] = []
    for path in (home, *home.rglob("*")):
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            continue
        if mode & 0o077 and not path.is_symlink():
            accessible.append(f"{path.relative_to(home)} {mode:o}")
    return accessible


async def post(client: aiohttp.ClientSession, path: str, body: Any) -> None:
    data = json.dumps(body).encode()
    async with client.post(
        path, data=data, headers={**signature_headers(data), "Content-Type": "application/json"}
    ) as answer:
        assert answer.status == 202, await answer.text()


async def use_all_features(home: PrivateHome, program: WebhookProgram, tmp_path: Path) -> None:
    """Use every feature that stores files in the home."""
    async with home.serve() as client:
        await post(client, "/hooks/ci", {"id": "m1", "text": "make a note"})
        await program.until(lambda: "noted" in program.texts)
        await post(client, "/hooks/ci", {"id": "m2", "text": "/undo"})
        await program.until(lambda: len(program.texts) == 2)
        file = {"media_type": "text/plain", "name": "a.txt", "data": base64.b64encode(b"hello").decode()}
        await post(client, "/api/sessions/web/messages", {"id": "m3", "text": "a file", "attachments": [file]})
        await home.hark.server.request(4)
    await home.run("schedule", "add", "every day at 09:00", "say hello", "--name", "daily")
    skill = tmp_path / "skill" / "one"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: one\ndescription: Does one thing.\n---\nDo it.\n")
    (skill / "run.sh").write_text("#!/bin/sh\n")
    (skill / "run.sh").chmod(0o755)
    await home.run("skills", "install", str(skill))
    await home.run("-p", "hello")
    await home.run("sessions", "search", "tea")
    await home.type("typed words")


@pytest.mark.parametrize("umask", ["000", "022"])
async def test_the_home_is_private_after_using_all_features_with_any_umask(tmp_path: Path, umask: str) -> None:
    script = [shell_call(LONG_OUTPUT), memory_call("They like tea."), text(["noted"]), echo(), echo(), echo()]
    async with open_hark(tmp_path, script) as hark, program_server() as program:
        hark.folder = tmp_path / "work"
        hark.folder.mkdir()
        (hark.folder / "notes.txt").write_text("old")
        (hark.folder / "notes.txt").chmod(0o664)
        hark.environment["HOME"] = str(tmp_path)
        hark.configure(SETTINGS.format(url=program.url, python=sys.executable, server=SMALL_SERVER))
        (hark.home / "config.toml").chmod(0o600)
        hark.home.chmod(0o755)
        await use_all_features(PrivateHome(hark, umask), program, tmp_path)
    assert find_accessible(hark.home) == []
    assert [name for name in FILES if not (hark.home / name).is_file()] == []
    assert [name for name in FOLDERS if not (hark.home / name).is_dir()] == []
    assert (hark.home / "skills" / "one" / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (hark.folder / "notes.txt").read_text() == "old"
    assert (hark.folder / "notes.txt").stat().st_mode & 0o777 == 0o664  # a user's file keeps its mode


async def test_state_files_in_the_home_are_created_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        await write_other_files(tmp_path / "home", tmp_path)
    finally:
        os.umask(before)
    assert len([path for path in (tmp_path / "home").rglob("*") if path.is_file()]) == 13
    assert find_accessible(tmp_path / "home") == []


async def write_other_files(home: Path, tmp_path: Path) -> None:
    trust(home, tmp_path)
    await GrantsFile(home / "allowed").add("shell: ls")
    PairingFile(home / "pairing.json").request_pairing("telegram", Author("1", "me"), "code")
    EditorSessionFile(home).add("s", str(tmp_path))
    SpeechPreferences(home / "spoken.json", SpeechPreference.OFF).save("s", SpeechPreference.ON)
    TokenFile(home / "mcp" / "one.oauth.json").update(port=1)
    PendingRecordings(home / "voice").store(VoiceNote("1", "line", Audio(b"sound", "audio/ogg")), 1)
    sync = SyncState(home / "matrix", "@me:here")
    sync.save(sync.advance("token"))
