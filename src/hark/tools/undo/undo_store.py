"""The blocking operations for undo. All of them run on one thread."""

import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import msgspec
from msgspec import Struct

from hark.disk.durable import sync_folders
from hark.disk.private_files import replace_file
from hark.protocol.names import turn_number
from hark.protocol.snapshots import StepId, UndoRefused, UndoResult
from hark.tools.undo.blobs import BlobStore
from hark.tools.undo.manifest import EntryKind, Manifest, compare_manifests, format_path
from hark.tools.undo.plan import (
    MAX_NAMED_PATHS,
    UndoPlan,
    describe_os_error,
    fold_changes,
    limit_lines,
    make_plan,
    restored_names,
)
from hark.tools.undo.plan_execution import PlanExecution, remaining_plan
from hark.tools.undo.retention import clean_up
from hark.tools.undo.scan import LastScans, Scan, ScanCancelled, ScanLimits
from hark.tools.undo.scopes import resolve_scopes
from hark.tools.undo.steps import OPEN, Step, StepFiles, lock_store

CRASH_NOTE = "a crash interrupted the step: changes between the crash and the next start count as part of it"

DAMAGED_NOTE = "the state before the step is damaged, so its changes can't be undone"
DAMAGED_STEP = (
    "Nothing was undone: the record of the last step is damaged, so its changes are unknown. It was set aside. Check "
    "the files yourself. If you undo again, the step before it is undone."
)


class _OpenStep(Struct):
    """An open step: its file, and the known state before the step."""

    path: Path
    step: Step
    before: Manifest


class UndoExtent(Struct, frozen=True):
    """The extent of an undo: one step, the last turn, or the turn `since` and all later turns."""

    only_step: bool = False
    since: str = ""

    def includes(self, turn: str, newest: str) -> bool:
        """Return whether to undo a step of this turn. `newest` is the turn of the newest selected step, or ""."""
        if self.since:
            return turn_number(turn) >= turn_number(self.since)
        return not newest or (turn == newest and not self.only_step)


