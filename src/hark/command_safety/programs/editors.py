"""Analyzers for sed, awk and text editors, and for the scripts they run."""

import re

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import is_unknown
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

SCRIPT_CHARACTERS_MAX = 4000
_SED_SUBSTITUTION = re.compile(
    r"s([^\w\s\\;{}])(?:\\.|(?!\1)[^\\])*?\1(?:\\.|(?!\1)[^\\])*?\1([a-zA-Z0-9]*)[ \t]*([^;}\n]*)", re.DOTALL
)
_SED_ADDRESS = re.compile(r"(?:^|(?<=[;{\n,!]))\s*(?:/(?:\\.|[^/\\])*/|\\(.)(?:(?!\1).)*\1)[IM]*")
_SED_COMMAND = re.compile(r"(?:^|[;{}\n!,\d$~]|-e)\s*([ewW])(?:[ \t]+([^\n]*)|(?=[;}\n])|$)")
_AWK_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
_AWK_REDIRECT = re.compile(r'\bprint[f]?\b(?:"(?:\\.|[^"\\])*"|[^;}\n">])*>>?\s*("(?:\\.|[^"\\])*"|[^;}\s]+)')
_AWK_COMMAND = re.compile(r"\bsystem\s*\(|\|&?\s*getline|\|&?\s*\"|\|&\s*\w|\bprintf?\b[^;}\n|]*\|\s*\w|@load|@include")


def analyze_sed_script(call: ProgramCall, script: str) -> None:
    """Record the commands that a sed script runs and the files that it writes."""
    if len(script) > SCRIPT_CHARACTERS_MAX:
        call.add_risk(Risk.RISKY, "runs a sed script that is too long to analyze")
        return
    for match in _SED_SUBSTITUTION.finditer(script):
        flags, rest = match[2], match[3]
        if "w" in flags:
            call.record_write((flags.partition("w")[2] + rest).strip() or rest.strip())
        elif "e" in flags:
            call.add_risk(Risk.RISKY, "sed runs its output as a command")
            call.analyze_script(re.split(re.escape(match[1]), match.group())[2])
    left = _SED_ADDRESS.sub("", _SED_SUBSTITUTION.sub(";", script))
    for match in _SED_COMMAND.finditer(left):
        if match[1] == "e":
            call.add_risk(Risk.RISKY, "sed runs a command")
            call.analyze_script(match[2] or "")
        else:
            call.record_write((match[2] or "").strip())


def _analyze_sed(call: ProgramCall) -> str | None:
    options = call.parse_options("-e", "-f", "-l", "--expression", "--file", "--line-length")
    operands = list(options.operands)
    scripts = options.values("-e", "--expression")
    # Both `-i.bak` and `-ni` edit files in place.
    is_in_place = options.has("-i", "--in-place", "-I")
    if not scripts and not options.has("-f", "--file"):
        while operands and not operands[0]:
            operands.pop(0)
        scripts = [operands.pop(0)] if operands else []
    for script in scripts:
        analyze_sed_script(call, script)
    if is_in_place:
        call.add_risk(Risk.CHANGING)
        call.record_write(*operands)
    elif options.has("-f", "--file") or any(is_unknown(script) for script in scripts):
        call.add_risk(Risk.CHANGING)
    return None


def _analyze_awk(call: ProgramCall) -> str | None:
    options = call.parse_options(
        "-F", "-v", "-f", "-i", "-l", "-e", "-E", "--file", "--source", "--include", "--load", "--assign"
    )
    operands = list(options.operands)
    programs = options.values("-e", "--source")
    if not programs and not options.has("-f", "-E", "--file"):
        programs = [operands.pop(0)] if operands else []
    else:
        call.add_risk(Risk.CHANGING)
    if options.has("-l", "--load"):
        call.add_risk(Risk.RISKY, "awk loads a library")
    if "inplace" in options.values("-i", "--include"):
        call.add_risk(Risk.CHANGING)
        call.record_write(*operands)
    for program in programs:
        _analyze_awk_program(call, program)
    if any("system(" in program or "|" in program for program in programs):
        # The command may come from a variable.
        for text in options.values("-v", "--assign"):
            call.context.analyze_subshell(text.partition("=")[2], None, ())
    return None


def _analyze_awk_program(call: ProgramCall, program: str) -> None:
    if len(program) > SCRIPT_CHARACTERS_MAX or is_unknown(program):
        call.add_risk(Risk.RISKY, "runs an awk program that can't be analyzed")
        return
    if _AWK_COMMAND.search(program):
        call.add_risk(Risk.RISKY, "awk runs a command")
        for match in _AWK_STRING.finditer(program):
            text = match[1].replace('\\"', '"')
            if " " in text.strip():
                call.analyze_script(text)
    for match in _AWK_REDIRECT.finditer(program):
        target = match[1]
        if target.startswith('"'):
            call.record_write(target.strip('"'))
        else:
            call.add_risk(Risk.LEAVING, "awk writes to a file whose name can't be determined")


def _analyze_editor(call: ProgramCall) -> str | None:
    """Analyze vim, ed and other editors, which can run commands from their arguments and from standard input."""
    options = call.parse_options("-c", "--cmd", "-S", "-u", "-ex", "-x", "--eval", "--command", "-f", "-l")
    call.add_risk(Risk.CHANGING)
    commands = [
        *options.values("-c", "--cmd", "-ex", "--eval", "--command"),
        *(arg[1:] for arg in call.args if arg[:1] == "+"),
    ]
    commands.extend((call.stdin or "").split("\n"))
    for command in commands:
        head, bang, text = command.partition("!")
        if bang and len(head) < 12 and not text.startswith("="):
            call.add_risk(Risk.RISKY, f"{call.name} runs a command")
            call.analyze_script(text)
        elif re.search(r"system\(|shell|python|\bos\.|exec|term|job_start|lua|perl", command):
            call.add_risk(Risk.RISKY, f"{call.name} runs a command")
        for match in re.finditer(r"\b(?:w|wq|saveas|write)!?\s+(\S+)", command):
            call.record_write(match[1])
    call.record_write(*(path for path in options.operands if path[:1] not in ("+", "!", "-")))
    return None


PROGRAMS: dict[str, ProgramAnalyzer] = {
    **dict.fromkeys(("sed", "gsed", "ssed"), _analyze_sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), _analyze_awk),
    **dict.fromkeys(
        ("vim", "vi", "nvim", "ex", "ed", "red", "emacs", "nano", "view", "vimdiff", "rvim", "micro"), _analyze_editor
    ),
    **dict.fromkeys(("gdb", "lldb"), _analyze_editor),
}
