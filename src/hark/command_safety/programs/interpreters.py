"""Analyzers for shells and other interpreters, and for the code they run."""

import re

from msgspec import Struct

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import DECODED, NETWORK, UNKNOWN, is_unknown
from hark.command_safety.following.options import Options, parse_options, split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

CODE_CHARACTERS_MAX = 50_000
# The patterns below take time in proportion to the square of the text, so long code is searched in overlapping pieces.
PIECE_CHARACTERS = 3_000
OVERLAP_CHARACTERS = 1_000
_DANGEROUS_CODE = re.compile(
    r"subprocess|shutil|pathlib.*(?:unlink|write|rmdir|rename|touch|mkdir|chmod)|unlink|rmtree|rmdir|\bremove|rename\(|removedirs"
    r"|write_text|write_bytes|\bsocket|urllib|urlopen|requests|httpx|aiohttp|http\.|https?://|fetch\(|ftplib|smtplib|paramiko"
    r"|\bexec|\beval\b|\bsystem\b|popen|spawn|\bfork|\bpty\b|child_process|\bfs\b|\brequire\(['\"](?:node:)?(?:fs|net|http|os)"
    r"|writeFile|appendFile|createWriteStream|\bDeno\.|Bun\.|process\.(?:binding|kill|dlopen)|truncate|chmod|chown|symlink"
    r"|open\s*\(?[^)\n]*['\"](?:[rb]?[wax][bt+]*|r\+b?|\+?[<>|+]+.*)['\"]|open[^;\n]*['\"]\s*[>|]|mode\s*=\s*['\"][wax]"
    r"|File\.(?:write|open|delete|unlink|new|rename)|FileUtils|IO\.|Net::|Kernel|LWP|Socket|`|%x|qx\b|\bdo shell script"
    r"|__(?!version__|file__|name__|main__|doc__)\w+__|ctypes|importlib|compile\(|marshal|pickle|base64|codecs|fromhex|b64|\bgetattr|builtins|globals\(|vars\("
    r"|\bchr\(|fromCharCode|atob|\bpack\b|file_put_contents|passthru|shell_exec|proc_open|pcntl|curl_|os\.(?:execute|remove|rename)"
    r"|io\.(?:open|popen)|signal|\bkill\b|from\s+os\b|\bos\s+as\b|=\s*os\b|posix|fcntl|mmap|winreg|sys\.modules|ENV\["
)
_PYTHON_OS = re.compile(
    r"\bos\.(?!path\b|getcwd\(|listdir\(|sep\b|name\b|cpu_count\(|environ\b|getenv\(|walk\(|scandir\(|linesep\b|getpid\()\w+"
)
_FORK_BOMB = re.compile(r"fork[^\n]*(?:while|for|loop|until)|(?:while|for|loop|until)[^\n]*[\s\S]{0,80}fork")
_FETCH_AND_RUN = re.compile(
    r"(?:\bexec|\beval|system|popen|Function)\s*\(?[\s\S]{0,200}"
    r"(?:urlopen|requests\.get|fetch\(|http\.get|curl |wget |open-uri|LWP)"
)
_SOCKET = re.compile(r"socket|TCPSocket|fsockopen|net\.")
_SHELL_START = re.compile(r"dup2|pty|/bin/(?:ba|z|da)?sh|exec|popen|spawn|subprocess")
_STRING = re.compile(r"\"((?:\\.|[^\"\\\n])*)\"|'((?:\\.|[^'\\\n])*)'|`([^`]*)`")
_STRING_LIST = re.compile(r"(?:(?:\"[^\"\n]*\"|'[^'\n]*')\s*,\s*(?:\[\s*)?){1,20}(?:\"[^\"\n]*\"|'[^'\n]*')")
_QUOTED_WORDS = re.compile(r"(?:%[xw]?|\bq[xqw]?\s*)(?:\(([^)]*)\)|\{([^}]*)\}|\[([^\]]*)\]|/([^/]*)/)")


class InterpreterOptions(Struct, frozen=True):
    """An interpreter's options. `code` options take code as their value, `valued` options take any other value."""

    code: tuple[str, ...]
    valued: tuple[str, ...] = ()


