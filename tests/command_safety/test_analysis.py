import random
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hark.command_safety import analysis
from hark.protocol.tool import Risk, RiskAssessment
from tests.command_safety import approval_table as table

SEED = 20_261_116
ROUNDS = 3

ROWS = [
    *((command, Risk.HARD) for command in (*table.HARD, *table.HARD_LINES)),
    *((command, Risk.RISKY) for command in table.RISKY),
    *((command, Risk.LEAVING) for command in table.LEAVING),
    *((command, Risk.CHANGING) for command in table.CHANGING),
    *((command, Risk.READING) for command in table.READING),
]


@pytest.fixture(name="workspace", scope="module")
def workspace_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("outer") / "workspace"
    (workspace / "src").mkdir(parents=True)
    (workspace / "build").mkdir()
    _test_home(workspace).mkdir()
    return workspace.resolve()


def _test_home(workspace: Path) -> Path:
    """Return a home directory for the tests, so that the results don't depend on the user who runs them."""
    return workspace.parent / "home"


def analyze_in_test_home(command: str, workspace: Path, **options: Any) -> RiskAssessment:
    return analysis.analyze_command(command, workspace, _test_home(workspace), **options)


def fill_placeholders(command: str, workspace: Path) -> str:
    return re.sub(r"\bWS\b", str(workspace), re.sub(r"(?<![$\w{])HOME(?=/)", str(_test_home(workspace)), command))


@pytest.mark.parametrize(("command", "risk"), ROWS, ids=[f"{risk.name}: {command[:60]!r}" for command, risk in ROWS])
def test_each_command_gets_the_risk_level_of_its_table(command: str, risk: Risk, workspace: Path) -> None:
    judgement = analyze_in_test_home(fill_placeholders(command, workspace), workspace)
    assert judgement.risk is risk, judgement
    assert bool(judgement.reasons) is (risk >= Risk.LEAVING)


def test_the_tables_have_enough_commands_per_risk_level() -> None:
    commands_with_approval = {*table.HARD, *table.RISKY, *table.LEAVING}
    assert len(commands_with_approval) >= 130
    assert len({*table.CHANGING, *table.READING}) >= 100
    assert len(ROWS) >= 260


def _wrap_in_here_document(command: str, rng: random.Random) -> str:
    end = f"END{rng.randrange(10**6)}"
    return f"{rng.choice(('sh', 'bash -s', 'cat | sh'))} <<'{end}'\n{command}\n{end}"


WRAPPERS: list[Callable[[str, random.Random], str]] = [
    lambda command, _: f"sh -c {shlex.quote(command)}",
    lambda command, _: f"bash -lc {shlex.quote(command)}",
    lambda command, _: f"eval {shlex.quote(command)}",
    lambda command, _: f"env A=1 bash -c {shlex.quote(command)}",
    lambda command, _: f"timeout 5 nice sh -c {shlex.quote(command)}",
    lambda command, _: f"echo x | xargs -I% sh -c {shlex.quote(command)}" if "%" not in command else f"({command}\n)",
    lambda command, _: f"find . -maxdepth 0 -exec sh -c {shlex.quote(command)} ';'",
    lambda command, _: f"ls | cat && true\n{command}\n",
    lambda command, _: f"true && {{ {command}\n}}",
    lambda command, _: f"false || ( {command}\n)",
    lambda command, _: f'echo "$({command}\n)"',
    lambda command, _: f"x=$({command}\n)",
    lambda command, _: f"cat <({command}\n)",
    lambda command, _: f"echo 'a # b' # it's a comment\n{command}",
    lambda command, _: f"if true; then\n{command}\nfi",
    lambda command, _: f"if false; then :; else\n{command}\nfi",
    lambda command, _: f"for i in 1 2; do\n{command}\ndone",
    lambda command, _: f"while true; do\n{command}\nbreak; done",
    lambda command, _: f"case a in b) ;; *)\n{command}\n;; esac",
    lambda command, _: f"f() {{\n{command}\n}}; f",
    lambda command, _: f"{{ {command}\n}} &",
    lambda command, _: f": ; {command}\n: # done",
    lambda command, _: f"trap {shlex.quote(command)} EXIT",
    lambda command, _: f"printf '%s' {shlex.quote(command)} | bash",
    lambda command, _: f'CODE={shlex.quote(command)}; bash -c "$CODE"',
    lambda command, _: f"bash <<< {shlex.quote(command)}",
    lambda command, _: f"echo start \\\n  ; {command}",
    _wrap_in_here_document,
]


