"""The `skills` tool and the skill catalog."""

import os
import time
from pathlib import Path

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import Tool, ToolOutput
from hark.tools.skills.catalog import MAX_LINE_CHARACTERS, MAX_LINES, SkillCatalogCache, skill_folders
from hark.tools.skills.skills import SkillsArguments, SkillsTool
from tests.tools.fake_context import FakeContext, call_tool
from tests.tools.skills.skill_files import write_skill
from tests.waiting import at_most


async def call_skills(folder: Path, **arguments: str) -> ToolOutput:
    return await call_tool(SkillsTool(SkillCatalogCache([folder])), arguments, FakeContext(folder))


def test_the_nearest_of_two_skills_with_the_same_name_wins(tmp_path: Path) -> None:
    workspace, home = tmp_path / "work", tmp_path / "home"
    folders = skill_folders(workspace, home, [str(tmp_path / "more")])
    assert [folder.relative_to(tmp_path).as_posix() for folder in folders] == [
        "work/.hark/skills",
        "work/.claude/skills",
        "work/.agents/skills",
        "more",
        "home/skills",
    ]
    for number, folder in enumerate(reversed(folders)):
        write_skill(folder, "shared", f"number {number}")
        write_skill(folder, f"own-{number}")
        catalog = SkillCatalogCache(folders).load()
        assert catalog.skills["shared"].description == f"number {number}"
        assert len(catalog.skills) == number + 2
        assert not catalog.problems


async def test_list_shows_one_line_per_skill_and_names_unusable_skills(tmp_path: Path) -> None:
    write_skill(tmp_path, "good", "what it does: and when")
    (tmp_path / "no-fields").mkdir()
    (tmp_path / "no-fields" / "SKILL.md").write_text("# Just text")
    write_skill(tmp_path, "no-words", "")
    write_skill(tmp_path, "twice").rename(tmp_path / "twin")
    write_skill(tmp_path, "twice")
    write_skill(tmp_path, ".hidden")
    (tmp_path / "no-skill").mkdir()
    (tmp_path / "file").write_text("x")
    text = (await call_skills(tmp_path, action="list")).text
    head, _, bad = text.partition("\n\nNot usable:\n")
    assert head.splitlines() == ["good: what it does: and when", "twice: does things"]
    assert "no-fields: SKILL.md can't be read: it must begin with a line ---" in bad
    assert "no-words: it has no description" in bad
    assert "twin: twice has the same name, twice." in bad
    assert len(bad.splitlines()) == 3


async def test_list_without_skills_reports_that_there_are_none(tmp_path: Path) -> None:
    assert (await call_skills(tmp_path / "nowhere", action="list")).text == "There are no skills."


async def test_view_shows_the_instructions_the_folder_and_its_files(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "one", body="# Title\n\nDo it.", more__md="further", run__sh="#!/bin/sh")
    (folder / "deep").mkdir()
    (folder / "deep" / "x.txt").write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    output = await call_skills(tmp_path, action="view", name="one")
    assert output.text == (
        f"[skill one, SKILL.md, in {folder}]\n[files: SKILL.md, more.md, run.sh, deep/x.txt]\n\n# Title\n\nDo it."
    )
    output = await call_skills(tmp_path, action="view", name="one", file="more.md")
    assert output.text == f"[skill one, more.md, in {folder}]\nfurther"
    assert (await call_skills(tmp_path, action="view", name="one", file="deep/x.txt")).text.endswith("\nx")


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("../secret.txt", "is outside the skill's folder"),
        ("deep/../../secret.txt", "is outside the skill's folder"),
        ("/etc/passwd", "is outside the skill's folder"),
        ("out", "is outside the skill's folder"),
        ("outdir/secret.txt", "is outside the skill's folder"),
        ("x\0y", "is outside the skill's folder"),
        ("nothing.md", "can't be read: No such file"),
        ("deep", "not a regular file"),
        ("pipe", "not a regular file"),
        ("binary", "is not text"),
        ("long", "is longer than 200,000 bytes"),
    ],
)
async def test_view_rejects_files_outside_the_skills_folder(tmp_path: Path, file: str, reason: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = write_skill(tmp_path / "skills", "one")
    (tmp_path / "skills" / "secret.txt").write_text("secret")
    (folder / "deep").mkdir()
    (folder / "out").symlink_to("../../secret.txt")
    (folder / "outdir").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "binary").write_bytes(b"\x7fELF\0")
    (folder / "long").write_text("x" * 200_001)
    output = await call_skills(tmp_path / "skills", action="view", name="one", file=file)
    assert output.is_error
    assert output.effect is Effect.NOT_STARTED
    assert reason in output.text
    assert "The skill's files: SKILL.md" in output.text


