"""Stored diagnoses of runs by their traces, or by stored runs as stages; computed once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import polars as pl

from karat.errors import UsageError, nearest
from karat.tables import Queries
from karat.tables.diagnosis.results import Diagnosis, Road
from karat.tables.records import record_of
from karat.tables.workspace import RunRow
from karat.workflows.diagnosis.diagnose import diagnose, road_of
from karat.workflows.diagnosis.stored_traces import stored_trace
from karat.workflows.workspace.artifacts import Artifact, ArtifactCorrupted, key_of
from karat.workflows.workspace.run_stages import Choice
from karat.workflows.workspace.stored_inputs import inputs_digest, judged, single_judgments
from karat.workflows.workspace.stored_judgments import click_grades, click_grades_mark
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


@dataclass(frozen=True)
class Diagnosing:
    """A run to diagnose as ``karat diagnose`` does."""

    opened: Workspace
    row: RunRow
    stages: Sequence[Choice]  # the runs of its stages; without any, its trace is taken
    baseline: RunRow | None = None  # queries that it has a higher value for fail too
    judgments: str | None = None  # ``judged_by``, if it is known already

    @property
    def key(self) -> str:
        """Of the runs, and what they are judged by."""
        opened, row, golden = self.opened, self.row, self.opened.golden
        runs = [(stage.stage, stage.row.content) for stage in self.stages]
        traced = None if runs else trace_mark(opened, row)
        whole = [golden.salt, golden.name, golden.scale, row.name, row.sha256, runs, traced]
        clicks = click_grades_mark(opened)
        whole += [] if clicks is None else [clicks]
        whole += [] if self.baseline is None else [self.baseline.sha256, self.baseline.name]
        return f"{key_of(_VERSION, *whole)}-{self.judgments or judged_by(opened)}"

    def kept(self) -> StoredDiagnosis | None:
        return self.opened.artifacts.find(KIND, self.key, _read)

    def find(self) -> StoredDiagnosis:
        """The diagnosis, computed unless it is there."""
        return self.kept() or self.compute()

    def compute(self) -> StoredDiagnosis:
        """Diagnose the run, and store the result."""
        opened, row, key = self.opened, self.row, self.key
        baselines = [] if self.baseline is None else [self.baseline]
        judgments = judged(opened, with_documents=True)
        run, *runs = read_stored(opened, [row, *(stage.row for stage in self.stages)])
        trace = None if self.stages else stored_trace(opened, row)
        if not self.stages and trace is None:
            raise UsageError(
                f"the run {row.name!r} has no trace, and no stages were named",
                fix="name the stored runs of its stages, or add a trace: karat search --trace",
            )
        found = diagnose(
            judgments.qrels,
            run,
            trace=trace,
            stages=dict(zip((stage.stage for stage in self.stages), runs, strict=True)) or None,
            queries=judgments.queries,
            documents=judgments.documents,
            judgments=single_judgments(opened),
            clicks=click_grades(opened),
            baseline=read_stored(opened, baselines) or None,
            by=_CLASS if _has_class(judgments.queries) else None,
        )
        if [stage.row.id for stage in self.stages] == [row.id]:
            found.notes.append(
                f"{row.name} is its only stage: a trace, or the runs of its stages, show where in "
                "it documents are lost"
            )
        rows = [
            asdict(road) | {"query_id": query_id, "ranks": json.dumps(road.ranks)}
            for query_id in found.found.query_ids
            for road in road_of(found, query_id)
        ]
        name = None if self.baseline is None else self.baseline.name
        head = {"diagnosis": replace(found, run=row.name, baseline=name).to_dict()}
        opened.artifacts.put(KIND, key, head, {"roads": pl.DataFrame(rows, schema=_ROAD)})
        stored = opened.artifacts.find(KIND, key, _read)
        if stored is None:
            raise ArtifactCorrupted("the diagnosis could not be stored", fix="try again")
        return stored


def _has_class(queries: Queries | None) -> bool:
    return (
        queries is not None
        and _CLASS in queries.frame.columns
        and queries.frame[_CLASS].drop_nulls().n_unique() > 1
    )


def _read(files: Artifact) -> StoredDiagnosis:
    return StoredDiagnosis(record_of(Diagnosis, files.head["diagnosis"]), files)
