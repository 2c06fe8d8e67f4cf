"""Analyzes a parsed shell command step by step, as a shell would run it, and records the effects of each program."""

import shlex
from collections.abc import Sequence
from itertools import product

from hark.command_safety.following.expansion import Fields, WordExpansion
from hark.command_safety.following.findings import CommandFindings, Risk
from hark.command_safety.following.markers import (
    ENDLESS,
    NETWORK,
    UNKNOWN,
    is_unknown,
    markers_in,
    printable,
    remove_markers,
)
from hark.command_safety.following.paths import WorkspacePaths
from hark.command_safety.following.program_call import ProgramCall
from hark.command_safety.following.program_lookup import analyze_environment_variable, analyze_invocation
from hark.command_safety.following.state import ScriptState
from hark.command_safety.parsing.syntax import parse
from hark.command_safety.parsing.syntax_tree import (
    Assignment,
    Chain,
    CommandNode,
    CompoundCommand,
    FunctionDefinition,
    LiteralText,
    Pipeline,
    Redirect,
    Script,
    ShellSyntaxError,
    SimpleCommand,
    Substitution,
    Variable,
    Word,
)

DEPTH_MAX = 48
STEPS_MAX = 20_000
CHARACTERS_MAX = 400_000
VARIANTS_MAX = 128
FOLDERS_MAX = 12
_TOO_COMPLEX = "too long or too complex to analyze"
_ENDLESS_CONDITIONS = {("true",), (":",), ("1",), ("[", "1", "]"), ("[", "true", "]")}


