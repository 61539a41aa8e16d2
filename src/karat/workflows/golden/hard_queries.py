"""Hard queries: those a run answers worst, to add to a sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats import read_run
from karat.formats.exchange.import_ import counted
from karat.measures import parse
from karat.store.sql import imports, queries
from karat.tables import Qrels, Queries, Run
from karat.workflows.golden.editions import content_of
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.workspace.known_queries import following
from karat.workflows.workspace.workspace import Workspace

MEASURE = "nDCG@10"
MOST = 20  # default number of hard queries
_WHY = {
    "failed": "got no answer",
    "empty": "answered with nothing",
    "missing": "not in the run",
}


@dataclass(frozen=True)
class Hard:
    run: str
    measure: str  # the measure they were ranked by
    # `query_id`, `text`, `value` (null if undefined) and `reason`; the hardest first
    frame: pl.DataFrame
    notes: list[str]  # notes on what was left out


def hard_queries(
    opened: Workspace,
    run: str | Path | Run,
    *,
    qrels: Any = None,
    measure: str = MEASURE,
    most: int = MOST,
) -> Hard:
    """The queries that a run answers worst.

    First those that failed or returned nothing, judged or not; then those with the lowest values.
    A query with the best possible value is not hard.
    """
    if most < 1:
        raise UsageError(f"hard-most must be ≥ 1, got {most}", fix="--hard-most 20")
    ranked_by = parse(measure)
    if ranked_by.entry.direction != "higher":
        raise UsageError(f"higher {ranked_by} is not better", fix=f"--hard-measure {MEASURE}")
    system = run if isinstance(run, Run) else read_run(run)
    with opened.store.read() as connection:
        known = queries.frame(connection, opened.golden.id, dropped=True)
        aliases = imports.aliases(connection, opened.golden.id)
    texts = dict(zip(known["query_id"], known["text"], strict=True))
    notes: list[str] = []
    about: Queries | None = Queries(known.select("query_id", "no_answer"), "the workspace")
    if qrels is None:
        grades = content_of(opened).grades.select("query_id", "doc_id", "grade")
        if not grades.height:
            raise InputError(
                "nothing is judged in the workspace, so its queries cannot be ranked",
                file=system.source,
                fix="--qrels FILE, with judgments to rank by",
            )
        judgments = Qrels(grades, "the workspace", opened.golden.scale)
        system, notes = following(system, texts, aliases)
    else:
        judgments, about = inputs.qrels(qrels), inputs.about(None, qrels)
        texts |= {} if about is None else about.texts()
    rows = list(_ranked(system, judgments, about, str(ranked_by), notes))
    rows.sort(key=lambda row: (row[1], row[0]))
    hard = [(query, texts.get(query), *rest) for query, *rest in rows]
    if without := sum(not row[1] for row in hard):
        notes.append(f"{counted(without, 'query')} without a text: left out")
    hard = [row for row in hard if row[1]]
    if not hard:
        raise InputError(
            f"no query of the run is hard by {ranked_by}",
            file=system.source,
            fix="--hard FILE, with queries one a line",
        )
    if len(hard) > most:
        notes.append(f"{len(hard):,} queries qualify: the {most:,} hardest are used")
    chosen = [(query, text, value, why) for query, text, _, value, why in hard[:most]]
    schema = {"query_id": pl.String, "text": pl.String, "value": pl.Float64, "reason": pl.String}
    frame = pl.DataFrame(chosen, schema=schema, orient="row")
    return Hard(system.name, str(ranked_by), frame, notes)


_Row = tuple[str, tuple[int, float], float | None, str]


def _ranked(
    run: Run, qrels: Qrels, about: Queries | None, measure: str, notes: list[str]
) -> Iterator[_Row]:
    """Query, sort key, value, and reason."""
    silent = set() if about is None else about.no_answer()
    results = evaluate(
        qrels, run, [measure], queries=about, per_query=True, interval="none", bounds=False
    )
    states = dict(run.answers.select("query_id", "state").iter_rows())
    best = parse(measure).entry.high
    unjudged = undefined = 0
    for row in results.per_query:
        state = states.get(row.query_id, "missing")
        if row.query_id in silent:
            continue
        if state in ("failed", "empty"):
            place = 0 if state == "failed" else 1
            yield row.query_id, (place, 0.0), row.value, _WHY[state]
        elif row.state == "unjudged":
            unjudged += 1
        elif row.value is None:
            undefined += 1
        elif best is None or row.value < best:
            reason = f"{measure} {row.value:.4f}"
            if state == "missing":
                reason = f"{_WHY[state]}: {reason}"
            yield row.query_id, (2, row.value), row.value, reason
    if unjudged:
        notes.append(f"{counted(unjudged, 'query')} of the run without judgments: cannot be ranked")
    if undefined:
        notes.append(f"{counted(undefined, 'query')} without a relevant document: cannot be ranked")
