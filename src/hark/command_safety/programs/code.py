"""What a shell or another interpreter does with the code that it is given."""

import re

from msgspec import Struct

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import Options, names, read_options
from hark.command_safety.following.unknown_marks import DECODED, NETWORK, UNKNOWN, is_unknown

CODE_CHARACTERS_MAX = 50_000
_DANGEROUS = re.compile(
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
_REVERSE_SHELL = re.compile(
    r"(?:socket|TCPSocket|fsockopen|net\.)[\s\S]*(?:dup2|pty|/bin/(?:ba|z|da)?sh|exec|popen|spawn|subprocess)"
)
_STRING = re.compile(r"\"((?:\\.|[^\"\\\n])*)\"|'((?:\\.|[^'\\\n])*)'|`([^`]*)`")
_LIST = re.compile(r"(?:(?:\"[^\"\n]*\"|'[^'\n]*')\s*,\s*\[?\s*){1,20}(?:\"[^\"\n]*\"|'[^'\n]*')")
_QUOTED_WORDS = re.compile(r"(?:%[xw]?|\bq[xqw]?\s*)(?:\(([^)]*)\)|\{([^}]*)\}|\[([^\]]*)\]|/([^/]*)/)")


class Interpreter(Struct, frozen=True):
    """How an interpreter is given code: options whose value is code, and others that take a value."""

    code: tuple[str, ...]
    valued: tuple[str, ...] = ()


_INTERPRETERS = {
    "python": Interpreter(("-c",), ("-m", "-W", "-X", "-Q")),
    "perl": Interpreter(("-e", "-E"), ("-I", "-M", "-m", "-x")),
    "ruby": Interpreter(("-e",), ("-I", "-r", "-C", "-E")),
    "node": Interpreter(("-e", "--eval", "-p", "--print", "-pe"), ("-r", "--require", "--import", "--loader", "-C")),
    "bun": Interpreter(("-e", "--eval", "-p", "--print"), ("-r", "--preload", "--cwd")),
    "php": Interpreter(("-r", "-B", "-R", "-E"), ("-d", "-c", "-S", "-t")),
    "lua": Interpreter(("-e",), ("-l",)),
    "deno": Interpreter(("eval",), ()),
    "rscript": Interpreter(("-e",), ()),
    "r": Interpreter(("-e",), ("-f",)),
    "osascript": Interpreter(("-e",), ("-l",)),
    "julia": Interpreter(("-e", "-E", "--eval"), ()),
    "groovy": Interpreter(("-e",), ("-cp",)),
    "scala": Interpreter(("-e",), ()),
    "swift": Interpreter(("-e",), ()),
    "elixir": Interpreter(("-e", "--eval", "--rpc-eval"), ()),
    "racket": Interpreter(("-e",), ()),
    "guile": Interpreter(("-c",), ()),
    "tclsh": Interpreter((), ()),
    "expect": Interpreter(("-c",), ("-f",)),
    "pwsh": Interpreter(("-c", "-Command", "-EncodedCommand", "-e", "-ec"), ("-f", "-File")),
    "powershell": Interpreter(("-c", "-Command", "-EncodedCommand", "-e"), ()),
    "m4": Interpreter(("-D",), ()),
    "bc": Interpreter((), ()),
    "ipython": Interpreter(("-c",), ()),
}
_ALIASES = {
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


def judge_code(call: ProgramCall, code: str) -> None:
    """Note what code in another language may do, by its words."""
    call.note(Risk.CHANGING)
    if NETWORK in code:
        call.note(Risk.HARD, f"{call.name} runs what comes from the network")
    elif DECODED in code:
        call.note(Risk.HARD, f"{call.name} runs code that is hidden in an encoding")
    elif is_unknown(code):
        call.note(Risk.RISKY, f"{call.name} runs code that can't be known")
    if len(code) > CODE_CHARACTERS_MAX:
        call.note(Risk.RISKY, f"{call.name} runs code that is too long to be judged")
        return
    if _DANGEROUS.search(code) or _PYTHON_OS.search(code):
        call.note(Risk.RISKY, f"{call.name} runs code that can change files, run programs or use the network")
        _judge_strings(call, code)
    if NETWORK in (call.feed or "") and re.search(r"exec|eval|system|popen|spawn|compile|loads", code):
        call.note(Risk.HARD, f"{call.name} runs what comes from the network")
    ProgramCall(call.runner, call.name, _strings(code)[:100], None).guards_secrets()
    if _FETCH_AND_RUN.search(code):
        call.note(Risk.HARD, f"{call.name} runs what comes from the network")
    if _FORK_BOMB.search(code):
        call.note(Risk.HARD, f"{call.name} starts processes without end")
    if _REVERSE_SHELL.search(code):
        call.note(Risk.HARD, f"{call.name} gives a shell to somebody over the network")


def _strings(code: str, pattern: re.Pattern[str] = _STRING) -> list[str]:
    """Return what is between quotes."""
    return [match[match.lastindex] if match.lastindex else "" for match in pattern.finditer(code)]


def _judge_strings(call: ProgramCall, code: str) -> None:
    """Judge the strings in code as commands: a program's name and its arguments, in one string or in several."""
    texts = _strings(code)[:100]
    lists = [" ".join(_strings(match.group())) for match in _LIST.finditer(code)][:50]
    words = _strings(code, _QUOTED_WORDS)[:50]
    for text in [*texts, *lists, *words]:
        if " " in text.strip():
            call.runner.run_child(text.replace("\\n", "\n"), None, ())
        elif (
            re.search(
                r"rmtree|rm_rf|rm_r\b|remove_dir_all|removedirs|rmSync|\brm\(|rimraf|remove-item", code, re.IGNORECASE
            )
            and text
        ):
            call.deletes(text, is_recursive=True)
        elif re.match(r"[/~]|\.\.", text) and re.search(
            r"write|open|unlink|remove|rename|chmod|copy|move|mkdir|touch", code
        ):
            call.writes(text)


def _file(call: ProgramCall, path: str) -> str:
    """Return what is known of a script in a file."""
    if path == "-":
        return call.feed or ""
    spots = call.spots(path)
    is_known = any(spot.path in call.runner.written or spot.lexical in call.runner.written for spot in spots)
    is_odd = any(call.runner.places.is_network(spot) for spot in spots) or path.startswith("/dev/")
    return call.reads(path) if is_known or is_odd else ""


def run_file(call: ProgramCall, path: str, args: tuple[str, ...] = ()) -> str | None:
    """Judge a script file that this very command wrote or loaded; of others nothing is known."""
    content = _file(call, path)
    if not content:
        return None
    first = content.partition("\n")[0]
    if first.startswith("#!") and not re.search(r"\b(?:ba|da|z|k|a)?sh\b", first):
        judge_code(call, content)
        return None
    return call.runner.run_child(content, call.feed, (path, *args))


def _shell(call: ProgramCall) -> str | None:
    options = _shell_options(call)
    call.note(Risk.CHANGING)
    for path in options.values("--rcfile", "--init-file"):
        run_file(call, path)
    if options.has("-c", "--command"):
        commands = options.values("-c", "--command")
        text, *args = [*commands, *options.operands] or [""]
        return call.runner.run_child(text, call.feed, tuple(args))
    if options.operands and not options.has("-s"):
        call.works_here()
        return run_file(call, options.operands[0], options.operands[1:])
    if call.feed is not None:
        return call.runner.run_child(call.feed, None, ("bash", *options.operands))
    return None


def _shell_options(call: ProgramCall) -> Options:
    """Return the options of a shell, where the script of -c is the first operand, wherever the -c is."""
    args = [arg for arg in call.args if not re.fullmatch(r"\+[a-zA-Z]+", arg)]
    options = read_options(args, [name for name in _SHELL_VALUED if name not in ("-c", "--command")], is_leading=True)
    return Options(options.found, tuple(arg for at, arg in enumerate(options.operands) if at or arg != "--"))


def _source(call: ProgramCall) -> str | None:
    call.note(Risk.CHANGING)
    if not call.args:
        return None
    content = _file(call, call.args[0])
    if call.args[0] in ("/dev/stdin", "-"):
        content = call.feed or UNKNOWN
    return call.run_text(content) if content else None


def _interpreter(call: ProgramCall) -> str | None:
    name = _ALIASES.get(call.name, call.name)
    interpreter = _INTERPRETERS[name]
    args = call.args
    if name == "deno" and args[:1] == ["run"]:
        args = args[1:]
        if any(arg.startswith("http") for arg in args):
            call.note(Risk.HARD, "deno runs what comes from the network")
    if name == "deno" and args[:1] == ["eval"]:
        judge_code(call, "\n".join(args[1:]))
        return None
    inner = ProgramCall(call.runner, call.name, args, call.feed)
    options = inner.options(*interpreter.code, *interpreter.valued, is_leading=True)
    call.note(Risk.CHANGING)
    for code in options.values(*interpreter.code):
        judge_code(call, code)
    if name == "python" and options.values("-m"):
        return _python_module(call, options)
    if name in ("perl", "ruby") and options.has("-i"):
        call.writes(*options.operands)
    if options.values(*interpreter.code):
        return None
    script = options.operands[0] if options.operands else "-"
    call.works_here()
    content = _file(call, script)
    if content and (script != "-" or call.feed is not None):
        judge_code(call, content)
    return None


def _python_module(call: ProgramCall, options: Options) -> str | None:
    """`python -m pip` and others are programs of that name. What stands behind the module is its own."""
    call.works_here()
    at = next(at for at, arg in enumerate(call.args) if "m" in arg and arg.startswith("-") and not arg.startswith("--"))
    rest = call.args[at + 1 :]
    module = options.values("-m")[0]
    args = rest[rest.index(module) + 1 :] if module in rest else rest
    if module in ("pip", "twine", "pipx", "poetry", "uv", "pytest"):
        return call.run([module, *args])
    if module in ("venv", "virtualenv"):
        call.writes(*(arg for arg in args if not arg.startswith("-")))
    if module in ("timeit", "cProfile", "pdb", "trace", "runpy", "code"):
        judge_code(call, "\n".join(arg for arg in args if not arg.startswith("-")))
    return None


PROGRAMS: dict[str, Judge] = {
    **dict.fromkeys(names("sh bash dash zsh ksh ash fish csh tcsh rbash mksh yash pdksh xonsh nu elvish hush"), _shell),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys((*_INTERPRETERS, *_ALIASES), _interpreter),
}
