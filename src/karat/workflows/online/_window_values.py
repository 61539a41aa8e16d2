"""Readings: metrics in each of several windows of a log, and the queries behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from karat.engines.frames.engine import Engine
from karat.online.estimates import NOT_SAID, estimate, needed
from karat.online.evidence import Cut, Evidence
from karat.online.health import unknown_results
from karat.online.metrics.counts import EVERY_SEARCH
from karat.online.metrics.entry import Metric, Ratio
from karat.online.rules import Rules
from karat.online.watch import Reading
from karat.online.windows import Window
from karat.stats.ratio import UserMoments, ratio_variance
from karat.stats.student import t_quantile
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog
from karat.workflows.online.evidence import gather
from karat.workflows.online.filters import Only

Slice = tuple[tuple[str, str], ...]
"""Dimension and value, in the order of the cut."""


@dataclass(frozen=True)
class WindowReadings:
    """What a window says.

    Attributes:
        window: The window.
        searches: Searches in it.
        readings: By metric and slice; one that has no value is absent.
        doubts: What the log does not say of it, in sentences; of all searches, whatever was asked.
    """

    window: Window
    searches: int
    readings: Mapping[tuple[str, Slice], Reading]
    doubts: Sequence[str] = ()


@dataclass(frozen=True)
class WindowReader:
    """Reads windows of a log.

    Attributes:
        log: What the store holds.
        engine: What reduces it, opened.
        rules: How events become searches.
        classes: ``query_key`` and ``class``, for cuts by class.
        only: The searches that count; None for all.
        progress: Told how much is done, and of how much.
    """

    log: EventLog
    engine: Engine
    rules: Rules
    classes: pl.DataFrame | None = None
    only: Only | None = None
    progress: Callable[[int, int], None] | None = field(default=None, compare=False)

    def read(
        self, window: Window, metrics: Sequence[Metric], cuts: Sequence[Cut]
    ) -> WindowReadings:
        """The values of metrics in a window and its slices.

        Args:
            window: The window.
            metrics: All of which the log can say.
            cuts: What to slice by, () for all among them.
        """
        evidence = self._evidence(window, [*needed(metrics), EVERY_SEARCH], cuts)
        readings: dict[tuple[str, Slice], Reading] = {}
        by_name = {metric.name: metric for metric in metrics}
        for cut in cuts:
            errors = _errors(evidence.moments[cut], cut)
            for row in estimate(evidence, metrics, cut, self.log, self.rules):
                if row.value is None or not row.n:
                    continue
                part = tuple(row.slice.items())
                ratio = isinstance(by_name[row.metric].compute, Ratio)
                error = errors[row.metric, part] if ratio else _half(row)
                readings[row.metric, part] = Reading(row.value, error, row.n, row.users)
        counted = evidence.moments[()].filter(pl.col("metric") == EVERY_SEARCH.name)
        searches = round(float(counted["denominator"].sum()))
        doubts = list(unknown_results(evidence.counts, self.log))
        return WindowReadings(window, searches, readings, doubts)

    def by_query(self, window: Window, metrics: Sequence[Metric], cut: Cut) -> pl.DataFrame:
        """Sums of ratios in a window for each query in each slice of a cut.

        Args:
            window: The window.
            metrics: Ratios over searches, clicks or sessions (not over users).
            cut: What it is sliced by, besides the query.

        Returns:
            The columns of the cut, ``query``, ``metric``, ``numerator`` and ``denominator``.
        """
        within: Cut = (*cut, "query")
        evidence = self._evidence(window, metrics, [within])
        frame = evidence.moments[within].filter(pl.col("term") == "value")
        return frame.select(
            *(pl.col(name).fill_null(NOT_SAID) for name in cut),
            "query", "metric", "numerator", "denominator",
        )  # fmt: skip

    def _evidence(self, window: Window, metrics: Sequence[Metric], cuts: Sequence[Cut]) -> Evidence:
        """The evidence of a window, whether of days or of hours."""
        return gather(
            self.log,
            self.engine,
            metrics,
            cuts,
            rules=self.rules,
            first_day=window.first_day,
            last_day=window.last_day,
            first_hour=window.first_hour,
            end_hour=window.end_hour,
            only=self.only,
            classes=self.classes,
            progress=self.progress,
        )


def _errors(moments: pl.DataFrame, cut: Cut) -> dict[tuple[str, Slice], float]:
    """Standard errors of the ratios of a cut."""
    found = {}
    for row in moments.filter(pl.col("term") == "value").iter_rows(named=True):
        part = tuple((name, NOT_SAID if row[name] is None else str(row[name])) for name in cut)
        found[row["metric"], part] = _error(row)
    return found


def _error(row: Mapping[str, Any]) -> float:
    if row["users"] < 2 or not row["denominator"]:
        return 0.0
    return math.sqrt(ratio_variance(UserMoments.of(row)))


def _half(row: OnlineResult) -> float:
    """Standard error of a quantile or such, from its interval: the wider half that is known."""
    assert row.value is not None
    halves = [abs(end - row.value) for end in (row.low, row.high) if end is not None]
    return max(halves, default=0.0) / t_quantile(0.975, max(row.users - 1, 1))
