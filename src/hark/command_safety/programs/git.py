"""What git does, by its subcommand."""

import re
from collections.abc import Callable

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import Options, names, read_options
from hark.command_safety.following.unknown_marks import UNKNOWN, is_unknown, shown

_GLOBAL_VALUED = (
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--config-env",
    "--super-prefix",
)
_READING = frozenset(
    names(
        "status log diff show blame annotate rev-parse describe ls-files ls-tree ls-remote cat-file shortlog "
        "grep rev-list name-rev merge-base for-each-ref show-ref var version help count-objects diff-tree "
        "diff-index diff-files check-ignore check-attr whatchanged range-diff cherry fsck show-branch verify-"
        "commit verify-tag get-tar-commit-id merge-tree column"
    )
)
# Settings that name programs, or where programs come from.
_RUNNING_KEY = re.compile(
    r"(?i:core\.(?:hookspath|sshcommand|pager|editor|fsmonitor|gitproxy|askpass|attributesfile|worktree)|alias\..*|pager\..*"
    r"|credential\..*|include\.path|includeif\..*|init\.templatedir|filter\..*|diff\..*\.(?:command|textconv)|diff\.external"
    r"|merge\..*\.driver|\w*tool\..*|gpg\..*program|url\..*|sequence\.editor|uploadpack\..*|protocol\..*|remote\..*\.(?:\w*pack|vcs|proxy)"
    r"|sendemail\..*|browser\..*|man\..*|http\.proxy|http\.sslverify|trailer\..*|submodule\..*\.update|safe\.directory)"
)
_HARMLESS_VALUE = re.compile(r"(?:cat|less|more|true|false|:|vim|vi|nano|delta|code --wait|input|store|cache|)")
_EVERYTHING = (".", "./", ":/", "*", "./*", ":/*", "/", "..")


def _git(call: ProgramCall) -> str | None:
    options = read_options(call.args, _GLOBAL_VALUED, is_leading=True)
    before = call.runner.state
    call.runner.state = before.copy()
    for folder in options.values("-C", "--git-dir", "--work-tree"):
        call.changes_folder(folder if not folder.endswith(".git") else folder[: -len(".git")] or ".")
    for setting in options.values("-c"):
        name, _, value = setting.partition("=")
        _judge_setting(call, name, value, Risk.RISKY)
    if options.values("--exec-path", "--config-env"):
        call.note(Risk.RISKY, "git runs programs from elsewhere")
    printed = None
    if options.operands:
        verb, *args = options.operands
        printed = _judge_verb(ProgramCall(call.runner, f"git {verb}", args, call.feed), verb)
    call.runner.state = before
    return printed


def _judge_setting(call: ProgramCall, name: str, value: str, risk: Risk) -> None:
    """Note it when a setting makes git run something."""
    if not _RUNNING_KEY.fullmatch(name) or (_HARMLESS_VALUE.fullmatch(value) and risk < Risk.HARD):
        return
    if name.lower().startswith("alias.") and not value.startswith("!") and risk < Risk.HARD:
        return
    call.note(risk, f"sets {name} of git, which makes it run something")
    if value:
        call.runner.run_child(value.lstrip("!"), None, ())


def _judge_verb(call: ProgramCall, verb: str) -> str | None:
    options = call.options("--output", "-o", "-O", "--open-files-in-pager", "--upload-pack", "-x", "--extcmd", "--exec")
    if any(arg.startswith("ext::") for arg in call.args):
        call.note(Risk.RISKY, f"git {verb} runs a program")
        call.runner.run_child(" ".join(call.args).partition("ext::")[2].replace("% ", " "), None, ())
    if verb in _READING or _is_listing(verb, call):
        call.writes(*options.values("--output"))
        if options.has("--ext-diff", "--textconv") or (verb == "grep" and options.has("-O", "--open-files-in-pager")):
            call.note(Risk.RISKY, f"git {verb} runs a program")
        for command in (
            options.values("--upload-pack", "--exec", "-O", "--open-files-in-pager") if verb != "diff" else ()
        ):
            call.note(Risk.RISKY, f"git {verb} runs a program")
            call.runner.run_child(command, None, ())
        is_naming = options.has("-l", "--name-only", "--files-with-matches") or verb in ("ls-files", "ls-tree")
        if verb == "rev-parse" and options.has("--show-toplevel"):
            return call.runner.places.workspace
        if verb in ("rev-parse", "describe", "symbolic-ref") or options.has("--show-current"):
            return "HEAD"  # the name of a commit: it does no harm as an argument
        is_chosen = bool(options.operands) or verb in ("diff", "grep", "show", "log")
        return ("*.found" if is_chosen else "*") if is_naming else UNKNOWN
    call.note(Risk.CHANGING)
    if call.is_outside():
        call.note(Risk.LEAVING, f"git {verb} works outside the workspace")
    _VERBS.get(verb, _other)(call)
    return None


