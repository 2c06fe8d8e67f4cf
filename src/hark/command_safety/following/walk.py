"""Walking through a parsed shell command as a shell would, to see what each program in it would do."""

import shlex
from collections.abc import Sequence
from itertools import product

from hark.command_safety.following.call import ProgramCall
from hark.command_safety.following.expansion import Expansion, Fields
from hark.command_safety.following.findings import CommandFindings, Risk
from hark.command_safety.following.lookup import judge_call, judge_environment
from hark.command_safety.following.paths import WorkspacePaths
from hark.command_safety.following.state import ScriptState
from hark.command_safety.following.unknown_marks import (
    ENDLESS,
    NETWORK,
    UNKNOWN,
    is_unknown,
    marks_of,
    shown,
    without_marks,
)
from hark.command_safety.parsing.syntax import parse
from hark.command_safety.parsing.words import (
    Assignment,
    Chain,
    Command,
    Compound,
    Function,
    LiteralText,
    Pipeline,
    Redirect,
    Script,
    ShellSyntaxError,
    Simple,
    Substitution,
    Variable,
    Word,
)

DEPTH_MAX = 48
STEPS_MAX = 20_000
CHARACTERS_MAX = 400_000
VARIANTS_MAX = 128
FOLDERS_MAX = 12
_TOO_TANGLED = "it is too long or too tangled to be judged"
_ENDLESS = {("true",), (":",), ("1",), ("[", "1", "]"), ("[", "true", "]")}