class CommandAnalysis:
    """The analysis of one command. Limits keep it fast; a command that exceeds them is RISKY."""

    def __init__(self, paths: WorkspacePaths, folder: str) -> None:
        self.paths = paths
        self.findings = CommandFindings()
        self.written_files: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.state = ScriptState((folder,), {}, {})
        self._functions: dict[str, list[CommandNode]] = {}
        self._uncalled_functions: dict[str, None] = {}
        # The function bodies being analyzed, by identity, with the number of forks before each of them.
        self._active_functions: dict[int, int] = {}
        self._fork_count = 0
        self._depth = 0
        self._steps_left = STEPS_MAX
        self._characters_left = CHARACTERS_MAX
        self._pipe_count = 0
        # Standard input of the command whose words are being expanded. A `>(...)` in these words reads the same
        # input.
        self._current_stdin: str | None = None

    def analyze(self, text: str) -> None:
        """Analyze a complete command."""
        self.analyze_script(text)
        # Later commands may call a function that isn't called here, so analyze it with unknown arguments.
        for name in list(self._uncalled_functions):
            for body in self._functions[name]:
                self._analyze_command(body, None)

    def analyze_script(self, text: str, stdin: str | None = None) -> str:
        """Analyze a script in the current shell. Return its output, with unknown parts marked."""
        if is_unknown(text):
            self._add_unknown_script_risk(text)
        self._characters_left -= len(text)
        if self._characters_left < 0:
            return self._add_unanalyzable_risk(_TOO_COMPLEX)
        try:
            return self._analyze_parsed_script(parse(text), stdin)
        except ShellSyntaxError as error:
            self.findings.add_command(printable(text))
            self._add_unanalyzable_risk(f"can't be parsed: {error}")
            self._analyze_unparsable_script(text)
            return UNKNOWN

    def analyze_subshell(self, text: str, stdin: str | None, args: Sequence[str]) -> str:
        """Analyze a script in a separate shell. `args` are its positional parameters, starting with `$0`."""
        before = self.state
        self.state = before.copy()
        if args:
            self.state.assign("0", (args[0],))
        self.state.assign_array("@", tuple(args[1:]))
        output = self.analyze_script(text, stdin)
        self.state = before
        return output

    def _add_unknown_script_risk(self, text: str) -> None:
        if NETWORK in text:
            self.findings.add_risk(Risk.HARD, "runs code from the network")
        elif markers_in(text) != UNKNOWN:
            self.findings.add_risk(Risk.HARD, "runs a script that is decoded at run time")
        elif is_unknown(text.strip()[:1]):
            self.findings.add_risk(Risk.RISKY, "runs a script that can't be determined in advance")

    def _analyze_unparsable_script(self, text: str) -> None:
        """Split an unparsable script into pieces and analyze each as a command, to get at least a rough result."""
        for symbol in ";|&(){}`\"'$\\":
            text = text.replace(symbol, "\n")
        for line in text.split("\n")[:500]:
            words = line.split()
            if words:
                self.analyze_program(words)

    def _add_unanalyzable_risk(self, reason: str) -> str:
        self.findings.add_risk(Risk.RISKY, reason)
        return UNKNOWN

    def _enter_level(self) -> bool:
        """Enter a nesting level. Return whether the limits allow it. The caller must decrement `_depth` on leaving."""
        self._depth += 1
        self._steps_left -= 1
        return self._depth <= DEPTH_MAX and self._steps_left > 0

    def _analyze_parsed_script(self, script: Script, stdin: str | None) -> str:
        output: list[str] = []
        try:
            if not self._enter_level():
                return self._add_unanalyzable_risk(_TOO_COMPLEX)
            for chain in script.chains:
                if self._steps_left <= 0:
                    return self._add_unanalyzable_risk(_TOO_COMPLEX)
                text = self._analyze_chain(chain, stdin)
                if text:
                    output.append(text)
        finally:
            self._depth -= 1
        return "\n".join(output)

    def _analyze_chain(self, chain: Chain, stdin: str | None) -> str:
        # Also analyze commands after an `exit`, because the `exit` may not be reached.
        self.state.is_ended = False
        if chain.is_background:
            self._fork_count += 1
        start = self.state.copy() if chain.is_background else None
        output: list[str] = []
        exits: list[ScriptState] = []
        for at, pipeline in enumerate(chain.pipelines):
            before = self.state.copy()
            output.append(self._analyze_pipeline(pipeline, stdin))
            operator = chain.operators[at] if at < len(chain.operators) else ""
            # Only a failed `cd` matters here. Other failures leave the state unchanged.
            failed = before if self.state.folders != before.folders and not self._all_folders_exist() else self.state
            if operator == "||":
                exits.append(self.state)
                self.state = failed.copy() if self.state.folders == before.folders else before
            elif failed is not self.state or (operator and not _is_assumed_to_succeed(pipeline)):
                exits.append(failed.copy() if operator else before)
        for state in exits:
            self.state.merge(state)
        if len(self.state.folders) > FOLDERS_MAX:
            self.state.folders = (UNKNOWN,)
        if start is not None:
            self.state = start
        return "\n".join(text for text in output if text)

    def _all_folders_exist(self) -> bool:
        return all(not is_unknown(folder) and self.paths.is_folder(folder) for folder in self.state.folders)

    def _analyze_pipeline(self, pipeline: Pipeline, stdin: str | None) -> str:
        if len(pipeline.commands) == 1:
            return self._analyze_command(pipeline.commands[0], stdin) or ""
        self._fork_count += 1
        for command in pipeline.commands:
            before = self.state.copy()
            stdin = self._analyze_command(command, stdin)
            self.state = before
        return stdin or ""

    def _analyze_command(self, command: CommandNode, stdin: str | None) -> str:
        match command:
            case SimpleCommand():
                return self._analyze_simple(command, stdin)
            case FunctionDefinition(name, body):
                self._functions.setdefault(name, []).append(body)
                self._uncalled_functions[name] = None
                self.findings.add_risk(Risk.CHANGING)
                return ""
            case CompoundCommand():
                stdin = self._redirect_input(command.redirects, stdin)
                output = self._analyze_compound(command, stdin)
                return self._redirect_output(command.redirects, output)

    def _analyze_compound(self, command: CompoundCommand, stdin: str | None) -> str:
        match command.kind:
            case "if" | "case":
                return self._analyze_branches(command, stdin)
            case "while" | "until" | "for":
                return self._analyze_loop(command, stdin)
            case "subshell":
                before = self.state.copy()
                output = self._analyze_parsed_script(command.blocks[0], stdin)
                self.state = before
                return output
            case "group":
                return self._analyze_parsed_script(command.blocks[0], stdin)
            case _:
                self._expand_words(command.words)
                self.findings.add_risk(Risk.CHANGING)
                return ""

    def _analyze_branches(self, command: CompoundCommand, stdin: str | None) -> str:
        self._expand_words(command.words)
        output: list[str] = []
        ends: list[ScriptState] = []
        is_if = command.kind == "if"
        for at, block in enumerate(command.blocks):
            is_condition = is_if and at % 2 == 0 and at < len(command.blocks) - 1
            before = self.state.copy()
            output.append(self._analyze_parsed_script(block, stdin))
            if not is_condition:
                ends.append(self.state)
                self.state = before
        if is_if and len(command.blocks) % 2 == 1:
            self.state = ends.pop()
        for end in ends:
            self.state.merge(end)
        return "\n".join(text for text in output if text)

    def _analyze_loop(self, command: CompoundCommand, stdin: str | None) -> str:
        if command.kind == "for" and command.name:
            words = command.words or ((_positional_parameters(),),)
            items = [
                field for word in words for choice in self._create_expansion().possible_fields(word) for field in choice
            ]
            self.state.assign(command.name, tuple(items) or ("",))
        else:
            self._expand_words(command.words)
        before = self.state.copy()
        forks = self._fork_count
        output = [self._analyze_parsed_script(block, stdin) for block in command.blocks]
        if (
            self._fork_count > forks
            and _is_endless_loop(command)
            and any(_has_background_job(block) for block in command.blocks)
        ):
            self.findings.add_risk(Risk.HARD, "starts processes in an endless loop")
        if not self.state.is_same_as(before):
            # Analyze the body again, because the second iteration uses variables set by the first.
            self.state.is_ended = False
            self.state.merge(before)
            output.extend(self._analyze_parsed_script(block, stdin) for block in command.blocks)
            self.state.merge(before)
        return "\n".join(text for text in output if text)

    def _create_expansion(self) -> WordExpansion:
        return WordExpansion(self.state, self._analyze_substitution, self.paths.home)

    def _expand_words(self, words: Sequence[Word]) -> None:
        for word in words:
            self._create_expansion().possible_values(word)

    def _analyze_substitution(self, substitution: Substitution) -> str:
        """Analyze a substitution's script. Return its output, or the path of its pipe for `<(...)` and `>(...)`."""
        before = self.state.copy()
        output = ""
        if substitution.form != ">(":
            output = self._analyze_parsed_script(substitution.script, None)
        else:
            # Its input isn't known yet. A shell inside it would run that input.
            self._analyze_parsed_script(substitution.script, self._current_stdin or UNKNOWN)
        self.state = before
        if substitution.form == "$(":
            return output.rstrip("\n")
        self._pipe_count += 1
        path = f"/dev/fd/{100 + self._pipe_count}"
        self.written_files[path] = output
        return path

    def _analyze_simple(self, command: SimpleCommand, stdin: str | None) -> str:
        stdin = self._redirect_input(command.redirects, stdin)
        outer, self._current_stdin = self._current_stdin, stdin
        choices = [self._create_expansion().possible_fields(word) for word in command.words]
        variants = _possible_argument_lists(choices)
        assigned = [(each, *self._assigned_values(each)) for each in command.assignments]
        before = self.state
        if any(variants):
            self.state = before.copy()
        for assignment, values, items in assigned:
            self._apply_assignment(assignment, values, items, has_no_program=not any(variants))
        environment = self.state
        output = [self.analyze_program(argv, stdin) for argv in variants if argv]
        self._steps_left -= sum(map(len, output)) // 500
        if not command.words:
            # `$(<file)` prints the file.
            output.append(stdin or "")
        if any(variants):
            # Assignments before a program apply only to that program, but the program itself may change the state.
            self.state = self._undo_assignments(environment, before, command.assignments)
        self._current_stdin = outer
        return self._redirect_output(command.redirects, "\n".join(output))

    def _undo_assignments(
        self, state: ScriptState, before: ScriptState, assignments: Sequence[Assignment]
    ) -> ScriptState:
        for assignment in assignments:
            if assignment.items is None:
                state.forget(assignment.name)
                if assignment.name in before.variables:
                    state.variables[assignment.name] = before.variables[assignment.name]
        return state

    def _assigned_values(self, assignment: Assignment) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        expansion = self._create_expansion()
        if assignment.items is not None:
            return (), tuple(
                field for word in assignment.items for each in expansion.possible_fields(word) for field in each
            )
        values = expansion.possible_values(assignment.value)
        if assignment.is_append:
            old = self.state.variables.get(assignment.name, (UNKNOWN,))
            values = tuple(first + second for first, second in product(old, values))
        return values, None

    def _apply_assignment(
        self, assignment: Assignment, values: tuple[str, ...], items: tuple[str, ...] | None, *, has_no_program: bool
    ) -> None:
        for value in values:
            analyze_environment_variable(self, assignment.name, value)
            ProgramCall(self, assignment.name, [value], None).check_secret_arguments()
        if items is not None:
            self.state.assign_array(assignment.name, items)
        else:
            self.state.assign(assignment.name, values)
        if has_no_program:
            self.findings.add_risk(Risk.CHANGING)
            self.findings.add_command(printable(f"{assignment.name}={' '.join(values or items or ())}"[:500]))

    def _redirect_input(self, redirects: Sequence[Redirect], stdin: str | None) -> str | None:
        """Return the standard input of a command after its redirections."""
        for redirect in redirects:
            if redirect.document is not None:
                stdin = "\n".join(self._create_expansion().possible_values(redirect.document.body))
            elif redirect.operator == "<<<":
                stdin = "\n".join(self._create_expansion().possible_values(redirect.target))
            elif redirect.operator in ("<", "<>"):
                call = ProgramCall(self, "<", self._create_expansion().possible_values(redirect.target), stdin)
                call.check_secret_arguments()
                stdin = "\n".join(call.record_read(path) for path in call.args)
        return stdin

    def _redirect_output(self, redirects: Sequence[Redirect], output: str) -> str:
        """Record where the output of a command is written. Return the output that remains for a pipe."""
        piped = output
        for redirect in redirects:
            if redirect.operator not in (">", ">>", ">|", ">&", "&>", "&>>", "<>"):
                continue
            outer, self._current_stdin = self._current_stdin, output or UNKNOWN
            targets = self._create_expansion().possible_values(redirect.target)
            self._current_stdin = outer
            for target in targets:
                if redirect.operator == ">&" and (target.isdigit() or target.rstrip("-").isdigit() or target == "-"):
                    continue
                call = ProgramCall(self, ">", [target], output)
                call.record_write(target, content=output)
                if ENDLESS in output and not any(
                    self.paths.is_harmless_device(resolved) for resolved in call.resolve_path(target)
                ):
                    self.findings.add_risk(Risk.HARD, f"fills the disk by writing endlessly to {printable(target)}")
                if not any(self.paths.is_harmless_device(resolved) for resolved in call.resolve_path(target)):
                    self.findings.add_command(printable(f"> {target}"))
                    piped = ""
        return piped

    def analyze_program(self, argv: Sequence[str], stdin: str | None = None) -> str:
        """Analyze a program with its arguments and standard input. Return its output, if it can be predicted."""
        try:
            # Many arguments and long input take as much time as many commands.
            self._steps_left -= len(argv) // 4 + len(stdin or "") // 500
            if not self._enter_level():
                return self._add_unanalyzable_risk(_TOO_COMPLEX)
            name = argv[0]
            if is_unknown(name):
                return self._analyze_unknown_name(argv, stdin)
            if name in self.aliases:
                text = self.aliases.pop(name)
                output = self.analyze_script(f"{text} {shlex.join(argv[1:])}", stdin)
                self.aliases[name] = text
                return output
            if name in self._functions:
                return self._analyze_function_call(name, argv[1:], stdin)
            self.findings.add_command(_rule_text(argv))
            self.written_files["/dev/stdin"] = stdin or ""
            return analyze_invocation(self, argv, stdin)
        finally:
            self._depth -= 1

    def _analyze_unknown_name(self, argv: Sequence[str], stdin: str | None) -> str:
        """Analyze a program whose name is partly unknown, as if the unknown part were empty."""
        self.findings.add_command(_rule_text(argv))
        if NETWORK in argv[0]:
            self.findings.add_risk(Risk.HARD, "runs code from the network")
        self.findings.add_risk(
            Risk.RISKY, f"runs a program that can't be determined in advance ({printable(' '.join(argv))[:60]})"
        )
        left = remove_markers(argv[0])
        rest = [left, *argv[1:]] if left else argv[1:]
        if rest:
            self.analyze_program(rest, stdin)
        return UNKNOWN + markers_in(*argv, stdin or "")

    def _analyze_function_call(self, name: str, args: Sequence[str], stdin: str | None) -> str:
        self._uncalled_functions.pop(name, None)
        outer = self.state.arrays.get("@")
        output: list[str] = []
        for body in tuple(self._functions[name]):
            if id(body) in self._active_functions:
                if self._fork_count > self._active_functions[id(body)]:
                    self.findings.add_risk(Risk.HARD, f"{name} starts copies of itself endlessly (a fork bomb)")
                output.append(UNKNOWN)
                continue
            self._active_functions[id(body)] = self._fork_count
            self.state.assign_array("@", tuple(args))
            output.append(self._analyze_command(body, stdin))
            self.state.is_ended = False
            self._active_functions.pop(id(body))
        self.state.arrays.pop("@", None)
        if outer is not None:
            self.state.arrays["@"] = outer
        return "\n".join(output)


