"""Analyzers for git, by subcommand."""

import re
from collections.abc import Callable

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import UNKNOWN, is_unknown, printable
from hark.command_safety.following.options import Options, parse_options, split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

_GLOBAL_VALUED = tuple(split_names("-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix"))
_READ_ONLY_SUBCOMMANDS = frozenset(
    split_names(
        "status log diff show blame annotate rev-parse describe ls-files ls-tree ls-remote cat-file shortlog "
        "grep rev-list name-rev merge-base for-each-ref show-ref var version help count-objects diff-tree "
        "diff-index diff-files check-ignore check-attr whatchanged range-diff cherry fsck show-branch verify-"
        "commit verify-tag get-tar-commit-id merge-tree column"
    )
)
# Settings that name programs to run, or the location of programs.
_PROGRAM_SETTING = re.compile(
    r"(?i:core\.(?:hookspath|sshcommand|pager|editor|fsmonitor|gitproxy|askpass|attributesfile|worktree)|alias\..*|pager\..*"
    r"|credential\..*|include\.path|includeif\..*|init\.templatedir|filter\..*|diff\..*\.(?:command|textconv)|diff\.external"
    r"|merge\..*\.driver|\w*tool\..*|gpg\..*program|url\..*|sequence\.editor|uploadpack\..*|protocol\..*|remote\..*\.(?:\w*pack|vcs|proxy)"
    r"|sendemail\..*|browser\..*|man\..*|http\.proxy|http\.sslverify|trailer\..*|submodule\..*\.update|safe\.directory)"
)
_HARMLESS_SETTING_VALUE = re.compile(r"(?:cat|less|more|true|false|:|vim|vi|nano|delta|code --wait|input|store|cache|)")
_ALL_FILES = (".", "./", ":/", "*", "./*", ":/*", "/", "..")


def _analyze_git(call: ProgramCall) -> str | None:
    options = parse_options(call.args, _GLOBAL_VALUED, stops_at_operand=True)
    before = call.context.state
    call.context.state = before.copy()
    for folder in options.values("-C", "--git-dir", "--work-tree"):
        call.change_folder(folder if not folder.endswith(".git") else folder[: -len(".git")] or ".")
    for setting in options.values("-c"):
        name, _, value = setting.partition("=")
        _check_setting(call, name, value, Risk.RISKY)
    if options.values("--exec-path", "--config-env"):
        call.add_risk(Risk.RISKY, "git runs programs from another location")
    output = None
    if options.operands:
        verb, *args = options.operands
        output = _analyze_subcommand(ProgramCall(call.context, f"git {verb}", args, call.stdin), verb)
    call.context.state = before
    return output


def _check_setting(call: ProgramCall, name: str, value: str, risk: Risk) -> None:
    """Record a risk if a setting makes git run a program."""
    if not _PROGRAM_SETTING.fullmatch(name) or (_HARMLESS_SETTING_VALUE.fullmatch(value) and risk < Risk.HARD):
        return
    if name.lower().startswith("alias.") and not value.startswith("!") and risk < Risk.HARD:
        return
    call.add_risk(risk, f"sets the Git setting {name}, which makes git run a program")
    if value:
        call.context.analyze_subshell(value.lstrip("!"), None, ())


