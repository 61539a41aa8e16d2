"""Over kept runs: what the command line does with files, done with what a workspace keeps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from karat.diagnosis.document_slices import of_documents
from karat.errors import UsageError, nearest
from karat.golden import coverage as covering
from karat.release.policy import Policy
from karat.store.sql import audit, imports, runs
from karat.store.sql.runs import RunRow
from karat.tables import Results
from karat.tables.explanation import Explanation
from karat.tables.release.gate import Gate
from karat.workflows.golden.editions import NOW, Covered, content_of
from karat.workflows.golden.pooling import METHODS, Pooled, enqueue, pool
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.explain import explain
from karat.workflows.release.gate import gate
from karat.workflows.workspace.known_queries import following, lacking
from karat.workflows.workspace.stored_inputs import Judged, judged
from karat.workflows.workspace.stored_runs import file_of, read_kept
from karat.workflows.workspace.workspace import Workspace

_PARQUET = b"PAR1"  # how a file of this format begins, and how it ends


def find_runs(opened: Workspace, wanted: Sequence[int | str]) -> list[RunRow]:
    """Kept runs, by number or by name: of a name the newest; digits that are no name are a number.

    Raises:
        UsageError: there is none, or one is named twice.
    """
    with opened.store.read() as connection:
        rows = runs.runs(connection, opened.golden.id)
    by_id, by_name = {row.id: row for row in rows}, runs.by_name(rows)
    out: list[RunRow] = []
    for each in wanted:
        found = by_name.get(each) if isinstance(each, str) else by_id.get(each)
        if found is None and isinstance(each, str) and each.isascii() and each.isdigit():
            found = by_id.get(int(each)) if len(each) < 19 else None
        if found is None:
            names = list(by_name)
            raise UsageError(
                f"the workspace has no run {each!r}",
                nearest=nearest(str(each), names, 1),
                fix=f"the newest are {', '.join(names[-8:])}" if names else "upload one",
            )
        # The same content under two names is two runs to whoever named them so.
        if (found.id, found.name) in {(row.id, row.name) for row in out}:
            raise UsageError(f"the run {found.name!r} is named twice", fix="name each once")
        out.append(found)
    return out


def spoilt_runs(opened: Workspace) -> list[tuple[RunRow, str]]:
    """Kept runs whose file is gone or damaged, the newest first, each with which of both.

    Only how a file begins and ends is looked at, so that this is quick.
    """
    with opened.store.read() as connection:
        rows = runs.runs(connection, opened.golden.id)[::-1]
    told = ((row, _ails(file_of(opened, row))) for row in rows)
    return [(row, what) for row, what in told if what is not None]


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


def evaluate_kept(
    opened: Workspace, wanted: Sequence[int | str], measures: Sequence[str], **settings: Any
) -> Results:
    """Evaluate kept runs, with the golden set as it stands or an edition of it.

    Args:
        opened: The workspace.
        wanted: Runs, as ``find_runs`` takes them.
        measures: Names of measures; the usual ones if empty.
        settings: ``edition``, and what ``evaluate`` takes.

    Raises:
        UsageError: no such run, edition, measure or attribute.
        InputError: nothing is judged yet, or a run cannot be read.
    """
    rows = find_runs(opened, wanted)
    if not rows:
        raise UsageError("no run is named", fix="name one or more")
    given = _judged(opened, settings.pop("edition", NOW), settings)
    shared: dict[str, Any] = {"queries": given.queries, "documents": given.documents}
    return evaluate(
        given.qrels, read_kept(opened, rows), list(measures) or None, **shared, **settings
    )


def explain_kept(
    opened: Workspace, wanted: int | str, query_id: str, measure: str, edition: str = NOW
) -> Explanation:
    """Explain one value of a kept run, as ``explain``."""
    given = judged(opened, edition)
    [run] = read_kept(opened, find_runs(opened, [wanted]))
    return explain(given.qrels, run, query_id, measure, queries=given.queries)


def gate_kept(
    opened: Workspace,
    policy: Policy,
    baseline: int | str | None,
    candidate: int | str,
    *,
    edition: str = NOW,
    **settings: Any,
) -> Gate:
    """Hold a kept run against a policy, as ``gate``.

    Raises:
        UsageError: no such run or edition, or a rule needs a baseline and there is none.
        InputError: nothing is judged yet, or a run cannot be read.
    """
    wanted = [candidate] if baseline is None else [candidate, baseline]
    now, *before = read_kept(opened, [find_runs(opened, [each])[0] for each in wanted])
    given = _judged(opened, edition, settings | {"by": policy.attributes})
    return gate(
        policy,
        given.qrels,
        before[0] if before else None,
        now,
        queries=given.queries,
        documents=given.documents,
        **settings,
    )


def coverage_kept(
    opened: Workspace, wanted: Sequence[int | str], *, edition: str = NOW, k: int = 10
) -> Covered:
    """How much of the top k of kept runs is judged, as ``editions.coverage``; nothing is kept anew.

    Raises:
        UsageError: no such run or edition, or k is out of range.
    """
    rows = find_runs(opened, wanted)
    if not rows:
        raise UsageError("no run is named", fix="name one or more")
    found = content_of(opened, edition)
    with opened.store.read() as connection:
        aliases = imports.aliases(connection, opened.golden.id)
    where = "the golden set" if found.name == NOW else f"edition {found.name}"
    known, systems, notes = set(found.queries["query_id"]), [], []
    for run in read_kept(opened, rows):
        system, said = following(run, known, aliases)
        systems.append(system)
        notes += [*said, *lacking(system, known, where)]
    covered = covering.coverage(found.queries, found.grades, systems, k)
    return Covered(covered.k, covered.runs, covered.queries, covered.unjudged, notes)


def pool_kept(
    opened: Workspace,
    wanted: Sequence[int | str],
    *,
    person: str,
    now: int,
    method: str = "depth",
    **settings: Any,
) -> Pooled:
    """Choose pairs from kept runs, as ``pool.pool``, and note who chose.

    Raises:
        UsageError: no such run or method, or a number out of range.
    """
    known = next((each for each in METHODS if each == method), None)
    if known is None:
        raise UsageError(f"pairs are not chosen by {method!r}", nearest=nearest(method, METHODS, 1))
    rows = find_runs(opened, wanted)
    done = pool(opened, read_kept(opened, rows), now=now, method=known, **settings)
    named = ", ".join(row.name for row in rows)
    about = {"runs": named, "method": method, "depth": settings.get("k", 10), "new": done.added}
    _note(opened, person, "choose pairs", now, about)
    return done


def enqueue_upload(opened: Workspace, path: Path, called: str, *, person: str, now: int) -> Pooled:
    """Put the pairs of a file that somebody sent into the queue, as ``pool.enqueue``; noted."""
    done = enqueue(opened, path, now=now)
    _note(opened, person, "queue pairs", now, {"file": called, "new": done.added})
    return done


def _judged(opened: Workspace, edition: str, settings: Mapping[str, Any]) -> Judged:
    by = list(settings.get("by", ()))
    wanted = bool(of_documents(by)) or settings.get("collapse") is not None
    return judged(opened, edition, with_documents=wanted)


def _note(opened: Workspace, person: str, action: str, now: int, about: dict[str, Any]) -> None:
    with opened.store.begin() as connection:
        audit.note(connection, person, action, opened.golden.name, now, about)
