"""Extracts the prose from Python, JavaScript and Markdown files, and the subjects of commits."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
COMMITS_SINCE = "2026-11-19"  # earlier commits were made before these rules
_CODE = ("src", "tests", "bench", "examples", "docs")
_THIS_PACKAGE = Path(__file__).parent
_QUOTES_FAULTS = "docs/style.md"

_SENTENCE_LIKE = re.compile(r"[A-Za-z]{2,},? [A-Za-z{}]+ [a-z{}]+")
_QUERY_LANGUAGE = re.compile(r"\s*\(?(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|WITH|PRAGMA|BEGIN|FROM|WHERE)\b")
_NAMES_OR_PATTERN = re.compile(r"[\w\s.+-]{200,}|.*\\b.*", re.DOTALL)  # a table of names, or a regular expression
_JS_COMMENT = re.compile(r"(?:^|\s)//\s?(.*)$")
_JS_STRING = re.compile(r"\"([^\"\\]+)\"|'([^'\\]+)'|`([^`\\]+)`")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_INLINE_CODE = re.compile(r"`[^`]*`")
_LINK_TARGET = re.compile(r"\]\([^)]*\)")
_DIRECTIVE = re.compile(r"#\s*(?:type:|noqa|pyright:|fmt:|ruff:|!)")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of prose: its location, its kind, and its text without code."""

    path: str
    line: int
    kind: str
    text: str


def read_texts(root: Path = ROOT) -> Iterator[Text]:
    """Yield the prose from every Python, JavaScript and Markdown file in the project."""
    for folder in _CODE:
        for file in sorted((root / folder).rglob("*.py")):
            if _THIS_PACKAGE not in file.parents:
                yield from python_texts(file.read_text(), file.relative_to(root).as_posix())
    for file in sorted((root / "src").rglob("*.js")):
        yield from javascript_texts(file.read_text(), file.relative_to(root).as_posix())
    for file in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        if (path := file.relative_to(root).as_posix()) != _QUOTES_FAULTS:
            yield from markdown_texts(file.read_text(), path)


def python_texts(source: str, path: str) -> Iterator[Text]:
    """Yield docstrings, comments and test names, and for files in `src/` also messages."""
    tree = ast.parse(source)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)) as constant):
                docstrings.add(id(constant))
                yield Text(path, node.lineno, "docstring", _without_code(text))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield Text(path, node.lineno, "test name", name.removeprefix("test_").replace("_", " "))
            case _:
                pass
    if path.startswith("src/"):
        yield from _messages(tree, path, docstrings)
    yield from _comments(source, path)


def _messages(tree: ast.AST, path: str, docstrings: set[int]) -> Iterator[Text]:
    inner = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [value.value if isinstance(value, ast.Constant) else "{}" for value in node.values]
            text = "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | inner:
            text = node.value
        else:
            continue
        if _SENTENCE_LIKE.search(text) and not _QUERY_LANGUAGE.match(text) and not _NAMES_OR_PATTERN.fullmatch(text):
            yield Text(path, node.lineno, "message", _without_code(text))


def _comments(source: str, path: str) -> Iterator[Text]:
    """Yield comments, with consecutive comment lines joined into one text."""
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        is_whole_line = not token.line[: token.start[1]].strip()
        if not (block and is_whole_line and token.start[0] == last + 1):
            if block:
                yield Text(path, first, "comment", _without_code("\n".join(block)))
            block, first = [], token.start[0]
        block.append(token.string.lstrip("# "))
        last = token.start[0] if is_whole_line else 0
    if block:
        yield Text(path, first, "comment", _without_code("\n".join(block)))


def javascript_texts(source: str, path: str) -> Iterator[Text]:
    """Yield line comments, and string literals that look like sentences."""
    for number, line in enumerate(source.splitlines(), 1):
        if comment := _JS_COMMENT.search(line):
            yield Text(path, number, "comment", _without_code(comment[1]))
        for match in _JS_STRING.finditer(line):
            text = next(group for group in match.groups() if group)
            if _SENTENCE_LIKE.search(text):
                yield Text(path, number, "message", _without_code(text))


def markdown_texts(source: str, path: str) -> Iterator[Text]:
    """Yield the paragraphs, list items and table rows of a Markdown page, without code."""
    is_code = False
    block: list[str] = []
    first = 1
    for number, line in enumerate([*source.splitlines(), ""], 1):
        if _FENCE.match(line):
            is_code = not is_code
            continue
        if is_code:
            continue
        starts_block = not line.strip() or re.match(r"\s*(?:[-*#|>]|\d+\.)", line)
        if starts_block and block:
            yield Text(path, first, "page", _without_code("\n".join(block)))
            block = []
        if line.strip():
            first = first if block else number
            block.append(line)


def commit_subjects(root: Path = ROOT) -> list[str]:
    """Return the subjects of the commits that the rules apply to, or an empty list outside of a git checkout."""
    command = ["git", "-C", str(root), "log", "--no-merges", f"--since={COMMITS_SINCE}", "--format=%s"]
    return _git_lines(command)


def first_version(file: Path, root: Path = ROOT) -> list[str] | None:
    """Return the lines of a file as first committed, or None if git has no such commit."""
    path = file.relative_to(root).as_posix()
    added = _git_lines(["git", "-C", str(root), "log", "--diff-filter=A", "--format=%H", "--", path])
    return _git_lines(["git", "-C", str(root), "show", f"{added[-1]}:{path}"]) if added else None


def _git_lines(command: list[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return done.stdout.splitlines()


def _without_code(text: str) -> str:
    return _LINK_TARGET.sub("]", _INLINE_CODE.sub("`code`", text))
