"""`python -m tests.fuzz --seconds 60` fuzzes all parsers. `--target NAME --seed N` repeats one run."""

import argparse
import random
import time

from tests.fuzz.fuzzing import make_input, run_target
from tests.fuzz.targets import TARGETS


def main() -> None:
    """Run the targets one after the other on new inputs until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--target", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    names = [options.target] if options.target else list(TARGETS)
    if options.seed is not None:
        print(repr(make_input(options.seed)))
        for name in names:
            run_target(name, options.seed)
        return
    ends_at = time.monotonic() + options.seconds
    count, failures = 0, 0
    while time.monotonic() < ends_at:
        seed = random.randrange(1 << 48)
        for name in names:
            count += 1
            try:
                run_target(name, seed)
            except AssertionError as error:
                failures += 1
                print(error, flush=True)
    print(f"{count:,} inputs, {failures} failures")
    raise SystemExit(failures > 0)


if __name__ == "__main__":
    main()
