"""Searches that lead to nothing: abandonment, and saying it again in other words."""

from __future__ import annotations

from typing import Literal

from karat.online.metrics.clicks import SEEN
from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import column, equals, known, one

_LI = "Li, Huffman & Tokuda 2009, SIGIR (Good abandonment in mobile and PC internet search)"
_HUANG = "Huang & Efthimiadis 2009, CIKM (Analyzing and evaluating query reformulation strategies)"
_SURFACE = (
    "It goes by how alike two texts are, which has many false positives (Hassan 2013, EMNLP): "
    "label some pairs of your own before you aim at it."
)
_OVER = "searches whose results, or lack of any, were seen"

ABANDONMENT = Metric(
    name="Abandonment",
    version=2,
    title="abandonment rate",
    definition=f"searches without a click, cart or purchase / {_OVER}",
    says="how often people do nothing with what they found",
    source="Radlinski, Kurup & Joachims 2008, CIKM, doi:10.1145/1458082.1458092",
    traps=(
        (
            "It mixes good and bad: who read the answer on the page abandons too. Read its three "
            "parts, and GoodAbandonment."
        ),
        "Searches without results count as abandoned.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("abandoned"), known("abandoned")),
    needs=("click", f"{SEEN}|total_hits"),
    family="abandonment",
)


def _part(name: str, kind: str, what: str, says: str, *traps: str) -> Metric:
    return Metric(
        name=f"Abandonment({name})",
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
    says="how often people may have left because the results page itself answered them",
    source=f"{_LI}; Williams et al. 2016, WWW",
    traps=(
        (
            "It is an interval of what is not known, and has no value: nobody logs whether an "
            "answer was read. More searches do not narrow it; logging visible answers does."
        ),
        "Where the log holds no answers at all, it is anything from 0 to Abandonment(terminal).",
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
    definition="searches that the next one says in other words / searches",
    says="how often people have to say it again",
    source=_HUANG,
    traps=(
        _SURFACE,
        (
            "A next search within 5 minutes of the same session, without a satisfied click "
            "between; not the same text, and not a text still being typed."
        ),
        "Exploring looks alike: where that is what people come for, it is not bad.",
    ),
    direction="lower",
    unit="share",
    compute=Ratio("searches", column("reformulated"), one),
    needs=("query",),
    family="abandonment",
)

Kind = Literal["add", "drop", "substitute", "respell", "reorder"]
_KINDS: dict[Kind, tuple[str, str]] = {
    "add": ("words added", "how often people have to narrow what they typed"),
    "drop": ("words dropped", "how often people have to widen what they typed"),
    "substitute": ("words replaced", "how often people have to find another word"),
    "respell": ("words spelt otherwise", "how often people mend their spelling themselves"),
    "reorder": ("words reordered", "how often people put the same words in another order"),
}


def _reformulation(kind: Kind) -> Metric:
    what, says = _KINDS[kind]
    return Metric(
        name=f"Reformulation({kind})",
        version=1,
        title=f"reformulation: {what}",
        definition=f"searches that the next one says again, {what} / searches",
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
        "zero",
        "nothing was found",
        "how often people leave an empty page",
        "It goes by the first answer, as ZeroResults does, though another try had results.",
    ),
    _part(
        "reformulated",
        "reformulated",
        "searched again in other words",
        "how often people turn from their results to other words",
        _SURFACE,
    ),
    _part(
        "terminal",
        "terminal",
        "nothing done, and not searched again in other words",
        "how often people see results and give up, or are content with seeing them",
        "Who found the answer on the page is among these: GoodAbandonment bounds how many.",
    ),
    GOOD,
    REFORMULATION,
    *(_reformulation(kind) for kind in _KINDS),
)
