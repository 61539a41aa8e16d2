"""Stored diagnoses of runs by their traces, or by stored runs as stages; computed once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from karat.errors import UsageError, nearest
from karat.tables import Queries
from karat.tables.diagnosis.results import (
    Diagnosis,
    Fix,
    ModeRow,
    QueryMode,
    Reliability,
    Road,
    StageRow,
)
from karat.tables.workspace import RunRow
from karat.workflows.diagnosis.diagnose import diagnose, road_of
from karat.workflows.diagnosis.stored_traces import stored_trace
from karat.workflows.workspace.artifacts import Artifact, ArtifactCorrupted, key_of
from karat.workflows.workspace.run_stages import Choice
from karat.workflows.workspace.stored_inputs import inputs_digest, judged, single_judgments
from karat.workflows.workspace.stored_runs import read_stored, trace_mark
from karat.workflows.workspace.workspace import Workspace

KIND = "diagnosis"
_VERSION = 5  # of the computation
_CLASS = "class"  # the attribute by which stages and modes are counted, too
_ROAD = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "grade": pl.Float64,
    "ranks": pl.String,  # a JSON object: stage → rank
    "lost_at": pl.String,
    "loss": pl.Float64,
    "mode": pl.String,
    "evidence": pl.String,
}


@dataclass(frozen=True)
class StoredDiagnosis:
    diagnosis: Diagnosis
    files: Artifact  # with the roads of its documents

    def roads(self, query_id: str) -> list[Road]:
        with self.files.reading():
            frame = pl.read_parquet(self.files.tables["roads"])
        own = frame.filter(query_id=query_id).drop("query_id")
        if not own.height and all(row.query_id != query_id for row in self.diagnosis.queries):
            known = frame["query_id"].unique(maintain_order=True).to_list()
            raise UsageError(
                f"query {query_id!r} is not diagnosed", nearest=nearest(query_id, known, 1)
            )
        return [Road(**row | {"ranks": json.loads(row["ranks"])}) for row in own.to_dicts()]


def judged_by(opened: Workspace) -> str:
    """Hash of what runs are judged by now."""
    return inputs_digest(opened, with_documents=True)


def key(
    opened: Workspace,
    row: RunRow,
    stages: Sequence[Choice],
    baseline: RunRow | None = None,
    judgments: str | None = None,  # `judged_by`, if it is known already
) -> str:
    """The key of a diagnosis: its runs, and what they are judged by."""
    golden = opened.golden
    runs = [(stage.stage, stage.row.content) for stage in stages]
    traced = None if stages else trace_mark(opened, row)
    whole = [golden.salt, golden.name, golden.scale, row.name, row.sha256, runs, traced]
    whole += [] if baseline is None else [baseline.sha256, baseline.name]
    return f"{key_of(_VERSION, *whole)}-{judgments or judged_by(opened)}"


def kept(
    opened: Workspace,
    row: RunRow,
    stages: Sequence[Choice],
    baseline: RunRow | None = None,
    judgments: str | None = None,
) -> StoredDiagnosis | None:
    """The computed diagnosis; None if it is not there, or outdated."""
    return opened.artifacts.find(KIND, key(opened, row, stages, baseline, judgments), _read)


def diagnose_stored(
    opened: Workspace, row: RunRow, stages: Sequence[Choice], baseline: RunRow | None = None
) -> StoredDiagnosis:
    """The diagnosis of a run, computed unless it is there; raises as ``compute`` does."""
    found = kept(opened, row, stages, baseline)
    return found if found is not None else compute(opened, row, stages, baseline)


def compute(
    opened: Workspace, row: RunRow, stages: Sequence[Choice], baseline: RunRow | None = None
) -> StoredDiagnosis:
    """Diagnose a run as ``karat diagnose`` does, and store the result.

    Args:
        stages: The runs of its stages; without any, its trace is taken.
        baseline: A run; queries that it has a higher value for fail too.
    """
    judgments = judged(opened, with_documents=True)
    run, *runs = read_stored(opened, [row, *(stage.row for stage in stages)])
    before = [] if baseline is None else read_stored(opened, [baseline])
    trace = None if stages else stored_trace(opened, row)
    if not stages and trace is None:
        raise UsageError(
            f"the run {row.name!r} has no trace, and no stages were named",
            fix="name the stored runs of its stages, or add a trace: karat search --trace",
        )
    found = diagnose(
        judgments.qrels,
        run,
        trace=trace,
        stages={stage.stage: each for stage, each in zip(stages, runs, strict=True)} or None,
        queries=judgments.queries,
        documents=judgments.documents,
        judgments=single_judgments(opened),
        baseline=before or None,
        by=_CLASS if _has_class(judgments.queries) else None,
    )
    if [stage.row.id for stage in stages] == [row.id]:
        found.notes.append(
            f"{row.name} is its only stage: a trace, or the runs of its stages, show where in it "
            "documents are lost"
        )
    rows = [
        asdict(road) | {"query_id": query_id, "ranks": json.dumps(road.ranks)}
        for query_id in found.found.query_ids
        for road in road_of(found, query_id)
    ]
    head = {
        "diagnosis": replace(
            found, run=row.name, baseline=None if baseline is None else baseline.name
        ).to_dict()
    }
    roads = pl.DataFrame(rows, schema=_ROAD)
    what = key(opened, row, stages, baseline)
    opened.artifacts.put(KIND, what, head, {"roads": roads})
    stored = opened.artifacts.find(KIND, what, _read)
    if stored is None:
        raise ArtifactCorrupted("the diagnosis could not be stored\n  fix: try again")
    return stored


def _has_class(queries: Queries | None) -> bool:
    return (
        queries is not None
        and _CLASS in queries.frame.columns
        and queries.frame[_CLASS].drop_nulls().n_unique() > 1
    )


def _read(files: Artifact) -> StoredDiagnosis:
    rows = {"stages": StageRow, "fixes": Fix, "modes": ModeRow, "queries": QueryMode}
    rows["reliability"] = Reliability
    head: dict[str, Any] = files.head["diagnosis"]
    read: dict[str, Any] = {name: [kind(**r) for r in head[name]] for name, kind in rows.items()}
    for name, kind in (("slices", ModeRow), ("stages_by", StageRow)):
        read[name] = {part: [kind(**row) for row in own] for part, own in head[name].items()}
    return StoredDiagnosis(Diagnosis(**head | read), files)
