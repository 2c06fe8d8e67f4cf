"""The tool that shows skills, and the shelves that they stand on."""

import os
import time
from pathlib import Path

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import Tool, ToolOutput
from hark.tools.skills.catalog import MAX_LINE_CHARACTERS, MAX_LINES, SkillCatalogs, skill_places
from hark.tools.skills.skills import Skills, SkillsArguments
from tests.tools.context import FakeContext, call_tool
from tests.tools.skills.skill_files import write_skill
from tests.waiting import at_most


async def run(place: Path, **arguments: str) -> ToolOutput:
    return await call_tool(Skills(SkillCatalogs([place])), arguments, FakeContext(place))


def test_the_nearest_of_two_skills_with_the_same_name_wins(tmp_path: Path) -> None:
    workspace, home = tmp_path / "work", tmp_path / "home"
    places = skill_places(workspace, home, [str(tmp_path / "more")])
    assert [place.relative_to(tmp_path).as_posix() for place in places] == [
        "work/.hark/skills",
        "work/.claude/skills",
        "work/.agents/skills",
        "more",
        "home/skills",
    ]
    for number, place in enumerate(reversed(places)):
        write_skill(place, "shared", f"number {number}")
        write_skill(place, f"own-{number}")
        shelf = SkillCatalogs(places).look()
        assert shelf.skills["shared"].description == f"number {number}"
        assert len(shelf.skills) == number + 2
        assert not shelf.problems


async def test_a_list_has_a_line_for_each_and_names_what_is_broken(tmp_path: Path) -> None:
    write_skill(tmp_path, "good", "what it does: and when")
    (tmp_path / "no-fields").mkdir()
    (tmp_path / "no-fields" / "SKILL.md").write_text("# Just text")
    write_skill(tmp_path, "no-words", "")
    write_skill(tmp_path, "twice").rename(tmp_path / "twin")
    write_skill(tmp_path, "twice")
    write_skill(tmp_path, ".hidden")
    (tmp_path / "no-skill").mkdir()
    (tmp_path / "file").write_text("x")
    text = (await run(tmp_path, action="list")).text
    head, _, bad = text.partition("\n\nNot usable:\n")
    assert head.splitlines() == ["good: what it does: and when", "twice: does things"]
    assert "no-fields: SKILL.md can't be read: it must begin with a line ---" in bad
    assert "no-words: it has no description" in bad
    assert "twin: twice has the same name, twice." in bad
    assert len(bad.splitlines()) == 3


async def test_without_skills_a_list_says_so(tmp_path: Path) -> None:
    assert (await run(tmp_path / "nowhere", action="list")).text == "There are no skills here."


async def test_a_view_has_the_instructions_the_folder_and_its_files(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "one", body="# Title\n\nDo it.", more__md="further", run__sh="#!/bin/sh")
    (folder / "deep").mkdir()
    (folder / "deep" / "x.txt").write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    output = await run(tmp_path, action="view", name="one")
    assert output.text == (
        f"[skill one, SKILL.md, in {folder}]\n[files: SKILL.md, more.md, run.sh, deep/x.txt]\n\n# Title\n\nDo it."
    )
    output = await run(tmp_path, action="view", name="one", file="more.md")
    assert output.text == f"[skill one, more.md, in {folder}]\nfurther"
    assert (await run(tmp_path, action="view", name="one", file="deep/x.txt")).text.endswith("\nx")


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("../secret.txt", "leads out of the skill's folder"),
        ("deep/../../secret.txt", "leads out of the skill's folder"),
        ("/etc/passwd", "leads out of the skill's folder"),
        ("out", "leads out of the skill's folder"),
        ("outdir/secret.txt", "leads out of the skill's folder"),
        ("x\0y", "leads out of the skill's folder"),
        ("nothing.md", "can't be read: No such file"),
        ("deep", "is not a file"),
        ("pipe", "is not a file"),
        ("binary", "is no text"),
        ("long", "is longer than 200,000 bytes"),
    ],
)
async def test_no_trick_leads_out_of_the_folder(tmp_path: Path, file: str, why: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = write_skill(tmp_path / "skills", "one")
    (tmp_path / "skills" / "secret.txt").write_text("secret")
    (folder / "deep").mkdir()
    (folder / "out").symlink_to("../../secret.txt")
    (folder / "outdir").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "binary").write_bytes(b"\x7fELF\0")
    (folder / "long").write_text("x" * 200_001)
    output = await run(tmp_path / "skills", action="view", name="one", file=file)
    assert output.is_error
    assert output.effect is Effect.NOT_STARTED
    assert why in output.text
    assert "The skill has: SKILL.md" in output.text


async def test_a_skill_file_that_is_a_link_out_is_no_skill(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("---\nname: x\ndescription: y\n---\nsecret")
    (tmp_path / "skills" / "one").mkdir(parents=True)
    (tmp_path / "skills" / "one" / "SKILL.md").symlink_to(tmp_path / "secret")
    assert "is a link that leads out of its folder" in (await run(tmp_path / "skills", action="list")).text


async def test_a_folder_of_the_owners_may_be_a_link(tmp_path: Path) -> None:
    write_skill(tmp_path / "elsewhere", "one")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "one").symlink_to(tmp_path / "elsewhere" / "one")
    assert "Do it." in (await run(tmp_path / "skills", action="view", name="one")).text


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"action": "view"}, "Say which skill to view. The skills are: one."),
        ({"action": "view", "name": "two"}, "There is no skill 'two'. The skills are: one."),
        ({"action": "dance"}, "action: expected one of list, view, got dance."),
    ],
)
async def test_wrong_arguments_are_told(tmp_path: Path, arguments: dict[str, str], why: str) -> None:
    write_skill(tmp_path, "one")
    output = await run(tmp_path, **arguments)
    assert output == ToolOutput(why, is_error=True, effect=Effect.NOT_STARTED)


def test_lines_for_the_prompt_are_bounded(tmp_path: Path) -> None:
    for number in range(MAX_LINES + 3):
        write_skill(tmp_path, f"s{number:03}", "word " * 200)
    lines = SkillCatalogs([tmp_path]).one_liners()
    assert len(lines) == MAX_LINES + 1
    assert lines[0].startswith("s000: word word")
    assert all(len(line) <= MAX_LINE_CHARACTERS for line in lines)
    assert lines[-1] == "and 3 more: the skills tool lists them"


def test_changes_are_seen_and_what_stays_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        write_skill(tmp_path, f"s{number}")
    shelves = SkillCatalogs([tmp_path])
    before = shelves.one_liners()
    assert shelves.one_liners() is before
    started = time.perf_counter()
    for _ in range(20):
        shelves.one_liners()
    assert time.perf_counter() - started < at_most(1)
    kept = shelves.look().skills["s1"]
    write_skill(tmp_path, "s0", "changed to something longer")
    assert "s0: changed to something longer" in shelves.one_liners()
    assert shelves.look().skills["s1"] is kept
    (tmp_path / "s0" / "SKILL.md").unlink()
    assert len(shelves.one_liners()) == 49


def test_the_example_is_a_skill() -> None:
    shelf = SkillCatalogs([Path(__file__).parents[3] / "examples" / "skills"]).look()
    assert list(shelf.skills) == ["release-notes"]
    assert not shelf.problems


async def test_it_only_reads(tmp_path: Path) -> None:
    tool: Tool = Skills(SkillCatalogs([tmp_path]))
    foreseen = tool.spec.foreseen(SkillsArguments("view", "one"))
    assert (foreseen.is_changing, foreseen.subject) == (False, "one")
