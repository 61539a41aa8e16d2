"""Compare: is a difference real, how large could it be, and on which queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from karat.diagnosis.disagreement import disagreements
from karat.diagnosis.movement import moves
from karat.diagnosis.retrieval import finds, only_found, overlaps
from karat.diagnosis.review import review_lists
from karat.diagnosis.slices import Slice, slices_of
from karat.errors import InputError, UsageError
from karat.formats.tables.lines import ahead
from karat.measures import Measure
from karat.measures.difference import DifferenceBounds, difference_bounds, next_judgments
from karat.measures.evidence import Floats, Mask
from karat.measures.run_pair import Pair
from karat.measures.scores import Scores
from karat.stats import leaderboard
from karat.stats.intervals import RESAMPLES, Interval, paired_share_interval
from karat.stats.leaderboard import orders, shared, standings
from karat.stats.multiplicity import benjamini_hochberg, holm
from karat.stats.quantiles import quantile_changes
from karat.stats.verdicts import LEVEL, Contrast, Measured, Testing, shrink_slices
from karat.stats.weighing import Weighing
from karat.tables.about import not_recorded, what_changed
from karat.tables.comparison import (
    AnswerChange,
    Comparison,
    Difference,
    NextJudgment,
    QueryDifference,
    RankChange,
    Settings,
)
from karat.tables.notes import in_order
from karat.workflows.offline import inputs
from karat.workflows.offline.costs import LATENCIES, costs_of, times_of_both, unreadable
from karat.workflows.offline.evaluation_plan import (
    Conditions,
    EvaluationPlan,
    check_types,
    names,
    settle,
)
from karat.workflows.offline.notes import of_comparison
from karat.workflows.offline.run_health import repeated_in
from karat.workflows.offline.stages import Watch, unwatched, watched

INTERVALS = ("t", "bca")
SHOWN = 5  # number of queries with the largest gains, and losses, whose rank changes are listed


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
    judgments: str | None = None,
    commit: str | None = None,
    watch: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare runs with a baseline, query by query.

    Args:
        qrels: Judgments, in any form that ``evaluate`` accepts.
        baseline: The run that candidates are compared with.
        candidates: One run, a list of runs, or ``{name: run}``.
        measures: Measure names, as in ``evaluate``.
        queries: Weights, attributes and texts of the queries, as in ``evaluate``.
        documents: Document attributes, for slices; or the chunks, for ``collapse``.
        by: Attributes to slice by, as in ``evaluate``.
        test: Significance test: randomisation | bootstrap | t | wilcoxon | sign.
        interval: 95 % confidence interval of the difference: t | bca. BCa is too narrow for few
            queries: with 20 it covers 88 to 93 %.
        margin: Smallest difference that matters, above 0; required for the verdict ``equivalent``.
        all_pairs: Compare every pair of runs, not only each candidate with the baseline. P-values
            come from the bootstrap and are corrected over all pairs of runs and measures.
        resamples: Number of resamples of the randomisation and bootstrap tests.
        seed: Random seed of these tests and of BCa intervals.
        review: Number of non-relevant documents returned, and of relevant ones missed, to list for
            all queries and for each slice.
        judge_next: Number of unjudged pairs to list whose grades say most about the sign of the
            difference, for the first candidate and measure.
        full: List rank changes for every query, not only for those that gain and lose most.
        rel: Lowest relevant grade, where a measure does not set it.
        complete: Count every query of the qrels (trec_eval -c).
        depth: Cut rankings at this rank.
        judged_only: Drop unjudged documents.
        fully_judged: Declare that documents without a judgment are not relevant.
        collapse: Column of ``documents`` that names the document of each chunk.
        scale: Lowest and highest grade, as in ``evaluate``.
        part: Part of the golden set to use, as in ``evaluate``.
        judgments: Whose judgments count, as in ``evaluate``. Intervals (t) include the uncertainty
            of grades from clicks; p-values do not, so a verdict needs an interval without 0 too.
        commit: Commit to record with a use of the held-out part, as in ``evaluate``.
        watch: Called with the stage of the work, how many of it are done, and of how many (0 if
            unknown); what it raises stops the work.

    Raises:
        UsageError: an unknown measure, attribute, test or interval, or a margin of 0 or below.
        InputError: runs and judgments that do not belong together.
    """
    check_types(seed=seed, margin=margin, resamples=resamples, review=review, judge_next=judge_next)
    _check_lists(review, judge_next, judged_only=judged_only, fully_judged=fully_judged)
    if interval not in INTERVALS:
        raise UsageError(f"unknown interval {interval!r}", nearest=INTERVALS)
    by = list(dict.fromkeys(names(by, "by") or ()))
    read = (rel, complete, depth, judged_only, fully_judged, collapse, None, scale)
    stated = Conditions(*read, judgments)
    runs = inputs.named_runs(baseline, candidates)
    plan = settle(
        qrels, runs, measures, stated, queries=queries, documents=documents, by=by, part=part
    )
    _check(plan)
    watch = watch or unwatched
    watch("scoring runs", 0, 0)
    scored = plan.with_draws(interval)
    if all_pairs:
        test, scored = _bootstrap(test), shared(scored)
    weighing = Weighing.of(plan.about, scored[0].evidence.query_ids)
    drawn = weighing.drawn(RESAMPLES, seed) if interval == "bca" else None
    settings = _settings(plan, (test, interval, margin, resamples, seed), all_pairs)
    testing = Testing(test, drawn, margin, resamples, seed, weighing)
    tested, retrieved = _tested(plan, scored, by, settings, watch)
    found = _compared(plan, scored, tested, testing, settings, watch)
    found = replace(found, **retrieved)
    watch("listing documents", 0, 0)
    found = _with_documents(found, tested, testing, plan, full, review, judge_next)
    used, together = plan.uses([(attribute, None) for attribute in by], commit)
    unrecorded = not_recorded([(run.name, run.about) for run in plan.runs])
    notes = [*unrecorded, *of_comparison(found, scored, plan, judge_next), *together]
    return replace(found, notes=[*used, *in_order([*notes, *unreadable(plan.runs)])])


