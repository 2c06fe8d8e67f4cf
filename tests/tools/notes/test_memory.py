"""The `memory` tool: notes survive parallel writes and kill -9."""

import asyncio
import fcntl
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import PredictedEffects, ToolOutput
from hark.text.redaction import detect_secret
from hark.tools.notes.memory import MemoryArguments, MemoryTool
from hark.tools.notes.notes import MAX_FILE_BYTES, MAX_NOTE_CHARACTERS, project_notes, user_notes
from tests.tools.fake_context import FakeContext, call_tool
from tests.waiting import at_most

ADD_NOTES_PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from hark.tools.notes.notes import add_note, user_notes
notes = user_notes(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    note = f"{sys.argv[2]} {number}"
    notes.change(partial(add_note, note=note))
    print(note, flush=True)
"""


async def memory(home: Path, action: str, workspace: Path | None = None, **arguments: str) -> ToolOutput:
    return await call_tool(MemoryTool(home), {"action": action, **arguments}, FakeContext(workspace or home))


def user_notes_path(home: Path) -> Path:
    return home / "memory" / "user.md"


@contextmanager
def hold_lock(home: Path) -> Generator[None]:
    """Hold the lock on the user's notes, as a hanging process would."""
    path = home / "memory" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(lock)


async def test_a_note_is_stored_as_one_line_in_a_private_file(tmp_path: Path) -> None:
    assert await memory(tmp_path, "add", text="Likes\n short   answers", scope="user") == ToolOutput("Stored.")
    path = user_notes_path(tmp_path)
    assert path.read_text() == "# Notes about the user\n\n- Likes short answers\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    listed = await memory(tmp_path, "list", scope="user")
    assert "- Likes short answers" in listed.text
    assert str(path) in listed.text
    assert sorted(file.name for file in path.parent.iterdir()) == [".lock", "user.md"]


async def test_each_project_has_a_separate_notes_file_that_names_the_project(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "other"
    first.mkdir()
    (tmp_path / "link").symlink_to(first)
    await memory(tmp_path, "add", first, text="Tests run with make")
    assert "make" in (await memory(tmp_path, "list", tmp_path / "link")).text
    assert "(none yet)" in (await memory(tmp_path, "list", second)).text
    assert "(none yet)" in (await memory(tmp_path, "list", scope="user")).text
    path = project_notes(tmp_path, first).path
    assert path.parent == tmp_path / "memory" / "projects"
    assert path.read_text().splitlines()[0] == f"# Notes on {first}"


async def test_a_note_to_replace_or_remove_is_found_by_part_of_its_text(tmp_path: Path) -> None:
    for text in ("Uses tabs", "Uses vim", "Lives in Oslo"):
        await memory(tmp_path, "add", text=text)
    several = await memory(tmp_path, "replace", old="uses", text="Uses spaces")
    assert several.is_error
    assert "2 notes contain this text" in several.text
    assert not (await memory(tmp_path, "replace", old="TABS", text="Uses spaces")).is_error
    assert (await memory(tmp_path, "remove", old="vim")).text == "Removed."
    unknown = await memory(tmp_path, "remove", old="emacs")
    assert (unknown.is_error, unknown.effect) == (True, Effect.NOT_STARTED)
    assert project_notes(tmp_path, tmp_path).read() == ["Uses spaces", "Lives in Oslo"]


async def test_a_note_that_already_exists_is_not_stored_twice(tmp_path: Path) -> None:
    for _ in range(3):
        assert (await memory(tmp_path, "add", text="Uses tabs")).text == "Stored."
    assert project_notes(tmp_path, tmp_path).read() == ["Uses tabs"]


async def test_text_that_the_user_wrote_by_hand_is_preserved(tmp_path: Path) -> None:
    path = user_notes_path(tmp_path)
    path.parent.mkdir()
    path.write_bytes(
        b"My own words\r\n\n* first one\n  goes on\n\n## More\n+ second\xff\n\ttabbed\nno newline at the end"
    )
    listed = (await memory(tmp_path, "list", scope="user")).text
    assert "- first one goes on\n- second� tabbed" in listed
    await memory(tmp_path, "add", text="third", scope="user")
    await memory(tmp_path, "remove", old="goes on", scope="user")
    expected = b"My own words\r\n\n\n## More\n+ second\xff\n\ttabbed\nno newline at the end\n- third\n"
    assert path.read_bytes() == expected


async def test_a_notes_file_that_is_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    user_notes_path(tmp_path).parent.mkdir()
    user_notes_path(tmp_path).symlink_to(tmp_path / "dotfiles.md")
    await memory(tmp_path, "add", text="kept there", scope="user")
    assert user_notes_path(tmp_path).is_symlink()
    assert "kept there" in (tmp_path / "dotfiles.md").read_text()


async def test_full_notes_reject_new_notes_but_allow_removal(tmp_path: Path) -> None:
    path = user_notes_path(tmp_path)
    path.parent.mkdir()
    path.write_text("- first\n" + "- x\n" * (MAX_FILE_BYTES // 4))
    before = path.read_text()
    full = await memory(tmp_path, "add", text="one more", scope="user")
    assert (full.is_error, full.effect) == (True, Effect.NOT_STARTED)
    assert "full" in full.text
    assert "Remove or replace" in full.text
    assert path.read_text() == before
    assert not (await memory(tmp_path, "remove", old="first", scope="user")).is_error


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"action": "add"}, "note is empty"),
        ({"action": "add", "text": " \n\x00 "}, "note is empty"),
        ({"action": "add", "text": "x" * (MAX_NOTE_CHARACTERS + 1)}, "at most"),
        ({"action": "replace", "text": "new"}, "part of the note's text"),
        ({"action": "remove"}, "part of the note's text"),
        ({"action": "forget"}, "expected one of"),
        ({"action": "add", "text": "x", "scope": "world"}, "expected one of"),
        ({"text": "x"}, "needs action"),
    ],
)
async def test_invalid_arguments_cause_an_error_and_change_nothing(
    tmp_path: Path, arguments: dict[str, str], reason: str
) -> None:
    output = await call_tool(MemoryTool(tmp_path), arguments, FakeContext(tmp_path))
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert reason in output.text
    assert not user_notes_path(tmp_path).exists()


