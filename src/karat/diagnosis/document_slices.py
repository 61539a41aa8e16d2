"""Slices by attributes of the relevant or the returned documents of each query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import polars as pl

from karat.diagnosis.ages import AGE, age_labels
from karat.diagnosis.value_slices import Labels, Slices, one_value
from karat.errors import InputError
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.tables import Documents, Qrels, Queries

RELEVANT, RETURNED = "relevant.", "returned."

FIRST = 10  # number of top documents of each run for `returned.`


def of_documents(by: Iterable[str]) -> bool:
    """Whether any attribute, or part of a combination, is one of the documents."""
    parts = (part.strip() for attribute in by for part in attribute.split(","))
    return any(part.startswith((RELEVANT, RETURNED)) for part in parts)


def document_attributes(documents: Documents) -> list[str]:
    """The columns of documents one can slice by: all but the id, the title and the text."""
    return [name for name in documents.frame.columns if name not in {"doc_id", "title", "text"}]


Labelling = Callable[[pl.Series], Labels]  # the slices of a column of values


def relevant(scores: Sequence[Scores], qrels: Qrels) -> pl.DataFrame:
    """The relevant documents, found or not: ``query`` (its index) and ``doc_id``."""
    first = scores[0]
    return qrels.judged(first.evidence.query_ids, first.lowest_rel)


def returned(scores: Sequence[Scores]) -> pl.DataFrame:
    """The first ``FIRST`` documents of each of several runs, likewise."""
    depth = scores[0].rules.depth
    first = FIRST if depth is None else min(FIRST, depth)
    return pl.concat([of_run.run.top(of_run.evidence.query_ids, first) for of_run in scores])


def by_documents(
    pairs: pl.DataFrame,
    documents: Documents,
    name: str,
    counted: Mask,
    *,
    queries: Queries | None,
    scores: Sequence[Scores],
    labelling: Labelling,
) -> Slices:
    """Queries that have a document with a value; several slices for some.

    Args:
        pairs: The documents of each query: ``relevant`` or ``returned`` ones.
        documents: All documents.
        name: ``RELEVANT`` or ``RETURNED``, and one of ``document_attributes`` or ``AGE``.
        counted: Queries that may be in a slice; shape (n,).
        queries: When they were asked, for ``AGE``.
        scores: Of all runs in question, whose time counts where that of the queries is unknown.
        labelling: How values become slices.

    Raises:
        InputError: none of these documents is among the documents.
    """
    kind, _, attribute = name.partition(".")
    if attribute == AGE and AGE not in documents.frame.columns:
        known = pairs.join(documents.frame, on="doc_id", how="semi")
        _some_known(pairs, known, documents, kind)
        ages = age_labels(pairs, documents, queries, scores)
        return ages.slices(pairs["query"].to_numpy(), counted, name)
    # Labels are of all documents there are, so that bands do not depend on the runs.
    held = one_value(documents.frame.select("doc_id", value=attribute))
    labels = labelling(held["value"].alias(attribute))
    coded = held.select("doc_id", code=labels.code)
    met = pairs.join(coded, on="doc_id")
    _some_known(pairs, met, documents, kind)
    return Labels(labels.names, met["code"].to_numpy()).slices(
        met["query"].to_numpy(), counted, name
    )


def _some_known(pairs: pl.DataFrame, known: pl.DataFrame, documents: Documents, kind: str) -> None:
    if pairs.height and not known.height:
        raise InputError(
            f"the file has none of the {kind} documents; the first is {pairs['doc_id'].sort()[0]}",
            file=documents.source,
            fix="check that these are the documents of the judgments and runs",
        )
