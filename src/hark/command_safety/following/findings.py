"""Collects the risks and reasons found while a shell command is analyzed."""

from hark.protocol.tool import Risk, RiskAssessment

REASONS_MAX = 12
COMMAND_CHARACTERS_MAX = 2000


class CommandFindings:
    """The risks, reasons and simple commands found in a command."""

    def __init__(self) -> None:
        self._risk = Risk.READING
        self._reasons: dict[str, Risk] = {}
        self._commands: dict[str, None] = {}

    def add_risk(self, risk: Risk, reason: str = "") -> None:
        """Record a risk. The reason is only stored for risks that need approval."""
        self._risk = max(self._risk, risk)
        if reason and risk >= Risk.LEAVING:
            self._reasons[reason] = max(risk, self._reasons.get(reason, risk))

    def add_command(self, text: str) -> None:
        """Record the text of a simple command, to be matched against approval rules."""
        self._commands[text[:COMMAND_CHARACTERS_MAX]] = None

    def build_result(self) -> RiskAssessment:
        """Return the highest risk, the reasons with the worst first, and the simple commands."""
        reasons = sorted(self._reasons, key=lambda reason: -self._reasons[reason])
        return RiskAssessment(self._risk, tuple(reasons[:REASONS_MAX]), tuple(self._commands))
