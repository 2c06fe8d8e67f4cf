"""The page renders and splits hostile text in time proportional to its length."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import hark.surfaces.web
from tests.linear_time import RATIO_MAX

PAGE = Path(hark.surfaces.web.__file__).with_name("page")
SCRIPT = Path(__file__).with_name("page_times.mjs")
SIZE = 10_000
ROUNDS_MAX = 3
MIN_MILLISECONDS = 10.0  # shorter runs are dominated by the garbage collector
# The function, the start of the text, and the piece that is repeated.
CASES = [
    *(
        ("markdown", "", piece)
        for piece in ("*a ", "_a ", "**", "`a", "`", "[", "[a", "[a](", '[a](b "', "<https://", "|")
    ),
    *(
        ("markdown", "", piece)
        for piece in ("```\n", "- ", "> ", "a\n", "|-", "https://a ", "\\", "~~a", "![a](b)", "# ")
    ),
    *(("markdown", "# ", piece) for piece in (" ", "#", "# ", " #")),
    *(("markdown", "|a|\n", piece) for piece in (" ", "\t", "|", "-", "|-", "| ")),
    *(("markdown", "https://a", piece) for piece in (")", "(", ".)", "(.")),
    ("markdown", "https://", "..."),
    *(("output", "@@ ", piece) for piece in ("@", " @@", "\x1b[", "\x1b]", "a\n")),
    *(("sentences", "", piece) for piece in ("a. ", "。", "a.)", "\n", "```\n", " ")),
    ("sentences", "```\n", "a\n"),
]

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


def measure_page(cases: list[tuple[str, str, str]], size: int = SIZE) -> list[tuple[float, float]]:
    """Return the CPU times of each case in milliseconds, at one size and at twice that size."""
    stdin = [{"name": name, "start": start, "piece": piece, "size": size} for name, start, piece in cases]
    done = subprocess.run(["node", SCRIPT, PAGE], input=json.dumps(stdin).encode(), capture_output=True, timeout=50)
    assert done.returncode == 0, done.stderr.decode()
    return [tuple(times) for times in json.loads(done.stdout)]


def test_hostile_text_is_processed_in_time_proportional_to_its_length() -> None:
    slow = CASES
    times: dict[tuple[str, str, str], tuple[float, float]] = {}
    for _ in range(ROUNDS_MAX):  # noise can only add time, so a ratio that is too high is measured again
        times = dict(zip(slow, measure_page(slow), strict=True))
        slow = [case for case in slow if times[case][1] > max(times[case][0] * RATIO_MAX, MIN_MILLISECONDS)]
        if not slow:
            return
    raise AssertionError(f"not linear: {[(case, times[case]) for case in slow]}")


def test_a_line_with_a_bar_above_a_rule_is_not_a_table() -> None:
    measure_page([("markdown", "a|b\n---\n", "c"), ("markdown", "|a|\n-", "-")], 10)
