"""The tool that shows skills: instructions for special work, read when they are needed."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, Foreseen, ToolOutput, ToolSpec
from hark.tools.arguments import check
from hark.tools.skills.catalog import SkillCatalogs, short
from hark.tools.skills.folder import MAX_FILES, SKILL_FILE, BadSkill, Skill, files, read_body, read_file

MAX_CHARACTERS = 60_000

_SPEC = ToolSpec(
    name="skills",
    description=(
        "Skills are instructions for special work. List them, or view one before you do such work, and follow it. "
        "A skill's further files are viewed with file; its scripts are run with the shell, from its folder."
    ),
    parameters={
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["list", "view"]},
            "name": {"type": "string", "description": "view: the skill."},
            "file": {"type": "string", "description": "view: one of the skill's files, instead of its instructions."},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    foresee=lambda arguments: Foreseen(is_changing=False, subject=str(arguments.get("name") or "")),
)


class Skills:
    """Shows what is on the shelves."""

    def __init__(self, shelves: SkillCatalogs) -> None:
        self._shelves = shelves

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """List all skills, or show one of them or a file of it."""
        if problem := check(_SPEC, arguments):
            return ToolOutput(problem, is_error=True, effect=Effect.NOT_STARTED)
        shelf = self._shelves.look()
        if arguments["action"] == "list":
            return ToolOutput(_listed(shelf.skills, shelf.problems))
        name = arguments.get("name") or ""
        skill = shelf.skills.get(name)
        if skill is None:
            told = f"There is no skill {name!r}" if name else "Say which skill to view"
            known = ", ".join(shelf.skills) or "none: there are no skills here"
            return ToolOutput(f"{told}. The skills are: {known}.", is_error=True, effect=Effect.NOT_STARTED)
        try:
            return ToolOutput(_viewed(skill, arguments.get("file") or ""))
        except BadSkill as error:
            return ToolOutput(f"{error}. The skill has: {_files(skill)}.", is_error=True, effect=Effect.NOT_STARTED)


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
