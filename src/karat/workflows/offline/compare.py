"""Compare: is a difference real, how large could it be, and on which queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from karat.diagnosis.disagreement import disagreements
from karat.diagnosis.movement import moves
from karat.diagnosis.retrieval import finds, only_found, overlaps
from karat.diagnosis.review import review_lists
from karat.diagnosis.slices import Slice, slices_of
from karat.errors import Advice, InputError, UsageError
from karat.measures import Measure
from karat.measures.difference import DifferenceBounds, difference_bounds
from karat.measures.evidence import Floats, Mask
from karat.measures.next_judgments import next_judgments
from karat.measures.run_pair import Pair
from karat.measures.scores import Scores
from karat.stats import leaderboard
from karat.stats.intervals import RESAMPLES, Interval
from karat.stats.leaderboard import AllPairs, orders, shared, standings
from karat.stats.multiplicity import benjamini_hochberg, holm
from karat.stats.paired_shares import paired_share_interval
from karat.stats.quantiles import quantile_change
from karat.stats.shrinkage import shrink_slices
from karat.stats.verdicts import LEVEL, Contrast, Measured, Testing
from karat.stats.weighing import Weighing
from karat.tables import Documents
from karat.tables.about import not_recorded, what_changed
from karat.tables.answer_changes import AnswerChange
from karat.tables.comparison import (
    Comparison,
    Difference,
    Move,
    NextJudgment,
    QueryDifference,
    Settings,
)
from karat.tables.notes import in_order
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluation_plan import EvaluationPlan, check_types, names, settle
from karat.workflows.offline.notes import of_comparison
from karat.workflows.offline.parts import of_parts, within
from karat.workflows.offline.run_health import repeated_in
from karat.workflows.release.baseline import times_of

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
    all_pairs: bool = False,
    resamples: int = 10_000,
    seed: int = 0,
    review: int = 0,
    judge_next: int = 0,
    full: bool = False,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    judged_only: bool = False,
    fully_judged: bool = False,
    collapse: str | None = None,
    scale: str | tuple[float, float] | None = None,
    part: str | None = None,
    commit: str | None = None,
) -> Comparison:
    """Compare runs with a baseline, query by query.

    Args:
        qrels: As ``evaluate`` takes them.
        baseline: The run to be compared with.
        candidates: One run, a list of them, or ``{name: run}``.
        measures: As ``evaluate`` takes them.
        queries: As ``evaluate`` takes them.
        documents: Their attributes, for slices, or the chunks, for ``collapse``.
        by: What to slice by, as ``evaluate`` takes it.
        test: randomisation | bootstrap | t | wilcoxon | sign: where the p-values come from.
        interval: t | bca: 95 % intervals of the difference. BCa is too narrow for few queries: at
            20 it covers 88 to 93 %.
        margin: Differences smaller than this do not matter; needed for ``equivalent``.
        all_pairs: Ask which runs differ from which, and not only which candidates differ from
            the baseline: p-values are corrected over all pairs of runs and measures, and come
            from the bootstrap.
        resamples: Of the tests that draw.
        seed: Of these, and of BCa intervals.
        review: So many bad documents shown, and relevant ones missed, for all queries and in each
            slice.
        judge_next: So many pairs to judge next: those whose grades say most about the sign, for
            the first candidate and measure.
        full: Follow the documents of every query, not only of those that gain and lose most.
        rel: As in ``evaluate``; so the following.
        complete: Every query of the qrels counts.
        depth: Cut rankings after so many documents.
        judged_only: Drop unjudged documents.
        fully_judged: Declare that documents without a judgment are not relevant.
        collapse: Fold chunks into the document named in this column of ``documents``.
        scale: Lowest and highest grade that a judgment can give.
        part: Only queries of this part of the golden set, as in ``evaluate``.
        commit: As in ``evaluate``.

    Raises:
        UsageError: an unknown measure, attribute, test or interval, or a margin not above 0.
        InputError: runs and judgments that do not belong together.
    """
    check_types(seed=seed, margin=margin, resamples=resamples, review=review, judge_next=judge_next)
    if min(review, judge_next) < 0:
        raise UsageError("less than nothing cannot be listed", fix="0, or a number above")
    if judged_only and judge_next:
        raise UsageError(
            "what to judge next is unjudged, which judged_only drops", fix="judged_only=False"
        )
    if fully_judged and judge_next:
        raise UsageError(
            "there is nothing to judge next where fully_judged declares all documents judged",
            fix="leave out one of the two",
        )
    if interval not in INTERVALS:
        raise UsageError(f"there is no interval called {interval!r}", nearest=INTERVALS)
    wanted = list(dict.fromkeys(names(by, "by") or ()))
    held = inputs.documents_for(wanted, documents, qrels)
    runs, part_of = inputs.named_runs(baseline, candidates), None
    if part is not None:
        part_of = within(part, qrels, runs, queries)
        qrels, runs, queries = part_of.qrels, part_of.runs, part_of.queries
    asked = settle(
        qrels,
        runs,
        measures,
        queries=queries,
        documents=documents if held is None else held,
        rel=rel,
        complete=complete,
        depth=depth,
        judged_only=judged_only,
        fully_judged=fully_judged,
        collapse=collapse,
        scale=scale,
    )
    _check(asked)
    scored = asked.scored()
    if all_pairs:
        test, scored = _bootstrap(test), shared(scored)
    first, *others = scored
    weighing = Weighing.of(asked.about, first.evidence.query_ids)
    drawn = weighing.drawn(RESAMPLES, seed) if interval == "bca" else None
    testing = Testing(test, drawn, margin, resamples, seed, weighing)
    pairs = [
        Pair(first.run, other.run, asked.qrels, first.evidence, other.evidence, asked.rules.depth)
        for other in others
    ]
    contrasts = [
        _contrasts(first, other, pair, asked) for other, pair in zip(others, pairs, strict=True)
    ]
    every = [contrast for of_run in contrasts for contrast in of_run]
    whole = Slice(None, None, first.overall)
    parts = [_slices(asked, wanted, [first, other], held) for other in others]
    found_pairs = _pairs(scored, testing) if all_pairs else None
    against = None if found_pairs is None else found_pairs.against_first(asked.measures)
    rows = testing.decided(testing.measured(every, whole.chosen), holm, pairs=against)
    slices = _sliced(testing, contrasts, parts, rows)
    texts = asked.about.texts() if asked.about else {}
    settings = Settings(
        test,
        interval,
        margin,
        resamples,
        seed,
        *_first_page(asked),
        all_pairs=all_pairs,
        fully_judged=asked.rules.fully_judged,
    )
    top = asked.qrels, _answered(scored), settings.k, settings.rel
    ranked = standings(scored, weighing, found_pairs) if others[1:] else []
    found = Comparison(
        baseline=first.run.name,
        settings=settings,
        differences=rows,
        slices=slices,
        standings=ranked,
        orders=orders(ranked, asked.measures),
        disagreements=[
            row
            for of_run, sliced in zip(contrasts, parts, strict=True)
            for row in disagreements(of_run, [whole, *sliced], weighing)
        ],
        queries=[
            row
            for of_run, sliced in zip(contrasts, parts, strict=True)
            for contrast in of_run
            for row in _queries(contrast, texts, weighing, sliced)
        ],
        moves=[
            row
            for of_run, pair in zip(contrasts, pairs, strict=True)
            for contrast in of_run
            for row in _moves(contrast, pair, full=full)
        ],
        finds=finds(asked.runs, *top),
        only_found=only_found(asked.runs, *top),
        overlaps=overlaps(asked.runs, *top),
        review=[
            row
            for other, pair, sliced in zip(others, pairs, parts, strict=True)
            for row in review_lists(other, pair, settings.k, settings.rel, [whole, *sliced], review)
        ]
        if review
        else [],
        answers=[row for other in others for row in _answer_changes(first, other)],
        changes=what_changed(asked.runs[0].about, [(r.name, r.about) for r in asked.runs[1:]]),
        judge_next=_judge_next(every[0], pairs[0], judge_next, weighing, texts),
        meant=asked.meant,
    )
    shown = [(attribute, None) for attribute in wanted]
    used, together = of_parts(asked.about, asked.qrels, runs, shown, commit)
    said = in_order(
        [
            *not_recorded([(run.name, run.about) for run in asked.runs]),
            *of_comparison(found, scored, asked, judge_next),
            *together,
        ]
    )
    used = used if part_of is None else part_of.used(commit=commit)
    return replace(found, notes=[*used, *said])


def _check(asked: EvaluationPlan) -> None:
    if len(asked.runs) < 2:
        raise UsageError("nothing to compare with the baseline", fix="name a second run")
    if not asked.qrels.query_ids:
        raise InputError(
            "no query is judged yet, so there is nothing to compare",
            file=asked.qrels.source,
            fix=Advice("karat golden pool RUN…, then karat judge", page="judge what runs return"),
        )
    for measure in asked.measures:
        if measure.aggregate != "mean":
            raise UsageError(
                f"{measure} is a {measure.aggregate} and no mean over queries, so there are no "
                "differences to test",
                fix="compare AP, for example",
            )
        if measure.entry.direction == "none":
            raise UsageError(
                f"more of {measure} is neither better nor worse, so there is nothing to compare",
                fix=Advice(
                    f"karat evaluate -m {measure} shows it for each run",
                    page="evaluate each run with it",
                ),
            )


def _bootstrap(test: str) -> str:
    """The test of all pairs; which is the default's place to take, but no other's."""
    if test not in ("randomisation", "bootstrap"):
        raise UsageError(
            f"all pairs are tested by the bootstrap, not by the {test} test",
            fix="leave out --test, or --all-pairs",
        )
    return "bootstrap"


def _pairs(scored: Sequence[Scores], testing: Testing) -> AllPairs:
    drawn = {"resamples": testing.resamples, "seed": testing.seed}
    return leaderboard.all_pairs(scored, testing.weighing, **drawn)


def _contrasts(first: Scores, other: Scores, pair: Pair, asked: EvaluationPlan) -> list[Contrast]:
    """A candidate against the baseline under each measure."""
    bounds: dict[Measure, DifferenceBounds] = {}
    if not asked.rules.judged_only and not asked.rules.fully_judged:
        # The deepest first: from its pool the others' are cut.
        for measure in sorted(asked.measures, key=lambda m: -(m.depth or math.inf)):
            bounds[measure] = difference_bounds(measure, pair)
    return [Contrast(first, other, measure, bounds.get(measure)) for measure in asked.measures]


def _slices(
    asked: EvaluationPlan, attributes: Sequence[str], both: Sequence[Scores], held: Documents | None
) -> list[Slice]:
    return [
        Slice(attribute, value, chosen)
        for attribute in attributes
        for value, chosen in slices_of(asked.about, attribute, both, held, asked.qrels)
    ]


def _sliced(
    testing: Testing,
    contrasts: Sequence[Sequence[Contrast]],
    parts: Sequence[Sequence[Slice]],
    wholes: Sequence[Difference],
) -> list[Difference]:
    """Every candidate and measure in every slice, p-values corrected within each attribute.

    A slice of all queries asks what the whole does, and gets the same answer.
    """
    families: dict[str | None, list[Measured]] = {}
    apart: set[tuple[str, str | None, str | None]] = set()
    everything: set[tuple[str, str | None, str | None]] = set()
    for of_run, sliced in zip(contrasts, parts, strict=True):
        for attribute, value, chosen in sliced:
            found = testing.measured(of_run, chosen, attribute, value)
            families.setdefault(attribute, []).extend(found)
            overall = of_run[0].candidate.overall
            place = (of_run[0].candidate.run.name, attribute, value)
            if not (chosen & overall).any():
                apart.add(place)
            elif (chosen == overall).all():
                everything.add(place)
    whole = {(row.candidate, row.measure): row for row in wholes}
    return [
        replace(whole[row.candidate, row.measure], **_named(row))
        if (row.candidate, row.attribute, row.slice) in everything
        else row
        for family in families.values()
        for row in shrink_slices(wholes, testing.decided(family, benjamini_hochberg, LEVEL), apart)
    ]


def _named(row: Difference) -> dict[str, Any]:
    return {"attribute": row.attribute, "slice": row.slice, "shrunk": row.shrunk}


def _queries(
    contrast: Contrast, texts: Mapping[str, str], weighing: Weighing, sliced: Sequence[Slice]
) -> list[QueryDifference]:
    difference = contrast.difference
    ours, theirs = contrast.both
    overall = contrast.baseline.overall
    order = _by_size(difference, overall)
    weight = np.ones(weighing.n) if weighing.weights is None else weighing.weights
    total = weight[[index for index in order if overall[index]]].sum()
    share = difference * weight / total if total else np.zeros(weighing.n)
    ids = contrast.baseline.evidence.query_ids
    within: dict[int, dict[str, list[str]]] = {}
    for attribute, value, chosen in sliced:
        for index in np.flatnonzero(chosen).tolist():
            within.setdefault(index, {}).setdefault(str(attribute), []).append(str(value))
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
            slices=within.get(index, {}),
        )
        for index in order
    ]


def _moves(contrast: Contrast, pair: Pair, *, full: bool) -> list[Move]:
    """Documents that moved, of the queries that gain most and lose most, of those that count."""
    difference, overall = contrast.difference, contrast.baseline.overall
    order = [index for index in _by_size(difference, overall) if difference[index]]
    if not full:
        order = [index for index in order if overall[index]]
        signs = ([i for i in order if difference[i] * way > 0][:SHOWN] for way in (1, -1))
        order = [index for chosen in signs for index in chosen]
    return moves(contrast.measure, pair, order)


def _by_size(difference: Floats, overall: Mask) -> list[int]:
    """Queries with a difference, the largest first; those of weight 0 after all others."""
    used = np.flatnonzero(~np.isnan(difference))
    order: list[int] = used[np.lexsort((-np.abs(difference[used]), ~overall[used]))].tolist()
    return order


def _judge_next(
    contrast: Contrast, pair: Pair, count: int, weighing: Weighing, texts: Mapping[str, str]
) -> list[NextJudgment]:
    if not count:
        return []
    used = ~np.isnan(contrast.difference)
    found = next_judgments(contrast.measure, pair, count, used=used, weights=weighing.weights)
    return [
        NextJudgment(**row, text=texts.get(row["query_id"])) for row in found.iter_rows(named=True)
    ]


def _first_page(asked: EvaluationPlan) -> tuple[int, float]:
    """How deep the first measure looks, 10 if to the end; and what is relevant to it."""
    first = asked.measures[0]
    limits = [limit for limit in (first.depth, asked.rules.depth) if limit is not None]
    return min(limits, default=10), float(first.settings.get("rel", asked.rules.rel))


def _answered(scored: Sequence[Scores]) -> list[str]:
    """Queries that count and that no run failed to answer."""
    failed = np.any([scores.answered == "failed" for scores in scored], axis=0)
    counting = np.flatnonzero(scored[0].topics & scored[0].overall & ~failed)
    return [scored[0].evidence.query_ids[index] for index in counting]


def _answer_changes(first: Scores, other: Scores) -> Iterator[AnswerChange]:
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
        yield _answer_change(first, other, what, values, interval, n, same=not more + fewer)


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
        yield _answer_change(first, other, what, values, found.difference, len(shared), same=same)


def _answer_change(
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
