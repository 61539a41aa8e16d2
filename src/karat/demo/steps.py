"""The steps by which the demo's search came about, each held against the gate: a history.

Each point is a ranking that was made and measured, at the time it has: nothing is invented, and
so the first demo leaves its points seconds apart. A later demo in the same folder adds one.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from karat.demo import bm25, hybrid
from karat.demo.build import Demo
from karat.demo.hybrid import Ranking
from karat.formats import read_documents, read_queries, read_run
from karat.tables import Run
from karat.workflows.release.gate import gate
from karat.workflows.release.trend import keep_gate

HISTORY = "history.jsonl"
RUN = "search"
"""Name of the system that is built step by step."""
FEW = 10
"""Documents of each system that an early step fused."""


def keep_steps(demo: Demo, clock: Callable[[], int]) -> Path:
    """Add the steps to the demo's history: all of them to a new one, else the newest.

    Args:
        demo: Where it lies.
        clock: Gives microseconds UTC, now.
    """
    path = demo.directory / HISTORY
    words = read_run(demo.runs[0])
    known, corpus = path.exists(), f"Python {platform.python_version()}"
    for label, run in list(steps(demo))[-1:] if known else steps(demo):
        held = gate(demo.policy, demo.directory, words, run)
        when = datetime.fromtimestamp(clock() / 1e6, UTC).isoformat(timespec="microseconds")
        time = when.replace("+00:00", "Z")
        keep_gate(path, held, time=time, commit=label, corpus=corpus)
    return path


def steps(demo: Demo) -> Iterator[tuple[str, Run]]:
    """What the search did at each step, and what it returned then."""
    texts = dict(read_queries(demo.queries).frame.select("query_id", "text").iter_rows())
    nothing: dict[str, dict[str, float]] = {query_id: {} for query_id in texts}

    def named(found: Ranking) -> Run:
        # Of a run that was written, the queries that nothing was found for are lost.
        return Run.from_dict(nothing | {each: dict(at) for each, at in found.items()}, name=RUN)

    frame = read_documents(demo.corpus).frame.select("doc_id", "title", "text")
    yield "1 titles", named(bm25.rank(frame.with_columns(text=pl.lit("")), texts))
    first, second, fused = (
        {each: list(found.items()) for each, found in read_run(path).to_dict().items()}
        for path in demo.runs
    )
    yield "2 titles and texts", named(first)
    both = f"with {demo.runs[1].stem}"
    yield f"3 {both}, {FEW} of each", named(hybrid.rank([first, second], depth=FEW))
    yield f"4 {both}, {hybrid.DEPTH} of each", named(fused)
