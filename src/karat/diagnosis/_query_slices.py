"""Derived slices: by length, form, frequency, and number or rank of relevant documents."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import polars as pl

from karat.diagnosis.value_slices import Bands, Labels, Slices, banded, numbers, quartiles
from karat.errors import InputError, UsageError
from karat.golden.traffic import ALL, HEAD, TAIL, TORSO, bands_of
from karat.measures.evidence import Ints, Mask
from karat.measures.scores import Scores
from karat.tables import Queries

_MARKS = "?\uff1f\ufe56\u061f\u037e\u1367\u2e2e\u203d\u2047\u2048\u2049\ua60f"
"""Question marks: Latin, full-width, small, Arabic, Greek, Ethiopic, reversed, and ones combined
with others; Vai."""
_OPENING = "\u00bf\u055e"  # begins a Spanish question; stands inside an Armenian one
_CLOSING = "\"'\u201d\u2019\u00bb)]}!. "


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASKING = {
    "en": "what when where which who whom whose why how",
    "de": "was wann wo wohin woher welche welcher welches welchen welchem wer wem wen wessen "
          "warum wieso weshalb wie womit wodurch wofür wozu",
    "fr": "que qu quel quelle quels quelles qui quoi quand où pourquoi combien",
    "es": "qué que cómo como cuándo cuando dónde donde cuál cual cuáles cuales quién quien "
          "quiénes quienes cuánto cuanto cuánta cuántos cuántas",
}  # fmt: skip
"""Words that begin a question, by language. French *comment* is left out: it is also an English
noun, and "comment block" is not a question."""
_FIRST = _words(" ".join(_ASKING.values()))

_INVERTED = _words("is are was were am do does did can could should would")
"""English verbs that begin a question of three words and more ("does python copy lists")."""
_RATHER = _words("will shall may might must has have had")
"""Those that begin names and commands too ("will smith movies"): a subject must follow."""
_SUBJECTS = _words(
    "i you he she it we they one someone anyone there this that these those the a an any my your "
    "his her its our their"
)
_WORD = re.compile(r"[^\W\d_]+")


def is_question(text: str) -> bool:
    """Whether a query is a question.

    It is if it ends with a question mark of any script, contains an inverted one, begins with an
    interrogative word (English, German, French, Spanish), or with an English auxiliary verb before
    its subject. Case does not matter.

    Args:
        text: The query as it was typed.
    """
    bare = text.strip()
    if bare.rstrip(_CLOSING).endswith(tuple(_MARKS)) or any(mark in bare for mark in _OPENING):
        return True
    plain = unicodedata.normalize("NFC", bare).casefold()  # not above: it makes ; of Greek marks
    words = [match[0] for word in plain.split() if (match := _WORD.search(word))]
    if not words:
        return False
    if words[0] in _FIRST:
        return len(words) > 1
    if words[0] in _RATHER:
        return len(words) > 2 and words[1] in _SUBJECTS
    return len(words) > 2 and words[0] in _INVERTED


_END = 1 << 62
_BANDS = (HEAD, TORSO, TAIL, ALL)
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
"""Columns with the frequency of each query; the first that exists is used."""

BAND = "band"
"""The column in which ``karat golden choose`` stores the band of a query in the whole log."""


def by_relevant_documents(scores: Scores, counted: Mask, *, in_quartiles: bool = False) -> Slices:
    """Queries by number of relevant documents, retrieved or not; without queries that have none.

    Args:
        scores: Of any run; n queries.
        counted: Queries that may be in a slice; shape (n,).
        in_quartiles: Bands cut at the quartiles of these queries, and not the fixed ones.
    """
    held = scores.evidence.num_rel(scores.lowest_rel).astype(np.int64)
    there = counted & (held > 0)
    if in_quartiles:
        return _in_quartiles(held, there, "relevant_documents")
    return banded(held, there, _RELEVANT)


def _in_quartiles(number: Ints, counted: Mask, name: str, unit: str = "") -> Slices:
    at = np.flatnonzero(counted)
    return quartiles(pl.Series(number[at]), unit).slices(at, counted, name)


def by_first_relevant(scores: Sequence[Scores], counted: Mask) -> Slices:
    """Queries by the rank of the first relevant document in the best of the runs.

    In the best of all, not in one of them: where one run is bad by chance, any other looks good
    (regression to the mean), so slices by one run's ranks would favour the others.

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