def _with_documents(
    found: Comparison,
    tested: Sequence[_Tested],
    testing: Testing,
    plan: EvaluationPlan,
    full: bool,
    review: int,
    judge_next: int,
) -> Comparison:
    """The comparison with rank changes, documents to review and pairs to judge."""
    texts = plan.about.texts() if plan.about else {}
    k, rel = found.settings.k, found.settings.rel
    first, weighing = tested[0], testing.weighing
    return replace(
        found,
        moves=[
            row
            for each in tested
            for contrast in each.contrasts
            for row in _moves(contrast, each.pair, full=full)
        ],
        review=[
            row
            for each in tested
            for row in review_lists(each.scores, each.pair, k, rel, each.slices, review)
        ]
        if review
        else [],
        judge_next=_judge_next(first.contrasts[0], first.pair, judge_next, weighing, texts),
    )


@dataclass(frozen=True)
class _Tested:
    scores: Scores
    pair: Pair
    contrasts: list[Contrast]  # one for each measure
    slices: list[Slice]  # all queries first

    @classmethod
    def of(cls, plan: EvaluationPlan, first: Scores, other: Scores, by: Sequence[str]) -> _Tested:
        pair = Pair(
            first.run, other.run, plan.qrels, first.evidence, other.evidence, plan.rules.depth
        )
        slices = [
            Slice(attribute, value, chosen)
            for attribute in by
            for value, chosen in slices_of(
                plan.about, attribute, [first, other], plan.documents, plan.qrels
            )
        ]
        overall = Slice(None, None, first.overall)
        return cls(other, pair, _contrasts(first, other, pair, plan), [overall, *slices])


def _tested(
    plan: EvaluationPlan,
    scored: Sequence[Scores],
    by: Sequence[str],
    settings: Settings,
    watch: Watch,
) -> tuple[list[_Tested], dict[str, Any]]:
    """Each candidate with the baseline, and what the runs retrieve, computed in threads."""
    for run in plan.runs:
        run.rows = run.rows.rechunk()  # once, not for each pair
    others = watched(watch, "comparing rankings", scored[1:])
    with ThreadPoolExecutor(1) as pool:
        retrieved = pool.submit(_retrieved, plan, _answered(scored), settings)
        tested = list(ahead(lambda other: _Tested.of(plan, scored[0], other, by), others))
    return tested, retrieved.result()


def _retrieved(plan: EvaluationPlan, answered: Sequence[str], settings: Settings) -> dict[str, Any]:
    """The fields of a comparison that say what its runs retrieve, for queries that all answered."""
    of_page = plan.qrels, answered, settings.k, settings.rel
    return {
        "finds": finds(plan.runs, *of_page),
        "only_found": only_found(plan.runs, *of_page),
        "overlaps": overlaps(plan.runs, *of_page),
    }


