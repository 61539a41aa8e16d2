"""Pools asked live: declared engines answer the golden set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from karat.reports.phrases.numbers import counted
from karat.tables import Run
from karat.tables.engines import EngineConfig
from karat.workflows.engines.live import search_engine
from karat.workflows.golden.pooling import Pooled, pool
from karat.workflows.workspace.workspace import Workspace, queries_in

_CALLS = 4  # requests at once


def pool_engines(
    opened: Workspace,
    engines: Sequence[EngineConfig],
    given: Sequence[str | Path | Run],
    *,
    now: int,
    k: int = 10,
    **how: Any,
) -> Pooled:
    """Ask engines with the golden set, pool their answers, and take over the documents.

    For the other arguments see ``pool``.
    """
    asked = queries_in(opened)
    runs: list[Run] = []
    notes: list[str] = []
    with TemporaryDirectory() as folder:
        for engine in engines:
            # Other methods than depth look below the k-th document.
            depth = k if how.get("method", "depth") == "depth" else None
            out = Path(folder) / f"{engine.name}.jsonl"
            found = search_engine(asked, engine, out, depth=depth, concurrency=_CALLS)
            runs.append(found.run)
            if found.failed:
                failed = counted(found.failed, "query", "queries")
                notes.append(f"{engine.name} failed for {failed}: {found.reasons[0].error}")
    made = pool(opened, [*given, *runs], now=now, k=k, engines=engines, **how)
    return replace(made, notes=[*notes, *made.notes])
