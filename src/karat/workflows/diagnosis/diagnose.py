"""Diagnose: which stage loses relevant documents, why queries fail, and what fixes are worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from karat.diagnosis.fixes import fixes
from karat.diagnosis.modes import Evidence, Named, name_modes, of_queries, summary
from karat.diagnosis.review import to_review
from karat.diagnosis.waterfall import Floats, Roads, mean_value, roads, values_of, waterfalls
from karat.errors import KaratError, UsageError, nearest
from karat.formats.own.traces import read_trace
from karat.measures import Measure, parse
from karat.online.clicks.grading import opposing
from karat.reports.phrases.numbers import counted
from karat.tables import Pairs, Qrels, Queries, Run
from karat.tables.diagnosis.results import MODES, Diagnosis, Fix, ModeRow, QueryMode, Road, arrows
from karat.tables.diagnosis.traces import COLUMNS, StageKind, Trace, from_runs
from karat.tables.engines import EngineConfig
from karat.tables.judgments import Judgments
from karat.tables.online.clicks import ClickOrigin
from karat.tables.provenance import CutPoints
from karat.workflows.engines.live import open_live
from karat.workflows.offline import inputs

BELOW = 0.5  # a query with a lower value fails
_LOOKED_UP = 500  # documents of one lookup
_MOST = 20_000  # documents that are looked up


@dataclass(frozen=True, kw_only=True)
class Diagnosed(Diagnosis):
    """A diagnosis with what it was made from, for the road of one query."""

    found: Roads = field(repr=False)
    named: Named = field(repr=False)
    qrels: Qrels = field(repr=False)

    def to_review(self) -> Pairs:
        """What failing queries miss and what they show instead, for people to look at or judge."""
        return to_review(self.found, self.named, self.queries, self.qrels)


def diagnose(
    qrels: Any,
    run: Any,
    *,
    trace: Any = None,
    stages: Mapping[str, Any] | None = None,
    kinds: Mapping[str, StageKind] | None = None,
    measures: Sequence[str] = ("nDCG@10",),
    baseline: Any = None,
    below: float = BELOW,
    queries: Any = None,
    documents: Any = None,
    judgments: Judgments | None = None,
    clicks: tuple[pl.DataFrame, ClickOrigin] | None = None,
    engine: EngineConfig | None = None,
    by: str | None = None,
    rel: float | None = None,
) -> Diagnosed:
    """Diagnose a run.

    Args:
        qrels: The judgments, in any form that ``evaluate`` accepts.
        run: The run, in any form that ``evaluate`` accepts.
        trace: A ``Trace``, or a file with one.
        stages: Instead of a trace: stage → run, in the order of the pipeline.
        kinds: Kinds of these stages; found from their documents if missing.
        measures: Names of measures; the first decides which queries fail.
        baseline: A run; queries that it has a higher value for fail too.
        below: Queries with a lower value fail.
        queries: Queries with texts, weights and attributes, as in ``evaluate``.
        documents: With ``updated_at``, ``source_updated_at``, ``subject_id`` or ``supersedes``.
        judgments: Single judgments, for doubts about labels.
        clicks: Grades from clicks (``formats.own.click_grades``), for the same.
        engine: A declared engine, of which is asked which documents its index has.
        by: An attribute of the queries; modes are counted in each of its slices too.
        rel: Lowest relevant grade, where the measure does not set it; 1 if None.

    Raises:
        UsageError: an unknown measure or attribute, or both a trace and stages.
        InputError: a file or table that cannot be read.
    """
    about = inputs.about(queries, qrels)
    grades, served = inputs.qrels(qrels), _one(inputs.runs(run), "run")
    texts = {} if about is None else about.texts()
    traced = _trace(trace, stages, kinds, texts)
    main, *_ = parsed = [parse(name, rel=rel) for name in measures]
    query_ids, values = _valued(served, grades, main, about)
    found = _roads(traced, served, grades, query_ids, about, parsed, rel)
    notes: list[str] = []
    index = None if engine is None else _in_index(found, engine, notes)
    doubts = judgments, inputs.documents(documents), index, grades
    named = name_modes(found, Evidence(*doubts, _opposed(grades, clicks, found.rel)))
    other = None if baseline is None else _one(inputs.runs(baseline), "baseline")
    before = _before(other, grades, main, query_ids)
    rows = of_queries(found, named, _failing(found, values, below, before), values, texts)
    rows = [replace(row, baseline_value=before.get(row.query_id)) for row in rows]
    asked = list(filter(set(traced.query_ids).__contains__, query_ids))
    gains = list(_fixes(found, named, grades, parsed, asked, notes))
    notes += _notes(found, served, query_ids, asked)
    parts = {} if by is None else _slices(about, by)
    falls = waterfalls(found, grades, parsed, _traced(parts, asked)) if asked else ([], {})
    return Diagnosed(
        run=served.name,
        measure=str(main),
        value=mean_value(values, found.weights[: len(values)]),
        n=len(query_ids),
        traced=len(asked),
        failing=len(rows),
        pipeline=arrows([(stage.name, stage.parents) for stage in traced.stages]),
        stages=falls[0],
        fixes=gains,
        modes=summary(found, named, rows),
        queries=rows,
        notes=notes,
        slices=_modes_by(found, named, rows, parts),
        stages_by=falls[1],
        reliability=named.alignment.reliability if named.alignment else [],
        below=below,
        baseline=None if other is None else other.name,
        found=found,
        named=named,
        qrels=grades,
    )


def _opposed(
    qrels: Qrels, given: tuple[pl.DataFrame, ClickOrigin] | None, rel: float
) -> pl.DataFrame | None:
    """Pairs whose clicks are on the other side of relevant than their grade."""
    if given is None:
        return None
    clicks, origin = given
    people = qrels.frame.select("query_id", "doc_id", people="grade")
    clicks = clicks if origin.identified else clicks.head(0)
    both = clicks.join(people, on=["query_id", "doc_id"])
    return opposing(both, CutPoints(tuple(origin.cuts), tuple(origin.grades)), rel)


def _valued(
    run: Run, qrels: Qrels, measure: Measure, queries: Queries | None
) -> tuple[list[str], Floats]:
    no_answer = frozenset() if queries is None else queries.no_answer()
    asked = [query for query in qrels.query_ids if query not in no_answer]
    values = values_of(run, qrels, measure, asked)
    known = ~np.isnan(values)
    return [query for query, there in zip(asked, known, strict=True) if there], values[known]


def _roads(
    trace: Trace,
    run: Run,
    qrels: Qrels,
    query_ids: Sequence[str],
    queries: Queries | None,
    measures: Sequence[Measure],
    rel: float | None,
) -> Roads:
    settings, unanswerable = measures[0].settings, _unanswerable(run, queries)
    return roads(
        trace,
        run,
        qrels,
        query_ids,
        _depth(measures, run),
        float(settings.get("rel", rel or 1.0)),
        _weights(queries, [*query_ids, *unanswerable]),
        settings.get("gain", "linear"),
        unanswerable,
    )


def _unanswerable(run: Run, queries: Queries | None) -> list[str]:
    """The queries marked ``no_answer`` for which documents are served."""
    marked = set() if queries is None else queries.no_answer()
    return sorted(marked & set(run.frame()["query_id"].unique())) if marked else []


def _failing(found: Roads, values: Floats, below: float, before: Mapping[str, float]) -> list[int]:
    """The queries with a low value, a worse one than the baseline, or none, which are last."""
    least = np.array([before.get(query, -np.inf) for query in found.query_ids[: len(values)]])
    low: list[int] = np.flatnonzero((values < below) | (values < least)).tolist()
    return [*low, *range(len(values), len(found.query_ids))]


def _before(
    baseline: Run | None, qrels: Qrels, measure: Measure, query_ids: Sequence[str]
) -> dict[str, float]:
    """The value of each query in the baseline, if it has one."""
    if baseline is None:
        return {}
    values = values_of(baseline, qrels, measure, query_ids)
    pairs = zip(query_ids, values.tolist(), strict=True)
    return {query: value for query, value in pairs if not np.isnan(value)}


def _fixes(
    found: Roads,
    named: Named,
    qrels: Qrels,
    measures: Sequence[Measure],
    query_ids: Sequence[str],
    notes: list[str],
) -> Iterator[Fix]:
    for measure in measures if query_ids else ():
        present = values_of(found.run, qrels, measure, query_ids)
        gains, missing = fixes(found, qrels, measure, present, query_ids, named.alignment)
        notes += [note for note in missing if note not in notes]
        yield from gains


def road_of(diagnosed: Diagnosed, query_id: str) -> list[Road]:
    """The relevant documents of a query on their way through the stages, best grade first."""
    found, named = diagnosed.found, diagnosed.named
    if query_id not in found.number:
        raise UsageError(
            f"query {query_id!r} is not diagnosed", nearest=nearest(query_id, found.query_ids, 1)
        )
    own = found.documents(found.number[query_id])
    out = []
    for at in own.tolist():
        lost = int(found.lost_at[at])
        out.append(
            Road(
                doc_id=found.doc_id[at],
                grade=float(found.grade[at]),
                ranks={
                    stage.name: int(found.rank[row, at]) or None
                    for row, stage in enumerate(found.stages)
                },
                lost_at=None if lost == -1 else _stage_name(found, lost),
                loss=float(found.loss[at]),
                mode=MODES[named.mode[at]] if named.mode[at] >= 0 else None,
                evidence=named.evidence[at],
            )
        )
    return sorted(out, key=lambda road: (-(road.grade or 0), road.doc_id))


def _stage_name(found: Roads, lost: int) -> str:
    if lost >= 0:
        return found.stages[lost].name
    return " + ".join(stage.name for stage in found.sources) or "retrieval"


def _one(runs: Sequence[Run], what: str) -> Run:
    if len(runs) != 1:
        raise UsageError(f"expected one {what}, got {len(runs)}")
    return runs[0]


def _trace(
    trace: Any,
    stages: Mapping[str, Any] | None,
    kinds: Mapping[str, StageKind] | None,
    texts: Mapping[str, str],
) -> Trace:
    if trace is not None and stages:
        raise UsageError("a trace has its stages", fix="give a trace, or runs as stages")
    if stages:
        runs = {name: _one(inputs.runs(value), f"run of {name}") for name, value in stages.items()}
        return from_runs(runs, kinds or {})
    if isinstance(trace, str | Path):
        return read_trace(trace, texts)
    return trace if trace is not None else Trace(pl.DataFrame(schema=COLUMNS))


def _depth(measures: Sequence[Measure], run: Run) -> int:
    """The largest depth of the measures; that of the run where one has none."""
    depths = [measure.depth for measure in measures]
    longest = int(np.diff(run.starts).max(initial=1))
    return max(depth if depth is not None else longest for depth in depths)


def _weights(queries: Queries | None, query_ids: Sequence[str]) -> Floats:
    if queries is None or "weight" not in queries.frame.columns:
        return np.ones(len(query_ids))
    weight = dict(queries.frame.select("query_id", "weight").iter_rows())
    weights = np.array([weight.get(query) or 0.0 for query in query_ids])
    return weights if weights.any() else np.ones(len(query_ids))


def _in_index(found: Roads, engine: EngineConfig, notes: list[str]) -> frozenset[str] | None:
    """Which of the documents that no stage returned the engine's index has."""
    unseen = ~found.held.any(axis=0) & (found.below == 0) & (found.loss > 0)
    wanted = found.doc_id.filter(pl.Series(unseen)).unique(maintain_order=True).to_list()
    seen = found.doc_id.filter(pl.Series(~unseen)).to_list()
    there = set(seen)
    try:
        with open_live(engine) as live:
            for start in range(0, min(len(wanted), _MOST), _LOOKED_UP):
                rows = live.documents(wanted[start : start + _LOOKED_UP])
                if rows is None:
                    raise KaratError("it cannot be asked for documents by id")
                there |= {str(row["doc_id"]) for row in rows}
    except KaratError as error:
        notes.append(f"{engine.name} was not asked for documents: {getattr(error, 'what', error)}")
        return None
    return frozenset(there | set(wanted[_MOST:]))


