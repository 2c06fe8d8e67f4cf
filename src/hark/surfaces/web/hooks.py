"""The paths that chat platforms call. Chat surfaces register them here."""

from hark.protocol.hooks import Hook

_FORBIDDEN_CHARACTERS = frozenset("{}?# \t\r\n")


class Hooks:
    """The active hooks by path, each with the surface that registered it."""

    def __init__(self) -> None:
        self.by_path: dict[str, Hook] = {}
        self._owners: dict[str, str] = {}

    def register(self, surface: str, *hooks: Hook) -> None:
        """Activate the hooks of a surface, replacing its earlier hooks.

        Raises:
            ValueError: A path is invalid or belongs to another surface. The earlier hooks stay active.
        """
        for hook in hooks:
            if not hook.path.startswith("/") or len(hook.path) < 2 or _FORBIDDEN_CHARACTERS & set(hook.path):
                raise ValueError(f"{hook.path!r} is not a valid path. Use one such as /slack/events.")
            if self._owners.get(hook.path, surface) != surface:
                raise ValueError(f"{hook.path} is already used by {self._owners[hook.path]}.")
        self.unregister(surface)
        self.by_path.update((hook.path, hook) for hook in hooks)
        self._owners.update((hook.path, surface) for hook in hooks)

    def unregister(self, surface: str) -> None:
        """Remove all hooks of a surface."""
        for path in [path for path, owner in self._owners.items() if owner == surface]:
            del self._owners[path], self.by_path[path]