def by_length(
    queries: Queries, query_ids: Sequence[str], counted: Mask, *, in_quartiles: bool = False
) -> Slices:
    """Queries by their number of words; those without a text are in no slice.

    Args:
        queries: The queries.
        query_ids: The judged queries; length n.
        counted: Queries that may be in a slice; shape (n,).
        in_quartiles: Bands cut at the quartiles of these queries, and not the fixed ones.

    Raises:
        UsageError: no query has a text.
    """
    texts = _texts(queries, "query_length")
    lengths = {query: len(text.split()) for query, text in texts.items()}
    words = np.array([lengths.get(query, 0) for query in query_ids], np.int64)
    there = counted & (words > 0)
    if in_quartiles:
        return _in_quartiles(words, there, "query_length", "word")
    return banded(words, there, _WORDS)


def by_form(queries: Queries, query_ids: Sequence[str], counted: Mask) -> Slices:
    """Queries that are questions, and those that are keywords (``is_question``).

    Queries without a text are in no slice.

    Args:
        queries: The queries.
        query_ids: The judged queries; length n.
        counted: Queries that may be in a slice; shape (n,).

    Raises:
        UsageError: no query has a text.
    """
    texts = _texts(queries, "query_form")
    forms = {query: int(is_question(text)) for query, text in texts.items() if text.strip()}
    form = np.array([forms.get(query, 2) for query in query_ids], np.int64)
    return banded(form, counted, ((0, "keyword"), (1, "question")))


def _texts(queries: Queries, name: str) -> dict[str, str]:
    if "text" not in queries.frame.columns:
        raise UsageError(f"slicing by {name} needs the texts of the queries", fix="a column text")
    return queries.texts()


def by_frequency(queries: Queries, query_ids: Sequence[str], counted: Mask) -> Slices:
    """Queries by frequency: head, torso and tail, a third of the traffic each.

    ``golden.traffic.bands_of`` defines the bands. A stored band is used if there is one: that of a
    golden set sampled from a log (column ``band``, next to ``probability``), or names of bands in a
    column ``band`` or of ``FREQUENCIES``. Otherwise bands are computed from the numbers in that
    column, over all queries of the table, judged or not.

    Args:
        queries: The queries, with a column ``band`` or one of ``FREQUENCIES``.
        query_ids: The judged queries; length n.
        counted: Queries that may be in a slice; shape (n,).

    Raises:
        UsageError: there is no such column, or it has neither numbers nor names of bands.
        InputError: a frequency below 0, or one that is not finite.
    """
    band = _stored_bands(queries) or _computed_bands(queries)
    own = sorted({name for name in band.values() if name} - set(_BANDS))
    names = [*_BANDS, *own]
    place = {name: code for code, name in enumerate(names)}
    code = np.array([place.get(band.get(query) or "", -1) for query in query_ids], np.int64)
    return Labels(names, code).slices(np.arange(len(code)), counted, "frequency_band")


def _stored_bands(queries: Queries) -> dict[str, str | None] | None:
    for name in (BAND, *FREQUENCIES):
        if name not in queries.attributes or queries.frame[name].dtype != pl.String:
            continue
        held = queries.frame[name].replace("", None)
        drawn = name == BAND and "probability" in queries.attributes
        if held.count() and (drawn or held.drop_nulls().is_in(_BANDS).all()):
            return dict(zip(queries.frame["query_id"], held, strict=True))
    return None


def _computed_bands(queries: Queries) -> dict[str, str | None]:
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
            fix=f"slice by {name}",
        )
    bad = ~(often.is_finite() & (often >= 0)).fill_null(value=True)
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise InputError(
            f"{name} {column[row]} is not a number from 0",
            file=queries.source,
            query=queries.frame["query_id"][row],
        )
    return dict(zip(queries.frame["query_id"], bands_of(often.to_numpy()), strict=True))
