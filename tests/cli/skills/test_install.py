"""Installing a skill's folder."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.cli.skills import install as install_module
from hark.cli.skills.install import InstallError, install_skill
from tests.tools.skills.skill_files import write_skill


def list_names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def run_shell(line: str, folder: Path) -> str:
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, check=True, text=True).stdout


async def test_all_files_of_a_skill_are_installed_with_safe_modes(tmp_path: Path) -> None:
    source = write_skill(tmp_path / "from", "one", run__sh="#!/bin/sh", notes__md="n")
    (source / "run.sh").chmod(0o4711)
    (source / "deep").mkdir()
    (source / "deep" / "x").write_text("x")
    (source / "alias").symlink_to("deep/x")
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("x")
    installed = await install_skill(source, tmp_path / "into")
    target = tmp_path / "into" / "one"
    assert installed.skill.folder == target
    assert installed.files == ("SKILL.md", "notes.md", "run.sh", "deep/x")
    assert installed.executables == ("run.sh",)
    assert (target / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert (target / "notes.md").stat().st_mode & 0o7777 == 0o644
    assert (target / "alias").read_text() == "x"
    assert not (target / ".git").exists()
    assert list_names(tmp_path / "into") == ["one"]


async def test_the_checksum_matches_sha256sum(tmp_path: Path) -> None:
    source = write_skill(tmp_path / "from", "one", B__md="b", a__md="a")
    installed = await install_skill(source, tmp_path / "into")
    line = r"find . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum"
    output = run_shell(line, installed.skill.folder)
    assert output.split()[0] == installed.sha256
    again = await install_skill(source, tmp_path / "other", installed.sha256)
    assert again.sha256 == installed.sha256
    with pytest.raises(InstallError, match="differ from the index"):
        await install_skill(source, tmp_path / "third", "0" * 64)
    assert not (tmp_path / "third").exists()


async def test_an_installed_skill_is_replaced_only_when_forced(tmp_path: Path) -> None:
    old = write_skill(tmp_path / "into", "one", "old", mine__md="mine")
    source = write_skill(tmp_path / "from", "one", "new")
    with pytest.raises(InstallError, match="already exists"):
        await install_skill(source, tmp_path / "into")
    assert (old / "mine.md").exists()
    await install_skill(source, tmp_path / "into", is_forced=True)
    assert "new" in (old / "SKILL.md").read_text()
    assert not (old / "mine.md").exists()
    assert list_names(tmp_path / "into") == ["one"]


async def test_a_link_with_the_skills_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    other = write_skill(tmp_path / "elsewhere", "one", "precious")
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "one").symlink_to(other)
    await install_skill(write_skill(tmp_path / "from", "one", "new"), tmp_path / "into", is_forced=True)
    assert "precious" in (other / "SKILL.md").read_text()
    assert "new" in (tmp_path / "into" / "one" / "SKILL.md").read_text()
    assert not (tmp_path / "into" / "one").is_symlink()


FORBIDDEN_CONTENT: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "x").symlink_to("/etc/passwd"), "x is a link that points outside"),
    (lambda folder: (folder / "x").symlink_to("../../secret"), "x is a link that points outside"),
    (lambda folder: (folder / "d").symlink_to(folder.parent), "d is a link that points outside"),
    (lambda folder: (folder / "x").symlink_to(folder / "SKILL.md"), "x is a link that points outside"),
    (lambda folder: os.mkfifo(folder / "pipe"), "pipe is neither a file nor a folder"),
    (lambda folder: (folder / "SKILL.md").write_text("# no fields"), "must begin with a line ---"),
    (lambda folder: (folder / "SKILL.md").write_text("---\nname: ../x\ndescription: y\n---"), "its name '../x'"),
    (lambda folder: (folder / "SKILL.md").unlink(), "can't be read: No such file"),
    (lambda folder: [(folder / str(number)).touch() for number in range(1001)], "more than 1,000 files"),
]


@pytest.mark.parametrize(("add_forbidden", "message"), FORBIDDEN_CONTENT)
async def test_forbidden_content_in_a_skill_is_refused(
    tmp_path: Path, add_forbidden: Callable[[Path], object], message: str
) -> None:
    source = write_skill(tmp_path / "from", "one")
    add_forbidden(source)
    with pytest.raises(InstallError, match=message):
        await install_skill(source, tmp_path / "into")
    assert not (tmp_path / "into").exists()


async def test_a_cancelled_install_leaves_no_partial_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_skill(tmp_path / "from", "one", a__md="a", b__md="b")
    old = write_skill(tmp_path / "into", "one", "old")
    copied: list[Path] = []
    copyfile = install_module.shutil.copyfile

    def copy(from_: Path, to: Path) -> None:
        copied.append(to)
        copyfile(from_, to)
        task.cancel()

    monkeypatch.setattr(install_module.shutil, "copyfile", copy)
    task = asyncio.create_task(install_skill(source, tmp_path / "into", is_forced=True))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(copied) == 1
    assert list_names(tmp_path / "into") == ["one"]
    assert "old" in (old / "SKILL.md").read_text()


async def test_an_unwritable_target_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "into").write_text("a file")
    with pytest.raises(InstallError, match="could not be written"):
        await install_skill(write_skill(tmp_path / "from", "one"), tmp_path / "into")
