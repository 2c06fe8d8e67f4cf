"""Finds the analyzer for a program by name."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import DECODED, NETWORK, SECRET, printable
from hark.command_safety.following.options import split_names
from hark.command_safety.following.program_call import AnalysisContext, ProgramAnalyzer, ProgramCall
from hark.command_safety.programs import (
    builtins,
    containers,
    editors,
    files,
    find,
    git,
    interpreters,
    network,
    packages,
    readers,
    system,
    wrappers,
)

_PROGRAM_TABLES: tuple[Mapping[str, ProgramAnalyzer], ...] = (
    readers.PROGRAMS,
    editors.PROGRAMS,
    find.PROGRAMS,
    files.PROGRAMS,
    system.PROGRAMS,
    packages.PROGRAMS,
    containers.PROGRAMS,
    network.PROGRAMS,
    git.PROGRAMS,
    interpreters.PROGRAMS,
    wrappers.PROGRAMS,
    wrappers.PACKAGE_EXEC_PROGRAMS,
    builtins.PROGRAMS,
)
# Some programs are in several tables, such as tools that both install and run programs.
_ANALYZERS: dict[str, list[ProgramAnalyzer]] = {
    name: [table[name] for table in _PROGRAM_TABLES if name in table]
    for name in {name for table in _PROGRAM_TABLES for name in table}
}
_METADATA_PROGRAMS = frozenset(
    split_names(
        "ls dir stat file test [ cd pushd echo printf du find fd tree which type basename dirname chmod chown "
        "mkdir touch"
    )
)
_STANDARD_BIN_FOLDERS = re.compile(
    r"(?:/usr(?:/local)?)?/s?bin|/opt/(?:homebrew|local)/bin|/run/current-system/sw/bin|/nix/.*/bin"
)
_COMMAND_OPTION = re.compile(
    r"--(?:pager|exec|cmd|command|program|shell|editor|pre|preprocessor|rsh|browser|viewer|extract-with|on-\w+|hook)(?:=(.*))?",
    re.DOTALL,
)
_VERSION_SUFFIX = re.compile(r"(?<![-.\d])[-.\d]+(?:\.exe)?$|\.exe$")
_WILDCARD_NAME_MAX = 1000  # characters


def analyze_environment_variable(context: AnalysisContext, name: str, value: str) -> None:
    """Record the risk of setting an environment variable."""
    builtins.check_variable(ProgramCall(context, name, [], None), name, value)


def analyze_invocation(context: AnalysisContext, argv: Sequence[str], stdin: str | None) -> str:
    """Analyze a program with its arguments. Return its output, if it can be predicted."""
    folder, slash, last = argv[0].rpartition("/")
    name = _canonical_name(last)
    call = ProgramCall(context, name, argv[1:], stdin)
    is_secret = name not in _METADATA_PROGRAMS and call.check_secret_arguments()
    if slash and not _STANDARD_BIN_FOLDERS.fullmatch(folder):
        # Only the name matches a known program. The file itself may be anything.
        call.add_risk(Risk.CHANGING)
        _analyze_written_script(call, argv[0])
    if name != "[" and re.search(r"[*?\[]", name):
        _analyze_wildcard_name(call, name)
    _analyze_command_options(call)
    output = None
    for analyze in _ANALYZERS.get(name, [_analyze_unknown_program]):
        found = analyze(call)
        output = found if output is None else output
    text = call.unknown_output() if output is None else output
    return text + SECRET if is_secret and SECRET not in text else text


def _canonical_name(last: str) -> str:
    """Return the name under which the analyzers know a program, ignoring its version suffix and case."""
    if last in _ANALYZERS:
        return last
    for name in (_VERSION_SUFFIX.sub("", last), last.lower(), _VERSION_SUFFIX.sub("", last.lower())):
        if name in _ANALYZERS:
            return name
    if last.startswith("mkfs."):
        return "mkfs"
    return last


def _analyze_written_script(call: ProgramCall, path: str) -> None:
    """Analyze a script file that the same command has already written or downloaded."""
    if any(resolved.path in call.context.written_files for resolved in call.resolve_path(path)):
        content = call.record_read(path)
        if NETWORK in content or DECODED in content:
            call.add_risk(Risk.HARD, f"runs {printable(path)}, which was downloaded or decoded")
        else:
            interpreters.analyze_script_file(call, path, tuple(call.args))


def _analyze_command_options(call: ProgramCall) -> None:
    """Analyze the commands in options such as `--pager=...`, for any program."""
    for at, arg in enumerate(call.args):
        match = _COMMAND_OPTION.fullmatch(arg)
        command = (match[1] or "".join(call.args[at + 1 : at + 2])) if match else ""
        if command and not command.startswith("-"):
            call.add_risk(Risk.CHANGING)
            call.context.analyze_subshell(command, None, ())


def _analyze_wildcard_name(call: ProgramCall, pattern: str) -> None:
    """Analyze a program name with wildcards, which may match any of the recognized programs."""
    call.add_risk(Risk.RISKY, f"runs any program whose name matches {printable(pattern)}")
    for name in wrappers.RECOGNIZED_PROGRAMS if len(pattern) <= _WILDCARD_NAME_MAX else ():
        if fnmatchcase(name, pattern):
            call.analyze_program([name, *call.args], call.stdin)


def _analyze_unknown_program(call: ProgramCall) -> str | None:
    """Record the risks of an unknown program: its folder, the paths it may write to, and programs in its arguments."""
    call.add_risk(Risk.CHANGING)
    call.check_output_locations()
    call.record_possible_writes(*call.operands)
    wrappers.analyze_recognized_arguments(call)
    return None