_INTERPRETERS = {
    "python": InterpreterOptions(("-c",), ("-m", "-W", "-X", "-Q")),
    "perl": InterpreterOptions(("-e", "-E"), ("-I", "-M", "-m", "-x")),
    "ruby": InterpreterOptions(("-e",), ("-I", "-r", "-C", "-E")),
    "node": InterpreterOptions(
        ("-e", "--eval", "-p", "--print", "-pe"), ("-r", "--require", "--import", "--loader", "-C")
    ),
    "bun": InterpreterOptions(("-e", "--eval", "-p", "--print"), ("-r", "--preload", "--cwd")),
    "php": InterpreterOptions(("-r", "-B", "-R", "-E"), ("-d", "-c", "-S", "-t")),
    "lua": InterpreterOptions(("-e",), ("-l",)),
    "deno": InterpreterOptions(("eval",), ()),
    "rscript": InterpreterOptions(("-e",), ()),
    "r": InterpreterOptions(("-e",), ("-f",)),
    "osascript": InterpreterOptions(("-e",), ("-l",)),
    "julia": InterpreterOptions(("-e", "-E", "--eval"), ()),
    "groovy": InterpreterOptions(("-e",), ("-cp",)),
    "scala": InterpreterOptions(("-e",), ()),
    "swift": InterpreterOptions(("-e",), ()),
    "elixir": InterpreterOptions(("-e", "--eval", "--rpc-eval"), ()),
    "racket": InterpreterOptions(("-e",), ()),
    "guile": InterpreterOptions(("-c",), ()),
    "tclsh": InterpreterOptions((), ()),
    "expect": InterpreterOptions(("-c",), ("-f",)),
    "pwsh": InterpreterOptions(("-c", "-Command", "-EncodedCommand", "-e", "-ec"), ("-f", "-File")),
    "powershell": InterpreterOptions(("-c", "-Command", "-EncodedCommand", "-e"), ()),
    "m4": InterpreterOptions(("-D",), ()),
    "bc": InterpreterOptions((), ()),
    "ipython": InterpreterOptions(("-c",), ()),
}
_INTERPRETER_ALIASES = {
    "pypy": "python",
    "py": "python",
    "nodejs": "node",
    "irb": "ruby",
    "luajit": "lua",
    "wish": "tclsh",
    "tsx": "node",
    "ts-node": "node",
}
_SHELL_VALUED = ("-o", "+o", "-O", "+O", "--rcfile", "--init-file", "-c", "--command", "-C")


def analyze_code(call: ProgramCall, code: str) -> None:
    """Record the risks of code in a language other than shell, based on the identifiers in it."""
    call.add_risk(Risk.CHANGING)
    if NETWORK in code:
        call.add_risk(Risk.HARD, f"{call.name} runs code from the network")
    elif DECODED in code:
        call.add_risk(Risk.HARD, f"{call.name} runs code that is decoded at run time")
    elif is_unknown(code):
        call.add_risk(Risk.RISKY, f"{call.name} runs code that can't be determined in advance")
    if len(code) > CODE_CHARACTERS_MAX:
        call.add_risk(Risk.RISKY, f"{call.name} runs code that is too long to analyze")
        return
    for at in range(0, max(len(code) - OVERLAP_CHARACTERS, 1), PIECE_CHARACTERS - OVERLAP_CHARACTERS):
        _analyze_code_piece(call, code[at : at + PIECE_CHARACTERS])
    socket = _SOCKET.search(code)
    if socket and _SHELL_START.search(code, socket.end()):
        call.add_risk(Risk.HARD, f"{call.name} opens a reverse shell over the network")


def _analyze_code_piece(call: ProgramCall, code: str) -> None:
    if _DANGEROUS_CODE.search(code) or _PYTHON_OS.search(code):
        call.add_risk(Risk.RISKY, f"{call.name} runs code that can change files, run programs or use the network")
        _analyze_strings(call, code)
    if NETWORK in (call.stdin or "") and re.search(r"exec|eval|system|popen|spawn|compile|loads", code):
        call.add_risk(Risk.HARD, f"{call.name} runs code from the network")
    ProgramCall(call.context, call.name, _find_strings(code)[:100], None).check_secret_arguments()
    if _FETCH_AND_RUN.search(code):
        call.add_risk(Risk.HARD, f"{call.name} runs code from the network")
    if _FORK_BOMB.search(code):
        call.add_risk(Risk.HARD, f"{call.name} starts processes in an endless loop")


def _find_strings(code: str, pattern: re.Pattern[str] = _STRING) -> list[str]:
    """Return the contents of the string literals in the code."""
    return [match[match.lastindex] if match.lastindex else "" for match in pattern.finditer(code)]


def _analyze_strings(call: ProgramCall, code: str) -> None:
    """Analyze the string literals in code as commands, given as one string or as a list of strings."""
    texts = _find_strings(code)[:100]
    lists = [" ".join(_find_strings(match.group())) for match in _STRING_LIST.finditer(code)][:50]
    words = _find_strings(code, _QUOTED_WORDS)[:50]
    for text in [*texts, *lists, *words]:
        if " " in text.strip():
            call.context.analyze_subshell(text.replace("\\n", "\n"), None, ())
        elif (
            re.search(
                r"rmtree|rm_rf|rm_r\b|remove_dir_all|removedirs|rmSync|\brm\(|rimraf|remove-item", code, re.IGNORECASE
            )
            and text
        ):
            call.record_delete(text, is_recursive=True)
        elif re.match(r"[/~]|\.\.", text) and re.search(
            r"write|open|unlink|remove|rename|chmod|copy|move|mkdir|touch", code
        ):
            call.record_write(text)


