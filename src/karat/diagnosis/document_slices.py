"""Slices by attributes of the relevant or the returned documents of each query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import polars as pl

from karat.diagnosis.ages import AGE, age_labels
from karat.diagnosis.value_slices import Labels, Slices, labelled
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


def by_relevant(
    scores: Sequence[Scores],
    qrels: Qrels,
    documents: Documents,
    attribute: str,
    counted: Mask,
    *,
    queries: Queries | None = None,
    labelling: Labelling = labelled,
) -> Slices:
    """Queries that have a relevant document with a value, found or not; several for some.

    Args:
        scores: Of all runs in question; the first says which grades are relevant.
        qrels: The judgments.
        documents: The documents.
        attribute: One of ``document_attributes``, or ``AGE``.
        counted: Queries that may be in a slice; shape (n,).
        queries: When they were asked, for ``AGE``.
        labelling: How values become slices.

    Raises:
        InputError: none of the relevant documents is among the documents.
    """
    first = scores[0]
    relevant = qrels.judged(first.evidence.query_ids, first.lowest_rel)
    asked = _Asked(queries, scores, labelling)
    return _of(relevant, documents, attribute, counted, RELEVANT, asked)


def by_returned(
    scores: Sequence[Scores],
    documents: Documents,
    attribute: str,
    counted: Mask,
    *,
    queries: Queries | None = None,
    labelling: Labelling = labelled,
) -> Slices:
    """Queries for which any run has a document with a value among its first ``FIRST``.

    Args:
        scores: Of all runs in question, over the same queries.
        documents: The documents.
        attribute: One of ``document_attributes``, or ``AGE``.
        counted: Queries that may be in a slice; shape (n,).
        queries: When they were asked, for ``AGE``.
        labelling: How values become slices.

    Raises:
        InputError: none of these documents is among the documents.
    """
    depth = scores[0].rules.depth
    first = FIRST if depth is None else min(FIRST, depth)
    heads = [of_run.run.top(of_run.evidence.query_ids, first) for of_run in scores]
    asked = _Asked(queries, scores, labelling)
    return _of(pl.concat(heads), documents, attribute, counted, RETURNED, asked)


class _Asked(NamedTuple):
    queries: Queries | None
    scores: Sequence[Scores]
    labelling: Labelling


def _of(
    pairs: pl.DataFrame,
    documents: Documents,
    attribute: str,
    counted: Mask,
    kind: str,
    asked: _Asked,
) -> Slices:
    """Slices of pairs of ``query`` (its index) and ``doc_id``."""
    if attribute == AGE and AGE not in documents.frame.columns:
        _some_known(pairs, pairs.join(documents.frame, on="doc_id", how="semi"), documents, kind)
        ages = age_labels(pairs, documents, asked.queries, asked.scores)
        return ages.slices(pairs["query"].to_numpy(), counted, kind + attribute)
    # Labels are of all documents there are, so that bands do not depend on the runs.
    held = documents.frame.select("doc_id", value=attribute)
    if held["value"].dtype.base_type() in (pl.List, pl.Array):
        held = held.explode("value")
    labels = asked.labelling(held["value"].alias(attribute))
    coded = held.select("doc_id", code=labels.code)
    met = pairs.join(coded, on="doc_id")
    _some_known(pairs, met, documents, kind)
    found = Labels(labels.names, met["code"].to_numpy())
    return found.slices(met["query"].to_numpy(), counted, kind + attribute)


def _some_known(pairs: pl.DataFrame, known: pl.DataFrame, documents: Documents, kind: str) -> None:
    if pairs.height and not known.height:
        raise InputError(
            f"the file has none of the {kind[:-1]} documents; the first is "
            f"{pairs['doc_id'].sort()[0]}",
            file=documents.source,
            fix="check that these are the documents of the judgments and runs",
        )
