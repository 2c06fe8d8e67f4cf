"""Installing a skill's folder."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.cli.skills import install as install_module
from hark.cli.skills.install import NotInstalled, install
from tests.tools.skills.skill_files import write_skill


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def printed_by(line: str, folder: Path) -> str:
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, check=True, text=True).stdout


async def test_an_install_has_all_files_with_their_rights(tmp_path: Path) -> None:
    source = write_skill(tmp_path / "from", "one", run__sh="#!/bin/sh", notes__md="n")
    (source / "run.sh").chmod(0o4711)
    (source / "deep").mkdir()
    (source / "deep" / "x").write_text("x")
    (source / "alias").symlink_to("deep/x")
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("x")
    installed = await install(source, tmp_path / "into")
    place = tmp_path / "into" / "one"
    assert installed.skill.folder == place
    assert installed.files == ("SKILL.md", "notes.md", "run.sh", "deep/x")
    assert installed.executables == ("run.sh",)
    assert (place / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert (place / "notes.md").stat().st_mode & 0o7777 == 0o644
    assert (place / "alias").read_text() == "x"
    assert not (place / ".git").exists()
    assert names_in(tmp_path / "into") == ["one"]


async def test_the_sum_is_the_one_that_the_shell_prints(tmp_path: Path) -> None:
    source = write_skill(tmp_path / "from", "one", B__md="b", a__md="a")
    installed = await install(source, tmp_path / "into")
    line = r"find . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum"
    printed = printed_by(line, installed.skill.folder)
    assert printed.split()[0] == installed.sha256
    again = await install(source, tmp_path / "other", installed.sha256)
    assert again.sha256 == installed.sha256
    with pytest.raises(NotInstalled, match="not what the index says"):
        await install(source, tmp_path / "third", "0" * 64)
    assert not (tmp_path / "third").exists()


async def test_what_is_there_stays_unless_forced(tmp_path: Path) -> None:
    old = write_skill(tmp_path / "into", "one", "old", mine__md="mine")
    source = write_skill(tmp_path / "from", "one", "new")
    with pytest.raises(NotInstalled, match="is there already"):
        await install(source, tmp_path / "into")
    assert (old / "mine.md").exists()
    await install(source, tmp_path / "into", is_forced=True)
    assert "new" in (old / "SKILL.md").read_text()
    assert not (old / "mine.md").exists()
    assert names_in(tmp_path / "into") == ["one"]


async def test_a_link_in_the_skills_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    other = write_skill(tmp_path / "elsewhere", "one", "precious")
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "one").symlink_to(other)
    await install(write_skill(tmp_path / "from", "one", "new"), tmp_path / "into", is_forced=True)
    assert "precious" in (other / "SKILL.md").read_text()
    assert "new" in (tmp_path / "into" / "one" / "SKILL.md").read_text()
    assert not (tmp_path / "into" / "one").is_symlink()


SPOILED: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "x").symlink_to("/etc/passwd"), "x is a link that leads out"),
    (lambda folder: (folder / "x").symlink_to("../../secret"), "x is a link that leads out"),
    (lambda folder: (folder / "d").symlink_to(folder.parent), "d is a link that leads out"),
    (lambda folder: (folder / "x").symlink_to(folder / "SKILL.md"), "x is a link that leads out"),
    (lambda folder: os.mkfifo(folder / "pipe"), "pipe is neither a file nor a folder"),
    (lambda folder: (folder / "SKILL.md").write_text("# no fields"), "must begin with a line ---"),
    (lambda folder: (folder / "SKILL.md").write_text("---\nname: ../x\ndescription: y\n---"), "its name '../x'"),
    (lambda folder: (folder / "SKILL.md").unlink(), "can't be read: No such file"),
    (lambda folder: [(folder / str(number)).touch() for number in range(1001)], "more than 1,000 files"),
]


@pytest.mark.parametrize(("spoil", "why"), SPOILED)
async def test_what_may_not_be_in_a_skill_is_refused(tmp_path: Path, spoil: Callable[[Path], object], why: str) -> None:
    source = write_skill(tmp_path / "from", "one")
    spoil(source)
    with pytest.raises(NotInstalled, match=why):
        await install(source, tmp_path / "into")
    assert not (tmp_path / "into").exists()


async def test_a_cancel_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_skill(tmp_path / "from", "one", a__md="a", b__md="b")
    old = write_skill(tmp_path / "into", "one", "old")
    copied: list[Path] = []
    copyfile = install_module.shutil.copyfile

    def copy(from_: Path, to: Path) -> None:
        copied.append(to)
        copyfile(from_, to)
        task.cancel()

    monkeypatch.setattr(install_module.shutil, "copyfile", copy)
    task = asyncio.create_task(install(source, tmp_path / "into", is_forced=True))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(copied) == 1
    assert names_in(tmp_path / "into") == ["one"]
    assert "old" in (old / "SKILL.md").read_text()


async def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "into").write_text("a file")
    with pytest.raises(NotInstalled, match="could not be written"):
        await install(write_skill(tmp_path / "from", "one"), tmp_path / "into")
