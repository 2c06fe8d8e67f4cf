"""Analyzers for programs that create, change, move and delete files."""

import re
from collections.abc import Sequence

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import ENDLESS, UNKNOWN, printable
from hark.command_safety.following.options import split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

_ENDLESS_DEVICE = re.compile(r"/dev/(?:zero|u?random)")
_HUGE = re.compile(r"\d+(?:[TPEZ]i?B?|\d\dGi?B?|0{12,})", re.IGNORECASE)
_MODE = re.compile(r"[0-7]{1,5}|[ugoa]*[-+=][rwxXstugoaieAjcdDSu]*(?:,[ugoa]*[-+=][rwxXstugo]*)*")
_OPEN_MODE = re.compile(r"0*[0-7]?[0-7]?[0-7][2367]|.*[ao][ugoa]*[+=][rwxX]*w.*")
_SET_ID_MODE = re.compile(r"0*[2-7][0-7]{3}|.*[+=][rwxXt]*s.*")

# Generated folders and plain files: they can be rebuilt, or an undo restores them.
_GENERATED = re.compile(
    r"(?:build|dist|out|target|bin|obj|site|tmp|temp|\.tmp|coverage|htmlcov|node_modules|\.?venv|env|__pycache__|logs?"
    r"|\.(?:pytest|mypy|ruff|import_linter)_cache|\.(?:cache|tox|nox|next|nuxt|turbo|parcel-cache|gradle|eggs|nyc_output)"
    r"|[\w-][\w.-]*\.[A-Za-z]\w{0,4}|[\w*-]*\.(?:egg-info|dist-info|py[co]|log|tmp|class|bak|o)|(?:build|dist|tmp|cmake-build)[-_][\w-]*)"
)


def _analyze_rm(call: ProgramCall) -> None:
    options = call.parse_options("--interactive") if call.name == "rm" else call.parse_options()
    if options.has("--no-preserve-root"):
        call.add_risk(Risk.HARD, "rm --no-preserve-root can delete the whole file system")
    is_recursive = options.has("-r", "-R", "--recursive")
    call.add_risk(Risk.CHANGING)
    for path in options.operands:
        call.record_delete(path, is_recursive=is_recursive)
        is_inside = all(call.context.paths.is_inside(resolved) for resolved in call.resolve_path(path))
        if is_recursive and is_inside and not _GENERATED.fullmatch(path.rstrip("/").rpartition("/")[2]):
            call.add_risk(Risk.RISKY, f"deletes {printable(path)} and everything in it")


def _analyze_trash(call: ProgramCall) -> None:
    call.add_risk(Risk.CHANGING)
    for path in call.parse_options().operands:
        call.record_delete(path, is_recursive=True)


def _record_move_away(call: ProgramCall, path: str) -> None:
    for resolved in call.resolve_path(path, follow_symlinks=path.endswith("/")):
        if call.context.paths.is_critical_folder(resolved) and not (
            resolved.pattern and call.context.paths.is_inside(resolved)
        ):
            call.add_risk(Risk.HARD, f"moves {printable(path)} to another location")
    call.record_write(path)


def _analyze_copy(call: ProgramCall) -> None:
    """Analyze cp, mv and install, whose destination is the last operand or the value of `-t`."""
    options = call.parse_options(
        "-t", "--target-directory", "-S", "--suffix", "-m", "--mode", "-o", "-g", "--owner", "--group"
    )
    call.add_risk(Risk.CHANGING)
    operands = list(options.operands)
    targets = options.values("-t", "--target-directory")
    if not targets and operands and not (call.name == "install" and options.has("-d")):
        targets = [operands.pop()]
    if call.name == "install" and options.has("-d"):
        call.record_write(*operands)
        return
    for target in targets:
        _record_copy(call, target, operands)
    for source in operands:
        if call.name == "mv":
            _record_move_away(call, source)
        if any(_ENDLESS_DEVICE.fullmatch(resolved.lexical) for resolved in call.resolve_path(source)):
            call.add_risk(Risk.HARD, f"copies endless data from {source}")


def _record_copy(call: ProgramCall, target: str, sources: Sequence[str]) -> None:
    contents = [call.record_read(source) for source in sources]
    if any(resolved.lexical == "/dev/null" for resolved in call.resolve_path(target)) and call.name == "mv":
        call.add_risk(Risk.HARD, "moves files to /dev/null, which loses them or replaces the device")
    call.record_write(target, content="\n".join(contents) or UNKNOWN)
    places = call.context.paths
    for source, content in zip(sources, contents, strict=True):
        within = f"{target.rstrip('/')}/{source.rstrip('/').rpartition('/')[2]}"
        # If the destination is a folder, the file is created in it under the name of the source.
        if any(places.is_folder(resolved.path) for resolved in call.resolve_path(target)) or target.endswith("/"):
            call.record_write(within, content=content)


