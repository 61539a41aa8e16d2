"""Answer changes: how quickly a candidate answered, and how many queries not well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.stats.intervals import Interval
from karat.stats.paired_shares import paired_share_interval
from karat.stats.quantiles import quantile_change
from karat.tables.answer_changes import AnswerChange
from karat.workflows.offline.run_health import repeated_in
from karat.workflows.release.baseline import times_of


def answer_changes(first: Scores, other: Scores) -> Iterator[AnswerChange]:
    """How a candidate answered, against the baseline.

    Args:
        first: Of the baseline.
        other: Of the candidate.
    """
    yield from _times(first, other)
    counting = first.topics & first.overall
    failed = [scores.answered == "failed" for scores in (first, other)]
    nothing = [np.isin(scores.answered, ["empty", "missing"]) for scores in (first, other)]
    twice = [_in(scores, repeated_in(scores.run)) for scores in (first, other)]
    answered = counting & ~failed[0] & ~failed[1]
    for what, (before, after), over in (
        ("zero results", nothing, answered),
        ("no answer", failed, counting),
        ("documents twice", twice, answered),
    ):
        n = int(over.sum())
        more = int((after & ~before & over).sum())
        fewer = int((before & ~after & over).sum())
        if not (before | after)[over].any():
            continue
        values = [int((each & over).sum()) / n for each in (before, after)]
        interval = paired_share_interval(more, fewer, n)
        yield _row(first, other, what, values, interval, n, same=not more + fewer)


def _times(first: Scores, other: Scores) -> Iterator[AnswerChange]:
    old, new = times_of(first.run), times_of(other.run)
    shared = sorted(old.keys() & new.keys())
    if not shared:
        return
    before, after = (np.array([times[q] for q in shared]) / 1000 for times in (old, new))
    for what, share in (("latency p50", 0.5), ("latency p95", 0.95)):
        found = quantile_change(before, after, share=share)
        values = [found.before, found.after]
        same = bool((before == after).all())
        yield _row(first, other, what, values, found.difference, len(shared), same=same)


def _row(
    first: Scores,
    other: Scores,
    what: str,
    values: list[float],
    interval: Interval,
    n: int,
    *,
    same: bool,
) -> AnswerChange:
    low, high = interval.low, interval.high
    verdict: Literal["better", "worse", "cannot tell", "identical"] = "cannot tell"
    if same:
        verdict = "identical"
    elif low is not None and low > 0:
        verdict = "worse"
    elif high is not None and high < 0:
        verdict = "better"
    before, after = values
    names = first.run.name, other.run.name
    return AnswerChange(*names, what, before, after, after - before, low, high, n, verdict)


def _in(scores: Scores, queries: set[str]) -> Mask:
    return np.array([query in queries for query in scores.evidence.query_ids], np.bool_)
