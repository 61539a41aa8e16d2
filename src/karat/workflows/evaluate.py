"""Evaluate: runs and judgments to numbers with intervals, counts and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import UsageError, nearest
from karat.measures import DEFAULTS, Measure, parse, parse_all
from karat.measures.evidence import Floats, Mask
from karat.measures.scores import Rules, Scores, score
from karat.measures.trec import COMPAT, as_in
from karat.stats import bca_interval, mean, resample, t_interval
from karat.stats.averages import geometric_mean, log_floored
from karat.stats.intervals import Interval
from karat.tables import Qrels, Queries, QueryValue, Result, Results, Run
from karat.workflows import given, notes

RESAMPLES = 2000
INTERVALS = ("t", "bca", "none")


def evaluate(
    qrels: Any,
    runs: Any,
    measures: str | Iterable[str] | None = None,
    *,
    queries: Any = None,
    documents: Any = None,
    per_query: bool = False,
    by: str | Sequence[str] = (),
    interval: str = "t",
    seed: int = 0,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    judged_only: bool = False,
    collapse: str | None = None,
    compat: str | None = None,
) -> Results:
    """Evaluate one or more runs.

    Args:
        qrels: The judgments: a path, ``{query: {document: grade}}``, a data frame, or Qrels.
        runs: One run or a list of them: a path, ``{query: {document: score}}``, a data frame, or
            a Run. Names that stand twice are made unique.
        measures: Name or names of measures; ``karat.measures.DEFAULTS`` if None.
        queries: Weights, strata and attributes of the queries: a path, a frame, or Queries.
        documents: Needed to collapse: a path, a frame, or Documents.
        per_query: Keep the value of each query too.
        by: Query attribute or attributes to slice by.
        interval: t | bca | none.
        seed: Of the bootstrap.
        rel: Lowest grade that counts as relevant, where a measure does not say.
        complete: Every query of the qrels counts (trec_eval -c).
        depth: Cut rankings after so many documents (trec_eval -M).
        judged_only: Drop unjudged documents (trec_eval -J).
        collapse: Fold chunks into the document named in this column of ``documents``.
        compat: trec_eval-9 | trec_eval-10: that binary's numbers to the last printed digit.

    Raises:
        UsageError: an unknown measure, attribute, interval or version.
        InputError: runs and judgments that do not belong together.
    """
    rules = _rules(rel, complete, depth, judged_only, compat)
    asked = _asked([measures] if isinstance(measures, str) else measures, rel, rules)
    by = [by] if isinstance(by, str) else by
    if interval not in INTERVALS:
        raise UsageError(f"there is no interval called {interval!r}", nearest=INTERVALS)
    if seed < 0:
        raise UsageError(f"a seed of {seed} is below 0", fix="--seed 0, for example")
    as_given, about = given.qrels(qrels), given.queries(queries)
    judgments = _whole_grades(as_given) if rules.compat else as_given
    systems = _unique_names(given.runs(runs))
    if collapse is not None:
        systems = given.collapsed(systems, documents, collapse)

    scored = [score(run, judgments, asked, rules) for run in systems]
    # trec_eval knows neither weights nor strata.
    weighing = _Weighing.of(None if rules.compat else about, scored[0].evidence.query_ids)
    drawn = _drawn(interval, seed, weighing)
    aggregation = _Aggregation(rules, weighing, interval, drawn)
    everything = np.ones(scored[0].evidence.n, np.bool_)
    results = [aggregation.row(scores, m, everything) for scores in scored for m in asked]
    slices = [
        aggregation.row(scores, measure, chosen, attribute, value)
        for attribute in by
        for value, chosen in _slices(about, attribute, scored[0].evidence.query_ids)
        for scores in scored
        for measure in asked
    ]
    values = [row for scores in scored for row in _per_query(scores, rules)] if per_query else []
    every_row = [*results, *slices]
    said = notes.of(as_given, scored, every_row, rules, interval=interval, seed=seed)
    return Results(results, slices, values, [*said, *aggregation.reasons()])


def _rules(
    rel: float | None, complete: bool, depth: int | None, judged_only: bool, compat: str | None
) -> Rules:
    if compat is not None and compat not in COMPAT:
        raise UsageError(
            f"karat does not reproduce {compat!r}", nearest=nearest(compat, COMPAT) or list(COMPAT)
        )
    if depth is not None and depth < 1:
        raise UsageError(f"a depth of {depth} leaves nothing", fix="--depth 1000, for example")
    return Rules(
        rel=1.0 if rel is None else rel,
        complete=complete,
        depth=None if depth is None else min(depth, 1 << 62),
        judged_only=judged_only,
        compat=COMPAT[compat] if compat else None,
    )


def _asked(measures: Iterable[str] | None, rel: float | None, rules: Rules) -> list[Measure]:
    if rules.compat is None:
        return parse_all(DEFAULTS if measures is None else measures, rel=rel)
    found = parse_all(["official"] if measures is None else measures, rel=rel, trec=True)
    return [as_in(rules.compat, measure) for measure in found]


def _unique_names(runs: Sequence[Run]) -> list[Run]:
    if not runs:
        raise UsageError("no run to evaluate", fix="karat evaluate QRELS RUN")
    named: dict[str, Run] = {}
    for run in runs:
        name, count = run.name, 1
        while name in named:
            count += 1
            name = f"{run.name}-{count}"
        named[name] = run if name == run.name else run.named(name)
    return list(named.values())


def _whole_grades(qrels: Qrels) -> Qrels:
    """Grades as trec_eval's atol reads them: cut off at the point."""
    grade = qrels.frame["grade"]
    cut = grade.to_numpy().astype(np.int64).astype(np.float64)
    if (cut == grade.to_numpy()).all():
        return qrels
    return Qrels(qrels.frame.with_columns(grade=cut), qrels.source)


