"""The structure of the code: folders, import cycles, class names and sizes. `python -m tests.structure` checks it."""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
MOST_FILES = 25  # .py files side by side in a folder
MOST_PROTOCOLS = 28  # in protocol/
MOST_LINES = 400  # of a file
MOST_SOURCE_LINES = 57_500
LONG_FILES = {"hark/command_safety/following/walk.py", "hark/command_safety/parsing/syntax.py"}

# Public class names that are defined twice. This list may only shrink, and stays below 10 entries.
# A port and the class behind it share a name where any other would say less.
DOUBLED_NAMES = frozenset({"Agent", "Session"})
MOST_DOUBLED = 10

Imports = Mapping[str, frozenset[str]]


def main() -> int:
    """Print each figure and what is wrong with it; return 1 if anything is."""
    trees = {file: ast.parse(file.read_bytes()) for file in sorted(SOURCE.rglob("*.py"))}
    problems = [
        *_check_folders(),
        *_check_cycles(trees),
        *_check_class_names(trees),
        *_check_protocols(trees),
        *_check_sizes(),
    ]
    for problem in problems:
        print(f"  wrong: {problem}")
    return 1 if problems else 0


def _check_folders() -> Iterator[str]:
    counts = Counter(file.parent for top in (SOURCE, ROOT / "tests") for file in top.rglob("*.py"))
    folder, most = counts.most_common(1)[0]
    print(f"largest folder: {folder.relative_to(ROOT)} with {most} files, of {MOST_FILES} at most")
    for folder, count in counts.items():
        if count > MOST_FILES:
            yield f"{folder.relative_to(ROOT)} has {count} files; {MOST_FILES} are the most"


def _check_cycles(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    cycles = find_cycles(import_graph(trees))
    print(f"import cycles: {len(cycles)}")
    for cycle in cycles:
        yield f"an import cycle of {len(cycle)} modules: {', '.join(sorted(cycle))}"


def _check_class_names(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(_module(file))
    doubled = {name: modules for name, modules in places.items() if len(modules) > 1}
    print(f"class names defined twice: {len(doubled)}, fewer than {MOST_DOUBLED} allowed")
    if len(DOUBLED_NAMES) >= MOST_DOUBLED:
        yield f"DOUBLED_NAMES has {len(DOUBLED_NAMES)} entries; it must have fewer than {MOST_DOUBLED}"
    for name in sorted(doubled.keys() - DOUBLED_NAMES):
        yield f"class {name} is defined in {', '.join(doubled[name])}"
    for name in sorted(DOUBLED_NAMES - doubled.keys()):
        yield f"class {name} is not doubled any more: take it off the list"


def _check_protocols(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    ports = [
        node.name
        for file, tree in trees.items()
        if file.is_relative_to(SOURCE / "hark" / "protocol")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(_is_protocol(base) for base in node.bases)
    ]
    print(f"Protocol classes in protocol/: {len(ports)}, of {MOST_PROTOCOLS} at most")
    if len(ports) > MOST_PROTOCOLS:
        yield f"protocol/ has {len(ports)} Protocol classes; {MOST_PROTOCOLS} are the most"


def _is_protocol(base: ast.expr) -> bool:
    base = base.value if isinstance(base, ast.Subscript) else base
    return (isinstance(base, ast.Name) and base.id == "Protocol") or (
        isinstance(base, ast.Attribute) and base.attr == "Protocol"
    )


def _check_sizes() -> Iterator[str]:
    lines = {file: len(file.read_bytes().splitlines()) for file in SOURCE.rglob("*.py")}
    total = sum(lines.values())
    print(f"source lines: {total:,}, of {MOST_SOURCE_LINES:,} at most, in {len(lines)} files")
    if total > MOST_SOURCE_LINES:
        yield f"the source has {total:,} lines; {MOST_SOURCE_LINES:,} are the most"
    for file, count in sorted(lines.items()):
        if count > MOST_LINES and str(file.relative_to(SOURCE)) not in LONG_FILES:
            yield f"{file.relative_to(ROOT)} has {count} lines; {MOST_LINES} are the most"


def import_graph(trees: Mapping[Path, ast.Module]) -> Imports:
    """Return the modules that each module imports: anywhere in it, in functions and for type checking as well."""
    names = {_module(file): file for file in trees}
    return {
        name: frozenset(
            imported for node in ast.walk(trees[file]) for imported in _imported(node, names) if imported != name
        )
        for name, file in names.items()
    }


def _imported(node: ast.AST, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of ours that a statement names. A package counts when a name of its own is imported."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name in known)
        case ast.ImportFrom(module=str(module), names=names, level=0) if module in known:
            for alias in names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in known else module
        case ast.Constant(value=str(text)) if text in known and "." in text:
            yield text  # a module that is imported by its name, as the table of commands does
        case _:
            pass


def find_cycles(imports: Imports) -> list[frozenset[str]]:
    """Return the sets of modules that can all reach each other, the largest first."""
    reached = {name: _reach(name, imports) for name in imports}
    cycles = {
        frozenset({name, *(other for other in reached[name] if name in reached[other])})
        for name in imports
        if name in reached[name]
    }
    return sorted(cycles, key=lambda cycle: (-len(cycle), sorted(cycle)))


def _reach(name: str, imports: Imports) -> set[str]:
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        for imported in imports[waiting.pop()]:
            if imported not in reached:
                reached.add(imported)
                waiting.append(imported)
    return reached


def _module(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


if __name__ == "__main__":
    sys.exit(main())
