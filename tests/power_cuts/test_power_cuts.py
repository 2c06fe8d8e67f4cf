"""The recorder records every change, the models lose only unsynced data, and a power cut loses no data of Hark."""

import random
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.power_cuts.audit import RecordedScenario, Report, cut_power, kill_processes
from tests.power_cuts.disk.operations import ROOT, Create, Operation, Rename, Sync, Write
from tests.power_cuts.disk.power_cut import Disk, Model
from tests.power_cuts.disk.tree import Tree, read_tree
from tests.power_cuts.recorder.recording import can_record, record

needs_strace = pytest.mark.skipif(not can_record(), reason="strace is missing or may not trace processes here")

MEMORY_FOLDER = Path("/dev/shm")
FILE = stat.S_IFREG | 0o600
PROGRAM = """
import os, shutil, sqlite3, subprocess, sys
os.chdir(sys.argv[1] + "/root")
with open("appended", "ab") as file:
    file.write(b"one")
with open("appended", "ab") as file:
    file.write(b"two")
descriptor = os.open("positions", os.O_RDWR | os.O_CREAT)
os.write(descriptor, b"0123456789")
os.lseek(descriptor, 4, os.SEEK_SET)
os.write(os.dup(descriptor), b"xx")
os.pwrite(descriptor, b"y", 20)
os.ftruncate(descriptor, 18)
os.writev(descriptor, [b"a", b"b"])
os.close(descriptor)
os.mkdir("folder")
os.link("positions", "folder/link")
os.symlink("positions", "symlink")
subprocess.run(["sh", "-c", "cd folder; echo 1 > a; echo 2 >> a; cp a b; mv b c; rm a; (echo 3; echo 4) > d"])
shutil.copyfile("folder/d", "copy")
os.rename("folder", "renamed")
database = sqlite3.connect("database")
database.execute("PRAGMA journal_mode = WAL")
database.execute("CREATE TABLE numbers AS SELECT 1")
database.close()
"""


@needs_strace
def test_the_recording_yields_the_real_folder_after_all_kinds_of_calls(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    recording = record(["-c", PROGRAM, str(tmp_path)], tmp_path)
    tree = Disk(recording.base, recording.operations).after_kill(len(recording.operations))
    assert tree.describe() == read_tree(tmp_path / "root").describe()
    assert bytes(tree.nodes[tree.find((b"positions",)) or 0].content) == b"0123xxab89" + bytes(8)


@pytest.fixture
def memory_folder() -> Generator[Path]:
    """An empty folder, in memory if possible."""
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None) as folder:
        yield Path(folder)


def replaced_file(*, syncs_file: bool, syncs_folder: bool) -> list[Operation]:
    """Return the operations of a program that replaces the file `name`."""
    operations: list[Operation] = [Create(ROOT, b"draft", 2, FILE), Write(2, 0, b"new" * 1000)]
    if syncs_file:
        operations.append(Sync(2, len(operations)))
    operations.append(Rename(ROOT, b"draft", ROOT, b"name", 2))
    if syncs_folder:
        operations.append(Sync(ROOT, len(operations)))
    return operations


def contents_after_cuts(operations: list[Operation], model: Model, *, ignores_syncs: bool = False) -> set[bytes]:
    """Return the different contents that the file `name` has after many power cuts at the end of the recording."""
    base = Tree()
    base.apply(Create(ROOT, b"name", 1, FILE))
    base.apply(Write(1, 0, b"old"))
    disk = Disk(base, operations, ignores_syncs=ignores_syncs)
    found: set[bytes] = set()
    for seed in range(100):
        tree = disk.after_cut(len(operations), model, random.Random(seed))
        found.add(bytes(tree.nodes[tree.find((b"name",)) or 0].content))
    return found


@pytest.mark.parametrize("model", Model)
def test_a_synced_file_in_a_synced_folder_survives_in_every_model(model: Model) -> None:
    assert contents_after_cuts(replaced_file(syncs_file=True, syncs_folder=True), model) == {b"new" * 1000}


@pytest.mark.parametrize("model", Model)
def test_a_file_is_old_or_new_when_only_its_content_is_synced(model: Model) -> None:
    found = contents_after_cuts(replaced_file(syncs_file=True, syncs_folder=False), model)
    assert found <= {b"old", b"new" * 1000}
    assert (b"old" in found) == (model is not Model.METADATA_FIRST)


@pytest.mark.parametrize("model", Model)
def test_a_renamed_file_is_damaged_when_its_content_is_not_synced(model: Model) -> None:
    found = contents_after_cuts(replaced_file(syncs_file=False, syncs_folder=True), model)
    assert b"" in found
    assert (bytes(3000) in found) == (model is Model.METADATA_FIRST)


@pytest.mark.parametrize("model", Model)
def test_the_control_run_loses_synced_files(model: Model) -> None:
    operations = replaced_file(syncs_file=True, syncs_folder=True)
    assert contents_after_cuts(operations, model, ignores_syncs=True) - {b"new" * 1000}


def test_a_sync_does_not_cover_a_write_that_ended_after_it_began() -> None:
    operations = replaced_file(syncs_file=True, syncs_folder=True)
    operations[2] = Sync(2, 1)
    assert contents_after_cuts(operations, Model.STRICT) == {b""}


@needs_strace
@pytest.mark.parametrize("name", ["file tools", "uploads", "home files"])
def test_a_power_cut_loses_no_acknowledged_data(name: str, memory_folder: Path) -> None:
    recorded = RecordedScenario.record(name, memory_folder, is_short=True)
    report, killed, control = Report(), Report(), Report()
    kill_processes(recorded, 8, 1, killed)
    assert killed.findings == []
    cut_power(recorded, 24, 1, report)
    assert report.findings == []
    assert set(report.cuts) == set(Model)
    cut_power(recorded, 16, 1, control, ignores_syncs=True)
    assert control.findings, "the audit can't see a loss"


@needs_strace
def test_the_command_finds_no_loss_after_the_first_start() -> None:
    command = [sys.executable, "-m", "tests.power_cuts", "--cuts", "40", "--scenario", "first start"]
    ended = subprocess.run(
        [*command, "--file-system", "", "--seed", "1"], capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 0, ended
    assert ended.stdout.splitlines()[-2] == "nothing lost"


def test_the_command_fails_when_strace_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.power_cuts"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)})
    assert (ended.returncode, "strace is missing" in ended.stdout) == (2, True)
