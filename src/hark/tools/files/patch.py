"""The `patch` tool: applies a patch to one or more files, either completely or not at all."""

from functools import partial
from pathlib import Path
from typing import Annotated

from hark.protocol.tool import CallContext, PredictedEffects, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.atomic_write import FileChange, apply_changes, read_target
from hark.tools.files.diffs import unified_diff
from hark.tools.files.file_text import decode_for_edit, decode_text, encode_new_text
from hark.tools.files.last_reads import LastReads
from hark.tools.files.patching.apply_hunks import apply_hunks
from hark.tools.files.patching.format import FileAction, FilePatch
from hark.tools.files.patching.parse import parse_patch
from hark.tools.files.paths import display_path, expand_home, missing_file_text, resolve_path


class PatchArguments(ToolArguments, frozen=True):
    """The arguments of the patch tool: a patch of one or more files."""

    patch: Annotated[str, doc("The patch. Paths are relative to the workspace.")]


def predict_effects(arguments: PatchArguments) -> PredictedEffects:
    """Return the files that a patch would change."""
    try:
        patches = parse_patch(arguments.patch)
    except ToolError:
        patches = []  # an unreadable patch is rejected when it runs
    paths = dict.fromkeys(path for patch in patches for path in (patch.path, patch.new_path) if path)
    return PredictedEffects(is_changing=True, subject=", ".join(paths), writes=tuple(map(expand_home, paths)))


class PatchTool:
    """The tool that applies patches. Its calls never interleave."""

    spec = tool_spec(
        PatchArguments,
        "patch",
        description=(
            "Apply a patch to one or more files. If a part does not apply, nothing is changed. "
            "Give a unified diff, or use this format. Its context lines show the position.\n"
            "*** Begin Patch\n*** Update File: path\n*** Move to: new path (only to rename)\n"
            "@@ a complete earlier line, if needed\n context\n-old line\n+new line\n context\n"
            "*** Add File: path\n+each line\n*** Delete File: path\n*** End Patch"
        ),
        is_changing=True,
        predict=predict_effects,
    )

    def __init__(self, reads: LastReads) -> None:
        self._reads = reads

    async def run(self, arguments: PatchArguments, context: CallContext) -> ToolOutput:
        """Apply the patch and report the result for each file."""
        changes, report = await self._reads.run_change(partial(_apply_patch, arguments.patch, context.workspace))
        for change in changes:
            self._reads.record_version(context, change.path)
        return ToolOutput("\n".join(report))


def _apply_patch(text: str, workspace: Path) -> tuple[list[FileChange], list[str]]:
    """Apply a patch. Return the changed files and a report."""
    encode_new_text(text)
    plan = _PatchPlan(workspace)
    try:
        for patch in parse_patch(text):
            plan.add(patch)
        changes = plan.changes()
    except ToolError as error:
        raise ToolError(f"{error}\nNo file was changed.") from error
    apply_changes(changes, workspace)
    return changes, plan.report


class _PatchPlan:
    """The planned file contents. Each part of the patch sees the changes made by the previous parts."""

    def __init__(self, workspace: Path) -> None:
        self.report: list[str] = []
        self._workspace = workspace
        self._planned: dict[Path, FileChange] = {}

    def add(self, patch: FilePatch) -> None:
        """Plan the changes to one file.

        Raises:
            ToolError: The changes don't apply to the file.
        """
        path = resolve_path(patch.path, self._workspace)
        planned = self._planned_change(path)
        self._check(patch, path, planned)
        name = display_path(path, self._workspace)
        old = planned.new or b""
        new, notes = _apply_hunks(old, patch, name) if patch.hunks else (old, [])
        planned.new = new
        if patch.is_executable is not None:
            planned.is_executable = patch.is_executable
        if patch.new_path:
            self.report.append(f"Moved {name} to {self._move(planned, path, patch.new_path)}")
        elif patch.kind is FileAction.DELETE:
            if patch.hunks and new:
                raise ToolError(f"{name} has more lines than the patch removes.")
            planned.new = planned.is_executable = None
            self.report.append(f"Deleted {name}")
        else:
            self.report.append(f"{'Added' if patch.kind is FileAction.ADD else 'Updated'} {name}")
        if notes:
            self.report.extend(f"[{note}]" for note in notes)
            self.report.append(unified_diff(decode_text(old).text, decode_text(new).text, name))

    def changes(self) -> list[FileChange]:
        """Return the changes to make. Deletions come last, so that a moved file always exists somewhere."""
        changes = [
            change
            for change in self._planned.values()
            if change.old != change.new or (change.is_executable is not None and change.new is not None)
        ]
        if not changes:
            raise ToolError("The patch changes nothing: the files already have the patched content.")
        return sorted(changes, key=lambda change: change.new is None)

    def _planned_change(self, path: Path) -> FileChange:
        target = read_target(path, self._workspace)
        return self._planned.setdefault(target.path, target)

    def _check(self, patch: FilePatch, path: Path, planned: FileChange) -> None:
        name = display_path(path, self._workspace)
        if patch.kind is FileAction.ADD and planned.new is not None:
            raise ToolError(f"{name} already exists. Update it, or use write.")
        if patch.kind is not FileAction.ADD and planned.new is None:
            raise ToolError(missing_file_text(path, self._workspace))
        if path.is_symlink() and (patch.kind is FileAction.DELETE or patch.new_path):
            raise ToolError(f"{name} is a symbolic link. Remove or rename it with the shell.")
        is_change = patch.hunks or patch.new_path or patch.is_executable is not None
        if patch.kind is FileAction.UPDATE and not is_change:
            raise ToolError(f"The patch contains no change for {name}.")

    def _move(self, planned: FileChange, path: Path, new_path: str) -> str:
        """Plan that a file moves. Return its new name."""
        destination = resolve_path(new_path, self._workspace)
        name = display_path(destination, self._workspace)
        target = self._planned_change(destination)
        if target is planned:
            return name
        if target.new is not None:
            raise ToolError(f"{name} already exists, so {display_path(path, self._workspace)} can't be moved there.")
        target.new, target.is_executable = planned.new, planned.is_executable
        target.moved_from = planned.moved_from or (planned.path if planned.old is not None else None)
        planned.new = planned.is_executable = planned.moved_from = None
        return name


def _apply_hunks(old: bytes, patch: FilePatch, name: str) -> tuple[bytes, list[str]]:
    before = decode_for_edit(old, name)
    try:
        patched = apply_hunks(before.text, patch.hunks)
        return before.encoding.encode(patched.text), patched.notes
    except ToolError as error:
        raise ToolError(f"{name}: {error}") from error
