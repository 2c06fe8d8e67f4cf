"""Checks the structure of the code: folders, import cycles, class names and sizes (`python -m tests.structure`)."""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
MAX_FILES = 25  # .py files in one folder
MAX_PROTOCOLS = 28  # in protocol/
MAX_LINES = 400  # in a file
MAX_SOURCE_LINES = 62_600
LONG_FILES = {"hark/command_safety/following/command_analysis.py", "hark/command_safety/parsing/syntax.py"}

# Public class names that are defined twice. This list may only shrink, and stays below 10 entries.
# A port and its implementation share a name if a second name would be less clear.
DUPLICATE_NAMES = frozenset({"Agent", "Session"})
MAX_DUPLICATES = 10

Imports = Mapping[str, frozenset[str]]


def main() -> int:
    """Print each structure metric and its problems. Return 1 if there is a problem."""
    trees = {file: ast.parse(file.read_bytes()) for file in sorted(SOURCE.rglob("*.py"))}
    problems = [
        *_check_folders(),
        *_check_cycles(trees),
        *_check_class_names(trees),
        *_check_protocols(trees),
        *_check_sizes(),
    ]
    for problem in problems:
        print(f"  problem: {problem}")
    return 1 if problems else 0


def _check_folders() -> Iterator[str]:
    counts = Counter(file.parent for top in (SOURCE, ROOT / "tests") for file in top.rglob("*.py"))
    folder, most = counts.most_common(1)[0]
    print(f"largest folder: {folder.relative_to(ROOT)} with {most} files, of {MAX_FILES} at most")
    for folder, count in counts.items():
        if count > MAX_FILES:
            yield f"{folder.relative_to(ROOT)} has {count} files; the limit is {MAX_FILES}"


def _check_cycles(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    cycles = find_cycles(import_graph(trees))
    print(f"import cycles: {len(cycles)}")
    for cycle in cycles:
        yield f"an import cycle of {len(cycle)} modules: {', '.join(sorted(cycle))}"


def _check_class_names(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    modules_by_name: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules_by_name[node.name].append(_module_name(file))
    duplicates = {name: modules for name, modules in modules_by_name.items() if len(modules) > 1}
    print(f"class names defined twice: {len(duplicates)}, fewer than {MAX_DUPLICATES} allowed")
    if len(DUPLICATE_NAMES) >= MAX_DUPLICATES:
        yield f"DOUBLED_NAMES has {len(DUPLICATE_NAMES)} entries; it must have fewer than {MAX_DUPLICATES}"
    for name in sorted(duplicates.keys() - DUPLICATE_NAMES):
        yield f"class {name} is defined in {', '.join(duplicates[name])}"
    for name in sorted(DUPLICATE_NAMES - duplicates.keys()):
        yield f"class {name} is no longer defined twice: remove it from the list"


def _check_protocols(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    ports = [
        node.name
        for file, tree in trees.items()
        if file.is_relative_to(SOURCE / "hark" / "protocol")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(_is_protocol(base) for base in node.bases)
    ]
    print(f"Protocol classes in protocol/: {len(ports)}, of {MAX_PROTOCOLS} at most")
    if len(ports) > MAX_PROTOCOLS:
        yield f"protocol/ has {len(ports)} Protocol classes; the limit is {MAX_PROTOCOLS}"


def _is_protocol(base: ast.expr) -> bool:
    base = base.value if isinstance(base, ast.Subscript) else base
    return (isinstance(base, ast.Name) and base.id == "Protocol") or (
        isinstance(base, ast.Attribute) and base.attr == "Protocol"
    )


def _check_sizes() -> Iterator[str]:
    lines = {file: len(file.read_bytes().splitlines()) for file in SOURCE.rglob("*.py")}
    total = sum(lines.values())
    print(f"source lines: {total:,}, of {MAX_SOURCE_LINES:,} at most, in {len(lines)} files")
    if total > MAX_SOURCE_LINES:
        yield f"the source has {total:,} lines; the limit is {MAX_SOURCE_LINES:,}"
    for file, count in sorted(lines.items()):
        if count > MAX_LINES and str(file.relative_to(SOURCE)) not in LONG_FILES:
            yield f"{file.relative_to(ROOT)} has {count} lines; the limit is {MAX_LINES}"


def import_graph(trees: Mapping[Path, ast.Module]) -> Imports:
    """Return the modules that each module imports, including imports in functions and for type checking."""
    names = {_module_name(file): file for file in trees}
    return {
        name: frozenset(
            imported
            for node in ast.walk(trees[file])
            for imported in _imported_modules(node, names)
            if imported != name
        )
        for name, file in names.items()
    }


def _imported_modules(node: ast.AST, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the project's modules that a statement imports, including a package whose own names are imported."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name in known)
        case ast.ImportFrom(module=str(module), names=names, level=0) if module in known:
            for alias in names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in known else module
        case ast.Constant(value=str(text)) if text in known and "." in text:
            yield text  # a module imported by name, as in the table of commands
        case _:
            pass


def find_cycles(imports: Imports) -> list[frozenset[str]]:
    """Return the sets of modules that can all reach each other, largest first."""
    reached = {name: _reachable(name, imports) for name in imports}
    cycles = {
        frozenset({name, *(other for other in reached[name] if name in reached[other])})
        for name in imports
        if name in reached[name]
    }
    return sorted(cycles, key=lambda cycle: (-len(cycle), sorted(cycle)))


def _reachable(name: str, imports: Imports) -> set[str]:
    reached: set[str] = set()
    pending = [name]
    while pending:
        for imported in imports[pending.pop()]:
            if imported not in reached:
                reached.add(imported)
                pending.append(imported)
    return reached


def _module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


if __name__ == "__main__":
    sys.exit(main())
