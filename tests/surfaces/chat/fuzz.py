"""Fuzzes the chat markup with random Markdown. No platform loses text, refuses the markup, or needs long to render it.

`python -m tests.surfaces.chat.fuzz --seconds 120 --seed 7` runs longer.
"""

import argparse
import itertools
import random
import time

from hark.surfaces.chat.split_text import split_text, text_length
from tests.surfaces.chat.shown_text import RENDERERS, assert_contains

MAX_CPU_SECONDS = 0.5
FRAGMENTS = (
    *("<", ">", "&", "!channel", "@U1", "*", "**", "_", "~~", "`", "```", "\n", "[", "](", ")", "|", "#", "a ", " "),
    *("- ", "> ", "1. ", "\n\n", "|-|-|\n", "https://a.b", "[ ] ", "\\", "    ", "![", "[a]: b\n", "é", "😀", "&amp;"),
)


def check_random_text(chance: random.Random) -> None:
    """Render and split one random text.

    Raises:
        AssertionError: Text was lost, the markup is invalid, or rendering took too long.
    """
    unit = "".join(chance.choices(FRAGMENTS, k=chance.randint(1, 40)))
    text = unit * chance.choice((1, 1, 1, 2, 20))
    for name, render in RENDERERS.items():
        began = time.thread_time()
        shown = render(text)
        assert time.thread_time() - began < MAX_CPU_SECONDS, (name, text)
        assert_contains(shown, text)
    assert all(text_length(part) <= 200 for part in split_text(text, 200)), text


def main() -> None:
    """Check random texts for the given time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    chance, ends_at = random.Random(options.seed), time.monotonic() + options.seconds
    for count in itertools.count():
        if time.monotonic() > ends_at:
            print(f"seed {options.seed}: {count} texts, no failure")
            return
        check_random_text(chance)


if __name__ == "__main__":
    main()
