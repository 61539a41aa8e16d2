"""Evaluate, explain, gate and pool stored runs, as the command line does with files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from karat.diagnosis.document_slices import of_documents
from karat.errors import UsageError, nearest
from karat.release.policy import Policy
from karat.store.sql import audit, comparisons, golden_sets, runs
from karat.tables import Results
from karat.tables.release.gate import Gate
from karat.tables.results import Explanation
from karat.tables.workspace import RunRow
from karat.workflows.golden.editions import NOW, Covered, content_of, covered_by
from karat.workflows.golden.pooling import METHODS, Pooled, enqueue, pool
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.explain import explain
from karat.workflows.offline.judgment_source import checked_source
from karat.workflows.release.gate import gate
from karat.workflows.workspace.stored_inputs import Judged, judged
from karat.workflows.workspace.stored_runs import file_of, read_stored, stored_rows
from karat.workflows.workspace.workspace import Workspace

_PARQUET = b"PAR1"  # how a file of this format begins, and how it ends


def find_runs(opened: Workspace, wanted: Sequence[int | str]) -> list[RunRow]:
    """Stored runs by id or name (the newest of it); digits are an id unless a name matches."""
    rows = stored_rows(opened)
    by_id, by_name = {row.id: row for row in rows}, runs.by_name(rows)
    found: list[RunRow] = []
    for run in wanted:
        row = by_name.get(run) if isinstance(run, str) else by_id.get(run)
        if row is None and isinstance(run, str) and run.isascii() and run.isdigit():
            row = by_id.get(int(run)) if len(run) < 19 else None
        if row is None:
            names = list(by_name)
            raise UsageError(
                f"the workspace has no run {run!r}",
                nearest=nearest(str(run), names, 1),
                fix=f"the newest are {', '.join(names[-8:])}" if names else "upload one",
            )
        # The same content under two names counts as two runs.
        if (row.id, row.name) in {(row.id, row.name) for row in found}:
            raise UsageError(f"the run {row.name!r} is named twice", fix="name each once")
        found.append(row)
    return found


def run_by_id(opened: Workspace, run_id: int) -> tuple[Workspace, RunRow] | None:
    """A stored run of any golden set, and the workspace with that; None if there is none."""
    with opened.store.read() as connection:
        found = comparisons.find_run(connection, run_id)
        if found is None:
            return None
        return replace(opened, golden=golden_sets.by_id(connection, found[0])), found[1]


def damaged_runs(opened: Workspace) -> list[tuple[RunRow, str]]:
    """Stored runs whose file is ``gone`` or ``damaged``, newest first.

    Only the first and last bytes of a file are checked.
    """
    problems = ((row, _ails(file_of(opened, row))) for row in reversed(stored_rows(opened)))
    return [(row, problem) for row, problem in problems if problem is not None]


def _ails(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            begins = stream.read(len(_PARQUET))
            stream.seek(-len(_PARQUET), os.SEEK_END)
            return None if begins == stream.read() == _PARQUET else "damaged"
    except FileNotFoundError:
        return "gone"
    except OSError:
        return "damaged"


def evaluate_stored(
    opened: Workspace, wanted: Sequence[int | str], measures: Sequence[str], **settings: Any
) -> Results:
    """Evaluate stored runs with the current golden set or an edition of it.

    With the setting ``judgments``: with those of a source, as in ``evaluate``.
    """
    rows = find_runs(opened, wanted)
    if not rows:
        raise UsageError("expected at least one run, got none", fix="name one or more")
    edition, source = settings.pop("edition", NOW), settings.pop("judgments", None)
    if source is not None:
        checked_source(source)
    judgments = _judged(opened, edition, settings, source)
    shared: dict[str, Any] = {"queries": judgments.queries, "documents": judgments.documents}
    return evaluate(
        judgments.qrels, read_stored(opened, rows), list(measures) or None, **shared, **settings
    )


def explain_stored(
    opened: Workspace, wanted: int | str, query_id: str, measure: str, edition: str = NOW
) -> Explanation:
    """Explain one value of a stored run, as ``explain`` does."""
    judgments = judged(opened, edition)
    [run] = read_stored(opened, find_runs(opened, [wanted]))
    return explain(judgments.qrels, run, query_id, measure, queries=judgments.queries)


def gate_stored(
    opened: Workspace,
    policy: Policy,
    baseline: int | str | None,
    candidate: int | str,
    *,
    edition: str = NOW,
    **settings: Any,
) -> Gate:
    """Check a stored run against a policy, as ``gate`` does."""
    wanted = [candidate] if baseline is None else [candidate, baseline]
    now, *before = read_stored(opened, [find_runs(opened, [name])[0] for name in wanted])
    judgments = _judged(opened, edition, settings | {"by": policy.attributes})
    return gate(
        policy,
        judgments.qrels,
        before[0] if before else None,
        now,
        queries=judgments.queries,
        documents=judgments.documents,
        **settings,
    )


def coverage_stored(
    opened: Workspace, wanted: Sequence[int | str], *, edition: str = NOW, k: int = 10
) -> Covered:
    """Share of the top k of stored runs that is judged, as in ``editions.coverage``."""
    rows = find_runs(opened, wanted)
    if not rows:
        raise UsageError("expected at least one run, got none", fix="name one or more")
    return covered_by(opened, content_of(opened, edition), read_stored(opened, rows), k)


def pool_stored(
    opened: Workspace,
    wanted: Sequence[int | str],
    *,
    person: str,
    now: int,
    method: str = "depth",
    **settings: Any,
) -> Pooled:
    """Queue pairs from stored runs, as ``pooling.pool`` does; audited."""
    pooling_method = next((each for each in METHODS if each == method), None)
    if pooling_method is None:
        raise UsageError(f"unknown pooling method {method!r}", nearest=nearest(method, METHODS, 1))
    rows = find_runs(opened, wanted)
    pooled = pool(opened, read_stored(opened, rows), now=now, method=pooling_method, **settings)
    names = ", ".join(row.name for row in rows)
    about = {"runs": names, "method": method, "depth": settings.get("k", 10), "new": pooled.added}
    _note(opened, person, "choose pairs", now, about)
    return pooled


def enqueue_upload(opened: Workspace, path: Path, called: str, *, person: str, now: int) -> Pooled:
    """Queue the pairs of an uploaded file, as ``pooling.enqueue`` does; audited."""
    pooled = enqueue(opened, path, now=now)
    _note(opened, person, "queue pairs", now, {"file": called, "new": pooled.added})
    return pooled


def _judged(
    opened: Workspace, edition: str, settings: Mapping[str, Any], source: str | None = None
) -> Judged:
    by = list(settings.get("by", ()))
    with_documents = bool(of_documents(by)) or settings.get("collapse") is not None
    return judged(opened, edition, with_documents=with_documents, source=source)


def _note(opened: Workspace, person: str, action: str, now: int, about: dict[str, Any]) -> None:
    with opened.store.begin() as connection:
        audit.note(connection, person, action, opened.golden.name, now, about)
