"""Counts: what a log is reduced to as if it were a metric, though no catalogue has it."""

from __future__ import annotations

from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import one


def to_count(name: str, ratio: Ratio) -> Metric:
    """An entry that is gathered and read by its sums; nobody can ask for it, and nothing prints it.

    Args:
        name: Of its rows in the evidence; no metric has it.
        ratio: What is counted, and over what.
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
