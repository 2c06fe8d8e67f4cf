"""Analyzers for find and fd: the files they match, delete, or pass to other programs."""

from collections.abc import Sequence

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import printable
from hark.command_safety.following.options import split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

_EXEC_ACTIONS = ("-exec", "-execdir", "-ok", "-okdir")
_NAME_TESTS = ("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname")
_FILTER_TESTS = tuple(split_names("-newer -mtime -mmin -atime -ctime -size -empty -perm -user -group -inum -links"))


def _analyze_find(call: ProgramCall) -> str:
    start = next(
        (at for at, arg in enumerate(call.args) if at and arg[:1] in ("-", "(", "!") and not _is_leading_option(arg)),
        len(call.args),
    )
    if call.args and call.args[0][:1] in ("-", "(", "!") and not _is_leading_option(call.args[0]):
        start = 0
    roots = [arg for arg in call.args[:start] if not _is_leading_option(arg)] or ["."]
    tests = call.args[start:]
    found = _build_match_patterns(roots, tests)
    is_filtered = (
        any(test in _NAME_TESTS or test in _FILTER_TESTS for test in tests) and "-o" not in tests and "-or" not in tests
    )
    for at, test in enumerate(tests):
        if test == "-delete":
            _analyze_delete(call, roots, found, is_filtered=is_filtered)
        elif test in ("-fprint", "-fprintf", "-fls", "-fprint0"):
            call.record_write(*tests[at + 1 : at + 2])
        elif test in _EXEC_ACTIONS:
            _analyze_exec(call, tests[at + 1 :], found, roots, is_filtered=is_filtered)
    return "\n".join(found)


def _is_leading_option(arg: str) -> bool:
    return arg in ("-H", "-L", "-P") or arg.startswith(("-O", "-D"))


def _build_match_patterns(roots: Sequence[str], tests: Sequence[str]) -> list[str]:
    """Return wildcard patterns for the matched files: each root combined with each requested name."""
    names = [
        tests[at + 1].rpartition("/")[2]
        for at, test in enumerate(tests[:-1])
        if test in _NAME_TESTS and tests[max(at - 1, 0)] not in ("!", "-not") and "regex" not in test
    ]
    if "-o" in tests or "-or" in tests:
        names = names if sum(test in ("-o", "-or") for test in tests) < len(names) else []
    is_filtered = any(test in _FILTER_TESTS or "regex" in test for test in tests)
    patterns = names or ["*.found" if is_filtered else "*"]
    return [f"{root.rstrip('/') or '/'}/*/{name}".replace("//", "/") for root in roots for name in patterns]


def _analyze_delete(
    call: ProgramCall, roots: Sequence[str], matched_paths: Sequence[str], *, is_filtered: bool
) -> None:
    call.add_risk(Risk.CHANGING)
    for path in matched_paths if is_filtered else roots:
        call.record_delete(path, is_recursive=True)


def _analyze_exec(
    call: ProgramCall,
    arguments: Sequence[str],
    matched_paths: Sequence[str],
    roots: Sequence[str],
    *,
    is_filtered: bool,
) -> None:
    end = next(
        (at for at, arg in enumerate(arguments) if arg == ";" or (arg == "+" and arguments[at - 1 : at] == ["{}"])),
        len(arguments),
    )
    argv = arguments[:end]
    if not argv:
        return
    # Without a filter, the first match is the root itself.
    paths = list(matched_paths) if is_filtered else [*matched_paths, *roots]
    name = argv[0].rpartition("/")[2]
    if not is_filtered and name in ("rm", "shred", "unlink"):
        call.add_risk(Risk.RISKY, f"deletes everything in {printable(' '.join(roots))}")
    for path in paths:
        call.analyze_program([arg.replace("{}", path) for arg in argv])


def _analyze_fd(call: ProgramCall) -> str:
    options = ("-x", "--exec", "-X", "--exec-batch")
    at = next((at for at, arg in enumerate(call.args) if arg in options), -1)
    if at >= 0:
        argv = call.args[at + 1 :]
        call.analyze_program(
            [*argv, "*.found"] if "{}" not in " ".join(argv) else [arg.replace("{}", "*.found") for arg in argv]
        )
    return "*.found"


PROGRAMS: dict[str, ProgramAnalyzer] = {
    "find": _analyze_find,
    "gfind": _analyze_find,
    "fd": _analyze_fd,
    "fdfind": _analyze_fd,
}