class CommandWalk:
    """One command, being judged. Its limits make it end soon: beyond them it says that it can't tell."""

    def __init__(self, places: WorkspacePaths, folder: str) -> None:
        self.places = places
        self.verdict = CommandFindings()
        self.written: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.state = ScriptState((folder,), {}, {})
        self._functions: dict[str, list[Command]] = {}
        self._uncalled: dict[str, None] = {}
        # The bodies of functions that are running, by identity, each with how many forks there were before it.
        self._calling: dict[int, int] = {}
        self._forks = 0
        self._depth = 0
        self._steps_left = STEPS_MAX
        self._characters_left = CHARACTERS_MAX
        self._files = 0
        # What the command reads whose words are being expanded: `>(...)` in them reads the same.
        self._fed: str | None = None

    def judge(self, text: str) -> None:
        """Judge a whole command."""
        self.run_text(text)
        # A function that is never called here may be called by what comes later: nothing is known of its arguments.
        for name in list(self._uncalled):
            for body in self._functions[name]:
                self._command(body, None)

    def run_text(self, text: str, feed: str | None = None) -> str:
        """Judge a script, and return what it prints."""
        if is_unknown(text):
            self._note_unknown_script(text)
        self._characters_left -= len(text)
        if self._characters_left < 0:
            return self._give_up(_TOO_TANGLED)
        try:
            return self._script(parse(text), feed)
        except ShellSyntaxError as error:
            self.verdict.add_command(shown(text))
            self._give_up(f"it can't be parsed: {error}")
            self._run_loosely(text)
            return UNKNOWN

    def run_child(self, text: str, feed: str | None, args: Sequence[str]) -> str:
        """Judge a script that runs in a shell of its own with these positional parameters, `$0` first."""
        before = self.state
        self.state = before.copy()
        if args:
            self.state.assign("0", (args[0],))
        self.state.assign_array("@", tuple(args[1:]))
        printed = self.run_text(text, feed)
        self.state = before
        return printed

    def _note_unknown_script(self, text: str) -> None:
        if NETWORK in text:
            self.verdict.note(Risk.HARD, "runs what comes from the network")
        elif marks_of(text) != UNKNOWN:
            self.verdict.note(Risk.HARD, "runs a script that is hidden in an encoding")
        elif is_unknown(text.strip()[:1]):
            self.verdict.note(Risk.RISKY, "runs a script that can't be known")

    def _run_loosely(self, text: str) -> None:
        """Judge what can't be parsed by its bare words: better a rough look than none."""
        for symbol in ";|&(){}`\"'$\\":
            text = text.replace(symbol, "\n")
        for line in text.split("\n")[:500]:
            words = line.split()
            if words:
                self.run(words)

    def _give_up(self, why: str) -> str:
        self.verdict.note(Risk.RISKY, why)
        return UNKNOWN

    def _enter(self) -> bool:
        """Go one level deeper, and tell whether that is allowed. Whoever calls it goes back up."""
        self._depth += 1
        self._steps_left -= 1
        return self._depth <= DEPTH_MAX and self._steps_left > 0

    def _script(self, script: Script, feed: str | None) -> str:
        printed: list[str] = []
        try:
            if not self._enter():
                return self._give_up(_TOO_TANGLED)
            for chain in script.chains:
                text = self._chain(chain, feed)
                if text:
                    printed.append(text)
        finally:
            self._depth -= 1
        return "\n".join(printed)

    def _chain(self, chain: Chain, feed: str | None) -> str:
        # Whoever hides behind an `exit` that doesn't exit is judged as well.
        self.state.is_ended = False
        if chain.is_background:
            self._forks += 1
        start = self.state.copy() if chain.is_background else None
        printed: list[str] = []
        exits: list[ScriptState] = []
        for at, pipeline in enumerate(chain.pipelines):
            before = self.state.copy()
            printed.append(self._pipeline(pipeline, feed))
            operator = chain.operators[at] if at < len(chain.operators) else ""
            # A `cd` is the one command whose failing matters here: all else leaves the state as it is.
            failed = before if self.state.folders != before.folders and not self._are_folders() else self.state
            if operator == "||":
                exits.append(self.state)
                self.state = failed.copy() if self.state.folders == before.folders else before
            elif failed is not self.state or (operator and not _is_certain(pipeline)):
                exits.append(failed.copy() if operator else before)
        for state in exits:
            self.state.join(state)
        if len(self.state.folders) > FOLDERS_MAX:
            self.state.folders = (UNKNOWN,)
        if start is not None:
            self.state = start
        return "\n".join(text for text in printed if text)

    def _are_folders(self) -> bool:
        return all(not is_unknown(folder) and self.places.is_folder(folder) for folder in self.state.folders)

    def _pipeline(self, pipeline: Pipeline, feed: str | None) -> str:
        if len(pipeline.commands) == 1:
            return self._command(pipeline.commands[0], feed) or ""
        self._forks += 1
        for command in pipeline.commands:
            before = self.state.copy()
            feed = self._command(command, feed)
            self.state = before
        return feed or ""

    def _command(self, command: Command, feed: str | None) -> str:
        match command:
            case Simple():
                return self._simple(command, feed)
            case Function(name, body):
                self._functions.setdefault(name, []).append(body)
                self._uncalled[name] = None
                self.verdict.note(Risk.CHANGING)
                return ""
            case Compound():
                feed = self._feed(command.redirects, feed)
                printed = self._compound(command, feed)
                return self._redirect_output(command.redirects, printed)

    def _compound(self, command: Compound, feed: str | None) -> str:
        match command.kind:
            case "if" | "case":
                return self._branches(command, feed)
            case "while" | "until" | "for":
                return self._loop(command, feed)
            case "subshell":
                before = self.state.copy()
                printed = self._script(command.blocks[0], feed)
                self.state = before
                return printed
            case "group":
                return self._script(command.blocks[0], feed)
            case _:
                self._expand_all(command.words)
                self.verdict.note(Risk.CHANGING)
                return ""

    def _branches(self, command: Compound, feed: str | None) -> str:
        self._expand_all(command.words)
        printed: list[str] = []
        ends: list[ScriptState] = []
        is_if = command.kind == "if"
        for at, block in enumerate(command.blocks):
            is_condition = is_if and at % 2 == 0 and at < len(command.blocks) - 1
            before = self.state.copy()
            printed.append(self._script(block, feed))
            if not is_condition:
                ends.append(self.state)
                self.state = before
        if is_if and len(command.blocks) % 2 == 1:
            self.state = ends.pop()
        for end in ends:
            self.state.join(end)
        return "\n".join(text for text in printed if text)

    def _loop(self, command: Compound, feed: str | None) -> str:
        if command.kind == "for" and command.name:
            words = command.words or ((_positional(),),)
            items = [field for word in words for choice in self._expansion().choices(word) for field in choice]
            self.state.assign(command.name, tuple(items) or ("",))
        else:
            self._expand_all(command.words)
        before = self.state.copy()
        forks = self._forks
        printed = [self._script(block, feed) for block in command.blocks]
        if self._forks > forks and _is_endless(command) and any(_starts_jobs(block) for block in command.blocks):
            self.verdict.note(Risk.HARD, "starts processes without end")
        if not self.state.is_like(before):
            # What the first round set, the second one uses.
            self.state.is_ended = False
            self.state.join(before)
            printed.extend(self._script(block, feed) for block in command.blocks)
            self.state.join(before)
        return "\n".join(text for text in printed if text)

    def _expansion(self) -> Expansion:
        return Expansion(self.state, self._output, self.places.home)

    def _expand_all(self, words: Sequence[Word]) -> None:
        for word in words:
            self._expansion().values(word)

    def _output(self, output: Substitution) -> str:
        """Judge a nested script, and return what it prints, or the name of the file that stands for it."""
        before = self.state.copy()
        printed = ""
        if output.form != ">(":
            printed = self._script(output.script, None)
        else:
            # What it will be fed with isn't known yet: a shell in it would run that.
            self._script(output.script, self._fed or UNKNOWN)
        self.state = before
        if output.form == "$(":
            return printed.rstrip("\n")
        self._files += 1
        path = f"/dev/fd/{100 + self._files}"
        self.written[path] = printed
        return path

    def _simple(self, command: Simple, feed: str | None) -> str:
        feed = self._feed(command.redirects, feed)
        outer, self._fed = self._fed, feed
        choices = [self._expansion().choices(word) for word in command.words]
        variants = _variants(choices)
        assigned = [(each, *self._assigned(each)) for each in command.assignments]
        before = self.state
        if any(variants):
            self.state = before.copy()
        for assignment, values, items in assigned:
            self._assign(assignment, values, items, is_alone=not any(variants))
        environment = self.state
        printed = [self.run(argv, feed) for argv in variants if argv]
        if not command.words:
            # `$(<file)` prints the file.
            printed.append(feed or "")
        if any(variants):
            # The assignments before a program are for that program alone, but it may change the state itself.
            self.state = self._without(environment, before, command.assignments)
        self._fed = outer
        return self._redirect_output(command.redirects, "\n".join(printed))

    def _without(self, state: ScriptState, before: ScriptState, assignments: Sequence[Assignment]) -> ScriptState:
        for assignment in assignments:
            if assignment.items is None:
                state.forget(assignment.name)
                if assignment.name in before.variables:
                    state.variables[assignment.name] = before.variables[assignment.name]
        return state

    def _assigned(self, assignment: Assignment) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        expansion = self._expansion()
        if assignment.items is not None:
            return (), tuple(field for word in assignment.items for each in expansion.choices(word) for field in each)
        values = expansion.values(assignment.value)
        if assignment.is_added:
            old = self.state.variables.get(assignment.name, (UNKNOWN,))
            values = tuple(first + second for first, second in product(old, values))
        return values, None

    def _assign(
        self, assignment: Assignment, values: tuple[str, ...], items: tuple[str, ...] | None, *, is_alone: bool
    ) -> None:
        for value in values:
            judge_environment(self, assignment.name, value)
            ProgramCall(self, assignment.name, [value], None).guards_secrets()
        if items is not None:
            self.state.assign_array(assignment.name, items)
        else:
            self.state.assign(assignment.name, values)
        if is_alone:
            self.verdict.note(Risk.CHANGING)
            self.verdict.add_command(shown(f"{assignment.name}={' '.join(values or items or ())}"[:500]))

    def _feed(self, redirects: Sequence[Redirect], feed: str | None) -> str | None:
        """Return what a command reads, after its redirections."""
        for redirect in redirects:
            if redirect.document is not None:
                feed = "\n".join(self._expansion().values(redirect.document.body))
            elif redirect.operator == "<<<":
                feed = "\n".join(self._expansion().values(redirect.target))
            elif redirect.operator in ("<", "<>"):
                call = ProgramCall(self, "<", self._expansion().values(redirect.target), feed)
                call.guards_secrets()
                feed = "\n".join(call.reads(path) for path in call.args)
        return feed

    def _redirect_output(self, redirects: Sequence[Redirect], printed: str) -> str:
        """Judge where the output of a command goes, and return what of it is left for a pipe."""
        left = printed
        for redirect in redirects:
            if redirect.operator not in (">", ">>", ">|", ">&", "&>", "&>>", "<>"):
                continue
            outer, self._fed = self._fed, printed or UNKNOWN
            targets = self._expansion().values(redirect.target)
            self._fed = outer
            for target in targets:
                if redirect.operator == ">&" and (target.isdigit() or target.rstrip("-").isdigit() or target == "-"):
                    continue
                call = ProgramCall(self, ">", [target], printed)
                call.writes(target, content=printed)
                if ENDLESS in printed and not any(self.places.is_harmless(spot) for spot in call.spots(target)):
                    self.verdict.note(Risk.HARD, f"fills the disk through {shown(target)}")
                if not any(self.places.is_harmless(spot) for spot in call.spots(target)):
                    self.verdict.add_command(shown(f"> {target}"))
                    left = ""
        return left

    def run(self, argv: Sequence[str], feed: str | None = None) -> str:
        """Judge a program and its arguments, and return what it prints."""
        try:
            self._steps_left -= len(argv) // 20
            if not self._enter():
                return self._give_up(_TOO_TANGLED)
            name = argv[0]
            if is_unknown(name):
                return self._run_unknown(argv, feed)
            if name in self.aliases:
                text = self.aliases.pop(name)
                printed = self.run_text(f"{text} {shlex.join(argv[1:])}", feed)
                self.aliases[name] = text
                return printed
            if name in self._functions:
                return self._call_function(name, argv[1:], feed)
            self.verdict.add_command(_plain(argv))
            self.written["/dev/stdin"] = feed or ""
            return judge_call(self, argv, feed)
        finally:
            self._depth -= 1

    def _run_unknown(self, argv: Sequence[str], feed: str | None) -> str:
        """Judge a program whose name isn't known: as it is when the unknown part of it is empty."""
        self.verdict.add_command(_plain(argv))
        if NETWORK in argv[0]:
            self.verdict.note(Risk.HARD, "runs what comes from the network")
        self.verdict.note(Risk.RISKY, f"runs a program that can't be known ({shown(' '.join(argv))[:60]})")
        left = without_marks(argv[0])
        rest = [left, *argv[1:]] if left else argv[1:]
        if rest:
            self.run(rest, feed)
        return UNKNOWN + marks_of(*argv, feed or "")

    def _call_function(self, name: str, args: Sequence[str], feed: str | None) -> str:
        self._uncalled.pop(name, None)
        outer = self.state.arrays.get("@")
        printed: list[str] = []
        for body in tuple(self._functions[name]):
            if id(body) in self._calling:
                if self._forks > self._calling[id(body)]:
                    self.verdict.note(Risk.HARD, f"{name} starts itself over and over: a fork bomb")
                printed.append(UNKNOWN)
                continue
            self._calling[id(body)] = self._forks
            self.state.assign_array("@", tuple(args))
            printed.append(self._command(body, feed))
            self.state.is_ended = False
            self._calling.pop(id(body))
        self.state.arrays.pop("@", None)
        if outer is not None:
            self.state.arrays["@"] = outer
        return "\n".join(printed)


