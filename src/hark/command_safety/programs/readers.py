"""Analyzers for programs that read and print. They return the program's output if it can be predicted."""

import re

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import DECODED, ENDLESS, SECRET, UNKNOWN, markers_in, printable
from hark.command_safety.following.options import split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall
from hark.command_safety.parsing.word_reader import unescape_ansi

_ENDLESS_DEVICE = re.compile(r"/dev/(?:zero|u?random)")


def _analyze_reader(call: ProgramCall) -> str:
    """Analyze a program that only reads and whose output is unknown."""
    return call.unknown_output()


def _analyze_harmless_printer(_call: ProgramCall) -> str:
    """Analyze a program that prints only a number or a name, which is harmless as an argument."""
    return "1"


def _analyze_file_printer(call: ProgramCall) -> str:
    """Analyze cat, head and other programs that print files or their standard input."""
    operands = call.parse_options("-n", "-c", "-k", "-t", "-s", "-f", "-d", "-w").operands
    # Only head, tail and wc read a bounded part of an endless device.
    if call.name not in ("head", "tail", "wc") and any(
        _ENDLESS_DEVICE.fullmatch(resolved.lexical) for path in operands for resolved in call.resolve_path(path)
    ):
        return ENDLESS
    texts = [call.record_read(path) for path in operands if path != "-"]
    if (not texts or "-" in operands) and call.stdin is not None:
        texts.append(call.stdin.replace(ENDLESS, "") if call.name == "head" else call.stdin)
    return "\n".join(texts)


def _analyze_filter(call: ProgramCall) -> str:
    """Analyze a filter: a program that prints its standard input in modified form."""
    marks = markers_in(call.stdin or "")
    return marks if marks == ENDLESS else UNKNOWN + marks


def _analyze_tr(call: ProgramCall) -> str:
    is_layout = all(set(arg) <= set(" ,:;\\nt0-sd") for arg in call.args)
    return re.sub(r"[,:;\0]", " ", call.stdin or "") if is_layout and call.stdin else _analyze_filter(call)


def _analyze_decoder(call: ProgramCall) -> str:
    is_decoding = any(arg.startswith("-") and re.search("[dDr]", arg) for arg in call.args)
    is_known = is_decoding or call.name in ("uudecode", "zcat", "xzcat", "bzcat", "basenc")
    text = _analyze_file_printer(call) if call.name != "openssl" else call.stdin or ""
    if call.name == "xxd" and is_decoding:
        call.record_write(*call.parse_options("-s", "-l", "-c", "-g").operands[1:])
    return UNKNOWN + markers_in(text) + (DECODED if is_known else "")


