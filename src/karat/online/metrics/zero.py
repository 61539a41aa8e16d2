"""Searches that find nothing."""

from __future__ import annotations

from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import column, known

SERVED = "total_hits|returned|hits"
"""What says how much was served."""
_SOURCE = "karat; errors, fallbacks and filters kept apart"
_ERRORS = "Errors and timeouts are no zeros: ErrorRate and TimeoutRate have those."

ZERO = Metric(
    name="ZeroResults",
    version=1,
    title="zero-result rate as served",
    definition="searches that served nothing / completed searches",
    says="how often people get an empty page",
    source=_SOURCE,
    traps=(
        _ERRORS,
        (
            "It is what the user saw: a fallback that fills the page hides what did not match, "
            "which ZeroResults(raw) shows."
        ),
        "Searches that only a filter emptied are in ZeroResults(filtered), and not here.",
        "Requests while somebody types are one search: half a word often finds nothing.",
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
    says="how often nothing matches what people typed, whatever is then shown instead",
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
    says="how often a filter, and not the words, empties the page",
    source=_SOURCE,
    traps=(
        _ERRORS,
        "It needs to be logged whether a filter was on. Such searches are kept out of ZeroResults.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("zero_filtered"), known("zero_filtered")),
    needs=("filtered", SERVED),
    family="zero",
)

FAMILY = (ZERO, ZERO_RAW, ZERO_FILTERED)
