"""Clicks: whether people click, and where."""

from __future__ import annotations

from karat.online.metrics.entry import Metric, Ratio
from karat.online.metrics.expressions import (
    at_most,
    clicked_and_ranked,
    column,
    known,
    ranked,
    reciprocal,
)

SEEN = "impression|returned|hits"
"""What says whether results were seen."""
_FIELD = "Radlinski, Kurup & Joachims 2008, CIKM, doi:10.1145/1458082.1458092"
_RANKED = (
    "A search whose clicks have no logged position is left out: where the user clicked is unknown, "
    "which is not nowhere."
)
_AGAIN = (
    "A document clicked several times in one search counts at the best position it was clicked at."
)
_OVER = "searches with results seen whose clicks, if any, have a known position"

CTR = Metric(
    name="CTR",
    version=2,
    title="click-through rate",
    definition="searches with a click / searches with results seen",
    says="how often people click on anything they found",
    source=_FIELD,
    traps=(
        "It is per search, not per item: ItemCTR is another number.",
        (
            "A search of which no request had results does not count here. ZeroResults goes by the "
            "first answer: empty at first, and results when tried again, is in both."
        ),
        (
            "Who clicks has seen results: a search with a click counts even where the log says "
            "that nothing was returned, and is then in ZeroResults too."
        ),
        "Null is not 0: without a search there is no rate, with searches and no click it is 0.",
        (
            "It falls when people find the answer on the results page (GoodAbandonment), and rises "
            "with tempting titles: SAT says whether the click was worth it."
        ),
        "Requests while somebody types are one search; counted one by one they would halve it.",
    ),
    direction="higher",
    unit="share",
    compute=Ratio("searches", column("clicked"), column("seen")),
    needs=("click", SEEN),
    family="clicks",
)


def ctr_at(k: int) -> Metric:
    """Click-through rate in the first k results."""
    return Metric(
        name=f"CTR@{k}",
        version=3,
        title=f"click-through rate in the first {k}",
        definition=f"searches with a click at position {k} or better / {_OVER}",
        says=f"how often people click on one of the first {k} results",
        source=_FIELD,
        traps=(
            _RANKED,
            _AGAIN,
            (
                "People click on top because it is on top: a ranker is not better for the clicks "
                "that its first places get."
            ),
        ),
        direction="higher",
        unit="share",
        compute=Ratio("searches", at_most("first_rank", k), ranked()),
        needs=("click", "position", SEEN),
        family="clicks",
    )


ITEM_CTR = Metric(
    name="ItemCTR",
    version=2,
    title="click-through rate per item",
    definition="documents clicked, each once in a search / results seen",
    says="what share of the results that were seen is clicked",
    source=f"{_FIELD} (clicks per query), as a share of what was seen",
    traps=(
        (
            "Where the log has no impressions, what was returned stands for what was seen, of "
            "several pages or tries the longest; few people see all of it."
        ),
        "Longer lists lower it, whatever their quality; it is not CTR.",
        (
            "A document that was clicked was seen: a search has at least as many results seen as "
            "documents clicked, even where the log lacks their impressions or says that nothing "
            "was returned."
        ),
    ),
    direction="higher",
    unit="share",
    compute=Ratio("searches", column("clicks"), column("items")),
    needs=("click", SEEN),
    family="clicks",
)

MRCR = Metric(
    name="MRCR",
    version=3,
    title="mean reciprocal click rank",
    definition=f"sum of 1 / best position clicked, 0 without a click / {_OVER}",
    says="how high up the best result that people click on stands, no click being the worst",
    source=f"{_FIELD} (max reciprocal rank)",
    traps=(
        _RANKED,
        "It is over all searches with results: MRCR(clicked) can rise while clicks fall.",
        "It needs positions from 1; an import says which base it assumed.",
    ),
    direction="higher",
    unit="rank",
    compute=Ratio("searches", reciprocal, ranked()),
    needs=("click", "position", SEEN),
    family="clicks",
    highest=1.0,
)

MRCR_CLICKED = Metric(
    name="MRCR(clicked)",
    version=3,
    title="mean reciprocal click rank of searches with a click",
    definition="sum of 1 / best position clicked / searches with results seen and a click at a "
    "known position",
    says="how high up the best result stands that people click on, where they click at all",
    source=f"{_FIELD} (max reciprocal rank, clicked queries only)",
    traps=(
        (
            "It can rise while clicks fall: a system that loses all clicks below the first place "
            "gets 1. Read it beside CTR."
        ),
    ),
    direction="higher",
    unit="rank",
    compute=Ratio("searches", reciprocal, clicked_and_ranked),
    needs=("click", "position", SEEN),
    family="clicks",
    highest=1.0,
)


def _paul(factor: float, stored: str) -> Metric:
    return Metric(
        name=f"PaulScore(F={factor})",
        version=3,
        title=f"PaulScore with F = {factor}",
        definition=f"sum of {factor}^(position - 1) over the documents clicked / {_OVER}",
        says="how much of what people click on stands high up, each click counting "
        + ("half as much a place further down" if factor == 0.5 else "nearly as much further down"),
        source="Wikimedia Discovery, PaulScore (positions from 0 there)",
        traps=(
            "Several clicks in one search add up, and may be a sign of struggle.",
            "A number says nothing without its F: 0.5 looks at the top, 0.9 far down.",
            _RANKED,
            _AGAIN,
        ),
        direction="higher",
        unit="rank",
        compute=Ratio("searches", column(stored), ranked()),
        needs=("click", "position", SEEN),
        family="clicks",
        highest=round(1 / (1 - factor), 6),
    )


CLICK_POSITION = Metric(
    name="ClickPosition",
    version=2,
    title="where clicks fall",
    definition="clicks at a position / clicks at a known position; a row for each position, each "
    "document clicked once in a search",
    says="which share of the clicks falls on each position",
    source="karat; the position bias of Joachims et al. 2005, doi:10.1145/1076034.1076063",
    traps=(
        "It mostly shows where people look: the first places get clicks for being first.",
        _AGAIN,
        "Its rows have the position as a slice, and no interval.",
    ),
    direction="none",
    unit="share",
    compute=Ratio("clicks", known("position"), known("position")),
    needs=("click", "position"),
    family="clicks",
)

FAMILY = (
    CTR,
    ctr_at(5),
    ITEM_CTR,
    MRCR,
    MRCR_CLICKED,
    _paul(0.5, "paul_5"),
    _paul(0.9, "paul_9"),
    CLICK_POSITION,
)