def _compared(
    plan: EvaluationPlan,
    scored: Sequence[Scores],
    tested: Sequence[_Tested],
    testing: Testing,
    settings: Settings,
    watch: Watch,
) -> Comparison:
    """The comparison, without what runs retrieve, lists of documents and notes."""
    first, weighing = scored[0], testing.weighing
    contrasts = [contrast for each in tested for contrast in each.contrasts]
    drawn = {"resamples": testing.resamples, "seed": testing.seed}
    watch("testing differences", 0, 0)
    pairs = leaderboard.all_pairs(scored, weighing, **drawn) if settings.all_pairs else None
    p_values = None if pairs is None else pairs.against_first(plan.measures)
    rows = testing.decided(testing.measured(contrasts, first.overall), holm, pairs=p_values)
    texts = plan.about.texts() if plan.about else {}
    ranked = standings(scored, weighing, pairs) if tested[1:] else []
    answers = [list(_answer_changes(first, each.scores)) for each in tested]
    return Comparison(
        baseline=first.run.name,
        settings=settings,
        differences=rows,
        slices=_sliced(testing, tested, rows, watch),
        standings=ranked,
        orders=orders(ranked, plan.measures),
        disagreements=[
            row for each in tested for row in disagreements(each.contrasts, each.slices, weighing)
        ],
        queries=[
            row
            for each in tested
            for contrast in each.contrasts
            for row in _queries(contrast, texts, weighing, each.slices[1:])
        ],
        answers=[row for rows in answers for row in rows],
        costs=[
            costs
            for each, rows in zip(tested, answers, strict=True)
            if (costs := costs_of(first, each.scores.run, rows, each.slices[1:])).changes
        ],
        changes=what_changed(plan.runs[0].about, [(r.name, r.about) for r in plan.runs[1:]]),
        meant=plan.meant,
        plan=plan,
    )


def _check_lists(review: int, judge_next: int, *, judged_only: bool, fully_judged: bool) -> None:
    if min(review, judge_next) < 0:
        raise UsageError("review and judge_next must be 0 or more")
    if judged_only and judge_next:
        raise UsageError(
            "judge_next lists unjudged documents, which judged_only drops", fix="judged_only=False"
        )
    if fully_judged and judge_next:
        raise UsageError(
            "judge_next lists unjudged documents, and fully_judged declares that there are none",
            fix="leave out one of the two",
        )


def _check(plan: EvaluationPlan) -> None:
    if len(plan.runs) < 2:
        raise UsageError("no candidate to compare with the baseline", fix="name a second run")
    if not plan.qrels.query_ids:
        raise InputError(
            "no query is judged yet, so there is nothing to compare",
            file=plan.qrels.source,
            fix="pool what runs return, and judge it",
        )
    for measure in plan.measures:
        if measure.aggregate != "mean":
            raise UsageError(
                f"{measure} is not a mean over queries, so there are no "
                "differences by query to test",
                fix="compare AP, for example",
            )
        if measure.entry.direction == "none":
            raise UsageError(
                f"{measure} has no direction: neither more nor less of it is better, so it cannot "
                "be compared",
                fix="evaluate each run with it",
            )


def _bootstrap(test: str) -> str:
    """The test of all pairs; it replaces the default test, but not one chosen explicitly."""
    if test not in ("randomisation", "bootstrap"):
        raise UsageError(
            f"comparisons of all pairs use the bootstrap, not the {test} test",
            fix="leave out --test, or --all-pairs",
        )
    return "bootstrap"


def _contrasts(first: Scores, other: Scores, pair: Pair, plan: EvaluationPlan) -> list[Contrast]:
    """A candidate against the baseline under each measure."""
    bounds: dict[Measure, DifferenceBounds] = {}
    if not plan.rules.judged_only and not plan.rules.fully_judged:
        # The deepest first: the pools of the others are cut from its pool.
        for measure in sorted(plan.measures, key=lambda m: -(m.depth or math.inf)):
            bounds[measure] = difference_bounds(measure, pair)
    return [Contrast(first, other, measure, bounds.get(measure)) for measure in plan.measures]


