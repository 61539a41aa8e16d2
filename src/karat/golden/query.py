"""A query of a golden set, and its validation."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import polars as pl

from karat.errors import InputError

PERSON = "person"  # the default source of a grade
Scalar = str | int | float | bool

_RESERVED = {"query_id", "query", "text", "relevant_docs", "sources", "no_answer"}

_K = TypeVar("_K")
_V = TypeVar("_V")


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError(
        "a query of a golden set is changed by golden.judge(…), or by golden.remove(…) and "
        "golden.add(…)"
    )


class Fixed(dict[_K, _V]):
    """A read-only dict.

    Unlike a mappingproxy it can be copied, pickled and written as JSON.
    """

    def __reduce__(self) -> tuple[type, tuple[dict[_K, _V]]]:
        return Fixed, (dict(self),)


for _name in (
    *("__setitem__", "__delitem__", "__ior__"),
    *("update", "setdefault", "pop", "popitem", "clear"),
):
    setattr(Fixed, _name, _refuse)


@dataclass(frozen=True, slots=True)
class Judgment:
    """One grade and its source."""

    grade: float  # how relevant the document is; 0 is judged and not relevant
    source: str = PERSON  # `person`, `clicks`, or any other text


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """One query of a golden set; immutable."""

    query_id: str
    text: str
    judgments: Mapping[str, Judgment] = field(default_factory=dict)  # document id to judgment
    no_answer: bool = False  # whether it has no right answer: a good system returns nothing
    # category, difficulty, need, origin, weight, and any others
    attributes: Mapping[str, Scalar] = field(default_factory=dict)
    # False for a query that has not been judged yet. A judged query without judgments has no
    # relevant document.
    judged: bool = True

    def __post_init__(self) -> None:
        if self.judgments or self.no_answer:
            object.__setattr__(self, "judged", True)
        object.__setattr__(self, "judgments", Fixed(self.judgments))
        object.__setattr__(self, "attributes", Fixed(self.attributes))

    @property
    def grades(self) -> dict[str, float]:
        """The grade of each judged document."""
        return {doc_id: judgment.grade for doc_id, judgment in self.judgments.items()}


@dataclass(frozen=True, slots=True)
class Where:
    """A location for error messages."""

    source: str  # the file, or the name of the golden set
    line: int | None = None  # line from 1, in files with a query per line
    item: int | None = None  # place in the list from 1, elsewhere

    def wrong(
        self, what: str, query: str | None = None, doc_id: str | None = None, fix: str | None = None
    ) -> InputError:
        """The error for this place."""
        what = what if self.item is None else f"item {self.item}: {what}"
        return InputError(
            what, file=self.source, line=self.line, query=query, doc_id=doc_id, fix=fix
        )


class ImportedExchange:
    """A collection of queries with distinct ids; texts may repeat only with explicit ids."""

    def __init__(self, queries: Iterable[GoldenQuery] = ()) -> None:
        self.queries: dict[str, GoldenQuery] = {}
        self.ids_of: dict[str, list[str]] = {}
        for query in queries:
            self.put(query)

    def fresh(self) -> str:
        """The next generated id that is free: q and a number."""
        place = len(self.queries) + 1
        while f"q{place}" in self.queries:
            place += 1
        return f"q{place}"

    def refuse(self, query_id: str, text: str, *, named: bool, where: Where) -> None:
        """Refuse a duplicate id, or a duplicate text without an id of its own.

        Raises:
            InputError: the id or the text is a duplicate.
        """
        if query_id in self.queries:
            raise where.wrong(
                f"query_id {query_id!r} is already used by {short(self.queries[query_id].text)}",
                fix="give every query its own query_id",
            )
        if not named and text in self.ids_of:
            raise where.wrong(
                f"the query {short(text)} already exists, as {self.ids_of[text][0]}",
                fix="keep one of them, or give each its own query_id",
            )

    def put(self, query: GoldenQuery) -> None:
        """Add a query, or replace the one with the same id (and text)."""
        if query.query_id not in self.queries:
            self.ids_of.setdefault(query.text, []).append(query.query_id)
        self.queries[query.query_id] = query

    def drop(self, query_id: str) -> None:
        """Remove a query."""
        ids = self.ids_of[self.queries.pop(query_id).text]
        ids.remove(query_id)
        if not ids:
            self.ids_of = {text: others for text, others in self.ids_of.items() if others}


def golden_query(
    where: Where,
    query_id: Any,
    text: Any,
    relevant: Any,
    *,
    no_answer: Any = False,
    source: Any = PERSON,
    sources: Any = None,
    scale: tuple[float, float] | None = None,
    attributes: Mapping[str, Any],
) -> GoldenQuery:
    """One validated query.

    Args:
        where: Its location, for error messages.
        query_id: Text or a whole number.
        text: The text of the query.
        relevant: ``{document: grade}``, or documents of grade 1. Empty: the query has no relevant
            document. None: it has not been judged yet.
        no_answer: Whether it has no right answer.
        source: Source of grades that ``sources`` does not name.
        sources: ``{document: source}``, or None.
        scale: Lowest and highest grade, or None.
        attributes: Text, numbers, or true and false; None is left out.

    Raises:
        InputError: a value is invalid.
    """
    query_id = identifier(query_id, "query_id", where)
    text = text_of(text, "query", where, query_id)
    if not isinstance(no_answer, bool):
        raise where.wrong(f"no_answer is {short(no_answer)}, not true or false", query_id)
    grades = {} if relevant is None else graded(relevant, where, query_id, scale)
    # The highest grade is an answer; lower ones may be related documents.
    top = scale[1] if scale else 1.0
    if no_answer and (answer := next((doc for doc in grades if grades[doc] >= top), None)):
        raise where.wrong(
            f"the query is marked no_answer, and document {answer} has grade {grades[answer]:g}",
            query_id,
            answer,
            "remove no_answer, or declare a scale on which this is not the highest grade",
        )
    named = _sources(sources, grades, where, query_id)
    source = text_of(source, "source", where, query_id)
    judgments = {doc: Judgment(grade, named.get(doc, source)) for doc, grade in grades.items()}
    checked = {
        _attribute_name(name, where, query_id): _attribute(name, value, where, query_id)
        for name, value in attributes.items()
        if value is not None
    }
    return GoldenQuery(query_id, text, judgments, no_answer, checked, relevant is not None)


def graded(
    relevant: Any, where: Where, query_id: str, scale: tuple[float, float] | None
) -> dict[str, float]:
    """``{document: grade}`` from a mapping, or from documents of grade 1.

    Raises:
        InputError: neither, a duplicate document, or a grade that is not finite or off the scale.
    """
    if isinstance(relevant, Mapping):
        pairs = list(relevant.items())
    elif isinstance(relevant, str | bytes) or not isinstance(relevant, Iterable):
        raise where.wrong(
            f"the judged documents are {short(relevant)}, not ids",
            query_id,
            fix='{"a": 3, "b": 0}, or a list of the relevant ones: ["a"]',
        )
    else:
        pairs = [(doc, 1) for doc in relevant]
    out: dict[str, float] = {}
    for doc, grade in pairs:
        doc_id = identifier(doc, "doc_id", where, query_id)
        if doc_id in out:
            raise where.wrong(f"duplicate document {doc_id}", query_id, doc_id, "keep one")
        out[doc_id] = value = number_of(grade)
        if not math.isfinite(value):
            raise where.wrong(
                f"the grade of document {doc_id} is {short(grade)}, not a finite number",
                query_id,
                doc_id,
            )
        if scale and (value > scale[1] or 0 <= value < scale[0]):
            raise where.wrong(
                f"grade {value:g} of document {doc_id} is not on the scale "
                f"{scale[0]:g} to {scale[1]:g}",
                query_id,
                doc_id,
            )
    return out


def identifier(value: Any, what: str, where: Where, query: str | None = None) -> str:
    """An id as text, from text or a whole number of any size.

    Raises:
        InputError: it is neither, or empty.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, UUID):
        raise where.wrong(f"the {what} is {short(value)}, not text", query, fix=f"str({what})")
    return text_of(value, what, where, query)