class UndoStore:
    """The undo data in one folder. Not thread-safe. A lock makes it safe for several processes."""

    def __init__(self, folder: Path, limits: ScanLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._home = os.fsencode(folder.parent.resolve())
        self._blobs = BlobStore(folder / "blobs")
        self._steps = StepFiles(folder / "steps")
        self._plan_path = folder / "plan"
        self._open: dict[StepId, _OpenStep] = {}
        self._last_scans = LastScans(folder, self._blobs)
        self._failures: dict[str, list[str]] = {}  # by session; "" for the next undo of any session

    def begin_step(self, name: StepId, workspace: Path, writes: Sequence[str] | None, stop: Event) -> None:
        """Store the files that the step may change.

        Raises:
            ScanCancelled: Nothing was stored.
            OSError: The files can't be stored.
        """
        root = os.fsencode(workspace.resolve())
        open_step = self._open.get(name)
        known = open_step.before if open_step else Manifest()
        scopes = (root,) if writes is None else resolve_scopes(root, writes, self._home)
        scopes = tuple(scope for scope in scopes if not known.covers(scope))
        if not scopes:
            return
        with lock_store(self._folder, is_shared=True):
            last_entries = self._last_scans.entries_of(root)
            with self._blobs.batch():
                manifest = Scan(self._blobs, self._home, self._limits, stop, last_entries).run(scopes)
                digest = self._blobs.store(msgspec.msgpack.encode(manifest))
                if stop.is_set():
                    raise ScanCancelled
            if root in scopes:
                self._last_scans.remember(root, manifest.entries)
                self._last_scans.save(root, digest)
            if open_step is None:
                step = Step(name, root, self._steps.owner, (digest,))
                self._open[name] = _OpenStep(self._steps.begin(step), step, manifest)
                return
            open_step.step = msgspec.structs.replace(open_step.step, manifests=(*open_step.step.manifests, digest))
            open_step.before = known.merge_later(manifest)
            self._steps.write(open_step.path, open_step.step)

    def end_step(self, name: StepId, notes: Sequence[str], ended_at_ns: int) -> None:
        """Find the step's changes and record them. Files that changed after `ended_at_ns` are protected from undo.

        Raises:
            OSError: The changes can't be recorded. The step stays open, and the next undo tries again.
        """
        open_step = self._open.get(name)
        if open_step is None and not notes:
            return
        notes = [note.encode("utf-8", "replace").decode() for note in notes]
        with lock_store(self._folder, is_shared=True):
            if open_step is not None:
                self._finish_step(open_step.path, open_step.step, open_step.before, notes, ended_at_ns)
                del self._open[name]
            else:
                step = Step(name, b"", self._steps.owner, notes=tuple(notes))
                self._steps.finish(self._steps.begin(step), step)

    def undo(self, session: str, extent: "UndoExtent", stop: Event) -> UndoResult:
        """Restore the changed files of the steps within `extent`.

        Raises:
            UndoRefused: Nothing was changed.
            ScanCancelled: Nothing was changed.
        """
        try:
            with lock_store(self._folder, is_shared=False):
                notes = self._finish_plan()
                self._finish_session_steps(session)
                notes += (*self._failures.get("", ()), *self._failures.get(session, ()))
                undone = self._undo(session, extent, notes, stop)
        except OSError as error:
            raise UndoRefused(f"Nothing was undone: {describe_os_error(error)}. Fix that, then undo again.") from error
        for key in ("", session):  # they have been reported
            self._failures.pop(key, None)
        return undone

    def recover(self) -> None:
        """Finish an interrupted undo, and the open steps of dead processes. Call once at startup."""
        if not self._folder.is_dir():
            return
        with lock_store(self._folder, is_shared=False):
            for line in self._finish_plan():
                self._failures.setdefault("", []).append(line)
            for path in self._steps.abandoned_steps():
                self._finish_abandoned_step(path)

    def clean_up(self) -> None:
        """Remove data that is too old or takes too much space."""
        if self._folder.is_dir():
            with lock_store(self._folder, is_shared=False):
                clean_up(self._folder, self._blobs)
                self._steps.remove_dead_owners()

    def record_failure(self, name: StepId, error: OSError) -> None:
        """Record a failed snapshot so that the next undo can report it."""
        line = f"some steps could not be saved for undo: {describe_os_error(error)}"
        failures = self._failures.setdefault(name.session, [])
        if line not in failures:
            failures.append(line)

    def close(self) -> None:
        """Release the store. Steps that are still open are treated as left by a crash."""
        self._steps.close()

    def _undo(self, session: str, extent: "UndoExtent", notes: list[str], stop: Event) -> UndoResult:
        paths, steps = self._select_steps(session, extent)
        if not steps and extent.since:
            return UndoResult(not_undone=tuple(notes))
        if not steps:
            raise UndoRefused(" ".join(("There is nothing to undo in this session.", *notes)))
        root = next((step.root for step in steps if step.root), b"")
        changes = fold_changes(step.difference.changes for step in steps)
        with self._blobs.batch():
            plan, not_undoable = make_plan(secrets.token_hex(4), root, changes, self._blobs)
        if stop.is_set():
            raise ScanCancelled
        plan = msgspec.structs.replace(plan, steps=tuple(str(path.relative_to(self._folder)) for path in paths))
        for step in steps:
            notes += (*step.difference.news, *step.difference.uncovered, *step.notes)
        remaining = self._carry_out(plan)
        remaining_names = [f"{format_path(path, root)}/ was not removed: it contains other files" for path in remaining]
        not_undone = (*limit_lines(not_undoable), *limit_lines(remaining_names), *dict.fromkeys(notes))
        return UndoResult(restored_names(plan, remaining), not_undone)

    def _select_steps(self, session: str, extent: "UndoExtent") -> tuple[list[Path], list[Step]]:
        """Return the files and the records of the steps to undo, oldest first."""
        paths: list[Path] = []
        steps: list[Step] = []
        for path in self._steps.undoable_steps(session):
            step = self._steps.read(path)
            if step is None and self._steps.set_aside_damaged(path):
                raise UndoRefused(DAMAGED_STEP)
            if step is None:
                continue
            if not extent.includes(step.name.turn, steps[0].name.turn if steps else ""):
                break
            paths.insert(0, path)
            steps.insert(0, step)
        return paths, steps

    def _carry_out(self, plan: UndoPlan) -> list[bytes]:
        """Execute the plan so that it can be resumed after a crash. Return the folders that were not removed."""
        replace_file(self._plan_path, msgspec.msgpack.encode(plan))
        restore = PlanExecution(plan, self._blobs)
        try:
            restore.run()
        except OSError as error:
            raise UndoRefused(self._roll_back(plan, error)) from error
        self._mark_plan_done(plan)
        return restore.remaining_folders

    def _roll_back(self, plan: UndoPlan, error: OSError) -> str:
        try:
            inverse, changed_since = remaining_plan(plan.inverse)
            PlanExecution(inverse, self._blobs).run()
        except OSError as second:
            self._plan_path.unlink(missing_ok=True)
            names = ", ".join(format_path(change.path, plan.root) for change in plan.changes[:MAX_NAMED_PATHS])
            return (
                f"The undo failed partway ({describe_os_error(error)}), "
                f"and so did its rollback ({describe_os_error(second)}). Check these files: {names}. "
                "Fix that, then undo again: it continues where it stopped."
            )
        self._plan_path.unlink(missing_ok=True)
        return " ".join((f"Nothing was undone: {describe_os_error(error)}. Fix that, then undo again.", *changed_since))

    def _mark_plan_done(self, plan: UndoPlan) -> None:
        for path in plan.steps:
            self._steps.mark_undone(self._folder / path)
        self._plan_path.unlink(missing_ok=True)
        sync_folders([self._folder])

    def _finish_plan(self) -> list[str]:
        """Finish an undo that a crash interrupted. A plan found under the lock belongs to a dead process."""
        try:
            plan = msgspec.msgpack.decode(self._plan_path.read_bytes(), type=UndoPlan)
        except FileNotFoundError:
            return []
        except msgspec.DecodeError:
            self._plan_path.unlink(missing_ok=True)
            return []
        try:
            plan, changed_since = remaining_plan(plan)
            PlanExecution(plan, self._blobs).run()
        except OSError as error:
            # Its steps can still be undone: the changes already made will be as expected.
            self._plan_path.unlink(missing_ok=True)
            return [f"an undo interrupted by a crash could not be finished: {describe_os_error(error)}"]
        self._mark_plan_done(plan)
        return ["an undo interrupted by a crash was finished first", *changed_since]

    def _finish_session_steps(self, session: str) -> None:
        for name in [name for name in self._open if name.session == session]:
            open_step = self._open.pop(name)
            self._finish_step(open_step.path, open_step.step, open_step.before, ())
        for path in self._steps.undoable_steps(session):
            if path.suffix == OPEN:
                self._finish_abandoned_step(path)

    def _finish_abandoned_step(self, path: Path) -> None:
        step = self._steps.read(path)
        if step is None:
            return
        before = Manifest()
        notes = [CRASH_NOTE]
        for digest in step.manifests:
            try:
                before = before.merge_later(msgspec.msgpack.decode(self._blobs.read(digest), type=Manifest))
            except (OSError, msgspec.DecodeError):
                notes = [CRASH_NOTE, DAMAGED_NOTE]
        self._finish_step(path, step, before, notes)

    def _finish_step(
        self, path: Path, step: Step, before: Manifest, notes: Sequence[str], ended_at_ns: int = sys.maxsize
    ) -> None:
        cache = {**self._last_scans.entries_of(step.root), **before.entries}
        with self._blobs.batch():
            manifest = Scan(self._blobs, self._home, self._limits, Event(), cache, like=before).run(before.scopes)
        if step.root in before.scopes:
            self._last_scans.remember(step.root, manifest.entries)
        found = compare_manifests(before, manifest, step.root, ended_at_ns)
        top = before.entries.get(step.root)
        is_root_skipped = top is not None and top.kind is EntryKind.SKIPPED  # which must be reported
        is_empty = not found.changes and not found.news and not is_root_skipped
        if is_empty and (not notes or list(notes) == [CRASH_NOTE]):
            self._steps.remove(path)
            return
        self._steps.finish(path, msgspec.structs.replace(step, difference=found, notes=tuple(notes)))
