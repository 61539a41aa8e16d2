"""Evaluations of kept runs: computed when somebody looks, and again when the judgments change."""

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
from karat.workflows.workspace.stored_inputs import clock_of, heads, judged, memberships, read_kept
from karat.workflows.workspace.stored_views import Beside, Drawn, beside, content_of, drawn
from karat.workflows.workspace.workspace import Workspace

FOLDER = "evaluations"
MOST = 200
"""Evaluations that are kept; the oldest go."""
MOST_BY = 3
"""Attributes that a run is sliced by at once."""
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
        edition: Whose grades count, or ``now``.
        by: Attributes to slice by.
        measures: Names of measures; the usual ones if empty.
    """

    edition: str = NOW
    by: Sequence[str] = ()
    measures: Sequence[str] = ()


@dataclass(frozen=True)
class KeptEvaluation:
    """An evaluation as it was computed.

    Attributes:
        results: Its numbers, without those of each query.
        drawn: Its charts.
        frame: Every query under every measure, the worst first, those of weight 0 (``counts`` is
            false) after all others; ``slices`` as ``lang=de``.
        content: What the components of a report are given.
        files: Where the rest stands.
        clock: What it was computed from, as ``clock_of`` says.
        rules: How it was made.
    """

    results: Results
    drawn: Drawn
    frame: pl.DataFrame
    content: Content
    files: ArtifactFiles
    clock: str
    rules: Rules


def folder_of(opened: Workspace, row: RunRow, rules: Rules) -> Path:
    """Where the numbers of a run by some rules stand."""
    asked = [
        opened.golden.salt,
        opened.golden.name,
        row.sha256,
        row.name,
        rules.edition,
        list(rules.by),
        list(rules.measures),
    ]
    name = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:24]
    return opened.workspace.root / FOLDER / name


def kept(opened: Workspace, row: RunRow, rules: Rules) -> KeptEvaluation | None:
    """What was computed; None if nothing was yet, or its files are damaged."""
    return AT_HAND.get(folder_of(opened, row, rules))


@dataclass(frozen=True)
class Kept:
    """What a list says of an evaluation.

    Attributes:
        values: By measure.
        clock: What they were computed from, as ``clock_of`` says.
    """

    values: Mapping[str, float | None]
    clock: str


def in_short(opened: Workspace, row: RunRow, rules: Rules) -> Kept | None:
    """The values that were computed, without the rest; None if nothing was yet."""
    folder = folder_of(opened, row, rules)
    return _in_short(str(folder), stamp_of(folder))


@lru_cache(2048)
def _in_short(folder: str, _stamp: str) -> Kept | None:
    head = artifact_head(Path(folder))
    if head is None:
        return None
    return Kept({each["measure"]: each["value"] for each in head["results"]}, head["clock"])


def is_older(opened: Workspace, found: KeptEvaluation) -> bool:
    """Whether judgments, queries or documents changed since, that would count."""
    return clock(opened, found.rules) != found.clock


def clock(opened: Workspace, rules: Rules) -> str:
    """Another wherever an evaluation by these rules may come to other numbers."""
    return clock_of(opened, rules.edition, with_documents=of_documents(rules.by))


def compute(opened: Workspace, row: RunRow, rules: Rules) -> None:
    """Evaluate a run and write what came out.

    Raises:
        UsageError: no such edition, measure or attribute.
        InputError: the run cannot be read, or nothing is judged yet.
    """
    by = list(dict.fromkeys(rules.by))
    given = judged(opened, rules.edition, with_documents=of_documents(by))
    run = read_kept(opened, row)
    names = list(rules.measures) or None
    shared: dict[str, Any] = {"queries": given.queries, "documents": given.documents}
    results = evaluate(given.qrels, run, names, by=by, per_query=True, **shared)
    asked = settle(given.qrels, run, names, **shared)
    scored = asked.scored()
    within: dict[str, dict[str, list[str]]] = {}
    ids = scored[0].evidence.query_ids
    for attribute in by:
        found = slices_of(asked.about, attribute, scored, given.documents, asked.qrels)
        for value, chosen in found:
            for place in chosen.nonzero()[0].tolist():
                within.setdefault(ids[place], {}).setdefault(attribute, []).append(str(value))
    content = content_of(results, None, [run.name], asked.rules.rel, opened.golden.scale)
    zero_weight = asked.rules.zero_weight
    counting = [each for each in results.per_query if each.query_id not in zero_weight]
    head = {
        "results": [asdict(each) for each in results.results],
        "slices": [asdict(each) for each in results.slices],
        "latency": [asdict(each) for each in results.latency],
        "notes": results.notes,
        "run": run.name,
        "rel": asked.rules.rel,
        "drawn": drawn(replace(content, results=replace(results, per_query=counting))).to_dict(),
        "scale": list(opened.golden.scale),
        "clock": given.clock,
        "rules": {"edition": rules.edition, "by": by, "measures": list(rules.measures)},
    }
    texts = given.queries.texts()
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
    grades = given.qrels.frame.select("query_id", "doc_id", "grade").sort("query_id")
    tables = {"values": values, "grades": grades, "heads": heads([run])}
    write_artifact(folder_of(opened, row, rules), head, tables)
    _clear(opened.workspace.root / FOLDER)


def _clear(folder: Path) -> None:
    """Let the oldest go where there are too many."""
    own = []
    for each in folder.iterdir():
        with suppress(OSError):
            if re.fullmatch("[0-9a-f]{24}", each.name):
                own.append((each.stat().st_mtime_ns, each))
    for _, each in sorted(own, reverse=True)[MOST:]:
        shutil.rmtree(each, ignore_errors=True)


def side(
    opened: Workspace, found: KeptEvaluation, query_id: str, measure: str, ranks: int = 100
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
    """What a golden set's queries can be sliced by."""
    from karat.store.sql import queries

    with opened.store.read() as connection:
        held = queries.frame(connection, opened.golden.id)
    fixed = {"query_id", "text", "need", "weight", "probability", "count", "no_answer", "origin"}
    own = [name for name in held.columns if name not in fixed]
    return list(dict.fromkeys([*own, *BUILT_IN]))


