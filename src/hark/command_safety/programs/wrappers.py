"""Analyzers for programs that run other programs: env, sudo, xargs, and many more."""

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import SECRET, UNKNOWN
from hark.command_safety.following.options import parse_options, split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall
from hark.command_safety.programs.builtins import check_variable

_ASSIGNED = re.compile(r"([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


# If an argument of an unknown program is one of these names, it is analyzed as a program to run.
RECOGNIZED_PROGRAMS = frozenset(
    split_names(
        "rm dd shred chmod chown mv tee cp find sh bash dash zsh ksh curl wget sudo doas mkfs wipefs nc ncat "
        "eval xargs env python python3 perl ruby node git kill iptables ln truncate scp rsync ssh busybox "
        "shutdown rimraf"
    )
)


class WrapperOptions(Struct, frozen=True):
    """How a wrapper program, such as sudo, receives the command that it runs.

    `valued` lists the options that take a value. `skipped_operands` is the number of operands before the command.
    If `verbs` is set, the command follows one of these verbs. Values of `script_options` are shell scripts. `risk` is
    the wrapper's own risk. With `is_shell_text`, the operands together form a shell script.
    """

    valued: tuple[str, ...] = ()
    skipped_operands: int = 0
    verbs: tuple[str, ...] = ()
    script_options: tuple[str, ...] = ()
    risk: Risk = Risk.READING
    is_shell_text: bool = False


_SUDO_VALUED = tuple(split_names("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --chdir --prompt"))
_RUN_VALUED = tuple(
    split_names("--with --python -p --from --package -E --extra --group --env-file --directory --project --index-url")
)
_WRAPPERS = {
    "sudo": WrapperOptions(_SUDO_VALUED, risk=Risk.RISKY),
    "doas": WrapperOptions(("-u", "-C", "-a"), risk=Risk.RISKY),
    "pkexec": WrapperOptions(("--user",), risk=Risk.RISKY),
    "su": WrapperOptions(
        ("-c", "--command", "-s", "--shell", "-g", "-G", "-w"), 9, script_options=("-c", "--command"), risk=Risk.RISKY
    ),
    "runuser": WrapperOptions(
        ("-u", "-c", "--command", "-s", "-g", "-G"), script_options=("-c", "--command"), risk=Risk.RISKY
    ),
    "gosu": WrapperOptions(skipped_operands=1, risk=Risk.RISKY),
    "su-exec": WrapperOptions(skipped_operands=1, risk=Risk.RISKY),
    "setpriv": WrapperOptions(("--reuid", "--regid", "--groups"), risk=Risk.RISKY),
    "chroot": WrapperOptions(("--userspec", "--groups"), 1, risk=Risk.RISKY),
    "unshare": WrapperOptions(("-R", "-w", "-S", "-G"), risk=Risk.RISKY),
    "nsenter": WrapperOptions(("-t", "--target", "-S", "-G"), risk=Risk.RISKY),
    "systemd-run": WrapperOptions(("-p", "-u", "--unit", "--property", "-E", "--on-active", "-d"), risk=Risk.RISKY),
    "nohup": WrapperOptions(),
    "setsid": WrapperOptions(),
    "nice": WrapperOptions(("-n", "--adjustment")),
    "ionice": WrapperOptions(("-c", "-n", "-p", "--class", "--classdata")),
    "timeout": WrapperOptions(("-s", "-k", "--signal", "--kill-after"), 1),
    "gtimeout": WrapperOptions(("-s", "-k", "--signal", "--kill-after"), 1),
    "time": WrapperOptions(("-f", "-o", "--format", "--output")),
    "stdbuf": WrapperOptions(("-i", "-o", "-e")),
    "builtin": WrapperOptions(),
    "exec": WrapperOptions(("-a",)),
    "chronic": WrapperOptions(),
    "unbuffer": WrapperOptions(),
    "caffeinate": WrapperOptions(("-t", "-w")),
    "taskset": WrapperOptions(("-c", "--cpu-list"), 0),
    "chrt": WrapperOptions((), 1),
    "numactl": WrapperOptions(("-C", "-N", "-m")),
    "prlimit": WrapperOptions(),
    "cpulimit": WrapperOptions(("-l", "-p")),
    "setarch": WrapperOptions((), 1),
    "strace": WrapperOptions(("-e", "-o", "-p", "-s", "-u", "-E", "-P", "-I", "-O", "-S", "-b", "-a", "-X")),
    "ltrace": WrapperOptions(("-e", "-o", "-p", "-s", "-u", "-n", "-a")),
    "valgrind": WrapperOptions(),
    "perf": WrapperOptions(("-e", "-o", "-F"), 1),
    "fakeroot": WrapperOptions(("-i", "-s", "-l")),
    "xvfb-run": WrapperOptions(("-n", "-s", "-e", "-f", "-p", "-w", "--server-args", "--server-num")),
    "dbus-run-session": WrapperOptions(),
    "torsocks": WrapperOptions(),
    "proxychains": WrapperOptions(("-f",)),
    "proxychains4": WrapperOptions(("-f",)),
    "rlwrap": WrapperOptions(),
    "entr": WrapperOptions(),
    "sem": WrapperOptions(("-j", "--id"), is_shell_text=True),
    "flock": WrapperOptions(("-w", "-E", "-c", "--timeout", "--command"), 1, script_options=("-c", "--command")),
    "script": WrapperOptions(
        ("-c", "--command", "-t", "-T", "-I", "-O", "-B", "-m", "-E", "-o"), 99, script_options=("-c", "--command")
    ),
    "watch": WrapperOptions(("-n", "--interval", "-q"), is_shell_text=True),
    "watchexec": WrapperOptions(
        ("-w", "-e", "-i", "-f", "--watch", "--exts", "--ignore", "-s", "-d"), is_shell_text=True
    ),
    "nodemon": WrapperOptions(
        ("-w", "-e", "-i", "--watch", "--ext", "-x", "--exec", "--delay"), 0, script_options=("-x", "--exec")
    ),
    "concurrently": WrapperOptions(("-n", "-c", "-k"), is_shell_text=True),
    "nix-shell": WrapperOptions(("-p", "-A", "-I"), 99, script_options=("--run", "--command")),
    "npx": WrapperOptions(("-p", "--package", "-c", "--call"), script_options=("-c", "--call")),
    "bunx": WrapperOptions(),
    "uvx": WrapperOptions(_RUN_VALUED),
    "pipx": WrapperOptions(("--spec", "--python"), verbs=("run",)),
    "uv": WrapperOptions(_RUN_VALUED, verbs=("run",)),
    "poetry": WrapperOptions(("-C", "-P"), verbs=("run",)),
    "pipenv": WrapperOptions(verbs=("run",)),
    "pdm": WrapperOptions(("-p",), verbs=("run",)),
    "rye": WrapperOptions(verbs=("run",)),
    "hatch": WrapperOptions(("-e",), verbs=("run",)),
    "bundle": WrapperOptions(verbs=("exec",)),
    "conda": WrapperOptions(("-n", "-p", "--name", "--prefix"), verbs=("run",)),
    "mamba": WrapperOptions(("-n", "-p"), verbs=("run",)),
    "mise": WrapperOptions(verbs=("exec", "x")),
    "asdf": WrapperOptions(verbs=("exec",)),
    "direnv": WrapperOptions(skipped_operands=1, verbs=("exec",)),
    "doppler": WrapperOptions(("-p", "-c"), verbs=("run",)),
    "op": WrapperOptions(verbs=("run",)),
    "dotenv": WrapperOptions(("-f", "-e", "-c")),
    "cross-env": WrapperOptions(),
    "busybox": WrapperOptions(),
    "toybox": WrapperOptions(),
    "coproc": WrapperOptions(),
    "noglob": WrapperOptions(),
    "nocorrect": WrapperOptions(),
    "-": WrapperOptions(),
}


def analyze_wrapped_command(call: ProgramCall, argv: Sequence[str]) -> str:
    """Analyze a command that may start with assignments such as `FOO=1`."""
    rest = list(argv)
    before = call.context.state
    call.context.state = before.copy()
    while rest and (match := _ASSIGNED.fullmatch(rest[0])):
        check_variable(call, match[1], match[2])
        call.context.state.assign(match[1], (match[2],))
        rest.pop(0)
    output = call.analyze_program(rest, call.stdin)
    call.context.state = before
    return output


def analyze_recognized_arguments(call: ProgramCall) -> None:
    """Analyze arguments of an unknown program that look like a command."""
    for at, arg in enumerate(call.args):
        if arg.rpartition("/")[2] in RECOGNIZED_PROGRAMS:
            call.analyze_program(call.args[at:], call.stdin)
            return
        if " " in arg.strip() and arg.split()[0].rpartition("/")[2] in RECOGNIZED_PROGRAMS:
            call.context.analyze_subshell(arg, call.stdin, ())


def _analyze_wrapper(call: ProgramCall) -> str | None:
    wrapper = _WRAPPERS[call.name]
    args = list(call.args)
    if wrapper.verbs:
        at = next((at for at, arg in enumerate(args) if arg in wrapper.verbs), -1)
        if at < 0:
            return analyze_recognized_arguments(call)
        args = args[at + 1 :]
    if wrapper.risk:
        rights = "administrator rights" if call.name in ("sudo", "doas", "pkexec") else "different rights"
        call.add_risk(wrapper.risk, f"uses {call.name} ({rights})")
    options = parse_options(
        args, (*wrapper.valued, *wrapper.script_options), stops_at_operand=wrapper.skipped_operands < 9
    )
    for text in options.values(*wrapper.script_options):
        call.context.analyze_subshell(text, call.stdin, ())
    if call.name in ("strace", "ltrace", "time", "perf"):
        call.record_write(*options.values("-o", "--output"))
    argv = list(options.operands[wrapper.skipped_operands :])
    if call.name == "taskset" and argv and re.fullmatch(r"(0x)?[0-9a-fA-F,-]+", argv[0]):
        argv = argv[1:]
    if call.name in ("sudo", "doas") and not argv:
        return call.unknown_output()
    if wrapper.is_shell_text:
        return call.analyze_script(" ".join(argv), call.stdin)
    if not argv:
        call.add_risk(Risk.CHANGING)
        return None
    return analyze_wrapped_command(call, argv)


def _analyze_env(call: ProgramCall) -> str:
    options = call.parse_options(
        "-u", "-C", "-S", "--unset", "--chdir", "--split-string", "--argv0", "-a", stops_at_operand=True
    )
    argv = list(options.operands)
    for text in reversed(options.values("-S", "--split-string")):
        argv = [*text.split(), *argv]
    before = call.context.state
    call.context.state = before.copy()
    for folder in options.values("-C", "--chdir"):
        call.change_folder(folder)
    is_running = any(not _ASSIGNED.fullmatch(arg) for arg in argv)
    output = analyze_wrapped_command(call, argv) if is_running else UNKNOWN + SECRET
    call.context.state = before
    return output


def _analyze_command_builtin(call: ProgramCall) -> str:
    if call.args[:1] in (["-v"], ["-V"], ["-pv"]):
        return "\n".join(call.args[1:])
    argv = call.args[1:] if call.args[:1] in (["-p"], ["--"]) else call.args
    return call.analyze_program(argv, call.stdin)


def _analyze_xargs(call: ProgramCall) -> str:
    options = call.parse_options(
        *("-I", "-n", "-P", "-L", "-s", "-d", "-a", "-E", "--max-args", "--max-procs", "--replace", "--arg-file"),
        *("--delimiter", "--max-lines", "-J", "-R", "-S"),
        stops_at_operand=True,
    )
    stdin = UNKNOWN if options.has("-a", "--arg-file") or call.stdin is None else call.stdin
    argv = list(options.operands) or ["echo"]
    marks = options.values("-I", "--replace", "-J") or (["{}"] if options.has("-i", "--replace") else [])
    is_by_line = bool(marks) or options.has("-0", "--null", "-d", "--delimiter", "-L", "--max-lines")
    words = [line for line in re.split(r"[\n\0]", stdin) if line] if is_by_line else _split_quoted(stdin)
    if not words:
        return ""
    if marks:
        output = [call.analyze_program([arg.replace(marks[0], word) for arg in argv]) for word in words[:64]]
        return "\n".join(output) if len(words) <= 64 else call.analyze_program([*argv, UNKNOWN])
    return call.analyze_program([*argv, *words])


def _split_quoted(text: str) -> list[str]:
    """Split text into words, interpreting quotes as xargs does."""
    if not re.search(r"['\"\\]", text):
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:
        return [UNKNOWN, *text.split()]


def _analyze_parallel(call: ProgramCall) -> str:
    options = call.parse_options(
        *("-j", "--jobs", "-I", "-n", "-N", "-a", "--arg-file", "-S", "--sshlogin", "--delay", "--timeout", "-d"),
        stops_at_operand=True,
    )
    operands = list(options.operands)
    at = next((at for at, arg in enumerate(operands) if re.fullmatch(":::+[+]?", arg)), len(operands))
    items = [arg for arg in operands[at + 1 :] if not arg.startswith(":::")] or (call.stdin or UNKNOWN).split("\n")
    script = " ".join(operands[:at])
    for item in items[:64]:
        text = script.replace("{}", item) if "{}" in script else f"{script} {item}"
        call.analyze_script(text.strip())
    if len(items) > 64:
        call.analyze_script(f"{script} {UNKNOWN}")
    return UNKNOWN


def _analyze_terminal_multiplexer(call: ProgramCall) -> str | None:
    """Analyze tmux and screen, which run their arguments and the keys sent to them."""
    call.add_risk(Risk.CHANGING)
    for arg in call.args:
        if " " in arg:
            call.analyze_script(arg)
    if call.name == "screen":
        options = call.parse_options("-S", "-c", "-h", "-t", "-s", "-T", "-X", stops_at_operand=True)
        if options.operands:
            return call.analyze_program(options.operands)
    return analyze_recognized_arguments(call)


def _analyze_scheduler(call: ProgramCall) -> None:
    call.add_risk(Risk.RISKY, f"{call.name} runs a command later")
    call.context.analyze_subshell(call.stdin or "", None, ())


def _analyze_package_exec(call: ProgramCall) -> str | None:
    """Analyze npm exec, yarn dlx and similar commands that run a package."""
    at = next((at for at, arg in enumerate(call.args) if arg in ("exec", "x", "dlx")), -1)
    if at < 0:
        return None
    options = parse_options(
        call.args[at + 1 :], ("-p", "--package", "-c", "--call", "-w", "--workspace"), stops_at_operand=True
    )
    for text in options.values("-c", "--call"):
        call.analyze_script(text)
    return call.analyze_program(options.operands, call.stdin) if options.operands else None


PROGRAMS: dict[str, ProgramAnalyzer] = {
    **dict.fromkeys(_WRAPPERS, _analyze_wrapper),
    **dict.fromkeys(("tmux", "screen"), _analyze_terminal_multiplexer),
    **dict.fromkeys(("at", "batch"), _analyze_scheduler),
    "env": _analyze_env,
    "genv": _analyze_env,
    "command": _analyze_command_builtin,
    "xargs": _analyze_xargs,
    "gxargs": _analyze_xargs,
    "parallel": _analyze_parallel,
}
PACKAGE_EXEC_PROGRAMS: dict[str, ProgramAnalyzer] = dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _analyze_package_exec)