@dataclass(frozen=True)
class _Weighing:
    """Weights and strata of the judged queries; None where all are alike."""

    weights: Floats | None
    strata: NDArray[np.int64] | None
    n: int

    @classmethod
    def of(cls, queries: Queries | None, query_ids: list[str]) -> _Weighing:
        if queries is None:
            return cls(None, None, len(query_ids))
        weights = strata = None
        given = queries.weights()
        if given:
            lacking = [query for query in query_ids if query not in given]
            if lacking:
                raise UsageError(
                    f"{queries.source} gives weights, but none to query {lacking[0]}",
                    fix="give every judged query a weight, or drop the column",
                )
            weights = np.array([given[query] for query in query_ids])
        if "stratum" in queries.frame.columns:
            names = queries.attribute("stratum")
            _, strata = np.unique(
                np.array([names.get(query, "") for query in query_ids]), return_inverse=True
            )
        return cls(weights, strata, len(query_ids))

    def at(self, used: Mask) -> tuple[Floats | None, NDArray[np.int64] | None]:
        return (
            None if self.weights is None else self.weights[used],
            None if self.strata is None else self.strata[used],
        )


def _drawn(interval: str, seed: int, weighing: _Weighing) -> Floats | None:
    if interval != "bca":
        return None
    return resample(weighing.n, RESAMPLES, np.random.default_rng(seed), weighing.strata)


