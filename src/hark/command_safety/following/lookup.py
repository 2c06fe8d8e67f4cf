"""Finding out what a program is, by its name, and what it does."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from hark.command_safety.following.call import Judge, ProgramCall, Runner
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import names
from hark.command_safety.following.unknown_marks import DECODED, NETWORK, SECRET, shown
from hark.command_safety.programs import (
    builtins,
    code,
    containers,
    editors,
    files,
    find,
    git,
    network,
    packages,
    readers,
    system,
    wrappers,
)

_TABLES: tuple[Mapping[str, Judge], ...] = (
    readers.PROGRAMS,
    editors.PROGRAMS,
    find.PROGRAMS,
    files.PROGRAMS,
    system.PROGRAMS,
    packages.PROGRAMS,
    containers.PROGRAMS,
    network.PROGRAMS,
    git.PROGRAMS,
    code.PROGRAMS,
    wrappers.PROGRAMS,
    wrappers.BEHIND_VERBS,
    builtins.PROGRAMS,
)
# Some are in several tables, such as those that both install and run programs.
_JUDGES: dict[str, list[Judge]] = {
    name: [table[name] for table in _TABLES if name in table] for name in {name for table in _TABLES for name in table}
}
_LISTING = frozenset(
    names(
        "ls dir stat file test [ cd pushd echo printf du find fd tree which type basename dirname chmod chown "
        "mkdir touch"
    )
)
_USUAL_FOLDERS = re.compile(
    r"(?:/usr(?:/local)?)?/s?bin|/opt/(?:homebrew|local)/bin|/run/current-system/sw/bin|/nix/.*/bin"
)
_RUNNING_OPTION = re.compile(
    r"--(?:pager|exec|cmd|command|program|shell|editor|pre|preprocessor|rsh|browser|viewer|extract-with|on-\w+|hook)(?:=(.*))?",
    re.DOTALL,
)
_VERSION = re.compile(r"[-.\d]+(?:\.exe)?$|\.exe$")


def judge_environment(runner: Runner, name: str, value: str) -> None:
    """Judge a variable that is set."""
    builtins.judge_variable(ProgramCall(runner, name, [], None), name, value)


def judge_call(runner: Runner, argv: Sequence[str], feed: str | None) -> str:
    """Judge a program with its arguments, and return what it prints."""
    folder, slash, last = argv[0].rpartition("/")
    name = _known_name(last)
    call = ProgramCall(runner, name, argv[1:], feed)
    is_secret = name not in _LISTING and call.guards_secrets()
    if slash and not _USUAL_FOLDERS.fullmatch(folder):
        # It only has the name of that program: nobody knows what it is.
        call.note(Risk.CHANGING)
        _run_own_file(call, argv[0])
    if name != "[" and re.search(r"[*?\[]", name):
        _judge_pattern(call, name)
    _judge_running_options(call)
    printed = None
    for judge in _JUDGES.get(name, [_judge_unknown]):
        found = judge(call)
        printed = found if printed is None else printed
    text = call.default_output() if printed is None else printed
    return text + SECRET if is_secret and SECRET not in text else text


def _known_name(last: str) -> str:
    """Return the name under which a program is known: without a version, and as case doesn't count everywhere."""
    if last in _JUDGES:
        return last
    for name in (_VERSION.sub("", last), last.lower(), _VERSION.sub("", last.lower())):
        if name in _JUDGES:
            return name
    if last.startswith("mkfs."):
        return "mkfs"
    return last


def _run_own_file(call: ProgramCall, path: str) -> None:
    """Judge a script that this very command has written or loaded before."""
    if any(spot.path in call.runner.written for spot in call.spots(path)):
        content = call.reads(path)
        if NETWORK in content or DECODED in content:
            call.note(Risk.HARD, f"runs {shown(path)}, which comes from the network")
        else:
            code.run_file(call, path, tuple(call.args))


def _judge_running_options(call: ProgramCall) -> None:
    """Judge what options such as `--pager=...` run, whatever the program is."""
    for at, arg in enumerate(call.args):
        match = _RUNNING_OPTION.fullmatch(arg)
        command = (match[1] or "".join(call.args[at + 1 : at + 2])) if match else ""
        if command and not command.startswith("-"):
            call.note(Risk.CHANGING)
            call.runner.run_child(command, None, ())


def _judge_pattern(call: ProgramCall, pattern: str) -> None:
    """A program's name with wildcards: it may be any program that fits."""
    call.note(Risk.RISKY, f"runs whatever program fits {shown(pattern)}")
    for name in wrappers.TELLING:
        if fnmatchcase(name, pattern):
            call.run([name, *call.args], call.feed)


def _judge_unknown(call: ProgramCall) -> str | None:
    """Note where an unknown program runs, where its options say that it writes, and what it seems to run."""
    call.note(Risk.CHANGING)
    call.works_here()
    call.may_write(*call.operands)
    wrappers.run_telling(call)
    return None