def _variants(choices: Sequence[Sequence[Fields]]) -> list[list[str]]:
    """Return every way to read a command, or, when there are too many, all of them in one."""
    count = 1
    for each in choices:
        count *= len(each)
    if count <= VARIANTS_MAX:
        return [[field for fields in choice for field in fields] for choice in product(*choices)]
    first, *rest = choices
    args = [field for each in rest for fields in each for field in fields]
    return [[*fields, *args] for fields in first]


def _is_certain(pipeline: Pipeline) -> bool:
    """Tell whether a pipeline can't fail, as far as it matters: a lone assignment or a `cd`."""
    command = pipeline.commands[0]
    if len(pipeline.commands) > 1 or not isinstance(command, Simple):
        return False
    return not command.words or command.words[0] in (
        (LiteralText("cd"),),
        (LiteralText("pushd"),),
        (LiteralText("export"),),
    )


def _is_endless(command: Compound) -> bool:
    if command.kind == "for":
        return not command.name
    condition = command.blocks[0]
    words = _only_words(condition)
    return words in _ENDLESS if command.kind == "while" else words == ("false",)


def _only_words(script: Script) -> tuple[str, ...]:
    """Return the plain words of a script that is one simple command."""
    if len(script.chains) != 1 or len(script.chains[0].pipelines) != 1:
        return ()
    command = script.chains[0].pipelines[0].commands[0]
    if not isinstance(command, Simple):
        return ()
    return tuple("".join(part.text for part in word if isinstance(part, LiteralText)) for word in command.words)


def _starts_jobs(script: Script) -> bool:
    return any(chain.is_background for chain in script.chains)


def _positional() -> Variable:
    return Variable("@", is_quoted=True)


def _plain(argv: Sequence[str]) -> str:
    """Return a command as text that rules are matched with."""
    folder, slash, name = argv[0].rpartition("/")
    is_usual = folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")
    words = [name if slash and is_usual else argv[0], *argv[1:]]
    return shown(" ".join(shlex.quote(word) if not word or " " in word or "\n" in word else word for word in words))
