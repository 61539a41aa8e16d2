"""Slices that need no attribute: by length, frequency, and what there is to find and was found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from karat.diagnosis.value_slices import Bands, Labels, Slices, banded, numbers
from karat.errors import Advice, InputError, UsageError
from karat.measures.evidence import Floats, Mask
from karat.measures.scores import Scores
from karat.tables import Queries

_END = 1 << 62
_RELEVANT: Bands = ((1, "1"), (3, "2 to 3"), (10, "4 to 10"), (_END, "11 and more"))
_WORDS: Bands = ((1, "1 word"), (2, "2 words"), (4, "3 to 4 words"), (_END, "5 words and more"))
_RANKS: Bands = (
    (1, "1"),
    (3, "2 to 3"),
    (10, "4 to 10"),
    (_END, "11 and below"),
    (_END + 1, "none"),
)

FREQUENCIES = ("frequency", "count")
"""Columns of the queries that may say how often each was asked; the first that is there counts."""

BANDS = ("head", "torso", "tail")
SHARES = (0.5, 0.9)
"""Up to which share of all searches, the most frequent queries first, head and torso reach. There
is no settled definition; half and nine tenths are ours."""


def by_relevant_documents(scores: Scores, counted: Mask) -> Slices:
    """Queries by how many relevant documents there are, found or not; none without one.

    Args:
        scores: Of any run; n queries.
        counted: Queries that may be in a slice; shape (n,).
    """
    held = scores.evidence.num_rel(scores.lowest_rel).astype(np.int64)
    return banded(held, counted & (held > 0), _RELEVANT)


def by_first_relevant(scores: Sequence[Scores], counted: Mask) -> Slices:
    """Queries by the rank of the first relevant document in the best of the runs.

    In the best of all and not in one of them: where one run did badly by chance, any other looks
    good (regression to the mean), so slices by one run's ranks would favour the others.

    Args:
        scores: Of all runs in question, over the same n queries.
        counted: Queries that may be in a slice; shape (n,).
    """
    best = np.full(len(counted), _END + 1)
    for of_run in scores:
        evidence = of_run.evidence
        relevant = evidence.relevant(of_run.lowest_rel)
        np.minimum.at(best, evidence.query[relevant], evidence.rank[relevant])
    return banded(best, counted, _RANKS)


def by_length(queries: Queries, query_ids: Sequence[str], counted: Mask) -> Slices:
    """Queries by their number of words; those without a text are in no slice.

    Args:
        queries: The queries.
        query_ids: The judged queries; length n.
        counted: Queries that may be in a slice; shape (n,).

    Raises:
        UsageError: no query has a text.
    """
    if "text" not in queries.frame.columns:
        raise UsageError(
            "slicing by query_length needs the texts of the queries", fix="a column text"
        )
    lengths = {query: len(text.split()) for query, text in queries.texts().items()}
    words = np.array([lengths.get(query, 0) for query in query_ids], np.int64)
    return banded(words, counted & (words > 0), _WORDS)


def by_frequency(queries: Queries, query_ids: Sequence[str], counted: Mask) -> Slices:
    """Queries by how much of the traffic lies above them: head, torso and tail (``SHARES``).

    Over all queries of the table, judged or not. Queries asked equally often stay together, on
    that side of a border where half of their searches or more lie.

    Args:
        queries: The queries, with a column of ``FREQUENCIES``.
        query_ids: The judged queries; length n.
        counted: Queries that may be in a slice; shape (n,).

    Raises:
        UsageError: there is no such column, or it holds no numbers.
        InputError: a frequency below 0, or one that is not finite.
    """
    name = next((name for name in FREQUENCIES if name in queries.attributes), None)
    if name is None:
        raise UsageError(
            "slicing by frequency_band needs to know how often each query was asked",
            fix=f"a column {' or '.join(FREQUENCIES)} of the queries, with numbers",
        )
    column = queries.frame[name]
    often = numbers(column)
    if often is None:
        held = column.drop_nulls().cast(pl.String, strict=False).unique().sort().head(3)
        raise UsageError(
            f"frequency_band is made of numbers, and the column {name} holds "
            f"{', '.join(held.drop_nulls()) or 'none'}",
            fix=Advice(f"--by {name}", page=f"slice by {name}"),
        )
    bad = ~(often.is_finite() & (often >= 0)).fill_null(value=True)
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise InputError(
            f"{name} {column[row]} is not a number from 0",
            file=queries.source,
            query=queries.frame["query_id"][row],
        )
    band = dict(zip(queries.frame["query_id"], _bands(often.to_numpy()), strict=True))
    code = np.array([band.get(query, -1) for query in query_ids], np.int64)
    return Labels(list(BANDS), code).slices(np.arange(len(code)), counted, "frequency_band")


def _bands(often: Floats) -> list[int]:
    """Index of the band of each frequency, -1 where it is NaN."""
    held = ~np.isnan(often)
    level, at = np.unique(-often[held], return_inverse=True)  # most frequent first
    searches = np.bincount(at, often[held], minlength=len(level))
    total = searches.sum()
    middle = np.cumsum(searches) - searches / 2
    share = middle / total if total > 0 else np.ones(len(level))
    band = np.full(len(often), -1)
    band[held] = np.searchsorted(SHARES, np.round(share, 12))[at]
    return [int(place) for place in band]
