"""Fitting click models to counts, and how well they predict clicks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from karat.errors import InputError, UsageError
from karat.online.clicks._identified import not_identified
from karat.online.clicks.counts import Cells, Floats, Integers, Pages, queries_of
from karat.online.clicks.entry import (
    ClickModel,
    Estimate,
    OfCells,
    OfPages,
    Prior,
    Settings,
    Values,
    relevance_frame,
)
from karat.online.clicks.examination import known_places, relative
from karat.online.clicks.registry import find
from karat.tables.online.clicks import Examination, PropensitySource


@dataclass(frozen=True)
class Fitted:
    """A click model fitted to a log."""

    model: str
    pairs: pl.DataFrame  # as in `Cells`
    places: pl.DataFrame  # as in `Cells`
    relevance: pl.DataFrame  # by row of `pairs`, as `relevance_frame` returns it
    # None for models without it, and where positions are not identified
    examination: Sequence[Examination] | None
    identified: bool  # whether the log can separate documents from positions
    reason: str  # why it cannot; empty if it can
    iterations: int  # 0 for models that count
    parameters: Mapping[str, Estimate]  # of the model, by name


@dataclass(frozen=True)
class Evaluated:
    """How well a model predicts the clicks of a log."""

    log_likelihood: float  # natural logarithm: mean over the ranks of a page, then over pages
    perplexity: float  # mean over ranks; 1 is perfect, 2 a coin
    perplexity_by_rank: Sequence[float]  # over the pages that have the rank; from rank 1
    by_query: pl.DataFrame  # `query`, `pages`, `perplexity`
    unseen: int  # pairs that are not in the log of the fit


def fit(
    name: str,
    counts: Cells | Pages,
    *,
    compat: bool = False,
    propensities: Sequence[Examination] | None = None,
    prior: Prior = "flat",
) -> Fitted:
    """Fit a click model.

    Args:
        name: The model, as in ``find``.
        counts: The log; ``Pages`` for models whose ``needs`` is "pages", either for others.
        compat: Estimate as PyClick 98e7e46 does.
        propensities: Known examination of the PBM, relative to rank 1; it is not estimated then,
            except for ranks that are not given. Their uncertainty widens the intervals.
        prior: ``flat``, or ``query`` for estimates of documents that are shrunk to the mean of
            their query.

    Raises:
        UsageError: unknown model; it needs pages; it does not use propensities, or the log does
            not have their ranks.
        InputError: the log is empty.
    """
    model = find(name)
    if propensities is not None and model.name != "PBM":
        raise UsageError(f"{model.name} does not use propensities", fix="use the PBM")
    cells = _cells(counts)
    known = known_places(cells, propensities)
    if propensities is not None and not known:
        raise UsageError("the propensities are of other ranks or presentations than the log")
    reason = not_identified(cells, known)
    settings = Settings(prior, compat, propensities, not reason)
    if isinstance(model.compute, OfCells):
        estimated = model.compute.estimate(cells, settings)
    else:
        estimated = model.compute.estimate(_pages(model, counts), settings)
    return Fitted(
        model.name,
        cells.pairs,
        cells.places,
        relevance_frame(cells, estimated.relevance),
        None if reason else estimated.examination,
        not reason,
        reason,
        estimated.iterations,
        estimated.parameters,
    )


def evaluated(fitted: Fitted, counts: Cells | Pages) -> Evaluated:
    """How well a model predicts the log it was fitted to, or another one.

    A pair that the model never saw has the mean of its query, weighted by how often documents were
    shown; a query it never saw, the mean of all. A rank it never saw has the value of the deepest
    one above it.
    """
    model = find(fitted.model)
    if isinstance(model.compute, OfPages):
        pages = _pages(model, counts)
        values, unseen = _values_for(fitted, pages.pairs, fitted.places)
        weight, length = pages.count, (pages.docs >= 0).sum(axis=1)
        reading = model.compute.reading(values, pages)
        likelihood = reading.log_likelihood() / np.maximum(length, 1)
        page, rank = np.nonzero(pages.docs >= 0)
        clicks = reading.clicks()[rank, page]
        return _evaluated(
            float((weight * likelihood).sum() / weight.sum()),
            queries_of(pages.pairs)[pages.docs[page, rank]],
            rank,
            weight[page],
            weight[page] * np.log2(np.where(pages.clicked[page, rank], clicks, 1 - clicks)),
            pages.pairs,
            weight[page] / length[page],
            unseen,
        )
    cells = _cells(counts)
    values, unseen = _values_for(fitted, cells.pairs, cells.places)
    clicks = model.compute.clicks(values, cells.pair, cells.place)
    hit, miss = np.log(clicks), np.log1p(-clicks)
    likelihood = cells.share_clicked * hit + (cells.share - cells.share_clicked) * miss
    return _evaluated(
        float(likelihood.sum() / cells.pages),
        queries_of(cells.pairs)[cells.pair],
        cells.places["rank"].to_numpy()[cells.place] - 1,
        cells.shown,
        (cells.clicked * hit + (cells.shown - cells.clicked) * miss) / np.log(2),
        cells.pairs,
        cells.share,
        unseen,
    )


def propensities_of(cells: Cells, source: PropensitySource) -> list[Examination]:
    """Examination from traffic in which the order of documents was random.

    randomised: the order was shuffled, so documents of all ranks are equally relevant, and the
    click-through rate of a rank relative to rank 1 is its examination: the plain ratio where all
    pages are equally long. Else deep ranks are those of other queries than rank 1, so rates are
    compared within queries (``examination.relative``). The interval is of its logarithm.

    interleaved: documents changed places with their team; the PBM of these pages alone.

    Raises:
        InputError: the traffic does not connect the ranks.
    """
    if source == "randomised":
        queries = cells.pairs.select("query").unique(maintain_order=True)
        cells = replace(cells, pairs=queries, pair=queries_of(cells.pairs)[cells.pair])
    reason = not_identified(cells)
    if reason:
        raise InputError(f"{source} traffic does not compare all ranks: {reason}")
    return relative(cells).rows(cells)


def _cells(counts: Cells | Pages) -> Cells:
    cells = counts.cells() if isinstance(counts, Pages) else counts
    if not len(cells.pair):
        raise InputError("the log has no page of results with a document")
    return cells


def _pages(model: ClickModel, counts: Cells | Pages) -> Pages:
    if isinstance(counts, Cells):
        raise UsageError(f"{model.name} needs the clicks of each page, not counts by document")
    if not counts.docs.size:
        raise InputError("the log has no page of results with a document")
    return counts


def _values_for(fitted: Fitted, pairs: pl.DataFrame, places: pl.DataFrame) -> tuple[Values, int]:
    """The value of each parameter for the pairs and places of another log, and unseen pairs."""
    row = pairs.join(
        fitted.pairs.with_row_index("row").filter(fitted.relevance["shown"] > 0),
        on=["query", "doc_id"],
        how="left",
        maintain_order="left",
    )["row"]
    shown = fitted.relevance["shown"].to_numpy()
    values: dict[str, Floats] = {}
    for name, estimate in fitted.parameters.items():
        if estimate.of == "pair":
            values[name] = _for_pairs(fitted.pairs, estimate.value, shown, pairs, row)
        elif estimate.of == "place":
            values[name] = estimate.value[_places_for(fitted.places, places)]
        else:
            values[name] = estimate.value
    return values, row.null_count()


def _for_pairs(
    known: pl.DataFrame, value: Floats, shown: Floats, pairs: pl.DataFrame, row: pl.Series
) -> Floats:
    if not row.null_count():
        return np.asarray(value[row.to_numpy()])
    means = (
        known.select("query", total=pl.Series(value * shown), shown=pl.Series(shown))
        .group_by("query")
        .sum()
    )
    of_query = pairs.join(means, on="query", how="left", maintain_order="left").select(
        pl.col("total") / pl.col("shown")
    )
    fallback = of_query.to_series().fill_null(float((value * shown).sum() / shown.sum()))
    seen = pl.Series(value).gather(row.cast(pl.Int64))
    return seen.fill_null(fallback).to_numpy()


def _places_for(known: pl.DataFrame, places: pl.DataFrame) -> Integers:
    """For each place the known one nearest above it, if possible as it was presented."""
    keys = list(known.select("rank", "presentation").iter_rows())

    def nearest_to(rank: int, kind: str | None) -> int:
        def distance(row: int) -> tuple[bool, bool, int, bool]:
            here, as_shown = keys[row]
            return (keys[row] != (rank, kind), here > rank, abs(here - rank), as_shown != kind)

        return min(range(len(keys)), key=distance)

    rows = [nearest_to(*key) for key in places.select("rank", "presentation").iter_rows()]
    return np.array(rows, dtype=np.int64)


def _evaluated(
    log_likelihood: float,
    query: Integers,
    rank: Integers,
    weight: Floats,
    bits: Floats,
    pairs: pl.DataFrame,
    share: Floats,
    unseen: int,
) -> Evaluated:
    ranks = int(rank.max()) + 1
    by_rank = _perplexity(rank, weight, bits, ranks)
    names = pairs["query"].unique(maintain_order=True)
    by_both = _perplexity(query * ranks + rank, weight, bits, len(names) * ranks)
    by_both = by_both.reshape(-1, ranks)
    of_query = np.nansum(by_both, axis=1) / np.maximum((~np.isnan(by_both)).sum(axis=1), 1)
    pages = np.bincount(query, share, len(names))
    by_query = pl.DataFrame({"query": names, "pages": pages, "perplexity": of_query})
    by_query = by_query.filter(pl.col("pages") > 0)
    return Evaluated(
        log_likelihood,
        float(np.nanmean(by_rank)),
        [float(value) for value in np.nan_to_num(by_rank, nan=1.0)],
        by_query,
        unseen,
    )


def _perplexity(key: Integers, weight: Floats, bits: Floats, size: int) -> Floats:
    """Perplexity by key; not a number for a key that has no impression."""
    shown = np.bincount(key, weight, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(2.0 ** (-np.bincount(key, bits, size) / shown))
