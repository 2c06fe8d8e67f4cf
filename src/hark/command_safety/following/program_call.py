"""One program invocation in a shell command, with methods to record its effects."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from hark.command_safety.following.findings import CommandFindings, Risk
from hark.command_safety.following.markers import (
    ENDLESS,
    NETWORK,
    SECRET,
    UNKNOWN,
    is_unknown,
    markers_in,
    printable,
)
from hark.command_safety.following.options import Options, parse_options
from hark.command_safety.following.paths import ResolvedPath, WorkspacePaths
from hark.command_safety.following.state import ScriptState

_OUTPUT_OPTIONS = re.compile(
    r"-[oO]|--(?:out\w*|output[\w-]*|dest\w*|target-dir\w*|prefix|directory|outdir|out-dir|log-?file|report\w*|cache-dir)"
)


class AnalysisContext(Protocol):
    """The analysis that a program invocation belongs to."""

    @property
    def paths(self) -> WorkspacePaths:
        """The path classifier for the workspace."""
        ...

    state: ScriptState

    @property
    def findings(self) -> CommandFindings:
        """The risks and reasons found so far."""
        ...

    @property
    def written_files(self) -> dict[str, str]:
        """The known content of files that the command has written so far, by path."""
        ...

    @property
    def aliases(self) -> dict[str, str]:
        """Aliases defined by the command, by name."""
        ...

    def analyze_program(self, argv: Sequence[str], stdin: str | None = None) -> str:
        """Analyze a program with its arguments and standard input. Return its output, if it can be predicted."""
        ...

    def analyze_script(self, text: str, stdin: str | None = None) -> str:
        """Analyze a script in the current shell. Return its output, if it can be predicted."""
        ...

    def analyze_subshell(self, text: str, stdin: str | None, args: Sequence[str]) -> str:
        """Analyze a script in a separate shell. `args` are its positional parameters, starting with `$0`."""
        ...


class ProgramCall:
    """A program invocation: the name without its folder, the arguments, and `stdin` (None if nothing is piped in)."""

    def __init__(self, context: AnalysisContext, name: str, args: Sequence[str], stdin: str | None) -> None:
        self.context = context
        self.name = name
        self.args = list(args)
        self.stdin = stdin

    @property
    def command_text(self) -> str:
        """The invocation as readable text, at most 80 characters."""
        return printable(" ".join([self.name, *self.args]))[:80]

    @property
    def operands(self) -> list[str]:
        """The arguments that don't start with `-`. Used to find a subcommand."""
        return [arg for arg in self.args if not arg.startswith("-")]

    def parse_options(self, *valued_options: str, stops_at_operand: bool = False) -> Options:
        """Return the arguments as options and operands. See `parse_options` for the parameters."""
        return parse_options(self.args, valued_options, stops_at_operand=stops_at_operand)

    def add_risk(self, risk: Risk, reason: str = "") -> None:
        """Record that the invocation has this risk, with the reason to show to the user."""
        self.context.findings.add_risk(risk, reason)

    def analyze_program(self, argv: Sequence[str], stdin: str | None = None) -> str:
        """Analyze a program that this program starts. Return its output, if it can be predicted."""
        return self.context.analyze_program(argv, stdin) if argv else ""

    def analyze_script(self, text: str, stdin: str | None = None) -> str:
        """Analyze a script that this program runs in the current shell. Return its output, if it can be predicted."""
        return self.context.analyze_script(text, stdin)

    def unknown_output(self) -> str:
        """Return a placeholder for the output of a program that isn't modelled."""
        return UNKNOWN + markers_in(self.stdin or "", *self.args).replace(ENDLESS, "")

    def resolve_path(self, path: str, *, follow_symlinks: bool = True) -> list[ResolvedPath]:
        """Return the resolved path, once for each possible current folder."""
        places = self.context.paths
        return [places.resolve(path, folder, follow_symlinks=follow_symlinks) for folder in self.context.state.folders]

    def record_write(self, *paths: str, content: str = "") -> None:
        """Record that the invocation creates or changes these files. `content` is the written text, if known."""
        for path in paths:
            if path:
                for resolved in self.resolve_path(path):
                    self._record_write_to(path, resolved, content)

    def _record_write_to(self, path_text: str, resolved: ResolvedPath, content: str) -> None:
        places = self.context.paths
        if content:
            self.context.written_files[resolved.path] = "\n".join(
                filter(None, (self.context.written_files.get(resolved.path), content))
            )
        name = printable(path_text)
        if places.is_harmless_device(resolved):
            return
        protected = places.protection_reason(resolved)
        if places.is_raw_device(resolved):
            self.add_risk(Risk.HARD, f"writes directly to the device {name}")
        elif places.is_network_device(resolved):
            self.add_risk(Risk.HARD, f"sends data over the network through {name}")
        elif protected:
            self.add_risk(Risk.HARD, f"changes {name}, {protected}")
        elif places.is_git_config(resolved):
            self.add_risk(Risk.RISKY, f"changes {name}, the repository's Git settings")
        elif places.is_inside(resolved):
            self.add_risk(Risk.CHANGING)
        elif resolved.is_unknown:
            self.add_risk(Risk.LEAVING, f"changes a file whose location can't be determined: {name}")
        else:
            self.add_risk(Risk.LEAVING, f"changes a file outside the workspace: {name}")

    def record_delete(self, path: str, *, is_recursive: bool) -> None:
        """Record that the invocation deletes a path or moves it away."""
        for resolved in self.resolve_path(path, follow_symlinks=path.endswith("/")):
            if is_recursive:
                self._record_tree_delete(path, resolved)
            elif resolved.lexical == "/dev/null":
                self.add_risk(Risk.HARD, "deletes /dev/null")
            else:
                self._record_write_to(path, resolved, "")

    def _record_tree_delete(self, path_text: str, resolved: ResolvedPath) -> None:
        places = self.context.paths
        name = printable(path_text)
        if resolved.is_unknown:
            # A known folder inside the workspace comes first, so the path is most likely inside too.
            is_within = resolved.path.startswith(places.workspace + "/") and ".." not in resolved.pattern
            risk = Risk.LEAVING if is_within else Risk.HARD
            self.add_risk(risk, f"deletes a path that can't be determined, and everything in it: {name}")
        elif places.is_critical_folder(resolved) and (not resolved.pattern or not places.is_inside(resolved)):
            what = f"everything in {resolved.path}" if resolved.pattern else f"{resolved.path} and everything in it"
            self.add_risk(Risk.HARD, f"deletes {what}" if name == resolved.path else f"deletes {what} ({name})")
        elif places.is_inside(resolved) and (places.is_match_all(resolved) or places.is_git_folder(resolved)):
            self.add_risk(Risk.RISKY, f"deletes {name} and everything in it")
        else:
            self._record_write_to(path_text, resolved, "")

    def record_read(self, path: str) -> str:
        """Record that the invocation reads a file. Return the file's content, if it can be predicted."""
        contents: list[str] = []
        for resolved in self.resolve_path(path):
            if resolved.path in self.context.written_files or resolved.lexical in self.context.written_files:
                contents.append(
                    self.context.written_files.get(resolved.path, self.context.written_files.get(resolved.lexical, ""))
                )
            elif self.context.paths.is_network_device(resolved):
                self.add_risk(Risk.RISKY, f"reads from {printable(path)} over the network")
                contents.append(NETWORK)
            else:
                contents.append(SECRET if self.context.paths.is_secret(resolved) else UNKNOWN)
        return "\n".join(dict.fromkeys(contents))

    def check_secret_arguments(self) -> bool:
        """Record a risk for each argument that names a secret file outside the workspace.

        Return whether any argument names a secret file, inside or outside the workspace.
        """
        is_secret = False
        is_outside = self.is_outside_workspace()
        for arg in self.args:
            for path in _possible_paths(arg, is_outside=is_outside):
                for resolved in self.resolve_path(path):
                    is_secret = is_secret or self.context.paths.is_secret(resolved)
                    if self.context.paths.is_secret_outside_workspace(resolved):
                        self.add_risk(Risk.RISKY, f"reads {printable(path)}, which contains secrets")
        return is_secret

    def change_folder(self, path: str) -> None:
        """Change the current folder of the analyzed shell."""
        state = self.context.state
        state.assign("OLDPWD", state.folders)
        resolved_paths = self.resolve_path(path)
        state.folders = tuple(dict.fromkeys(_folder_path(resolved) for resolved in resolved_paths))

    def check_output_locations(self) -> None:
        """Record a risk if the program runs outside the workspace, and record a write for each output option."""
        if self.is_outside_workspace():
            self.add_risk(Risk.LEAVING, f"runs {printable(self.name)} outside the workspace")
        for at, arg in enumerate(self.args):
            name, equals, value = arg.partition("=")
            if _OUTPUT_OPTIONS.fullmatch(name):
                self.record_write(value if equals else "".join(self.args[at + 1 : at + 2]))
            elif re.match(r"-[oO][/~.]", arg):
                self.record_write(arg[2:])

    def record_possible_writes(self, *paths: str) -> None:
        """Record a risk for each of `paths` outside the workspace. An unknown program may write to its arguments."""
        places = self.context.paths
        for path in paths:
            is_path = path.startswith(("/", "~", "../"))
            if is_path and not all(
                places.is_inside(resolved) or places.is_harmless_device(resolved)
                for resolved in self.resolve_path(path)
            ):
                self.add_risk(
                    Risk.LEAVING, f"{printable(self.name)} may change a file outside the workspace: {printable(path)}"
                )

    def is_outside_workspace(self) -> bool:
        """Return whether the current folder may be outside the workspace and all writable folders."""
        places = self.context.paths
        return not all(places.is_inside(places.resolve(".", folder)) for folder in self.context.state.folders)


def _folder_path(resolved: ResolvedPath) -> str:
    return f"{resolved.path.rstrip('/')}/{resolved.pattern}" if resolved.pattern else resolved.path


_PATH_HINTS = ("/", "~", ".env", "id_", "pem", "credential", "secret", "key", "p12", "pfx", ".")


def _possible_paths(arg: str, *, is_outside: bool) -> Collection[str]:
    """Return the parts of an argument that may be paths, such as `~/.netrc` in `--data=@~/.netrc`."""
    if len(arg) > 4096 or not (is_outside or any(hint in arg for hint in _PATH_HINTS)):
        return ()
    pieces = {arg}
    for separator in ("=", "@", ":", ",", " "):
        pieces |= {part for piece in tuple(pieces) for part in piece.split(separator)} if separator in arg else set()
    if arg.startswith("-") and len(arg) > 2:
        pieces.add(arg[2:])
    return {piece for piece in list(pieces)[:16] if piece and not is_unknown(piece[:1]) and not piece.startswith("-")}


# Records the effects of a program invocation. Returns the program's output, None if it isn't modelled.
ProgramAnalyzer = Callable[[ProgramCall], str | None]
