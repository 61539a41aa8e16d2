"""How long answers took: quantiles of a run's latencies."""

from __future__ import annotations

import numpy as np

from karat.tables import Run
from karat.tables.results import Latency


def latency_of(run: Run) -> Latency | None:
    """The latency row of a run; None if none of its answers has a time.

    A quantile is the smallest time that was seen and that the share of answers did not exceed
    (NumPy's method ``inverted_cdf``, Hyndman and Fan 1996, definition 1): nothing is interpolated
    between a quick answer and a slow one. Failed queries that have a time are counted; one that
    timed out took at least the time it was given.
    """
    if "latency_us" not in run.answers.columns:
        return None
    times = run.answers["latency_us"].drop_nulls().to_numpy()
    if not len(times):
        return None
    p50, p95, p99 = np.quantile(times, (0.5, 0.95, 0.99), method="inverted_cdf")
    return Latency(run.name, len(times), float(p50), float(p95), float(p99), float(np.max(times)))
