"""What the service does: how long answers take, and how many fail. Guardrails all of them."""

from __future__ import annotations

from karat.online.metrics.entry import BINNED, Distribution, Metric, Ratio
from karat.online.metrics.expressions import column, one


def latency(percent: float) -> Metric:
    """A quantile of the time to the answer; percent above 0 and below 100."""
    rest = 100 - percent
    return Metric(
        name=f"Latency(p{percent:g})",
        version=2,
        title="median latency" if percent == 50 else f"latency, {percent:g}th percentile",
        definition=f"the smallest time to the answer that {percent:g} % of the searches do not "
        "exceed",
        says="how long half of the answers take at most"
        if percent == 50
        else f"how long the slowest {rest:g} % of the answers take at least",
        source="Hyndman & Fan 1996, definition 1; Dean & Barroso 2013, CACM 56(2) (on tails)",
        traps=(
            "Quantiles cannot be averaged over days or arms: it is computed anew for each slice.",
            "It is the time that the log has, mostly the server's; the user waits longer.",
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
    definition="searches of which no request was answered, the first ending in an error / searches",
    says="how often a search fails",
    source="karat",
    traps=(
        "An error is no zero result. No error among few searches does not show that it is safe.",
        "Who tried again and was answered is not in it: it is of searches, not of requests.",
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
    definition="searches of which no request was answered, the first running out of time / "
    "searches",
    says="how often a search is not answered in time",
    source="karat",
    traps=(
        (
            "Who gave up waiting and left before the timeout is not in it, nor who tried again and "
            "was answered."
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
