"""`python -m tests.power_cuts --cuts 2000`: cut the power of a recorded Hark, and count the losses."""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.power_cuts.audit import RecordedScenario, Report, cut_power
from tests.power_cuts.disk.real_file_system import FILE_SYSTEMS, can_mount
from tests.power_cuts.file_system_audit import cut_power_on_file_system
from tests.power_cuts.recorder.recording import can_record
from tests.power_cuts.scenarios.all_scenarios import all_scenarios

CONTROL_SHARE = 10  # one control cut per this many cuts
FULL_START_EVERY = 50
MAX_REFUSALS = 10
MEMORY_FOLDER = Path("/dev/shm")


def run_audit(options: argparse.Namespace, folder: Path) -> tuple[Report, Report]:
    """Record every scenario and cut its power. Return the report, and the one of the control run without syncs."""
    report, control = Report(), Report()
    names: list[str] = options.scenario or list(all_scenarios())
    file_systems = [name for name in options.file_system if name and can_mount(name, folder)]
    for name in sorted(set(options.file_system) - set(file_systems) - {""}):
        print(f"{name} can't be mounted here, so no power is cut on it")
    for number, name in enumerate(names):
        recorded = RecordedScenario.record(name, folder / f"scenario-{number}")
        print(f"{name}: {len(recorded.recording.operations)} operations recorded", flush=True)
        count = options.cuts // len(names)
        cut_power(recorded, count, options.seed, report, full_start_every=FULL_START_EVERY)
        for file_system in file_systems:
            some = options.file_system_cuts // len(names)
            cut_power_on_file_system(recorded, file_system, some, options.seed, report, folder)
        cut_power(recorded, max(8, count // CONTROL_SHARE), options.seed, control, ignores_syncs=True)
    return report, control


def print_report(report: Report, control: Report) -> None:
    """Print the counts and the problems."""
    for model, count in report.cuts.items():
        print(f"{count:8}  cuts, {model}")
    print(f"{report.full_starts:8}  full starts of hark serve")
    print(f"{len(report.refusals):8}  undos refused")
    for (scenario, model, kind), count in sorted(report.counts.items()):
        print(f"{count:8}  {scenario}, {model}: {kind}")
    for text in report.refusals[:MAX_REFUSALS]:
        print(f"REFUSED {text}")
    for finding in report.examples():
        print(f"WRONG {finding.scenario}, {finding.model}, cut {finding.cut}: {finding.kind}: {finding.detail}")
    print(f"control run without syncs: {len(control.findings)} losses after {sum(control.cuts.values())} cuts")
    print("FAILED" if report.findings or not control.findings else "nothing lost")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=2000, help="the cuts in the four models")
    parser.add_argument("--file-system-cuts", type=int, default=200, help="the cuts on each real file system")
    parser.add_argument("--file-system", action="append", default=None, help=f"one of {', '.join(FILE_SYSTEMS)}")
    parser.add_argument("--scenario", action="append", choices=list(all_scenarios()), help="default: all")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    if not can_record():
        print("strace is missing or may not trace processes here. Install it with your system's package manager.")
        return 2
    options.file_system = list(FILE_SYSTEMS) if options.file_system is None else options.file_system
    options.seed = random.randrange(2**32) if options.seed is None else options.seed
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    where = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="hark-power-", dir=where) as folder:
        report, control = run_audit(options, Path(folder))
    print_report(report, control)
    print(f"{time.monotonic() - began:8.0f}  seconds")
    return 1 if report.findings or not control.findings else 0


if __name__ == "__main__":
    sys.exit(main())