def _is_listing(verb: str, call: ProgramCall) -> bool:
    args = call.args
    operands = [arg for arg in args if not arg.startswith("-")]
    flags = {arg.partition("=")[0] for arg in args if arg.startswith("-")}
    match verb:
        case "branch":
            listing = {
                "-a",
                "-r",
                "-v",
                "-vv",
                "-l",
                "--list",
                "--all",
                "--remotes",
                "--show-current",
                "--sort",
                "--format",
            }
            listing |= {"--contains", "--merged", "--no-merged", "--points-at", "--no-color", "--column", "-av", "-avv"}
            is_asking = bool(flags & {"-l", "--list", "--contains", "--merged", "--no-merged", "--points-at"})
            return flags <= listing and (not operands or is_asking)
        case "tag":
            return (not operands or bool(flags & {"-l", "--list"})) and not flags & {
                "-d",
                "-f",
                "--delete",
                "-a",
                "-s",
                "-m",
            }
        case "remote":
            return not operands or operands[0] in ("show", "get-url")
        case "stash" | "worktree" | "notes" | "bisect" | "reflog":
            first = operands[:1] or ["show" if verb == "reflog" else ""]
            return first[0] in ("list", "show", "log", "view") or (
                verb == "reflog" and first[0] not in ("expire", "delete", "drop")
            )
        case "config":
            return (
                bool(flags & {"--get", "--get-all", "--list", "-l", "--get-regexp", "--show-origin"})
                or (len(operands) == 1 and not flags & {"--unset", "--edit", "-e", "--unset-all"})
                or operands[:1] in (["get"], ["list"])
            )
        case "submodule":
            return operands[:1] in (["status"], ["summary"])
        case "symbolic-ref":
            return len(operands) == 1 and not flags & {"-d", "--delete"}
        case _:
            return False


def _push(call: ProgramCall) -> None:
    options = call.options("-o", "--push-option", "--repo", "--receive-pack", "--exec", "--recurse-submodules")
    for command in options.values("--receive-pack", "--exec"):
        call.note(Risk.RISKY, "git push runs a program")
        call.runner.run_child(command, None, ())
    # An option that is shortened, such as --forc, is the same one.
    is_forced = options.has(
        "-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "-d", "--prune"
    )
    if is_forced or any(operand.startswith(("+", ":")) for operand in options.operands[1:]):
        call.note(Risk.HARD, "git push overwrites or removes what others have (force, delete or mirror)")
    if any(is_unknown(arg) for arg in call.args if not arg.startswith(("origin", "HEAD", "refs/"))):
        call.note(Risk.RISKY, "git push is told something that can't be known")
    targets = [*options.operands[:1], *options.values("--repo")]
    if any(re.match(r"\w+::?|[\w.-]+@|[/~]|\.\.", target) for target in targets):
        call.note(Risk.RISKY, f"git push goes to {shown(' '.join(targets))}")


def _reset(call: ProgramCall) -> None:
    if call.options().has("--hard", "--merge", "--keep"):
        call.note(Risk.RISKY, "git reset --hard discards changes")


def _clean(call: ProgramCall) -> None:
    options = call.options("-e", "--exclude")
    if not options.has("-n", "--dry-run"):
        call.note(Risk.RISKY, "git clean removes files that git doesn't know")


def _checkout(call: ProgramCall) -> None:
    options = call.options("-b", "-B", "--orphan", "-c", "-C", "--source", "-s")
    is_discarding = call.name != "git restore" or not options.has("--staged", "-S") or options.has("--worktree", "-W")
    if is_discarding and any(operand in _EVERYTHING for operand in options.operands):
        call.note(Risk.RISKY, f"{call.name} discards all changes")
    if options.has("-f", "--force", "--discard-changes"):
        call.note(Risk.RISKY, f"{call.name} --force discards changes")


def _branch(call: ProgramCall) -> None:
    options = call.options("-u", "--set-upstream-to")
    if options.has("-D", "-M", "-C") or (
        options.has("-d", "--delete", "-m", "-c", "-f") and options.has("-f", "--force")
    ):
        call.note(Risk.RISKY, "git branch -D loses commits")


def _stash(call: ProgramCall) -> None:
    if call.args[:1] in (["drop"], ["clear"]):
        call.note(Risk.RISKY, f"git stash {call.args[0]} loses changes")


def _rewrite(call: ProgramCall) -> None:
    options = call.options(
        "-x",
        "--exec",
        "--tree-filter",
        "--index-filter",
        "--msg-filter",
        "--env-filter",
        "--commit-filter",
        "--parent-filter",
    )
    call.note(Risk.RISKY, f"{call.name} rewrites history")
    for _, command in options.found:
        if command:
            call.runner.run_child(command, None, ())


def _prune(call: ProgramCall) -> None:
    text = " ".join(call.args)
    if call.name != "git gc" or re.search(r"--prune=(?:now|all)", text):
        call.note(Risk.RISKY, f"{call.name} loses commits that nothing names")


def _update_ref(call: ProgramCall) -> None:
    call.note(Risk.RISKY, f"{call.name} moves or removes a branch by hand")


