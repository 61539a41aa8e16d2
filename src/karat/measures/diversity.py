"""Measures of diversity: how soon a ranking covers the subtopics of a query, and how often.

They need judgments by subtopic, and count a document for every subtopic it is relevant to.
Subtopics without a relevant document do not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from karat.errors import InputError
from karat.measures.entry import Equal, Example, Parameter, Terms, show_number
from karat.measures.evidence import Evidence, Floats, Ints, Subtopics, or_nan
from karat.measures.parameters import REL, divisor_of, read_number
from karat.measures.registry import measure

_NO_REL = "no relevant document"
_PYNDEVAL = "by pyndeval, where no scores tie: it orders tied documents by id ascending"
_NDEVAL = "pyndeval 0.0.8 (ndeval)"
_LEAST_ALPHA = 0.0001  # a smaller one makes no difference, and sums would not end
_CLOSE = 1e-9  # gains this close are equal but for the order of addition
_LONG = 1_000_000  # ranks from which the asymptotic series of the harmonic number is as exact


@dataclass(frozen=True, slots=True)
class Covered(Example):
    """A worked example with subtopics."""

    # For each retrieved document, the subtopics it is relevant to, a letter each; it is judged of
    # grade 0 for every other subtopic
    covers: tuple[str, ...]
    lost: tuple[str, ...] = ()  # the same for each document missed


def _read_alpha(text: str) -> float:
    value = read_number(text)
    if value != 0 and not _LEAST_ALPHA <= value <= 1:
        raise ValueError(f"0, or a number from {_LEAST_ALPHA} to 1")
    return value


_ALPHA = Parameter(
    "alpha",
    "the share of its value that a subtopic loses each time it is covered, 0 to 1",
    _read_alpha,
    default=0.5,
    show=show_number,
)


@measure(
    symbol="alphanDCG",
    title="novelty-biased nDCG",
    formula="alpha-DCG / alpha-DCG of the greedy ideal;  alpha-DCG = sum over ranks i of "
    "gain(i) / log2(i + 1), gain = sum over subtopics of the document of (1 - alpha)^(times the "
    "subtopic was covered above). Finding the best ranking is NP-hard, so the ideal takes the "
    "document of most gain at each rank, as ndeval does: a better ranking scores above 1",
    says="how early the ranking covers every subtopic; a document that repeats subtopics covered "
    "above it counts less",
    source="Clarke et al. 2008, doi:10.1145/1390334.1390446",
    low=0,
    high=None,
    undefined=_NO_REL,
    cutoff="optional",
    parameters=(_ALPHA, REL),
    equals=(
        Equal(_NDEVAL, "alpha-nDCG@K", "K up to 20"),
        Equal("ir_measures 0.4.3", "alpha_nDCG@K", _PYNDEVAL),
    ),
    example=Covered(
        "alphanDCG@2",
        (1, 1, 1),
        (),
        0.8066,
        "subtopics a, a, b, ideal b, a: (1/1 + .5/1.585) / (1/1 + 1/1.585) = 1.3155 / 1.6309",
        covers=("a", "a", "b"),
    ),
    aliases=("alpha_nDCG", "alpha-nDCG"),
)
def alpha_ndcg(evidence: Evidence, *, k: float | None, alpha: float, rel: float) -> Terms:
    """Discounted novel gain over that of the greedy ideal, where ties are broken by document id."""
    judged = _relevant(evidence, rel, "alphanDCG")
    gain, divisor = _novel_gain(evidence, judged, alpha), divisor_of(evidence.rank, "log2", None)
    ideal = np.full(evidence.n, np.nan)
    starts = np.searchsorted(judged.query, np.arange(evidence.n + 1))
    for query in range(evidence.n):
        rows = slice(starts[query], starts[query + 1])
        if rows.start < rows.stop:
            best = _greedy(judged.document[rows], judged.subtopic[rows], alpha, k)
            places = np.arange(1, len(best) + 1)
            ideal[query] = float((best / divisor_of(places, "log2", None)).sum())
    counted = evidence.rank <= (k or np.inf)
    return Terms(gain, 1.0 / divisor, np.where(counted, gain / divisor, 0.0), ideal)


@measure(
    symbol="ERRIA",
    title="intent-aware expected reciprocal rank",
    formula="sum over ranks i of gain(i) / i, divided by its value if every document of the top "
    "k were relevant to every subtopic;  gain = sum over subtopics of the document of "
    "(1 - alpha)^(times the subtopic was covered above)",
    says="how early users who each want one of the subtopics find it, all subtopics equally likely",
    source="Chapelle et al. 2011, doi:10.1007/s10791-011-9167-7; ndeval's normalisation",
    low=0,
    high=1,
    undefined=_NO_REL,
    cutoff="required",
    parameters=(_ALPHA, REL),
    equals=(
        Equal(_NDEVAL, "ERR-IA@K", "K from 2 to 20: at 1 it forgets to normalise"),
        Equal("ir_measures 0.4.3", "ERR_IA@K", f"{_PYNDEVAL}; alpha is 0.5 there"),
    ),
    example=Covered(
        "ERRIA@2",
        (1, 1, 1),
        (),
        0.5,
        "subtopics a, a, b: (1/1 + .5/2) / (2/1 + 2 x .5/2) = 1.25 / 2.5",
        covers=("a", "a", "b"),
    ),
    aliases=("ERR_IA", "ERR-IA"),
)
def intent_aware_err(evidence: Evidence, *, k: float, alpha: float, rel: float) -> Terms:
    """Reciprocal rank of novel documents, over the maximum for any documents."""
    judged = _relevant(evidence, rel, "ERRIA")
    gain = _novel_gain(evidence, judged, alpha)
    term = np.where(evidence.rank <= k, gain / evidence.rank, 0.0)
    subtopics = _number_of_subtopics(judged, evidence.n)
    norm = or_nan(subtopics * _most(int(k), alpha))
    return Terms(gain, 1.0 / evidence.rank, term, norm)


@measure(
    symbol="StRecall",
    title="subtopic recall",
    formula="subtopics with a relevant document in the top k / subtopics with any",
    says="the share of subtopics that the top of the ranking covers",
    source="Zhai, Cohen & Lafferty 2003, doi:10.1145/860435.860440",
    low=0,
    high=1,
    undefined=_NO_REL,
    cutoff="optional",
    parameters=(REL,),
    equals=(
        Equal(_NDEVAL, "strec@K", "K up to 20"),
        Equal("ir_measures 0.4.3", "StRecall@K", _PYNDEVAL),
    ),
    example=Covered(
        "StRecall@2",
        (1, 1, 1),
        (1,),
        0.3333,
        "the top 2 cover a, of a, b and c: 1/3",
        covers=("a", "a", "b"),
        lost=("c",),
    ),
    aliases=("subtopic_recall", "strec"),
)
def subtopic_recall(evidence: Evidence, *, k: float | None, rel: float) -> Terms:
    """Subtopics covered by the top k, divided by those that could be."""
    judged = _relevant(evidence, rel, "StRecall")
    # With alpha = 1 a subtopic is worth something the first time only.
    new = _novel_gain(evidence, judged, 1.0)
    ones = np.ones(len(evidence.rank))
    subtopics = _number_of_subtopics(judged, evidence.n)
    norm = or_nan(subtopics)
    return Terms(new, ones, np.where(evidence.rank <= (k or np.inf), new, 0.0), norm)


def _relevant(evidence: Evidence, rel: float, symbol: str) -> Subtopics:
    """Judgments of a document as relevant to a subtopic.

    Raises:
        InputError: the qrels have no subtopics.
    """
    if evidence.subtopics is None:
        raise InputError(
            f"{symbol} needs judgments by subtopic, and the qrels have none",
            fix="name the subtopic in the second column of TREC qrels "
            "(query subtopic document grade), or in a column called subtopic",
        )
    return evidence.subtopics.relevant(rel)


def _number_of_subtopics(judged: Subtopics, n: int) -> Floats:
    """Subtopics of each query with a relevant document; shape (n,)."""
    _, first = np.unique(judged.subtopic, return_index=True)
    return np.bincount(judged.query[first], minlength=n).astype(np.float64)


def _novel_gain(evidence: Evidence, judged: Subtopics, alpha: float) -> Floats:
    """The gain of each hit, given the hits above it; shape (h,)."""
    document = evidence.document
    assert document is not None
    hits = len(document)
    # Judgments of documents that were retrieved, each with its hit.
    by_number = np.argsort(document)
    place = np.searchsorted(document[by_number], judged.document)
    retrieved = np.flatnonzero(place < hits)
    retrieved = retrieved[document[by_number[place[retrieved]]] == judged.document[retrieved]]
    hit, subtopic = by_number[place[retrieved]], judged.subtopic[retrieved]
    # Hits ascend by rank within a query, and a subtopic is of one query.
    order = np.lexsort((hit, subtopic))
    ordered = subtopic[order]
    times = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return np.bincount(hit[order], np.power(1.0 - alpha, times), minlength=hits).astype(np.float64)


def _greedy(document: Ints, subtopic: Ints, alpha: float, k: float | None) -> Floats:
    """Gains of the greedy ideal ranking of one query, rank by rank, until no document gains.

    Of documents with the same gain, the one with the lowest number (the highest id) comes first.
    """
    documents, row = np.unique(document, return_inverse=True)
    subtopics, column = np.unique(subtopic, return_inverse=True)
    covers = np.zeros((len(documents), len(subtopics)))
    covers[row, column] = 1.0
    worth = np.ones(len(subtopics))
    gains: list[float] = []
    for _ in range(int(min(len(documents), k or math.inf))):
        gain = covers @ worth
        best = int((gain >= gain.max() - _CLOSE).argmax())
        if gain[best] <= 0:
            break
        gains.append(float(gain[best]))
        worth = np.where(covers[best] > 0, worth * (1.0 - alpha), worth)
        covers[best] = 0.0
    return np.array(gains)


def _most(k: int, alpha: float) -> float:
    """Sum over ranks i to k of (1 - alpha)^(i - 1) / i: the maximum from one subtopic."""
    if alpha == 0 and k > _LONG:
        return math.log(k) + np.euler_gamma + 1 / (2 * k)
    # Terms below this rank are too small to change a float.
    rank = np.arange(1, min(k, math.ceil(42 / alpha) if alpha else k) + 1)
    return float((np.power(1.0 - alpha, rank - 1) / rank).sum())
