"""Slices: the queries that share a value of an attribute."""

from __future__ import annotations

import numpy as np

from karat.errors import UsageError
from karat.measures.evidence import Ints, Mask
from karat.measures.scores import Scores
from karat.tables import Queries

Bands = tuple[tuple[int, str], ...]

_RELEVANT: Bands = ((1, "1"), (3, "2 to 3"), (10, "4 to 10"), (1 << 62, "11 and more"))
_WORDS: Bands = ((1, "1 word"), (2, "2 words"), (4, "3 to 4 words"), (1 << 62, "5 words and more"))


def slices_of(queries: Queries | None, attribute: str, scores: Scores) -> list[tuple[str, Mask]]:
    """Each value of an attribute, and which of the judged queries have it; shape (n,).

    Queries without a value are ``(none)``; those marked ``no_answer`` are in no slice. Two
    attributes need not be given: ``relevant_documents``, how many there are, and
    ``query_length``, where the queries have a text.

    Raises:
        UsageError: there are no queries, or they have no such attribute.
    """
    query_ids, silent = scores.evidence.query_ids, scores.rules.no_answer
    counted = np.array([query not in silent for query in query_ids], np.bool_)
    known = [] if queries is None else queries.attributes
    if attribute == "relevant_documents" and attribute not in known:
        held = scores.evidence.num_rel(scores.lowest_rel).astype(np.int64)
        return _banded(held, counted & (held > 0), _RELEVANT)
    if queries is None:
        raise UsageError(
            f"slicing by {attribute!r} needs the queries and their attributes",
            fix="--queries FILE",
        )
    if attribute == "query_length" and attribute not in known:
        lengths = {query: len(text.split()) for query, text in _texts(queries).items()}
        words = np.array([lengths.get(query, 0) for query in query_ids])
        return _banded(words, counted & (words > 0), _WORDS)
    values = queries.attribute(attribute)
    of_query = np.array([values.get(query) or "(none)" for query in query_ids])
    return [(str(value), counted & (of_query == value)) for value in np.unique(of_query[counted])]


def _banded(number: Ints, counted: Mask, bands: Bands) -> list[tuple[str, Mask]]:
    band = np.searchsorted([most for most, _ in bands], number)
    found = [(name, counted & (band == place)) for place, (_, name) in enumerate(bands)]
    return [(name, chosen) for name, chosen in found if chosen.any()]


def _texts(queries: Queries) -> dict[str, str]:
    if "text" not in queries.frame.columns:
        raise UsageError(
            "slicing by query_length needs the texts of the queries", fix="a column text"
        )
    pairs = queries.frame.select("query_id", "text").iter_rows()
    return {query: text for query, text in pairs if text}