def _analyze_subcommand(call: ProgramCall, subcommand: str) -> str | None:
    options = call.parse_options(
        "--output", "-o", "-O", "--open-files-in-pager", "--upload-pack", "-x", "--extcmd", "--exec"
    )
    if any(arg.startswith("ext::") for arg in call.args):
        call.add_risk(Risk.RISKY, f"git {subcommand} runs a program")
        call.context.analyze_subshell(" ".join(call.args).partition("ext::")[2].replace("% ", " "), None, ())
    if subcommand in _READ_ONLY_SUBCOMMANDS or _is_read_only(subcommand, call):
        call.record_write(*options.values("--output"))
        if options.has("--ext-diff", "--textconv") or (
            subcommand == "grep" and options.has("-O", "--open-files-in-pager")
        ):
            call.add_risk(Risk.RISKY, f"git {subcommand} runs a program")
        for command in (
            options.values("--upload-pack", "--exec", "-O", "--open-files-in-pager") if subcommand != "diff" else ()
        ):
            call.add_risk(Risk.RISKY, f"git {subcommand} runs a program")
            call.context.analyze_subshell(command, None, ())
        is_naming = options.has("-l", "--name-only", "--files-with-matches") or subcommand in ("ls-files", "ls-tree")
        if subcommand == "rev-parse" and options.has("--show-toplevel"):
            return call.context.paths.workspace
        if subcommand in ("rev-parse", "describe", "symbolic-ref") or options.has("--show-current"):
            return "HEAD"  # a commit name, harmless as an argument
        is_chosen = bool(options.operands) or subcommand in ("diff", "grep", "show", "log")
        return ("*.found" if is_chosen else "*") if is_naming else UNKNOWN
    call.add_risk(Risk.CHANGING)
    if call.is_outside_workspace():
        call.add_risk(Risk.LEAVING, f"git {subcommand} changes a repository outside the workspace")
    _SUBCOMMAND_ANALYZERS.get(subcommand, _analyze_other_subcommand)(call)
    return None


