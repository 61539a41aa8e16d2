"""Expectations: where a document must rank for one query, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from karat.errors import UsageError


@dataclass(frozen=True, slots=True)
class Answer:
    """The documents returned for one query."""

    query: str
    doc_ids: tuple[str, ...]  # the documents, best first, distinct


@dataclass(frozen=True, slots=True)
class Broken:
    """An expectation that an answer does not meet."""

    expected: str  # the expectation, such as `"a" in the top 3`
    because: str  # the reason, in the author's words
    found: str  # the actual result
    answer: Answer
    named: tuple[str, ...] = ()  # the documents of the expectation


def top(answer: Answer, k: int, doc_id: str | int, *, because: str) -> Broken | None:
    """Expect a document in the top k.

    Raises:
        UsageError: ``k`` is not a whole number from 1, an id is not text, or the reason is missing.
    """
    document, reason, k = _doc_id(doc_id), _reason(because), _depth(k, "k")
    rank = _rank(answer, document)
    if rank is not None and rank <= k:
        return None
    where = f'"{document}" in the top {k}' if k > 1 else f'"{document}" on top'
    return Broken(where, reason, _position(answer, document), answer, (document,))


def absent(
    answer: Answer, doc_id: str | int, *, within: int | None = None, because: str
) -> Broken | None:
    """Expect a document not to be shown, or not in the top ``within``.

    An empty answer does not meet it: a search that is down shows nothing wrong either.

    Raises:
        UsageError: ``within`` is not a whole number from 1, an id is not text, or the reason is
            missing.
    """
    document, reason = _doc_id(doc_id), _reason(because)
    within = None if within is None else _depth(within, "within")
    rank = _rank(answer, document)
    expected = f'"{document}" not {"returned" if within is None else f"in the top {within}"}'
    if not answer.doc_ids:
        found = "the search returned nothing at all; if that is right, expect nothing(…)"
        return Broken(expected, reason, found, answer)
    if rank is None or (within is not None and rank > within):
        return None
    return Broken(expected, reason, _position(answer, document), answer, (document,))


def before(answer: Answer, doc_id: str | int, other: str | int, *, because: str) -> Broken | None:
    """Expect a document before another; it must be returned, the other need not be.

    Raises:
        UsageError: the two are the same, an id is not text, or the reason is missing.
    """
    first, second, reason = _doc_id(doc_id), _doc_id(other), _reason(because)
    if first == second:
        raise UsageError(f'"{first}" cannot be before itself', fix='before("a", "b", …)')
    rank, behind = _rank(answer, first), _rank(answer, second)
    if rank is not None and (behind is None or rank < behind):
        return None
    found = f"{_position(answer, first)}; {_position(answer, second)}"
    if not answer.doc_ids:
        found = _position(answer, first)
    return Broken(f'"{first}" before "{second}"', reason, found, answer, (first, second))


def nothing(answer: Answer, *, because: str) -> Broken | None:
    """Expect no document: the query has no right answer.

    Raises:
        UsageError: the reason is missing.
    """
    reason, count = _reason(because), len(answer.doc_ids)
    if not count:
        return None
    found = f"{count:,} {'document was' if count == 1 else 'documents were'} returned"
    return Broken("no document", reason, found, answer)


def _rank(answer: Answer, doc_id: str) -> int | None:
    return answer.doc_ids.index(doc_id) + 1 if doc_id in answer.doc_ids else None


def _position(answer: Answer, doc_id: str) -> str:
    rank, count = _rank(answer, doc_id), len(answer.doc_ids)
    if not count:
        return "the search returned nothing at all"
    if rank is None:
        return f'"{doc_id}" is not among the {count:,} returned'
    return f'"{doc_id}" is at rank {rank:,} of {count:,}'


def _doc_id(value: Any) -> str:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str) or not value:
        raise UsageError(f"{value!r} is not a document id", fix='text, as in top(3, "a", …)')
    return value


def _depth(value: Any, what: str) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{what} is {value!r}, not a whole number from 1", fix='top(3, "a", …)')
    return int(value)


def _reason(because: Any) -> str:
    if not isinstance(because, str) or not because.strip():
        raise UsageError(
            f"the reason is {because!r}; it is needed when the expectation fails",
            fix='because="ticket 12: a typo in the log"',
        )
    return because.strip()


def best_first(doc_ids: Sequence[str], scores: Sequence[float]) -> tuple[str, ...]:
    """Distinct documents by score, -1, -2, … if the search has none; ties as returned."""
    order = sorted(range(len(doc_ids)), key=lambda place: -scores[place])
    return tuple(doc_ids[place] for place in order)
