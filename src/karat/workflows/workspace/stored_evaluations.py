"""Stored evaluations of runs: computed on demand, and again when judgments change.

The key of an evaluation has two parts: what is evaluated how, and what it is computed from. So the
numbers of before are found while the current ones are computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from karat.diagnosis.document_slices import of_documents
from karat.diagnosis.slices import BUILT_IN, slices_of
from karat.errors import UsageError, check_known
from karat.reports.html.content import Content
from karat.store.sql import queries
from karat.tables import QueryValue, Results
from karat.tables.records import record_of
from karat.tables.results import Latency, Result
from karat.tables.workspace import RunRow
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.evaluation_plan import settle
from karat.workflows.workspace.artifacts import Artifact, key_of
from karat.workflows.workspace.stored_inputs import (
    about_queries,
    heads,
    inputs_digest,
    judged,
    memberships,
    read_stored,
)
from karat.workflows.workspace.stored_views import Beside, Drawn, beside, content_of, drawn
from karat.workflows.workspace.workspace import Workspace

KIND, SUMMARY = "evaluation", "evaluation-summary"
"""Kinds of artifact: the numbers of a run, and its values by measure for lists."""
_VERSION = 1  # of the computation
P95 = "p95_us"  # key of the latency p95, in microseconds, among the values of a run for lists
MOST_BY = 3  # maximum number of attributes to slice by
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
    """How a run is evaluated: by which edition's grades (``now``: the current ones), and slices."""

    edition: str = NOW
    by: Sequence[str] = ()


@dataclass(frozen=True)
class StoredEvaluation:
    results: Results  # its numbers, without `per_query` values
    drawn: Drawn
    # One row per query and measure, worst first, zero-weight queries (`counts` is false) last;
    # `slices` as `lang=de`
    frame: pl.DataFrame
    content: Content
    files: Artifact  # the artifact with the other tables
    rules: Rules
    older: bool = False  # whether judgments, queries or documents changed since


def key(opened: Workspace, row: RunRow, rules: Rules, digest: str | None = None) -> str:
    """The key of a run's evaluation; ``digest`` is the hash of its inputs, if known."""
    golden = opened.golden
    whole = [golden.salt, golden.name, golden.scale, row.content, row.name]
    what = key_of(_VERSION, *whole, rules.edition, list(rules.by))
    if digest is None:
        documents = of_documents(rules.by)
        digest = inputs_digest(opened, rules.edition, with_documents=documents)
    return f"{what}-{digest}"


def kept(opened: Workspace, row: RunRow, rules: Rules) -> StoredEvaluation | None:
    """The computed evaluation, or an older one; None if neither is there and whole."""
    now = key(opened, row, rules)
    found = opened.artifacts.find(KIND, now, _read)
    if found is not None:
        return found
    before = opened.artifacts.newest(KIND, _what(now))
    found = None if before is None else opened.artifacts.find(KIND, before, _read)
    return None if found is None else replace(found, older=True)


def value_of(opened: Workspace, row: RunRow, measure: str, query_id: str) -> float | None:
    """The value of one query with the current grades; None if it is not computed."""
    found = kept(opened, row, Rules())
    if found is None or found.older:
        return None
    return found.frame.filter(query_id=query_id, measure=measure)["value"].first()  # type: ignore[return-value]


@dataclass(frozen=True)
class Kept:
    """Values of a run for lists: the key of the current ones, and those stored, perhaps older."""

    key: str
    values: Mapping[str, float | None] | None = None  # by measure, and ``P95`` if it was timed
    older: bool = True


def in_short(opened: Workspace, rows: Sequence[RunRow]) -> list[Kept]:
    """The values of runs by the default rules."""
    digest, found = inputs_digest(opened), []
    for row in rows:
        now = key(opened, row, Rules(), digest)
        stored: str | None = now
        values = opened.artifacts.found(SUMMARY, now)
        if values is None:
            stored = opened.artifacts.newest(SUMMARY, _what(now))
            values = None if stored is None else opened.artifacts.found(SUMMARY, stored)
        found.append(Kept(now, values, older=stored != now))
    return found


def frontier(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Which points, of latency and quality, no other beats: as fast, as good, and not the same."""
    return [
        not any(t <= time and v >= value and (t, v) != (time, value) for t, v in points)
        for time, value in points
    ]


def _what(key: str) -> str:
    return key.partition("-")[0]


def compute(opened: Workspace, row: RunRow, rules: Rules) -> None:
    by = list(dict.fromkeys(rules.by))
    judgments = judged(opened, rules.edition, with_documents=of_documents(by))
    what = key(opened, row, rules, judgments.digest)
    run = read_stored(opened, row)
    shared: dict[str, Any] = {"queries": judgments.queries, "documents": judgments.documents}
    plan = settle(judgments.qrels, run, None, by=by, **shared)
    results = evaluate(plan, run, by=by, per_query=True)
    scored = plan.scored
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
        "drawn": asdict(drawn(replace(content, results=replace(results, per_query=counting)))),
        "scale": list(opened.golden.scale),
        "rules": {"edition": rules.edition, "by": by},
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
    opened.artifacts.put(KIND, what, head, tables)
    values_by = {each.measure: each.value for each in results.results}
    values_by |= {P95: results.latency[0].p95_us} if results.latency else {}
    opened.artifacts.answer(SUMMARY, what, lambda: values_by)


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
            live=found.older and found.rules.edition == NOW,
            ranks=ranks,
        )


def attributes_of(opened: Workspace) -> list[str]:
    """Attributes that the queries of a golden set can be sliced by."""
    fixed = {"query_id", "text", "need", "weight", "probability", "count", "no_answer", "origin"}

    def names() -> list[str]:
        with opened.store.read() as connection:
            columns = queries.frame(connection, opened.golden.id).columns
        return [name for name in columns if name not in fixed]

    attributes = about_queries(opened, "attributes", names)
    return list(dict.fromkeys([*attributes, *BUILT_IN]))


def known(opened: Workspace, rules: Rules) -> Rules:
    """The rules in canonical order, so that equal rules share one stored evaluation."""
    editions = [NOW, *(attribute.name for attribute in list_editions(opened))]
    check_known(rules.edition, editions, f"unknown edition {rules.edition!r}", None)
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
        if not of_documents([attribute]):
            check_known(attribute, attributes, f"unknown query attribute {attribute!r}", None)
    return replace(rules, by=by)


def _read(files: Artifact) -> StoredEvaluation:
    head = files.head
    results = Results(
        [Result(**each) for each in head["results"]],
        [Result(**each) for each in head["slices"]],
        notes=list(head["notes"]),
        latency=[Latency(**each) for each in head["latency"]],
    )
    low, high = head["scale"]
    return StoredEvaluation(
        results,
        record_of(Drawn, head["drawn"]),
        pl.read_parquet(files.tables["values"]),
        content_of(results, None, [head["run"]], head["rel"], (low, high)),
        files,
        Rules(**head["rules"]),
    )
