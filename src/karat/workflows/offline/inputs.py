"""Inputs: a path, dict, data frame or object of another library becomes a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from karat import formats
from karat.diagnosis.document_slices import of_documents
from karat.errors import InputError, UsageError, but
from karat.tables import Documents, Qrels, Queries, Run
from karat.tables.incoming import records
from karat.workflows.golden.golden_set import GoldenSet


def qrels(value: Any) -> Qrels:
    """Judgments from any form that ``evaluate`` accepts."""
    if isinstance(value, Qrels):
        return value
    if isinstance(value, GoldenSet):
        return value.qrels
    if isinstance(value, str | Path):
        return formats.read_qrels(value)
    value = _plain(value, "qrels")
    if isinstance(value, Mapping):
        return Qrels.from_dict(value)
    if isinstance(value, list | tuple | AbstractSet):
        raise InputError(
            f"a {type(value).__name__} does not say which query its judgments belong to",
            file="qrels",
            fix='{"q1": {"a", "c"}}, or with grades {"q1": {"a": 3, "c": 1}}',
        )
    return Qrels.from_frame(value)


def golden_set(value: Any) -> GoldenSet | None:
    """The value if it is a golden set."""
    return value if isinstance(value, GoldenSet) else None


def runs(value: Any) -> list[Run]:
    """One run, a list of them, or ``{name: run}``; always as a list."""
    value = _plain(value, "run")
    if isinstance(value, Mapping) and _names_runs(value):
        return [_named(item, name) for name, item in value.items()]
    values = value if isinstance(value, list | tuple) else [value]
    return [_run(item) for item in values]


def named_runs(baseline: Any, candidates: Any) -> list[Run]:
    """A baseline and its candidates; runs without a name become ``baseline`` and ``candidate``."""
    baseline, candidates = _plain(baseline, "run"), _plain(candidates, "run")
    first, others = runs(baseline), runs(candidates)
    if len(first) != 1:
        raise UsageError(f"expected one baseline, got {len(first)}", fix="baseline=one run")
    if _nameless(baseline):
        first = [first[0].named("baseline")]
    if not isinstance(candidates, list | tuple):
        return first + ([others[0].named("candidate")] if _nameless(candidates) else others)
    named = [
        run.named("candidate") if _nameless(value) else run
        for value, run in zip(candidates, others, strict=True)
    ]
    return first + named


def _plain(value: Any, source: str) -> Any:
    """The data in an iterator, a list of rows, or ranx' Qrels and Run; other values unchanged."""
    if isinstance(value, Iterator):
        value = list(value)
    rows = records(value, source)
    if rows is not None:
        return rows
    if isinstance(value, Run | Qrels) or hasattr(type(value), "columns"):
        return value
    return value.to_dict() if callable(getattr(value, "to_dict", None)) else value


def _nameless(value: Any) -> bool:
    """Whether a value is a run without a name."""
    if isinstance(value, Mapping):
        return not _names_runs(value)
    return not isinstance(value, Run | str | Path)


def _names_runs(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping is ``{name: run}`` rather than a run.

    A run maps queries to ``{document: score}``, a ranked list, or None. A mapping whose values are
    such mappings, paths or data frames is ``{name: run}``.
    """
    values = list(value.values())
    if any(one is None or (_ranks(one) and records(one, "run") is None) for one in values):
        return False
    return any(
        any(isinstance(docs, Mapping) or _ranks(docs) for docs in one.values())
        if isinstance(one, Mapping)
        else True
        for one in values
    )


def _ranks(value: Any) -> bool:
    return isinstance(value, list | tuple | AbstractSet)


def queries(value: Any) -> Queries | None:
    """Queries, or None if none were given."""
    if value is None or isinstance(value, Queries):
        return value
    if isinstance(value, GoldenSet):
        return value.queries
    if isinstance(value, str | Path):
        return formats.read_queries(value)
    return Queries.from_frame(_plain(value, "queries"))


def about(value: Any, qrels: Any) -> Queries | None:
    """Queries; if None, those included with the judgments."""
    if value is None and isinstance(qrels, GoldenSet):
        return qrels.queries
    if value is None and isinstance(qrels, str | Path) and formats.holds_queries(qrels):
        return formats.read_queries(qrels)
    return queries(value)


def belong(queries: Queries, judgments: Qrels) -> bool:
    """Whether queries and judgments come from one golden set: its file, folder or object.

    The queries of a BEIR folder with several splits belong to all splits, so to none alone.
    """
    if queries.source == judgments.source:
        return True
    folder = Path(judgments.source).parent
    return (
        folder.name == "qrels"
        and Path(queries.source).parent == folder.parent
        and len(list(folder.glob("*.tsv*"))) < 2
    )


def documents(value: Any) -> Documents | None:
    """Documents, or None if none were given."""
    if value is None or isinstance(value, Documents):
        return value
    if isinstance(value, str | Path):
        return formats.read_documents(value)
    return Documents.from_frame(value)


def documents_for(by: Sequence[str], value: Any, qrels: Any) -> Documents | None:
    """The documents to slice by, read once; None if no slice needs them, or there are none."""
    if value is None and of_documents(by) and isinstance(qrels, str | Path):
        within = Path(qrels)
        if within.is_dir() and any(within.glob("corpus.jsonl*")):
            return formats.read_documents(within)
    return documents(value) if by else None


def collapsed(systems: list[Run], chunks: Any, column: str) -> list[Run]:
    """Runs with chunks folded into the documents that a column names."""
    table = documents(chunks)
    if table is None:
        raise UsageError(
            "collapse requires documents that say which document each chunk belongs to",
            fix="--documents FILE, with doc_id and the column to collapse by",
        )
    parents = table.parents(column)
    return [run.collapse(parents) for run in systems]


def _named(value: Any, name: str) -> Run:
    try:
        return _run(value).named(name)
    except InputError as error:
        if not isinstance(value, str) or Path(value).exists():
            raise
        fix = f'a ranked list of one document is {{"{name}": ["{value}"]}}'
        fix = f"{error.fix}; {fix}" if error.fix else fix
        raise but(error, fix=fix) from None


def _run(value: Any) -> Run:
    if isinstance(value, Run):
        return value
    if isinstance(value, str | Path):
        return formats.read_run(value)
    value = _plain(value, "run")
    if isinstance(value, Mapping):
        return Run.from_dict(value)
    if _ranks(value):
        raise InputError(
            f"a {type(value).__name__} does not say which query its documents were returned for",
            file="run",
            fix='{"q1": ["a", "b"]}, best first',
        )
    return Run.from_frame(value)
