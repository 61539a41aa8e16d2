"""Made-up shadow traffic: what two sides answer to some requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from karat.tables import Run
from karat.tables.experiments.shadow import Observed, Side

Answer = list[str] | str | None
"""Documents, an error, or None if the side was not asked."""
DOCS = [f"d{number}" for number in range(15)]
_ANSWERS = {
    "query_id": pl.String, "state": pl.String, "latency_us": pl.Int64, "error": pl.String,
}  # fmt: skip


def noisy(draws: Random, tied: int = 3) -> list[str]:
    """Ten documents; those of equal score are in any order."""
    return sorted(DOCS, key=lambda doc: (int(doc[1:]) // tied, draws.random()))[:10]


def run_of(
    answers: Sequence[Answer],
    times_us: Sequence[int | None],
    name: str,
    ids: Sequence[str] | None = None,
) -> Run:
    """The answers to the requests 1, 2, …, or to those of ``ids``."""
    rows, states = [], []
    for place, (answer, time) in enumerate(zip(answers, times_us, strict=True)):
        at = str(place + 1) if ids is None else ids[place]
        if answer is None:
            continue
        docs = [] if isinstance(answer, str) else answer
        rows += [(at, doc, -float(rank)) for rank, doc in enumerate(docs, 1)]
        failed = isinstance(answer, str)
        state = "failed" if failed else "ok" if docs else "empty"
        states.append((at, state, time, answer if failed else None))
    schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return Run.from_batches(
        name,
        [pl.DataFrame(rows, schema=schema, orient="row")],
        answers=pl.DataFrame(states, schema=_ANSWERS, orient="row"),
    )


def write_shadow_log(
    path: Path, queries: int = 400, changed: int = 0, *, ids: bool = False
) -> Path:
    """A log of queries ``q0``, ``q1``, … of which the first get other documents, in other order."""
    old = {"state": "ok", "doc_ids": ["d1", "d2", "d3"], "latency_us": 1000}
    new = old | {"doc_ids": ["d2", "d1", "new"]}
    rows: list[dict[str, Any]] = [
        {"karat_shadow_log": 1, "digest": "", "engines": {"baseline": "old", "candidate": "new"},
         "about": {"baseline": {"engine": "old"}, "candidate": {"engine": "new"}}}
    ]  # fmt: skip
    for at in range(queries):
        answers = {"baseline": old, "candidate": new if at < changed else old, "again": old}
        own = {"query_id": f"q{at}"} if ids else {}
        rows.append({"id": str(at), "query": f"q{at}", **own, "answers": answers})
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def observed(
    sides: Mapping[Side, Sequence[Answer]],
    *,
    queries: Sequence[str] | None = None,
    query_ids: Sequence[str] | None = None,
    times_us: Mapping[Side, Sequence[int | None]] | None = None,
    phase: Callable[[int], str] = lambda _at: "warm",
    late_us: Sequence[int] | None = None,
    **more: Any,
) -> Observed:
    """Requests 1, 2, …; their queries are ``q1``, ``q2``, … and take 1 to 2 ms by default."""
    n = len(sides["baseline"])
    texts = [f"q{at}" for at in range(1, n + 1)] if queries is None else list(queries)
    steady = [1000 + at % 1000 for at in range(n)]
    runs = {
        side: run_of(answers, (times_us or {}).get(side, steady), side)
        for side, answers in sides.items()
    }
    requests = pl.DataFrame(
        {
            "id": [str(at) for at in range(1, n + 1)],
            "query": texts,
            "query_id": [None] * n if query_ids is None else query_ids,
            "phase": [phase(at) for at in range(1, n + 1)],
            "late_us": [0] * n if late_us is None else late_us,
        },
        schema={
            "id": pl.String, "query": pl.String, "query_id": pl.String, "phase": pl.String,
            "late_us": pl.Int64,
        },
    )  # fmt: skip
    names: dict[Side, str] = {"baseline": "old", "candidate": "new", "again": "old"}
    return Observed(requests, runs, more.pop("about", {}), names, **more)
