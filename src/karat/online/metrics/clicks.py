"""Clicks: whether users click, and at which positions."""

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

SEEN = "impression|returned|hits"  # the columns that show whether results were seen
_FIELD = "Radlinski, Kurup & Joachims 2008, CIKM, doi:10.1145/1458082.1458092"
_RANKED = (
    "A search whose clicks have no logged position is left out: the position is unknown, which is "
    "not the same as no click."
)
_AGAIN = "A document clicked several times in one search counts once, at its best position."
_OVER = "searches with results seen whose clicks, if any, have a known position"

CTR = Metric(
    name="CTR",
    version=2,
    title="click-through rate",
    definition="searches with a click / searches with results seen",
    says="how often users click on a result",
    source=_FIELD,
    traps=(
        "It is per search, not per item: ItemCTR is another number.",
        (
            "A search without results in any request does not count here. ZeroResults uses the "
            "first completed request: a search that is empty at first and has results when "
            "retried is in both."
        ),
        (
            "A click implies results: a search with a click counts even if the log has 0 results, "
            "and is then in ZeroResults too."
        ),
        "Null is not 0: without a search there is no rate, with searches and no click it is 0.",
        (
            "It falls when users find the answer on the results page (GoodAbandonment), and rises "
            "with tempting titles: SAT shows whether the click was worth it."
        ),
        "Requests while typing are one search; counted one by one they would halve it.",
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
        says=f"how often users click on one of the first {k} results",
        source=_FIELD,
        traps=(
            _RANKED,
            _AGAIN,
            (
                "Users click on the first results because they are first (position bias): such "
                "clicks do not show that a ranker is better."
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
    says="the share of the results seen that is clicked",
    source=f"{_FIELD} (clicks per query), as a share of what was seen",
    traps=(
        (
            "If the log has no impressions, the number of returned documents is used instead (the "
            "largest of several pages or requests); few users see all of them."
        ),
        "Longer lists lower it, whatever their quality; it is not CTR.",
        (
            "A document that was clicked was seen: a search has at least as many results seen as "
            "documents clicked, even if the log has no impressions of them or 0 results."
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
    says="how high the best clicked result ranks, with no click as the worst",
    source=f"{_FIELD} (max reciprocal rank)",
    traps=(
        _RANKED,
        "It is over all searches with results; MRCR(clicked) can rise while clicks fall.",
        "It needs positions from 1; an import reports the base it assumed.",
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
    says="how high the best clicked result ranks, in searches with a click",
    source=f"{_FIELD} (max reciprocal rank, clicked queries only)",
    traps=(
        (
            "It can rise while clicks fall: a system that loses all clicks below the first place "
            "gets 1. Read it together with CTR."
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
        says="how high the clicked results rank, with the weight of a click "
        + ("halved at each position" if factor == 0.5 else "falling slowly with its position"),
        source="Wikimedia Discovery, PaulScore (positions from 0 there)",
        traps=(
            "Several clicks in one search add up, and may be a sign of struggle.",
            "A number has no meaning without its F: 0.5 is for the top, 0.9 reaches far down.",
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
    title="click positions",
    definition="clicks at a position / clicks at a known position; a row for each position, each "
    "document clicked once in a search",
    says="the share of clicks at each position",
    source="karat; the position bias of Joachims et al. 2005, doi:10.1145/1076034.1076063",
    traps=(
        "It mostly shows where users look: the first positions get clicks for being first.",
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
