"""Slices: queries that share the value of an attribute, or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from karat.diagnosis._query_slices import (
    by_first_relevant,
    by_form,
    by_frequency,
    by_length,
    by_relevant_documents,
)
from karat.diagnosis.ages import AGE
from karat.diagnosis.document_slices import (
    RELEVANT,
    RETURNED,
    by_documents,
    document_attributes,
    relevant,
    returned,
)
from karat.diagnosis.value_slices import MOST, Slices, labelled, one_value, quartiles
from karat.errors import UsageError, nearest
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.tables import Documents, Qrels, Queries


class Slice(NamedTuple):
    """Some of the judged queries."""

    attribute: str | None  # what they are sliced by; None for all queries
    value: str | None  # the value that they share; None for all queries
    chosen: Mask  # which queries; shape (n,)


BUILT_IN = ("relevant_documents", "first_relevant", "query_length", "query_form", "frequency_band")
"""Derived attributes, which need no column of that name."""

QUARTILES = ":quartiles"  # suffix of a numeric attribute: four bands of about as many values


def slices_of(
    queries: Queries | None,
    attribute: str,
    scores: Sequence[Scores],
    documents: Documents | None = None,
    qrels: Qrels | None = None,
) -> Slices:
    """Each value of an attribute, and which of the judged queries have it; shape (n,).

    An attribute is a column of the queries, or one of these (a column of the same name takes
    precedence):

    - ``relevant_documents``: their number;
    - ``first_relevant``: rank of the first relevant document in the best of the runs;
    - ``query_length``: in words;
    - ``query_form``: keyword or question (``is_question``);
    - ``frequency_band``: head, torso or tail, from a stored ``band``, or from a column
      ``frequency`` or ``count``;
    - ``relevant.NAME``: an attribute of the relevant documents, found or not;
    - ``returned.NAME``: an attribute of the first ten documents of any of the runs;
    - ``relevant.age``, ``returned.age``: how old these were when the query was asked (``ages``);
    - ``NAME:quartiles``: an attribute of numbers, ``query_length`` or ``relevant_documents`` in
      four bands of about as many values.

    A query whose documents have several values is in several slices; otherwise slices share no
    query. Several attributes separated by commas give the combinations that occur. Numbers with
    more than twelve values become bands, and times years (``value_slices.labelled``). Queries
    without a value are ``(none)``, which comes first; those marked ``no_answer`` are in no slice,
    and those with zero weight only in a slice without any others.

    Args:
        queries: The queries, if any were given.
        attribute: What to slice by.
        scores: Of all runs in question (one at least), over the same judgments.
        documents: The documents, for ``relevant.`` and ``returned.``.
        qrels: The judgments, for ``relevant.``.

    Raises:
        UsageError: an unknown attribute, missing input for it, or too many values
            (``value_slices.MOST``).
        InputError: the documents are not those judged or returned; or a frequency is below 0.
    """
    asked = _Asked(queries, scores, documents, qrels)
    found = _found(asked, attribute)
    return [(value, scores[0].counting(chosen)) for value, chosen in found]


def slices_of_queries(queries: Queries, attribute: str) -> Slices:
    """Slices of all queries by their own attributes, without judgments; shape (queries,).

    The same as ``slices_of``, except that every query counts.

    Raises:
        UsageError: an unknown attribute, or one of judgments or documents.
    """
    return _found(_AllQueries(queries, (), None, None), attribute)


def sliceable(attribute: str, queries: Queries | None, documents: Documents | None) -> bool:
    """Whether these queries and documents have an attribute, or each part of a combination."""
    own = [] if queries is None else queries.attributes
    theirs = [] if documents is None else document_attributes(documents)
    known = {*own, "relevant_documents", "first_relevant"}
    known |= {f"{kind}{name}" for kind in (RELEVANT, RETURNED) for name in theirs}
    if queries is not None:
        known |= {"query_length"} if "text" in queries.frame.columns else set()
        known |= {"frequency_band"} if {"frequency", "count"} & set(own) else set()
    return attribute in known or all(part.strip() in known for part in attribute.split(","))


def _found(asked: _Asked, attribute: str) -> Slices:
    """The slices with all of their queries, whether they count or not."""
    if "," not in attribute or attribute in asked.choices:
        return asked.sliced(attribute)
    found = [("", asked.counted)]
    for part in attribute.split(","):
        mine = asked.sliced(part.strip())
        found = [
            (f"{name}, {value}" if name else value, mask & chosen)
            for name, mask in found
            for value, chosen in mine
            if (mask & chosen).any()
        ]
        if len(found) > MOST:
            raise UsageError(
                f"{attribute} has {len(found):,} combinations; at most {MOST:,} are supported",
                fix="combine fewer or coarser attributes",
            )
    return found


@dataclass(frozen=True)
class _Asked:
    queries: Queries | None
    scores: Sequence[Scores]
    documents: Documents | None
    qrels: Qrels | None

    @property
    def query_ids(self) -> list[str]:
        return self.scores[0].evidence.query_ids

    @property
    def counted(self) -> Mask:
        """Judged queries that are not marked ``no_answer``."""
        silent = self.scores[0].rules.no_answer
        return np.array([query not in silent for query in self.query_ids], np.bool_)

    @property
    def topics(self) -> Mask:
        """Those of ``counted`` that are in the topic set of any run."""
        topics: Mask = np.any([of_run.topics for of_run in self.scores], axis=0)
        return self.counted & topics

    @property
    def choices(self) -> list[str]:
        """All attributes to slice by."""
        own = [] if self.queries is None else self.queries.attributes
        theirs = [] if self.documents is None else document_attributes(self.documents)
        theirs += [] if self.documents is None else [AGE]
        of_documents = [f"{kind}{name}" for kind in (RELEVANT, RETURNED) for name in theirs]
        return list(dict.fromkeys([*own, *BUILT_IN, *of_documents]))

    def sliced(self, name: str) -> Slices:
        if self.queries is not None and name in self.queries.attributes:
            return self.by_column(self.queries, name)
        bare = name.removesuffix(QUARTILES)
        banding = bare != name
        if bare == "relevant_documents":
            return by_relevant_documents(self.scores[0], self.counted, in_quartiles=banding)
        if bare.startswith((RELEVANT, RETURNED)):
            return self.by_documents(bare, in_quartiles=banding)
        if banding and bare in BUILT_IN and bare != "query_length":
            raise self.not_numbers(bare)
        if bare == "first_relevant":
            return by_first_relevant(self.scores, self.topics)
        if self.queries is None:
            raise UsageError(
                f"slicing by {name!r} needs the queries and their attributes",
                nearest=() if bare in BUILT_IN else self.near(name),
                fix="add the queries, with it as an attribute",
            )
        if bare in self.queries.attributes:
            return self.by_column(self.queries, bare, in_quartiles=True)
        if bare == "query_length":
            return by_length(self.queries, self.query_ids, self.counted, in_quartiles=banding)
        if bare == "query_form":
            return by_form(self.queries, self.query_ids, self.counted)
        if bare == "frequency_band":
            return by_frequency(self.queries, self.query_ids, self.counted)
        raise self.unknown("queries", name, self.queries.attributes, name)

    def by_column(self, queries: Queries, name: str, *, in_quartiles: bool = False) -> Slices:
        """By a column of the queries. Bands are of the judged queries, not of a whole log."""
        counted = self.counted
        at = np.flatnonzero(counted)
        ids = pl.Series([self.query_ids[index] for index in at], dtype=pl.String)
        mine = pl.DataFrame({"query_id": ids, "query": at})
        column = queries.frame.select("query_id", value=name)
        held = one_value(mine.join(column, on="query_id", how="left", maintain_order="left"))
        labels = (quartiles if in_quartiles else labelled)(held["value"].alias(name))
        return labels.slices(held["query"].to_numpy(), counted, name)

    def by_documents(self, name: str, *, in_quartiles: bool = False) -> Slices:
        """By an attribute of the documents."""
        if self.documents is None:
            raise UsageError(
                f"slicing by {name} needs the documents and their attributes",
                fix="add the documents, with it as an attribute",
            )
        bare = name.partition(".")[2]
        held = document_attributes(self.documents)
        if bare not in {*held, AGE}:
            raise self.unknown("documents", bare, held, name)
        if in_quartiles and bare not in held:
            raise self.not_numbers(name)
        if name.startswith(RETURNED):
            pairs, counted = returned(self.scores), self.counted
        elif self.qrels is None:
            raise UsageError(f"slicing by {name} needs the judgments")
        else:
            pairs, counted = relevant(self.scores, self.qrels), self.topics
        return by_documents(
            pairs, self.documents, name, counted, queries=self.queries, scores=self.scores,
            labelling=quartiles if in_quartiles else labelled,
        )  # fmt: skip

    def not_numbers(self, name: str) -> UsageError:
        """Quartiles of a derived attribute that has slices of its own."""
        return UsageError(
            f"quartiles are of numbers, and {name} has slices of its own",
            fix=f"slice by {name}",
        )

    def unknown(self, what: str, name: str, held: Sequence[str], typed: str) -> UsageError:
        """The error for an unknown attribute, with suggestions."""
        return UsageError(
            f"{what} have no attribute {name!r}; they have {', '.join(held)}"
            if held
            else f"{what} have no attributes, so none called {name!r}",
            nearest=self.near(typed),
        )

    def near(self, name: str) -> list[str]:
        """The nearest attributes; those of documents that end in the name, if any."""
        bare = [choice for choice in self.choices if name and choice.partition(".")[2] == name]
        return bare or nearest(name, self.choices, 1)


class _AllQueries(_Asked):
    """Queries that need not be judged."""

    @property
    def query_ids(self) -> list[str]:
        assert self.queries is not None
        ids: list[str] = self.queries.frame["query_id"].to_list()
        return ids

    @property
    def counted(self) -> Mask:
        return np.ones(len(self.query_ids), np.bool_)

    def sliced(self, name: str) -> Slices:
        assert self.queries is not None
        own = self.queries.attributes
        if name.removesuffix(QUARTILES) in {"relevant_documents", "first_relevant"} - {*own}:
            raise UsageError(f"slicing by {name} needs judgments", fix="--by query_length")
        return super().sliced(name)
