"""Analyzers for a shell's built-in commands."""

import re

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import UNKNOWN, printable
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=(.*)", re.DOTALL)
# Variables that change which program a name refers to, or load code into programs.
_RISKY_VARIABLES = re.compile(
    r"PATH|CDPATH|LD_\w+|DYLD_\w+|BASH_ENV|ENV|PERL5OPT|PERL5LIB|RUBYOPT|PYTHONSTARTUP|PYTHONHOME|SHELLOPTS|BASHOPTS|FPATH"
    r"|HARK_\w+|BASH_FUNC_.*"
)
_COMMAND_VARIABLES = re.compile(
    r"(?:GIT_|HG|SVN_|MAN|SUDO_|SYSTEMD_|LESS|READNULL)?(?:PAGER|EDITOR|VISUAL|ASKPASS|SSH_COMMAND|EXTERNAL_DIFF|PROXY_COMMAND)"
    r"|GIT_(?:SEQUENCE_EDITOR|SSH)|PROMPT_COMMAND|PS[0-4]|LESSOPEN|LESSCLOSE|BROWSER|RSYNC_RSH|CVS_RSH|FCEDIT|TAR_OPTIONS|FZF_DEFAULT_COMMAND"
)
_RISKY_NODE = re.compile(r"(?:-r|--require|--import|--loader|--eval)\b")


def check_variable(call: ProgramCall, name: str, value: str) -> None:
    """Record a risk if the variable can make programs run other code."""
    if _RISKY_VARIABLES.fullmatch(name):
        call.add_risk(Risk.RISKY, f"sets {name}, which can make programs run other code")
        call.context.findings.add_command(printable(f"{name}={value}"))
    elif _COMMAND_VARIABLES.fullmatch(name):
        # A prompt isn't a command itself, but may contain commands.
        commands = re.findall(r"\$\(([^)]*)", value) if name.startswith("PS") else [value]
        for command in filter(None, commands):
            call.context.analyze_subshell(command, None, ())
    elif name == "NODE_OPTIONS" and _RISKY_NODE.search(value):
        call.add_risk(Risk.RISKY, "sets NODE_OPTIONS, which can make programs run other code")


def _analyze_cd(call: ProgramCall) -> str:
    operands = [arg for arg in call.args if arg == "-" or not arg.startswith("-")]
    target = operands[0] if operands else "~"
    state = call.context.state
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
        call.change_folder(target)
    return ""


def _analyze_declare(call: ProgramCall) -> str:
    for arg in call.args:
        match = _ASSIGNED.fullmatch(arg)
        if match is None:
            continue
        check_variable(call, match[1], match[2])
        # An array is a separate assignment, so its argument has nothing after the equals sign.
        if match[2] or match[1] not in call.context.state.arrays:
            call.context.state.assign(match[1], (match[2],))
    call.add_risk(Risk.CHANGING)
    return ""


def _analyze_read(call: ProgramCall) -> str:
    is_array = call.name != "read"
    options = call.parse_options(
        *(("-C", "-c", "-d", "-n", "-O", "-s", "-u") if is_array else ("-a", "-d", "-i", "-n", "-N", "-p", "-t", "-u"))
    )
    separators = "".join(call.context.state.variables.get("IFS", ())) + " \t"
    lines = tuple((call.stdin or UNKNOWN).split("\n"))
    words = tuple(word for line in lines for word in (line, *re.split(f"[{re.escape(separators)}]+", line)))
    for name in () if is_array else options.operands or ("REPLY",):
        call.context.state.assign(name, words)
    for name in options.values("-a"):
        call.context.state.assign_array(name, tuple((call.stdin or UNKNOWN).split()))
    if is_array:
        for name in options.operands or ("MAPFILE",):
            call.context.state.assign_array(name, lines)
        for command in options.values("-C"):
            call.analyze_script(command)
    call.add_risk(Risk.CHANGING)
    return ""


def _analyze_eval(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    return call.analyze_script(" ".join(arg for arg in call.args if arg != "--"), call.stdin)


def _analyze_alias(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    for arg in call.args:
        name, equals, value = arg.partition("=")
        if equals:
            call.context.aliases[name] = value
            if value:
                call.context.analyze_subshell(value, None, ())
    return ""


def _analyze_set(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    args = call.args
    if "--" in args:
        call.context.state.assign_array("@", tuple(args[args.index("--") + 1 :]))
    elif args and args[0][:1] not in ("-", "+"):
        call.context.state.assign_array("@", tuple(args))
    return UNKNOWN if not args else ""


def _analyze_shift(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    state = call.context.state
    count = int(call.args[0]) if call.args and call.args[0].isdigit() and len(call.args[0]) < 5 else 1
    if "@" in state.arrays:
        state.assign_array("@", state.arrays["@"][count:])
    return ""


def _analyze_unset(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    for name in call.args:
        call.context.state.forget(name)
    return ""


def _analyze_exit(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    call.context.state.is_ended = True
    return ""


def _analyze_trap(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    operands = [arg for arg in call.args if arg not in ("-", "--", "-p", "-l")]
    return call.analyze_script(operands[0]) if operands else ""


def _analyze_complete(call: ProgramCall) -> str:
    call.add_risk(Risk.RISKY, f"{call.name} makes the shell run a command later")
    for value in call.parse_options("-C", "-F", "-x", "-W", "-f", "-c").values("-C", "-x"):
        call.analyze_script(value)
    return ""


def _analyze_history(call: ProgramCall) -> str:
    is_wiping = any(arg.startswith("-") and set(arg) & set("cdw") for arg in call.args)
    call.add_risk(Risk.RISKY if is_wiping else Risk.CHANGING, "history clears or rewrites the shell's command history")
    return UNKNOWN


def _analyze_enable(call: ProgramCall) -> str:
    is_loading = any(arg.startswith("-") and "f" in arg for arg in call.args)
    call.add_risk(Risk.RISKY if is_loading else Risk.CHANGING, "enable -f loads code into the shell")
    return ""


def _analyze_hash(call: ProgramCall) -> str:
    is_renaming = any(arg.startswith("-") and "p" in arg for arg in call.args)
    call.add_risk(Risk.RISKY if is_renaming else Risk.CHANGING, "hash -p makes a command name run a different program")
    return ""


PROGRAMS: dict[str, ProgramAnalyzer] = {
    **dict.fromkeys(("cd", "chdir", "pushd", "popd"), _analyze_cd),
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly", "setenv"), _analyze_declare),
    **dict.fromkeys(("read", "mapfile", "readarray"), _analyze_read),
    **dict.fromkeys(("exit", "return", "logout"), _analyze_exit),
    **dict.fromkeys(("complete", "bind"), _analyze_complete),
    "eval": _analyze_eval,
    "alias": _analyze_alias,
    "set": _analyze_set,
    "shift": _analyze_shift,
    "unset": _analyze_unset,
    "trap": _analyze_trap,
    "history": _analyze_history,
    "enable": _analyze_enable,
    "hash": _analyze_hash,
}
