"""What undo does, told in plain blocking steps: to be run on one thread."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import msgspec
from msgspec import Struct

from hark.disk.private_files import replace_private, sync_folder
from hark.protocol.names import number_of
from hark.protocol.snapshots import StepName, Undone, UndoRefused
from hark.tools.undo.blobs import Blobs
from hark.tools.undo.manifest import EntryKind, Manifest, difference, show_path
from hark.tools.undo.plan import NAMED_LIMIT, Plan, few, fold, make_plan, reason_text, restored_names
from hark.tools.undo.restore import Restore, still_fitting
from hark.tools.undo.retention import sweep
from hark.tools.undo.scan import LastLooks, Scan, ScanCancelled, ScanLimits
from hark.tools.undo.scopes import scopes_of
from hark.tools.undo.steps import OPEN, Step, StepFiles, locked

CUT_NOTE = "a crash cut the step short: what was changed between it and the next start counts as its own"


class _Open(Struct):
    """A step that runs: where it is written, and all that is known of what was before it."""

    path: Path
    step: Step
    before: Manifest


class Extent(Struct, frozen=True):
    """How far an undo goes back: a step, the last turn, or all turns from `since` on."""

    only_step: bool = False
    since: str = ""

    def has(self, turn: str, newest: str) -> bool:
        """Tell whether a step of this turn is to be undone; `newest` is the turn of the last step, if any was taken."""
        if self.since:
            return number_of(turn) >= number_of(self.since)
        return not newest or (turn == newest and not self.only_step)


class UndoStore:
    """The store under one folder. Not safe for several threads; safe among processes, by a lock."""

    def __init__(self, folder: Path, limits: ScanLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._home = os.fsencode(folder.parent.resolve())
        self._blobs = Blobs(folder / "blobs")
        self._steps = StepFiles(folder / "steps")
        self._plan_path = folder / "plan"
        self._open: dict[StepName, _Open] = {}
        self._looks = LastLooks(folder, self._blobs)
        self._trouble: dict[str, list[str]] = {}  # by session; "" is for whoever asks first

    def before(self, name: StepName, workspace: Path, writes: Sequence[str] | None, stop: Event) -> None:
        """Keep what may change.

        Raises:
            Stopped: Nothing was kept of it.
            OSError: It can't be kept.
        """
        root = os.fsencode(workspace.resolve())
        opened = self._open.get(name)
        known = opened.before if opened else Manifest()
        scopes = (root,) if writes is None else scopes_of(root, writes, self._home)
        scopes = tuple(scope for scope in scopes if not known.knows(scope))
        if not scopes:
            return
        with locked(self._folder, is_shared=True):
            seen = Scan(self._blobs, self._home, self._limits, stop, self._looks.at(root)).take(scopes)
            digest = self._blobs.keep(msgspec.msgpack.encode(seen))
            if root in scopes:
                self._looks.remember(root, seen.entries)
                self._looks.write(root, digest)
            if stop.is_set():
                raise ScanCancelled
            if opened is None:
                step = Step(name, root, self._steps.owner, (digest,))
                self._open[name] = _Open(self._steps.begin(step), step, seen)
                return
            opened.step = msgspec.structs.replace(opened.step, manifests=(*opened.step.manifests, digest))
            opened.before = known.over(seen)
            self._steps.write(opened.path, opened.step)

    def after(self, name: StepName, notes: Sequence[str]) -> None:
        """Find out what the step changed, and write it down.

        Raises:
            OSError: It can't be written: the step stays open, and an undo tries again.
        """
        opened = self._open.get(name)
        if opened is None and not notes:
            return
        notes = [note.encode("utf-8", "replace").decode() for note in notes]
        with locked(self._folder, is_shared=True):
            if opened is not None:
                self._settle(opened.path, opened.step, opened.before, notes)
                del self._open[name]
            else:
                step = Step(name, b"", self._steps.owner, notes=tuple(notes))
                self._steps.finish(self._steps.begin(step), step)

    def undo(self, session: str, extent: "Extent", stop: Event) -> Undone:
        """Put back what was changed, as far as `extent` says.

        Raises:
            UndoRefused: Nothing was changed.
            Stopped: Nothing was changed.
        """
        try:
            with locked(self._folder, is_shared=False):
                told = self._finish_plan()
                self._settle_session(session)
                told += (*self._trouble.get("", ()), *self._trouble.get(session, ()))
                done = self._undo(session, extent, told, stop)
        except OSError as error:
            raise UndoRefused(f"Nothing was undone: {reason_text(error)}. Put that right, then undo again.") from error
        for key in ("", session):  # it has been told
            self._trouble.pop(key, None)
        return done

    def recover(self) -> None:
        """Finish what a crash cut: an undo, and the steps of dead processes. Call it once, first."""
        if not self._folder.is_dir():
            return
        with locked(self._folder, is_shared=False):
            for line in self._finish_plan():
                self._trouble.setdefault("", []).append(line)
            for path in self._steps.left_open():
                self._settle_left(path)

    def sweep(self) -> None:
        """Remove what is too old, or too much."""
        if self._folder.is_dir():
            with locked(self._folder, is_shared=False):
                sweep(self._folder, self._blobs)
                self._steps.forget_owners()

    def trouble(self, name: StepName, error: OSError) -> None:
        """Remember a failure, to be told by the next undo."""
        line = f"some steps could not be kept: {reason_text(error)}"
        told = self._trouble.setdefault(name.session, [])
        if line not in told:
            told.append(line)

    def close(self) -> None:
        """Let go of everything; open steps count as left by a crash."""
        self._steps.close()

    def _undo(self, session: str, extent: "Extent", told: list[str], stop: Event) -> Undone:
        paths, steps = self._chosen(session, extent)
        if not steps and extent.since:
            return Undone(not_undone=tuple(told))
        if not steps:
            raise UndoRefused(" ".join(("There is nothing to undo in this session.", *told)))
        root = next((step.root for step in steps if step.root), b"")
        changes = fold(step.difference.changes for step in steps)
        plan, lost = make_plan(secrets.token_hex(4), root, changes, self._blobs)
        if stop.is_set():
            raise ScanCancelled
        plan = msgspec.structs.replace(plan, steps=tuple(str(path.relative_to(self._folder)) for path in paths))
        for step in steps:
            told += (*step.difference.news, *step.difference.uncovered, *step.notes)
        staying = self._carry_out(plan)
        kept_names = [f"{show_path(path, root)}/ stays: it holds other files by now" for path in staying]
        not_undone = (*few(lost), *few(kept_names), *dict.fromkeys(told))
        return Undone(restored_names(plan, staying), not_undone)

    def _chosen(self, session: str, extent: "Extent") -> tuple[list[Path], list[Step]]:
        """Return the steps to undo, oldest first."""
        paths: list[Path] = []
        steps: list[Step] = []
        for path in self._steps.to_undo(session):
            step = self._steps.read(path)
            if step is None:
                continue
            if not extent.has(step.name.turn, steps[0].name.turn if steps else ""):
                break
            paths.insert(0, path)
            steps.insert(0, step)
        return paths, steps

    def _carry_out(self, plan: Plan) -> list[bytes]:
        """Do it, so that a crash at any point is made good at the next start; return the folders that stay."""
        replace_private(self._plan_path, msgspec.msgpack.encode(plan))
        sync_folder(self._folder)
        restore = Restore(plan, self._blobs)
        try:
            restore.run()
        except OSError as error:
            raise UndoRefused(self._roll_back(plan, error)) from error
        self._conclude(plan)
        return restore.staying

    def _roll_back(self, plan: Plan, error: OSError) -> str:
        try:
            back, foreign = still_fitting(plan.way_back)
            Restore(back, self._blobs).run()
        except OSError as second:
            self._plan_path.unlink(missing_ok=True)
            names = ", ".join(show_path(change.path, plan.root) for change in plan.changes[:NAMED_LIMIT])
            return (
                f"The undo failed in the middle ({reason_text(error)}), "
                f"and so did the way back ({reason_text(second)}). Look at: {names}. "
                "Put that right, then undo again: it goes on where it stopped."
            )
        self._plan_path.unlink(missing_ok=True)
        return " ".join((f"Nothing was undone: {reason_text(error)}. Put that right, then undo again.", *foreign))

    def _conclude(self, plan: Plan) -> None:
        for path in plan.steps:
            self._steps.mark_undone(self._folder / path)
        self._plan_path.unlink(missing_ok=True)

    def _finish_plan(self) -> list[str]:
        """Finish an undo that a crash cut: whoever holds the lock and finds a plan knows that its process is dead."""
        try:
            plan = msgspec.msgpack.decode(self._plan_path.read_bytes(), type=Plan)
        except FileNotFoundError:
            return []
        except msgspec.DecodeError:
            self._plan_path.unlink(missing_ok=True)
            return []
        try:
            plan, foreign = still_fitting(plan)
            Restore(plan, self._blobs).run()
        except OSError as error:
            # Its steps still are to be undone: what is done of them already will fit.
            self._plan_path.unlink(missing_ok=True)
            return [f"an undo that a crash had cut could not be finished: {reason_text(error)}"]
        self._conclude(plan)
        return ["an undo that a crash had cut was finished first", *foreign]

    def _settle_session(self, session: str) -> None:
        for name in [name for name in self._open if name.session == session]:
            opened = self._open.pop(name)
            self._settle(opened.path, opened.step, opened.before, ())
        for path in self._steps.to_undo(session):
            if path.suffix == OPEN:
                self._settle_left(path)

    def _settle_left(self, path: Path) -> None:
        step = self._steps.read(path)
        if step is None:
            return
        before = Manifest()
        for digest in step.manifests:
            try:
                before = before.over(msgspec.msgpack.decode(self._blobs.read(digest), type=Manifest))
            except (OSError, msgspec.DecodeError):
                continue  # nothing is known of what it named, so nothing of it is touched
        self._settle(path, step, before, (CUT_NOTE,))

    def _settle(self, path: Path, step: Step, before: Manifest, notes: Sequence[str]) -> None:
        cache = {**self._looks.at(step.root), **before.entries}
        seen = Scan(self._blobs, self._home, self._limits, Event(), cache, like=before).take(before.scopes)
        if step.root in before.scopes:
            self._looks.remember(step.root, seen.entries)
        found = difference(before, seen, step.root)
        top = before.entries.get(step.root)
        is_blind = top is not None and top.kind is EntryKind.SKIPPED  # then that must be told
        is_empty = not found.changes and not found.news and not is_blind
        if is_empty and (not notes or notes == (CUT_NOTE,)):
            path.unlink(missing_ok=True)
            return
        self._steps.finish(path, msgspec.structs.replace(step, difference=found, notes=tuple(notes)))
