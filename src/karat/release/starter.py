"""A policy to start with: what no search should do, and rules that a team then makes its own."""

from __future__ import annotations

import math

from karat.release.health import Answers
from karat.stats.quantiles import LEAST

_EMPTY = 5  # per cent of the queries that may be answered with nothing
_MARGIN = 2  # per cent more than a baseline that has more of them
_JUDGED = 0.5
_OF_BASELINE = 2 / 3  # of the judged share of a baseline that has less

_POLICY = """\
# What a candidate must hold to ship. Change what does not fit your search.
# karat gate --policy FILE QRELS BASELINE CANDIDATE

[health]                   # demands on the answers, before any measure counts
max_failed = 0             # queries that may get no answer: a count, or a share such as "1%"
max_missing = "5%"         # queries that the run may lack
{empty}
max_duplicates = 0         # queries whose answer may hold a document twice
{p95}
min_queries = 25           # queries that count; with fewer an interval is not to be trusted
{judged}

[[rule]]                   # the first page
measure = "nDCG@10"
max_drop = "5%"            # of the baseline's value; 0.01 would be in the unit of the measure

[[rule]]                   # the whole ranking: what is found at all, and how early
measure = "AP"
max_drop = "5%"

# [[rule]]                 # a mean may rise while one kind of query collapses
# measure = "nDCG@10"
# each = "query_length"    # or any attribute of your queries
# max_drop = "10%"
"""


def starter(baseline: Answers | None = None) -> str:
    """A policy as TOML.

    Args:
        baseline: How the run that will be the baseline answered: what its file cannot show is
            written as a comment that says so, and limits that it breaks itself are widened.
    """
    return _POLICY.format(empty=_empty(baseline), p95=_p95(baseline), judged=_judged(baseline))


def _line(demand: str, comment: str) -> str:
    return f"{demand:<26} # {comment}"


def _empty(baseline: Answers | None) -> str:
    most, why = _EMPTY, "queries that may be answered with nothing"
    if baseline is not None and baseline.queries:
        share = 100 * baseline.empty / baseline.queries
        if share > _EMPTY:
            most = math.ceil(share) + _MARGIN
            why += f"; of {baseline.run} {share:.0f} % are"
    return _line(f'max_empty = "{most}%"', why)


def _p95(baseline: Answers | None) -> str:
    demand = 'max_p95_increase = "50%"'
    if baseline is None or len(baseline.times_us) >= LEAST:
        return _line(demand, f"of the time to an answer, over {LEAST} queries timed in both runs")
    timed = len(baseline.times_us)
    why = f"only {timed:,} answers have a time" if timed else "its answers have no times"
    return _line(f"# {demand}", f"not for {baseline.run}: {why}; it needs {LEAST}")


def _judged(baseline: Answers | None) -> str:
    least, why = _JUDGED, "mean share of the first 10 documents that is judged"
    share = None if baseline is None else baseline.judged.get(10)
    if baseline is not None and share is not None and _OF_BASELINE * share < _JUDGED:
        least = math.floor(100 * _OF_BASELINE * share) / 100
        why += f"; of {baseline.run} {share:.2f}"
    return _line(f"min_judged = {least:g}", why)
