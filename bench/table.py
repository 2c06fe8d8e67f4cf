"""Measured figures, their targets, and the printed table."""

from collections.abc import Sequence
from dataclasses import dataclass


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the sample at the quantile `share`, such as 0.99."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The median and the 99th percentile of many samples."""

    p50: float
    p99: float | None = None

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Percentiles":
        """Return the percentiles of the samples."""
        return cls(quantile(samples, 0.5), quantile(samples, 0.99))


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, the bare loop's value, and the target: an upper limit for p50, p99 or the ratio."""

    name: str
    unit: str
    value: Percentiles
    bare: Percentiles | None = None
    target: Percentiles | None = None
    target_ratio: float | None = None

    @property
    def ratio(self) -> float | None:
        """The ratio of the median to the bare loop's median, or None if the bare loop was not measured."""
        return self.value.p50 / self.bare.p50 if self.bare and self.bare.p50 else None

    @property
    def misses_target(self) -> bool:
        """Whether the value is at or above its target."""
        if self.target_ratio is not None:
            return self.ratio is not None and self.ratio >= self.target_ratio
        if self.target is None:
            return False
        value, target = self.value, self.target
        is_p99_high = value.p99 is not None and target.p99 is not None and value.p99 >= target.p99
        return is_p99_high or value.p50 >= target.p50

    @property
    def target_text(self) -> str:
        """The target as text for the table, or "" if there is none."""
        if self.target_ratio is not None:
            return f"x{self.target_ratio:g}"
        if self.target is None:
            return ""
        return f"{self.target.p50:g}" + (f" / {self.target.p99:g}" if self.target.p99 is not None else "")


def print_table(title: str, figures: Sequence[Figure]) -> None:
    """Print a table that marks missed targets."""
    headers = ("", "p50", "p99", "bare p50", "bare p99", "ratio", "target", "")
    rows = [headers] + [_format_row(figure) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headers))]
    print(f"\n{title}")
    for row in rows:
        first, *others = (
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print(f"  {first}  {'  '.join(others)}".rstrip(), flush=True)


def _format_row(figure: Figure) -> tuple[str, ...]:
    bare = figure.bare or Percentiles(float("nan"))
    return (
        f"{figure.name} [{figure.unit}]",
        _format_number(figure.value.p50),
        _format_number(figure.value.p99),
        _format_number(bare.p50) if figure.bare else "",
        _format_number(bare.p99),
        f"x{figure.ratio:.1f}" if figure.ratio is not None else "",
        figure.target_text,
        "MISSED" if figure.misses_target else "",
    )


def _format_number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
