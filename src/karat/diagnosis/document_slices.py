"""Slices by documents: what the relevant or the returned documents of each query are like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from karat.diagnosis.value_slices import Labels, Slices, labelled
from karat.errors import InputError
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.tables import Documents, Qrels

RELEVANT, RETURNED = "relevant.", "returned."

FIRST = 10
"""How many documents of each run ``returned.`` looks at."""


def of_documents(by: Iterable[str]) -> bool:
    """Whether any attribute, or part of a combination, is one of the documents."""
    parts = (part.strip() for attribute in by for part in attribute.split(","))
    return any(part.startswith((RELEVANT, RETURNED)) for part in parts)


def document_attributes(documents: Documents) -> list[str]:
    """The columns of documents one can slice by: all but the id, the title and the text."""
    return [name for name in documents.frame.columns if name not in {"doc_id", "title", "text"}]


def by_relevant(
    scores: Scores, qrels: Qrels, documents: Documents, attribute: str, counted: Mask
) -> Slices:
    """Queries that have a relevant document with a value, found or not; several for some.

    Args:
        scores: Of any run; says which grades are relevant.
        qrels: The judgments.
        documents: The documents.
        attribute: One of ``document_attributes``.
        counted: Queries that may be in a slice; shape (n,).

    Raises:
        InputError: none of the relevant documents is among the documents.
    """
    relevant = qrels.judged(scores.evidence.query_ids, scores.lowest_rel)
    return _of(relevant, documents, attribute, counted, RELEVANT)


def by_returned(
    scores: Sequence[Scores], documents: Documents, attribute: str, counted: Mask
) -> Slices:
    """Queries for which any run has a document with a value among its first ``FIRST``.

    Args:
        scores: Of all runs in question, over the same queries.
        documents: The documents.
        attribute: One of ``document_attributes``.
        counted: Queries that may be in a slice; shape (n,).

    Raises:
        InputError: none of these documents is among the documents.
    """
    depth = scores[0].rules.depth
    first = FIRST if depth is None else min(FIRST, depth)
    heads = [of_run.run.top(of_run.evidence.query_ids, first) for of_run in scores]
    return _of(pl.concat(heads), documents, attribute, counted, RETURNED)


def _of(
    pairs: pl.DataFrame, documents: Documents, attribute: str, counted: Mask, kind: str
) -> Slices:
    """Slices of pairs of ``query`` (its index) and ``doc_id``."""
    # Labels are of all documents there are, so that bands do not depend on the runs.
    held = documents.frame.select("doc_id", value=attribute)
    if held["value"].dtype.base_type() in (pl.List, pl.Array):
        held = held.explode("value")
    labels = labelled(held["value"].alias(attribute))
    coded = held.select("doc_id", code=labels.code)
    met = pairs.join(coded, on="doc_id")
    if pairs.height and not met.height:
        raise InputError(
            f"none of the {kind[:-1]} documents is here, so nothing is known of them; the first "
            f"is {pairs['doc_id'].sort()[0]}",
            file=documents.source,
            fix="are these the documents of these judgments and runs?",
        )
    found = Labels(labels.names, met["code"].to_numpy())
    return found.slices(met["query"].to_numpy(), counted, kind + attribute)