def _config(call: ProgramCall) -> None:
    options = call.options("-f", "--file", "--blob", "--type", "--default", "--comment")
    operands = [operand for operand in options.operands if operand not in ("set", "unset", "edit")]
    is_global = options.has("--global", "--system")
    call.writes(*options.values("-f", "--file"))
    name, value = (*operands, "", "")[:2]
    if is_global:
        call.note(Risk.LEAVING, "changes the settings of git outside the workspace")
    _judge_setting(call, name, value, Risk.HARD if is_global else Risk.RISKY)


def _clone(call: ProgramCall) -> None:
    options = call.options(
        *(
            "-b",
            "--branch",
            "--depth",
            "-o",
            "--origin",
            "-c",
            "--config",
            "-u",
            "--upload-pack",
            "--template",
            "--reference",
        ),
        *("-j", "--jobs", "--filter", "--separate-git-dir", "--shallow-since"),
    )
    for setting in options.values("-c", "--config"):
        name, _, value = setting.partition("=")
        _judge_setting(call, name, value, Risk.RISKY)
    for command in options.values("-u", "--upload-pack", "--template"):
        call.note(Risk.RISKY, "git clone runs something that it is given")
        call.runner.run_child(command, None, ())
    call.writes(*options.operands[1:2], *options.values("--separate-git-dir"))


def _submodule(call: ProgramCall) -> None:
    if call.args[:1] == ["foreach"]:
        call.runner.run_child(" ".join(arg for arg in call.args[1:] if arg != "--recursive"), None, ())


def _bisect(call: ProgramCall) -> None:
    if call.args[:1] == ["run"]:
        call.run(call.args[1:])


def _apply(call: ProgramCall) -> None:
    if call.options("-p", "--directory").has("--unsafe-paths"):
        call.note(Risk.LEAVING, "git apply --unsafe-paths writes wherever the patch says")


def _rm(call: ProgramCall) -> None:
    options = call.options("--pathspec-from-file")
    if (
        options.has("-r")
        and not options.has("--cached", "-n")
        and any(operand in _EVERYTHING for operand in options.operands)
    ):
        call.note(Risk.RISKY, "git rm removes everything")


def _remote(call: ProgramCall) -> None:
    if call.args[:1] == ["set-url"]:
        call.note(Risk.RISKY, "git remote set-url changes where pushes go")


def _output(call: ProgramCall) -> None:
    """init, worktree, archive, bundle, format-patch: they write where they are told."""
    options = call.options(
        "-o",
        "--output",
        "--output-directory",
        "-b",
        "-B",
        "--template",
        "--separate-git-dir",
        "--format",
        "--prefix",
        "--exec",
        "--remote",
    )
    call.writes(*options.values("-o", "--output", "--output-directory", "--separate-git-dir"))
    if call.name == "git init":
        call.writes(*options.operands[:1])
    elif call.name in ("git worktree", "git bundle"):
        call.writes(*options.operands[1:2])
    if call.name == "git worktree" and call.args[:1] == ["remove"] and options.has("-f", "--force"):
        call.note(Risk.RISKY, "git worktree remove --force discards changes")
    for command in options.values("--template", "--exec"):
        call.note(Risk.RISKY, f"{call.name} runs something that it is given")
        call.runner.run_child(command, None, ())


def _tool(call: ProgramCall) -> None:
    options = call.options("-x", "--extcmd", "-t", "--tool")
    for command in options.values("-x", "--extcmd"):
        call.runner.run_child(command, None, ())


def _sending(call: ProgramCall) -> None:
    call.note(Risk.RISKY, f"{call.name} sends something")


def _fetch(call: ProgramCall) -> None:
    options: Options = call.options("--upload-pack", "-o", "-j", "--depth", "-s", "-X")
    for command in options.values("--upload-pack"):
        call.note(Risk.RISKY, f"{call.name} runs a program")
        call.runner.run_child(command, None, ())


def _other(_call: ProgramCall) -> None:
    """Nothing is known of it but that it may change the repository."""


_VERBS: dict[str, Callable[[ProgramCall], None]] = {
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "branch": _branch,
    "stash": _stash,
    "config": _config,
    "clone": _clone,
    "submodule": _submodule,
    "bisect": _bisect,
    "rm": _rm,
    "apply": _apply,
    "remote": _remote,
    "update-ref": _update_ref,
    "replace": _update_ref,
    **dict.fromkeys(("checkout", "restore", "switch", "checkout-index"), _checkout),
    **dict.fromkeys(("rebase", "filter-branch", "filter-repo"), _rewrite),
    **dict.fromkeys(("gc", "prune", "reflog"), _prune),
    **dict.fromkeys(("init", "worktree", "archive", "bundle", "format-patch"), _output),
    **dict.fromkeys(("difftool", "mergetool"), _tool),
    **dict.fromkeys(("send-email", "daemon", "imap-send", "instaweb", "svn", "p4", "http-push", "send-pack"), _sending),
    **dict.fromkeys(("fetch", "pull", "fetch-pack"), _fetch),
}
PROGRAMS: dict[str, Judge] = {"git": _git, "hub": _git}
