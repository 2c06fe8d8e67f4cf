"""The options and operands of a program's arguments."""

from collections.abc import Collection, Sequence

from msgspec import Struct


class Options(Struct, frozen=True):
    """Arguments, sorted. An option that stands alone has the value ""."""

    found: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Tell whether one of these was given, a long one perhaps shortened."""
        return any(_is_same(given, name) for given, _ in self.found for name in names)

    def values(self, *names: str) -> list[str]:
        """Return the values that were given to these."""
        return [value for given, value in self.found if value and any(_is_same(given, name) for name in names)]


def names(text: str) -> list[str]:
    """Return the words of a text: a table of names is easier to read so."""
    return text.split()


def read_options(args: Sequence[str], valued: Collection[str] = (), *, is_leading: bool = False) -> Options:
    """Sort arguments. `valued` are the options that take a value; short ones may be glued to it or to each other.

    With `is_leading`, options end at the first operand, as for programs that run another one.
    """
    found: list[tuple[str, str]] = []
    operands: list[str] = []
    rest = list(reversed(args))
    while rest:
        arg = rest.pop()
        if arg == "--":
            operands.extend(reversed(rest))
            break
        if arg.startswith("--"):
            name, equals, value = arg.partition("=")
            if not equals and rest and any(_is_same(name, each) for each in valued):
                value = rest.pop()
            found.append((name, value))
        elif arg.startswith("-") and len(arg) > 1:
            found.extend(_read_short(arg, valued, rest))
        else:
            operands.append(arg)
            if is_leading:
                operands.extend(reversed(rest))
                break
    return Options(tuple(found), tuple(operands))


def _read_short(arg: str, valued: Collection[str], rest: list[str]) -> list[tuple[str, str]]:
    if arg in valued:
        return [(arg, rest.pop() if rest else "")]
    if f"{arg.partition('=')[0]}" in valued:
        return [(arg.partition("=")[0], arg.partition("=")[2])]
    found: list[tuple[str, str]] = []
    for at in range(1, len(arg)):
        name = f"-{arg[at]}"
        if name in valued:
            value = arg[at + 1 :] or (rest.pop() if rest else "")
            return [*found, (name, value)]
        found.append((name, ""))
    # The whole is kept as well, for programs whose long options have one dash.
    return [*found, (arg, "")]


def _is_same(given: str, name: str) -> bool:
    return given == name or (given.startswith("--") and len(given) > 3 and name.startswith(given))