def judgment_frame(queries: Iterable[GoldenQuery]) -> pl.DataFrame:
    """The judgments of queries: ``query_id``, ``doc_id``, ``grade``."""
    rows = [(q.query_id, doc, j.grade) for q in queries for doc, j in q.judgments.items()]
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def without_relevant(queries: Iterable[GoldenQuery]) -> list[str]:
    """Ids of the judged queries without any judged document.

    Queries marked ``no_answer`` are left out: they have a row of their own in results.
    """
    return [q.query_id for q in queries if q.judged and not q.judgments and not q.no_answer]


def query_frame(queries: Sequence[GoldenQuery], source: str = "golden set") -> pl.DataFrame:
    """``query_id``, ``text``, ``no_answer`` if any query is marked so, and every attribute.

    An attribute with values of one type has that type; otherwise it becomes text.

    Raises:
        InputError: only some queries have a weight; ``source`` is named as the file.
    """
    bare = [query.query_id for query in queries if "weight" not in query.attributes]
    if 0 < len(bare) < len(queries):
        raise InputError(
            "the query has no weight, and others have one",
            file=source,
            query=bare[0],
            fix="give every query a weight",
        )
    columns = [
        pl.Series("query_id", [q.query_id for q in queries], dtype=pl.String),
        pl.Series("text", [q.text for q in queries], dtype=pl.String),
    ]
    if any(q.no_answer for q in queries):
        columns.append(pl.Series("no_answer", [q.no_answer for q in queries], dtype=pl.Boolean))
    for name in dict.fromkeys(name for q in queries for name in q.attributes):
        columns.append(_series(name, [q.attributes.get(name) for q in queries]))
    return pl.DataFrame(columns)


