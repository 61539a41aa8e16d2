"""Notes of a comparison: what must stand beside verdicts, so that none is believed too far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from karat.measures import Measure
from karat.measures.scores import Scores
from karat.reports.phrases.numbers import counted, percent
from karat.stats.averages import mean
from karat.stats.intervals import LEAST, RESAMPLES, TRUSTED_FROM
from karat.stats.weighing import Weighing
from karat.tables.comparison import Comparison, Difference
from karat.tables.notes import Concern, Note, prefixed
from karat.workflows.offline.evaluation_plan import EvaluationPlan
from karat.workflows.offline.foreign_ids import of_ids
from karat.workflows.offline.notes import (
    of_cuts,
    of_declared,
    of_run,
    of_unequal,
    of_waiting,
    of_weights,
    returned_and_tied,
)

_MOVED = 0.005  # what changes the second digit


def of_comparison(
    found: Comparison, scored: Sequence[Scores], asked: EvaluationPlan, judge_next: int
) -> Iterator[str]:
    """The notes of one comparison."""
    if judge_next and not found.judge_next:
        yield Note(
            f"no grade of an unjudged document would move {asked.measures[0]}, so there is nothing "
            "to judge next; a deeper measure may have some (-m R@100)",
            Concern.UNJUDGED,
        )
    yield from of_weights(scored[0])
    yield from of_unequal(scored[0], asked.about)
    waiting = asked.waiting
    yield from of_waiting(waiting)
    yield from _shallow(scored)
    yield from _ties(found.differences, scored, asked)
    for scores in scored:
        said = (*of_ids(scores, asked.qrels), *of_run(scores, asked.rules, waiting))
        yield from (prefixed(f"{scores.run.name}: ", note) for note in said)
    yield from of_declared(asked.rules)
    few = min((row.n for row in found.differences), default=0)
    if few < TRUSTED_FROM:
        yield Note(f"fewer than {TRUSTED_FROM} queries ({few}): {_too_few(few)}", Concern.FEW)
    yield from of_cuts([*found.differences, *found.slices])
    yield from _corrections(found)
    if any(row.unjudged_high is not None for row in found.differences):
        low, high = asked.qrels.scale
        yield Note(
            f"what the unjudged could do is over all grades from {low:g} to {high:g} of documents "
            "in either run down to the cutoff, the same in both runs; others count as not relevant",
            Concern.UNJUDGED,
        )


def _too_few(count: int) -> str:
    return "no interval" if count < LEAST else "intervals are not to be trusted"


def _shallow(scored: Sequence[Scores]) -> Iterator[str]:
    """Runs that end before a measure does, where others go on."""
    # Cut by --depth, all runs end together.
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
                f"{scores.run.name} returns at most {counted(most, 'document', 'documents')} to a "
                f"query, and {', '.join(beyond)} {'looks' if len(beyond) == 1 else 'look'} deeper",
                Concern.INPUT,
            )


def _ties(
    rows: Sequence[Difference], scored: Sequence[Scores], asked: EvaluationPlan
) -> Iterator[str]:
    """Ties whose order changes a second digit, and the verdicts that it could turn."""
    weighing = Weighing.of(asked.about, scored[0].evidence.query_ids)
    held = {scores.run.name: {m: scores.ties(m) for m in asked.measures} for scores in scored}

    def ends(scores: Scores, measure: Measure, other: Scores) -> tuple[float, float] | None:
        """Lowest and highest mean over all orders of tied documents; of queries both runs have."""
        band = held[scores.run.name][measure]
        used = ~np.isnan(scores.values[measure]) & ~np.isnan(other.values[measure])
        used &= scores.overall
        if band.low is None or band.high is None or not used.any():
            return None
        weights, _ = weighing.at(used)
        return mean(band.low[used], weights), mean(band.high[used], weights)

    for scores in scored:
        bands = {measure: ends(scores, measure, scores) for measure in asked.measures}
        moved = {m: band for m, band in bands.items() if band and band[1] - band[0] >= _MOVED}
        if moved:
            measure, (low, high) = next(iter(moved.items()))
            returned, tied = returned_and_tied(scores)
            others = counted(len(moved) - 1, "more measure", "more measures")
            more = f" (and {others})" if len(moved) > 1 else ""
            yield Note(
                f"{scores.run.name}: {percent(tied / returned)} of the documents are tied in "
                f"score; by another order of them {measure} could be {low:.3f} to {high:.3f}{more}",
                Concern.ORDER,
            )
    by_name = {str(measure): measure for measure in asked.measures}
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
        turned_by = f"the order of tied documents alone could turn {candidate} by {named}"
        yield Note(turned_by, Concern.ORDER)


def _turns(
    row: Difference, before: tuple[float, float] | None, after: tuple[float, float] | None
) -> bool:
    """Whether the ends of the two runs' means let the difference have the other sign."""
    if before is None or after is None or row.difference is None:
        return False
    least, most = after[0] - before[1], after[1] - before[0]
    return least <= 0 if row.difference > 0 else most >= 0


def _corrections(found: Comparison) -> Iterator[str]:
    family = max((row.family for row in found.differences), default=0)
    if found.settings.all_pairs:
        yield (
            "p-values and verdicts answer which runs differ from which: corrected over all pairs "
            f"of runs and measures, {counted(family, 'comparison', 'comparisons')} (--all-pairs)"
        )
    elif family > 1:
        yield (
            "p-values and verdicts answer which candidates differ from the baseline: corrected by "
            f"Holm over {family} comparisons"
        )
    if family > 1:
        yield (
            "intervals are of one difference alone, without that correction: the verdict counts, "
            "and not whether the interval holds 0"
        )
    if found.slices:
        yield (
            "p-values of slices are corrected by Benjamini and Hochberg within each attribute; "
            "“shrunk” draws a slice towards all queries, the more so the fewer queries it has"
        )
    if found.settings.interval == "bca":
        seed = found.settings.seed
        yield f"BCa bootstrap intervals from {RESAMPLES:,} resamples, seed {seed}"
