"""The demo as a workspace: its golden set, its graders, an edition, its runs, and a queue."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import polars as pl

from karat.demo.build import Demo
from karat.formats import read_documents, read_queries
from karat.formats.workspace import NAME
from karat.tables import Pairs
from karat.tables.agreement import Agreement
from karat.tables.exchange import Exchange
from karat.workflows.agreeing import agreement_in
from karat.workflows.editions import freeze, list_editions
from karat.workflows.exchanging import take_exchange
from karat.workflows.kept_runs import keep_runs
from karat.workflows.pool import enqueue
from karat.workflows.workspace import make_workspace, open_workspace

EDITION = "first"
"""Name of the demo's edition."""
_ALONE: dict[str, str] = {}  # the demo stays out of a team's store, whatever KARAT_STORE says


@dataclass(frozen=True)
class Kept:
    """What the workspace holds.

    Attributes:
        agreement: How far the graders agree.
        edition: Name of its edition.
        grades: Grades in it.
        waiting: Judgments that the queue waits for.
        notes: Runs that are kept under another name, in sentences.
    """

    agreement: Agreement
    edition: str
    grades: int
    waiting: int
    notes: list[str]


def keep(demo: Demo, to_judge: Pairs, *, now: int) -> Kept:
    """Make the demo's folder a workspace; in one that is there already judgments stay.

    Args:
        demo: Where it lies.
        to_judge: Pairs for the queue.
        now: Microseconds UTC.
    """
    if not (demo.directory / NAME).exists():
        make_workspace(demo.directory, now=now, name="python-help", environment=_ALONE)
    with open_workspace(demo.directory, now=now, environment=_ALONE) as opened:
        said = pl.read_csv(demo.judgments, separator="\t", infer_schema=False)
        facts = said.select(
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
        take_exchange(opened, found, file=demo.judgments.name, sha256=digest, now=now)
        kept = keep_runs(opened, demo.runs, now=now)
        frozen = {row.name: row for row in list_editions(opened)}
        grades = (
            frozen[EDITION].grades if EDITION in frozen else freeze(opened, EDITION, now=now).grades
        )
        waiting = enqueue(opened, to_judge, now=now).waiting
        return Kept(agreement_in(opened), EDITION, grades, waiting, kept.notes)
