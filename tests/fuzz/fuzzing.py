"""Fuzzing of text: random, repeated and mutated inputs, a time limit for each, and a replay by seed."""

import random
import time

from tests.fuzz.targets import TARGETS

# Pieces of every syntax that the targets parse. Repeating one is the usual way to slow a parser down.
PIECES = [
    *("a", " ", "\n", "\t", "\r", "\0", "é", "😀", "\u200d", "e\u0301", "\u2028", "\ud7ff", "0", "-1", "word ", "a.b"),
    *(
        "*",
        "**",
        "_",
        "`",
        "```\n",
        "~~~\n",
        "[",
        "](",
        "![",
        ")",
        "<",
        "</",
        "<a ",
        "<!--",
        "&amp;",
        "&#x",
        "# ",
        "> ",
    ),
    *("- ", "1. ", "|", "|-|\n", "\\", "'", '"', "{", "}", "{a,b}", "{{", "$(", "${", "$((", "@", "https://", "a@b.c"),
    *("@@ -1,2 +1,2 @@\n", "--- a/f\n", "+++ b/f\n", "*** Begin Patch\n", "*** Update File: f\n", "*** End Patch\n"),
    *(
        "-a\n",
        "+a\n",
        " a\n",
        "\x1b[",
        "\x1b[1m",
        "\x1b]0;",
        "\x07",
        "\x1b[200~",
        "\x1b[201~",
        "\x9b",
        "---\n",
        "a: b\n",
    ),
    *("a: &a\n", "<table>", "<td>", "<li>", "<pre>", "<script>", "every ", "in 1 ", "at 9:00", "monday", "*/5 ", "1-5"),
    *("data: ", "\n\n", '{"choices":[', '{"type":"', '"}', "[1,", "**/", "[!a]", "[[:alpha:]]", "?", "!", "x=()\n"),
    *(
        "<<A\n",
        "A\n",
        "if a; then ",
        "fi\n",
        "f() {",
        "password: ",
        "sk-",
        "eyJ",
        "<@U1>",
        "||",
        ".png",
        "[[routes]]\n",
    ),
]
LENGTH_MAX = 4_000
SECONDS_MAX = 2.0  # of CPU time for one input, ample for a slow machine


def make_input(seed: int) -> bytes:
    """Return the input of a seed."""
    rng = random.Random(seed)
    match rng.randrange(4):
        case 0:
            text = rng.choice(PIECES) * rng.randrange(LENGTH_MAX) + rng.choice(PIECES)
        case 1:
            chosen = rng.sample(PIECES, 3)
            text = "".join(rng.choice(chosen) for _ in range(rng.randrange(300)))
        case 2:
            text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(200)))
        case _:
            return rng.randbytes(rng.randrange(500))
    data = bytearray(text.encode()[:LENGTH_MAX])
    for _ in range(rng.choice((0, 0, 1, 5)) if data else 0):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def run_target(name: str, seed: int) -> None:
    """Run a target on the input of a seed.

    Raises:
        AssertionError: The target failed or took too long. The message has the command that repeats the run.
    """
    data = make_input(seed)
    repeat = f"python -m tests.fuzz --target '{name}' --seed {seed}"
    started = time.thread_time()
    try:
        TARGETS[name](data)
    except Exception as error:  # the boundary of the fuzzer: any error is a finding
        raise AssertionError(f"{name} failed: {type(error).__name__}: {error}. Repeat: {repeat}") from error
    used = time.thread_time() - started
    assert used < SECONDS_MAX, f"{name} took {used:.1f} s for {len(data)} bytes. Repeat: {repeat}"