def _known_content(call: ProgramCall, path: str) -> str:
    """Return the content of a script file, or "" if it is unknown."""
    if path == "-":
        return call.stdin or ""
    resolved_paths = call.resolve_path(path)
    is_known = any(
        resolved.path in call.context.written_files or resolved.lexical in call.context.written_files
        for resolved in resolved_paths
    )
    is_odd = any(call.context.paths.is_network_device(resolved) for resolved in resolved_paths) or path.startswith(
        "/dev/"
    )
    return call.record_read(path) if is_known or is_odd else ""


def analyze_script_file(call: ProgramCall, path: str, args: tuple[str, ...] = ()) -> str | None:
    """Analyze a script file that the same command wrote or downloaded. The content of other files is unknown."""
    content = _known_content(call, path)
    if not content:
        return None
    first = content.partition("\n")[0]
    if first.startswith("#!") and not re.search(r"\b(?:ba|da|z|k|a)?sh\b", first):
        analyze_code(call, content)
        return None
    return call.context.analyze_subshell(content, call.stdin, (path, *args))


def _analyze_shell(call: ProgramCall) -> str | None:
    options = _parse_shell_options(call)
    call.add_risk(Risk.CHANGING)
    for path in options.values("--rcfile", "--init-file"):
        analyze_script_file(call, path)
    if options.has("-c", "--command"):
        commands = options.values("-c", "--command")
        text, *args = [*commands, *options.operands] or [""]
        return call.context.analyze_subshell(text, call.stdin, tuple(args))
    if options.operands and not options.has("-s"):
        call.check_output_locations()
        return analyze_script_file(call, options.operands[0], options.operands[1:])
    if call.stdin is not None:
        return call.context.analyze_subshell(call.stdin, None, ("bash", *options.operands))
    return None


def _parse_shell_options(call: ProgramCall) -> Options:
    """Parse a shell's options. The `-c` script is the first operand, regardless of the position of `-c`."""
    args = [arg for arg in call.args if not re.fullmatch(r"\+[a-zA-Z]+", arg)]
    options = parse_options(
        args, [name for name in _SHELL_VALUED if name not in ("-c", "--command")], stops_at_operand=True
    )
    return Options(options.pairs, tuple(arg for at, arg in enumerate(options.operands) if at or arg != "--"))


def _analyze_source(call: ProgramCall) -> str | None:
    call.add_risk(Risk.CHANGING)
    if not call.args:
        return None
    content = _known_content(call, call.args[0])
    if call.args[0] in ("/dev/stdin", "-"):
        content = call.stdin or UNKNOWN
    return call.analyze_script(content) if content else None


def _analyze_interpreter(call: ProgramCall) -> str | None:
    name = _INTERPRETER_ALIASES.get(call.name, call.name)
    interpreter = _INTERPRETERS[name]
    args = call.args
    if name == "deno" and args[:1] == ["run"]:
        args = args[1:]
        if any(arg.startswith("http") for arg in args):
            call.add_risk(Risk.HARD, "deno runs code from the network")
    if name == "deno" and args[:1] == ["eval"]:
        analyze_code(call, "\n".join(args[1:]))
        return None
    inner = ProgramCall(call.context, call.name, args, call.stdin)
    options = inner.parse_options(*interpreter.code, *interpreter.valued, stops_at_operand=True)
    call.add_risk(Risk.CHANGING)
    for code in options.values(*interpreter.code):
        analyze_code(call, code)
    if name == "python" and options.values("-m"):
        return _analyze_python_module(call, options)
    if name in ("perl", "ruby") and options.has("-i"):
        call.record_write(*options.operands)
    if options.values(*interpreter.code):
        return None
    script = options.operands[0] if options.operands else "-"
    call.check_output_locations()
    content = _known_content(call, script)
    if content and (script != "-" or call.stdin is not None):
        analyze_code(call, content)
    return None


def _analyze_python_module(call: ProgramCall, options: Options) -> str | None:
    """Analyze `python -m MODULE`, such as `pip`. Arguments after the module belong to the module."""
    call.check_output_locations()
    at = next(at for at, arg in enumerate(call.args) if "m" in arg and arg.startswith("-") and not arg.startswith("--"))
    rest = call.args[at + 1 :]
    module = options.values("-m")[0]
    args = rest[rest.index(module) + 1 :] if module in rest else rest
    if module in ("pip", "twine", "pipx", "poetry", "uv", "pytest"):
        return call.analyze_program([module, *args])
    if module in ("venv", "virtualenv"):
        call.record_write(*(arg for arg in args if not arg.startswith("-")))
    if module in ("timeit", "cProfile", "pdb", "trace", "runpy", "code"):
        analyze_code(call, "\n".join(arg for arg in args if not arg.startswith("-")))
    return None


PROGRAMS: dict[str, ProgramAnalyzer] = {
    **dict.fromkeys(
        split_names("sh bash dash zsh ksh ash fish csh tcsh rbash mksh yash pdksh xonsh nu elvish hush"), _analyze_shell
    ),
    **dict.fromkeys(("source", "."), _analyze_source),
    **dict.fromkeys((*_INTERPRETERS, *_INTERPRETER_ALIASES), _analyze_interpreter),
}
