"""The parser finds every command that shfmt finds, in the same construct."""

from collections import Counter
from pathlib import Path

from hark.command_safety.parsing.syntax_tree import ShellSyntaxError
from tests.command_safety.script_generator import ScriptGenerator
from tests.command_safety.shfmt_commands import FoundCommand, find_parser_commands, find_shfmt_commands

SEED = 20_261_118
SCRIPT_COUNT = 120
MARKER = "hark_end_of_script"


def overlooked_commands(script: str, expected: list[FoundCommand]) -> Counter[FoundCommand]:
    return Counter(expected) - Counter(find_parser_commands(script))


def test_every_command_of_awkward_constructs_is_found() -> None:
    script = Path(__file__).with_name("scripts").joinpath("constructs.sh").read_text()
    expected = find_shfmt_commands(script)
    assert len(expected) > 90
    assert not overlooked_commands(script, expected)


def test_every_command_of_generated_scripts_is_found() -> None:
    generator = ScriptGenerator(SEED)
    scripts = [generator.write_script() for _ in range(SCRIPT_COUNT)]
    # One process reads all scripts, because starting many would take long.
    found = iter(find_shfmt_commands("".join(f"{script}\n{MARKER}\n" for script in scripts)))
    refused_count = 0
    for script in scripts:
        expected = list(iter(lambda: next(found), ((), MARKER)))
        try:
            assert not overlooked_commands(script, expected), script
        except ShellSyntaxError:
            refused_count += 1
    assert next(found, None) is None
    assert refused_count <= SCRIPT_COUNT // 20


def test_the_comparison_detects_a_command_that_is_read_as_a_part_of_a_function() -> None:
    expected = find_shfmt_commands("files=()\nrun\n")
    assert expected == [((), "run")]
    assert overlooked_commands("files() {\nrun\n}", expected)
