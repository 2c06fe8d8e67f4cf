"""What a parsed shell command is made of."""

from __future__ import annotations

from msgspec import Struct


class ShellSyntaxError(Exception):
    """The text is no shell command, or one that is too tangled to be read."""


class LiteralText(Struct, frozen=True):
    """Characters that stand for themselves. Quoted ones are neither split nor expanded."""

    text: str
    is_quoted: bool = False


class Variable(Struct, frozen=True):
    """`$name` or `${name[index] operator operand}`. `name` begins with `!` when it is looked up by another name."""

    name: str
    is_quoted: bool = False
    operator: str = ""
    operand: Word = ()
    index: Word = ()


class Substitution(Struct, frozen=True):
    """What another script prints: `$(...)`, or the file `<(...)`; `>(...)` is a file that it reads."""

    script: Script
    form: str = "$("
    is_quoted: bool = False


class Arithmetic(Struct, frozen=True):
    """`$((...))`: a number. Its parts matter for the scripts in them alone."""

    parts: Word = ()


Part = LiteralText | Variable | Substitution | Arithmetic
Word = tuple[Part, ...]


class HereDocument(Struct):
    """The lines that follow a `<<`. Born empty, for they are read at the end of the line."""

    body: Word = ()


class Redirect(Struct, frozen=True):
    """`operator target`, such as `>> log`. A here-document has its lines in `document`."""

    operator: str
    target: Word
    document: HereDocument | None = None


class Assignment(Struct, frozen=True):
    """`name=value`, `name+=value`, or `name=(items)`."""

    name: str
    value: Word = ()
    items: tuple[Word, ...] | None = None
    is_added: bool = False


class Simple(Struct, frozen=True):
    """A program with its arguments."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class Compound(Struct, frozen=True):
    """Scripts held together: `kind` is group, subshell, if, while, until, for, case or arithmetic.

    `words` are the items of a for and the words of a case. `blocks` of an if alternate between condition and body; the
    last one is its else when their number is odd.
    """

    kind: str
    blocks: tuple[Script, ...] = ()
    name: str = ""
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class Function(Struct, frozen=True):
    """`name() body`."""

    name: str
    body: Command


Command = Simple | Compound | Function


class Pipeline(Struct, frozen=True):
    """Commands, each reading what the one before it prints."""

    commands: tuple[Command, ...]


class Chain(Struct, frozen=True):
    """Pipelines joined by `&&` and `||`; `operators` has one fewer than `pipelines`."""

    pipelines: tuple[Pipeline, ...]
    operators: tuple[str, ...] = ()
    is_background: bool = False


class Script(Struct, frozen=True):
    """Chains, one after the other."""

    chains: tuple[Chain, ...] = ()
