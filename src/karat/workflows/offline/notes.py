"""Notes: caveats to the numbers of an evaluation or a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from karat.measures import Measure
from karat.measures.no_answer import MOST_POINTS, best_threshold
from karat.measures.scores import Rules, Scores
from karat.reports.phrases.numbers import DIGITS, counted, first_of, moves, percent
from karat.reports.phrases.sources import whose
from karat.stats.aggregation import Aggregation
from karat.stats.averages import mean
from karat.stats.imputation import DRAWS
from karat.stats.intervals import LEAST, RESAMPLES, TRUSTED_FROM
from karat.stats.weighing import Weighing
from karat.tables import Qrels, Queries, Result, Run
from karat.tables.notes import Concern, Note, prefixed
from karat.tables.results import NoAnswer, Silence
from karat.workflows.offline.evaluation_plan import EvaluationPlan
from karat.workflows.offline.run_health import of_ids

if TYPE_CHECKING:
    from karat.tables.comparison import Comparison, Difference

SEEN = 2  # digits that readers use: unjudged documents nearly always change later ones
Ends = tuple[float | None, float | None]


def of(
    qrels: Qrels,
    rows: Sequence[Aggregation],
    results: Sequence[Result],
    rules: Rules,
    *,
    interval: str,
    seed: int,
    waiting: Sequence[str] = (),
) -> list[str]:
    """Notes on an evaluation; ``waiting`` lists queries of the golden set not judged yet."""
    scored = [of_run.scores for of_run in rows]
    shares = [share for of_run in rows for share in of_run.grade_shares]
    notes: list[str] = [*of_sources(qrels, interval, shares), *of_weights(scored[0])]
    notes += of_waiting(waiting)
    for scores in scored:
        name = f"{scores.run.name}: " if len(scored) > 1 else ""
        of_one = (*of_ids(scores, qrels), *of_run(scores, rules, waiting), *of_repeats(scores.run))
        notes += [prefixed(name, note) for note in of_one]
    overall = [row for row in results if row.attribute is None]
    notes += _of_ties(scored, overall)
    notes += _of_unjudged(qrels, overall)
    notes += of_declared(rules)
    notes += _of_all(qrels, scored, rules)
    notes += _unknown(rows[0], rules)
    for reason, measures in _merged(rows).items():
        notes.append(f"no interval for {_list(list(measures))}: {reason}")
    notes += of_cuts(results)
    few = min((row.n for row in results if row.ci_low is not None), default=TRUSTED_FROM)
    if few < TRUSTED_FROM:
        notes.append(
            Note(
                f"intervals over fewer than {TRUSTED_FROM} queries are unreliable "
                f"(the fewest here: {few})",
                Concern.FEW,
            )
        )
    if interval == "bca":
        notes.append(f"BCa bootstrap intervals from 2,000 resamples, seed {seed}")
    return notes


def of_sources(qrels: Qrels, interval: str, shares: Sequence[float] = ()) -> Iterator[Note]:
    """Notes on whose judgments they are, and on how uncertain these are.

    Args:
        qrels: The judgments.
        interval: Method of the intervals.
        shares: Of the variance of each mean, the part due to uncertain grades; empty if unknown.
    """
    source = qrels.provenance
    if source is None:
        return
    how = f" ({source.how})" if source.how else ""
    yield Note(f"judgments of {whose(source.sources)}{how}", Concern.INPUT)
    if source.uncertain is None or interval == "none":
        return
    if interval != "t":
        yield Note(
            f"{interval} intervals take the grades as certain; t intervals do not",
            Concern.INPUT,
        )
        return
    part = f": {_spread(shares)} of the variance" if shares else ", p-values do not"
    yield Note(
        f"intervals include the uncertainty of the grades, by {DRAWS} draws (Rubin 1987){part}",
        Concern.FEW,
    )


def _spread(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"


def of_cuts(rows: Sequence[Result] | Sequence[Difference]) -> Iterator[str]:
    """A note on intervals that exceeded the range of their measure."""
    cut = dict.fromkeys(row.measure for row in rows if row.ci_low is not None and row.ci_reason)
    if cut:
        yield f"intervals of {_list(list(cut))} are clipped to the range of the measure"


def of_silence(rows: Sequence[NoAnswer]) -> Iterator[str]:
    if not rows:
        return
    yield (
        f"{_queries(rows[0].n + rows[0].failed)} marked no_answer: counted only in their own row"
    )
    for row in rows:
        best = best_threshold(row.curve)
        name = f" of {row.run}" if len(rows) > 1 else ""
        # Only if it silences more of these than of the others, and more than now.
        point = best[0] if best else None
        if point and point.silent_no_answer > (row.share or 0) and row.threshold is None:
            yield (
                f"withholding answers{name} whose best score is below {_short(row.curve, point)} "
                f"would leave {percent(point.silent_no_answer)} of the no_answer queries without "
                f"an answer, and {percent(point.silent_answerable or 0)} of the others (tuned on "
                "these same queries)"
            )
        if row.missing:
            yield Note(
                f"{_queries(row.missing)} marked no_answer not in the run{name}: counted as empty "
                "answers",
                Concern.QUERIES,
            )
        if row.failed:
            failed = f"no_answer queries{name}: {row.failed} failed and are not counted"
            yield Note(failed, Concern.QUERIES)


def _short(curve: Sequence[Silence], point: Silence) -> str:
    """A threshold in the fewest digits that withhold the same answers."""
    place = curve.index(point)
    least = (
        curve[place - 1].threshold if place > 0 and len(curve) < MOST_POINTS else point.threshold
    )
    for digits in range(3, 17):
        text = f"{point.threshold:.{digits}g}"
        if least < float(text) <= point.threshold:
            return text
    return repr(point.threshold)


def of_declared(rules: Rules) -> Iterator[str]:
    """A note if unjudged documents are declared not relevant."""
    if rules.fully_judged:
        yield Note(
            "declared fully judged: documents without a judgment count as not relevant",
            Concern.UNJUDGED,
        )


def of_weights(scores: Scores) -> Iterator[str]:
    """How many queries count, if some have zero weight."""
    zero_weight = int((scores.topics & ~scores.overall).sum())
    if zero_weight:
        topics = int(scores.topics.sum())
        count = "counts" if topics - zero_weight == 1 else "count"
        shown = "is shown in its" if zero_weight == 1 else "are shown in their"
        yield Note(
            f"{topics - zero_weight:,} of {_queries(topics)} {count}; {zero_weight:,} with zero "
            f"weight {shown} slices only",
            Concern.QUERIES,
        )


def of_unequal(scores: Scores, queries: Queries | None) -> Iterator[Note]:
    """A note if queries have different weights, so means are not plain averages."""
    weights = {} if queries is None or scores.rules.compat else queries.weights()
    ids = np.array(scores.evidence.query_ids, object)[scores.overall]
    used = [weights[query] for query in ids.tolist() if query in weights]
    if used and max(used) > min(used):
        yield Note(
            f"means are weighted: a query counts by its weight, from {min(used):.3g} to "
            f"{max(used):.3g}",
            Concern.QUERIES,
        )


def returned_and_tied(scores: Scores) -> tuple[int, int]:
    """Number of documents returned for counted queries, and how many of them are tied in score."""
    evidence = scores.evidence
    return int(evidence.returned[scores.overall].sum()), int(evidence.tied[scores.overall].sum())


def of_waiting(waiting: Sequence[str]) -> Iterator[Note]:
    """A note on queries of the golden set that are left out because they are not judged yet."""
    if waiting:
        yield Note(
            f"{_queries(len(waiting))} of the golden set {'is' if len(waiting) == 1 else 'are'} "
            f"not judged yet: left out ({_list(waiting)})",
            Concern.QUERIES,
        )


def of_run(scores: Scores, rules: Rules, waiting: Sequence[str] = ()) -> Iterator[str]:
    """Notes on how a run answered its queries, without those that ``of_waiting`` names."""
    run, evidence = scores.run, scores.evidence
    for state, default in (
        ("failed", "got no answer: no value"),
        ("missing", "not in the run: scored 0"),
        ("empty", "answered with nothing: scored 0"),
    ):
        matching = (scores.answered == state) & scores.overall & ~_marked(scores)
        outcome = default
        if rules.compat and not rules.complete:
            outcome = f"not in the run: left out, as in {rules.compat.name}"
        elif state != "failed":
            matching = matching & scores.topics
        if matching.any():
            yield Note(_counted(matching, evidence.query_ids, outcome), Concern.QUERIES)
    named = set(waiting)
    if unjudged := [query for query in scores.unjudged_counting if query not in named]:
        listed = _list(unjudged)
        yield f"{_queries(len(unjudged))} of the run without judgments: left out ({listed})"
    if run.contradicted:
        yield Note(
            f"ranks contradict scores in {_queries(run.contradicted)}: ordered by score, ranks "
            "ignored",
            Concern.ORDER,
        )


def of_repeats(run: Run) -> Iterator[Note]:
    """A note on duplicate documents; gates and comparisons have their own rows for them."""
    if "repeated" not in run.answers.columns:
        return
    repeated = run.answers["repeated"].drop_nulls()
    repeated = repeated.filter(repeated > 0)
    if more := int(repeated.sum()):
        yield Note(
            f"duplicate documents in {_queries(len(repeated))}: the best rank counts, {more:,} "
            f"{'duplicate is' if more == 1 else 'duplicates are'} left out",
            Concern.QUERIES,
        )


def _marked(scores: Scores) -> np.ndarray:
    return np.isin(scores.evidence.query_ids, list(scores.rules.no_answer))


def _of_ties(scored: Sequence[Scores], rows: Sequence[Result]) -> Iterator[str]:
    shares = []
    for scores in scored:
        returned, tied = returned_and_tied(scores)
        if tied:
            name = f" of {scores.run.name}" if len(scored) > 1 else ""
            shares.append(f"{percent(tied / returned)}{name}")
    if not shares:
        return
    rule = "ties are broken by document id, descending, as in trec_eval"
    if scored[0].rules.compat:
        rule += "; another order could change the numbers"
    elif all(_steady(row) for row in rows):
        rule += "; no other order changes a printed digit"
    yield f"tied in score with another document: {', '.join(shares)}; {rule}"
    spans = _first_moved(rows, lambda row: (row.tie_low, row.tie_high), DIGITS)
    if spans:
        moved = f"the order of tied documents could change printed digits: {spans}"
        yield Note(moved, Concern.ORDER)


def _of_unjudged(qrels: Qrels, rows: Sequence[Result]) -> Iterator[str]:
    spans = _first_moved(rows, lambda row: (row.unjudged_low, row.unjudged_high), SEEN)
    if spans:
        low, high = qrels.scale
        source = "declared" if qrels.declared else "the largest grade; --scale declares it"
        yield Note(
            f"unjudged documents could change this: {spans}, if those that a run returned above "
            f"the cutoff had any grade from {low:g} to {high:g} ({source}); documents it did not "
            "return count as not relevant",
            Concern.UNJUDGED,
        )


def _first_moved(rows: Sequence[Result], ends: Callable[[Result], Ends], digits: int) -> str:
    """For each run the first measure that could change, its band, and how many others could."""
    spans = []
    runs = dict.fromkeys(row.run for row in rows)
    for run in runs:
        moved = {
            row: (row.value, low, high)
            for row in rows
            for low, high in [ends(row)]
            if row.run == run
            and moves(row, low, high, digits)
            and row.value is not None
            and low is not None
            and high is not None
        }
        if not moved:
            continue
        row = next(iter(moved))  # the first measure requested matters most
        value, low, high = moved[row]
        name = f"{run} " if len(runs) > 1 else ""
        more = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
        spans.append(f"{name}{row.measure} {value:.4f} could be {low:.4f} to {high:.4f}{more}")
    return "; ".join(spans) + (
        " (the full results list them)" if any(" more" in span for span in spans) else ""
    )


def _steady(row: Result) -> bool:
    if row.value is None:
        return True
    return row.tie_low is not None and not moves(row, row.tie_low, row.tie_high, DIGITS)


def _unknown(rows: Aggregation, rules: Rules) -> Iterator[str]:
    """Which measures have no band, and why, if there are ties or unjudged documents."""
    if rules.compat:
        return
    if returned_and_tied(rows.scores)[1]:
        without = [str(measure) for measure in rows.without_band]
        if without:
            yield f"no tie band for {', '.join(without)}: its best and worst order are not known"
        half = [str(measure) for measure in rows.without_mean]
        if half and rules.depth is not None:
            yield f"no mean over tied orders for {', '.join(half)}: --depth may cut through a tie"
        elif half:
            yield f"no mean over tied orders for {', '.join(half)}: no closed form is known"
    lacking = [str(m) for m in rows.unbounded if m.entry.direction != "none"]
    if lacking and rules.judged_only:
        yield "no unjudged bounds: unjudged documents are dropped"
    elif lacking:
        yield f"no unjudged bounds for {', '.join(lacking)}: no exact method is known"


def _merged(rows: Sequence[Aggregation]) -> dict[str, dict[str, None]]:
    merged: dict[str, dict[str, None]] = {}
    for of_run in rows:
        for reason, measures in of_run.without.items():
            merged.setdefault(reason, {}).update(measures)
    return merged


def of_bare(scores: Scores) -> Iterator[str]:
    """A note on judged queries that are left out because they have no relevant document."""
    bare = _bare(scores)
    if bare.any() and not scores.rules.compat:
        outcome = (
            f"without a document of grade {scores.lowest_rel:g} or better: left out (undefined)"
        )
        yield _counted(bare, scores.evidence.query_ids, outcome)


def _bare(scores: Scores) -> np.ndarray:
    bare: np.ndarray = scores.overall & ~scores.topics & ~_marked(scores)
    return bare


def _of_all(qrels: Qrels, scored: Sequence[Scores], rules: Rules) -> Iterator[str]:
    overall = scored[0].overall
    bare = _bare(scored[0])
    yield from of_bare(scored[0])
    silent = any(
        (np.isin(scores.answered, ["missing", "empty"]) & scores.topics & overall).any()
        for scores in scored
    )
    if not rules.compat and not rules.complete and (bare.any() or silent):
        yield (
            "trec_eval differs here: it leaves out queries that the run lacks, and counts queries "
            "without a relevant document as 0 (--compat trec_eval-9)"
        )
    measures = {str(m): m for scores in scored[:1] for m in scores.values if _takes_top(m)}
    if measures:
        high = qrels.scale[1]
        yield (
            f"{', '.join(measures)}: {high:g} is taken as the highest grade ("
            + ("declared)" if qrels.declared else "the largest grade; --scale declares it)")
        )
    if qrels.subtopics is not None and qrels.subtopics.height > qrels.frame.height:
        several = qrels.subtopics.height - qrels.frame.height
        yield (
            f"{several:,} judgments are of documents that are judged for another subtopic too: "
            "measures without subtopics use the best grade"
        )
    grade = qrels.frame["grade"].to_numpy()
    negative = int((grade <= -1 if rules.compat else grade < 0).sum())
    if negative:
        yield (
            f"{'1 judgment is' if negative == 1 else f'{negative:,} judgments are'} below 0, which "
            "means pooled but not judged, as in TREC: counted as neither relevant nor judged"
        )
    if rules.compat and (grade != np.floor(grade)).any():
        yield "grades are truncated to whole numbers, as in trec_eval: 0.9 counts as 0"


def _takes_top(measure: Measure) -> bool:
    inner = measure.settings.get("of")
    if isinstance(inner, Measure):
        return _takes_top(inner)
    return measure.entry.symbol == "ERR" and measure.settings["max"] is None


def _counted(mask: np.ndarray, query_ids: list[str], outcome: str) -> str:
    chosen = [query_ids[i] for i in np.flatnonzero(mask)]
    return f"{_queries(len(chosen))} {outcome} ({_list(chosen)})"


def _queries(count: int) -> str:
    return counted(count, "query", "queries")


def _list(ids: Sequence[str]) -> str:
    return first_of(ids, 5)


_MOVED = 0.005  # changes the second digit


def of_comparison(
    comparison: Comparison, scored: Sequence[Scores], plan: EvaluationPlan, judge_next: int
) -> Iterator[str]:
    if judge_next and not comparison.judge_next:
        yield Note(
            f"no grade of an unjudged document would change {plan.measures[0]}, so there is "
            "nothing to judge next; try a deeper measure (-m R@100)",
            Concern.UNJUDGED,
        )
    yield from of_sources(plan.qrels, comparison.settings.interval)
    yield from of_weights(scored[0])
    yield from of_unequal(scored[0], plan.about)
    waiting = plan.waiting
    yield from of_waiting(waiting)
    yield from _shallow(scored)
    yield from _of_reordered(comparison.differences, scored, plan)
    for scores in scored:
        run_notes = (*of_ids(scores, plan.qrels), *of_run(scores, plan.rules, waiting))
        yield from (prefixed(f"{scores.run.name}: ", note) for note in run_notes)
    yield from of_declared(plan.rules)
    few = min((row.n for row in comparison.differences), default=0)
    if few < TRUSTED_FROM:
        yield Note(f"fewer than {TRUSTED_FROM} queries ({few}): {_too_few(few)}", Concern.FEW)
    yield from of_cuts([*comparison.differences, *comparison.slices])
    yield from _corrections(comparison)
    if any(row.unjudged_high is not None for row in comparison.differences):
        low, high = plan.qrels.scale
        yield Note(
            f"unjudged bounds cover all grades from {low:g} to {high:g} of documents that either "
            "run returned above the cutoff, the same grade in both runs; others count as not "
            "relevant",
            Concern.UNJUDGED,
        )


def _too_few(count: int) -> str:
    return "no interval" if count < LEAST else "intervals are unreliable"


def _shallow(scored: Sequence[Scores]) -> Iterator[str]:
    """Runs that are shorter than the cutoff of a measure, while others are not."""
    # With --depth, all runs end at the same rank.
    deepest = [int(s.evidence.returned[s.overall].max(initial=0)) for s in scored]
    for scores, most in zip(scored, deepest, strict=True):
        reach = [(measure.depth or max(deepest)) for measure in scores.values]
        beyond = [
            str(measure)
            for measure, depth in zip(scores.values, reach, strict=True)
            if most < min(depth, max(deepest))
        ]
        if most and beyond:
            yield Note(
                f"{scores.run.name} returns at most {counted(most, 'document', 'documents')} per "
                f"query, and {', '.join(beyond)} {'looks' if len(beyond) == 1 else 'look'} deeper",
                Concern.INPUT,
            )


def _of_reordered(
    rows: Sequence[Difference], scored: Sequence[Scores], plan: EvaluationPlan
) -> Iterator[str]:
    """Ties whose order changes the second digit, and verdicts that it could reverse."""
    weighing = Weighing.of(plan.about, scored[0].evidence.query_ids)
    bands_by_run = {
        scores.run.name: {m: scores.ties(m) for m in plan.measures} for scores in scored
    }

    def ends(scores: Scores, measure: Measure, other: Scores) -> tuple[float, float] | None:
        """Lowest and highest mean over all orders of ties, for the queries of both runs."""
        band = bands_by_run[scores.run.name][measure]
        used = ~np.isnan(scores.values[measure]) & ~np.isnan(other.values[measure])
        used &= scores.overall
        if band.low is None or band.high is None or not used.any():
            return None
        weights, _ = weighing.at(used)
        return mean(band.low[used], weights), mean(band.high[used], weights)

    for scores in scored:
        bands = {measure: ends(scores, measure, scores) for measure in plan.measures}
        moved = {m: band for m, band in bands.items() if band and band[1] - band[0] >= _MOVED}
        if moved:
            measure, (low, high) = next(iter(moved.items()))
            returned, tied = returned_and_tied(scores)
            others = counted(len(moved) - 1, "more measure", "more measures")
            more = f" (and {others})" if len(moved) > 1 else ""
            yield Note(
                f"{scores.run.name}: {percent(tied / returned)} of the documents are tied in "
                f"score; in another order {measure} could be {low:.3f} to {high:.3f}{more}",
                Concern.ORDER,
            )
    by_name = {str(measure): measure for measure in plan.measures}
    runs = {scores.run.name: scores for scores in scored}
    turned = [
        row
        for row in rows
        if row.verdict in ("better", "worse")
        and _turns(
            row,
            ends(scored[0], by_name[row.measure], runs[row.candidate]),
            ends(runs[row.candidate], by_name[row.measure], scored[0]),
        )
    ]
    for candidate in dict.fromkeys(row.candidate for row in turned):
        named = ", ".join(row.measure for row in turned if row.candidate == candidate)
        text = f"the order of tied documents alone could reverse {candidate} by {named}"
        yield Note(text, Concern.ORDER)


def _turns(
    row: Difference, before: tuple[float, float] | None, after: tuple[float, float] | None
) -> bool:
    """Whether the difference of the two runs' means could have the other sign."""
    if before is None or after is None or row.difference is None:
        return False
    least, most = after[0] - before[1], after[1] - before[0]
    return least <= 0 if row.difference > 0 else most >= 0


def _corrections(comparison: Comparison) -> Iterator[str]:
    family = max((row.family for row in comparison.differences), default=0)
    if comparison.settings.all_pairs:
        yield (
            "p-values and verdicts are for all pairs of runs, corrected over all pairs and "
            f"measures: {counted(family, 'comparison', 'comparisons')} (--all-pairs)"
        )
    elif family > 1:
        yield (
            "p-values and verdicts are for each candidate against the baseline, corrected by Holm "
            f"over {family} comparisons"
        )
    if family > 1:
        yield ("intervals are not corrected: read the verdict, not whether an interval contains 0")
    if comparison.slices:
        yield (
            "p-values of slices are corrected by Benjamini and Hochberg within each attribute; "
            "“shrunk” pulls a slice towards all queries, the more the fewer queries it has"
        )
    if comparison.settings.interval == "bca":
        seed = comparison.settings.seed
        yield f"BCa bootstrap intervals from {RESAMPLES:,} resamples, seed {seed}"
