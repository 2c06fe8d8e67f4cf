"""Limits per turn, session and day."""

from dataclasses import dataclass

from hark.engine.turn.routes import Route
from hark.protocol.outcomes import LimitReached, Usage
from hark.protocol.rules import Limits


@dataclass(frozen=True, slots=True)
class PriorUsage:
    """Usage before a turn: by its session, and by all sessions today."""

    tokens: int = 0
    cost: float = 0.0
    day_cost: float = 0.0


class UsageMeter:
    """Counts a turn's steps, tokens and cost against the limits per turn, session and day."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._prior = PriorUsage()
        self.usage = Usage()
        self.cost: float | None = None

    def set_prior_usage(self, prior: PriorUsage) -> None:
        """Set the usage accumulated before this turn. It counts towards the session and day limits."""
        self._prior = prior

    def add(self, usage: Usage, route: Route) -> None:
        """Add the usage of one reply. A route without known prices adds no cost."""
        self.usage += usage
        if route.input_price is None or route.output_price is None:
            return
        cached_price = route.input_price if route.cached_price is None else route.cached_price
        fresh = usage.input_tokens - usage.cached_tokens
        price = fresh * route.input_price + usage.cached_tokens * cached_price
        price += usage.output_tokens * route.output_price
        self.cost = (self.cost or 0.0) + price / 1_000_000

    def check_limits(self, step: int) -> LimitReached | None:
        """Return the limit that forbids this step, or None."""
        limits = self._limits
        if limits.steps is not None and step > limits.steps:
            return LimitReached("steps", f'Step limit reached ({limits.steps}). Send "continue" to resume.')
        tokens = self.usage.input_tokens + self.usage.output_tokens
        cost = self.cost or 0.0
        for name, scope, used, limit in (
            ("tokens", "turn", tokens, limits.tokens),
            ("cost_usd", "turn", cost, limits.cost_usd),
            ("session_tokens", "session", self._prior.tokens + tokens, limits.session_tokens),
            ("session_cost_usd", "session", self._prior.cost + cost, limits.session_cost_usd),
            ("day_cost_usd", "day", self._prior.day_cost + cost, limits.day_cost_usd),
        ):
            if limit is not None and used >= limit:
                unit = "tokens" if name.endswith("tokens") else "USD"
                return LimitReached(name, f"The {scope}'s limit is reached: {used:.6g} of {limit:.6g} {unit} used.")
        return None
