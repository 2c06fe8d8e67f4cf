"""What the programs do that read and print, and what they print as far as it is known."""

import re

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import names
from hark.command_safety.following.unknown_marks import DECODED, ENDLESS, SECRET, UNKNOWN, marks_of, shown
from hark.command_safety.parsing.quoting import unescape_ansi

_ENDLESS_DEVICE = re.compile(r"/dev/(?:zero|u?random)")


def _plain(call: ProgramCall) -> str:
    """Read, and print what isn't known."""
    return call.default_output()


def _number(_call: ProgramCall) -> str:
    """Print a number or a word that does no harm as a name."""
    return "1"


def _files(call: ProgramCall) -> str:
    """cat, head and others that print files, or what they are fed."""
    operands = call.options("-n", "-c", "-k", "-t", "-s", "-f", "-d", "-w").operands
    # Of zeros and noise, head alone takes a bounded part.
    if call.name not in ("head", "tail", "wc") and any(
        _ENDLESS_DEVICE.fullmatch(spot.lexical) for path in operands for spot in call.spots(path)
    ):
        return ENDLESS
    texts = [call.reads(path) for path in operands if path != "-"]
    if (not texts or "-" in operands) and call.feed is not None:
        texts.append(call.feed.replace(ENDLESS, "") if call.name == "head" else call.feed)
    return "\n".join(texts)


def _filter(call: ProgramCall) -> str:
    """Print what is fed, changed."""
    marks = marks_of(call.feed or "")
    return marks if marks == ENDLESS else UNKNOWN + marks


def _tr(call: ProgramCall) -> str:
    is_layout = all(set(arg) <= set(" ,:;\\nt0-sd") for arg in call.args)
    return re.sub(r"[,:;\0]", " ", call.feed or "") if is_layout and call.feed else _filter(call)


def _decoder(call: ProgramCall) -> str:
    is_decoding = any(arg.startswith("-") and re.search("[dDr]", arg) for arg in call.args)
    is_known = is_decoding or call.name in ("uudecode", "zcat", "xzcat", "bzcat", "basenc")
    text = _files(call) if call.name != "openssl" else call.feed or ""
    if call.name == "xxd" and is_decoding:
        call.writes(*call.options("-s", "-l", "-c", "-g").operands[1:])
    return UNKNOWN + marks_of(text) + (DECODED if is_known else "")


