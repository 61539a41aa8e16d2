"""Zero results."""

from __future__ import annotations

from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import column, known

SERVED = "total_hits|returned|hits"  # the columns that show how much was served
_SOURCE = "karat; errors, fallbacks and filters separately"
_ERRORS = "Errors and timeouts do not count: ErrorRate and TimeoutRate are for those."

ZERO = Metric(
    name="ZeroResults",
    version=1,
    title="zero-result rate as served",
    definition="searches served without results / completed searches",
    says="how often users get an empty page",
    source=_SOURCE,
    traps=(
        _ERRORS,
        (
            "It is what users saw: a fallback that fills the page hides a query without matches; "
            "ZeroResults(raw) counts it."
        ),
        "Searches that only a filter emptied are in ZeroResults(filtered), and not here.",
        "Requests while typing are one search: half a word often has no results.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("zero"), known("zero")),
    needs=(SERVED,),
    family="zero",
    guardrail=True,
)

ZERO_RAW = Metric(
    name="ZeroResults(raw)",
    version=1,
    title="zero-result rate before any fallback",
    definition="searches that matched nothing before any fallback / "
    "completed searches whose matches before any fallback were logged",
    says="how often a query has no matches, whatever is shown instead",
    source=_SOURCE,
    traps=(_ERRORS, "It needs what matched before relaxation or fallback (raw_hits) in the log."),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("zero_raw"), known("zero_raw")),
    needs=("raw_hits",),
    family="zero",
    guardrail=True,
)

ZERO_FILTERED = Metric(
    name="ZeroResults(filtered)",
    version=1,
    title="zero results for a filter",
    definition="searches that only a filter left empty / completed searches of which that is known",
    says="how often a filter, and not the query, empties the page",
    source=_SOURCE,
    traps=(
        _ERRORS,
        "The log must record whether a filter was on. Such searches are excluded from ZeroResults.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("zero_filtered"), known("zero_filtered")),
    needs=("filtered", SERVED),
    family="zero",
)

FAMILY = (ZERO, ZERO_RAW, ZERO_FILTERED)
