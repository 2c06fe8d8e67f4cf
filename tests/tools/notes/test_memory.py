"""Notes that last: kept whole, by many at once, and through a kill."""

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
from hark.protocol.tool import Foreseen, ToolOutput
from hark.text.redaction import secret_in
from hark.tools.notes.memory import MemoryArguments, MemoryTool
from hark.tools.notes.notes import FILE_BYTES, NOTE_CHARACTERS, notes_of_person, notes_of_project
from tests.tools.context import FakeContext, call_tool
from tests.waiting import at_most

KEEP_FOR_EVER = """
import sys
from functools import partial
from pathlib import Path
from hark.tools.notes.notes import added, notes_of_person
notes = notes_of_person(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    note = f"{sys.argv[2]} {number}"
    notes.change(partial(added, note=note))
    print(note, flush=True)
"""


async def memory(home: Path, action: str, workspace: Path | None = None, **arguments: str) -> ToolOutput:
    return await call_tool(MemoryTool(home), {"action": action, **arguments}, FakeContext(workspace or home))


def user_file(home: Path) -> Path:
    return home / "memory" / "user.md"


@contextmanager
def held(home: Path) -> Generator[None]:
    """Hold the lock of the person's notes, as a process does that hangs."""
    path = home / "memory" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(lock)


async def test_a_note_is_a_line_of_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    assert await memory(tmp_path, "add", text="Likes\n short   answers", scope="user") == ToolOutput("Kept.")
    path = user_file(tmp_path)
    assert path.read_text() == "# Notes about the person\n\n- Likes short answers\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    listed = await memory(tmp_path, "list", scope="user")
    assert "- Likes short answers" in listed.text
    assert str(path) in listed.text
    assert sorted(file.name for file in path.parent.iterdir()) == [".lock", "user.md"]


async def test_each_project_has_its_own_notes_and_the_file_names_it(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    (tmp_path / "link").symlink_to(one)
    await memory(tmp_path, "add", one, text="Tests run with make")
    assert "make" in (await memory(tmp_path, "list", tmp_path / "link")).text
    assert "(none yet)" in (await memory(tmp_path, "list", other)).text
    assert "(none yet)" in (await memory(tmp_path, "list", scope="user")).text
    path = notes_of_project(tmp_path, one).path
    assert path.parent == tmp_path / "memory" / "projects"
    assert path.read_text().splitlines()[0] == f"# Notes on {one}"


async def test_a_note_is_replaced_or_removed_by_some_of_its_words(tmp_path: Path) -> None:
    for text in ("Uses tabs", "Uses vim", "Lives in Oslo"):
        await memory(tmp_path, "add", text=text)
    several = await memory(tmp_path, "replace", old="uses", text="Uses spaces")
    assert several.is_error
    assert "2 notes have these words" in several.text
    assert not (await memory(tmp_path, "replace", old="TABS", text="Uses spaces")).is_error
    assert (await memory(tmp_path, "remove", old="vim")).text == "Removed."
    unknown = await memory(tmp_path, "remove", old="emacs")
    assert (unknown.is_error, unknown.effect) == (True, Effect.NOT_STARTED)
    assert notes_of_project(tmp_path, tmp_path).read() == ["Uses spaces", "Lives in Oslo"]


async def test_the_same_note_is_kept_once(tmp_path: Path) -> None:
    for _ in range(3):
        assert (await memory(tmp_path, "add", text="Uses tabs")).text == "Kept."
    assert notes_of_project(tmp_path, tmp_path).read() == ["Uses tabs"]


async def test_what_a_person_wrote_by_hand_stays(tmp_path: Path) -> None:
    path = user_file(tmp_path)
    path.parent.mkdir()
    path.write_bytes(
        b"My own words\r\n\n* first one\n  goes on\n\n## More\n+ second\xff\n\ttabbed\nno newline at the end"
    )
    listed = (await memory(tmp_path, "list", scope="user")).text
    assert "- first one goes on\n- second� tabbed" in listed
    await memory(tmp_path, "add", text="third", scope="user")
    await memory(tmp_path, "remove", old="goes on", scope="user")
    rest = b"My own words\r\n\n\n## More\n+ second\xff\n\ttabbed\nno newline at the end\n- third\n"
    assert path.read_bytes() == rest


async def test_a_link_to_a_file_elsewhere_stays_a_link(tmp_path: Path) -> None:
    user_file(tmp_path).parent.mkdir()
    user_file(tmp_path).symlink_to(tmp_path / "dotfiles.md")
    await memory(tmp_path, "add", text="kept there", scope="user")
    assert user_file(tmp_path).is_symlink()
    assert "kept there" in (tmp_path / "dotfiles.md").read_text()


async def test_full_notes_say_so_and_can_be_made_smaller(tmp_path: Path) -> None:
    path = user_file(tmp_path)
    path.parent.mkdir()
    path.write_text("- first\n" + "- x\n" * (FILE_BYTES // 4))
    before = path.read_text()
    full = await memory(tmp_path, "add", text="one more", scope="user")
    assert (full.is_error, full.effect) == (True, Effect.NOT_STARTED)
    assert "full" in full.text
    assert "Remove or replace" in full.text
    assert path.read_text() == before
    assert not (await memory(tmp_path, "remove", old="first", scope="user")).is_error


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"action": "add"}, "no text"),
        ({"action": "add", "text": " \n\x00 "}, "no text"),
        ({"action": "add", "text": "x" * (NOTE_CHARACTERS + 1)}, "at most"),
        ({"action": "replace", "text": "new"}, "which note"),
        ({"action": "remove"}, "which note"),
        ({"action": "forget"}, "expected one of"),
        ({"action": "add", "text": "x", "scope": "world"}, "expected one of"),
        ({"text": "x"}, "needs action"),
    ],
)
async def test_bad_input_is_told_and_changes_nothing(tmp_path: Path, arguments: dict[str, str], why: str) -> None:
    output = await call_tool(MemoryTool(tmp_path), arguments, FakeContext(tmp_path))
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert why in output.text
    assert not user_file(tmp_path).exists()


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
async def test_what_looks_like_a_secret_is_not_kept(tmp_path: Path, text: str) -> None:
    output = await memory(tmp_path, "add", text=text)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "Nothing was kept" in output.text
    assert text not in output.text
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_about_secrets_are_none(text: str) -> None:
    assert secret_in(text) is None


