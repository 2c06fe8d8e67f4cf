import random
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hark.command_safety import analysis
from hark.protocol.tool import Judgement, Risk
from tests.command_safety import approval_table as table

SEED = 20_261_116
ROUNDS = 3

ROWS = [
    *((command, Risk.HARD) for command in table.HARD),
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
    _home(workspace).mkdir()
    return workspace.resolve()


def _home(workspace: Path) -> Path:
    """Return a home of our own: the verdicts must not depend on the user who runs the tests."""
    return workspace.parent / "home"


def judge(command: str, workspace: Path, **more: Any) -> Judgement:
    return analysis.judge(command, workspace, _home(workspace), **more)


def filled(command: str, workspace: Path) -> str:
    return re.sub(r"\bWS\b", str(workspace), re.sub(r"(?<![$\w{])HOME(?=/)", str(_home(workspace)), command))


@pytest.mark.parametrize(("command", "risk"), ROWS, ids=[f"{risk.name}: {command[:60]!r}" for command, risk in ROWS])
def test_a_command_is_judged_as_the_table_says(command: str, risk: Risk, workspace: Path) -> None:
    judgement = judge(filled(command, workspace), workspace)
    assert judgement.risk is risk, judgement
    assert bool(judgement.reasons) is (risk >= Risk.LEAVING)


def test_the_table_is_big_enough() -> None:
    asked = {*table.HARD, *table.RISKY, *table.LEAVING}
    assert len(asked) >= 130
    assert len({*table.CHANGING, *table.READING}) >= 100
    assert len(ROWS) >= 260


def _heredoc(command: str, rng: random.Random) -> str:
    end = f"END{rng.randrange(10**6)}"
    return f"{rng.choice(('sh', 'bash -s', 'cat | sh'))} <<'{end}'\n{command}\n{end}"


LAYERS: list[Callable[[str, random.Random], str]] = [
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
    _heredoc,
]


def wrap(command: str, rng: random.Random) -> str:
    # A here-document in the command must end in a line of its own: each layer puts a newline behind it.
    for _ in range(rng.randint(1, 3)):
        command = rng.choice(LAYERS)(command, rng)
    return command


@pytest.mark.parametrize("command", [*table.HARD, *table.LEAVING])
def test_no_wrapping_hides_a_dangerous_command(command: str, workspace: Path) -> None:
    plain = filled(command, workspace)
    rng = random.Random(f"{SEED}{command}")
    for _ in range(ROUNDS):
        wrapped = wrap(plain, rng)
        assert judge(wrapped, workspace).risk >= Risk.LEAVING, wrapped


def test_every_single_layer_keeps_the_hardest_judgement(workspace: Path) -> None:
    rng = random.Random(SEED)
    for layer in LAYERS:
        wrapped = layer("rm -rf /", rng)
        assert judge(wrapped, workspace).risk is Risk.HARD, wrapped


@pytest.mark.parametrize("command", table.CHANGING)
def test_a_harmless_command_stays_so_behind_plain_wrappers(command: str, workspace: Path) -> None:
    plain = filled(command, workspace)
    for wrapped in (
        f"({plain}\n)",
        f"sh -c {shlex.quote(plain)}",
        f"true && {{ {plain}\n}}",
        f"if true; then\n{plain}\nfi",
    ):
        assert judge(wrapped, workspace).risk is Risk.CHANGING, wrapped


def test_random_text_is_judged_quickly_and_never_raises(workspace: Path) -> None:
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
        assert isinstance(judge(text, workspace), Judgement)
    for _ in range(200):
        text = rng.randbytes(rng.randint(0, 300)).decode("latin-1")
        assert isinstance(judge(text, workspace), Judgement)


HUGE = {
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


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_command_is_judged_in_bounded_time(name: str, workspace: Path) -> None:
    started = time.process_time()
    judge(HUGE[name], workspace)
    # A second of a machine that isn't slowed by its neighbours.
    assert time.process_time() - started < 2.0


def test_deep_nesting_is_refused_not_followed(workspace: Path) -> None:
    for opened, closed in (("( ", ")"), ("$( ", ")"), ("{ ", "; }"), ("if true; then ", "; fi")):
        judgement = judge(opened * 500 + "ls" + closed * 500, workspace)
        assert judgement.risk >= Risk.RISKY, opened


def test_each_simple_command_is_named_for_the_rules(workspace: Path) -> None:
    judgement = judge("cd src && /usr/bin/git push origin main | tee log; sh -c 'npm test'; echo $(make x)", workspace)
    for command in ("git push origin main", "tee log", "npm test", "make x"):
        assert command in judgement.commands
    assert "> out" in judge("echo x > out", workspace).commands


def test_the_worst_reason_comes_first(workspace: Path) -> None:
    judgement = judge("touch /tmp/x; sudo ls; rm -rf /", workspace)
    assert "removes /" in judgement.reasons[0]


def test_the_folder_and_what_is_writable_count(workspace: Path, tmp_path: Path) -> None:
    assert judge("touch x", workspace, folder=tmp_path).risk is Risk.LEAVING
    assert judge("touch x", workspace, folder=workspace / "src").risk is Risk.CHANGING
    assert judge("rm -rf ../..", workspace, folder=workspace / "src").risk is Risk.HARD
    assert judge(f"touch {tmp_path}/x", workspace).risk is Risk.LEAVING
    assert judge(f"touch {tmp_path}/x", workspace, writable=[tmp_path]).risk is Risk.CHANGING
    assert judge(f"rm -rf {tmp_path}", workspace, writable=[tmp_path]).risk is Risk.HARD


@pytest.mark.parametrize(("home", "risk"), [("/root", Risk.HARD), ("/home/a", Risk.LEAVING), ("/srv/a", Risk.LEAVING)])
def test_folders_below_a_home_are_like_others_except_below_that_of_root(home: str, risk: Risk, workspace: Path) -> None:
    assert analysis.judge("cd ~/x && rm -rf *", workspace, Path(home)).risk is risk


def test_links_are_followed(workspace: Path, tmp_path: Path) -> None:
    link = workspace / "elsewhere"
    link.symlink_to(tmp_path)
    try:
        assert judge("touch elsewhere/x", workspace).risk is Risk.LEAVING
        assert judge("rm -rf elsewhere/", workspace).risk >= Risk.LEAVING
        assert judge("cd elsewhere && touch x", workspace).risk is Risk.LEAVING
        assert judge("rm elsewhere", workspace).risk is Risk.CHANGING
    finally:
        link.unlink()
