"""Validates what a search function returned and converts it to a ranking."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

EXPECTED = (
    'ids ["a", "b"], pairs [("a", 1.5), ("b", 0.5)], or dicts [{"id": "a", "score": 1.5}], '
    "best first; an empty list if nothing was found"
)
_IDS = ("id", "doc_id", "_id")
_SCORES = ("score", "_score")


class Unusable(Exception):
    """The returned value is not a ranking.

    Attributes:
        kind: What is wrong with its shape, the same text for the same mistake; None if only one
            value in it is wrong.
        came: The returned value, truncated.
    """

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.came = ""


def common_reason(error: str) -> str:
    """The error of a query without its document or position, to group equal errors."""
    return _OWN.sub(r"\1", error)


_OWN = re.compile(r"^(an? (?:score|id) [^(]*) \((?:document|result) .*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranking in the order returned."""

    doc_ids: list[str]  # the documents, each once
    scores: list[float]  # their scores; if none were returned, minus the rank: -1, -2, …
    repeated: int  # number of duplicate documents left out
    scored: bool = False  # whether scores were returned

    @property
    def by_doc(self) -> dict[str, float]:
        """The score of each document, in the order returned."""
        return dict(zip(self.doc_ids, self.scores, strict=True))


def ranked(value: Any) -> Ranked:
    """The ranking that a search function returned.

    Of duplicate documents the first counts. Integer ids become decimal text. Scores need not
    descend.

    Raises:
        Unusable: the value has none of the shapes of ``EXPECTED``, or a score is NaN.
    """
    items = listed(value)
    try:
        return _ranked(items)
    except Unusable as error:
        error.came = shown(items)
        raise


def listed(value: Any) -> list[Any]:
    """What a search function returned as a list; an iterator is consumed.

    Raises:
        Unusable: the value has no order.
    """
    kind = type(value).__name__
    try:
        if value is None:
            raise Unusable("it returned None; expected a list", "None")
        if isinstance(value, str | bytes | Mapping) or hasattr(value, "columns"):
            raise Unusable(f"it returned {kind_of(value)}; expected a list", kind)
        if isinstance(value, set | frozenset):
            raise Unusable(f"it returned {kind_of(value)}, which has no order", kind)
        try:
            items = iter(value)
        except TypeError:
            raise Unusable(f"it returned {kind_of(value)}; expected a list", kind) from None
    except Unusable as error:
        error.came = shown(value)
        raise
    return list(items)


def _ranked(items: Sequence[Any]) -> Ranked:
    pairs = [_pair(item, place) for place, item in enumerate(items, 1)]
    bare = sum(score is None for _, score in pairs)
    if 0 < bare < len(pairs):
        raise Unusable("some documents have a score and others have none", "scores for some only")
    first: dict[str, float | None] = {}
    for doc_id, score in pairs:
        first.setdefault(doc_id, score)
    scores = [float(-rank) if s is None else s for rank, s in enumerate(first.values(), 1)]
    return Ranked(list(first), scores, len(pairs) - len(first), bare < len(pairs))


def shown(value: Any, most: int = 120) -> str:
    """A value for an error message: in one line, truncated."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a foreign repr may raise anything
        text = kind_of(value)
    text = "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
    return text if len(text) <= most else f"{text[:most]}…"


def _pair(item: Any, place: int) -> tuple[str, float | None]:
    if isinstance(item, tuple | list):
        if len(item) != 2:
            parts = "1 part" if len(item) == 1 else f"{len(item)} parts"
            raise Unusable(f"result {place} has {parts}, not id and score", "not a pair")
        doc_id = _doc_id(item[0], place)
        return doc_id, _score(item[1], doc_id)
    if isinstance(item, Mapping):
        key = next((key for key in _IDS if item.get(key) is not None), None)
        if key is None:
            keys = ", ".join(repr(name) for name in list(item)[:8])
            raise Unusable(
                f"result {place} has no 'id'{f', only {keys}' if keys else ''}", "a dict without id"
            )
        doc_id = _doc_id(item[key], place)
        score = next((item[name] for name in _SCORES if item.get(name) is not None), None)
        return doc_id, None if score is None else _score(score, doc_id)
    return _doc_id(item, place), None


def _doc_id(value: Any, place: int) -> str:
    if type(value) is str and value.isascii() and value:  # most ids, without a look at classes
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str):
        kind = type(value).__name__
        how = " (give str(id))" if isinstance(value, UUID) else ""
        raise Unusable(
            f"result {place} is {kind_of(value)}; ids are text{how}", f"a {kind} for an id"
        )
    if not value:
        raise Unusable(f"an id is empty (result {place})")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unusable(f"an id contains half a surrogate pair (result {place})") from None
    return str(value)


def _score(value: Any, doc_id: str) -> float:
    if type(value) is float and not math.isnan(value):
        return value
    if not isinstance(value, Real | Decimal) or isinstance(value, bool):
        kind = type(value).__name__
        raise Unusable(f"a score is {kind_of(value)} (document {doc_id})", f"a {kind} for a score")
    try:
        score = float(value)
    except ValueError:  # a signalling NaN of Decimal
        score = math.nan
    except OverflowError:
        raise Unusable(f"a score is too large (document {doc_id})") from None
    if math.isnan(score):
        raise Unusable(f"a score is NaN (document {doc_id})")
    return score


def kind_of(value: Any) -> str:
    """The type of a value with its article: ``a dict``; ``None`` for None."""
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[:1] in 'aeiouAEIO' else 'a'} {kind}"