def _analyze_ln(call: ProgramCall) -> None:
    options = call.parse_options("-t", "--target-directory", "-S", "--suffix")
    call.add_risk(Risk.CHANGING)
    targets = options.values("-t", "--target-directory")
    *sources, last = [*options.operands, *targets] or [""]
    call.record_write(last if sources else "")
    for source in sources or [last]:
        # A relative symbolic link is resolved from the folder that contains it.
        is_relative = options.has("-s", "--symbolic") and bool(sources) and source[:1] not in ("/", "~")
        parent = last.rstrip("/").rpartition("/")[0]
        for resolved in call.resolve_path(f"{parent}/{source}" if is_relative and parent else source):
            if not call.context.paths.is_inside(resolved):
                call.add_risk(Risk.RISKY, f"creates a link to {printable(source)}, outside the workspace")


def _analyze_create(call: ProgramCall) -> None:
    """Analyze touch, mkdir and other programs that write to all their operands."""
    options = call.parse_options(
        "-r", "-d", "-t", "-m", "-s", "-l", "-o", "-Z", "--date", "--reference", "--mode", "--size", "--length"
    )
    call.add_risk(Risk.CHANGING)
    if call.name in ("fallocate", "truncate") and any(
        _HUGE.fullmatch(value) for value in options.values("-l", "-s", "--size")
    ):
        call.add_risk(Risk.RISKY, "creates a file that may fill the disk")
    call.record_write(*options.operands)


def _analyze_shred(call: ProgramCall) -> None:
    call.add_risk(Risk.CHANGING)
    for path in call.parse_options("-n", "-s", "--iterations", "--size").operands:
        call.record_delete(path, is_recursive=False)