class _Aggregation:
    """Turns the values of queries into result rows, and remembers why intervals are lacking."""

    def __init__(
        self, rules: Rules, weighing: _Weighing, interval: str, drawn: Floats | None
    ) -> None:
        self.rules, self.weighing, self.interval, self.drawn = rules, weighing, interval, drawn
        self._without: dict[str, dict[str, None]] = {}

    def row(
        self,
        scores: Scores,
        measure: Measure,
        chosen: Mask,
        attribute: str | None = None,
        value: str | None = None,
    ) -> Result:
        """One result row: a measure over the chosen queries of a run."""
        values = scores.values[measure]
        used = chosen & ~np.isnan(values)
        summed = values
        if self.rules.compat and self.rules.complete and measure.entry.symbol == "NumRel":
            summed = scores.evidence.num_rel(1.0)  # trec_eval's -c forgets -l here (m_num_rel.c)
        aggregate = self._value(measure, summed[used], used)
        span = self._interval(measure, values, used)
        if span.reason:
            label = str(measure) if value is None else f"{measure} where {attribute} is {value}"
            self._without.setdefault(span.reason, {})[label] = None
        failed = chosen & (scores.answered == "failed")
        evidence = scores.evidence
        returned = float(evidence.returned[used].sum())
        in_trec = self.rules.compat is not None and not self.rules.complete
        return Result(
            run=scores.run.name,
            measure=str(measure),
            value=aggregate,
            aggregate=measure.aggregate,
            ci_low=span.low,
            ci_high=span.high,
            ci_method=self.interval if span.low is not None else None,
            n=int(used.sum()),
            empty=int((used & (scores.answered == "empty")).sum()),
            missing=int((chosen & (scores.answered == "missing") & (used | in_trec)).sum()),
            failed=int(failed.sum()),
            undefined=int((chosen & ~used & ~failed).sum()) if not in_trec else 0,
            unjudged=len(scores.unjudged) if attribute is None else 0,
            judged=self._judged(scores, measure, used),
            tied=float(evidence.tied[used].sum()) / returned if returned else None,
            attribute=attribute,
            slice=value,
        )

    def reasons(self) -> list[str]:
        """Why some rows have no interval."""
        return [
            f"no interval for {', '.join(measures)}: {reason}"
            for reason, measures in self._without.items()
        ]

    def _value(self, measure: Measure, values: Floats, used: Mask) -> float | None:
        if not len(values):
            return None
        weights, _ = self.weighing.at(used)
        if measure.aggregate == "sum":
            return math.fsum(values.tolist())
        if self.rules.compat:
            # trec_eval adds from left to right in the order of topic names, then divides.
            geometric = measure.aggregate == "geometric"
            # Not sum(): since Python 3.12 it compensates, and would be more exact than trec_eval.
            total = float(np.cumsum(log_floored(values) if geometric else values)[-1])
            return math.exp(total / len(values)) if geometric else total / len(values)
        if measure.aggregate == "geometric":
            return geometric_mean(values, weights)
        return mean(values, weights)

    def _interval(self, measure: Measure, values: Floats, used: Mask) -> Interval:
        if self.interval == "none":
            return Interval(None, None)
        if measure.aggregate == "sum":
            return Interval(None, None, "it is a sum")
        geometric = measure.aggregate == "geometric"
        taken = log_floored(values[used]) if geometric else values[used]
        weights, strata = self.weighing.at(used)
        if self.drawn is not None:
            span = bca_interval(taken, self.drawn[:, used], weights, strata)
        else:
            span = t_interval(taken, weights, strata)
        if geometric and span.low is not None and span.high is not None:
            # Few queries make the logarithms spread so far that e to their power means nothing.
            most = math.inf if measure.entry.high is None else measure.entry.high
            return Interval(math.exp(span.low), min(math.exp(min(span.high, 700.0)), most))
        return span

    def _judged(self, scores: Scores, measure: Measure, used: Mask) -> float | None:
        if measure.depth is None:
            return None
        share = parse(f"Judged@{measure.depth}")(scores.evidence)
        answered = used & ~np.isnan(share)
        weights, _ = self.weighing.at(answered)
        return mean(share[answered], weights) if answered.any() else None


def _slices(
    queries: Queries | None, attribute: str, query_ids: list[str]
) -> list[tuple[str, Mask]]:
    if queries is None:
        raise UsageError(
            f"slicing by {attribute!r} needs the queries and their attributes",
            fix="--queries FILE",
        )
    values = queries.attribute(attribute)
    of_query = np.array([values.get(query, "(none)") for query in query_ids])
    return [(str(value), of_query == value) for value in np.unique(of_query)]


def _per_query(scores: Scores, rules: Rules) -> list[QueryValue]:
    unlisted = rules.compat is not None and not rules.compat.lists_missing
    rows = []
    for measure, values in scores.values.items():
        name = str(measure)
        for index, query_id in enumerate(scores.evidence.query_ids):
            if unlisted and scores.answered[index] != "ok":
                continue
            value = None if np.isnan(values[index]) else float(values[index])
            state = scores.state(measure, index)
            rows.append(QueryValue(scores.run.name, name, query_id, value, state))
        rows += [
            QueryValue(scores.run.name, name, query_id, None, "unjudged")
            for query_id in scores.unjudged
        ]
    return rows
