"""What is found out about a shell command while it is judged."""

from hark.protocol.tool import Judgement, Risk

REASONS_MAX = 12
COMMAND_CHARACTERS_MAX = 2000


class CommandFindings:
    """Collects what the parts of a command do."""

    def __init__(self) -> None:
        self._risk = Risk.READING
        self._reasons: dict[str, Risk] = {}
        self._commands: dict[str, None] = {}

    def note(self, risk: Risk, reason: str = "") -> None:
        """Something does this. A reason is kept when a person would be asked."""
        self._risk = max(self._risk, risk)
        if reason and risk >= Risk.LEAVING:
            self._reasons[reason] = max(risk, self._reasons.get(reason, risk))

    def add_command(self, text: str) -> None:
        """A simple command was found."""
        self._commands[text[:COMMAND_CHARACTERS_MAX]] = None

    def judgement(self) -> Judgement:
        """Return what was found."""
        reasons = sorted(self._reasons, key=lambda reason: -self._reasons[reason])
        return Judgement(self._risk, tuple(reasons[:REASONS_MAX]), tuple(self._commands))
