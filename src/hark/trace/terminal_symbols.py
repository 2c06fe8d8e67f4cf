"""The signs and colours that timelines in a terminal are drawn with."""

from dataclasses import dataclass

from hark.text.columns import BOLD, CYAN, RED, TerminalStyle
from hark.trace.turn_trace import COMPACTION, MODEL, PAUSE, QUESTION, SNAPSHOT, TOOL

COLOURS = {MODEL: "34", TOOL: "32", QUESTION: "35", PAUSE: "33", SNAPSHOT: CYAN, COMPACTION: CYAN}
RESULT_COLOURS = {"runs": BOLD, "good": COLOURS[TOOL], "wrong": RED, "cut": COLOURS[PAUSE]}


@dataclass(frozen=True, slots=True)
class Signs:
    """What bars are made of: a bar must be readable without colours, too."""

    model: str = "█"
    tool: str = "▓"
    wait: str = "▒"
    other: str = "░"
    settle: str = "▞"
    message: str = "◆"
    interrupt: str = "▲"
    line: str = "╎"
    between: str = " · "

    def of(self, kind: str) -> str:
        """Return the sign for a kind of part."""
        match kind:
            case "model" | "compaction":
                return self.model
            case "tool":
                return self.tool
            case _:
                return self.wait


_ASCII = Signs("#", "=", "-", ".", "x", "*", "^", "!", "; ")


def signs_for(look: TerminalStyle) -> Signs:
    """Return what the reader's place can show."""
    return Signs() if look.has_unicode else _ASCII
