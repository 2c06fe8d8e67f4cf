"""The tool that keeps notes from one session to the next."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hark.processes.cookies import this_process
from hark.processes.python.function_worker import run_in_child
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, Foreseen, ToolOutput, ToolSpec
from hark.text.redaction import secret_in
from hark.tools.arguments import check
from hark.tools.notes.notes import (
    NotesFile,
    NotesRefused,
    added,
    as_note,
    notes_of_person,
    notes_of_project,
    removed,
    replaced,
)

PERSON = "user"
PROJECT = "project"


def _foresee(arguments: Mapping[str, Any]) -> Foreseen:
    # It writes to Hark's own home and nowhere else, so there is nothing in the workspace to keep for an undo.
    words = arguments.get("text") or arguments.get("old") or ""
    return Foreseen(is_changing=arguments.get("action") != "list", subject=str(words), writes=())


_SPEC = ToolSpec(
    name="memory",
    description=(
        "Keep short notes that last: they are shown to you at the start of every later session. "
        "Keep what will matter again: what the person prefers, decided or corrected; how this project is built, tested "
        "and laid out. Not what the files say anyway, not the task of the moment, and never a password or key. "
        "Replace a note that is no longer true instead of adding a second one."
    ),
    parameters={
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["add", "replace", "remove", "list"]},
            "text": {"type": "string", "description": "add, replace: the note, one or two sentences."},
            "old": {"type": "string", "description": "replace, remove: some words of the note that is meant."},
            "scope": {
                "type": "string",
                "enum": [PERSON, PROJECT],
                "description": "user: holds everywhere. project: holds in this working directory (default).",
            },
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    is_changing=True,
    grace_seconds=0.5,
    foresee=_foresee,
)


class MemoryTool:
    """Keeps notes in the home, for the person and for each project."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Do it; "kept" is said of what is on the disk. Cancelling ends it at once, before or after, never between."""
        if problem := check(_SPEC, arguments):
            return _refused(problem)
        scope = arguments.get("scope") or PROJECT
        notes = notes_of_person(self._home) if scope == PERSON else notes_of_project(self._home, context.workspace)
        if arguments["action"] == "list":
            return _list(notes)
        try:
            edit, done = _edit(arguments)
        except NotesRefused as refusal:
            return _refused(str(refusal))
        # Waiting for a lock or a disk can't be cancelled, so it is done by a process that can be killed.
        change = partial(_change, notes, edit, done)
        return await run_in_child(change, context.output, this_process(self._home))


def _edit(arguments: Mapping[str, Any]) -> tuple[Callable[[str], str], str]:
    """Return what to do to the text, and what to say when it is done."""
    text, old = arguments.get("text") or "", arguments.get("old") or ""
    if arguments["action"] == "remove":
        return partial(removed, old=old or text), "Removed."
    note = as_note(text)
    if kind := secret_in(note):
        raise NotesRefused(
            f"This looks as if it had {kind} in it. Nothing was kept: notes go to the model with every request. Note "
            "where it can be found instead, such as the name of an environment variable."
        )
    if arguments["action"] == "add":
        return partial(added, note=note), "Kept."
    return partial(replaced, old=old, note=note), "Kept, in the place of the old note."


def _change(notes: NotesFile, edit: Callable[[str], str], done: str) -> ToolOutput:
    try:
        notes.change(edit)
    except NotesRefused as refusal:
        return _refused(str(refusal))
    except TimeoutError as error:
        return _refused(f"Nothing was kept: {error}. Try again later.")
    except OSError as error:
        text = f"It is not certain that this was kept: {error}. Look with the action list."
        return ToolOutput(text, is_error=True, effect=Effect.UNKNOWN)
    return ToolOutput(done)


def _list(notes: NotesFile) -> ToolOutput:
    try:
        known = notes.read()
    except OSError as error:
        return ToolOutput(f"The notes can't be read: {error}.", is_error=True)
    lines = [f"- {note}" for note in known] or ["(none yet)"]
    return ToolOutput("\n".join([f"{notes.title}, in {notes.path}:", *lines]))


def _refused(why: str) -> ToolOutput:
    return ToolOutput(why, is_error=True, effect=Effect.NOT_STARTED)
