"""The demo as a workspace: its golden set, its graders, an edition, its runs, and a queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import polars as pl

from karat.demo import engines
from karat.demo.build import Demo
from karat.demo.words import MEASURES
from karat.formats import read_documents, read_qrels, read_queries
from karat.formats.own.workspace import NAME
from karat.tables import Pairs
from karat.tables.diagnosis.results import Diagnosis
from karat.tables.golden.agreement import Agreement
from karat.tables.golden.golden_sets import Exchange
from karat.tables.workspace import RunRow
from karat.workflows.diagnosis.stored_diagnoses import Diagnosing
from karat.workflows.golden.agreement import agreement_in
from karat.workflows.golden.editions import content_of, freeze, list_editions
from karat.workflows.golden.import_ import import_exchange, record_judgments
from karat.workflows.golden.pooling import enqueue
from karat.workflows.workspace.listed import list_runs
from karat.workflows.workspace.run_stages import chosen, stages_of
from karat.workflows.workspace.stored_comparisons import Asked, ask, compute, listed
from karat.workflows.workspace.stored_runs import store_runs, stored_by_name
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

EDITION = "first"
"""Name of the demo's edition."""
SETTLES = "karat demo"
"""The adjudicator of pairs on which the demo's graders disagree."""
_ALONE: dict[str, str] = {}  # ignores KARAT_STORE: the demo does not write to a team's store


@dataclass(frozen=True)
class Kept:
    agreement: Agreement
    edition: str
    grades: int
    waiting: int
    notes: list[str]


def keep_comparison(demo: Demo, clock: Callable[[], int]) -> str | None:
    """The name of the comparison of the demo's runs, stored if new; None if it failed."""
    with open_workspace(demo.directory, now=clock(), environment=_ALONE) as opened:
        known = {row.name: row.id for row in list_runs(opened)[0][::-1]}  # the newest of a name
        stored = [each.row for each in listed(opened)]
        compared = list(dict.fromkeys(known[path.stem] for path in demo.runs if path.stem in known))
        if len(compared) < 2:
            return None
        found = next((row for row in stored if list(row.runs) == compared), None)
        if found is None:
            request = Asked(compared, MEASURES, ("class",))
            number = ask(opened, request, by="karat demo", now=clock())
            compute(opened, number, clock)
            found = next((each.row for each in listed(opened) if each.row.id == number), None)
        return found.name if found is not None and found.state == "done" else None


@dataclass(frozen=True)
class Diagnosed:
    run: RunRow
    baseline: RunRow
    stages: list[str]
    diagnosis: Diagnosis


def keep_diagnoses(demo: Demo, clock: Callable[[], int]) -> Diagnosed | None:
    """Store the diagnoses of the demo's runs, alone and next to the first; that of the last."""
    found = None
    with open_workspace(demo.directory, now=clock(), environment=_ALONE) as opened:
        known = stored_by_name(opened)
        baseline, *rows = [known[path.stem] for path in demo.runs if path.stem in known]
        for row in (baseline, *rows):
            stages = stages_of(opened, row)
            if stages is None:
                continue
            steps = chosen(opened, stages)
            Diagnosing(opened, row, steps).find()  # the list of diagnoses is of runs by themselves
            if row is not baseline:
                stored = Diagnosing(opened, row, steps, baseline).find()
                found = Diagnosed(row, baseline, stages, stored.diagnosis)
    return found


def keep(demo: Demo, to_judge: Pairs, *, now: int) -> Kept:
    """Create a workspace in the demo's folder, or update one, keeping its judgments."""
    if not (demo.directory / NAME).exists():
        make_workspace(demo.directory, now=now, name="python-help", environment=_ALONE)
    engines.declare(demo.directory)
    with open_workspace(demo.directory, now=now, environment=_ALONE) as opened:
        return fill(opened, demo, to_judge, now=now)


def fill(opened: Workspace, demo: Demo, to_judge: Pairs | None, *, now: int) -> Kept:
    """Put the demo's queries, documents, judgments and runs into a workspace, and freeze them."""
    graded = pl.read_csv(demo.judgments, separator="\t", infer_schema=False)
    facts = graded.select(
        "query_id",
        "doc_id",
        pl.col("grade").cast(pl.Float64),
        rater="grader",
        reason=pl.lit(None, pl.String),
    )
    found = Exchange(
        "csv",
        queries=read_queries(demo.queries).frame,
        documents=read_documents(demo.corpus).frame,
        judgments=facts,
    )
    digest = sha256(demo.judgments.read_bytes()).hexdigest()
    import_exchange(opened, found, file=demo.judgments.name, sha256=digest, now=now)
    _settle(opened, demo, graded["grader"].unique().to_list(), now)
    kept = store_runs(opened, demo.runs, now=now)
    frozen = {row.name: row for row in list_editions(opened)}
    if EDITION in frozen:
        count = frozen[EDITION].grades
    else:
        count = freeze(opened, EDITION, now=now).grades
    waiting = 0 if to_judge is None else enqueue(opened, to_judge, now=now).waiting
    return Kept(agreement_in(opened), EDITION, count, waiting, kept.notes)


def _settle(opened: Workspace, demo: Demo, graders: Sequence[str], now: int) -> None:
    """Adjudicate pairs for which the aggregation method gives another grade than the demo's qrels.

    So pages show the same numbers as the terminal. Judgments by others are not changed.
    """
    counted = content_of(opened).grades.rename({"grade": "by_rule"})
    ours = pl.col("raters").list.set_difference(pl.lit(graders)).list.len() == 0
    facts = (
        read_qrels(demo.directory)
        .frame.select("query_id", "doc_id", pl.col("grade").cast(pl.Float64))
        .join(counted, on=["query_id", "doc_id"])
        .filter(pl.col("rule") != "adjudicated", ours, pl.col("grade") != pl.col("by_rule"))
        .select(
            "query_id",
            "doc_id",
            "grade",
            rater=pl.lit(SETTLES),
            source=pl.lit("human"),
            kind=pl.lit("adjudication"),
            reason=pl.lit("the first grade counts, as in qrels/test.tsv"),
            time_us=pl.lit(now),
        )
    )
    if facts.height:
        record_judgments(opened, facts)
