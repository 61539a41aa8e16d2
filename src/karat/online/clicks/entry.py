"""The entry of a click model: its documentation, how it is estimated, and what it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from karat.online.clicks.counts import Cells, Floats, Integers, Pages
from karat.tables.online.clicks import Examination

if TYPE_CHECKING:
    from karat.online.clicks.reading import Reading

Prior = Literal["flat", "query"]
"""``flat``: uniform, Beta(1,1), that is 1 in 2 in addition to the counts. ``query``: as strong, but
with the mean of the query instead of ½, for parameters of documents."""
Values = Mapping[str, Floats]  # the value of each parameter


@dataclass(frozen=True)
class Settings:
    """How a model is estimated."""

    prior: Prior = "flat"
    compat: bool = False  # as PyClick 98e7e46 does: 50 iterations, and its shortcuts
    propensities: Sequence[Examination] | None = None  # known examination, of the PBM only
    identified: bool = True  # whether the log can separate documents from positions


@dataclass(frozen=True)
class Estimate:
    """A parameter of a model."""

    of: Literal["pair", "place", "log"]  # what has a value each: rows of `pairs`, of `places`, or 1
    value: Floats
    ci_low: Floats | None = None  # 95 % interval; None if it has none
    ci_high: Floats | None = None


@dataclass(frozen=True)
class Relevance:
    """How relevant each document is to its query, and how certain that is; by row of `pairs`."""

    value: Floats
    ci_low: Floats  # 95 % interval
    ci_high: Floats
    logit: Floats | None  # mean of the posterior of its logit; None for what is not a probability
    logit_se: Floats | None  # standard deviation of that posterior
    effective: Floats  # how often it was looked at, as expected

    def parameter(self) -> Estimate:
        """The same as a parameter of pairs."""
        return Estimate("pair", self.value, self.ci_low, self.ci_high)


def relevance_frame(cells: Cells, relevance: Relevance | None) -> pl.DataFrame:
    """The relevance of each pair next to its counts; null where a model has none.

    Returns:
        ``query``, ``doc_id``, ``value`` with ``ci_low`` and ``ci_high`` (95 %), mean ``logit`` of
        its posterior with ``logit_se``, ``shown``, ``clicked``, ``effective`` (how often it was
        looked at, as expected) and ``rank`` (mean rank shown).
    """
    shown = cells.by_pair(cells.shown)
    rank = cells.by_pair(cells.shown * cells.places["rank"].to_numpy()[cells.place])
    names = ("value", "ci_low", "ci_high", "logit", "logit_se", "effective")
    columns = [
        pl.lit(None, pl.Float64).alias(name)
        if relevance is None or getattr(relevance, name) is None
        else pl.Series(name, getattr(relevance, name))
        for name in names
    ]
    return cells.pairs.select("query", "doc_id").with_columns(
        *columns[:5],
        shown=pl.Series(shown),
        clicked=pl.Series(cells.by_pair(cells.clicked)),
        effective=columns[5],
        rank=pl.Series(rank / np.maximum(shown, 1e-300)),
    )


@dataclass(frozen=True)
class Estimated:
    """What the estimation of a model returns."""

    parameters: Mapping[str, Estimate]
    relevance: Relevance | None  # None for models that do not know documents
    examination: Sequence[Examination] | None = None  # None for models without it
    iterations: int = 0  # 0 for models that count


@dataclass(frozen=True, slots=True)
class OfCells:
    """A model whose clicks depend on the document and its place alone."""

    estimate: Callable[[Cells, Settings], Estimated]
    # Probability of a click, by rows of `pairs` and `places`
    clicks: Callable[[Values, Integers, Integers], Floats]


@dataclass(frozen=True, slots=True)
class OfPages:
    """A model in which clicks depend on the documents and clicks above."""

    estimate: Callable[[Pages, Settings], Estimated]
    reading: Callable[[Values, Pages], Reading]  # its likelihood, and clicks before any click


@dataclass(frozen=True)
class ClickModel:
    """A click model."""

    name: str  # name, as printed
    title: str  # its name in words
    assumes: str  # what users do, if it is right
    parameters: tuple[str, ...]  # what is estimated, in words
    blind: str  # what it cannot see
    source: str  # paper
    compute: OfCells | OfPages  # its computation

    @property
    def needs(self) -> Literal["cells", "pages"]:
        """The counts it is fitted to."""
        return "cells" if isinstance(self.compute, OfCells) else "pages"


def prior_counts(
    query: Integers, prior: Prior, successes: Floats, trials: Floats
) -> tuple[Floats, Floats]:
    """Successes and failures that the prior adds to each pair, 2 together.

    Args:
        query: Number of the query of each pair.
        prior: Which prior.
        successes: Of each pair.
        trials: Of each pair.
    """
    if prior == "flat":
        return np.ones(len(query)), np.ones(len(query))
    hits = np.bincount(query, successes)
    mean = ((1 + hits) / (2 + np.maximum(np.bincount(query, trials), hits)))[query]
    return 2 * mean, 2 * (1 - mean)