def checked(rules: Rules) -> Rules:
    """The rules with measures under the names that numbers have.

    Raises:
        UsageError: there is no such measure.
    """
    if not rules.measures:
        return rules
    return replace(rules, measures=[str(each) for each in parse_all(list(rules.measures))])


def known(opened: Workspace, rules: Rules) -> Rules:
    """The rules in one order, whoever asks, so that each is kept once.

    Raises:
        UsageError: there is no such edition or attribute, or there are too many of these.
    """
    editions = [NOW, *(each.name for each in list_editions(opened))]
    if rules.edition not in editions:
        raise UsageError(
            f"there is no edition {rules.edition!r}", nearest=nearest(rules.edition, editions, 1)
        )
    by = sorted(set(rules.by))
    attributes = attributes_of(opened) if by else []
    # Several in one are a combination of them; those of documents are looked up later.
    parts = [p.strip() for each in by for p in ([each] if each in attributes else each.split(","))]
    if len(parts) > MOST_BY:
        raise UsageError(f"a run is sliced by {MOST_BY} attributes at most", fix="choose fewer")
    for each in parts:
        if each not in attributes and not of_documents([each]):
            raise UsageError(
                f"no query has an attribute {each!r}", nearest=nearest(each, attributes, 1)
            )
    return replace(rules, by=by)


def _read(folder: Path) -> KeptEvaluation | None:
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
    return KeptEvaluation(
        results,
        Drawn.from_dict(head["drawn"]),
        pl.read_parquet(files.tables["values"]),
        content_of(results, None, [head["run"]], head["rel"], (low, high)),
        files,
        head["clock"],
        Rules(**head["rules"]),
    )


AT_HAND = ArtifactCache(_MEMORY, _read)
"""Evaluations that this process read."""