SECRETS = [
    "the key is sk-abcdefghijklmnop1234",
    "sk-ant-api03-abcdefghijklmnopqrstuv",
    "use ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
    "password: hunter2!",
    "the passcode is 48291047",
    "The database password is s3cr3t",
    'API_KEY="q9w8e7r6t5"',
    "postgres://admin:letmein@db.example/prod",
    "bot token 123456789:AAFxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_",
]
PLAIN = [
    "The API key is in the variable SERVICE_KEY",
    "Passwords are in the company's vault",
    "password is asked for at the first start",
    "The token is valid for 4 hours",
    "Runs on http://localhost:8080/path",
    "git remote is git@example.org:team/repo.git",
    "Tests: make test; the secret of speed is -n 2",
    "Prefers ask-before-you-do over risk-taking-in-general",
    "The pin is red",
    "The most is max_token = 4096",
    "The password is $DB_PASSWORD, from the environment",
    "The column pk_customer_identifier is the primary key",
    "connects to postgres://app:$PASSWORD@db.example/prod",
]


@pytest.mark.parametrize("text", SECRETS)
async def test_text_that_looks_like_a_secret_is_not_stored(tmp_path: Path, text: str) -> None:
    output = await memory(tmp_path, "add", text=text)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "Nothing was stored" in output.text
    assert text not in output.text
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize("text", PLAIN)
def test_text_that_only_mentions_secrets_is_not_treated_as_a_secret(text: str) -> None:
    assert detect_secret(text) is None


def test_memory_predicts_no_workspace_changes_for_undo(tmp_path: Path) -> None:
    spec = MemoryTool(tmp_path).spec
    assert spec.predict_effects(MemoryArguments("add", "note")) == PredictedEffects(
        is_changing=True, subject="note", writes=()
    )
    assert not spec.predict_effects(MemoryArguments("list")).is_changing


async def test_parallel_calls_store_every_note(tmp_path: Path) -> None:
    outputs = await asyncio.gather(*(memory(tmp_path, "add", text=f"note {number}") for number in range(12)))
    assert {output.text for output in outputs} == {"Stored."}
    assert sorted(project_notes(tmp_path, tmp_path).read()) == sorted(f"note {number}" for number in range(12))


async def start_note_writer(home: Path, name: str, count: int) -> asyncio.subprocess.Process:
    arguments = ("-c", ADD_NOTES_PROGRAM, str(home), name, str(count))
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)


async def test_parallel_processes_store_every_note(tmp_path: Path) -> None:
    processes = [await start_note_writer(tmp_path, f"p{number}", 20) for number in range(3)]
    for process in processes:
        await process.communicate()
        assert process.returncode == 0
    expected = {f"p{process} {number}" for process in range(3) for number in range(20)}
    assert set(user_notes(tmp_path).read()) == expected


async def test_notes_reported_as_stored_survive_kill_9(tmp_path: Path) -> None:
    for round_number in range(3):
        process = await start_note_writer(tmp_path, f"round {round_number}", 100_000)
        assert process.stdout is not None
        reported = [(await process.stdout.readline()).decode().strip() for _ in range(10)]
        process.send_signal(signal.SIGKILL)
        remaining_output = (await process.stdout.read()).decode()
        await process.wait()
        reported += (
            remaining_output.splitlines() if remaining_output.endswith("\n") else remaining_output.splitlines()[:-1]
        )
        assert set(reported) <= set(user_notes(tmp_path).read())
    assert (await memory(tmp_path, "add", text="after", scope="user")).text == "Stored."
    assert sorted(file.name for file in (tmp_path / "memory").iterdir()) == [".lock", "user.md"]


async def test_cancelling_while_the_lock_is_held_ends_immediately_and_stores_nothing(tmp_path: Path) -> None:
    with hold_lock(tmp_path):
        call = asyncio.ensure_future(memory(tmp_path, "add", text="late", scope="user"))
        done, _ = await asyncio.wait([call], timeout=0.2)
        assert not done
        started = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - started < at_most(0.5)
    assert user_notes(tmp_path).read() == []
    assert (await memory(tmp_path, "add", text="now", scope="user")).text == "Stored."


async def test_a_lock_that_is_never_released_causes_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.disk.file_lock.LOCK_SECONDS", 0.05)
    with hold_lock(tmp_path):
        output = await memory(tmp_path, "add", text="late", scope="user")
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "Nothing was stored" in output.text


async def test_a_home_directory_that_cannot_be_written_causes_an_error(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file where the folder should be")
    output = await memory(tmp_path, "add", text="note", scope="user")
    assert output.is_error
    assert "may not have been saved" in output.text
    assert "Traceback" not in output.text
    assert (await memory(tmp_path, "list", scope="user")).is_error
