"""Service metrics: latency and errors. All are guardrails."""

from __future__ import annotations

from karat.online.metrics.entry import BINNED, Distribution, Metric, Ratio
from karat.online.metrics.expressions import column, one


def latency(percent: float) -> Metric:
    """A percentile of the latency, above 0 and below 100."""
    rest = 100 - percent
    return Metric(
        name=f"Latency(p{percent:g})",
        version=2,
        title="median latency" if percent == 50 else f"latency, {percent:g}th percentile",
        definition=f"the smallest latency that {percent:g} % of the searches do not exceed",
        says="the longest latency of the faster half of the searches"
        if percent == 50
        else f"the least latency of the slowest {rest:g} % of the searches",
        source="Hyndman & Fan 1996, definition 1; Dean & Barroso 2013, CACM 56(2) (on tails)",
        traps=(
            "Quantiles cannot be averaged over days or arms: it is computed anew for each slice.",
            "It is the latency in the log, mostly the server's; users wait longer.",
            BINNED,
        ),
        direction="lower",
        unit="milliseconds",
        compute=Distribution(
            "searches", "latency", column("latency_us"), None, "quantile", level=percent / 100
        ),
        needs=("latency_us",),
        family="service",
        guardrail=True,
    )


ERRORS = Metric(
    name="ErrorRate",
    version=1,
    title="error rate",
    definition="searches without a completed request, the first with an error / searches",
    says="how often a search fails",
    source="karat",
    traps=(
        "An error is not a zero result. No errors in few searches do not show that it is safe.",
        "A search that succeeds when retried does not count: it is of searches, not of requests.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("error"), one),
    needs=("status",),
    family="service",
    guardrail=True,
)

TIMEOUTS = Metric(
    name="TimeoutRate",
    version=1,
    title="timeout rate",
    definition="searches without a completed request, the first with a timeout / searches",
    says="how often a search times out",
    source="karat",
    traps=(
        (
            "Users who left before the timeout do not count, nor does a search that succeeds when "
            "retried."
        ),
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("timeout"), one),
    needs=("status",),
    family="service",
    guardrail=True,
)

FAMILY = (latency(50), latency(95), latency(99), ERRORS, TIMEOUTS)
