"""Stored evaluations of runs: computed on demand, and again when judgments change."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from karat.diagnosis.document_slices import of_documents
from karat.diagnosis.slices import BUILT_IN, slices_of
from karat.errors import UsageError, nearest
from karat.measures import parse_all
from karat.reports.html.content import Content
from karat.store.sql.runs import RunRow
from karat.tables import QueryValue, Results
from karat.tables.results import Latency, Result
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.evaluation_plan import settle
from karat.workflows.workspace.artifacts import (
    ArtifactCache,
    ArtifactFiles,
    artifact_head,
    read_artifact,
    stamp_of,
    write_artifact,
)
from karat.workflows.workspace.stored_inputs import (
    clock_of,
    heads,
    judged,
    memberships,
    read_stored,
)
from karat.workflows.workspace.stored_views import Beside, Drawn, beside, content_of, drawn
from karat.workflows.workspace.workspace import Workspace

FOLDER = "evaluations"
MOST = 200
"""Maximum number of stored evaluations; the oldest are deleted."""
MOST_BY = 3
"""Maximum number of attributes to slice by."""
_MEMORY = 8
_VALUES: dict[str, Any] = {
    "measure": pl.String,
    "query_id": pl.String,
    "text": pl.String,
    "value": pl.Float64,
    "state": pl.String,
    "slices": pl.List(pl.String),
    "counts": pl.Boolean,
}


@dataclass(frozen=True)
class Rules:
    """How a run is evaluated.

    Attributes:
        edition: Edition whose grades are used; ``now`` for the current golden set.
        by: Attributes to slice by.
        measures: Names of measures; the default ones if empty.
    """

    edition: str = NOW
    by: Sequence[str] = ()
    measures: Sequence[str] = ()


@dataclass(frozen=True)
class StoredEvaluation:
    """A computed evaluation.

    Attributes:
        results: Its numbers, without ``per_query`` values.
        drawn: Its charts.
        frame: One row per query and measure, worst first, zero-weight queries (``counts`` is
            false) last; ``slices`` as ``lang=de``.
        content: Input of the components of a report.
        files: The artifact with the other tables.
        clock: Hash of its inputs (``clock_of``).
        rules: The rules of the evaluation.
    """

    results: Results
    drawn: Drawn
    frame: pl.DataFrame
    content: Content
    files: ArtifactFiles
    clock: str
    rules: Rules


def folder_of(opened: Workspace, row: RunRow, rules: Rules) -> Path:
    """The folder of the artifact of a run's evaluation."""
    key = [
        opened.golden.salt,
        opened.golden.name,
        row.sha256,
        row.name,
        rules.edition,
        list(rules.by),
        list(rules.measures),
    ]
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:24]
    return opened.workspace.root / FOLDER / name


def kept(opened: Workspace, row: RunRow, rules: Rules) -> StoredEvaluation | None:
    """The computed evaluation; None if it is not computed yet, or its files are damaged."""
    return AT_HAND.get(folder_of(opened, row, rules))


@dataclass(frozen=True)
class Kept:
    """Summary of an evaluation, for lists.

    Attributes:
        values: Values by measure.
        clock: Hash of its inputs (``clock_of``).
    """

    values: Mapping[str, float | None]
    clock: str


def in_short(opened: Workspace, row: RunRow, rules: Rules) -> Kept | None:
    """The summary of an evaluation; None if it is not computed yet."""
    folder = folder_of(opened, row, rules)
    return _in_short(str(folder), stamp_of(folder))


@lru_cache(2048)
def _in_short(folder: str, _stamp: str) -> Kept | None:
    head = artifact_head(Path(folder))
    if head is None:
        return None
    return Kept({each["measure"]: each["value"] for each in head["results"]}, head["clock"])


def is_older(opened: Workspace, found: StoredEvaluation) -> bool:
    """Whether judgments, queries or documents that matter to an evaluation changed since."""
    return clock(opened, found.rules) != found.clock


def clock(opened: Workspace, rules: Rules) -> str:
    """Hash of the inputs of an evaluation; changes whenever its numbers may change."""
    return clock_of(opened, rules.edition, with_documents=of_documents(rules.by))


