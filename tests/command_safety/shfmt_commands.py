"""The commands of a shell script according to shfmt, and according to our parser, in one comparable form."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from hark.command_safety.parsing.syntax import parse
from hark.command_safety.parsing.syntax_tree import (
    Arithmetic,
    Assignment,
    CommandNode,
    CompoundCommand,
    FunctionDefinition,
    LiteralText,
    Redirect,
    Script,
    SimpleCommand,
    Substitution,
    Variable,
    Word,
)
from hark.command_safety.parsing.word_reader import unescape_ansi

SHFMT = Path(sys.executable).with_name("shfmt")
# The constructs that a command is part of, outermost first, and the command's first word.
FoundCommand = tuple[tuple[str, ...], str]
_CONSTRUCTS = {
    "Block": "group",
    "Subshell": "subshell",
    "IfClause": "if",
    "WhileClause": "while",
    "ForClause": "for",
    "CaseClause": "case",
    "CmdSubst": "$(",
    "ProcSubst": "$(",
}


class ShfmtError(Exception):
    """shfmt can't parse the script."""


def find_shfmt_commands(script: str) -> list[FoundCommand]:
    """Return the commands that shfmt finds in a bash script, in order.

    Raises:
        ShfmtError: The script isn't valid.
    """
    done = subprocess.run(
        [SHFMT, "-ln", "bash", "--to-json"],
        input=script.encode(errors="surrogateescape"),
        capture_output=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise ShfmtError(done.stderr.decode(errors="replace"))
    return list(_walk(json.loads(done.stdout), ()))


def _walk(value: object, context: tuple[str, ...]) -> Iterator[FoundCommand]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _walk(item, context)
    elif isinstance(value, dict):
        yield from _walk_node(cast("dict[str, Any]", value), context)


def _walk_node(node: dict[str, Any], context: tuple[str, ...]) -> Iterator[FoundCommand]:
    kind: str = node.get("Type", "")
    if kind == "CallExpr" and node.get("Args"):
        yield context, _word_text(node["Args"][0]["Parts"])
    elif kind in ("DeclClause", "LetClause"):
        yield context, node["Variant"]["Value"] if kind == "DeclClause" else "let"
    elif kind == "FuncDecl":
        yield from _walk_function(node, context)
        return
    if kind in _CONSTRUCTS:
        context = (*context, _CONSTRUCTS[kind])
    elif kind == "BinaryCmd" and node["Op"] in ("|", "|&") and context[-1:] != ("|",):
        context = (*context, "|")
    if node.get("Background"):
        context = (*context, "&")
    for value in node.values():
        yield from _walk(value, context)


def _walk_function(node: dict[str, Any], context: tuple[str, ...]) -> Iterator[FoundCommand]:
    body: dict[str, Any] = node["Body"]
    # For shfmt the body of `f() { a; } && b` includes b. Bash runs b at once.
    while body["Cmd"]["Type"] == "BinaryCmd":
        yield from _walk(body["Cmd"]["Y"], context)
        body = body["Cmd"]["X"]
    yield from _walk(body, (*context, f"function {node['Name']['Value']}"))


def _word_text(parts: list[dict[str, Any]] | None, *, is_quoted: bool = False) -> str:
    return "".join(_part_text(part, is_quoted) for part in parts or [])


def _part_text(part: dict[str, Any], is_quoted: bool) -> str:
    match part["Type"]:
        case "Lit":
            escaped = r'\\([$`"\\])' if is_quoted else r"\\(.)"
            return re.sub(escaped, r"\1", part["Value"].replace("\\\n", ""), flags=re.DOTALL)
        case "SglQuoted":
            value = part.get("Value", "")
            return unescape_ansi(value) if part.get("Dollar") else value
        case "DblQuoted":
            return _word_text(part.get("Parts"), is_quoted=True)
        case "ExtGlob":
            return part["Op"] + part["Pattern"]["Value"] + ")"
        case _:
            return "?"


def find_parser_commands(script: str) -> list[FoundCommand]:
    """Return the commands that our parser finds in a script, in order.

    Raises:
        ShellSyntaxError: The parser refuses the script.
    """
    return list(_in_script(parse(script), ()))


def _in_script(script: Script, context: tuple[str, ...]) -> Iterator[FoundCommand]:
    for chain in script.chains:
        inner = (*context, "&") if chain.is_background else context
        for pipeline in chain.pipelines:
            is_pipe = len(pipeline.commands) > 1 and inner[-1:] != ("|",)
            for command in pipeline.commands:
                yield from _in_command(command, (*inner, "|") if is_pipe else inner)


def _in_command(command: CommandNode, context: tuple[str, ...]) -> Iterator[FoundCommand]:
    match command:
        case FunctionDefinition(name, body):
            yield from _in_command(body, (*context, f"function {name}"))
        case SimpleCommand(words, assignments, redirects):
            if words:
                yield context, "".join(part.text if isinstance(part, LiteralText) else "?" for part in words[0])
            yield from _in_words(words, context)
            yield from _in_assignments(assignments, context)
            yield from _in_redirects(redirects, context)
        case CompoundCommand():
            is_plain = command.kind in ("condition", "arithmetic")
            kind = "while" if command.kind == "until" else command.kind
            inner = context if is_plain else (*context, kind)
            yield from _in_words(command.words, inner)
            for block in command.blocks:
                yield from _in_script(block, inner)
            yield from _in_redirects(command.redirects, context)


def _in_words(words: tuple[Word, ...], context: tuple[str, ...]) -> Iterator[FoundCommand]:
    for word in words:
        for part in word:
            match part:
                case Substitution(script):
                    yield from _in_script(script, (*context, "$("))
                case Variable():
                    yield from _in_words((part.index, part.operand), context)
                case Arithmetic(parts):
                    yield from _in_words((parts,), context)
                case LiteralText():
                    pass


def _in_assignments(assignments: tuple[Assignment, ...], context: tuple[str, ...]) -> Iterator[FoundCommand]:
    for assignment in assignments:
        yield from _in_words((assignment.value, *(assignment.items or ())), context)


def _in_redirects(redirects: tuple[Redirect, ...], context: tuple[str, ...]) -> Iterator[FoundCommand]:
    for redirect in redirects:
        yield from _in_words((redirect.target,), context)
        if redirect.document:
            yield from _in_words((redirect.document.body,), context)
