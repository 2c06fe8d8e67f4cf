"""What the commands do that a shell has in itself."""

import re

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.unknown_marks import UNKNOWN, shown

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=(.*)", re.DOTALL)
# They change which program a name means, or what runs along with it.
_RISKY_VARIABLES = re.compile(
    r"PATH|CDPATH|LD_\w+|DYLD_\w+|BASH_ENV|ENV|PERL5OPT|PERL5LIB|RUBYOPT|PYTHONSTARTUP|PYTHONHOME|SHELLOPTS|BASHOPTS|FPATH"
    r"|HARK_\w+|BASH_FUNC_.*"
)
_COMMAND_VARIABLES = re.compile(
    r"(?:GIT_|HG|SVN_|MAN|SUDO_|SYSTEMD_|LESS|READNULL)?(?:PAGER|EDITOR|VISUAL|ASKPASS|SSH_COMMAND|EXTERNAL_DIFF|PROXY_COMMAND)"
    r"|GIT_(?:SEQUENCE_EDITOR|SSH)|PROMPT_COMMAND|PS[0-4]|LESSOPEN|LESSCLOSE|BROWSER|RSYNC_RSH|CVS_RSH|FCEDIT|TAR_OPTIONS|FZF_DEFAULT_COMMAND"
)
_RISKY_NODE = re.compile(r"(?:-r|--require|--import|--loader|--eval)\b")


def judge_variable(call: ProgramCall, name: str, value: str) -> None:
    """Note it when a variable makes programs run something else."""
    if _RISKY_VARIABLES.fullmatch(name):
        call.note(Risk.RISKY, f"sets {name}, which changes what programs run")
        call.runner.verdict.add_command(shown(f"{name}={value}"))
    elif _COMMAND_VARIABLES.fullmatch(name):
        # A prompt is no command, but holds some.
        commands = re.findall(r"\$\(([^)]*)\)", value) if name.startswith("PS") else [value]
        for command in filter(None, commands):
            call.runner.run_child(command, None, ())
    elif name == "NODE_OPTIONS" and _RISKY_NODE.search(value):
        call.note(Risk.RISKY, "sets NODE_OPTIONS, which changes what programs run")


def _cd(call: ProgramCall) -> str:
    operands = [arg for arg in call.args if arg == "-" or not arg.startswith("-")]
    target = operands[0] if operands else "~"
    state = call.runner.state
    if call.name == "popd" or (target == "-" and "OLDPWD" not in state.variables) or target[:1] == "+":
        state.assign("OLDPWD", state.folders)
        known = state.variables.get("DIRSTACK")
        state.folders = known if call.name == "popd" and known else (UNKNOWN,)
    elif target == "-":
        previous = state.variables["OLDPWD"]
        state.assign("OLDPWD", state.folders)
        state.folders = previous
    else:
        if call.name == "pushd":
            state.assign("DIRSTACK", state.folders)
        call.changes_folder(target)
    return ""


def _declare(call: ProgramCall) -> str:
    for arg in call.args:
        match = _ASSIGNED.fullmatch(arg)
        if match is None:
            continue
        judge_variable(call, match[1], match[2])
        # An array comes as an assignment of its own, with nothing behind the equals sign here.
        if match[2] or match[1] not in call.runner.state.arrays:
            call.runner.state.assign(match[1], (match[2],))
    call.note(Risk.CHANGING)
    return ""


def _read(call: ProgramCall) -> str:
    is_array = call.name != "read"
    options = call.options(
        *(("-C", "-c", "-d", "-n", "-O", "-s", "-u") if is_array else ("-a", "-d", "-i", "-n", "-N", "-p", "-t", "-u"))
    )
    separators = "".join(call.runner.state.variables.get("IFS", ())) + " \t"
    lines = tuple((call.feed or UNKNOWN).split("\n"))
    words = tuple(word for line in lines for word in (line, *re.split(f"[{re.escape(separators)}]+", line)))
    for name in () if is_array else options.operands or ("REPLY",):
        call.runner.state.assign(name, words)
    for name in options.values("-a"):
        call.runner.state.assign_array(name, tuple((call.feed or UNKNOWN).split()))
    if is_array:
        for name in options.operands or ("MAPFILE",):
            call.runner.state.assign_array(name, lines)
        for command in options.values("-C"):
            call.run_text(command)
    call.note(Risk.CHANGING)
    return ""


def _eval(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    return call.run_text(" ".join(arg for arg in call.args if arg != "--"), call.feed)


def _alias(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    for arg in call.args:
        name, equals, value = arg.partition("=")
        if equals:
            call.runner.aliases[name] = value
            if value:
                call.runner.run_child(value, None, ())
    return ""


def _set(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    args = call.args
    if "--" in args:
        call.runner.state.assign_array("@", tuple(args[args.index("--") + 1 :]))
    elif args and args[0][:1] not in ("-", "+"):
        call.runner.state.assign_array("@", tuple(args))
    return UNKNOWN if not args else ""


def _shift(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    state = call.runner.state
    count = int(call.args[0]) if call.args and call.args[0].isdigit() and len(call.args[0]) < 5 else 1
    if "@" in state.arrays:
        state.assign_array("@", state.arrays["@"][count:])
    return ""


def _unset(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    for name in call.args:
        call.runner.state.forget(name)
    return ""


def _exit(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    call.runner.state.is_ended = True
    return ""


def _trap(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    operands = [arg for arg in call.args if arg not in ("-", "--", "-p", "-l")]
    return call.run_text(operands[0]) if operands else ""


def _complete(call: ProgramCall) -> str:
    call.note(Risk.RISKY, f"{call.name} makes the shell run something later")
    for value in call.options("-C", "-F", "-x", "-W", "-f", "-c").values("-C", "-x"):
        call.run_text(value)
    return ""


def _history(call: ProgramCall) -> str:
    is_wiping = any(arg.startswith("-") and set(arg) & set("cdw") for arg in call.args)
    call.note(Risk.RISKY if is_wiping else Risk.CHANGING, "history changes the record of commands")
    return UNKNOWN


def _enable(call: ProgramCall) -> str:
    is_loading = any(arg.startswith("-") and "f" in arg for arg in call.args)
    call.note(Risk.RISKY if is_loading else Risk.CHANGING, "enable -f loads a program into the shell")
    return ""


def _hash(call: ProgramCall) -> str:
    is_renaming = any(arg.startswith("-") and "p" in arg for arg in call.args)
    call.note(Risk.RISKY if is_renaming else Risk.CHANGING, "hash -p makes a name run another program")
    return ""


PROGRAMS: dict[str, Judge] = {
    **dict.fromkeys(("cd", "chdir", "pushd", "popd"), _cd),
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly", "setenv"), _declare),
    **dict.fromkeys(("read", "mapfile", "readarray"), _read),
    **dict.fromkeys(("exit", "return", "logout"), _exit),
    **dict.fromkeys(("complete", "bind"), _complete),
    "eval": _eval,
    "alias": _alias,
    "set": _set,
    "shift": _shift,
    "unset": _unset,
    "trap": _trap,
    "history": _history,
    "enable": _enable,
    "hash": _hash,
}
