"""Figures, their targets, and how they are shown."""

from collections.abc import Sequence
from dataclasses import dataclass


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the sample below which that share of them lies."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Spread:
    """Many samples of one thing: the usual, and the bad day."""

    p50: float
    p99: float | None = None

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Spread":
        """Return what lies in the middle, and what nearly all stay below."""
        return cls(quantile(samples, 0.5), quantile(samples, 0.99))


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement beside the bare loop's, and what it must stay below: p50, p99 or the ratio."""

    name: str
    unit: str
    value: Spread
    bare: Spread | None = None
    target: Spread | None = None
    target_ratio: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many bare loops it costs."""
        return self.value.p50 / self.bare.p50 if self.bare and self.bare.p50 else None

    @property
    def has_missed(self) -> bool:
        """True when it is not below its target."""
        if self.target_ratio is not None:
            return self.ratio is not None and self.ratio >= self.target_ratio
        if self.target is None:
            return False
        value, target = self.value, self.target
        is_p99_high = value.p99 is not None and target.p99 is not None and value.p99 >= target.p99
        return is_p99_high or value.p50 >= target.p50

    @property
    def wish(self) -> str:
        """The target in words."""
        if self.target_ratio is not None:
            return f"x{self.target_ratio:g}"
        if self.target is None:
            return ""
        return f"{self.target.p50:g}" + (f" / {self.target.p99:g}" if self.target.p99 is not None else "")


def show(title: str, figures: Sequence[Figure]) -> None:
    """Print a table; what missed its target is marked."""
    heads = ("", "p50", "p99", "bare p50", "bare p99", "ratio", "target", "")
    rows = [heads] + [_cells(figure) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    print(f"\n{title}")
    for row in rows:
        first, *others = (
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print(f"  {first}  {'  '.join(others)}".rstrip(), flush=True)


def _cells(figure: Figure) -> tuple[str, ...]:
    bare = figure.bare or Spread(float("nan"))
    return (
        f"{figure.name} [{figure.unit}]",
        _number(figure.value.p50),
        _number(figure.value.p99),
        _number(bare.p50) if figure.bare else "",
        _number(bare.p99),
        f"x{figure.ratio:.1f}" if figure.ratio is not None else "",
        figure.wish,
        "MISSED" if figure.has_missed else "",
    )


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
