"""A starter policy, which a team then adapts."""

from __future__ import annotations

import math

from karat.release.health import Answers
from karat.stats.quantiles import LEAST

_EMPTY = 5  # per cent of the queries that may have no results
_MARGIN = 2  # percentage points more than a baseline with more of them
_JUDGED = 0.5
_OF_BASELINE = 2 / 3  # of the judged share of a baseline with less

_POLICY = """\
# The conditions for a release. Change what does not fit your search.
# karat gate --policy FILE QRELS BASELINE CANDIDATE

[health]                   # conditions on the answers, before any measure counts
max_failed = 0             # queries without an answer: a count, or a share such as "1%"
max_missing = "5%"         # queries not in the run
{empty}
max_duplicates = 0         # queries with a duplicate document
{p95}
min_queries = 25           # queries that count; with fewer, intervals are not reliable
{judged}

[[rule]]                   # the first page
measure = "nDCG@10"
max_drop = "5%"            # of the baseline's value; 0.01 would be in the unit of the measure

[[rule]]                   # the whole ranking: what is found, and how early
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
        baseline: Answers of the future baseline: conditions without data are commented out, and
            limits that it breaks itself are widened.
    """
    return _POLICY.format(empty=_empty(baseline), p95=_p95(baseline), judged=_judged(baseline))


def _line(demand: str, comment: str) -> str:
    return f"{demand:<26} # {comment}"


def _empty(baseline: Answers | None) -> str:
    most, why = _EMPTY, "queries without results"
    if baseline is not None and baseline.queries:
        share = 100 * baseline.empty / baseline.queries
        if share > _EMPTY:
            most = math.ceil(share) + _MARGIN
            why += f"; of {baseline.run} {share:.0f} % are"
    return _line(f'max_empty = "{most}%"', why)


def _p95(baseline: Answers | None) -> str:
    demand = 'max_p95_increase = "50%"'
    if baseline is None or len(baseline.times_us) >= LEAST:
        return _line(demand, f"of the latency; needs {LEAST} queries timed in both runs")

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