def test_it_changes_nothing_that_an_undo_could_put_back(tmp_path: Path) -> None:
    spec = MemoryTool(tmp_path).spec
    assert spec.foreseen(MemoryArguments("add", "note")) == Foreseen(is_changing=True, subject="note", writes=())
    assert not spec.foreseen(MemoryArguments("list")).is_changing


async def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    outputs = await asyncio.gather(*(memory(tmp_path, "add", text=f"note {number}") for number in range(12)))
    assert {output.text for output in outputs} == {"Kept."}
    assert sorted(notes_of_project(tmp_path, tmp_path).read()) == sorted(f"note {number}" for number in range(12))


async def keeper(home: Path, name: str, count: int) -> asyncio.subprocess.Process:
    arguments = ("-c", KEEP_FOR_EVER, str(home), name, str(count))
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)


async def test_several_processes_lose_nothing(tmp_path: Path) -> None:
    processes = [await keeper(tmp_path, f"p{number}", 20) for number in range(3)]
    for process in processes:
        await process.communicate()
        assert process.returncode == 0
    expected = {f"p{process} {number}" for process in range(3) for number in range(20)}
    assert set(notes_of_person(tmp_path).read()) == expected


async def test_what_was_said_to_be_kept_is_there_after_kill_9(tmp_path: Path) -> None:
    for round_number in range(3):
        process = await keeper(tmp_path, f"round {round_number}", 100_000)
        assert process.stdout is not None
        said = [(await process.stdout.readline()).decode().strip() for _ in range(10)]
        process.send_signal(signal.SIGKILL)
        rest = (await process.stdout.read()).decode()
        await process.wait()
        said += rest.splitlines() if rest.endswith("\n") else rest.splitlines()[:-1]
        assert set(said) <= set(notes_of_person(tmp_path).read())
    assert (await memory(tmp_path, "add", text="after", scope="user")).text == "Kept."
    assert sorted(file.name for file in (tmp_path / "memory").iterdir()) == [".lock", "user.md"]


async def test_a_cut_while_another_has_the_lock_ends_at_once_and_keeps_nothing(tmp_path: Path) -> None:
    with held(tmp_path):
        call = asyncio.ensure_future(memory(tmp_path, "add", text="late", scope="user"))
        done, _ = await asyncio.wait([call], timeout=0.2)
        assert not done
        began = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - began < at_most(0.5)
    assert notes_of_person(tmp_path).read() == []
    assert (await memory(tmp_path, "add", text="now", scope="user")).text == "Kept."


async def test_a_lock_that_is_never_given_back_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.tools.notes.locked_file.LOCK_SECONDS", 0.05)
    with held(tmp_path):
        output = await memory(tmp_path, "add", text="late", scope="user")
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "Nothing was kept" in output.text


async def test_a_home_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file where the folder should be")
    output = await memory(tmp_path, "add", text="note", scope="user")
    assert output.is_error
    assert "not certain" in output.text
    assert "Traceback" not in output.text
    assert (await memory(tmp_path, "list", scope="user")).is_error