def _possible_argument_lists(choices: Sequence[Sequence[Fields]]) -> list[list[str]]:
    """Return every possible argument list of a command. If there are too many, return one merged list per program."""
    count = 1
    for each in choices:
        count *= len(each)
    if count <= VARIANTS_MAX:
        return [[field for fields in choice for field in fields] for choice in product(*choices)]
    first, *rest = choices
    args = [field for each in rest for fields in each for field in fields]
    return [[*fields, *args] for fields in first]


def _is_assumed_to_succeed(pipeline: Pipeline) -> bool:
    """Return whether a pipeline is a single assignment, `cd`, `pushd` or `export`, which is assumed to succeed."""
    command = pipeline.commands[0]
    if len(pipeline.commands) > 1 or not isinstance(command, SimpleCommand):
        return False
    return not command.words or command.words[0] in (
        (LiteralText("cd"),),
        (LiteralText("pushd"),),
        (LiteralText("export"),),
    )


def _is_endless_loop(command: CompoundCommand) -> bool:
    if command.kind == "for":
        return not command.name
    condition = command.blocks[0]
    words = _plain_words(condition)
    return words in _ENDLESS_CONDITIONS if command.kind == "while" else words == ("false",)


def _plain_words(script: Script) -> tuple[str, ...]:
    """Return the words of a script that consists of one simple command, otherwise an empty tuple."""
    if len(script.chains) != 1 or len(script.chains[0].pipelines) != 1:
        return ()
    command = script.chains[0].pipelines[0].commands[0]
    if not isinstance(command, SimpleCommand):
        return ()
    return tuple("".join(part.text for part in word if isinstance(part, LiteralText)) for word in command.words)


def _has_background_job(script: Script) -> bool:
    return any(chain.is_background for chain in script.chains)


def _positional_parameters() -> Variable:
    return Variable("@", is_quoted=True)


def _rule_text(argv: Sequence[str]) -> str:
    """Return a command as the text that is matched against approval rules."""
    folder, slash, name = argv[0].rpartition("/")
    is_usual = folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")
    words = [name if slash and is_usual else argv[0], *argv[1:]]
    return printable(" ".join(shlex.quote(word) if not word or " " in word or "\n" in word else word for word in words))
