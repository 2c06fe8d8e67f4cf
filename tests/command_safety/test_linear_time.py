"""The analysis of hostile commands takes time in proportion to their length, within limits."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.command_safety.analysis import analyze_command
from hark.command_safety.parsing.syntax import parse
from hark.command_safety.parsing.syntax_tree import ShellSyntaxError
from hark.protocol.tool import Risk, RiskAssessment
from tests.linear_time import assert_linear

# A function makes a command of about the given number of characters.
HOSTILE_COMMANDS: dict[str, Callable[[int], str]] = {
    "here-document": lambda size: "cat <<E\n" + "some text $x \\a\n" * (size // 16) + "E\n",
    "here-documents": lambda size: "cat <<E\nx\nE\n" * (size // 12),
    "here-documents of one line": lambda size: "cat" + " <<E" * (size // 8) + "\n" + "x\nE\n" * (size // 8),
    "words": lambda size: "touch" + " a" * (size // 2),
    "commands": lambda size: "a;" * (size // 2),
    "pipes": lambda size: "a" + "|a" * (size // 2),
    "conditions": lambda size: "cd a" + "||cd b" * (size // 6),
    "substitutions": lambda size: "echo " + "$(a)" * (size // 4),
    "backticks": lambda size: "echo " + "`a`" * (size // 3),
    "nested substitutions": lambda size: "echo " + "$(" * (size // 3) + ")" * (size // 3),
    "arithmetic": lambda size: "echo $((" + "(" * (size // 2) + "1" + ")" * (size // 2) + "))",
    "unclosed arithmetic": lambda size: "(( " * (size // 3),
    "braces": lambda size: "echo" + " {a,b}{c,d}" * (size // 11),
    "unclosed braces": lambda size: "echo" + (" " + "{a" * 400) * (size // 801),
    "ranges": lambda size: "echo" + " {1..1000000}" * (size // 13),
    "backslashes": lambda size: "echo " + "\\" * size,
    "unbalanced quotes": lambda size: "'" * (size | 1),
    "unbalanced double quotes": lambda size: '"' * (size | 1),
    "default values": lambda size: "echo " + "${x:-a}" * (size // 7),
    "brackets": lambda size: "x[" * (size // 2),
    "patterns": lambda size: "touch" + " *a?[b]" * (size // 7),
    "version numbers": lambda size: "1.2-" * (size // 4) + "x",
    "code with open": lambda size: "python3 -c '" + "open(" * (size // 5) + "'",
    "code with sockets": lambda size: "python3 -c '" + "socket" * (size // 6) + "'",
    "code with forks": lambda size: "perl -e '" + "fork " * (size // 5) + "'",
    "arguments of many commands": lambda size: "set --" + " a" * (size // 4) + "\n" + "b $@\n" * (size // 10),
    "files that grow": lambda size: "echo a >f\n" + "cat f >>f\n" * (size // 10),
}


def analyze(command: str) -> RiskAssessment:
    return analyze_command(command, Path("/nonexistent/workspace"), Path("/nonexistent/home"))


@pytest.mark.parametrize("name", HOSTILE_COMMANDS)
def test_analysis_time_is_proportional_to_the_length_of_a_hostile_command(name: str) -> None:
    assert_linear(HOSTILE_COMMANDS[name], analyze, 8_000 if name.startswith("code") else 4_000)


def test_parsing_a_here_document_of_a_megabyte_is_linear() -> None:
    assert_linear(lambda size: "cat > f <<'E'\n" + "a line of text\n" * (size // 15) + "E\n", parse, 1_000_000)


@pytest.mark.parametrize(
    "opener", ["$(", "`", "(", "{ ", "<(", "${x:-", "${x[", "$[", "$((", "if a; then ", '"$(', "f() "]
)
def test_nesting_without_limit_needs_approval_and_does_not_exhaust_the_stack(opener: str) -> None:
    command = opener * 20_000 + " '"
    with pytest.raises(ShellSyntaxError):
        parse(command)
    assert analyze(command).risk >= Risk.RISKY


def test_a_file_that_doubles_with_every_command_does_not_exhaust_memory() -> None:
    tracemalloc.start()
    try:
        assert analyze("echo some text >f\n" + "cat f >>f\n" * 2_000).risk >= Risk.RISKY
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()
