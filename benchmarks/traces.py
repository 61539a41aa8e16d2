"""What a trace costs: writing one, reading it, and diagnosing a run with it.

    python benchmarks/traces.py [--queries 10000] [--depth 1000]

Three stages of as many documents for each query: two retrievers and a fusion. Printed are seconds
and the largest memory, of processes of their own: a diagnosis from Parquet, and the reading of JSON
lines; and microseconds of ``karat.trace`` for a stage and for a document.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import karat
from karat.formats.own.traces import read_trace, write_trace
from karat.tables import Qrels, Run
from karat.tables.diagnosis.traces import COLUMNS, Trace
from karat.workflows.diagnosis.diagnose import diagnose


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=1_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording(folder / "own.jsonl")
        for what in (made, diagnosed, read):
            child = multiprocessing.get_context("spawn").Process(
                target=what, args=(folder, asked.queries, asked.depth)
            )
            child.start()
            child.join()


def recording(file: Path) -> None:
    """Microseconds of a stage without documents, and of each document."""
    documents = [(f"doc{n}", 100.0 - n) for n in range(1_000)]
    took = {}
    for count, listed in ((0, []), (1_000, documents)):
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            with karat.trace(file, "q1") as trace:
                for number in range(100):
                    with trace.stage(f"stage {number}") as stage:
                        stage.ranked(listed)
            best = min(best, time.process_time() - start)
        took[count] = best / 100 * 1e6
    per_document = (took[1_000] - took[0]) / 1_000
    print(f"karat.trace: {took[0]:.1f} µs a stage, {per_document:.2f} µs a document", flush=True)


def made(folder: Path, queries: int, depth: int) -> None:
    """Write the trace, the run and the judgments."""
    rng = np.random.default_rng(0)
    ids = np.array([f"d{n}" for n in range(100 * depth)])
    kinds = {
        "bm25": ("retrieve", []),
        "dense": ("retrieve", []),
        "fused": ("fuse", ["bm25", "dense"]),
    }
    scores = np.linspace(1, 0, depth).tolist()
    frames = []
    for name, (kind, parents) in kinds.items():
        lists = [rng.choice(len(ids), depth, replace=False) for _ in range(100)]
        docs = frames[0]["doc_ids"].to_list() if name == "fused" else [
            ids[np.roll(lists[n % 100], n)].tolist() for n in range(queries)
        ]  # fmt: skip
        frame = pl.DataFrame({"query_id": [f"q{n}" for n in range(queries)], "doc_ids": docs})
        frames.append(
            frame.with_columns(
                stage=pl.lit(name),
                kind=pl.lit(kind),
                parents=pl.lit(parents, pl.List(pl.String)),
                ranks=pl.int_ranges(1, depth + 1, dtype=pl.UInt32),
                scores=pl.lit(scores, pl.List(pl.Float64)),
                **{
                    column: pl.lit(None, dtype)
                    for column, dtype in COLUMNS.items()
                    if column
                    not in {"query_id", "doc_ids", "stage", "kind", "parents", "ranks", "scores"}
                },
            ).select(list(COLUMNS))
        )
    write_trace(Trace(pl.concat(frames)), folder / "trace.parquet")
    write_trace(
        Trace(pl.concat([each.head(queries // 20) for each in frames])), folder / "trace.jsonl"
    )
    fused = frames[2]
    rows = fused.select("query_id", doc_id=pl.col("doc_ids").list.head(100)).explode("doc_id")
    rows = rows.with_columns(score=-pl.int_range(pl.len()).over("query_id").cast(pl.Float64))
    karat.write_run(Run.from_batches("fused", [rows]), folder / "run.parquet")
    relevant = fused.select("query_id", doc_id=pl.col("doc_ids").list.gather([3, 50, 90]))
    grades = relevant.explode("doc_id").with_columns(grade=pl.lit(1.0))
    karat.write_qrels(Qrels(grades, "qrels"), folder / "qrels.parquet")


def diagnosed(folder: Path, queries: int, depth: int) -> None:
    """Diagnose from Parquet."""
    start = time.perf_counter()
    found = diagnose(
        folder / "qrels.parquet", folder / "run.parquet", trace=folder / "trace.parquet"
    )
    took = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = f"{queries:,} queries × {len(found.stages) - 1} stages × {depth:,} documents"
    print(f"karat diagnose, Parquet: {size}: {took:.1f} s, {memory:,.0f} MiB", flush=True)


def read(folder: Path, queries: int, depth: int) -> None:
    """Read JSON lines, of a twentieth of the queries."""
    start = time.perf_counter()
    trace = read_trace(folder / "trace.jsonl")
    took = time.perf_counter() - start
    documents = len(trace) * depth
    print(
        f"JSON lines: {documents / took / 1e6:.2f} million documents a second "
        f"({queries // 20:,} queries)",
        flush=True,
    )


if __name__ == "__main__":
    main()
