"""Conclusions of the worked example: is hybrid better than bm25, where, and how certain is that?

Every sentence is generated from the numbers of this run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karat.reports.phrases.numbers import counted, signed
from karat.stats.verdicts import LEVEL
from karat.tables import Results
from karat.tables.comparison import Comparison, Difference

MEASURES = ("nDCG@10", "R@100")
"""Measures of the comparison: the top of the page, and what there is to rerank."""


def conclusions(results: Results, found: Comparison) -> Iterator[str]:
    *others, newest = dict.fromkeys(row.candidate for row in found.differences)
    yield " ".join(_verdicts(found, newest, further=True))
    yield from _where(found, newest)
    for candidate in others:
        yield " ".join(_verdicts(found, candidate, further=False))
    yield from _unjudged(found)
    yield from _unanswered(results)


def _verdicts(found: Comparison, candidate: str, *, further: bool) -> Iterator[str]:
    for row in found.differences:
        if row.candidate != candidate or row.difference is None:
            continue
        span = signed(row.difference)
        if row.ci_low is not None:
            span += f" ({signed(row.ci_low)} to {signed(row.ci_high)})"
        if row.verdict == "identical":
            yield f"By {row.measure} {candidate} and {row.baseline} are identical."
        elif row.verdict != "cannot tell":
            yield f"By {row.measure} {candidate} is {row.verdict} than {row.baseline}: {span}."
        else:
            yield (
                f"By {row.measure} these {row.n} queries cannot tell {candidate} from "
                f"{row.baseline}: {span}."
            )
            if further:
                yield from _power(row)


def _power(row: Difference) -> Iterator[str]:
    """Which differences these queries can detect."""
    if row.smallest_detected is None or row.difference is None:
        return
    more = ""
    if row.queries_needed is not None and row.queries_needed > row.n:
        more = f"; {abs(row.difference):.3f} would take {row.queries_needed:,} queries"
    yield f"They detect a change of {row.smallest_detected:.3f} or more{more}."


def _where(found: Comparison, candidate: str) -> Iterator[str]:
    for measure in MEASURES:
        rows = [r for r in found.slices if (r.candidate, r.measure) == (candidate, measure)]
        significant = [row for row in rows if row.verdict in ("better", "worse")]
        open_ones = [str(row.slice) for row in rows if row.verdict == "cannot tell"]
        if significant:
            rest = f"; too few queries to tell at {_and(open_ones)}" if open_ones else ""
            verdicts = _and([_at(row) for row in significant])
            yield f"Where, by {measure}: {candidate} is {verdicts}{rest}."
    disagreements = [r for r in found.disagreements if r.candidate == candidate and r.slice]
    if disagreements:
        row = disagreements[0]
        chance = "" if row.p_corrected <= LEVEL else ", which may be chance"
        yield (
            f"Look first at {row.slice}: {row.better} {signed(row.better_difference)}, but "
            f"{row.worse} {signed(row.worse_difference)}{chance}."
        )


def _at(row: Difference) -> str:
    return f"{row.verdict} at {row.slice} ({signed(row.difference)})"


def _unjudged(found: Comparison) -> Iterator[str]:
    turning = [row for row in found.differences if row.sign_could_flip]
    known = {row.measure for row in found.differences if row.sign_could_flip is not None}
    steady = [m for m in MEASURES if m in known - {row.measure for row in turning}]
    if steady:
        yield f"By {_and(steady)}, no grades of unjudged documents reverse a sign."
    for row in turning[-1:]:
        yield (
            f"By {row.measure} it could: {row.candidate}'s {signed(row.difference)} could be "
            f"anything from {signed(row.unjudged_low)} to {signed(row.unjudged_high)}."
        )


def _unanswered(results: Results) -> Iterator[str]:
    for row in results.results:
        if row.measure == MEASURES[0] and row.missing + row.empty:
            queries = counted(row.missing + row.empty, "query")
            yield f"{row.run} found nothing for {queries}, which score 0."
    if results.no_answer:
        shares = ", ".join(f"{row.run} {row.silent} of {row.n}" for row in results.no_answer)
        yield (
            f"{results.no_answer[0].n} more queries have no right answer, and a good system would "
            f"return nothing for them. Answered with nothing: {shares}."
        )


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
