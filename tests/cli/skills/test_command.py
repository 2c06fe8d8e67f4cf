"""`hark skills` with real repositories and indexes, and with sources that fail or hang."""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from aiohttp import web

from hark.cli.skills.command import SkillsContext, run_action
from hark.processes.cookies import current_owner
from hark.tools.skills.settings import SkillSettings
from tests.cli.skills.skill_sources import make_repository
from tests.tools.fake_context import find_processes
from tests.tools.skills.skill_files import write_skill
from tests.tools.web.servers import run_raw_server, run_server
from tests.waiting import at_most


def make_options(
    action: str, value: str = "", source: str = "", *, project: bool = False, force: bool = False
) -> argparse.Namespace:
    return argparse.Namespace(action=action, value=value.split(), source=source, project=project, force=force)


def make_context(tmp_path: Path, *sources: str, seconds: float = 20.0) -> SkillsContext:
    (tmp_path / "work").mkdir(exist_ok=True)
    return SkillsContext(tmp_path / "home", tmp_path / "work", SkillSettings(sources=sources), seconds)


def list_home_skills(tmp_path: Path) -> list[str]:
    folder = tmp_path / "home" / "skills"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


async def test_skills_list_shows_the_installed_skills(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert await run_action(make_options("list"), make_context(tmp_path)) == 0
    assert "No skills are installed" in capfd.readouterr().out
    folder = write_skill(tmp_path / "home" / "skills", "one", "does one")
    (tmp_path / "home" / "skills" / "bad").mkdir()
    (tmp_path / "home" / "skills" / "bad" / "SKILL.md").touch()
    assert await run_action(make_options("list"), make_context(tmp_path)) == 0
    output = capfd.readouterr()
    assert "does one" in output.out
    assert str(folder) in output.out
    assert "bad: SKILL.md can't be read" in output.err


async def test_skills_search_reads_all_kinds_of_sources(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_skill(tmp_path / "folder", "pdf-folder", "reads documents")
    write_skill(tmp_path / "repository" / "skills", "pdf-git", "reads documents")
    address = make_repository(tmp_path / "repository")
    local = {"skills": [{"name": "pdf-local", "description": "reads documents", "source": "x", "version": "1.2"}]}
    (tmp_path / "index.json").write_text(json.dumps(local))

    async def answer(_: web.Request) -> web.StreamResponse:
        entry = {"name": "other", "description": "a pdf\u001b[31m", "source": "https://git.example/x.git"}
        return web.json_response({"skills": [entry]})

    async with run_server(answer) as server:
        sources = (str(tmp_path / "folder"), address, str(tmp_path / "index.json"), f"{server.url}/index.json")
        code = await run_action(make_options("search", "PDF"), make_context(tmp_path, *sources))
    output = capfd.readouterr()
    assert code == 0
    assert not output.err
    assert output.out.splitlines()[::2] == [
        "pdf-folder: reads documents",
        "pdf-git: reads documents",
        "pdf-local 1.2: reads documents",
        "other: a pdf[31m",
    ]
    assert output.out.splitlines()[3] == f"    from {address}"


async def test_failing_and_hanging_sources_are_reported_without_delaying_the_search(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_skill(tmp_path / "folder", "one")
    os.mkfifo(tmp_path / "pipe.json")
    async with run_raw_server(b"") as silent:
        sources = (
            f"http://127.0.0.1:{silent.port}/index.json",
            f"http://127.0.0.1:{silent.port}/hangs.git",
            "http://127.0.0.1:1/index.json",
            f"file://{tmp_path}/nothing.git",
            str(tmp_path / "nothing"),
            str(tmp_path / "pipe.json"),
            "https://user:word@127.0.0.1:1/x.zip",
            "ext::sh -c touch% /tmp/x",
            "-oProxyCommand=x",
            str(tmp_path / "folder"),
        )
        started = time.perf_counter()
        code = await run_action(make_options("search"), make_context(tmp_path, *sources, seconds=3))
        assert time.perf_counter() - started < at_most(15)
        assert not find_processes(current_owner(tmp_path / "home").home)
    output = capfd.readouterr()
    assert code == 0
    assert output.out.startswith("one: does things\n")
    problems = output.err.splitlines()
    assert len(problems) == 9
    assert "/index.json: no answer within 3 seconds" in problems[0]
    assert "/hangs.git: no answer within 3 seconds" in problems[1]
    assert "it can't be reached" in problems[2]
    assert "git clone failed" in problems[3]
    assert "no such folder" in problems[4]
    assert "not a regular file" in problems[5]
    assert "archives are not supported" in problems[6]
    assert "git would run a command" in problems[7]
    assert "word" not in output.err


async def test_skills_search_fails_when_all_sources_fail(tmp_path: Path) -> None:
    assert await run_action(make_options("search", "x"), make_context(tmp_path, str(tmp_path / "nothing"))) == 1
    assert await run_action(make_options("search", "x"), make_context(tmp_path)) == 2


async def test_a_skill_is_installed_by_name_from_git(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write_skill(tmp_path / "repository", "one", run__sh="#!/bin/sh")
    (source / "run.sh").chmod(0o755)
    write_skill(tmp_path / "repository", "two")
    address = make_repository(tmp_path / "repository")
    assert await run_action(make_options("install", "one"), make_context(tmp_path, address)) == 0
    out = capfd.readouterr().out
    assert f"Installed one in {tmp_path}/home/skills/one, from {address}" in out
    assert "  run.sh (executable)\n" in out
    assert "Check them before you use it" in out
    assert list_home_skills(tmp_path) == ["one"]
    assert await run_action(make_options("install", "one"), make_context(tmp_path, address)) == 1
    assert "--force" in capfd.readouterr().err
    assert await run_action(make_options("install", "one", force=True), make_context(tmp_path, address)) == 0
    assert await run_action(make_options("install", "one", project=True), make_context(tmp_path, address)) == 0
    assert (tmp_path / "work" / ".hark" / "skills" / "one" / "SKILL.md").exists()


async def test_a_skill_is_installed_from_a_subfolder_of_a_repository(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_skill(tmp_path / "repository" / "deep" / "er", "one")
    write_skill(tmp_path / "repository" / "deep" / "er", "two")
    address = make_repository(tmp_path / "repository")
    assert await run_action(make_options("install", f"{address}#deep/er/one"), make_context(tmp_path)) == 0
    assert await run_action(make_options("install", f"git+{address}#deep/er"), make_context(tmp_path)) == 1
    assert "the source has several skills" in capfd.readouterr().err
    assert await run_action(make_options("install", "two", source=f"{address}#deep/er"), make_context(tmp_path)) == 0
    assert list_home_skills(tmp_path) == ["one", "two"]
    assert await run_action(make_options("install", f"{address}#../.."), make_context(tmp_path)) == 1
    assert "points outside of the repository" in capfd.readouterr().err
    assert await run_action(make_options("install", address), make_context(tmp_path)) == 1
    assert "no SKILL.md found in this folder or its subfolders" in capfd.readouterr().err


async def test_a_skill_is_installed_through_an_index(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_skill(tmp_path / "beside", "one")
    write_skill(tmp_path / "repository", "two")
    address = make_repository(tmp_path / "repository")
    entries = [
        {"name": "one", "description": "d", "source": "beside/one"},
        {"name": "two", "description": "d", "source": address, "sha256": "0" * 64},
        {"name": "three", "description": "d", "source": "beside/one"},
        {"name": "../x", "description": "d", "source": address},
    ]
    (tmp_path / "index.json").write_text(json.dumps({"skills": entries}))
    context = make_context(tmp_path, str(tmp_path / "index.json"))
    assert await run_action(make_options("install", "one"), context) == 0
    assert "'../x' is not a valid skill name" in capfd.readouterr().err
    assert await run_action(make_options("install", "two"), context) == 1
    assert "differ from the index" in capfd.readouterr().err
    assert await run_action(make_options("install", "three"), context) == 1
    assert list_home_skills(tmp_path) == ["one"]


async def test_a_web_index_cannot_refer_to_local_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = write_skill(tmp_path / "private", "one")

    async def answer(_: web.Request) -> web.StreamResponse:
        sources = (str(folder), "one", f"file://{folder}", f"git+file://{folder}")
        return web.json_response(
            {"skills": [{"name": "one", "description": "d", "source": source} for source in sources]}
        )

    async with run_server(answer) as server:
        assert (
            await run_action(make_options("install", "one", source=f"{server.url}/i.json"), make_context(tmp_path)) == 1
        )
    assert capfd.readouterr().err.count("is a local path") == 4
    assert not list_home_skills(tmp_path)


async def test_a_skill_that_several_sources_offer_needs_an_explicit_source(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = write_skill(tmp_path / "a", "one").parent, write_skill(tmp_path / "b", "one").parent
    context = make_context(tmp_path, str(first), str(second))
    assert await run_action(make_options("install", "one"), context) == 1
    assert f"choose one with --from:\n  {first}\n  {second}" in capfd.readouterr().err
    assert await run_action(make_options("install", "one", source=str(second)), context) == 0
    assert await run_action(make_options("install", "none"), context) == 1
    assert await run_action(make_options("install"), context) == 2


async def test_a_skill_linking_outside_its_folder_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write_skill(tmp_path / "repository", "one")
    (source / "keys").symlink_to("/etc/passwd")
    assert (
        await run_action(make_options("install", make_repository(tmp_path / "repository")), make_context(tmp_path)) == 1
    )
    assert "keys is a link that points outside of the skill" in capfd.readouterr().err
    assert not list_home_skills(tmp_path)


SCRIPT = """
import argparse, asyncio, sys
from hark.cli.skills.command import run
options = argparse.Namespace(action="install", value=[sys.argv[1]], source=None, project=False, force=False)
sys.exit(asyncio.run(run(options)))
"""


async def test_a_signal_during_a_git_clone_kills_git_and_leaves_no_files(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    async with run_raw_server(b"") as silent:
        environment = {**os.environ, "HARK_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
        address = f"http://127.0.0.1:{silent.port}/hangs.git"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SCRIPT, address, env=environment, cwd=tmp_path, stderr=asyncio.subprocess.PIPE
        )
        await silent.requested.wait()
        assert find_processes(str(tmp_path / "tmp"))
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        await silent.disconnected.wait()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert not find_processes(str(tmp_path / "tmp"))
    assert not list((tmp_path / "tmp").iterdir())
    assert not list_home_skills(tmp_path)
