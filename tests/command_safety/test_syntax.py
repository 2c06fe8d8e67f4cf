import random
import shutil
import subprocess
from pathlib import Path

import pytest

from hark.command_safety.analysis import analyze_command
from hark.command_safety.parsing.syntax import DEPTH_MAX, parse
from hark.command_safety.parsing.syntax_tree import (
    Arithmetic,
    CompoundCommand,
    FunctionDefinition,
    LiteralText,
    Script,
    ShellSyntaxError,
    SimpleCommand,
    Substitution,
    Variable,
    Word,
)
from hark.protocol.tool import Risk

SEED = 20_261_116
SAMPLES = 600


def literal_text(word: Word) -> str:
    return "".join(part.text if isinstance(part, LiteralText) else "?" for part in word)


def parse_simple(text: str) -> SimpleCommand:
    command = parse(text).chains[0].pipelines[0].commands[0]
    assert isinstance(command, SimpleCommand)
    return command


def parse_words(text: str) -> list[str]:
    return [literal_text(word) for word in parse_simple(text).words]


def parse_compound(text: str) -> CompoundCommand:
    command = parse(text).chains[0].pipelines[0].commands[0]
    assert isinstance(command, CompoundCommand)
    return command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls -la  src", ["ls", "-la", "src"]),
        ("echo 'a b' \"c d\" e\\ f", ["echo", "a b", "c d", "e f"]),
        ("r''m r\"\"m \\rm", ["rm", "rm", "rm"]),
        ("echo $'a\\x41\\101\\n' $'it\\'s'", ["echo", "aAA\n", "it's"]),
        ("echo a\\\nb \\\n c", ["echo", "ab", "c"]),
        ("echo a#b # comment", ["echo", "a#b"]),
        ('echo "a\\"b\\$c\\d"', ["echo", 'a"b$c\\d']),
        ("echo '' \"\"", ["echo", "", ""]),
        ("echo $ a$", ["echo", "$", "a$"]),
        ("ls @(a|b) !(c)", ["ls", "@(a|b)", "!(c)"]),
        ("time -p ls", ["ls"]),
        ("! ls", ["ls"]),
    ],
)
def test_words_are_parsed_as_bash_parses_them(text: str, expected: list[str]) -> None:
    assert parse_words(text) == expected


def test_chains_pipelines_and_background_jobs_are_parsed() -> None:
    script = parse("a | b |& c && d || e; f & g\nh")
    assert [len(chain.pipelines) for chain in script.chains] == [3, 1, 1, 1]
    assert script.chains[0].operators == ("&&", "||")
    assert len(script.chains[0].pipelines[0].commands) == 3
    assert [chain.is_background for chain in script.chains] == [False, True, False, False]


def test_assignments_and_redirections_are_parsed_separately_from_words() -> None:
    command = parse_simple("A=1 B='x y' cmd arg >out 2>&1 <in >>log &>all")
    assert [assignment.name for assignment in command.assignments] == ["A", "B"]
    assert [literal_text(word) for word in command.words] == ["cmd", "arg"]
    assert [(each.operator, literal_text(each.target)) for each in command.redirects] == [
        *((">", "out"), (">&", "1"), ("<", "in"), (">>", "log"), ("&>", "all")),
    ]


def test_arrays_and_appending_assignments_are_parsed() -> None:
    assert parse_simple("a=(1 'b c' $d)").assignments[0].items is not None
    assert parse_simple("a+=x").assignments[0].is_append
    assert parse_simple("declare -a a=(1 2)").assignments[0].name == "a"


def test_expansions_are_parsed_with_their_contents() -> None:
    parts = [
        part for word in parse_simple('echo $a "${b:-x}" $(ls) `pwd` $((1+2)) <(id) ${c[1]}').words for part in word
    ]
    variables = [part for part in parts if isinstance(part, Variable)]
    substitutions = [part for part in parts if isinstance(part, Substitution)]
    assert [(each.name, each.operator, each.is_quoted) for each in variables] == [
        *(("a", "", False), ("b", ":-", True), ("c", "", False)),
    ]
    assert [each.form for each in substitutions] == ["$(", "$(", "<("]
    assert any(isinstance(part, Arithmetic) for part in parts)


@pytest.mark.parametrize(
    ("text", "kind", "blocks"),
    [
        ("if a; then b; elif c; then d; else e; fi", "if", 5),
        ("while a; do b; done", "while", 2),
        ("until a\ndo b\ndone", "until", 2),
        ("for i in 1 2; do a; done", "for", 1),
        ("for i; do a; done", "for", 1),
        ("for ((i=0; i<3; i++)); do a; done", "for", 1),
        ("select i in 1; do a; done", "for", 1),
        ("case x in a|b) c;; (d) e;& *) f; esac", "case", 3),
        ("(a; b)", "subshell", 1),
        ("((a) ; b)", "subshell", 1),
        ("{ a; b; }", "group", 1),
        ("((i++))", "arithmetic", 0),
        ("[[ a < b && ( c || d ) ]]", "condition", 0),
    ],
)
def test_compound_commands_are_parsed_with_their_blocks_and_redirections(text: str, kind: str, blocks: int) -> None:
    command = parse_compound(text)
    assert (command.kind, len(command.blocks)) == (kind, blocks)
    assert parse_compound(f"{text} > out 2>&1").redirects[0].operator == ">"


