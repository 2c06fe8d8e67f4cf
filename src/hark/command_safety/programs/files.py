"""What the programs do that make, change, move and remove files."""

import re
from collections.abc import Sequence

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.unknown_marks import ENDLESS, UNKNOWN, shown

_ENDLESS_DEVICE = re.compile(r"/dev/(?:zero|u?random)")
_HUGE = re.compile(r"\d+(?:[TPEZ]i?B?|\d\dGi?B?|0{12,})", re.IGNORECASE)
_MODE = re.compile(r"[0-7]{1,5}|[ugoa]*[-+=][rwxXstugoaieAjcdDSu]*(?:,[ugoa]*[-+=][rwxXstugo]*)*")
_OPEN_MODE = re.compile(r"0*[0-7]?[0-7]?[0-7][2367]|.*[ao][ugoa]*[+=][rwxX]*w.*")
_SET_ID_MODE = re.compile(r"0*[2-7][0-7]{3}|.*[+=][rwxXt]*s.*")

# Folders that tools make and make again, and plain files: nobody misses them for long, or an undo brings them back.
_GENERATED = re.compile(
    r"(?:build|dist|out|target|bin|obj|site|tmp|temp|\.tmp|coverage|htmlcov|node_modules|\.?venv|env|__pycache__|logs?"
    r"|\.(?:pytest|mypy|ruff|import_linter)_cache|\.(?:cache|tox|nox|next|nuxt|turbo|parcel-cache|gradle|eggs|nyc_output)"
    r"|[\w-][\w.-]*\.[A-Za-z]\w{0,4}|[\w*-]*\.(?:egg-info|dist-info|py[co]|log|tmp|class|bak|o)|(?:build|dist|tmp|cmake-build)[-_][\w-]*)"
)


def _rm(call: ProgramCall) -> None:
    options = call.options("--interactive") if call.name == "rm" else call.options()
    if options.has("--no-preserve-root"):
        call.note(Risk.HARD, "rm --no-preserve-root is meant to remove everything")
    is_recursive = options.has("-r", "-R", "--recursive")
    call.note(Risk.CHANGING)
    for path in options.operands:
        call.deletes(path, is_recursive=is_recursive)
        is_inside = all(call.runner.places.is_inside(spot) for spot in call.spots(path))
        if is_recursive and is_inside and not _GENERATED.fullmatch(path.rstrip("/").rpartition("/")[2]):
            call.note(Risk.RISKY, f"removes {shown(path)} with all that is in it")


def _trash(call: ProgramCall) -> None:
    call.note(Risk.CHANGING)
    for path in call.options().operands:
        call.deletes(path, is_recursive=True)


def _moves_away(call: ProgramCall, path: str) -> None:
    for spot in call.spots(path, is_followed=path.endswith("/")):
        if call.runner.places.is_system_tree(spot) and not (spot.pattern and call.runner.places.is_inside(spot)):
            call.note(Risk.HARD, f"moves {shown(path)} away")
    call.writes(path)


def _copy(call: ProgramCall) -> None:
    """cp, mv, install: the last operand, or that of -t, is where things go."""
    options = call.options(
        "-t", "--target-directory", "-S", "--suffix", "-m", "--mode", "-o", "-g", "--owner", "--group"
    )
    call.note(Risk.CHANGING)
    operands = list(options.operands)
    targets = options.values("-t", "--target-directory")
    if not targets and operands and not (call.name == "install" and options.has("-d")):
        targets = [operands.pop()]
    if call.name == "install" and options.has("-d"):
        call.writes(*operands)
        return
    for target in targets:
        _put(call, target, operands)
    for source in operands:
        if call.name == "mv":
            _moves_away(call, source)
        if any(_ENDLESS_DEVICE.fullmatch(spot.lexical) for spot in call.spots(source)):
            call.note(Risk.HARD, f"copies {source} without end")


def _put(call: ProgramCall, target: str, sources: Sequence[str]) -> None:
    contents = [call.reads(source) for source in sources]
    if any(spot.lexical == "/dev/null" for spot in call.spots(target)) and call.name == "mv":
        call.note(Risk.HARD, "replaces or loses things in /dev/null")
    call.writes(target, content="\n".join(contents) or UNKNOWN)
    places = call.runner.places
    for source, content in zip(sources, contents, strict=True):
        within = f"{target.rstrip('/')}/{source.rstrip('/').rpartition('/')[2]}"
        # Into a folder, it is the name of the source that counts.
        if any(places.is_folder(spot.path) for spot in call.spots(target)) or target.endswith("/"):
            call.writes(within, content=content)


