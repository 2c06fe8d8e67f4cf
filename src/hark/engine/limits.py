"""What a turn may use up."""

from hark.engine.routes import Route
from hark.protocol.outcomes import LimitReached, Usage
from hark.protocol.rules import Limits


class Meter:
    """Counts a turn's steps, tokens and money against its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.usage = Usage()
        self.cost: float | None = None

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
        tokens = self.usage.input_tokens + self.usage.output_tokens
        if limits.steps is not None and step > limits.steps:
            return LimitReached("steps", f"The turn took {limits.steps} steps, as many as it may.")
        if limits.tokens is not None and tokens >= limits.tokens:
            return LimitReached("tokens", f"The turn used {tokens} tokens of the {limits.tokens} that it may.")
        if limits.cost_usd is not None and self.cost is not None and self.cost >= limits.cost_usd:
            return LimitReached(
                "cost_usd", f"The turn cost ${self.cost:.4f} of the ${limits.cost_usd:.4f} that it may."
            )
        return None
