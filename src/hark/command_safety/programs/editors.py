"""What the programs do that change text by a script of their own: sed, awk, and editors."""

import re

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.unknown_marks import is_unknown

SCRIPT_CHARACTERS_MAX = 4000
_SED_SUBSTITUTION = re.compile(
    r"s([^\w\s\\;{}])(?:\\.|(?!\1)[^\\])*?\1(?:\\.|(?!\1)[^\\])*?\1([a-zA-Z0-9]*)[ \t]*([^;}\n]*)", re.DOTALL
)
_SED_ADDRESS = re.compile(r"(?:^|(?<=[;{\n,!]))\s*(?:/(?:\\.|[^/\\])*/|\\(.)(?:(?!\1).)*\1)[IM]*")
_SED_COMMAND = re.compile(r"(?:^|[;{}\n!,\d$~]|-e)\s*([ewW])(?:[ \t]+([^\n]*)|(?=[;}\n])|$)")
_AWK_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
_AWK_REDIRECT = re.compile(r'\bprint[f]?\b(?:"(?:\\.|[^"\\])*"|[^;}\n">])*>>?\s*("(?:\\.|[^"\\])*"|[^;}\s]+)')
_AWK_COMMAND = re.compile(r"\bsystem\s*\(|\|&?\s*getline|\|&?\s*\"|\|&\s*\w|\bprintf?\b[^;}\n|]*\|\s*\w|@load|@include")


def judge_sed_script(call: ProgramCall, script: str) -> None:
    """Note what a sed script runs and writes."""
    if len(script) > SCRIPT_CHARACTERS_MAX:
        call.note(Risk.RISKY, "a sed script that is too long to be judged")
        return
    for match in _SED_SUBSTITUTION.finditer(script):
        flags, rest = match[2], match[3]
        if "w" in flags:
            call.writes((flags.partition("w")[2] + rest).strip() or rest.strip())
        elif "e" in flags:
            call.note(Risk.RISKY, "sed runs what it makes, as a command")
            call.run_text(re.split(re.escape(match[1]), match.group())[2])
    left = _SED_ADDRESS.sub("", _SED_SUBSTITUTION.sub(";", script))
    for match in _SED_COMMAND.finditer(left):
        if match[1] == "e":
            call.note(Risk.RISKY, "sed runs a command")
            call.run_text(match[2] or "")
        else:
            call.writes((match[2] or "").strip())


def _sed(call: ProgramCall) -> str | None:
    options = call.options("-e", "-f", "-l", "--expression", "--file", "--line-length")
    operands = list(options.operands)
    scripts = options.values("-e", "--expression")
    # Both `-i.bak` and `-ni` mean in place.
    is_in_place = options.has("-i", "--in-place", "-I")
    if not scripts and not options.has("-f", "--file"):
        while operands and not operands[0]:
            operands.pop(0)
        scripts = [operands.pop(0)] if operands else []
    for script in scripts:
        judge_sed_script(call, script)
    if is_in_place:
        call.note(Risk.CHANGING)
        call.writes(*operands)
    elif options.has("-f", "--file") or any(is_unknown(script) for script in scripts):
        call.note(Risk.CHANGING)
    return None


def _awk(call: ProgramCall) -> str | None:
    options = call.options(
        "-F", "-v", "-f", "-i", "-l", "-e", "-E", "--file", "--source", "--include", "--load", "--assign"
    )
    operands = list(options.operands)
    programs = options.values("-e", "--source")
    if not programs and not options.has("-f", "-E", "--file"):
        programs = [operands.pop(0)] if operands else []
    else:
        call.note(Risk.CHANGING)
    if options.has("-l", "--load"):
        call.note(Risk.RISKY, "awk loads a library")
    if "inplace" in options.values("-i", "--include"):
        call.note(Risk.CHANGING)
        call.writes(*operands)
    for program in programs:
        _judge_awk(call, program)
    if any("system(" in program or "|" in program for program in programs):
        # What it runs may come from a variable.
        for text in options.values("-v", "--assign"):
            call.runner.run_child(text.partition("=")[2], None, ())
    return None


def _judge_awk(call: ProgramCall, program: str) -> None:
    if len(program) > SCRIPT_CHARACTERS_MAX or is_unknown(program):
        call.note(Risk.RISKY, "an awk program that can't be judged")
        return
    if _AWK_COMMAND.search(program):
        call.note(Risk.RISKY, "awk runs a command")
        for match in _AWK_STRING.finditer(program):
            text = match[1].replace('\\"', '"')
            if " " in text.strip():
                call.run_text(text)
    for match in _AWK_REDIRECT.finditer(program):
        target = match[1]
        if target.startswith('"'):
            call.writes(target.strip('"'))
        else:
            call.note(Risk.LEAVING, "awk writes to a file whose name can't be told")


def _editor(call: ProgramCall) -> str | None:
    """vim, ed and others can run commands from their arguments and from what they are fed."""
    options = call.options("-c", "--cmd", "-S", "-u", "-ex", "-x", "--eval", "--command", "-f", "-l")
    call.note(Risk.CHANGING)
    commands = [
        *options.values("-c", "--cmd", "-ex", "--eval", "--command"),
        *(arg[1:] for arg in call.args if arg[:1] == "+"),
    ]
    commands.extend((call.feed or "").split("\n"))
    for command in commands:
        head, bang, text = command.partition("!")
        if bang and len(head) < 12 and not text.startswith("="):
            call.note(Risk.RISKY, f"{call.name} runs a command")
            call.run_text(text)
        elif re.search(r"system\(|shell|python|\bos\.|exec|term|job_start|lua|perl", command):
            call.note(Risk.RISKY, f"{call.name} runs a command")
        for match in re.finditer(r"\b(?:w|wq|saveas|write)!?\s+(\S+)", command):
            call.writes(match[1])
    call.writes(*(path for path in options.operands if path[:1] not in ("+", "!", "-")))
    return None


PROGRAMS: dict[str, Judge] = {
    **dict.fromkeys(("sed", "gsed", "ssed"), _sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), _awk),
    **dict.fromkeys(
        ("vim", "vi", "nvim", "ex", "ed", "red", "emacs", "nano", "view", "vimdiff", "rvim", "micro"), _editor
    ),
    **dict.fromkeys(("gdb", "lldb"), _editor),
}