def _ln(call: ProgramCall) -> None:
    options = call.options("-t", "--target-directory", "-S", "--suffix")
    call.note(Risk.CHANGING)
    targets = options.values("-t", "--target-directory")
    *sources, last = [*options.operands, *targets] or [""]
    call.writes(last if sources else "")
    for source in sources or [last]:
        # A soft link is read from the folder that it is in.
        is_relative = options.has("-s", "--symbolic") and bool(sources) and source[:1] not in ("/", "~")
        parent = last.rstrip("/").rpartition("/")[0]
        for spot in call.spots(f"{parent}/{source}" if is_relative and parent else source):
            if not call.runner.places.is_inside(spot):
                call.note(Risk.RISKY, f"links to {shown(source)}, outside the workspace")


def _make(call: ProgramCall) -> None:
    """touch, mkdir and others that write to all their operands."""
    options = call.options(
        "-r", "-d", "-t", "-m", "-s", "-l", "-o", "-Z", "--date", "--reference", "--mode", "--size", "--length"
    )
    call.note(Risk.CHANGING)
    if call.name in ("fallocate", "truncate") and any(
        _HUGE.fullmatch(value) for value in options.values("-l", "-s", "--size")
    ):
        call.note(Risk.RISKY, "makes a file that may fill the disk")
    call.writes(*options.operands)


def _shred(call: ProgramCall) -> None:
    call.note(Risk.CHANGING)
    for path in call.options("-n", "-s", "--iterations", "--size").operands:
        call.deletes(path, is_recursive=False)


