"""Internal counts, reduced like metrics but not in the catalogue."""

from __future__ import annotations

from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import one


def to_count(name: str, ratio: Ratio) -> Metric:
    """An internal metric that is read by its sums; it cannot be requested and is not printed.

    Args:
        name: Name of its rows in the evidence, distinct from metrics.
        ratio: Numerator and denominator.
    """
    return Metric(
        name=name,
        version=1,
        title=name,
        definition=name,
        says="",
        source="",
        traps=(),
        direction="none",
        unit="count",
        compute=ratio,
        needs=(),
        family="",
    )


EVERY_SEARCH = to_count("n(searches)", Ratio("searches", one, one))
"""Searches of any outcome: the denominator of each slice."""