def text_of(value: Any, what: str, where: Where, query: str | None, *, empty: bool = False) -> str:
    """A validated text: not empty (unless ``empty``) and valid Unicode.

    Raises:
        InputError: it is not.
    """
    if not isinstance(value, str):
        raise where.wrong(f"the {what} is {short(value)}, not text", query)
    if not empty and not value.strip():
        raise where.wrong(f"the {what} is empty", query)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise where.wrong(
            f"the {what} holds half of a surrogate pair, which is not a character"
        ) from None
    return str(value)


def number_of(value: Any) -> float:
    """A number as a float; NaN for anything else."""
    if isinstance(value, str | bytes | bool):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def short(value: Any) -> str:
    """The ``repr`` of a value, cut at 60 characters."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - any class's repr, or a number of more than 4,300 digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:60]}…"


def _sources(
    sources: Any, grades: Mapping[str, float], where: Where, query_id: str
) -> dict[str, str]:
    if sources is None:
        return {}
    if not isinstance(sources, Mapping):
        raise where.wrong("sources is not an object of documents", query_id)
    unknown = next((doc for doc in sources if doc not in grades), None)
    if unknown is not None:
        raise where.wrong(f"document {unknown} has a source and no grade", query_id, unknown)
    return {doc: text_of(source, "source", where, query_id) for doc, source in sources.items()}


def _attribute_name(name: str, where: Where, query_id: str) -> str:
    if name in _RESERVED:
        raise where.wrong(f"an attribute cannot be called {name!r}", query_id)
    return text_of(name, "name of an attribute", where, query_id)


def _attribute(name: str, value: Any, where: Where, query_id: str) -> Scalar:
    if name == "weight" and number_of(value) != 0 and not 1e-9 <= number_of(value) <= 1e9:
        raise where.wrong(
            f"the weight is {short(value)}, neither 0 nor a number from 1e-9 to 1e9", query_id
        )
    if isinstance(value, str):
        return text_of(value, name, where, query_id, empty=True)
    if isinstance(value, bool):
        return value
    if not isinstance(value, int | float) or not math.isfinite(number_of(value)):
        raise where.wrong(
            f"{name} is {short(value)}; attributes are text, numbers, or true and false", query_id
        )
    return value


def _series(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and float in kinds:
        return pl.Series(name, [None if v is None else float(v) for v in values], dtype=pl.Float64)
    if kinds in ({int}, {bool}):
        try:
            return pl.Series(name, values)
        except (OverflowError, TypeError, pl.exceptions.PolarsError):
            pass
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pl.Series(name, texts, dtype=pl.String)
