"""The steps in which the demo's search was built, each checked by the gate: a history.

Each point is a real ranking, with the time at which it was measured: the points of the first demo
are seconds apart. A later demo in the same folder adds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from karat.demo import bm25, hybrid
from karat.demo._documents import PYTHON
from karat.demo.build import Demo
from karat.demo.hybrid import Ranking
from karat.formats import read_documents, read_queries, read_run
from karat.formats.own.workspace import NAME as WORKSPACE
from karat.tables import Run
from karat.workflows.release.gate import gate
from karat.workflows.release.stored_gates import Checked, keep
from karat.workflows.release.trend import keep_gate
from karat.workflows.workspace.workspace import open_workspace

HISTORY = "history.jsonl"
RUN = "search"
"""Name of the system built step by step."""
FEW = 10
"""Documents of each system that an early step fuses."""


def keep_steps(demo: Demo, clock: Callable[[], int]) -> Path:
    """Add all steps to a new history of the demo, or the newest step to an existing one."""
    path = demo.directory / HISTORY
    words = read_run(demo.runs[0])
    known, corpus = path.exists(), f"Python {PYTHON}"
    for label, run in list(steps(demo))[-1:] if known else steps(demo):
        result, now = gate(demo.policy, demo.directory, words, run), clock()
        when = datetime.fromtimestamp(now / 1e6, UTC).isoformat(timespec="microseconds")
        time = when.replace("+00:00", "Z")
        keep_gate(path, result, time=time, commit=label, corpus=corpus)
        if (demo.directory / WORKSPACE).exists():
            with open_workspace(demo.directory, now=now, environment={}) as opened:
                keep(opened, result, Checked("command", "karat demo", now, label))
    return path


def steps(demo: Demo) -> Iterator[tuple[str, Run]]:
    texts = dict(read_queries(demo.queries).frame.select("query_id", "text").iter_rows())
    nothing: dict[str, dict[str, float]] = {query_id: {} for query_id in texts}

    def named(found: Ranking) -> Run:
        # A run read from a file lacks the queries without results.
        rankings = {query_id: dict(ranking) for query_id, ranking in found.items()}
        return Run.from_dict(nothing | rankings, name=RUN)

    frame = read_documents(demo.corpus).frame.select("doc_id", "title", "text")
    yield "1 titles", named(bm25.rank(frame.with_columns(text=pl.lit("")), texts))
    first, second, fused = (
        {query_id: list(scores.items()) for query_id, scores in read_run(path).to_dict().items()}
        for path in demo.runs
    )
    yield "2 titles and texts", named(first)
    both = f"with {demo.runs[1].stem}"
    yield f"3 {both}, {FEW} of each", named(hybrid.rank([first, second], depth=FEW))
    yield f"4 {both}, {hybrid.DEPTH} of each", named(fused)
