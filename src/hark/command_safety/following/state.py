"""What a shell knows at a point of its script: folders and variables, as sets of what they may be."""

from msgspec import Struct

VALUES_MAX = 64
VARIABLES_MAX = 400


class ScriptState(Struct):
    """A point in a script. Several folders or values mean that it can't be told which it is.

    A variable that is missing is unknown. `is_ended`: the script left here, by `exit` or `return`.
    """

    folders: tuple[str, ...]
    variables: dict[str, tuple[str, ...]]
    arrays: dict[str, tuple[str, ...]]
    is_ended: bool = False

    def copy(self) -> "ScriptState":
        """Return one that can go another way."""
        return ScriptState(self.folders, dict(self.variables), dict(self.arrays), self.is_ended)

    def assign(self, name: str, values: tuple[str, ...]) -> None:
        """Set a variable. With too many values, or too many variables, it is unknown."""
        self.arrays.pop(name, None)
        values = tuple(dict.fromkeys(values))
        if len(values) > VALUES_MAX or (len(self.variables) >= VARIABLES_MAX and name not in self.variables):
            self.variables.pop(name, None)
        else:
            self.variables[name] = values

    def assign_array(self, name: str, values: tuple[str, ...]) -> None:
        """Set an array, or the positional parameters, whose name is `@`."""
        self.variables.pop(name, None)
        if len(self.arrays) < VARIABLES_MAX or name in self.arrays:
            self.arrays[name] = values

    def forget(self, name: str) -> None:
        """Make a variable unknown."""
        self.variables.pop(name, None)
        self.arrays.pop(name, None)

    def join(self, other: "ScriptState") -> None:
        """Become what is true whichever of the two ways was gone. A way that ended the script doesn't count."""
        if other.is_ended:
            return
        if self.is_ended:
            self.folders, self.variables, self.arrays, self.is_ended = (
                *(other.folders, dict(other.variables), dict(other.arrays)),
                False,
            )
            return
        self.folders = tuple(dict.fromkeys(self.folders + other.folders))
        known = self.variables.keys() & other.variables.keys()
        joined = {name: tuple(dict.fromkeys(self.variables[name] + other.variables[name])) for name in known}
        self.variables = {name: values for name, values in joined.items() if len(values) <= VALUES_MAX}
        self.arrays = {name: items for name, items in self.arrays.items() if other.arrays.get(name) == items}

    def is_like(self, other: "ScriptState") -> bool:
        """Tell whether nothing differs."""
        return (self.folders, self.variables, self.arrays) == (other.folders, other.variables, other.arrays)
