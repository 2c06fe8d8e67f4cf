"""Small files in the home: pairing, grants, trust, tokens, positions, sessions, recordings, skills and settings."""

import asyncio
import inspect
import os
import sys
import time
import tomllib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hark
from hark.app.grants import GrantsFile
from hark.app.pairing import PairingFile
from hark.app.sessions.editor_session_file import EditorSessionFile
from hark.app.settings.config import is_trusted, trust
from hark.app.voice import SpeechPreference, SpeechPreferences
from hark.mcp.auth import TokenFile
from hark.protocol.chat import Author
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceNote
from hark.providers.scripted import ScriptedProvider
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.discord.position_tracker import PositionTracker
from hark.tools.skills.skill import BadSkill, read_skill
from hark.voice.pending_recordings import PendingRecordings
from tests.cli.command_line import INHERITED, NO_CERTIFICATES
from tests.power_cuts.scenarios.gateway import CONFIG
from tests.power_cuts.scenarios.scenario import CheckResult, History, Marks

BOT = "bot"
SKILL_TEXT = "---\nname: skill-{number}\ndescription: A skill.\n---\n" + "Text of a skill.\n" * 300
RECORDING_BYTES = 9_000


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A kind of file: how to store value number N, and which numbers a reader finds in it.

    With `is_list`, each stored value is added to the others. Otherwise it replaces the value before.
    """

    store: Callable[[Path, int], Coroutine[Any, Any, object]]
    read: Callable[[Path], list[int]]
    is_list: bool = True


async def _run_command(root: Path, *arguments: str, folder: Path, typed: str = "") -> None:
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    environment |= {"HARK_HOME": str(root / "home"), "HOME": str(root), **NO_CERTIFICATES}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "ANTHROPIC_API_KEY": "key"}
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "hark", *arguments)
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT, cwd=folder, env=environment
    )
    output, _ = await process.communicate(typed.encode())
    assert process.returncode == 0, f"{arguments}: {output.decode()}"


async def _wait(result: object) -> None:
    """Wait for the result of a function that may be a coroutine function."""
    if inspect.isawaitable(result):
        await result


def _pairing(root: Path) -> PairingFile:
    return PairingFile(root / "home" / "pairing.json")


async def _pair(root: Path, number: int) -> None:
    code = _pairing(root).request_pairing("telegram", Author(str(number), f"user {number}"), f"CODE000{number}")
    if number == 0:
        await _run_command(root, "pair", "approve", code, folder=root)
    else:
        assert _pairing(root).approve(code)


def _read_pairings(root: Path) -> list[int]:
    policy = SenderPolicy("telegram", ("owner",), _pairing(root), 60)
    assert policy.is_allowed(Author("owner", "owner"))
    return [number for number in range(20) if policy.is_allowed(Author(str(number), ""))]


async def _grant(root: Path, number: int) -> None:
    await GrantsFile(root / "home" / "allowed").add(f"shell:command {number}")


def _read_grants(root: Path) -> list[int]:
    return [int(grant.removeprefix("shell:command ")) for grant in GrantsFile(root / "home" / "allowed").all]


async def _trust(root: Path, number: int) -> None:
    project = root / "projects" / f"{number}"
    if number == 0:
        await _run_command(root, "config", "trust", folder=project)
    else:
        trust(root / "home", project)


def _read_trusted(root: Path) -> list[int]:
    projects = root / "projects"
    shortened = [path for path in (root, projects, Path("/"), root.parent) if is_trusted(root / "home", path)]
    assert not shortened, f"{shortened} is trusted"
    return [int(path.name) for path in projects.iterdir() if is_trusted(root / "home", path)]


async def _log_in(root: Path, number: int) -> None:
    tokens = {"access_token": "t" * 5000, "refresh_token": str(number)}
    TokenFile(root / "home" / "mcp" / "server.json").update(tokens=tokens)


def _read_login(root: Path) -> list[int]:
    tokens = TokenFile(root / "home" / "mcp" / "server.json").load().tokens
    return [int(tokens["refresh_token"])] if tokens else []


async def _save_position(root: Path, number: int) -> None:
    tracker = PositionTracker(root / "home" / "discord.json")
    tracker.load(BOT)
    tracker.begin_session("session", "gateway", number + 1)
    await _wait(tracker.save())


def _read_position(root: Path) -> list[int]:
    tracker = PositionTracker(root / "home" / "discord.json")
    tracker.load(BOT)
    position = tracker.resume_position
    return [position.sequence - 1] if position.session else []


async def _open_editor(root: Path, number: int) -> None:
    EditorSessionFile(root / "home").add(f"editor-{number}", "/projects/" + "x" * number)


def _read_editors(root: Path) -> list[int]:
    folders = EditorSessionFile(root / "home").folders()
    return [
        int(name.removeprefix("editor-"))
        for name, folder in folders.items()
        if folder == "/projects/" + "x" * int(name.removeprefix("editor-"))
    ]


async def _choose_speech(root: Path, number: int) -> None:
    preferences = SpeechPreferences(root / "home" / "voice.json", SpeechPreference.AUTO)
    await _wait(preferences.save(f"session-{number}", SpeechPreference.ON))


def _read_speech(root: Path) -> list[int]:
    preferences = SpeechPreferences(root / "home" / "voice.json", SpeechPreference.AUTO)
    return [number for number in range(20) if preferences.get(f"session-{number}") is SpeechPreference.ON]


async def _accept_recording(root: Path, number: int) -> None:
    note = VoiceNote(str(number), "session", Audio(bytes([number + 1]) * RECORDING_BYTES, "audio/ogg"), {})
    PendingRecordings(root / "home" / "voice").store(note, time.time_ns())


def _read_recordings(root: Path) -> list[int]:
    notes = PendingRecordings(root / "home" / "voice").unfinished_notes()
    return [int(note.id) for note in notes if note.audio.data == bytes([int(note.id) + 1]) * RECORDING_BYTES]


async def _install_skill(root: Path, number: int) -> None:
    source = root / "sources" / f"skill-{number}"
    await _run_command(root, "skills", "install", str(source), folder=root / "projects" / "0", typed="y\n")


def _read_skills(root: Path) -> list[int]:
    found: list[int] = []
    for folder in (root / "home" / "skills").glob("skill-*"):
        number = int(folder.name.removeprefix("skill-"))
        try:
            read_skill(folder)
        except BadSkill:
            continue
        if (folder / "SKILL.md").read_text() == SKILL_TEXT.format(number=number):
            found.append(number)
    return found


async def _set_up(root: Path, number: int) -> None:
    await _run_command(root, "setup", folder=root, typed=f"1\nmodel-{number}\ny\n")


def _read_settings(root: Path) -> list[int]:
    routes = tomllib.loads((root / "home" / "config.toml").read_text())["routes"]
    return [int(route["model"].removeprefix("model-")) for route in routes if route["model"] != "power"]


VALUES = {
    "pairing": StoredValue(_pair, _read_pairings),
    "grant": StoredValue(_grant, _read_grants),
    "trust": StoredValue(_trust, _read_trusted),
    "token": StoredValue(_log_in, _read_login, is_list=False),
    "position": StoredValue(_save_position, _read_position, is_list=False),
    "editor session": StoredValue(_open_editor, _read_editors),
    "speech preference": StoredValue(_choose_speech, _read_speech),
    "recording": StoredValue(_accept_recording, _read_recordings),
    "skill": StoredValue(_install_skill, _read_skills),
    "settings": StoredValue(_set_up, _read_settings, is_list=False),
}
COMMANDS = ("skill", "settings")  # these start a process for each value


class HomeFiles:
    """Stores values of each kind, in turn."""

    name = "home files"

    def __init__(self, count: int = 5, command_count: int = 2) -> None:
        self._count = count
        self._command_count = command_count

    def prepare(self, root: Path) -> None:
        (root / "home").mkdir(mode=0o700)
        config = CONFIG.format(model="http://127.0.0.1:9/v1", port=9)
        (root / "home" / "config.toml").write_text(config)
        for number in range(self._count):
            (root / "projects" / str(number)).mkdir(parents=True)
            source = root / "sources" / f"skill-{number}"
            source.mkdir(parents=True)
            (source / "SKILL.md").write_text(SKILL_TEXT.format(number=number))

    async def run(self, root: Path, marks: Marks) -> None:
        for number in range(self._count):
            for name, value in VALUES.items():
                if name in COMMANDS and number >= self._command_count:
                    continue
                with marks.action(name, number=number):
                    await value.store(root, number)

    async def check(self, root: Path, history: History, result: CheckResult) -> None:
        for name, value in VALUES.items():
            done: list[int] = [action.details["number"] for action in history.all_named(name)]
            running = set[int]()
            if history.running and history.running.name == name:
                running.add(history.running.details["number"])
            required = set(done if value.is_list else [*done[-1:]])
            try:
                found = set(value.read(root))
            except Exception as error:  # a surface would stop with this error
                result.add(f"{name}: its reader fails", repr(error)[:200])
                continue
            if not value.is_list and found and found == running:
                continue
            if missing := required - found:
                result.add(f"{name} is lost", str(sorted(missing)))
            if invented := found - set(done) - running:
                result.add(f"{name} is invented", str(sorted(invented)))
        routes = [{"provider": ScriptedProvider([])}]
        try:
            async with hark.open(home=root / "home", workspace=root / "projects" / "0", routes=routes):
                pass
        except Exception as error:  # any error here is a failed start
            result.add("the agent does not start", repr(error)[:300])
