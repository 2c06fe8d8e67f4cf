"""What the programs run that run other programs: env, sudo, xargs, and many more."""

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import names, read_options
from hark.command_safety.following.unknown_marks import SECRET, UNKNOWN
from hark.command_safety.programs.builtins import judge_variable

_ASSIGNED = re.compile(r"([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


# In an argument of an unknown program, one of these is taken for a program that it runs.
TELLING = frozenset(
    names(
        "rm dd shred chmod chown mv tee cp find sh bash dash zsh ksh curl wget sudo doas mkfs wipefs nc ncat "
        "eval xargs env python python3 perl ruby node git kill iptables ln truncate scp rsync ssh busybox "
        "shutdown rimraf"
    )
)


class Wrapper(Struct, frozen=True):
    """How a program is told what to run: its options with values, and how many operands come before.

    `verbs`: it runs something only behind one of these. `script`: options whose value is a script. `risk` is its own.
    """

    valued: tuple[str, ...] = ()
    skipped: int = 0
    verbs: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    risk: Risk = Risk.READING
    is_text: bool = False


_SUDO = (
    "-u",
    "-g",
    "-h",
    "-p",
    "-C",
    "-r",
    "-t",
    "-T",
    "-U",
    "-D",
    "-R",
    "--user",
    "--group",
    "--host",
    "--chdir",
    "--prompt",
)
_RUN = (
    "--with",
    "--python",
    "-p",
    "--from",
    "--package",
    "-E",
    "--extra",
    "--group",
    "--env-file",
    "--directory",
    "--project",
    "--index-url",
)
_WRAPPERS = {
    "sudo": Wrapper(_SUDO, risk=Risk.RISKY),
    "doas": Wrapper(("-u", "-C", "-a"), risk=Risk.RISKY),
    "pkexec": Wrapper(("--user",), risk=Risk.RISKY),
    "su": Wrapper(
        ("-c", "--command", "-s", "--shell", "-g", "-G", "-w"), 9, script=("-c", "--command"), risk=Risk.RISKY
    ),
    "runuser": Wrapper(("-u", "-c", "--command", "-s", "-g", "-G"), script=("-c", "--command"), risk=Risk.RISKY),
    "gosu": Wrapper(skipped=1, risk=Risk.RISKY),
    "su-exec": Wrapper(skipped=1, risk=Risk.RISKY),
    "setpriv": Wrapper(("--reuid", "--regid", "--groups"), risk=Risk.RISKY),
    "chroot": Wrapper(("--userspec", "--groups"), 1, risk=Risk.RISKY),
    "unshare": Wrapper(("-R", "-w", "-S", "-G"), risk=Risk.RISKY),
    "nsenter": Wrapper(("-t", "--target", "-S", "-G"), risk=Risk.RISKY),
    "systemd-run": Wrapper(("-p", "-u", "--unit", "--property", "-E", "--on-active", "-d"), risk=Risk.RISKY),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "nice": Wrapper(("-n", "--adjustment")),
    "ionice": Wrapper(("-c", "-n", "-p", "--class", "--classdata")),
    "timeout": Wrapper(("-s", "-k", "--signal", "--kill-after"), 1),
    "gtimeout": Wrapper(("-s", "-k", "--signal", "--kill-after"), 1),
    "time": Wrapper(("-f", "-o", "--format", "--output")),
    "stdbuf": Wrapper(("-i", "-o", "-e")),
    "builtin": Wrapper(),
    "exec": Wrapper(("-a",)),
    "chronic": Wrapper(),
    "unbuffer": Wrapper(),
    "caffeinate": Wrapper(("-t", "-w")),
    "taskset": Wrapper(("-c", "--cpu-list"), 0),
    "chrt": Wrapper((), 1),
    "numactl": Wrapper(("-C", "-N", "-m")),
    "prlimit": Wrapper(),
    "cpulimit": Wrapper(("-l", "-p")),
    "setarch": Wrapper((), 1),
    "strace": Wrapper(("-e", "-o", "-p", "-s", "-u", "-E", "-P", "-I", "-O", "-S", "-b", "-a", "-X")),
    "ltrace": Wrapper(("-e", "-o", "-p", "-s", "-u", "-n", "-a")),
    "valgrind": Wrapper(),
    "perf": Wrapper(("-e", "-o", "-F"), 1),
    "fakeroot": Wrapper(("-i", "-s", "-l")),
    "xvfb-run": Wrapper(("-n", "-s", "-e", "-f", "-p", "-w", "--server-args", "--server-num")),
    "dbus-run-session": Wrapper(),
    "torsocks": Wrapper(),
    "proxychains": Wrapper(("-f",)),
    "proxychains4": Wrapper(("-f",)),
    "rlwrap": Wrapper(),
    "entr": Wrapper(),
    "sem": Wrapper(("-j", "--id"), is_text=True),
    "flock": Wrapper(("-w", "-E", "-c", "--timeout", "--command"), 1, script=("-c", "--command")),
    "script": Wrapper(
        ("-c", "--command", "-t", "-T", "-I", "-O", "-B", "-m", "-E", "-o"), 99, script=("-c", "--command")
    ),
    "watch": Wrapper(("-n", "--interval", "-q"), is_text=True),
    "watchexec": Wrapper(("-w", "-e", "-i", "-f", "--watch", "--exts", "--ignore", "-s", "-d"), is_text=True),
    "nodemon": Wrapper(("-w", "-e", "-i", "--watch", "--ext", "-x", "--exec", "--delay"), 0, script=("-x", "--exec")),
    "concurrently": Wrapper(("-n", "-c", "-k"), is_text=True),
    "nix-shell": Wrapper(("-p", "-A", "-I"), 99, script=("--run", "--command")),
    "npx": Wrapper(("-p", "--package", "-c", "--call"), script=("-c", "--call")),
    "bunx": Wrapper(),
    "uvx": Wrapper(_RUN),
    "pipx": Wrapper(("--spec", "--python"), verbs=("run",)),
    "uv": Wrapper(_RUN, verbs=("run",)),
    "poetry": Wrapper(("-C", "-P"), verbs=("run",)),
    "pipenv": Wrapper(verbs=("run",)),
    "pdm": Wrapper(("-p",), verbs=("run",)),
    "rye": Wrapper(verbs=("run",)),
    "hatch": Wrapper(("-e",), verbs=("run",)),
    "bundle": Wrapper(verbs=("exec",)),
    "conda": Wrapper(("-n", "-p", "--name", "--prefix"), verbs=("run",)),
    "mamba": Wrapper(("-n", "-p"), verbs=("run",)),
    "mise": Wrapper(verbs=("exec", "x")),
    "asdf": Wrapper(verbs=("exec",)),
    "direnv": Wrapper(skipped=1, verbs=("exec",)),
    "doppler": Wrapper(("-p", "-c"), verbs=("run",)),
    "op": Wrapper(verbs=("run",)),
    "dotenv": Wrapper(("-f", "-e", "-c")),
    "cross-env": Wrapper(),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "coproc": Wrapper(),
    "noglob": Wrapper(),
    "nocorrect": Wrapper(),
    "-": Wrapper(),
}


def run_inner(call: ProgramCall, argv: Sequence[str]) -> str:
    """Judge what is run behind assignments such as `FOO=1`."""
    rest = list(argv)
    before = call.runner.state
    call.runner.state = before.copy()
    while rest and (match := _ASSIGNED.fullmatch(rest[0])):
        judge_variable(call, match[1], match[2])
        call.runner.state.assign(match[1], (match[2],))
        rest.pop(0)
    printed = call.run(rest, call.feed)
    call.runner.state = before
    return printed


def run_telling(call: ProgramCall) -> None:
    """Judge what an argument seems to run: nothing else is known of the program that it is given to."""
    for at, arg in enumerate(call.args):
        if arg.rpartition("/")[2] in TELLING:
            call.run(call.args[at:], call.feed)
            return
        if " " in arg.strip() and arg.split()[0].rpartition("/")[2] in TELLING:
            call.runner.run_child(arg, call.feed, ())


def _wrapper(call: ProgramCall) -> str | None:
    wrapper = _WRAPPERS[call.name]
    args = list(call.args)
    if wrapper.verbs:
        at = next((at for at, arg in enumerate(args) if arg in wrapper.verbs), -1)
        if at < 0:
            return run_telling(call)
        args = args[at + 1 :]
    if wrapper.risk:
        call.note(wrapper.risk, f"{call.name} runs with other rights")
    options = read_options(args, (*wrapper.valued, *wrapper.script), is_leading=wrapper.skipped < 9)
    for text in options.values(*wrapper.script):
        call.runner.run_child(text, call.feed, ())
    if call.name in ("strace", "ltrace", "time", "perf"):
        call.writes(*options.values("-o", "--output"))
    argv = list(options.operands[wrapper.skipped :])
    if call.name == "taskset" and argv and re.fullmatch(r"(0x)?[0-9a-fA-F,-]+", argv[0]):
        argv = argv[1:]
    if call.name in ("sudo", "doas") and not argv:
        return call.default_output()
    if wrapper.is_text:
        return call.run_text(" ".join(argv), call.feed)
    if not argv:
        call.note(Risk.CHANGING)
        return None
    return run_inner(call, argv)


def _env(call: ProgramCall) -> str:
    options = call.options("-u", "-C", "-S", "--unset", "--chdir", "--split-string", "--argv0", "-a", is_leading=True)
    argv = list(options.operands)
    for text in reversed(options.values("-S", "--split-string")):
        argv = [*text.split(), *argv]
    before = call.runner.state
    call.runner.state = before.copy()
    for folder in options.values("-C", "--chdir"):
        call.changes_folder(folder)
    is_running = any(not _ASSIGNED.fullmatch(arg) for arg in argv)
    printed = run_inner(call, argv) if is_running else UNKNOWN + SECRET
    call.runner.state = before
    return printed


def _command(call: ProgramCall) -> str:
    if call.args[:1] in (["-v"], ["-V"], ["-pv"]):
        return "\n".join(call.args[1:])
    argv = call.args[1:] if call.args[:1] in (["-p"], ["--"]) else call.args
    return call.run(argv, call.feed)


def _xargs(call: ProgramCall) -> str:
    options = call.options(
        *("-I", "-n", "-P", "-L", "-s", "-d", "-a", "-E", "--max-args", "--max-procs", "--replace", "--arg-file"),
        *("--delimiter", "--max-lines", "-J", "-R", "-S"),
        is_leading=True,
    )
    fed = UNKNOWN if options.has("-a", "--arg-file") or call.feed is None else call.feed
    argv = list(options.operands) or ["echo"]
    marks = options.values("-I", "--replace", "-J") or (["{}"] if options.has("-i", "--replace") else [])
    is_by_line = bool(marks) or options.has("-0", "--null", "-d", "--delimiter", "-L", "--max-lines")
    words = [line for line in re.split(r"[\n\0]", fed) if line] if is_by_line else _unquoted(fed)
    if not words:
        return ""
    if marks:
        printed = [call.run([arg.replace(marks[0], word) for arg in argv]) for word in words[:64]]
        return "\n".join(printed) if len(words) <= 64 else call.run([*argv, UNKNOWN])
    return call.run([*argv, *words])


def _unquoted(text: str) -> list[str]:
    """Return the words of a text, as xargs reads quotes in it."""
    if not re.search(r"['\"\\]", text):
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:
        return [UNKNOWN, *text.split()]


def _parallel(call: ProgramCall) -> str:
    options = call.options(
        *("-j", "--jobs", "-I", "-n", "-N", "-a", "--arg-file", "-S", "--sshlogin", "--delay", "--timeout", "-d"),
        is_leading=True,
    )
    operands = list(options.operands)
    at = next((at for at, arg in enumerate(operands) if re.fullmatch(":::+[+]?", arg)), len(operands))
    items = [arg for arg in operands[at + 1 :] if not arg.startswith(":::")] or (call.feed or UNKNOWN).split("\n")
    script = " ".join(operands[:at])
    for item in items[:64]:
        text = script.replace("{}", item) if "{}" in script else f"{script} {item}"
        call.run_text(text.strip())
    if len(items) > 64:
        call.run_text(f"{script} {UNKNOWN}")
    return UNKNOWN


def _terminal(call: ProgramCall) -> str | None:
    """tmux and screen run what they are given; what is sent to them as keys too."""
    call.note(Risk.CHANGING)
    for arg in call.args:
        if " " in arg:
            call.run_text(arg)
    if call.name == "screen":
        options = call.options("-S", "-c", "-h", "-t", "-s", "-T", "-X", is_leading=True)
        if options.operands:
            return call.run(options.operands)
    return run_telling(call)


def _scheduler(call: ProgramCall) -> None:
    call.note(Risk.RISKY, f"{call.name} runs something later")
    call.runner.run_child(call.feed or "", None, ())


def _behind_dashes(call: ProgramCall) -> str | None:
    """npm exec, yarn dlx and others."""
    at = next((at for at, arg in enumerate(call.args) if arg in ("exec", "x", "dlx")), -1)
    if at < 0:
        return None
    options = read_options(
        call.args[at + 1 :], ("-p", "--package", "-c", "--call", "-w", "--workspace"), is_leading=True
    )
    for text in options.values("-c", "--call"):
        call.run_text(text)
    return call.run(options.operands, call.feed) if options.operands else None


PROGRAMS: dict[str, Judge] = {
    **dict.fromkeys(_WRAPPERS, _wrapper),
    **dict.fromkeys(("tmux", "screen"), _terminal),
    **dict.fromkeys(("at", "batch"), _scheduler),
    "env": _env,
    "genv": _env,
    "command": _command,
    "xargs": _xargs,
    "gxargs": _xargs,
    "parallel": _parallel,
}
BEHIND_VERBS: dict[str, Judge] = dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _behind_dashes)
