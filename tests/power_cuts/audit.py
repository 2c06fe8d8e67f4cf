"""Cuts the power of recorded scenarios at many points, and counts the violated guarantees."""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.power_cuts.disk.operations import Mark
from tests.power_cuts.disk.power_cut import Disk, Model
from tests.power_cuts.disk.tree import Tree
from tests.power_cuts.recorder.recording import Recording, record
from tests.power_cuts.scenarios.all_scenarios import all_scenarios
from tests.power_cuts.scenarios.gateway import try_start
from tests.power_cuts.scenarios.scenario import CheckResult, History, Scenario

CHECK_SECONDS = 60.0
MAX_EXAMPLES = 3  # per kind of problem, scenario and model


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem after a power cut, with the number of its cut."""

    scenario: str
    model: str
    kind: str
    cut: int
    detail: str


@dataclass(slots=True)
class Report:
    """The number of cuts per model, the replies of refused undos, and the problems."""

    cuts: Counter[str] = field(default_factory=Counter[str])
    full_starts: int = 0
    refusals: list[str] = field(default_factory=list[str])
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def counts(self) -> Counter[tuple[str, str, str]]:
        """The number of problems by scenario, model and kind."""
        return Counter((one.scenario, one.model, one.kind) for one in self.findings)

    def examples(self) -> Iterator[Finding]:
        """Yield a few problems of each kind."""
        seen: Counter[tuple[str, str, str]] = Counter()
        for one in self.findings:
            key = one.scenario, one.model, one.kind
            seen[key] += 1
            if seen[key] <= MAX_EXAMPLES:
                yield one


class RecordedScenario:
    """A scenario with its recording, whose power can be cut."""

    def __init__(self, scenario: Scenario, recording: Recording) -> None:
        self.name = scenario.name
        self.recording = recording
        self._scenario = scenario
        self._marks = [one.content for one in recording.operations if isinstance(one, Mark)]
        self._mark_numbers = [number for number, one in enumerate(recording.operations) if isinstance(one, Mark)]

    @classmethod
    def record(cls, name: str, folder: Path, *, is_short: bool = False) -> "RecordedScenario":
        """Run the scenario under the recorder, in an empty folder."""
        scenario = all_scenarios(is_short=is_short)[name]
        root = folder.resolve() / "root"
        root.mkdir(parents=True)
        scenario.prepare(root)
        length = "short" if is_short else "full"
        arguments = ["-m", "tests.power_cuts.run_scenario", name, length, str(folder.resolve())]
        return cls(scenario, record(arguments, folder.resolve()))

    def cut_points(self, count: int, pick: random.Random) -> list[int]:
        """Return operation numbers: half of them right after a mark, the others at random."""
        total = len(self.recording.operations)
        return [
            pick.choice(self._mark_numbers) + 1 if number % 2 == 0 else pick.randint(0, total)
            for number in range(count)
        ]

    async def check(self, tree: Tree, cut: int, model: str, report: Report, *, is_full_start: bool = False) -> None:
        """Write the folder after a cut to disk, check it, and add the problems to the report."""
        root = self.recording.root
        shutil.rmtree(root)
        root.mkdir()
        tree.write_to(root)
        result = CheckResult()
        history = History.from_marks(self._marks, sum(number < cut for number in self._mark_numbers))
        if is_full_start:
            report.full_starts += 1
            workspace = next(path for path in (root / "workspace", root / "projects" / "0") if path.exists())
            if error := await try_start(root / "home", workspace):
                result.add("hark serve does not start", error[:300])
            shutil.rmtree(root)
            root.mkdir()
            tree.write_to(root)
        try:
            await asyncio.wait_for(self._scenario.check(root, history, result), CHECK_SECONDS)
        except Exception as error:  # any error is a problem of the home under test
            result.add("the check failed", repr(error)[:300])
        report.cuts[model] += 1
        report.refusals += [f"{model}, cut {cut}: {text}" for text in result.refusals]
        for problem in result.problems:
            report.findings.append(Finding(self.name, model, problem.kind, cut, problem.detail))


def cut_power(
    recorded: RecordedScenario,
    count: int,
    seed: int,
    report: Report,
    *,
    models: Sequence[Model] = tuple(Model),
    ignores_syncs: bool = False,
    full_start_every: int = 0,
) -> None:
    """Cut the power `count` times, in each model in turn. With `ignores_syncs`, no sync makes anything durable."""
    pick = random.Random(seed)
    disk = Disk(recorded.recording.base, recorded.recording.operations, ignores_syncs=ignores_syncs)
    for number, cut in enumerate(recorded.cut_points(count, pick)):
        # Half of the cuts are at marks, so the model must not depend on the parity alone.
        model = models[number // 2 % len(models)]
        tree = disk.after_cut(cut, model, pick)
        is_full_start = bool(full_start_every) and number % full_start_every == 0
        asyncio.run(recorded.check(tree, cut, model, report, is_full_start=is_full_start))


def kill_processes(recorded: RecordedScenario, count: int, seed: int, report: Report) -> None:
    """Check the folder after a kill -9 at `count` points, where every operation survives."""
    pick = random.Random(seed)
    disk = Disk(recorded.recording.base, recorded.recording.operations)
    for cut in recorded.cut_points(count, pick):
        asyncio.run(recorded.check(disk.after_kill(cut), cut, "kill -9", report))
