"""The syntax tree of a parsed shell command."""

from __future__ import annotations

from msgspec import Struct


class ShellSyntaxError(Exception):
    """The text isn't a valid shell command, or is too complex to parse."""


class LiteralText(Struct, frozen=True):
    """Literal characters. Quoted text is neither split nor expanded."""

    text: str
    is_quoted: bool = False


class Variable(Struct, frozen=True):
    """A variable: `$name` or `${name[index] operator operand}`. A leading `!` in `name` marks an indirect lookup."""

    name: str
    is_quoted: bool = False
    operator: str = ""
    operand: Word = ()
    index: Word = ()


class Substitution(Struct, frozen=True):
    """A command substitution `$(...)`, or a process substitution: `<(...)` to read from or `>(...)` to write to."""

    script: Script
    form: str = "$("
    is_quoted: bool = False


class Arithmetic(Struct, frozen=True):
    """An arithmetic expansion `$((...))`, whose value is a number. Its `parts` may contain nested scripts."""

    parts: Word = ()


WordPart = LiteralText | Variable | Substitution | Arithmetic
Word = tuple[WordPart, ...]


class HereDocument(Struct):
    """A here-document: the lines that follow a `<<`. Its body is read after the end of the current line."""

    body: Word = ()


class Redirect(Struct, frozen=True):
    """A redirection, `operator target`, such as `>> log`. For a here-document, `document` holds the lines."""

    operator: str
    target: Word
    document: HereDocument | None = None


class Assignment(Struct, frozen=True):
    """A variable assignment: `name=value`, `name+=value`, or `name=(items)`."""

    name: str
    value: Word = ()
    items: tuple[Word, ...] | None = None
    is_append: bool = False


class SimpleCommand(Struct, frozen=True):
    """A program with its arguments, assignments and redirections."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class CompoundCommand(Struct, frozen=True):
    """A command made of scripts. `kind` is group, subshell, if, while, until, for, case, condition or arithmetic.

    `words` are the items of a `for` or the words of a `case`. The `blocks` of an `if` alternate between condition and
    body; an additional last block is its `else`.
    """

    kind: str
    blocks: tuple[Script, ...] = ()
    name: str = ""
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class FunctionDefinition(Struct, frozen=True):
    """A function definition, `name() body`."""

    name: str
    body: CommandNode


CommandNode = SimpleCommand | CompoundCommand | FunctionDefinition


class Pipeline(Struct, frozen=True):
    """Commands connected by pipes. Each reads the output of the command before it."""

    commands: tuple[CommandNode, ...]


class Chain(Struct, frozen=True):
    """Pipelines connected by `&&` and `||`. `operators` has one item fewer than `pipelines`."""

    pipelines: tuple[Pipeline, ...]
    operators: tuple[str, ...] = ()
    is_background: bool = False


class Script(Struct, frozen=True):
    """Command chains that run one after the other."""

    chains: tuple[Chain, ...] = ()