def _analyze_echo(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    args = list(call.args)
    is_escaped = False
    while args and re.fullmatch("-[neE]+", args[0]):
        is_escaped = is_escaped or "e" in args.pop(0)
    text = " ".join(args)
    unescaped = unescape_ansi(text)
    # Some shells always replace escapes, so both results are possible.
    return unescaped if is_escaped or unescaped == text else f"{text}\n{unescaped}"


def _analyze_printf(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    args = list(call.args)
    name = ""
    if args[:1] == ["-v"] and len(args) > 1:
        name, args = args[1], args[2:]
    if args[:1] == ["--"]:
        args.pop(0)
    form = unescape_ansi(args.pop(0)) if args else ""
    text = _format_arguments(form, args)
    if name:
        call.context.state.assign(name, (text,))
    return text


def _format_arguments(form: str, args: list[str]) -> str:
    """Format arguments as printf does, repeating the format until all arguments are used."""
    texts: list[str] = []
    while True:
        left = len(args)

        def fill(match: re.Match[str]) -> str:
            if match.group() == "%%" or not args:
                return match.group()[1:] if match.group() == "%%" else ""
            arg = args.pop(0)
            return unescape_ansi(arg) if match.group().endswith("b") else arg

        texts.append(re.sub(r"%%|%\([^)]*\)T|%[-+ #0-9.*]*[a-zA-Z]", fill, form))
        if not args or len(args) == left or len(texts) > 200:
            return "".join(texts) + (UNKNOWN if args and len(texts) > 200 else "")


def _analyze_grep(call: ProgramCall) -> str:
    valued = ("-e", "-f", "-m", "-A", "-B", "-C", "-d", "-D", "--include", "--exclude", "--exclude-dir")
    # For grep itself, -r and -T are flags.
    wider = ("-g", "--glob", "--iglob", "-t", "-T", "--type", "--type-not", "--pre", "--pre-glob", "--max-depth", "-r")
    is_wider = call.name in ("rg", "ag", "ack")
    options = (
        call.parse_options(*valued, "--hostname-bin", "-M", "-j", *wider) if is_wider else call.parse_options(*valued)
    )
    for command in options.values("--pre", "--hostname-bin"):
        call.add_risk(Risk.RISKY, f"{call.name} runs {command} for each file")
        call.analyze_program([command])
    paths = options.operands if options.has("-e", "-f", "--regexp", "--files") else options.operands[1:]
    is_deep = call.name != "grep" or options.has("-r", "-R", "--recursive")
    if is_deep:
        for path in paths:
            if any(call.context.paths.is_root_or_home(resolved) for resolved in call.resolve_path(path)):
                call.add_risk(Risk.RISKY, f"reads everything in {printable(path)}, including secrets")
    if options.has("-l", "-L", "--files-with-matches", "--files-without-match", "--files"):
        return "\n".join(f"{path}/*/*.found" if is_deep else path for path in paths or ["."])
    if call.stdin is not None and not paths:
        return call.stdin.replace(ENDLESS, "")
    return UNKNOWN + markers_in(*(call.record_read(path) for path in paths))


def _analyze_ls(call: ProgramCall) -> str:
    if call.parse_options("-I", "-w", "-T").has("-d", "--directory"):
        return "\n".join(call.parse_options().operands)
    return "*"


def _analyze_path_printer(call: ProgramCall) -> str:
    operands = call.parse_options("-s", "--suffix").operands
    match call.name:
        case "basename":
            return "\n".join(path.rstrip("/").rpartition("/")[2] for path in operands[:1])
        case "dirname":
            return "\n".join(path.rstrip("/").rpartition("/")[0] or "." for path in operands)
        case "pwd":
            return "\n".join(call.context.state.folders)
        case _:
            return "\n".join(
                resolved.path + ("/" + resolved.pattern if resolved.pattern else "")
                for path in operands
                for resolved in call.resolve_path(path)
            )


def _analyze_which(call: ProgramCall) -> str:
    return "\n".join(call.parse_options().operands)


def _analyze_sort(call: ProgramCall) -> str:
    options = call.parse_options(
        "-o", "--output", "-k", "-t", "-T", "-S", "--compress-program", "--files0-from", "--parallel"
    )
    call.record_write(*options.values("-o", "--output"))
    for command in options.values("--compress-program"):
        call.add_risk(Risk.RISKY, f"sort runs {command}")
        call.analyze_program([command])
    return _analyze_file_printer(call)


def _analyze_uniq(call: ProgramCall) -> str:
    operands = call.parse_options("-f", "-s", "-w").operands
    call.record_write(*operands[1:])
    return call.stdin or UNKNOWN


def _analyze_date(call: ProgramCall) -> str:
    if call.parse_options("-d", "-f", "-r", "--date", "--file", "--reference").has("-s", "--set"):
        call.add_risk(Risk.RISKY, "date -s sets the clock")
    if any(not arg.startswith(("+", "-")) and re.fullmatch(r"\d{8,}(\.\d+)?", arg) for arg in call.args):
        call.add_risk(Risk.RISKY, "date sets the clock")
    return "2026-01-01"


def _analyze_hostname(call: ProgramCall) -> str:
    if call.parse_options().operands:
        call.add_risk(Risk.RISKY, "hostname renames the machine")
    return "host"


def _analyze_printenv(_call: ProgramCall) -> str:
    return UNKNOWN + SECRET


def _analyze_optional_writer(call: ProgramCall) -> str:
    """Analyze jq, tree, diff and other programs that write files only with certain options."""
    options = call.parse_options("-o", "--output", "--output-file", "-O", "--split-exp")
    call.record_write(*options.values("-o", "--output", "--output-file"))
    if call.name == "yq" and options.has("-i", "--inplace", "-s"):
        call.add_risk(Risk.CHANGING)
        call.record_write(*options.operands[1:])
    return call.unknown_output()


def _analyze_pager(call: ProgramCall) -> str:
    if any(arg.startswith(("+!", "-o", "-O", "--log-file", "--LOG-FILE")) for arg in call.args):
        call.add_risk(Risk.RISKY, f"{call.name} runs a program or writes a file")
    return _analyze_file_printer(call)


def _analyze_yes(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    return ENDLESS


def _analyze_man(call: ProgramCall) -> str:
    for command in call.parse_options("-P", "--pager", "-H", "--html", "-M", "-C").values(
        "-P", "--pager", "-H", "--html"
    ):
        call.add_risk(Risk.CHANGING)
        call.context.analyze_subshell(command, None, ())
    return UNKNOWN


def _analyze_jobs(call: ProgramCall) -> str:
    """Analyze `jobs`, which prints the command's own jobs. Killing these is harmless."""
    if call.args[:1] == ["-x"]:
        call.analyze_program(call.args[1:])
    return "%1"


def _analyze_seq(call: ProgramCall) -> str:
    return " ".join(re.sub(r"[^\d.+-]", "", arg) for arg in call.parse_options("-s", "-f").operands) or "1"


def _analyze_silent_program(call: ProgramCall) -> str:
    """Analyze a program that prints nothing and changes nothing important, but isn't classified as read-only."""
    call.add_risk(Risk.CHANGING)
    return ""


PROGRAMS: dict[str, ProgramAnalyzer] = {
    **dict.fromkeys(
        split_names(
            "stat file du df ps pgrep pidof free uptime lscpu lsblk lsusb lspci lsof vmstat iostat locale getconf "
            "tty type apropos whatis ss netstat hexdump od strings nm objdump readelf size cmp comm join "
            "md5sum sha1sum sha256sum sha512sum shasum cksum b2sum sum w who last users tput cal dirs ulimit "
            "umask zipinfo pstree lsmod getent findmnt fc-list sw_vers otool arp cloc tokei scc look exa eza lsd "
            "colordiff delta"
        ),
        _analyze_reader,
    ),
    **dict.fromkeys(split_names("wc uname arch whoami id groups nproc logname"), _analyze_harmless_printer),
    **dict.fromkeys(split_names("cat head tail tac nl bat batcat zcat xzcat bzcat"), _analyze_file_printer),
    **dict.fromkeys(
        split_names("cut rev fold fmt column paste expand unexpand strings numfmt pr tsort"), _analyze_filter
    ),
    **dict.fromkeys(split_names("base64 base32 basenc xxd uudecode zcat xzcat bzcat"), _analyze_decoder),
    **dict.fromkeys(split_names("grep egrep fgrep rg ag ack zgrep"), _analyze_grep),
    **dict.fromkeys(split_names("basename dirname pwd realpath readlink"), _analyze_path_printer),
    **dict.fromkeys(split_names("which whereis"), _analyze_which),
    **dict.fromkeys(split_names("jq yq tree diff sdiff diff3 xmllint gron dot iconv shuf"), _analyze_optional_writer),
    **dict.fromkeys(split_names("less more most"), _analyze_pager),
    **dict.fromkeys(
        split_names("sleep true false test [ : wait let getopts bg fg disown shopt times break continue clear reset"),
        _analyze_silent_program,
    ),
    "tr": _analyze_tr,
    "jobs": _analyze_jobs,
    "man": _analyze_man,
    "ls": _analyze_ls,
    "dir": _analyze_ls,
    "vdir": _analyze_ls,
    "echo": _analyze_echo,
    "printf": _analyze_printf,
    "sort": _analyze_sort,
    "uniq": _analyze_uniq,
    "date": _analyze_date,
    "hostname": _analyze_hostname,
    "printenv": _analyze_printenv,
    "yes": _analyze_yes,
    "seq": _analyze_seq,
}