def _analyze_tee(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    call.record_write(*call.parse_options().operands, content=call.stdin or UNKNOWN)
    if ENDLESS in (call.stdin or ""):
        call.add_risk(Risk.HARD, "tee fills the disk by writing endlessly")
    return call.stdin or ""


def _analyze_chmod(call: ProgramCall) -> None:
    options = call.parse_options("--reference", "--from")
    # A mode such as -w looks like an option.
    operands = list(options.operands)
    call.add_risk(Risk.CHANGING)
    has_mode = bool(operands) and (call.name in ("chown", "chgrp") or bool(_MODE.fullmatch(operands[0])))
    mode = operands.pop(0) if has_mode and not options.has("--reference") else ""
    is_recursive = options.has("-R", "--recursive")
    for path in operands:
        for resolved in call.resolve_path(path):
            places = call.context.paths
            if is_recursive and places.is_critical_folder(resolved) and not places.is_inside(resolved):
                call.add_risk(Risk.HARD, f"{call.name} -R changes {printable(path)} and everything in it")
            elif is_recursive and resolved.is_unknown:
                call.add_risk(
                    Risk.HARD,
                    f"{call.name} -R changes a path that can't be determined, and everything in it: {printable(path)}",
                )
        call.record_write(path)
    if call.name == "chmod" and _OPEN_MODE.fullmatch(mode):
        call.add_risk(Risk.RISKY, f"chmod {mode} lets every user write")
    if call.name == "chmod" and _SET_ID_MODE.fullmatch(mode):
        call.add_risk(Risk.RISKY, f"chmod {mode} lets other users run the file as its owner")


def _analyze_dd(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    given: dict[str, str] = {arg.partition("=")[0]: arg.partition("=")[2] for arg in call.args}
    content = call.record_read(given["if"]) if "if" in given else call.stdin or UNKNOWN
    is_endless = any(
        _ENDLESS_DEVICE.fullmatch(resolved.lexical) for resolved in call.resolve_path(given.get("if", "."))
    )
    if "of" not in given:
        return ENDLESS if is_endless and "count" not in given else content
    call.record_write(given["of"], content=content)
    resolved_paths = call.resolve_path(given["of"])
    if (
        (is_endless or ENDLESS in content)
        and "count" not in given
        and not any(call.context.paths.is_harmless_device(resolved) for resolved in resolved_paths)
    ):
        call.add_risk(Risk.HARD, f"dd fills the disk by writing endlessly to {printable(given['of'])}")
    return ""


def _analyze_tar(call: ProgramCall) -> str | None:
    args = list(call.args)
    if args and not args[0].startswith("-") and "=" not in args[0]:
        args[0] = f"-{args[0]}"
    inner = ProgramCall(call.context, call.name, args, call.stdin)
    options = inner.parse_options(
        *("-f", "--file", "-C", "--directory", "-I", "--use-compress-program", "-T", "-X", "--exclude", "--to-command"),
        *split_names(
            "--checkpoint-action --rsh-command -F --info-script --new-volume-script --transform --one-top-level"
        ),
    )
    for name in tuple(
        split_names("--to-command --rsh-command -F --info-script --new-volume-script -I --use-compress-program")
    ):
        for command in options.values(name):
            call.analyze_script(command)
    for action in options.values("--checkpoint-action"):
        if action.startswith("exec="):
            call.add_risk(Risk.RISKY, "tar runs a program for each checkpoint")
            call.analyze_script(action[5:])
    if options.has("-t", "--list") and not options.has("-x", "-c"):
        return None
    call.add_risk(Risk.CHANGING)
    folders = options.values("-C", "--directory")
    if options.has("-x", "--extract", "--get"):
        call.record_write(*(folders or ["."]), *options.values("--one-top-level"))
        if options.has("-P", "--absolute-names"):
            call.add_risk(Risk.LEAVING, "tar -P writes to any path that the archive names")
    elif options.has("-c", "--create", "-r", "-u", "-A", "--append", "--update"):
        call.record_write(*(path for path in options.values("-f", "--file") if path != "-"))
        _check_tree_read(call, options.operands)
        if options.has("--remove-files"):
            for path in options.operands:
                call.record_delete(path, is_recursive=True)
    return None


def _check_tree_read(call: ProgramCall, paths: Sequence[str]) -> None:
    """Record a risk if a whole home directory or file system is read, including the secrets in it."""
    for path in paths:
        if any(call.context.paths.is_root_or_home(resolved) for resolved in call.resolve_path(path)):
            call.add_risk(Risk.RISKY, f"reads everything in {printable(path)}, including secrets")


def _analyze_archive(call: ProgramCall) -> str | None:
    """Analyze zip, unzip, 7z, gzip and similar programs."""
    options = call.parse_options("-d", "-x", "-o", "-TT", "--unzip-command", "--output", "-O")
    call.add_risk(Risk.CHANGING)
    for command in options.values("-TT", "--unzip-command"):
        call.add_risk(Risk.RISKY, f"{call.name} runs a program")
        call.analyze_script(command)
    call.record_write(*options.values("-d", "-o", "--output", "-O"))
    if call.name == "cpio":
        call.record_write(*call.parse_options("-D", "--directory", "-O", "-F").values("-D", "--directory"), ".")
    if call.name in ("zip", "7z", "7za", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "compress"):
        call.record_write(*(path for path in options.operands if path != "-"))
    return None


def _analyze_patch(call: ProgramCall) -> None:
    options = call.parse_options("-d", "--directory", "-i", "--input", "-o", "--output", "-r", "-p", "-B", "-z")
    call.add_risk(Risk.CHANGING)
    call.record_write(*options.values("-d", "--directory", "-o", "--output", "-r"), *options.operands[:1])


def _analyze_split(call: ProgramCall) -> None:
    options = call.parse_options("-l", "-b", "-C", "-n", "-a", "--filter", "--bytes", "--lines", "-f", "--prefix")
    call.add_risk(Risk.CHANGING)
    for command in options.values("--filter"):
        call.analyze_script(command)
    call.record_write(*options.operands[1:], *options.values("-f", "--prefix"))


def _analyze_mktemp(call: ProgramCall) -> str:
    call.add_risk(Risk.CHANGING)
    options = call.parse_options("-p", "--tmpdir", "--suffix")
    if options.has("-u", "--dry-run"):
        return UNKNOWN
    folder = next(iter(options.values("-p", "--tmpdir")), "")
    template = next(iter(options.operands), "")
    path = f"{folder}/{template}" if folder else template or "/tmp/tmp.XXXXXX"  # noqa: S108
    call.record_write(path)
    return path


PROGRAMS: dict[str, ProgramAnalyzer] = {
    "rm": _analyze_rm,
    "ln": _analyze_ln,
    "tee": _analyze_tee,
    "dd": _analyze_dd,
    "tar": _analyze_tar,
    "bsdtar": _analyze_tar,
    "patch": _analyze_patch,
    "mktemp": _analyze_mktemp,
    "shred": _analyze_shred,
    **dict.fromkeys(("unlink", "rmdir"), _analyze_rm),
    **dict.fromkeys(("trash", "trash-put", "rimraf", "del-cli"), _analyze_trash),
    **dict.fromkeys(("split", "csplit"), _analyze_split),
    **dict.fromkeys(("cp", "mv", "install", "ditto", "gcp"), _analyze_copy),
    **dict.fromkeys(("touch", "mkdir", "mkfifo", "mknod", "truncate", "fallocate", "link", "sponge"), _analyze_create),
    **dict.fromkeys(("chmod", "chown", "chgrp", "chattr", "setfacl"), _analyze_chmod),
    **dict.fromkeys(("zip", "unzip", "7z", "7za", "unrar", "gzip", "gunzip", "bzip2", "bunzip2"), _analyze_archive),
    **dict.fromkeys(("xz", "unxz", "zstd", "unzstd", "compress", "uncompress", "cpio"), _analyze_archive),
}
