"""Compare: is a difference real, how large could it be, and on which queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from karat.diagnosis.disagreement import Slice, disagreements
from karat.diagnosis.movement import moves
from karat.diagnosis.retrieval import finds, only_found, overlaps
from karat.diagnosis.review import review_lists
from karat.diagnosis.slices import slices_of
from karat.errors import UsageError, nearest
from karat.measures.difference import difference_bounds
from karat.measures.evidence import Floats, Mask
from karat.measures.next_judgments import next_judgments
from karat.measures.pair import Pair
from karat.measures.scores import Scores
from karat.stats.intervals import resample
from karat.stats.leaderboard import orders, standings
from karat.stats.multiplicity import benjamini_hochberg, holm
from karat.stats.verdicts import TESTS, Contrast, Manner, drawn_to_wholes
from karat.stats.weighing import Weighing
from karat.tables.comparison import Comparison, Difference, Move, NextJudgment, QueryDifference
from karat.workflows import given, notes
from karat.workflows.settle import Settled, check_types, names, settle

INTERVALS = ("t", "bca")
SHOWN = 5
"""Queries of each sign whose documents are followed."""


def compare(
    qrels: Any,
    baseline: Any,
    candidates: Any,
    measures: str | Iterable[str] | None = None,
    *,
    queries: Any = None,
    documents: Any = None,
    by: str | Sequence[str] = (),
    test: str = "randomisation",
    interval: str = "t",
    margin: float | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    review: int = 0,
    judge_next: int = 0,
    full: bool = False,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    judged_only: bool = False,
    collapse: str | None = None,
    scale: str | tuple[float, float] | None = None,
) -> Comparison:
    """Compare runs with a baseline, query by query.

    Args:
        qrels: As ``evaluate`` takes them.
        baseline: The run to be compared with.
        candidates: One run or a list of them.
        measures: As ``evaluate`` takes them.
        queries: As ``evaluate`` takes them.
        documents: Their attributes, for slices, or the chunks, for ``collapse``.
        by: What to slice by, as ``evaluate`` takes it.
        test: randomisation | bootstrap | t | wilcoxon | sign: where the p-values come from.
        interval: t | bca: 95 % intervals of the difference.
        margin: Differences smaller than this do not matter; needed for ``equivalent``.
        resamples: Of the tests that draw, and of BCa intervals.
        seed: Of these.
        review: So many bad documents shown, and relevant ones missed, for all queries and in each
            slice.
        judge_next: So many pairs to judge next: those whose grades say most about the sign, for
            the first candidate and measure.
        full: Follow the documents of every query, not only of those that gain and lose most.
        rel: As in ``evaluate``; so the following.
        complete: Every query of the qrels counts.
        depth: Cut rankings after so many documents.
        judged_only: Drop unjudged documents.
        collapse: Fold chunks into the document named in this column of ``documents``.
        scale: Lowest and highest grade that a judgment can give.

    Raises:
        UsageError: an unknown measure, attribute, test or interval, or a margin not above 0.
        InputError: runs and judgments that do not belong together.
    """
    _check(test, interval, margin, resamples, seed, review, judge_next)
    several = candidates if isinstance(candidates, list | tuple) else [candidates]
    wanted = names(by, "by") or ()
    about = given.documents_for(wanted, documents, qrels)
    asked = settle(
        qrels,
        [baseline, *several],
        measures,
        queries=queries,
        documents=documents if about is None else about,
        rel=rel,
        complete=complete,
        depth=depth,
        judged_only=judged_only,
        collapse=collapse,
        scale=scale,
    )
    _check_settled(asked)
    scored = asked.scored()
    first, *others = scored
    weighing = Weighing.of(asked.about, first.evidence.query_ids)
    drawn = None
    if interval == "bca":
        drawn = resample(weighing.n, resamples, np.random.default_rng(seed), weighing.strata)
    manner = Manner(test, drawn, margin, resamples, seed, weighing)
    pairs = [
        Pair(first.run, other.run, asked.qrels, first.evidence, other.evidence, asked.rules.depth)
        for other in others
    ]
    contrasts = [
        [
            Contrast(first, other, m, None if judged_only else difference_bounds(m, pair))
            for m in asked.measures
        ]
        for other, pair in zip(others, pairs, strict=True)
    ]
    everything: Slice = (None, None, np.ones(weighing.n, np.bool_))
    sliced = [
        [
            (attribute, value, chosen)
            for attribute in wanted
            for value, chosen in slices_of(
                asked.about, attribute, [first, other], about, asked.qrels
            )
        ]
        for other in others
    ]
    every = [contrast for of_run in contrasts for contrast in of_run]
    rows = manner.decided(every, manner.rows(every, everything[2]), holm)
    slices = _sliced(manner, contrasts, sliced, rows, wanted)
    texts = asked.about.texts() if asked.about else {}
    listed = [row for contrast in every for row in _queries(contrast, texts, weighing)]
    k, least = _shown_depth(asked), float(asked.measures[0].settings.get("rel", asked.rules.rel))
    shared = [first.evidence.query_ids[i] for i in np.flatnonzero(_counted(scored))]
    ranked = standings(scored, weighing, resamples=resamples, seed=seed) if others[1:] else []
    return Comparison(
        baseline=first.run.name,
        test=test,
        differences=rows,
        slices=slices,
        standings=ranked,
        orders=orders(ranked),
        disagreements=[
            row
            for of_run, parts in zip(contrasts, sliced, strict=True)
            for row in disagreements(of_run, [everything, *parts], weighing)
        ],
        queries=listed,
        moves=[
            row
            for of_run, pair in zip(contrasts, pairs, strict=True)
            for contrast in of_run
            for row in _moves(contrast, pair, full=full)
        ],
        finds=finds(asked.runs, asked.qrels, shared, k, least),
        only_found=only_found(asked.runs, asked.qrels, shared, k, least),
        overlaps=overlaps(asked.runs, asked.qrels, shared, k, least),
        review=[
            row
            for other, pair, parts in zip(others, pairs, sliced, strict=True)
            for row in review_lists(other, pair, k, least, [everything, *parts], review)
        ]
        if review
        else [],
        judge_next=_judge_next(every[0], pairs[0], judge_next, weighing) if judge_next else [],
        notes=list(notes.of_comparison(rows, slices, scored, asked)),
    )


def _check(
    test: str,
    interval: str,
    margin: float | None,
    resamples: int,
    seed: int,
    review: int,
    judge_next: int,
) -> None:
    check_types(seed=seed, margin=margin, resamples=resamples, review=review, judge_next=judge_next)
    if test not in TESTS:
        raise UsageError(f"there is no test called {test!r}", nearest=nearest(test, TESTS) or TESTS)
    if interval not in INTERVALS:
        raise UsageError(f"there is no interval called {interval!r}", nearest=INTERVALS)
    if margin is not None and not 0 < margin < math.inf:
        raise UsageError(f"a margin of {margin:g} is not above 0", fix="--margin 0.01, for example")
    if seed < 0 or resamples < 100:
        raise UsageError(
            f"seed {seed} and {resamples:,} resamples cannot be",
            fix="a seed from 0, and 100 resamples at least",
        )


def _check_settled(asked: Settled) -> None:
    if len(asked.runs) < 2:
        raise UsageError("nothing to compare with the baseline", fix="name a second run")
    for measure in asked.measures:
        if measure.aggregate != "mean":
            raise UsageError(
                f"{measure} is a {measure.aggregate} and no mean over queries, so there are no "
                "differences to test",
                fix="compare AP, for example",
            )


def _sliced(
    manner: Manner,
    contrasts: Sequence[Sequence[Contrast]],
    sliced: Sequence[Sequence[Slice]],
    wholes: Sequence[Difference],
    attributes: Sequence[str],
) -> list[Difference]:
    """Every candidate and measure in every slice, p-values corrected within each attribute."""
    found: list[Difference] = []
    for attribute in dict.fromkeys(attributes):
        tested: list[tuple[Contrast, Difference]] = []
        for of_run, parts in zip(contrasts, sliced, strict=True):
            for name, value, chosen in parts:
                if name == attribute:
                    rows = manner.rows(of_run, chosen)
                    named = [replace(row, attribute=name, slice=value) for row in rows]
                    tested += zip(of_run, named, strict=True)
        if tested:
            decided = manner.decided(
                [contrast for contrast, _ in tested], [row for _, row in tested], benjamini_hochberg
            )
            found += drawn_to_wholes(wholes, decided)
    return found


def _queries(
    contrast: Contrast, texts: Mapping[str, str], weighing: Weighing
) -> list[QueryDifference]:
    difference = contrast.difference
    ours, theirs = contrast.both
    order = _by_size(difference)
    weight = np.ones(weighing.n) if weighing.weights is None else weighing.weights
    share = difference * weight / weight[order].sum()
    ids = contrast.baseline.evidence.query_ids
    return [
        QueryDifference(
            candidate=contrast.candidate.run.name,
            measure=str(contrast.measure),
            query_id=ids[index],
            baseline_value=float(ours[index]),
            candidate_value=float(theirs[index]),
            difference=float(difference[index]),
            share=float(share[index]),
            text=texts.get(ids[index]),
        )
        for index in order
    ]


def _moves(contrast: Contrast, pair: Pair, *, full: bool) -> list[Move]:
    """Documents that moved, of the queries that gain most and lose most."""
    difference = contrast.difference
    order = [index for index in _by_size(difference) if difference[index]]
    if not full:
        signs = ([i for i in order if difference[i] * way > 0][:SHOWN] for way in (1, -1))
        order = [index for chosen in signs for index in chosen]
    return moves(contrast.measure, pair, order)


def _by_size(difference: Floats) -> list[int]:
    """Queries with a difference, the largest first."""
    used = np.flatnonzero(~np.isnan(difference))
    order: list[int] = used[np.argsort(-np.abs(difference[used]), kind="stable")].tolist()
    return order


def _judge_next(
    contrast: Contrast, pair: Pair, count: int, weighing: Weighing
) -> list[NextJudgment]:
    used = ~np.isnan(contrast.difference)
    found = next_judgments(contrast.measure, pair, count, used=used, weights=weighing.weights)
    return [NextJudgment(**row) for row in found.iter_rows(named=True)]


def _shown_depth(asked: Settled) -> int:
    """How deep the first measure looks; 10 if to the end."""
    limits = [limit for limit in (asked.measures[0].depth, asked.rules.depth) if limit is not None]
    return min(limits, default=10)


def _counted(scored: Sequence[Scores]) -> Mask:
    """Queries that count and that every run was able to answer; shape (n,)."""
    failed: Mask = np.any([scores.answered == "failed" for scores in scored], axis=0)
    return scored[0].topics & ~failed