def _notes(found: Roads, run: Run, query_ids: Sequence[str], asked: Sequence[str]) -> Iterator[str]:
    if len(asked) < len(query_ids):
        without = len(query_ids) - len(asked)
        yield (
            f"{counted(without, 'query has', 'queries have')} no trace; stages and fixes are over "
            f"the other {len(asked):,}"
        )
    if asked and found.ranker is not None:
        inputs_of_serving = found.stages[-1].parents
        last = [found.held[found.place[name]] for name in inputs_of_serving]
        odd = found.held[-1] & found.traced & ~np.logical_or.reduce(last)
        if odd.any():
            pairs = counted(int(odd.sum()), "relevant document", "relevant documents")
            yield f"{run.name} serves {pairs} that the trace's last stage does not have"


def _slices(queries: Queries | None, by: str) -> dict[str, set[str]]:
    """Slice → the ids of its queries."""
    frame = None if queries is None else queries.frame
    if frame is None or by not in frame.columns:
        names = [] if frame is None else [name for name in frame.columns if name != "query_id"]
        raise UsageError(
            f"the queries have no attribute {by!r}",
            nearest=nearest(by, names, 1),
            fix=f"one of {', '.join(names)}" if names else "queries with attributes",
        )
    parts: dict[str, set[str]] = {}
    for query, value in frame.select("query_id", by).iter_rows():
        parts.setdefault("none" if value is None else str(value), set()).add(query)
    return dict(sorted(parts.items()))


def _modes_by(
    found: Roads, named: Named, rows: Sequence[QueryMode], parts: Mapping[str, set[str]]
) -> dict[str, list[ModeRow]]:
    own = {name: [row for row in rows if row.query_id in ids] for name, ids in parts.items()}
    return {name: summary(found, named, failing) for name, failing in own.items() if failing}


def _traced(parts: Mapping[str, set[str]], asked: Sequence[str]) -> dict[str, set[str]]:
    """The slices that have a traced query, as waterfalls of no query say nothing."""
    return {name: own for name, own in parts.items() if not own.isdisjoint(asked)}