def wrap_randomly(command: str, rng: random.Random) -> str:
    # A here-document in the command must end with a line break, so each wrapper adds one after the command.
    for _ in range(rng.randint(1, 3)):
        command = rng.choice(WRAPPERS)(command, rng)
    return command


@pytest.mark.parametrize("command", [*table.HARD, *table.LEAVING])
def test_a_dangerous_command_needs_approval_however_it_is_wrapped(command: str, workspace: Path) -> None:
    plain = fill_placeholders(command, workspace)
    rng = random.Random(f"{SEED}{command}")
    for _ in range(ROUNDS):
        wrapped = wrap_randomly(plain, rng)
        assert analyze_in_test_home(wrapped, workspace).risk >= Risk.LEAVING, wrapped


def test_a_hard_risk_command_keeps_its_risk_in_every_wrapper(workspace: Path) -> None:
    rng = random.Random(SEED)
    for wrapper in WRAPPERS:
        wrapped = wrapper("rm -rf /", rng)
        assert analyze_in_test_home(wrapped, workspace).risk is Risk.HARD, wrapped


@pytest.mark.parametrize("command", table.CHANGING)
def test_a_state_changing_command_keeps_its_risk_in_simple_wrappers(command: str, workspace: Path) -> None:
    plain = fill_placeholders(command, workspace)
    for wrapped in (
        f"({plain}\n)",
        f"sh -c {shlex.quote(plain)}",
        f"true && {{ {plain}\n}}",
        f"if true; then\n{plain}\nfi",
    ):
        assert analyze_in_test_home(wrapped, workspace).risk is Risk.CHANGING, wrapped


def test_analyzing_random_text_never_raises(workspace: Path) -> None:
    rng = random.Random(SEED)
    pieces = [
        *"abrm-/ .~*?[]{}()<>|&;#$`'\"\\\n\t!=+,:%@0",
        "rm ",
        "$(",
        "${",
        "<<E\n",
        "\nE\n",
        "if ",
        "then ",
        "fi",
        "do ",
        "\ue000",
    ]
    for _ in range(1500):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(0, 120)))
        assert isinstance(analyze_in_test_home(text, workspace), RiskAssessment)
    for _ in range(200):
        text = rng.randbytes(rng.randint(0, 300)).decode("latin-1")
        assert isinstance(analyze_in_test_home(text, workspace), RiskAssessment)


HUGE_COMMANDS = {
    "words": "echo " + "word " * 20_000,
    "commands": "ls; " * 25_000,
    "pipes": "cat | " * 16_000 + "cat",
    "brackets": "(" * 100_000,
    "substitutions": "$(" * 50_000,
    "quotes": "'\"" * 50_000,
    "braces": "echo " + "{a,b}" * 20_000,
    "open braces": "echo " + "{" * 100_000,
    "backticks": "`" * 100_000,
    "escapes": "\\" * 100_000,
    "assignments": "".join(f"a{number}=1;" for number in range(12_000)),
    "chained assignments": " && ".join(f"a{number}=$a{number - 1}" for number in range(6_000)),
    "doubling": "a=xx;" + "a=$a$a;" * 10_000,
    "paths": "rm " + "a/b/c " * 16_000,
    "a long path": "rm " + "a/" * 50_000,
    "here-documents": "cat <<E\nx\nE\n" * 9_000,
    "ifs": "if true; then " * 7_000,
    "functions": "".join(f"f{number}() {{ f{number - 1}; f{number - 1}; }};" for number in range(3_000)) + "f2999",
    "loops": "for i in 1 2 3 4 5 6 7 8 9; do " * 20 + "x=$i; cd $x; " + "done;" * 20,
    "evals": "eval " * 20_000,
    "sudos": "sudo " * 20_000,
    "nested ifs": "if " * 30_000,
    "sed": "sed " + "s/" * 50_000,
    "code": "python3 -c '" + "open(" * 20_000 + "'",
    "awk": "awk '" + 'print "' * 10_000 + "'",
}


