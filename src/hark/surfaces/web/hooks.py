"""The addresses that platforms call: brought by chat surfaces, and answered only while the agent takes new work."""

from collections.abc import Mapping

from hark.protocol.hooks import Hook


class Hooks:
    """What was brought so far, by path."""

    def __init__(self) -> None:
        self._known: dict[str, Hook] = {}

    def bring(self, hook: Hook) -> None:
        """Have this one answer from now on.

        Raises:
            ValueError: Its path can't be had.
        """
        if not hook.path.startswith("/") or len(hook.path) < 2:
            raise ValueError(f"{hook.path!r} is no path: it begins with / and goes on, such as /slack/events.")
        if hook.path in self._known:
            raise ValueError(f"{hook.path} is taken by another surface.")
        self._known[hook.path] = hook

    @property
    def known(self) -> Mapping[str, Hook]:
        """All of them, by path."""
        return self._known
