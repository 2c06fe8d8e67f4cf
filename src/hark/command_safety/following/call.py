"""One program that a shell command runs, with what it may tell about itself."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from hark.command_safety.following.findings import CommandFindings, Risk
from hark.command_safety.following.options import Options, read_options
from hark.command_safety.following.paths import Spot, WorkspacePaths
from hark.command_safety.following.state import ScriptState
from hark.command_safety.following.unknown_marks import ENDLESS, NETWORK, SECRET, UNKNOWN, is_unknown, marks_of, shown

_WRITING_OPTIONS = re.compile(
    r"-[oO]|--(?:out\w*|output[\w-]*|dest\w*|target-dir\w*|prefix|directory|outdir|out-dir|log-?file|report\w*|cache-dir)"
)


class Runner(Protocol):
    """The walk that a call is part of."""

    @property
    def places(self) -> WorkspacePaths:
        """Where things are."""
        ...

    state: ScriptState

    @property
    def verdict(self) -> CommandFindings:
        """What was found so far."""
        ...

    @property
    def written(self) -> dict[str, str]:
        """What the command has put into files so far, by path."""
        ...

    @property
    def aliases(self) -> dict[str, str]:
        """The aliases that the command has made."""
        ...

    def run(self, argv: Sequence[str], feed: str | None = None) -> str:
        """Judge a program and its arguments, and return what it prints."""
        ...

    def run_text(self, text: str, feed: str | None = None) -> str:
        """Judge a script, and return what it prints."""
        ...

    def run_child(self, text: str, feed: str | None, args: Sequence[str]) -> str:
        """Judge a script that runs in a shell of its own with these positional parameters, `$0` first."""
        ...


class ProgramCall:
    """A program's name without its folder, its arguments, and `feed`, what it reads: None when nothing is piped."""

    def __init__(self, runner: Runner, name: str, args: Sequence[str], feed: str | None) -> None:
        self.runner = runner
        self.name = name
        self.args = list(args)
        self.feed = feed

    @property
    def text(self) -> str:
        """The call as a person may read it."""
        return shown(" ".join([self.name, *self.args]))[:80]

    @property
    def operands(self) -> list[str]:
        """All arguments that don't look like options: what a subcommand is found in."""
        return [arg for arg in self.args if not arg.startswith("-")]

    def options(self, *valued: str, is_leading: bool = False) -> Options:
        """Return the arguments, sorted."""
        return read_options(self.args, valued, is_leading=is_leading)

    def note(self, risk: Risk, reason: str = "") -> None:
        """The call does this."""
        self.runner.verdict.note(risk, reason)

    def run(self, argv: Sequence[str], feed: str | None = None) -> str:
        """Judge a program that this one runs, and return what it prints."""
        return self.runner.run(argv, feed) if argv else ""

    def run_text(self, text: str, feed: str | None = None) -> str:
        """Judge a script that this program runs, and return what it prints."""
        return self.runner.run_text(text, feed)

    def default_output(self) -> str:
        """Return what is printed by a program of which nothing is known."""
        return UNKNOWN + marks_of(self.feed or "", *self.args).replace(ENDLESS, "")

    def spots(self, text: str, *, is_followed: bool = True) -> list[Spot]:
        """Return where a path may lead."""
        places = self.runner.places
        return [places.locate(text, folder, is_followed=is_followed) for folder in self.runner.state.folders]

    def writes(self, *paths: str, content: str = "") -> None:
        """The call makes or changes these files, and puts this into them as far as it is known."""
        for path in paths:
            if path:
                for spot in self.spots(path):
                    self._write(path, spot, content)

    def _write(self, text: str, spot: Spot, content: str) -> None:
        places = self.runner.places
        if content:
            self.runner.written[spot.path] = "\n".join(filter(None, (self.runner.written.get(spot.path), content)))
        name = shown(text)
        if places.is_harmless(spot):
            return
        protected = places.protection(spot)
        if places.is_device(spot):
            self.note(Risk.HARD, f"writes to the device {name}")
        elif places.is_network(spot):
            self.note(Risk.HARD, f"sends to {name} over the network")
        elif protected:
            self.note(Risk.HARD, f"writes to {name}, {protected}")
        elif places.is_git_settings(spot):
            self.note(Risk.RISKY, f"writes to {name}, the settings of git")
        elif places.is_inside(spot):
            self.note(Risk.CHANGING)
        elif spot.is_unknown:
            self.note(Risk.LEAVING, f"writes to {name}, and where that is can't be told")
        else:
            self.note(Risk.LEAVING, f"writes to {name}, outside the workspace")

    def deletes(self, path: str, *, is_recursive: bool) -> None:
        """The call removes or moves away what is here."""
        for spot in self.spots(path, is_followed=path.endswith("/")):
            if is_recursive:
                self._delete_tree(path, spot)
            elif spot.lexical == "/dev/null":
                self.note(Risk.HARD, "removes /dev/null")
            else:
                self._write(path, spot, "")

    def _delete_tree(self, text: str, spot: Spot) -> None:
        places = self.runner.places
        name = shown(text)
        if spot.is_unknown:
            # With a known folder of the workspace before it, it is most likely in there.
            is_within = spot.path.startswith(places.workspace + "/") and ".." not in spot.pattern
            risk = Risk.LEAVING if is_within else Risk.HARD
            self.note(risk, f"{self.name} removes {name}, and what that is can't be told")
        elif places.is_system_tree(spot) and (not spot.pattern or not places.is_inside(spot)):
            what = "everything in" if spot.pattern else ""
            self.note(Risk.HARD, f"{self.name} removes {what} {spot.path} ({name})".replace("  ", " "))
        elif places.is_inside(spot) and (places.is_all_wild(spot) or places.is_git_folder(spot)):
            self.note(Risk.RISKY, f"{self.name} removes all of {name}")
        else:
            self._write(text, spot, "")

    def reads(self, path: str) -> str:
        """The call reads a file: return its content as far as it is known."""
        contents: list[str] = []
        for spot in self.spots(path):
            if spot.path in self.runner.written or spot.lexical in self.runner.written:
                contents.append(self.runner.written.get(spot.path, self.runner.written.get(spot.lexical, "")))
            elif self.runner.places.is_network(spot):
                self.note(Risk.RISKY, f"reads from {shown(path)} over the network")
                contents.append(NETWORK)
            else:
                contents.append(SECRET if self.runner.places.is_secret(spot) else UNKNOWN)
        return "\n".join(dict.fromkeys(contents))

    def guards_secrets(self) -> bool:
        """Note it when an argument names a file of secrets. Return whether one does, be it the workspace's own."""
        is_secret = False
        is_outside = self.is_outside()
        for arg in self.args:
            for path in _paths_in(arg, is_outside=is_outside):
                for spot in self.spots(path):
                    is_secret = is_secret or self.runner.places.is_secret(spot)
                    if self.runner.places.is_foreign_secret(spot):
                        self.note(Risk.RISKY, f"reads {shown(path)}, which holds secrets")
        return is_secret

    def changes_folder(self, path: str) -> None:
        """The shell goes there."""
        state = self.runner.state
        state.assign("OLDPWD", state.folders)
        spots = self.spots(path)
        state.folders = tuple(dict.fromkeys(_folder_of(spot) for spot in spots))

    def works_here(self) -> None:
        """The call may change anything in the folder that it runs in, and what its options tell."""
        if self.is_outside():
            self.note(Risk.LEAVING, f"runs {shown(self.name)} outside the workspace")
        for at, arg in enumerate(self.args):
            name, equals, value = arg.partition("=")
            if _WRITING_OPTIONS.fullmatch(name):
                self.writes(value if equals else "".join(self.args[at + 1 : at + 2]))
            elif re.match(r"-[oO][/~.]", arg):
                self.writes(arg[2:])

    def may_write(self, *paths: str) -> None:
        """Nobody knows what the call does with these: those that lead outside may be written to."""
        places = self.runner.places
        for path in paths:
            is_path = path.startswith(("/", "~", "../"))
            if is_path and not all(places.is_inside(spot) or places.is_harmless(spot) for spot in self.spots(path)):
                self.note(Risk.LEAVING, f"{shown(self.name)} may write to {shown(path)}, outside the workspace")

    def is_outside(self) -> bool:
        """Tell whether the call runs in a folder where nothing may be written."""
        places = self.runner.places
        return not all(places.is_inside(places.locate(".", folder)) for folder in self.runner.state.folders)


def _folder_of(spot: Spot) -> str:
    return f"{spot.path.rstrip('/')}/{spot.pattern}" if spot.pattern else spot.path


_PATH_HINTS = ("/", "~", ".env", "id_", "pem", "credential", "secret", "key", "p12", "pfx", ".")


def _paths_in(arg: str, *, is_outside: bool) -> Collection[str]:
    """Return the pieces of an argument that may be paths, such as the one in `--data=@~/.netrc`."""
    if len(arg) > 4096 or not (is_outside or any(hint in arg for hint in _PATH_HINTS)):
        return ()
    pieces = {arg}
    for separator in ("=", "@", ":", ",", " "):
        pieces |= {part for piece in tuple(pieces) for part in piece.split(separator)} if separator in arg else set()
    if arg.startswith("-") and len(arg) > 2:
        pieces.add(arg[2:])
    return {piece for piece in list(pieces)[:16] if piece and not is_unknown(piece[:1]) and not piece.startswith("-")}


# What a program does is noted in its call. It returns what it prints, None when that isn't known.
Judge = Callable[[ProgramCall], str | None]
