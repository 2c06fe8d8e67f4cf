"""The tool that keeps notes from one session to the next."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from hark.processes.cookies import this_process
from hark.processes.python.function_worker import run_in_child
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, Foreseen, ToolError, ToolOutput
from hark.text.redaction import secret_in
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.notes.notes import (
    NotesFile,
    added,
    as_note,
    notes_of_person,
    notes_of_project,
    removed,
    replaced,
)


class MemoryArguments(ToolArguments, frozen=True):
    """Keep short notes that last: they are shown to you at the start of every later session.

    Keep what will matter again: what the person prefers, decided or corrected; how this project is built, tested and
    laid out. Not what the files say anyway, not the task of the moment, and never a password or key. Replace a note
    that is no longer true instead of adding a second one.
    """

    action: Literal["add", "replace", "remove", "list"]
    text: Annotated[str, doc("add, replace: the note, one or two sentences.")] = ""
    old: Annotated[str, doc("replace, remove: some words of the note that is meant.")] = ""
    scope: Annotated[
        Literal["user", "project"], doc("user: holds everywhere. project: holds in this working directory (default).")
    ] = "project"


def _foresee(arguments: MemoryArguments) -> Foreseen:
    # It writes to Hark's own home and nowhere else, so there is nothing in the workspace to keep for an undo.
    return Foreseen(is_changing=arguments.action != "list", subject=arguments.text or arguments.old, writes=())


class MemoryTool:
    """Keeps notes in the home, for the person and for each project."""

    spec = tool_spec(MemoryArguments, "memory", is_changing=True, grace_seconds=0.5, foresee=_foresee)

    def __init__(self, home: Path) -> None:
        self._home = home

    async def run(self, arguments: MemoryArguments, context: CallContext) -> ToolOutput:
        """Do it; "kept" is said of what is on the disk. Cancelling ends it at once, before or after, never between."""
        is_of_person = arguments.scope == "user"
        notes = notes_of_person(self._home) if is_of_person else notes_of_project(self._home, context.workspace)
        if arguments.action == "list":
            return _list(notes)
        edit, done = _edit(arguments)
        # Waiting for a lock or a disk can't be cancelled, so it is done by a process that can be killed.
        change = partial(_change, notes, edit, done)
        return await run_in_child(change, context.output, this_process(self._home))


def _edit(arguments: MemoryArguments) -> tuple[Callable[[str], str], str]:
    """Return what to do to the text, and what to say when it is done."""
    if arguments.action == "remove":
        return partial(removed, old=arguments.old or arguments.text), "Removed."
    note = as_note(arguments.text)
    if kind := secret_in(note):
        raise ToolError(
            f"This looks as if it had {kind} in it. Nothing was kept: notes go to the model with every request. Note "
            "where it can be found instead, such as the name of an environment variable."
        )
    if arguments.action == "add":
        return partial(added, note=note), "Kept."
    return partial(replaced, old=arguments.old, note=note), "Kept, in the place of the old note."


def _change(notes: NotesFile, edit: Callable[[str], str], done: str) -> ToolOutput:
    try:
        notes.change(edit)
    except ToolError as refusal:
        return refusal.as_output()
    except TimeoutError as error:
        return ToolError(f"Nothing was kept: {error}. Try again later.").as_output()
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