@pytest.mark.parametrize("name", HUGE_COMMANDS)
def test_a_huge_command_is_analyzed_in_bounded_time(name: str, workspace: Path) -> None:
    started = time.process_time()
    analyze_in_test_home(HUGE_COMMANDS[name], workspace)
    # Twice the expected second, because other processes may slow this machine down.
    assert time.process_time() - started < 2.0


def test_deeply_nested_commands_are_risky(workspace: Path) -> None:
    for opener, closer in (("( ", ")"), ("$( ", ")"), ("{ ", "; }"), ("if true; then ", "; fi")):
        judgement = analyze_in_test_home(opener * 500 + "ls" + closer * 500, workspace)
        assert judgement.risk >= Risk.RISKY, opener


def test_each_simple_command_is_listed_for_the_approval_rules(workspace: Path) -> None:
    judgement = analyze_in_test_home(
        "cd src && /usr/bin/git push origin main | tee log; sh -c 'npm test'; echo $(make x)", workspace
    )
    for command in ("git push origin main", "tee log", "npm test", "make x"):
        assert command in judgement.commands
    assert "> out" in analyze_in_test_home("echo x > out", workspace).commands


def test_the_reason_with_the_highest_risk_comes_first(workspace: Path) -> None:
    judgement = analyze_in_test_home("touch /tmp/x; sudo ls; rm -rf /", workspace)
    assert "deletes /" in judgement.reasons[0]


def test_risk_depends_on_the_current_folder_and_the_writable_folders(workspace: Path, tmp_path: Path) -> None:
    assert analyze_in_test_home("touch x", workspace, folder=tmp_path).risk is Risk.LEAVING
    assert analyze_in_test_home("touch x", workspace, folder=workspace / "src").risk is Risk.CHANGING
    assert analyze_in_test_home("rm -rf ../..", workspace, folder=workspace / "src").risk is Risk.HARD
    assert analyze_in_test_home(f"touch {tmp_path}/x", workspace).risk is Risk.LEAVING
    assert analyze_in_test_home(f"touch {tmp_path}/x", workspace, writable=[tmp_path]).risk is Risk.CHANGING
    assert analyze_in_test_home(f"rm -rf {tmp_path}", workspace, writable=[tmp_path]).risk is Risk.HARD


@pytest.mark.parametrize(("home", "risk"), [("/root", Risk.HARD), ("/home/a", Risk.LEAVING), ("/srv/a", Risk.LEAVING)])
def test_deleting_below_the_home_directory_has_hard_risk_only_for_root(home: str, risk: Risk, workspace: Path) -> None:
    assert analysis.analyze_command("cd ~/x && rm -rf *", workspace, Path(home)).risk is risk


def test_symbolic_links_are_followed_to_determine_the_risk(workspace: Path, tmp_path: Path) -> None:
    link = workspace / "elsewhere"
    link.symlink_to(tmp_path)
    try:
        assert analyze_in_test_home("touch elsewhere/x", workspace).risk is Risk.LEAVING
        assert analyze_in_test_home("rm -rf elsewhere/", workspace).risk >= Risk.LEAVING
        assert analyze_in_test_home("cd elsewhere && touch x", workspace).risk is Risk.LEAVING
        assert analyze_in_test_home("rm elsewhere", workspace).risk is Risk.CHANGING
    finally:
        link.unlink()
