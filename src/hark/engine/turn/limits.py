"""What a turn may use up."""

from dataclasses import dataclass

from hark.engine.turn.routes import Route
from hark.protocol.outcomes import LimitReached, Usage
from hark.protocol.rules import Limits


@dataclass(frozen=True, slots=True)
class PriorUsage:
    """What was used before a turn: by its session, and by all sessions today."""

    tokens: int = 0
    cost: float = 0.0
    day_cost: float = 0.0


class Meter:
    """Counts a turn's steps, tokens and money against the limits of turn, session and day."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._before = PriorUsage()
        self.usage = Usage()
        self.cost: float | None = None

    def begin(self, before: PriorUsage) -> None:
        """Take into account what was used before this turn."""
        self._before = before

    def add(self, usage: Usage, route: Route) -> None:
        """Count one reply. A route without a known price adds no invented cost."""
        self.usage += usage
        if route.input_price is None or route.output_price is None:
            return
        cached_price = route.input_price if route.cached_price is None else route.cached_price
        fresh = usage.input_tokens - usage.cached_tokens
        price = fresh * route.input_price + usage.cached_tokens * cached_price
        price += usage.output_tokens * route.output_price
        self.cost = (self.cost or 0.0) + price / 1_000_000

    def reached(self, step: int) -> LimitReached | None:
        """Return the limit that forbids this step, if one does."""
        limits = self._limits
        if limits.steps is not None and step > limits.steps:
            return LimitReached("steps", f"The turn took {limits.steps} steps, as many as it may.")
        tokens = self.usage.input_tokens + self.usage.output_tokens
        cost = self.cost or 0.0
        for name, whose, used, limit in (
            ("tokens", "turn", tokens, limits.tokens),
            ("cost_usd", "turn", cost, limits.cost_usd),
            ("session_tokens", "session", self._before.tokens + tokens, limits.session_tokens),
            ("session_cost_usd", "session", self._before.cost + cost, limits.session_cost_usd),
            ("day_cost_usd", "day", self._before.day_cost + cost, limits.day_cost_usd),
        ):
            if limit is not None and used >= limit:
                unit = "tokens" if name.endswith("tokens") else "USD"
                return LimitReached(name, f"The {whose} has used {used:.6g} {unit} of the {limit:.6g} that it may.")
        return None
