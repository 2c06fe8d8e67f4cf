"""`hark skills`, with real repositories, indexes, and sources that are dead or hang."""

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

from hark.cli.skills.command import SkillsContext, act
from hark.processes.cookies import this_process
from hark.tools.skills.settings import SkillSettings
from tests.cli.skills.skill_sources import make_repository
from tests.tools.context import living
from tests.tools.skills.skill_files import write_skill
from tests.tools.web.servers import raw_serving, serving
from tests.waiting import at_most


def request(
    action: str, value: str = "", source: str = "", *, project: bool = False, force: bool = False
) -> argparse.Namespace:
    return argparse.Namespace(action=action, value=value.split(), source=source, project=project, force=force)


def room(tmp_path: Path, *sources: str, seconds: float = 20.0) -> SkillsContext:
    (tmp_path / "work").mkdir(exist_ok=True)
    return SkillsContext(tmp_path / "home", tmp_path / "work", SkillSettings(sources=sources), seconds)


def home_skills(tmp_path: Path) -> list[str]:
    place = tmp_path / "home" / "skills"
    return sorted(path.name for path in place.iterdir()) if place.exists() else []


async def test_a_list_shows_what_is_here(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert await act(request("list"), room(tmp_path)) == 0
    assert "There are no skills yet" in capfd.readouterr().out
    folder = write_skill(tmp_path / "home" / "skills", "one", "does one")
    (tmp_path / "home" / "skills" / "bad").mkdir()
    (tmp_path / "home" / "skills" / "bad" / "SKILL.md").touch()
    assert await act(request("list"), room(tmp_path)) == 0
    printed = capfd.readouterr()
    assert "does one" in printed.out
    assert str(folder) in printed.out
    assert "bad: SKILL.md can't be read" in printed.err


async def test_all_kinds_of_sources_are_searched(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_skill(tmp_path / "folder", "pdf-folder", "reads documents")
    write_skill(tmp_path / "repository" / "skills", "pdf-git", "reads documents")
    address = make_repository(tmp_path / "repository")
    local = {"skills": [{"name": "pdf-local", "description": "reads documents", "source": "x", "version": "1.2"}]}
    (tmp_path / "index.json").write_text(json.dumps(local))

    async def answer(_: web.Request) -> web.StreamResponse:
        entry = {"name": "other", "description": "a pdf\u001b[31m", "source": "https://git.example/x.git"}
        return web.json_response({"skills": [entry]})

    async with serving(answer) as server:
        sources = (str(tmp_path / "folder"), address, str(tmp_path / "index.json"), f"{server.url}/index.json")
        code = await act(request("search", "PDF"), room(tmp_path, *sources))
    printed = capfd.readouterr()
    assert code == 0
    assert not printed.err
    assert printed.out.splitlines()[::2] == [
        "pdf-folder: reads documents",
        "pdf-git: reads documents",
        "pdf-local 1.2: reads documents",
        "other: a pdf[31m",
    ]
    assert printed.out.splitlines()[3] == f"    from {address}"


async def test_a_dead_source_holds_nothing_and_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_skill(tmp_path / "folder", "one")
    os.mkfifo(tmp_path / "pipe.json")
    async with raw_serving(b"") as silent:
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
        code = await act(request("search"), room(tmp_path, *sources, seconds=3))
        assert time.perf_counter() - started < at_most(15)
        assert not living(this_process(tmp_path / "home").home)
    printed = capfd.readouterr()
    assert code == 0
    assert printed.out.startswith("one: does things\n")
    told = printed.err.splitlines()
    assert len(told) == 9
    assert "/index.json: no answer within 3 seconds" in told[0]
    assert "/hangs.git: no answer within 3 seconds" in told[1]
    assert "it can't be reached" in told[2]
    assert "git could not clone it" in told[3]
    assert "no such folder" in told[4]
    assert "it is not a file" in told[5]
    assert "archives are not taken" in told[6]
    assert "git would run a command" in told[7]
    assert "word" not in printed.err


async def test_when_all_sources_are_dead_the_search_failed(tmp_path: Path) -> None:
    assert await act(request("search", "x"), room(tmp_path, str(tmp_path / "nothing"))) == 1
    assert await act(request("search", "x"), room(tmp_path)) == 2


async def test_an_install_by_name_comes_from_git(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write_skill(tmp_path / "repository", "one", run__sh="#!/bin/sh")
    (source / "run.sh").chmod(0o755)
    write_skill(tmp_path / "repository", "two")
    address = make_repository(tmp_path / "repository")
    assert await act(request("install", "one"), room(tmp_path, address)) == 0
    out = capfd.readouterr().out
    assert f"Installed one in {tmp_path}/home/skills/one, from {address}" in out
    assert "  run.sh (executable)\n" in out
    assert "look at them before you use it" in out
    assert home_skills(tmp_path) == ["one"]
    assert await act(request("install", "one"), room(tmp_path, address)) == 1
    assert "--force" in capfd.readouterr().err
    assert await act(request("install", "one", force=True), room(tmp_path, address)) == 0
    assert await act(request("install", "one", project=True), room(tmp_path, address)) == 0
    assert (tmp_path / "work" / ".hark" / "skills" / "one" / "SKILL.md").exists()


async def test_an_install_takes_a_part_of_a_repository(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_skill(tmp_path / "repository" / "deep" / "er", "one")
    write_skill(tmp_path / "repository" / "deep" / "er", "two")
    address = make_repository(tmp_path / "repository")
    assert await act(request("install", f"{address}#deep/er/one"), room(tmp_path)) == 0
    assert await act(request("install", f"git+{address}#deep/er"), room(tmp_path)) == 1
    assert "it has several skills" in capfd.readouterr().err
    assert await act(request("install", "two", source=f"{address}#deep/er"), room(tmp_path)) == 0
    assert home_skills(tmp_path) == ["one", "two"]
    assert await act(request("install", f"{address}#../.."), room(tmp_path)) == 1
    assert "leads out of the repository" in capfd.readouterr().err
    assert await act(request("install", address), room(tmp_path)) == 1
    assert "there is no SKILL.md in it" in capfd.readouterr().err


async def test_an_install_follows_an_index(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
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
    here = room(tmp_path, str(tmp_path / "index.json"))
    assert await act(request("install", "one"), here) == 0
    assert "'../x' can't be the name of a skill" in capfd.readouterr().err
    assert await act(request("install", "two"), here) == 1
    assert "not what the index says" in capfd.readouterr().err
    assert await act(request("install", "three"), here) == 1
    assert home_skills(tmp_path) == ["one"]


async def test_an_index_on_the_web_cannot_name_files_here(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = write_skill(tmp_path / "private", "one")

    async def answer(_: web.Request) -> web.StreamResponse:
        sources = (str(folder), "one", f"file://{folder}", f"git+file://{folder}")
        return web.json_response({"skills": [{"name": "one", "description": "d", "source": one} for one in sources]})

    async with serving(answer) as server:
        assert await act(request("install", "one", source=f"{server.url}/i.json"), room(tmp_path)) == 1
    assert capfd.readouterr().err.count("is a place on this machine") == 4
    assert not home_skills(tmp_path)


async def test_a_name_that_several_sources_offer_must_be_chosen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = write_skill(tmp_path / "a", "one").parent, write_skill(tmp_path / "b", "one").parent
    here = room(tmp_path, str(first), str(second))
    assert await act(request("install", "one"), here) == 1
    assert f"choose one with --from:\n  {first}\n  {second}" in capfd.readouterr().err
    assert await act(request("install", "one", source=str(second)), here) == 0
    assert await act(request("install", "none"), here) == 1
    assert await act(request("install"), here) == 2


async def test_a_repository_with_links_out_of_it_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write_skill(tmp_path / "repository", "one")
    (source / "keys").symlink_to("/etc/passwd")
    assert await act(request("install", make_repository(tmp_path / "repository")), room(tmp_path)) == 1
    assert "keys is a link that leads out of the skill" in capfd.readouterr().err
    assert not home_skills(tmp_path)


SCRIPT = """
import argparse, asyncio, sys
from hark.cli.skills.command import run
options = argparse.Namespace(action="install", value=[sys.argv[1]], source=None, project=False, force=False)
sys.exit(asyncio.run(run(options)))
"""


async def test_a_signal_ends_git_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    async with raw_serving(b"") as silent:
        environment = {**os.environ, "HARK_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
        address = f"http://127.0.0.1:{silent.port}/hangs.git"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SCRIPT, address, env=environment, cwd=tmp_path, stderr=asyncio.subprocess.PIPE
        )
        await silent.asked.wait()
        assert living(str(tmp_path / "tmp"))
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        await silent.left.wait()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert not living(str(tmp_path / "tmp"))
    assert not list((tmp_path / "tmp").iterdir())
    assert not home_skills(tmp_path)