def _echo(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    args = list(call.args)
    is_escaped = False
    while args and re.fullmatch("-[neE]+", args[0]):
        is_escaped = is_escaped or "e" in args.pop(0)
    text = " ".join(args)
    unescaped = unescape_ansi(text)
    # Some shells unescape always: then both readings count.
    return unescaped if is_escaped or unescaped == text else f"{text}\n{unescaped}"


def _printf(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    args = list(call.args)
    name = ""
    if args[:1] == ["-v"] and len(args) > 1:
        name, args = args[1], args[2:]
    if args[:1] == ["--"]:
        args.pop(0)
    form = unescape_ansi(args.pop(0)) if args else ""
    text = _formatted(form, args)
    if name:
        call.runner.state.assign(name, (text,))
    return text


def _formatted(form: str, args: list[str]) -> str:
    """Return a format with its arguments. It is used again for what is left of them."""
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


def _grep(call: ProgramCall) -> str:
    valued = ("-e", "-f", "-m", "-A", "-B", "-C", "-d", "-D", "--include", "--exclude", "--exclude-dir")
    # To grep, -r and -T are flags.
    wider = ("-g", "--glob", "--iglob", "-t", "-T", "--type", "--type-not", "--pre", "--pre-glob", "--max-depth", "-r")
    is_wider = call.name in ("rg", "ag", "ack")
    options = call.options(*valued, "--hostname-bin", "-M", "-j", *wider) if is_wider else call.options(*valued)
    for command in options.values("--pre", "--hostname-bin"):
        call.note(Risk.RISKY, f"{call.name} runs {command} for each file")
        call.run([command])
    paths = options.operands if options.has("-e", "-f", "--regexp", "--files") else options.operands[1:]
    is_deep = call.name != "grep" or options.has("-r", "-R", "--recursive")
    if is_deep:
        for path in paths:
            if any(call.runner.places.is_root_or_home(spot) for spot in call.spots(path)):
                call.note(Risk.RISKY, f"reads all of {shown(path)}, with the secrets in it")
    if options.has("-l", "-L", "--files-with-matches", "--files-without-match", "--files"):
        return "\n".join(f"{path}/*/*.found" if is_deep else path for path in paths or ["."])
    if call.feed is not None and not paths:
        return call.feed.replace(ENDLESS, "")
    return UNKNOWN + marks_of(*(call.reads(path) for path in paths))


def _ls(call: ProgramCall) -> str:
    if call.options("-I", "-w", "-T").has("-d", "--directory"):
        return "\n".join(call.options().operands)
    return "*"


def _path(call: ProgramCall) -> str:
    operands = call.options("-s", "--suffix").operands
    match call.name:
        case "basename":
            return "\n".join(path.rstrip("/").rpartition("/")[2] for path in operands[:1])
        case "dirname":
            return "\n".join(path.rstrip("/").rpartition("/")[0] or "." for path in operands)
        case "pwd":
            return "\n".join(call.runner.state.folders)
        case _:
            return "\n".join(
                spot.path + ("/" + spot.pattern if spot.pattern else "")
                for path in operands
                for spot in call.spots(path)
            )


def _which(call: ProgramCall) -> str:
    return "\n".join(call.options().operands)


def _sort(call: ProgramCall) -> str:
    options = call.options(
        "-o", "--output", "-k", "-t", "-T", "-S", "--compress-program", "--files0-from", "--parallel"
    )
    call.writes(*options.values("-o", "--output"))
    for command in options.values("--compress-program"):
        call.note(Risk.RISKY, f"sort runs {command}")
        call.run([command])
    return _files(call)


def _uniq(call: ProgramCall) -> str:
    operands = call.options("-f", "-s", "-w").operands
    call.writes(*operands[1:])
    return call.feed or UNKNOWN


def _date(call: ProgramCall) -> str:
    if call.options("-d", "-f", "-r", "--date", "--file", "--reference").has("-s", "--set"):
        call.note(Risk.RISKY, "date -s sets the clock")
    if any(not arg.startswith(("+", "-")) and re.fullmatch(r"\d{8,}(\.\d+)?", arg) for arg in call.args):
        call.note(Risk.RISKY, "date sets the clock")
    return "2026-01-01"


def _hostname(call: ProgramCall) -> str:
    if call.options().operands:
        call.note(Risk.RISKY, "hostname renames the machine")
    return "host"


def _printenv(_call: ProgramCall) -> str:
    return UNKNOWN + SECRET


def _writer_by_option(call: ProgramCall) -> str:
    """jq, tree, diff and others, which write only where an option says so."""
    options = call.options("-o", "--output", "--output-file", "-O", "--split-exp")
    call.writes(*options.values("-o", "--output", "--output-file"))
    if call.name == "yq" and options.has("-i", "--inplace", "-s"):
        call.note(Risk.CHANGING)
        call.writes(*options.operands[1:])
    return call.default_output()


def _pager(call: ProgramCall) -> str:
    if any(arg.startswith(("+!", "-o", "-O", "--log-file", "--LOG-FILE")) for arg in call.args):
        call.note(Risk.RISKY, f"{call.name} runs or writes something")
    return _files(call)


def _yes(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    return ENDLESS


def _man(call: ProgramCall) -> str:
    for command in call.options("-P", "--pager", "-H", "--html", "-M", "-C").values("-P", "--pager", "-H", "--html"):
        call.note(Risk.CHANGING)
        call.runner.run_child(command, None, ())
    return UNKNOWN


def _jobs(call: ProgramCall) -> str:
    """Print what is one's own to kill."""
    if call.args[:1] == ["-x"]:
        call.run(call.args[1:])
    return "%1"


def _seq(call: ProgramCall) -> str:
    return " ".join(re.sub(r"[^\d.+-]", "", arg) for arg in call.options("-s", "-f").operands) or "1"


def _silent(call: ProgramCall) -> str:
    """They change nothing that matters, but aren't taken for reading."""
    call.note(Risk.CHANGING)
    return ""


PROGRAMS: dict[str, Judge] = {
    **dict.fromkeys(
        names(
            "stat file du df ps pgrep pidof free uptime lscpu lsblk lsusb lspci lsof vmstat iostat locale getconf "
            "tty type apropos whatis ss netstat hexdump od strings nm objdump readelf size cmp comm join "
            "md5sum sha1sum sha256sum sha512sum shasum cksum b2sum sum w who last users tput cal dirs ulimit "
            "umask zipinfo pstree lsmod getent findmnt fc-list sw_vers otool arp cloc tokei scc look exa eza lsd "
            "colordiff delta"
        ),
        _plain,
    ),
    **dict.fromkeys(names("wc uname arch whoami id groups nproc logname"), _number),
    **dict.fromkeys(names("cat head tail tac nl bat batcat zcat xzcat bzcat"), _files),
    **dict.fromkeys(names("cut rev fold fmt column paste expand unexpand strings numfmt pr tsort"), _filter),
    **dict.fromkeys(names("base64 base32 basenc xxd uudecode zcat xzcat bzcat"), _decoder),
    **dict.fromkeys(names("grep egrep fgrep rg ag ack zgrep"), _grep),
    **dict.fromkeys(names("basename dirname pwd realpath readlink"), _path),
    **dict.fromkeys(names("which whereis"), _which),
    **dict.fromkeys(names("jq yq tree diff sdiff diff3 xmllint gron dot iconv shuf"), _writer_by_option),
    **dict.fromkeys(names("less more most"), _pager),
    **dict.fromkeys(
        names("sleep true false test [ : wait let getopts bg fg disown shopt times break continue clear reset"),
        _silent,
    ),
    "tr": _tr,
    "jobs": _jobs,
    "man": _man,
    "ls": _ls,
    "dir": _ls,
    "vdir": _ls,
    "echo": _echo,
    "printf": _printf,
    "sort": _sort,
    "uniq": _uniq,
    "date": _date,
    "hostname": _hostname,
    "printenv": _printenv,
    "yes": _yes,
    "seq": _seq,
}