def _is_read_only(subcommand: str, call: ProgramCall) -> bool:
    args = call.args
    operands = [arg for arg in args if not arg.startswith("-")]
    flags = {arg.partition("=")[0] for arg in args if arg.startswith("-")}
    match subcommand:
        case "branch":
            listing = set(split_names("-a -r -v -vv -l --list --all --remotes --show-current --sort --format"))
            listing |= {"--contains", "--merged", "--no-merged", "--points-at", "--no-color", "--column", "-av", "-avv"}
            is_asking = bool(flags & {"-l", "--list", "--contains", "--merged", "--no-merged", "--points-at"})
            return flags <= listing and (not operands or is_asking)
        case "tag":
            return (not operands or bool(flags & {"-l", "--list"})) and not flags & set(
                split_names("-d -f --delete -a -s -m")
            )
        case "remote":
            return not operands or operands[0] in ("show", "get-url")
        case "stash" | "worktree" | "notes" | "bisect" | "reflog":
            first = operands[:1] or ["show" if subcommand == "reflog" else ""]
            return first[0] in ("list", "show", "log", "view") or (
                subcommand == "reflog" and first[0] not in ("expire", "delete", "drop")
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


def _analyze_push(call: ProgramCall) -> None:
    options = call.parse_options("-o", "--push-option", "--repo", "--receive-pack", "--exec", "--recurse-submodules")
    for command in options.values("--receive-pack", "--exec"):
        call.add_risk(Risk.RISKY, "git push runs a program")
        call.context.analyze_subshell(command, None, ())
    # An abbreviated option, such as --forc, counts too.
    is_forced = options.has(
        "-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "-d", "--prune"
    )
    if is_forced or any(operand.startswith(("+", ":")) for operand in options.operands[1:]):
        call.add_risk(Risk.HARD, "git push overwrites or deletes shared branches (force, delete or mirror)")
    if any(is_unknown(arg) for arg in call.args if not arg.startswith(("origin", "HEAD", "refs/"))):
        call.add_risk(Risk.RISKY, "git push has an argument that can't be determined in advance")
    targets = [*options.operands[:1], *options.values("--repo")]
    if any(re.match(r"\w+::?|[\w.-]+@|[/~]|\.\.", target) for target in targets):
        call.add_risk(Risk.RISKY, f"git push sends commits to {printable(' '.join(targets))}")


def _analyze_reset(call: ProgramCall) -> None:
    if call.parse_options().has("--hard", "--merge", "--keep"):
        call.add_risk(Risk.RISKY, "git reset --hard discards changes")


def _analyze_clean(call: ProgramCall) -> None:
    options = call.parse_options("-e", "--exclude")
    if not options.has("-n", "--dry-run"):
        call.add_risk(Risk.RISKY, "git clean deletes untracked files")


def _analyze_checkout(call: ProgramCall) -> None:
    options = call.parse_options("-b", "-B", "--orphan", "-c", "-C", "--source", "-s")
    is_discarding = call.name != "git restore" or not options.has("--staged", "-S") or options.has("--worktree", "-W")
    if is_discarding and any(operand in _ALL_FILES for operand in options.operands):
        call.add_risk(Risk.RISKY, f"{call.name} discards all changes")
    if options.has("-f", "--force", "--discard-changes"):
        call.add_risk(Risk.RISKY, f"{call.name} --force discards changes")


def _analyze_branch(call: ProgramCall) -> None:
    options = call.parse_options("-u", "--set-upstream-to")
    if options.has("-D", "-M", "-C") or (
        options.has("-d", "--delete", "-m", "-c", "-f") and options.has("-f", "--force")
    ):
        call.add_risk(Risk.RISKY, "git branch -D can lose commits")


def _analyze_stash(call: ProgramCall) -> None:
    if call.args[:1] in (["drop"], ["clear"]):
        call.add_risk(Risk.RISKY, f"git stash {call.args[0]} discards stashed changes")


def _analyze_history_rewrite(call: ProgramCall) -> None:
    options = call.parse_options(
        *split_names("-x --exec --tree-filter --index-filter --msg-filter --env-filter --commit-filter --parent-filter")
    )
    call.add_risk(Risk.RISKY, f"{call.name} rewrites history")
    for _, command in options.pairs:
        if command:
            call.context.analyze_subshell(command, None, ())


def _analyze_prune(call: ProgramCall) -> None:
    text = " ".join(call.args)
    if call.name != "git gc" or re.search(r"--prune=(?:now|all)", text):
        call.add_risk(Risk.RISKY, f"{call.name} deletes unreferenced commits")


def _analyze_update_ref(call: ProgramCall) -> None:
    call.add_risk(Risk.RISKY, f"{call.name} moves or deletes a branch directly")


def _analyze_config(call: ProgramCall) -> None:
    options = call.parse_options("-f", "--file", "--blob", "--type", "--default", "--comment")
    operands = [operand for operand in options.operands if operand not in ("set", "unset", "edit")]
    is_global = options.has("--global", "--system")
    call.record_write(*options.values("-f", "--file"))
    name, value = (*operands, "", "")[:2]
    if is_global:
        call.add_risk(Risk.LEAVING, "changes Git settings outside the workspace")
    _check_setting(call, name, value, Risk.HARD if is_global else Risk.RISKY)


def _analyze_clone(call: ProgramCall) -> None:
    options = call.parse_options(
        *split_names("-b --branch --depth -o --origin -c --config -u --upload-pack --template --reference"),
        *("-j", "--jobs", "--filter", "--separate-git-dir", "--shallow-since"),
    )
    for setting in options.values("-c", "--config"):
        name, _, value = setting.partition("=")
        _check_setting(call, name, value, Risk.RISKY)
    for command in options.values("-u", "--upload-pack", "--template"):
        call.add_risk(Risk.RISKY, "git clone runs a program from its arguments")
        call.context.analyze_subshell(command, None, ())
    call.record_write(*options.operands[1:2], *options.values("--separate-git-dir"))


def _analyze_submodule(call: ProgramCall) -> None:
    if call.args[:1] == ["foreach"]:
        call.context.analyze_subshell(" ".join(arg for arg in call.args[1:] if arg != "--recursive"), None, ())


def _analyze_bisect(call: ProgramCall) -> None:
    if call.args[:1] == ["run"]:
        call.analyze_program(call.args[1:])


def _analyze_apply(call: ProgramCall) -> None:
    if call.parse_options("-p", "--directory").has("--unsafe-paths"):
        call.add_risk(Risk.LEAVING, "git apply --unsafe-paths writes to any path that the patch names")


def _analyze_rm(call: ProgramCall) -> None:
    options = call.parse_options("--pathspec-from-file")
    if (
        options.has("-r")
        and not options.has("--cached", "-n")
        and any(operand in _ALL_FILES for operand in options.operands)
    ):
        call.add_risk(Risk.RISKY, "git rm deletes everything")


def _analyze_remote(call: ProgramCall) -> None:
    if call.args[:1] == ["set-url"]:
        call.add_risk(Risk.RISKY, "git remote set-url changes the server that pushes go to")


def _analyze_output_command(call: ProgramCall) -> None:
    """Analyze init, worktree, archive, bundle and format-patch, which write to a path from their arguments."""
    options = call.parse_options(
        *split_names(
            "-o --output --output-directory -b -B --template --separate-git-dir --format --prefix --exec --remote"
        )
    )
    call.record_write(*options.values("-o", "--output", "--output-directory", "--separate-git-dir"))
    if call.name == "git init":
        call.record_write(*options.operands[:1])
    elif call.name in ("git worktree", "git bundle"):
        call.record_write(*options.operands[1:2])
    if call.name == "git worktree" and call.args[:1] == ["remove"] and options.has("-f", "--force"):
        call.add_risk(Risk.RISKY, "git worktree remove --force discards changes")
    for command in options.values("--template", "--exec"):
        call.add_risk(Risk.RISKY, f"{call.name} runs a program from its arguments")
        call.context.analyze_subshell(command, None, ())


def _analyze_diff_tool(call: ProgramCall) -> None:
    options = call.parse_options("-x", "--extcmd", "-t", "--tool")
    for command in options.values("-x", "--extcmd"):
        call.context.analyze_subshell(command, None, ())


def _analyze_sending_command(call: ProgramCall) -> None:
    call.add_risk(Risk.RISKY, f"{call.name} sends data to another machine")


def _analyze_fetch(call: ProgramCall) -> None:
    options: Options = call.parse_options("--upload-pack", "-o", "-j", "--depth", "-s", "-X")
    for command in options.values("--upload-pack"):
        call.add_risk(Risk.RISKY, f"{call.name} runs a program")
        call.context.analyze_subshell(command, None, ())


def _analyze_other_subcommand(_call: ProgramCall) -> None:
    """Do nothing: the caller has already recorded that the subcommand may change the repository."""


_SUBCOMMAND_ANALYZERS: dict[str, Callable[[ProgramCall], None]] = {
    "push": _analyze_push,
    "reset": _analyze_reset,
    "clean": _analyze_clean,
    "branch": _analyze_branch,
    "stash": _analyze_stash,
    "config": _analyze_config,
    "clone": _analyze_clone,
    "submodule": _analyze_submodule,
    "bisect": _analyze_bisect,
    "rm": _analyze_rm,
    "apply": _analyze_apply,
    "remote": _analyze_remote,
    "update-ref": _analyze_update_ref,
    "replace": _analyze_update_ref,
    **dict.fromkeys(("checkout", "restore", "switch", "checkout-index"), _analyze_checkout),
    **dict.fromkeys(("rebase", "filter-branch", "filter-repo"), _analyze_history_rewrite),
    **dict.fromkeys(("gc", "prune", "reflog"), _analyze_prune),
    **dict.fromkeys(("init", "worktree", "archive", "bundle", "format-patch"), _analyze_output_command),
    **dict.fromkeys(("difftool", "mergetool"), _analyze_diff_tool),
    **dict.fromkeys(
        ("send-email", "daemon", "imap-send", "instaweb", "svn", "p4", "http-push", "send-pack"),
        _analyze_sending_command,
    ),
    **dict.fromkeys(("fetch", "pull", "fetch-pack"), _analyze_fetch),
}
PROGRAMS: dict[str, ProgramAnalyzer] = {"git": _analyze_git, "hub": _analyze_git}
