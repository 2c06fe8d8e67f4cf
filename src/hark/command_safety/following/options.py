"""Parses a program's arguments into options and operands."""

from collections.abc import Collection, Sequence

from msgspec import Struct


class Options(Struct, frozen=True):
    """Parsed arguments: options with their values, and operands. An option without a value has the value ""."""

    pairs: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Return whether one of these options was given. A long option may be abbreviated."""
        return any(_is_same_option(given, name) for given, _ in self.pairs for name in names)

    def values(self, *names: str) -> list[str]:
        """Return the values given to these options."""
        return [value for given, value in self.pairs if value and any(_is_same_option(given, name) for name in names)]


def split_names(text: str) -> list[str]:
    """Split a text into space-separated names. Makes long tables of names easier to read."""
    return text.split()


def parse_options(
    args: Sequence[str], valued_options: Collection[str] = (), *, stops_at_operand: bool = False
) -> Options:
    """Parse arguments. Options in `valued_options` take a value. Short options may be combined or joined to a value.

    With `stops_at_operand`, options end at the first operand, as in programs that run another program.
    """
    found: list[tuple[str, str]] = []
    operands: list[str] = []
    remaining = list(reversed(args))
    while remaining:
        arg = remaining.pop()
        if arg == "--":
            operands.extend(reversed(remaining))
            break
        if arg.startswith("--"):
            name, equals, value = arg.partition("=")
            if not equals and remaining and any(_is_same_option(name, each) for each in valued_options):
                value = remaining.pop()
            found.append((name, value))
        elif arg.startswith("-") and len(arg) > 1:
            found.extend(_parse_short_options(arg, valued_options, remaining))
        else:
            operands.append(arg)
            if stops_at_operand:
                operands.extend(reversed(remaining))
                break
    return Options(tuple(found), tuple(operands))


def _parse_short_options(arg: str, valued_options: Collection[str], remaining: list[str]) -> list[tuple[str, str]]:
    if arg in valued_options:
        return [(arg, remaining.pop() if remaining else "")]
    if f"{arg.partition('=')[0]}" in valued_options:
        return [(arg.partition("=")[0], arg.partition("=")[2])]
    found: list[tuple[str, str]] = []
    for at in range(1, len(arg)):
        name = f"-{arg[at]}"
        if name in valued_options:
            value = arg[at + 1 :] or (remaining.pop() if remaining else "")
            return [*found, (name, value)]
        found.append((name, ""))
    # The whole argument is included too, for programs whose long options have one dash.
    return [*found, (arg, "")]


def _is_same_option(given: str, name: str) -> bool:
    return given == name or (given.startswith("--") and len(given) > 3 and name.startswith(given))