@pytest.mark.parametrize(
    "text", ["f() { a; }", "f () ( a )", "function f { a; }", "function f() { a; }", "f()\n{ a; }"]
)
def test_function_definitions_are_parsed_in_every_form(text: str) -> None:
    command = parse(text).chains[0].pipelines[0].commands[0]
    assert isinstance(command, FunctionDefinition)
    assert command.name == "f"


@pytest.mark.parametrize("text", ["x=()\na", "x+=()\na", "x[1]=()\na", "x=() \n{ a; }", "x=()\n(a)"])
def test_an_assignment_of_an_empty_array_is_not_a_function_definition(text: str) -> None:
    script = parse(text)
    assert len(script.chains) == 2
    assert parse_simple(text).assignments[0].items == ()


@pytest.mark.parametrize("text", ["f()\na", "f() a", "function f\na", "f() x=1", "f() g() { a; }", "a=b() { c; }"])
def test_a_function_without_a_compound_command_as_its_body_is_refused(text: str) -> None:
    with pytest.raises(ShellSyntaxError):
        parse(text)


def test_a_here_document_inside_a_substitution_must_end_there() -> None:
    assert literal_text(parse_simple("echo $(cat <<A\ntext\nA\n)").words[1]) == "?"
    with pytest.raises(ShellSyntaxError):
        parse("echo $(cat <<A)\ntext\nA")


def test_here_documents_end_at_their_delimiter() -> None:
    script = parse("cat <<A <<-'B' | sh; ls\none $x\nA\n\ttwo $y\n\tB\nrm x")
    first = script.chains[0].pipelines[0].commands[0]
    assert isinstance(first, SimpleCommand)
    bodies = [redirect.document.body for redirect in first.redirects if redirect.document]
    assert [literal_text(body) for body in bodies] == ["one ?\n", "two $y\n"]
    assert len(script.chains) == 3


@pytest.mark.parametrize(
    "text",
    [
        *(
            "echo 'a",
            'echo "a',
            "echo `a",
            "echo $(a",
            "echo ${a",
            "echo $((1",
            "(a",
            "{ a",
            "if a; then b",
            "while a; do b",
        ),
        *(
            "a | | b",
            "a && && b",
            "| a",
            "fi",
            "done",
            "}",
            "a )",
            "case x in",
            "for",
            "a >",
            "a <<<",
            "[[ a",
            "f() ",
            "\0",
        ),
        *('echo "${a#\'}"', "echo $((' ))", "a=(b"),
    ],
)
def test_invalid_commands_raise_a_syntax_error(text: str) -> None:
    with pytest.raises(ShellSyntaxError):
        parse(text)


def test_nesting_deeper_than_the_limit_raises_a_syntax_error() -> None:
    parse("( " * (DEPTH_MAX - 1) + "a" + " )" * (DEPTH_MAX - 1))
    with pytest.raises(ShellSyntaxError):
        parse("( " * (DEPTH_MAX + 1) + "a" + " )" * (DEPTH_MAX + 1))


def test_whitespace_and_comments_are_parsed_as_an_empty_script() -> None:
    for text in ("", "  \n\n", "# only a comment"):
        assert parse(text) == Script()


PIECES = [
    *(
        "MARK",
        "MARK",
        "; MARK",
        "\nMARK\n",
        "$(MARK)",
        "`MARK`",
        "MARK;",
        "true",
        "echo",
        "echo a",
        "x=1",
        "[[ a ]]",
        ": ",
    ),
    *(
        " ",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "(",
        ")",
        "((",
        "))",
        "{ ",
        "; }",
        "'",
        '"',
        "\\",
        "\\\n",
        "#",
        " #",
        "$",
        "`",
    ),
    *(
        "$(",
        "${",
        "}",
        "${x:-",
        "${x#",
        "$((",
        "<<A\n",
        "\nA\n",
        "<<'A'\n",
        "<<-A\n\t",
        "<(",
        "<<<",
        ">f ",
        "2>&1 ",
        "&",
    ),
    *(
        "if true; then ",
        "; fi",
        "for i in 1; do ",
        "; done",
        "case a in a) ",
        ";; esac",
        "f() { ",
        "; f",
        "$'",
        "\\'",
        "!(",
    ),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash to compare with")
def test_no_command_that_bash_runs_is_overlooked(tmp_path: Path) -> None:
    """The parser may refuse text that bash accepts, but must not overlook a command that bash runs."""
    rng = random.Random(SEED)
    bash = shutil.which("bash") or ""
    compared_count = 0
    for _ in range(SAMPLES):
        text = "".join(rng.choice(PIECES) for _ in range(rng.randint(2, 9)))
        judgement = analyze_command(text, tmp_path, Path("/home/person"))
        if judgement.risk >= Risk.RISKY or any("MARK" in command.split() for command in judgement.commands):
            continue
        done = subprocess.run(
            [bash, "-c", f"MARK() {{ printf HIT >&2; }}\n{text}"],
            cwd=tmp_path,
            env={"PATH": "/nowhere"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
        )
        compared_count += 1
        assert b"HIT" not in done.stdout + done.stderr, text
    assert compared_count > 10