def _sliced(
    testing: Testing, tested: Sequence[_Tested], differences: Sequence[Difference], watch: Watch
) -> list[Difference]:
    """Every candidate and measure in every slice, p-values corrected within each attribute.

    A slice that holds every query gets the same row as all queries.
    """
    families: dict[str | None, list[Measured]] = {}
    uncounted: set[tuple[str, str | None, str | None]] = set()
    complete_slices: set[tuple[str, str | None, str | None]] = set()
    parts = [(each, part) for each in tested for part in each.slices[1:]]
    for each, (attribute, value, chosen) in watched(watch, "testing slices", parts):
        overall = each.scores.overall
        measured = testing.measured(each.contrasts, chosen, attribute, value)
        families.setdefault(attribute, []).extend(measured)
        key = (each.scores.run.name, attribute, value)
        if not (chosen & overall).any():
            uncounted.add(key)
        elif (chosen == overall).all():
            complete_slices.add(key)
    overall_rows = {(row.candidate, row.measure): row for row in differences}
    return [
        replace(overall_rows[row.candidate, row.measure], **_named(row))
        if (row.candidate, row.attribute, row.slice) in complete_slices
        else row
        for family in families.values()
        for row in shrink_slices(
            differences, testing.decided(family, benjamini_hochberg, LEVEL), uncounted
        )
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


def _moves(contrast: Contrast, pair: Pair, *, full: bool) -> list[RankChange]:
    """Rank changes of the counted queries that gain and lose most; of every query if ``full``."""
    difference, overall = contrast.difference, contrast.baseline.overall
    order = [index for index in _by_size(difference, overall) if difference[index]]
    if not full:
        order = [index for index in order if overall[index]]
        signs = ([i for i in order if difference[i] * way > 0][:SHOWN] for way in (1, -1))
        order = [index for chosen in signs for index in chosen]
    return moves(contrast.measure, pair, order)


def _by_size(difference: Floats, overall: Mask) -> list[int]:
    """Queries with a difference, the largest first; zero-weight queries last."""
    used = np.flatnonzero(~np.isnan(difference))
    order: list[int] = used[np.lexsort((-np.abs(difference[used]), ~overall[used]))].tolist()
    return order


def _judge_next(
    contrast: Contrast, pair: Pair, count: int, weighing: Weighing, texts: Mapping[str, str]
) -> list[NextJudgment]:
    if not count:
        return []
    used = ~np.isnan(contrast.difference)
    chosen = next_judgments(contrast.measure, pair, count, used=used, weights=weighing.weights)
    return [
        NextJudgment(**row, text=texts.get(row["query_id"])) for row in chosen.iter_rows(named=True)
    ]


def _settings(
    plan: EvaluationPlan, how: tuple[str, str, float | None, int, int], all_pairs: bool
) -> Settings:
    """``how``: test, interval, margin, resamples and seed."""
    k, rel = _first_page(plan)
    return Settings(*how, k, rel, all_pairs, plan.rules.fully_judged, plan.sources)


def _first_page(plan: EvaluationPlan) -> tuple[int, float]:
    """Cutoff of the first measure (10 if it has none), and its lowest relevant grade."""
    first = plan.measures[0]
    limits = [limit for limit in (first.depth, plan.rules.depth) if limit is not None]
    return min(limits, default=10), float(first.settings.get("rel", plan.rules.rel))


def _answered(scored: Sequence[Scores]) -> list[str]:
    """Counted queries that every run answered."""
    failed = np.any([scores.answered == "failed" for scores in scored], axis=0)
    counting = np.flatnonzero(scored[0].topics & scored[0].overall & ~failed)
    return [scored[0].evidence.query_ids[index] for index in counting]


def _answer_changes(first: Scores, other: Scores) -> Iterator[AnswerChange]:
    """Changes in latency, zero results, failures and duplicates from the baseline."""
    yield from _times(first, other)
    counting = first.topics & first.overall
    failed = [scores.answered == "failed" for scores in (first, other)]
    without_results = [np.isin(scores.answered, ["empty", "missing"]) for scores in (first, other)]
    with_duplicates = [_in(scores, repeated_in(scores.run)) for scores in (first, other)]
    answered = counting & ~failed[0] & ~failed[1]
    for name, (before, after), counted in (
        ("zero results", without_results, answered),
        ("no answer", failed, counting),
        ("documents twice", with_duplicates, answered),
    ):
        n = int(counted.sum())
        more = int((after & ~before & counted).sum())
        fewer = int((before & ~after & counted).sum())
        if not (before | after)[counted].any():
            continue
        values = [int((mask & counted).sum()) / n for mask in (before, after)]
        interval = paired_share_interval(more, fewer, n)
        yield _answer_change(first, other, name, values, interval, n, same=not more + fewer)


def _times(first: Scores, other: Scores) -> Iterator[AnswerChange]:
    shared, before, after = times_of_both(first.run, other.run)
    if not shared:
        return
    changes = quantile_changes(before, after, [share for _, share in LATENCIES])
    for (name, _), change in zip(LATENCIES, changes, strict=True):
        values = [change.before, change.after]
        same = bool((before == after).all())
        yield _answer_change(first, other, name, values, change.difference, len(shared), same=same)


def _answer_change(
    first: Scores,
    other: Scores,
    name: str,
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
    return AnswerChange(*names, name, before, after, after - before, low, high, n, verdict)


def _in(scores: Scores, queries: set[str]) -> Mask:
    return np.array([query in queries for query in scores.evidence.query_ids], np.bool_)
