"""Abandonment and reformulation."""

from __future__ import annotations

from karat.online.metrics.clicks import SEEN
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import column, equals, known, one

_LI = "Li, Huffman & Tokuda 2009, SIGIR (Good abandonment in mobile and PC internet search)"
_HUANG = "Huang & Efthimiadis 2009, CIKM (Analyzing and evaluating query reformulation strategies)"
_SURFACE = (
    "It uses the similarity of two texts, which has many false positives (Hassan 2013, EMNLP): "
    "label some pairs of your own before you optimise it."
)
_OVER = "searches whose results, or lack of any, were seen"

ABANDONMENT = Metric(
    name="Abandonment",
    version=2,
    title="abandonment rate",
    definition=f"searches without a click, cart or purchase / {_OVER}",
    says="how often users do nothing with the results",
    source="Radlinski, Kurup & Joachims 2008, CIKM, doi:10.1145/1458082.1458092",
    traps=(
        (
            "It mixes good and bad: users who read the answer on the page abandon too. Compare its "
            "three parts, and GoodAbandonment."
        ),
        "Searches without results count as abandoned.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("abandoned"), known("abandoned")),
    needs=("click", f"{SEEN}|total_hits"),
    family="abandonment",
)


def _part(kind: str, what: str, says: str, *traps: str) -> Metric:
    return Metric(
        name=f"Abandonment({kind})",
        version=2,
        title=f"abandonment: {what}",
        definition=f"searches abandoned: {what} / {_OVER}",
        says=says,
        source=f"karat; {_LI}",
        traps=(
            "Abandonment(zero), (reformulated) and (terminal) add up to Abandonment.",
            *traps,
        ),
        direction="lower",
        unit="share",
        compute=Ratio("searches", equals("abandoned_as", kind), known("abandoned")),
        needs=ABANDONMENT.needs,
        family="abandonment",
    )


GOOD = Metric(
    name="GoodAbandonment",
    version=2,
    title="good abandonment, between its bounds",
    definition="searches abandoned for an answer that was read on the results page / "
    f"{_OVER}; least: surely read (open for 5 s or more), most: perhaps read",
    says="how often users may have left because the results page answered them",
    source=f"{_LI}; Williams et al. 2016, WWW",
    traps=(
        (
            "It has bounds and no value: logs do not record whether an answer was read. More "
            "searches do not narrow the bounds; logging visible answers does."
        ),
        "If the log has no answers, the bounds are 0 and Abandonment(terminal).",
        "It is much higher on phones.",
    ),
    direction="higher",
    unit="share",
    compute=Ratio(
        "searches",
        column("good_low"),
        known("abandoned"),
        least=column("good_low"),
        most=column("good_high"),
    ),
    needs=ABANDONMENT.needs,
    family="abandonment",
    point=False,
)

REFORMULATION = Metric(
    name="Reformulation",
    version=1,
    title="reformulation rate",
    definition="searches that the next one reformulates / searches",
    says="how often users have to reformulate",
    source=_HUANG,
    traps=(
        _SURFACE,
        (
            "The next search is within 5 minutes in the same session, without a satisfied click "
            "between; it is not the same text, and not a text still being typed."
        ),
        "Exploration looks the same: where users come to explore, it is not bad.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("reformulated"), one),
    needs=("query",),
    family="abandonment",
)

_KINDS = {
    "add": ("words added", "how often users have to narrow their query"),
    "drop": ("words dropped", "how often users have to broaden their query"),
    "substitute": ("words replaced", "how often users have to find another word"),
    "respell": ("spelling changed", "how often users correct their spelling themselves"),
    "reorder": ("words reordered", "how often users put the same words in another order"),
}


def _reformulation(kind: str) -> Metric:
    what, says = _KINDS[kind]
    return Metric(
        name=f"Reformulation({kind})",
        version=1,
        title=f"reformulation: {what}",
        definition=f"searches that the next one reformulates: {what} / searches",
        says=says,
        source=_HUANG,
        traps=(_SURFACE, "The five kinds add up to Reformulation."),
        direction="lower",
        unit="share",
        compute=Ratio("searches", equals("reformulation", kind), one),
        needs=("query",),
        family="abandonment",
    )


FAMILY = (
    ABANDONMENT,
    _part(
        "zero",
        "no results",
        "how often users leave an empty page",
        "It uses the first completed request, as ZeroResults does, even if another had results.",
    ),
    _part(
        "reformulated",
        "reformulated",
        "how often users leave the results and reformulate",
        _SURFACE,
    ),
    _part(
        "terminal",
        "no action, and not reformulated",
        "how often users see results and give up, or are satisfied by seeing them",
        "It includes users who found the answer on the page: GoodAbandonment bounds how many.",
    ),
    GOOD,
    REFORMULATION,
    *(_reformulation(kind) for kind in _KINDS),
)
