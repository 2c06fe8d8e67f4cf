"""The tool that shows skills: instructions for special work, read when they are needed."""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Literal

from hark.protocol.tool import CallContext, Foreseen, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.skills.catalog import SkillCatalogs, short
from hark.tools.skills.folder import MAX_FILES, SKILL_FILE, BadSkill, Skill, files, read_body, read_file

MAX_CHARACTERS = 60_000


class SkillsArguments(ToolArguments, frozen=True):
    """Skills are instructions for special work. List them, or view one before you do such work, and follow it.

    A skill's further files are viewed with file; its scripts are run with the shell, from its folder.
    """

    action: Literal["list", "view"]
    name: Annotated[str, doc("view: the skill.")] = ""
    file: Annotated[str, doc("view: one of the skill's files, instead of its instructions.")] = ""


class Skills:
    """Shows what is on the shelves."""

    spec = tool_spec(
        SkillsArguments, "skills", foresee=lambda arguments: Foreseen(is_changing=False, subject=arguments.name)
    )

    def __init__(self, shelves: SkillCatalogs) -> None:
        self._shelves = shelves

    async def run(self, arguments: SkillsArguments, context: CallContext) -> ToolOutput:
        """List all skills, or show one of them or a file of it."""
        shelf, name = self._shelves.look(), arguments.name
        if arguments.action == "list":
            return ToolOutput(_listed(shelf.skills, shelf.problems))
        skill = shelf.skills.get(name)
        if skill is None:
            told = f"There is no skill {name!r}" if name else "Say which skill to view"
            known = ", ".join(shelf.skills) or "none: there are no skills here"
            raise ToolError(f"{told}. The skills are: {known}.")
        try:
            return ToolOutput(_viewed(skill, arguments.file))
        except BadSkill as error:
            raise ToolError(f"{error}. The skill has: {_files(skill)}.") from error


def _listed(skills: Mapping[str, Skill], problems: tuple[str, ...]) -> str:
    lines = [short(f"{skill.name}: {skill.description}") for skill in skills.values()]
    bad = ["", "Not usable:", *(short(problem) for problem in problems)] if problems else []
    return "\n".join([*(lines or ["There are no skills here."]), *bad])


def _viewed(skill: Skill, file: str) -> str:
    text = read_file(skill, file) if file else read_body(skill)
    cut = len(text) - MAX_CHARACTERS
    if cut > 0:
        text = f"{text[:MAX_CHARACTERS]}\n[{cut:,} more characters: read the file itself]"
    title = f"[skill {skill.name}, {file or SKILL_FILE}, in {skill.folder}]"
    return f"{title}\n{text}" if file else f"{title}\n[files: {_files(skill)}]\n\n{text}"


def _files(skill: Skill) -> str:
    names = list(islice(files(skill.folder), MAX_FILES + 1))
    return ", ".join(names[:MAX_FILES]) + (" and more" if len(names) > MAX_FILES else "")
