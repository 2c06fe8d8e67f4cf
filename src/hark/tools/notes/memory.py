"""The `memory` tool: stores notes for later sessions."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from hark.processes.cookies import current_owner
from hark.processes.python.function_worker import run_in_child
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, PredictedEffects, ToolError, ToolOutput
from hark.text.redaction import detect_secret
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.notes.notes import (
    NotesFile,
    add_note,
    normalize_note,
    project_notes,
    remove_note,
    replace_note,
    user_notes,
)


class MemoryArguments(ToolArguments, frozen=True):
    """Store short notes that persist: you see them at the start of every later session.

    Note facts that will matter again: the user's preferences, decisions and corrections, and how this project is
    built, tested and organised. Don't note facts that the files already contain, or the current task, and never a
    password or key. Replace a note that is no longer true instead of adding a second one.
    """

    action: Literal["add", "replace", "remove", "list"]
    text: Annotated[str, doc("For add and replace: the note, one or two sentences.")] = ""
    old: Annotated[str, doc("For replace and remove: part of the existing note's text.")] = ""
    scope: Annotated[
        Literal["user", "project"],
        doc("user: applies everywhere. project: only in this working directory (default)."),
    ] = "project"


def _predict_effects(arguments: MemoryArguments) -> PredictedEffects:
    # The tool writes only to Hark's home, so undo has nothing to store from the workspace.
    return PredictedEffects(is_changing=arguments.action != "list", subject=arguments.text or arguments.old, writes=())


class MemoryTool:
    """The tool that stores notes in Hark's home, for the user and for each project."""

    spec = tool_spec(MemoryArguments, "memory", is_changing=True, grace_seconds=0.5, predict=_predict_effects)

    def __init__(self, home: Path) -> None:
        self._home = home

    async def run(self, arguments: MemoryArguments, context: CallContext) -> ToolOutput:
        """Apply the action and persist the result. Cancelling is immediate and leaves either the old or new notes."""
        is_user_scope = arguments.scope == "user"
        notes = user_notes(self._home) if is_user_scope else project_notes(self._home, context.workspace)
        if arguments.action == "list":
            return _list_notes(notes)
        edit, done = _choose_edit(arguments)
        # Waiting for a lock or a disk can't be cancelled, so it happens in a process that can be killed.
        change = partial(_apply_edit, notes, edit, done)
        return await run_in_child(change, context.output, current_owner(self._home))


def _choose_edit(arguments: MemoryArguments) -> tuple[Callable[[str], str], str]:
    """Return the function that edits the notes, and the message to return on success."""
    if arguments.action == "remove":
        return partial(remove_note, old=arguments.old or arguments.text), "Removed."
    note = normalize_note(arguments.text)
    if kind := detect_secret(note):
        raise ToolError(
            f"This seems to contain {kind}. Nothing was stored: notes go to the model with every request. Note "
            "instead where it can be found, such as the name of an environment variable."
        )
    if arguments.action == "add":
        return partial(add_note, note=note), "Stored."
    return partial(replace_note, old=arguments.old, note=note), "Stored. The old note was replaced."


def _apply_edit(notes: NotesFile, edit: Callable[[str], str], done: str) -> ToolOutput:
    try:
        notes.change(edit)
    except ToolError as error:
        return error.as_output()
    except TimeoutError as error:
        return ToolError(f"Nothing was stored: {error}. Try again later.").as_output()
    except OSError as error:
        text = f"The change may not have been saved: {error}. Check with the list action."
        return ToolOutput(text, is_error=True, effect=Effect.UNKNOWN)
    return ToolOutput(done)


def _list_notes(notes: NotesFile) -> ToolOutput:
    try:
        known = notes.read()
    except OSError as error:
        return ToolOutput(f"The notes can't be read: {error}.", is_error=True)
    lines = [f"- {note}" for note in known] or ["(none yet)"]
    return ToolOutput("\n".join([f"{notes.title}, in {notes.path}:", *lines]))
