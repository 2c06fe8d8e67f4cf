"""The paths that chat platforms call. Chat surfaces register them here."""

from hark.protocol.hooks import Hook

_UNFIT = frozenset("{}?# \t\r\n")


class Hooks:
    """The hooks that answer now: `known`, by path."""

    def __init__(self) -> None:
        self.known: dict[str, Hook] = {}
        self._owners: dict[str, str] = {}

    def bring(self, surface: str, *hooks: Hook) -> None:
        """Have a surface's hooks answer from now on, in place of those that it brought before.

        Raises:
            ValueError: A path can't be had; those from before still answer.
        """
        for hook in hooks:
            if not hook.path.startswith("/") or len(hook.path) < 2 or _UNFIT & set(hook.path):
                raise ValueError(f"{hook.path!r} is no path: it begins with / and goes on, such as /slack/events.")
            if self._owners.get(hook.path, surface) != surface:
                raise ValueError(f"{hook.path} is taken by {self._owners[hook.path]}.")
        self.forget(surface)
        self.known.update((hook.path, hook) for hook in hooks)
        self._owners.update((hook.path, surface) for hook in hooks)

    def forget(self, surface: str) -> None:
        """A surface is not set up any more: nothing answers for it."""
        for path in [path for path, owner in self._owners.items() if owner == surface]:
            del self._owners[path], self.known[path]
