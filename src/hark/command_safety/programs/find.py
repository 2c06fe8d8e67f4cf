"""What find and its kin do: whom they find, what they run for it, and what they remove."""

from collections.abc import Sequence

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.unknown_marks import shown

_RUNNING = ("-exec", "-execdir", "-ok", "-okdir")
_NAMING = ("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname")
_CHOOSING = (
    "-newer",
    "-mtime",
    "-mmin",
    "-atime",
    "-ctime",
    "-size",
    "-empty",
    "-perm",
    "-user",
    "-group",
    "-inum",
    "-links",
)


def _find(call: ProgramCall) -> str:
    start = next(
        (at for at, arg in enumerate(call.args) if at and arg[:1] in ("-", "(", "!") and not _is_leading(arg)),
        len(call.args),
    )
    if call.args and call.args[0][:1] in ("-", "(", "!") and not _is_leading(call.args[0]):
        start = 0
    roots = [arg for arg in call.args[:start] if not _is_leading(arg)] or ["."]
    tests = call.args[start:]
    found = _found(roots, tests)
    is_chosen = any(test in _NAMING or test in _CHOOSING for test in tests) and "-o" not in tests and "-or" not in tests
    for at, test in enumerate(tests):
        if test == "-delete":
            _delete(call, roots, found, is_chosen=is_chosen)
        elif test in ("-fprint", "-fprintf", "-fls", "-fprint0"):
            call.writes(*tests[at + 1 : at + 2])
        elif test in _RUNNING:
            _execute(call, tests[at + 1 :], found, roots, is_chosen=is_chosen)
    return "\n".join(found)


def _is_leading(arg: str) -> bool:
    return arg in ("-H", "-L", "-P") or arg.startswith(("-O", "-D"))


def _found(roots: Sequence[str], tests: Sequence[str]) -> list[str]:
    """Return patterns that fit all that is found: in each root, with the name that is asked for."""
    names = [
        tests[at + 1].rpartition("/")[2]
        for at, test in enumerate(tests[:-1])
        if test in _NAMING and tests[max(at - 1, 0)] not in ("!", "-not") and "regex" not in test
    ]
    if "-o" in tests or "-or" in tests:
        names = names if sum(test in ("-o", "-or") for test in tests) < len(names) else []
    is_chosen = any(test in _CHOOSING or "regex" in test for test in tests)
    patterns = names or ["*.found" if is_chosen else "*"]
    return [f"{root.rstrip('/') or '/'}/*/{name}".replace("//", "/") for root in roots for name in patterns]


def _delete(call: ProgramCall, roots: Sequence[str], found: Sequence[str], *, is_chosen: bool) -> None:
    call.note(Risk.CHANGING)
    for path in found if is_chosen else roots:
        call.deletes(path, is_recursive=True)


def _execute(
    call: ProgramCall, rest: Sequence[str], found: Sequence[str], roots: Sequence[str], *, is_chosen: bool
) -> None:
    end = next(
        (at for at, arg in enumerate(rest) if arg == ";" or (arg == "+" and rest[at - 1 : at] == ["{}"])), len(rest)
    )
    argv = rest[:end]
    if not argv:
        return
    # What is found first is the root itself, unless something more is asked for.
    paths = list(found) if is_chosen else [*found, *roots]
    name = argv[0].rpartition("/")[2]
    if not is_chosen and name in ("rm", "shred", "unlink"):
        call.note(Risk.RISKY, f"removes all that is in {shown(' '.join(roots))}")
    for path in paths:
        call.run([arg.replace("{}", path) for arg in argv])


def _fd(call: ProgramCall) -> str:
    options = ("-x", "--exec", "-X", "--exec-batch")
    at = next((at for at, arg in enumerate(call.args) if arg in options), -1)
    if at >= 0:
        argv = call.args[at + 1 :]
        call.run([*argv, "*.found"] if "{}" not in " ".join(argv) else [arg.replace("{}", "*.found") for arg in argv])
    return "*.found"


PROGRAMS: dict[str, Judge] = {"find": _find, "gfind": _find, "fd": _fd, "fdfind": _fd}
