"""A plan: which entry point gets which two signals, and when."""

import random
import signal
from typing import Literal

from msgspec import Struct

EntryPoint = Literal["terminal", "plain", "piped", "prompt", "serve", "acp"]
Phase = Literal["startup", "work", "exit"]
ENTRY_POINTS: tuple[EntryPoint, ...] = ("terminal", "plain", "piped", "prompt", "serve", "acp")
PHASES: tuple[Phase, ...] = ("startup", "work", "exit")
CLOSE = "close"  # closes the terminal, or stdin if it is a pipe
SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP}
CODES = {name: 128 + number for name, number in SIGNALS.items()} | {CLOSE: 129}
UNORDERED_SECONDS = 0.1  # on a busy machine, the program may not run for so long


class Plan(Struct, frozen=True):
    """The entry point, the events and their times. The seed reproduces it, except for the speed of the machine."""

    entry_point: EntryPoint
    phase: Phase
    events: tuple[str, str]
    delay_seconds: float
    gap_seconds: float

    @classmethod
    def from_seed(cls, seed: int) -> "Plan":
        randomness = random.Random(seed)
        entry_point = ENTRY_POINTS[seed % len(ENTRY_POINTS)]
        phase = PHASES[seed // len(ENTRY_POINTS) % len(PHASES)]
        events = randomness.choice([*SIGNALS, CLOSE]), randomness.choice([*SIGNALS, CLOSE])
        delay_seconds = randomness.uniform(0, 1.5 if phase == "startup" else 0.1)
        gap_seconds = randomness.uniform(0, 0.6) if phase == "exit" else randomness.choice([0.0, 0.002, 0.05, 0.2])
        return cls(entry_point, phase, events, delay_seconds, gap_seconds)

    @property
    def has_terminal(self) -> bool:
        """Whether the entry point runs in a terminal, not on pipes."""
        return self.entry_point not in ("piped", "acp")

    @property
    def may_continue(self) -> bool:
        """Whether the program may still run after both events, so that it needs a SIGTERM."""
        is_reload = self.entry_point == "serve" and self.events[0] == "SIGHUP"
        is_quiet = self.entry_point == "piped" and self.events == (CLOSE, CLOSE)  # waits for its endless turn
        # The first SIGINT only stops the turn. The kernel merges it with a second one that follows at once.
        is_merged = (
            self.entry_point == "plain" and self.events == ("SIGINT", "SIGINT") and self.gap_seconds < UNORDERED_SECONDS
        )
        return is_reload or is_quiet or is_merged

    def allowed_codes(self, is_ordered: bool) -> set[int]:
        """Return the exit codes that name the first signal. Without an order, either signal may be the first."""
        first, second = self.events
        if first == CLOSE and not self.has_terminal:
            return {0, 143 if second == CLOSE else CODES[second]}  # a closed input does not count as a signal
        if self.may_continue:
            return {CODES[first], CODES[second], 143}
        is_ordered = is_ordered and self.gap_seconds >= UNORDERED_SECONDS
        return {CODES[first]} if is_ordered else {CODES[first], CODES[second]}