async def test_a_skill_file_that_links_outside_its_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("---\nname: x\ndescription: y\n---\nsecret")
    (tmp_path / "skills" / "one").mkdir(parents=True)
    (tmp_path / "skills" / "one" / "SKILL.md").symlink_to(tmp_path / "secret")
    assert "is a link to a file outside its folder" in (await call_skills(tmp_path / "skills", action="list")).text


async def test_a_skill_folder_may_be_a_symbolic_link(tmp_path: Path) -> None:
    write_skill(tmp_path / "elsewhere", "one")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "one").symlink_to(tmp_path / "elsewhere" / "one")
    assert "Do it." in (await call_skills(tmp_path / "skills", action="view", name="one")).text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"action": "view"}, "Name the skill to view. Available skills: one."),
        ({"action": "view", "name": "two"}, "No skill named 'two'. Available skills: one."),
        ({"action": "dance"}, "action: expected one of list, view, got dance."),
    ],
)
async def test_invalid_arguments_cause_an_error(tmp_path: Path, arguments: dict[str, str], reason: str) -> None:
    write_skill(tmp_path, "one")
    output = await call_skills(tmp_path, **arguments)
    assert output == ToolOutput(reason, is_error=True, effect=Effect.NOT_STARTED)


def test_summary_lines_for_the_prompt_are_limited_in_number_and_length(tmp_path: Path) -> None:
    for number in range(MAX_LINES + 3):
        write_skill(tmp_path, f"s{number:03}", "word " * 200)
    lines = SkillCatalogCache([tmp_path]).summary_lines()
    assert len(lines) == MAX_LINES + 1
    assert lines[0].startswith("s000: word word")
    assert all(len(line) <= MAX_LINE_CHARACTERS for line in lines)
    assert lines[-1] == "and 3 more: the skills tool lists them"


def test_changed_skills_are_read_again_and_unchanged_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        write_skill(tmp_path, f"s{number}")
    catalogs = SkillCatalogCache([tmp_path])
    before = catalogs.summary_lines()
    assert catalogs.summary_lines() is before
    started = time.perf_counter()
    for _ in range(20):
        catalogs.summary_lines()
    assert time.perf_counter() - started < at_most(1)
    unchanged_skill = catalogs.load().skills["s1"]
    write_skill(tmp_path, "s0", "changed to something longer")
    assert "s0: changed to something longer" in catalogs.summary_lines()
    assert catalogs.load().skills["s1"] is unchanged_skill
    (tmp_path / "s0" / "SKILL.md").unlink()
    assert len(catalogs.summary_lines()) == 49


def test_the_example_skill_is_valid() -> None:
    catalog = SkillCatalogCache([Path(__file__).parents[3] / "examples" / "skills"]).load()
    assert list(catalog.skills) == ["release-notes"]
    assert not catalog.problems


async def test_the_skills_tool_changes_nothing(tmp_path: Path) -> None:
    tool: Tool = SkillsTool(SkillCatalogCache([tmp_path]))
    predicted = tool.spec.predict_effects(SkillsArguments("view", "one"))
    assert (predicted.is_changing, predicted.subject) == (False, "one")
