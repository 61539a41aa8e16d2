"""Scores: each measure for each query of one run, with the status of the query.

The topic set is decided only here: by default every query of the qrels that has a relevant
document; with ``complete`` every query of the qrels; in trec_eval 9 those that the run has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError
from karat.measures.entry import Measure
from karat.measures.evidence import Evidence, Floats, Ints, Mask
from karat.measures.judged_join import reduce
from karat.measures.ties import Band, tie_band
from karat.measures.trec import Compat
from karat.tables.id_spelling import likely_cause
from karat.tables.qrels import Qrels
from karat.tables.results import State
from karat.tables.run import Run


@dataclass(frozen=True, slots=True)
class Rules:
    """How a run is read before it is measured."""

    rel: float = 1.0  # lowest grade that counts as relevant
    # Count every query of the qrels; those without a relevant document score 0
    complete: bool = False
    depth: int | None = None  # number of documents after which rankings are cut
    judged_only: bool = False  # drop documents without a judgment (after the cut)
    # Documents without a judgment are known to be not relevant: no bounds
    fully_judged: bool = False
    compat: Compat | None = None  # the trec_eval to reproduce
    # Queries without a right answer: never in the topic set
    no_answer: frozenset[str] = frozenset()
    # Queries with zero weight: they count only in slices of their own
    zero_weight: frozenset[str] = frozenset()

    @property
    def silent(self) -> frozenset[str]:
        """Those of ``no_answer`` that count: with zero weight only if there are no others."""
        return self.no_answer - self.zero_weight or self.no_answer


@dataclass(frozen=True)
class Scores:
    """Values and states of one run over the judged queries."""

    run: Run
    rules: Rules  # how it was read
    full: Evidence  # its hits and ideals, of full rankings
    evidence: Evidence  # the same after `rules`: cut, condensed
    answered: NDArray[np.str_]  # ok | empty | missing | failed for each judged query; shape (n,)
    topics: Mask  # queries of the topic set; shape (n,)
    unjudged: list[str]  # queries of the run without judgments, sorted
    lowest_rel: float  # lowest grade that any of the measures counts as relevant
    # For each measure, one value for each query, NaN where it has none; shape (n,)
    values: dict[Measure, Floats]
    # The same for each draw of uncertain grades; shape (draws, n); empty if all are certain
    draws: dict[Measure, Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def overall(self) -> Mask:
        """Queries that count in overall results: all but those with zero weight; shape (n,)."""
        zero_weight = self.rules.zero_weight
        return np.array([query not in zero_weight for query in self.evidence.query_ids], np.bool_)

    def counting(self, chosen: Mask) -> Mask:
        """Which of some queries count: those with zero weight only where there are no others.

        Args:
            chosen: The queries of a slice; shape (n,).
        """
        weighing = chosen & self.overall
        return weighing if weighing.any() else chosen

    @property
    def unjudged_counting(self) -> list[str]:
        """Queries of ``unjudged`` that would count; sorted."""
        return [query for query in self.unjudged if query not in self.rules.zero_weight]

    @property
    def answerable(self) -> list[str]:
        """The queries that count, have a relevant document and are not marked ``no_answer``."""
        chosen = self.overall & (self.evidence.num_rel(self.lowest_rel) > 0)
        ids = [self.evidence.query_ids[index] for index in np.flatnonzero(chosen)]
        return [query for query in ids if query not in self.rules.no_answer]

    def state(self, measure: Measure, index: int) -> State:
        """The status of one query under one measure."""
        answered = str(self.answered[index])
        if answered == "failed" or not np.isnan(self.values[measure][index]):
            return answered  # type: ignore[return-value]
        return "undefined"

    def ties(self, measure: Measure) -> Band:
        """Range of each value over the orders of tied documents; parts may be None."""
        if self.rules.compat:
            return Band()
        band = tie_band(measure, self.full, self.rules.depth, condensed=self.rules.judged_only)
        value = self.values[measure]
        low, expected, high = (
            None if end is None else _like(value, end)
            for end in (band.low, band.expected, band.high)
        )
        # Rounding may put an end on the wrong side of the value.
        low = None if low is None else np.minimum(low, value)
        high = None if high is None else np.maximum(high, value)
        if expected is not None and low is not None and high is not None:
            expected = np.clip(expected, low, high)
        return Band(low, expected, high)

    def bounds(self, measure: Measure) -> tuple[Floats, Floats] | None:
        """Lowest and highest of each value over all grades of the unjudged; None if not known."""
        bounds = None
        if not self.rules.compat and not self.rules.judged_only:
            bounds = measure.bounds(self.evidence)
        if bounds is None:
            return None
        value = self.values[measure]
        low, high = (_like(value, end) for end in bounds)
        most = np.inf if measure.entry.high is None else measure.entry.high
        high = np.minimum(high, most)
        if self.evidence.scale[0] > 0:
            return np.minimum(low, high), high  # the value counts them as 0, outside the scale
        return np.minimum(low, value), np.maximum(high, value)


def with_draws(
    scored: Sequence[Scores], qrels: Qrels, count: int, rng: np.random.Generator
) -> list[Scores]:
    """Scores of runs with the values that they have in draws of uncertain grades."""
    plain = [replace(scores.rules, no_answer=frozenset()) for scores in scored]
    values: list[list[dict[Measure, Floats]]] = [[] for _ in scored]
    for grades in qrels.draws(count, rng):
        for scores, rules, of_run in zip(scored, plain, values, strict=True):
            try:
                of_run.append(score(scores.run, grades, list(scores.values), rules).values)
            except InputError:  # no grade of the draw is relevant
                none = np.full(scores.evidence.n, np.nan)
                of_run.append(dict.fromkeys(scores.values, none))
    out = []
    for scores, of_run in zip(scored, values, strict=True):
        ids = scores.evidence.query_ids
        marked = np.array([query in scores.rules.no_answer for query in ids], np.bool_)
        drawn = {
            measure: np.where(marked, np.nan, np.stack([each[measure] for each in of_run]))
            for measure in scores.values
        }
        out.append(replace(scores, draws=drawn))
    return out


def _like(value: Floats, other: Floats) -> Floats:
    """The other values, and the value itself where one of the two is NaN."""
    return np.where(np.isnan(value) | np.isnan(other), value, other)


def score(run: Run, qrels: Qrels, measures: Sequence[Measure], rules: Rules) -> Scores:
    """Score every judged query of a run.

    Raises:
        InputError: no query of the run is judged; no grade counts as relevant but some are just
            below; or the trec_eval to reproduce rejects the run.
    """
    # A query counts if it has a relevant document for any of the measures.
    lowest = min([rules.rel, *(_lowest_rel(measure, rules.rel) for measure in measures)])
    if rules.compat is None:
        _check_relevance(qrels, lowest)  # trec_eval scores everything 0 instead
    elif rules.compat.single_precision:
        run = run.in_single_precision()
    full = evidence = reduce(run, qrels)
    unjudged = sorted(set(run.answers["query_id"]) - set(evidence.query_ids))
    unjudged = [query for query in unjudged if query not in rules.no_answer]
    all_unjudged = len(unjudged) == len(set(run.answers["query_id"]) - rules.no_answer)
    # Without any judgments, the ids are not the cause.
    if unjudged and evidence.n and all_unjudged and len(run):
        raise _other_ids(run, qrels, unjudged, evidence.query_ids)
    answered = _answered(run, evidence)
    if rules.compat:
        answered = np.where(answered == "failed", "missing", answered)
    if rules.depth is not None:
        evidence = replace(
            evidence.to_depth(rules.depth), tied=_tied_above(run, evidence, rules.depth)
        )
    if rules.judged_only:
        evidence = evidence.only_judged()
        tied = evidence.per_query(evidence.tie_size > 1).astype(np.int64)
        evidence = replace(evidence, tied=tied)

    every = np.ones(evidence.n, np.bool_)
    if rules.complete:
        topics, blank = every, 0.0
    elif rules.compat:
        topics, blank = _trec_topics(rules.compat, run, evidence, answered), 0.0
    else:
        topics, blank = evidence.num_rel(lowest) > 0, np.nan
    if rules.no_answer:
        marked = np.array([query in rules.no_answer for query in evidence.query_ids], np.bool_)
        _check_no_answer(qrels, evidence, marked, lowest)
        topics = topics & ~marked
    failed = answered == "failed"
    values = {}
    for measure in measures:
        value = measure(evidence)
        if measure.entry.direction != "none":  # the judged share without documents is not 0
            value = np.where(np.isnan(value), blank, value)
        values[measure] = np.where(topics & ~failed, value, np.nan)
    return Scores(
        run=run,
        rules=rules,
        full=full,
        evidence=evidence,
        answered=answered,
        topics=topics,
        unjudged=unjudged,
        lowest_rel=lowest,
        values=values,
    )


def _other_ids(
    run: Run, qrels: Qrels, unjudged: Sequence[str], judged: Sequence[str]
) -> InputError:
    cause = likely_cause({"": unjudged}, {"": judged})
    why = "" if cause is None else f"; ids differ by {cause.cause}"
    return InputError(
        f"no query of the run is in the qrels: the run has {_few(unjudged)}, the qrels have "
        f"{_few(judged)}{why}",
        file=run.source,
        fix=f"check that {qrels.source} has the judgments of this run"
        if cause is None
        else f"use the same ids: {cause.here!r} is {cause.there!r} in {qrels.source}",
    )


def _lowest_rel(measure: Measure, rel: float) -> float:
    inner = measure.settings.get("of")
    if isinstance(inner, Measure):
        return _lowest_rel(inner, rel)
    return float(measure.settings.get("rel", rel))


def _answered(run: Run, evidence: Evidence) -> NDArray[np.str_]:
    states = dict(run.answers.select("query_id", "state").iter_rows())
    return np.array([states.get(query, "missing") for query in evidence.query_ids], dtype=np.str_)


def _tied_above(run: Run, evidence: Evidence, depth: int) -> Ints:
    """Tied documents of each query among its first ``depth``; the other may be below."""
    query = np.searchsorted(run.starts, run.tie_start, side="right") - 1
    above = np.clip(depth - (run.tie_start - run.starts[query]), 0, run.tie_size)
    counts = np.bincount(query, above, minlength=len(run.query_ids)).astype(np.int64)
    tied = dict(zip(run.query_ids, counts.tolist(), strict=True))
    return np.array([tied.get(query_id, 0) for query_id in evidence.query_ids], np.int64)


def _trec_topics(compat: Compat, run: Run, evidence: Evidence, answered: NDArray[np.str_]) -> Mask:
    retrieved: Mask = np.equal(answered, "ok")
    if compat.needs_every_topic and not retrieved.all():
        lacking = [evidence.query_ids[i] for i in np.flatnonzero(~retrieved)]
        raise InputError(
            f"trec_eval 10 aborts here (exit 4): without -c it requires every judged topic in the "
            f"run, and {_few(lacking)} {'is' if len(lacking) == 1 else 'are'} missing; "
            "karat prints no partial results",
            file=run.source,
            fix="count every judged query, or leave them out as trec_eval-9 does",
            command="--complete, or --compat trec_eval-9",
        )
    return retrieved


def _check_no_answer(qrels: Qrels, evidence: Evidence, marked: Mask, rel: float) -> None:
    # Lower grades may be related documents; the highest is an answer.
    top = max(rel, evidence.scale[1])
    wrong = np.flatnonzero(marked & (evidence.num_rel(top) > 0))
    if len(wrong):
        query = evidence.query_ids[wrong[0]]
        good = qrels.frame.filter((pl.col("query_id") == query) & (pl.col("grade") >= top))
        doc_id, grade = good.select("doc_id", "grade").row(0)
        raise InputError(
            f"the query is marked no_answer, but document {doc_id} has grade {grade:g}, the "
            "highest of the scale",
            file=qrels.source,
            query=query,
            fix="remove the mark, or correct the grade",
        )


def _check_relevance(qrels: Qrels, rel: float) -> None:
    grades = qrels.frame["grade"]
    highest = grades.max()
    if highest is None or float(highest) >= rel:  # type: ignore[arg-type]
        return
    below = grades.filter((grades > 0) & (grades < rel))
    if below.len():
        raise InputError(
            f"no grade reaches {rel:g}, so nothing is relevant; the highest is "
            f"{max(below.to_list()):g}",
            file=qrels.source,
            fix=f"lower rel to {min(below.to_list()):g}, the lowest grade that counts as relevant",
        )


def _few(ids: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(ids[:most])
    return shown if len(ids) <= most else f"{shown} … ({len(ids)} in total)"
