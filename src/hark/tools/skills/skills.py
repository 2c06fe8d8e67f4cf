"""The `skills` tool: shows skills, which are instructions for special tasks."""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Literal

from hark.protocol.tool import CallContext, PredictedEffects, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.skills.catalog import SkillCatalogCache, truncate_line
from hark.tools.skills.skill import (
    MAX_FILES,
    SKILL_FILE,
    BadSkill,
    Skill,
    list_files,
    read_instructions,
    read_skill_file,
)

MAX_CHARACTERS = 60_000


class SkillsArguments(ToolArguments, frozen=True):
    """List skills, or view a skill. Skills are instructions for special tasks.

    Before you do such a task, view its skill and follow it. View a skill's other files with `file`. Run its scripts
    with the shell, from its folder.
    """

    action: Literal["list", "view"]
    name: Annotated[str, doc("For view: the name of the skill.")] = ""
    file: Annotated[str, doc("For view: one of the skill's files, instead of its instructions.")] = ""


class SkillsTool:
    """The tool that lists skills, and shows their instructions and files."""

    spec = tool_spec(
        SkillsArguments, "skills", predict=lambda arguments: PredictedEffects(is_changing=False, subject=arguments.name)
    )

    def __init__(self, catalogs: SkillCatalogCache) -> None:
        self._catalogs = catalogs

    async def run(self, arguments: SkillsArguments, context: CallContext) -> ToolOutput:
        """List all skills, or show a skill's instructions or one of its files."""
        catalog, name = self._catalogs.load(), arguments.name
        if arguments.action == "list":
            return ToolOutput(_format_list(catalog.skills, catalog.problems))
        skill = catalog.skills.get(name)
        if skill is None:
            problem = f"No skill named {name!r}" if name else "Name the skill to view"
            known = ", ".join(catalog.skills) or "none"
            raise ToolError(f"{problem}. Available skills: {known}.")
        try:
            return ToolOutput(_format_skill(skill, arguments.file))
        except BadSkill as error:
            raise ToolError(f"{error}. The skill's files: {_format_file_names(skill)}.") from error


def _format_list(skills: Mapping[str, Skill], problems: tuple[str, ...]) -> str:
    lines = [truncate_line(f"{skill.name}: {skill.description}") for skill in skills.values()]
    bad = ["", "Not usable:", *(truncate_line(problem) for problem in problems)] if problems else []
    return "\n".join([*(lines or ["There are no skills."]), *bad])


def _format_skill(skill: Skill, file: str) -> str:
    text = read_skill_file(skill, file) if file else read_instructions(skill)
    cut = len(text) - MAX_CHARACTERS
    if cut > 0:
        text = f"{text[:MAX_CHARACTERS]}\n[{cut:,} more characters: read the file itself]"
    title = f"[skill {skill.name}, {file or SKILL_FILE}, in {skill.folder}]"
    return f"{title}\n{text}" if file else f"{title}\n[files: {_format_file_names(skill)}]\n\n{text}"


def _format_file_names(skill: Skill) -> str:
    names = list(islice(list_files(skill.folder), MAX_FILES + 1))
    return ", ".join(names[:MAX_FILES]) + (" and more" if len(names) > MAX_FILES else "")