def _tee(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    call.writes(*call.options().operands, content=call.feed or UNKNOWN)
    if ENDLESS in (call.feed or ""):
        call.note(Risk.HARD, "tee fills the disk")
    return call.feed or ""


def _chmod(call: ProgramCall) -> None:
    options = call.options("--reference", "--from")
    # A mode such as -w looks like an option.
    operands = list(options.operands)
    call.note(Risk.CHANGING)
    has_mode = bool(operands) and (call.name in ("chown", "chgrp") or bool(_MODE.fullmatch(operands[0])))
    mode = operands.pop(0) if has_mode and not options.has("--reference") else ""
    is_recursive = options.has("-R", "--recursive")
    for path in operands:
        for spot in call.spots(path):
            places = call.runner.places
            if is_recursive and places.is_system_tree(spot) and not places.is_inside(spot):
                call.note(Risk.HARD, f"{call.name} -R of {shown(path)}")
            elif is_recursive and spot.is_unknown:
                call.note(Risk.HARD, f"{call.name} -R of {shown(path)}, and what that is can't be told")
        call.writes(path)
    if call.name == "chmod" and _OPEN_MODE.fullmatch(mode):
        call.note(Risk.RISKY, f"chmod {mode} lets everybody write")
    if call.name == "chmod" and _SET_ID_MODE.fullmatch(mode):
        call.note(Risk.RISKY, f"chmod {mode} lets others run it as its owner")


def _dd(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    given: dict[str, str] = {arg.partition("=")[0]: arg.partition("=")[2] for arg in call.args}
    content = call.reads(given["if"]) if "if" in given else call.feed or UNKNOWN
    is_endless = any(_ENDLESS_DEVICE.fullmatch(spot.lexical) for spot in call.spots(given.get("if", ".")))
    if "of" not in given:
        return ENDLESS if is_endless and "count" not in given else content
    call.writes(given["of"], content=content)
    spots = call.spots(given["of"])
    if (
        (is_endless or ENDLESS in content)
        and "count" not in given
        and not any(call.runner.places.is_harmless(spot) for spot in spots)
    ):
        call.note(Risk.HARD, f"dd fills the disk through {shown(given['of'])}")
    return ""


def _tar(call: ProgramCall) -> str | None:
    args = list(call.args)
    if args and not args[0].startswith("-") and "=" not in args[0]:
        args[0] = f"-{args[0]}"
    inner = ProgramCall(call.runner, call.name, args, call.feed)
    options = inner.options(
        *("-f", "--file", "-C", "--directory", "-I", "--use-compress-program", "-T", "-X", "--exclude", "--to-command"),
        *(
            "--checkpoint-action",
            "--rsh-command",
            "-F",
            "--info-script",
            "--new-volume-script",
            "--transform",
            "--one-top-level",
        ),
    )
    for name in (
        "--to-command",
        "--rsh-command",
        "-F",
        "--info-script",
        "--new-volume-script",
        "-I",
        "--use-compress-program",
    ):
        for command in options.values(name):
            call.run_text(command)
    for action in options.values("--checkpoint-action"):
        if action.startswith("exec="):
            call.note(Risk.RISKY, "tar runs a program for each checkpoint")
            call.run_text(action[5:])
    if options.has("-t", "--list") and not options.has("-x", "-c"):
        return None
    call.note(Risk.CHANGING)
    folders = options.values("-C", "--directory")
    if options.has("-x", "--extract", "--get"):
        call.writes(*(folders or ["."]), *options.values("--one-top-level"))
        if options.has("-P", "--absolute-names"):
            call.note(Risk.LEAVING, "tar -P writes wherever the archive says")
    elif options.has("-c", "--create", "-r", "-u", "-A", "--append", "--update"):
        call.writes(*(path for path in options.values("-f", "--file") if path != "-"))
        _note_tree(call, options.operands)
        if options.has("--remove-files"):
            for path in options.operands:
                call.deletes(path, is_recursive=True)
    return None


def _note_tree(call: ProgramCall, paths: Sequence[str]) -> None:
    """Note it when a whole home or the whole machine is read, with all the secrets in it."""
    for path in paths:
        if any(call.runner.places.is_root_or_home(spot) for spot in call.spots(path)):
            call.note(Risk.RISKY, f"reads all of {shown(path)}, with the secrets in it")


def _archive(call: ProgramCall) -> str | None:
    """zip, unzip, 7z, gzip and the like."""
    options = call.options("-d", "-x", "-o", "-TT", "--unzip-command", "--output", "-O")
    call.note(Risk.CHANGING)
    for command in options.values("-TT", "--unzip-command"):
        call.note(Risk.RISKY, f"{call.name} runs a program")
        call.run_text(command)
    call.writes(*options.values("-d", "-o", "--output", "-O"))
    if call.name == "cpio":
        call.writes(*call.options("-D", "--directory", "-O", "-F").values("-D", "--directory"), ".")
    if call.name in ("zip", "7z", "7za", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "compress"):
        call.writes(*(path for path in options.operands if path != "-"))
    return None


def _patch(call: ProgramCall) -> None:
    options = call.options("-d", "--directory", "-i", "--input", "-o", "--output", "-r", "-p", "-B", "-z")
    call.note(Risk.CHANGING)
    call.writes(*options.values("-d", "--directory", "-o", "--output", "-r"), *options.operands[:1])


def _split(call: ProgramCall) -> None:
    options = call.options("-l", "-b", "-C", "-n", "-a", "--filter", "--bytes", "--lines", "-f", "--prefix")
    call.note(Risk.CHANGING)
    for command in options.values("--filter"):
        call.run_text(command)
    call.writes(*options.operands[1:], *options.values("-f", "--prefix"))


def _mktemp(call: ProgramCall) -> str:
    call.note(Risk.CHANGING)
    options = call.options("-p", "--tmpdir", "--suffix")
    if options.has("-u", "--dry-run"):
        return UNKNOWN
    folder = next(iter(options.values("-p", "--tmpdir")), "")
    template = next(iter(options.operands), "")
    path = f"{folder}/{template}" if folder else template or "/tmp/tmp.XXXXXX"  # noqa: S108
    call.writes(path)
    return path


PROGRAMS: dict[str, Judge] = {
    "rm": _rm,
    "ln": _ln,
    "tee": _tee,
    "dd": _dd,
    "tar": _tar,
    "bsdtar": _tar,
    "patch": _patch,
    "mktemp": _mktemp,
    "shred": _shred,
    **dict.fromkeys(("unlink", "rmdir"), _rm),
    **dict.fromkeys(("trash", "trash-put", "rimraf", "del-cli"), _trash),
    **dict.fromkeys(("split", "csplit"), _split),
    **dict.fromkeys(("cp", "mv", "install", "ditto", "gcp"), _copy),
    **dict.fromkeys(("touch", "mkdir", "mkfifo", "mknod", "truncate", "fallocate", "link", "sponge"), _make),
    **dict.fromkeys(("chmod", "chown", "chgrp", "chattr", "setfacl"), _chmod),
    **dict.fromkeys(("zip", "unzip", "7z", "7za", "unrar", "gzip", "gunzip", "bzip2", "bunzip2"), _archive),
    **dict.fromkeys(("xz", "unxz", "zstd", "unzstd", "compress", "uncompress", "cpio"), _archive),
}