def compute(opened: Workspace, row: RunRow, rules: Rules) -> None:
    """Evaluate a run and store the result.

    Raises:
        UsageError: an unknown edition, measure or attribute.
        InputError: the run cannot be read, or nothing is judged yet.
    """
    by = list(dict.fromkeys(rules.by))
    judgments = judged(opened, rules.edition, with_documents=of_documents(by))
    run = read_stored(opened, row)
    names = list(rules.measures) or None
    shared: dict[str, Any] = {"queries": judgments.queries, "documents": judgments.documents}
    results = evaluate(judgments.qrels, run, names, by=by, per_query=True, **shared)
    plan = settle(judgments.qrels, run, names, **shared)
    scored = plan.scored()
    within: dict[str, dict[str, list[str]]] = {}
    ids = scored[0].evidence.query_ids
    for attribute in by:
        slices = slices_of(plan.about, attribute, scored, judgments.documents, plan.qrels)
        for value, chosen in slices:
            for place in chosen.nonzero()[0].tolist():
                within.setdefault(ids[place], {}).setdefault(attribute, []).append(str(value))
    content = content_of(results, None, [run.name], plan.rules.rel, opened.golden.scale)
    zero_weight = plan.rules.zero_weight
    counting = [each for each in results.per_query if each.query_id not in zero_weight]
    head = {
        "results": [asdict(each) for each in results.results],
        "slices": [asdict(each) for each in results.slices],
        "latency": [asdict(each) for each in results.latency],
        "notes": results.notes,
        "run": run.name,
        "rel": plan.rules.rel,
        "drawn": drawn(replace(content, results=replace(results, per_query=counting))).to_dict(),
        "scale": list(opened.golden.scale),
        "clock": judgments.clock,
        "rules": {"edition": rules.edition, "by": by, "measures": list(rules.measures)},
    }
    texts = judgments.queries.texts()
    lower = content.lower
    rows = [
        {
            "measure": each.measure,
            "query_id": each.query_id,
            "text": texts.get(each.query_id),
            "value": each.value,
            "state": each.state,
            "slices": memberships(within.get(each.query_id, {})),
            "counts": each.query_id not in zero_weight,
            "worst": -(each.value or 0.0) if each.measure in lower else each.value,
        }
        for each in results.per_query
    ]
    values = pl.DataFrame(rows, schema=_VALUES | {"worst": pl.Float64})
    unanswered = ~pl.col("state").is_in(["failed", "missing", "empty"])
    values = values.sort(
        ~pl.col("counts"), unanswered, "worst", nulls_last=True, maintain_order=True
    ).drop("worst")
    grades = judgments.qrels.frame.select("query_id", "doc_id", "grade").sort("query_id")
    tables = {"values": values, "grades": grades, "heads": heads([run])}
    write_artifact(folder_of(opened, row, rules), head, tables)
    _clear(opened.workspace.root / FOLDER)


def _clear(folder: Path) -> None:
    """Delete the oldest evaluations if there are more than ``MOST``."""
    stored = []
    for path in folder.iterdir():
        with suppress(OSError):
            if re.fullmatch("[0-9a-f]{24}", path.name):
                stored.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(stored, reverse=True)[MOST:]:
        shutil.rmtree(path, ignore_errors=True)


def side(
    opened: Workspace, found: StoredEvaluation, query_id: str, measure: str, ranks: int = 100
) -> Beside | None:
    """One query with its ranking, as ``stored_views.beside``; None for an unknown one."""
    run = found.content.runs[0]
    values = [
        QueryValue(run, row["measure"], query_id, row["value"], row["state"])
        for row in found.frame.filter(query_id=query_id).iter_rows(named=True)
    ]
    if not values:
        return None
    with found.files.reading():
        return beside(
            opened,
            replace(found.content, results=replace(found.results, slices=[])),
            query_id,
            measure=measure,
            values=values,
            tables=found.files.tables,
            edition=found.rules.edition,
            ranks=ranks,
        )


def attributes_of(opened: Workspace) -> list[str]:
    """Attributes that the queries of a golden set can be sliced by."""
    from karat.store.sql import queries

    with opened.store.read() as connection:
        frame = queries.frame(connection, opened.golden.id)
    fixed = {"query_id", "text", "need", "weight", "probability", "count", "no_answer", "origin"}
    attributes = [name for name in frame.columns if name not in fixed]
    return list(dict.fromkeys([*attributes, *BUILT_IN]))


def checked(rules: Rules) -> Rules:
    """The rules with canonical names of measures.

    Raises:
        UsageError: an unknown measure.
    """
    if not rules.measures:
        return rules
    return replace(rules, measures=[str(measure) for measure in parse_all(list(rules.measures))])


def known(opened: Workspace, rules: Rules) -> Rules:
    """The rules in canonical order, so that equal rules share one stored evaluation.

    Raises:
        UsageError: an unknown edition or attribute, or too many attributes.
    """
    editions = [NOW, *(attribute.name for attribute in list_editions(opened))]
    if rules.edition not in editions:
        raise UsageError(
            f"unknown edition {rules.edition!r}", nearest=nearest(rules.edition, editions, 1)
        )
    by = sorted(set(rules.by))
    attributes = attributes_of(opened) if by else []
    # Comma-separated attributes are a combination; document attributes are checked later.
    parts = [
        p.strip()
        for attribute in by
        for p in ([attribute] if attribute in attributes else attribute.split(","))
    ]
    if len(parts) > MOST_BY:
        raise UsageError(
            f"at most {MOST_BY} attributes to slice by, got {len(parts)}", fix="choose fewer"
        )
    for attribute in parts:
        if attribute not in attributes and not of_documents([attribute]):
            raise UsageError(
                f"unknown query attribute {attribute!r}", nearest=nearest(attribute, attributes, 1)
            )
    return replace(rules, by=by)


def _read(folder: Path) -> StoredEvaluation | None:
    files = read_artifact(folder)
    if files is None:
        return None
    head: Mapping[str, Any] = files.head
    results = Results(
        [Result(**each) for each in head["results"]],
        [Result(**each) for each in head["slices"]],
        notes=list(head["notes"]),
        latency=[Latency(**each) for each in head["latency"]],
    )
    low, high = head["scale"]
    return StoredEvaluation(
        results,
        Drawn.from_dict(head["drawn"]),
        pl.read_parquet(files.tables["values"]),
        content_of(results, None, [head["run"]], head["rel"], (low, high)),
        files,
        head["clock"],
        Rules(**head["rules"]),
    )


AT_HAND = ArtifactCache(_MEMORY, _read)
"""Evaluations cached by this process."""
