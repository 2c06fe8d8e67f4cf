"""The state of a shell at one point in its script, with sets of possible folders and variable values."""

from msgspec import Struct

VALUES_MAX = 64
VARIABLES_MAX = 400


class ScriptState(Struct):
    """The shell state at one point in a script. If there are several folders or values, any of them is possible.

    A missing variable is unknown. `is_ended` means that `exit` or `return` ended the script here.
    """

    folders: tuple[str, ...]
    variables: dict[str, tuple[str, ...]]
    arrays: dict[str, tuple[str, ...]]
    is_ended: bool = False

    def copy(self) -> "ScriptState":
        """Return an independent copy, used to analyze another branch."""
        return ScriptState(self.folders, dict(self.variables), dict(self.arrays), self.is_ended)

    def assign(self, name: str, values: tuple[str, ...]) -> None:
        """Set a variable's possible values. Too many values or variables make the variable unknown."""
        self.arrays.pop(name, None)
        values = tuple(dict.fromkeys(values))
        if len(values) > VALUES_MAX or (len(self.variables) >= VARIABLES_MAX and name not in self.variables):
            self.variables.pop(name, None)
        else:
            self.variables[name] = values

    def assign_array(self, name: str, values: tuple[str, ...]) -> None:
        """Set an array. The positional parameters are the array `@`."""
        self.variables.pop(name, None)
        if len(self.arrays) < VARIABLES_MAX or name in self.arrays:
            self.arrays[name] = values

    def forget(self, name: str) -> None:
        """Make a variable unknown."""
        self.variables.pop(name, None)
        self.arrays.pop(name, None)

    def merge(self, other: "ScriptState") -> None:
        """Merge another branch's state. The values of both branches become possible. Ignores a branch that ended."""
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

    def is_same_as(self, other: "ScriptState") -> bool:
        """Return whether both states have the same folders, variables and arrays."""
        return (self.folders, self.variables, self.arrays) == (other.folders, other.variables, other.arrays)
