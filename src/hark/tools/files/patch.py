"""The tool that applies a patch to several files, all of it or nothing."""

from pathlib import Path
from typing import Annotated

from hark.protocol.tool import CallContext, Foreseen, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.diffs import unified
from hark.tools.files.file_text import decode, is_binary
from hark.tools.files.last_reads import LastReads
from hark.tools.files.patching.format import FileAction, FilePatch, paths_of
from hark.tools.files.patching.hunk_fit import apply_hunks
from hark.tools.files.patching.parse import parse
from hark.tools.files.paths import missing, resolve, shown, written_path
from hark.tools.files.replace import FileChange, make, old_content, target_of


class PatchArguments(ToolArguments, frozen=True):
    """A patch of one or several files."""

    patch: Annotated[str, doc("The patch; paths are relative to the workspace.")]


def foresee(arguments: PatchArguments) -> Foreseen:
    """Return which files a patch would change."""
    try:
        paths = paths_of(parse(arguments.patch))
    except ToolError:
        paths = []  # what can't be read will be refused
    return Foreseen(is_changing=True, subject=", ".join(paths), writes=tuple(map(written_path, paths)))


class Patch:
    """Applies patches: files are read, checked and written without awaiting in between, so that calls can't mix."""

    spec = tool_spec(
        PatchArguments,
        "patch",
        description=(
            "Apply a patch to one or several files: all of it, or nothing if a part does not fit. "
            "Give a unified diff, or this format, in which lines of context say where:\n"
            "*** Begin Patch\n*** Update File: path\n*** Move to: new path (only to rename)\n"
            "@@ a line before, if needed\n context\n-old line\n+new line\n context\n"
            "*** Add File: path\n+each line\n*** Delete File: path\n*** End Patch"
        ),
        is_changing=True,
        foresee=foresee,
    )

    def __init__(self, reads: LastReads) -> None:
        self._reads = reads

    async def run(self, arguments: PatchArguments, context: CallContext) -> ToolOutput:
        """Apply it, and tell what became of each file."""
        plan = _Plan(context.workspace)
        for patch in parse(arguments.patch):
            plan.add(patch)
        changes = plan.changes()
        make(changes, context.workspace)
        for change in changes:
            self._reads.note(context, change.path)
        return ToolOutput("\n".join(plan.told))


class _Plan:
    """The files as they will be: each part of the patch sees what those before it did."""

    def __init__(self, workspace: Path) -> None:
        self.told: list[str] = []
        self._workspace = workspace
        self._fates: dict[Path, FileChange] = {}

    def add(self, patch: FilePatch) -> None:
        """Plan one file's part.

        Raises:
            ToolError: It does not fit.
        """
        path = resolve(patch.path, self._workspace)
        match patch.kind:
            case FileAction.ADD:
                self._add(path, patch)
            case FileAction.DELETE:
                self._delete(path, patch)
            case FileAction.UPDATE:
                self._update(path, patch)

    def changes(self) -> list[FileChange]:
        """Return what is to be done. What is removed comes last, so that a file that moves is never nowhere."""
        changes = [
            fate
            for fate in self._fates.values()
            if fate.old != fate.new or (fate.is_executable is not None and fate.new is not None)
        ]
        if not changes:
            raise ToolError("The patch changes nothing: the files are already as it would leave them.")
        return sorted(changes, key=lambda change: change.new is None)

    def _add(self, path: Path, patch: FilePatch) -> None:
        fate = self._fate(path)
        if fate.new is not None:
            raise ToolError(f"{self._name(path)} is there already: update it, or write it whole. Nothing was changed.")
        patched = apply_hunks("", patch.hunks, "\n")
        fate.new, fate.is_executable = "".join(patched.lines).encode(errors="replace"), patch.is_executable
        self.told.append(f"Added {self._name(path)}")

    def _delete(self, path: Path, patch: FilePatch) -> None:
        fate = self._existing(path)
        self._demand_no_link(path)
        if patch.hunks and fate.new is not None:
            rest = apply_hunks(decode(fate.new).text, patch.hunks, "\n").lines
            if rest:
                raise ToolError(f"{self._name(path)} has more lines than the patch removes. Nothing was changed.")
        fate.new = None
        self.told.append(f"Deleted {self._name(path)}")

    def _update(self, path: Path, patch: FilePatch) -> None:
        fate = self._existing(path)
        old = fate.new or b""
        new, notes = self._patched(path, old, patch)
        fate.is_executable = patch.is_executable
        name = self._name(path)
        if patch.new_path:
            target = resolve(patch.new_path, self._workspace)
            self._demand_no_link(path)
            self._move(path, target, new, fate)
            name = f"{name} to {self._name(target)}"
        else:
            fate.new = new
        self.told.append(f"{'Moved' if patch.new_path else 'Updated'} {name}")
        if notes:
            self.told.extend(f"[{note}]" for note in notes)
            self.told.append(unified(decode(old).text, decode(new).text, self._name(path)))

    def _patched(self, path: Path, old: bytes, patch: FilePatch) -> tuple[bytes, list[str]]:
        if not patch.hunks:
            if not patch.new_path and patch.is_executable is None:
                raise ToolError(f"The patch says nothing of what to change in {self._name(path)}. Nothing was changed.")
            return old, []
        if is_binary(old):
            raise ToolError(f"{self._name(path)} is binary, not text. Nothing was changed.")
        text = decode(old)
        try:
            patched = apply_hunks(text.text, patch.hunks, text.newline)
        except ToolError as refused:
            raise ToolError(f"{self._name(path)}: {refused}\nNothing was changed, in no file.") from refused
        return text.encoding.encode("".join(patched.lines)), patched.notes

    def _move(self, path: Path, target: Path, new: bytes, fate: FileChange) -> None:
        there = self._fate(target)
        if there is fate:
            fate.new = new
            return
        if there.new is not None:
            raise ToolError(f"{self._name(target)} is there already: {self._name(path)} can't move there.")
        is_executable = fate.is_executable
        if is_executable is None and path.exists():
            is_executable = bool(path.stat().st_mode & 0o100) or None
        there.new, there.is_executable = new, is_executable
        fate.new = fate.is_executable = None

    def _existing(self, path: Path) -> FileChange:
        fate = self._fate(path)
        if fate.new is None:
            raise ToolError(f"{missing(path, self._workspace)} Nothing was changed.")
        return fate

    def _fate(self, path: Path) -> FileChange:
        target = target_of(path, self._workspace)
        if target not in self._fates:
            content = old_content(target, self._workspace) if target.exists() else None
            self._fates[target] = FileChange(target, content, content)
        return self._fates[target]

    def _demand_no_link(self, path: Path) -> None:
        if path.is_symlink():
            raise ToolError(f"{self._name(path)} is a symbolic link. Remove or rename it with the shell.")

    def _name(self, path: Path) -> str:
        return shown(path, self._workspace)
