"""From the values of queries to result rows: means, intervals, bands, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from karat.measures import Measure, parse
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.stats.averages import Floats, geometric_mean, log_floored, mean
from karat.stats.imputation import combined
from karat.stats.intervals import (
    Interval,
    bca_interval,
    estimate,
    shown,
    t_interval,
    value_range,
)
from karat.stats.weighing import Weighing
from karat.tables import Result
from karat.tables.results import QueryScores

NEAR = 100  # cutoff up to which bounds are computed by default


class Aggregation:
    """Turns the scores of one run into result rows, and collects reasons for missing intervals.

    Args:
        scores: The scores.
        weighing: Weights of the queries.
        interval: t | bca | none.
        drawn: The bootstrap's resamples, for bca.
        bounds: Whether to compute the bounds of unjudged documents; None for measures with a
            cutoff up to ``NEAR``, where they cost little.
    """

    def __init__(
        self,
        scores: Scores,
        weighing: Weighing,
        interval: str,
        drawn: Floats | None,
        *,
        bounds: bool | None,
    ) -> None:
        self.scores, self.weighing = scores, weighing
        self.interval, self.drawn = interval, drawn
        self._bands = {measure: scores.ties(measure) for measure in scores.values}
        self.bounded = [
            measure
            for measure in scores.values
            if bounds or (bounds is None and (measure.depth or NEAR + 1) <= NEAR)
            if not scores.rules.fully_judged
        ]
        self._bounds = {measure: scores.bounds(measure) for measure in self.bounded}
        self._shares: dict[int, Floats] = {}
        self.grade_shares: list[float] = []  # of the variances that is due to uncertain grades
        self.without: dict[str, dict[str, None]] = {}

    def behind(self, rows: Sequence[Result], chosen: Mask) -> QueryScores:
        """The values behind the means over the chosen queries, where they give these means."""
        weights = self.weighing.over(chosen)
        if weights is not None:
            chosen = chosen & (weights > 0)
        averaged = {
            str(measure): values
            for measure, values in self.scores.values.items()
            if any(
                row.measure == str(measure) and self._is_mean(row, values, chosen) for row in rows
            )
        }
        # Without queries that have no value by any measure, as nothing is relevant.
        valued = np.array([~np.isnan(values) for values in averaged.values()]).any(axis=0)
        chosen = chosen & valued if averaged else chosen
        ids = [self.scores.evidence.query_ids[place] for place in np.flatnonzero(chosen)]
        return QueryScores(
            ids,
            {name: values[chosen] for name, values in averaged.items()},
            None if weights is None else weights[chosen],
        )

    def _is_mean(self, row: Result, values: Floats, chosen: Mask) -> bool:
        used = chosen & ~np.isnan(values)
        if row.attribute is not None or row.value is None or not used.any():
            return False
        weights = self.weighing.over(chosen)
        average = mean(values[used], None if weights is None else weights[used])
        return row.aggregate == "mean" and abs(average - row.value) <= 1e-9 * max(1, abs(average))

    def row(
        self,
        measure: Measure,
        chosen: Mask,
        attribute: str | None = None,
        value: str | None = None,
    ) -> Result:
        """One result row: a measure over the chosen queries."""
        scores, rules, evidence = self.scores, self.scores.rules, self.scores.evidence
        values = scores.values[measure]
        used = chosen & ~np.isnan(values)
        summed = values
        if rules.compat and rules.complete and measure.entry.symbol == "NumRel":
            summed = evidence.num_rel(1.0)  # trec_eval's -c forgets -l here (m_num_rel.c)
        span = self._interval(measure, values, used, chosen)
        if span.reason:
            label = str(measure) if value is None else f"{measure} where {attribute} is {value}"
            self.without.setdefault(span.reason, {})[label] = None
        failed = chosen & (scores.answered == "failed")
        returned = float(evidence.returned[used].sum())
        in_trec = rules.compat is not None and not rules.complete
        band = self._bands[measure]
        unjudged_low, unjudged_high = self._bounds.get(measure) or (None, None)
        return Result(
            run=scores.run.name,
            measure=str(measure),
            value=self._value(measure, summed, used),
            aggregate=measure.aggregate,
            ci_low=span.low,
            ci_high=span.high,
            ci_method=self.interval if span.low is not None else None,
            ci_reason=span.reason or span.cut,
            n=int(used.sum()),
            empty=int((used & (scores.answered == "empty")).sum()),
            missing=int((chosen & (scores.answered == "missing") & (used | in_trec)).sum()),
            failed=int(failed.sum()),
            undefined=int((chosen & ~used & ~failed).sum()) if not in_trec else 0,
            unjudged=len(scores.unjudged_counting) if attribute is None else 0,
            judged=self._judged(measure, used),
            tied=float(evidence.tied[used].sum()) / returned if returned else None,
            tie_low=self._value(measure, band.low, used),
            tie_expected=self._value(measure, band.expected, used),
            tie_high=self._value(measure, band.high, used),
            unjudged_low=self._value(measure, unjudged_low, used),
            unjudged_high=self._value(measure, unjudged_high, used),
            attribute=attribute,
            slice=value,
        )

    @property
    def without_band(self) -> list[Measure]:
        """Measures whose range over the orders of tied documents is not known."""
        return [measure for measure, band in self._bands.items() if band.low is None]

    @property
    def without_mean(self) -> list[Measure]:
        """Measures with a known range, but without a known mean over those orders."""
        bands = self._bands.items()
        return [m for m, band in bands if band.low is not None and band.expected is None]

    @property
    def unbounded(self) -> list[Measure]:
        """Measures for which bounds were requested but are not known."""
        return [m for m, bounds in self._bounds.items() if bounds is None]

    def _value(self, measure: Measure, values: Floats | None, used: Mask) -> float | None:
        if values is None or not used.any():
            return None
        values = values[used]
        weights, _ = self.weighing.at(used)
        if measure.aggregate == "sum":
            return math.fsum(values.tolist())
        if self.scores.rules.compat:
            # trec_eval adds from left to right in the order of topic names, then divides.
            geometric = measure.aggregate == "geometric"
            # Not sum(): since Python 3.12 it is more exact than trec_eval.
            total = float(np.cumsum(log_floored(values) if geometric else values)[-1])
            return math.exp(total / len(values)) if geometric else total / len(values)
        if measure.aggregate == "geometric":
            return geometric_mean(values, weights)
        return mean(values, weights)

    def _interval(self, measure: Measure, values: Floats, used: Mask, chosen: Mask) -> Interval:
        if self.interval == "none":
            return Interval(None, None)
        if measure.aggregate == "sum":
            return Interval(None, None, "it is a sum")
        geometric = measure.aggregate == "geometric"
        taken = log_floored(values[used]) if geometric else values[used]
        weights, strata = self.weighing.at(used)
        draws = self.scores.draws.get(measure)
        if self.drawn is not None:
            span = bca_interval(taken, self.drawn[:, used], weights, strata)
        elif draws is not None and not geometric:
            span = self._combined(taken, draws, chosen, used)
        else:
            span = t_interval(taken, weights, strata)
        if geometric and span.low is not None and span.high is not None:
            # With few queries the logarithms may spread so far that exp overflows.
            span = Interval(math.exp(span.low), math.exp(min(span.high, 700.0)))
        return shown(span, values[used], *value_range(measure))

    def _combined(self, values: Floats, draws: Floats, chosen: Mask, used: Mask) -> Interval:
        """The interval over queries and draws of the grades."""
        found = estimate(values, *self.weighing.at(used))
        if isinstance(found, str):
            return Interval(None, None, found)
        whole = combined(found, self.weighing.means(draws, chosen))
        self.grade_shares.append(whole.share)
        return whole.interval(found.centre)

    def _judged(self, measure: Measure, used: Mask) -> float | None:
        if measure.depth is None or self.scores.rules.fully_judged:
            return None
        if measure.depth not in self._shares:
            self._shares[measure.depth] = parse(f"Judged@{measure.depth}")(self.scores.evidence)
        share = self._shares[measure.depth]
        answered = used & ~np.isnan(share)
        weights, _ = self.weighing.at(answered)
        return mean(share[answered], weights) if answered.any() else None
