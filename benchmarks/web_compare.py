"""Pages of a large comparison, by the time the server takes, after a restart.

    python benchmarks/web_compare.py [--queries N] [--depth N] [--rounds N] [DIR]

Two runs (10,000 queries x 100 documents) and 20 judgments of each query are kept in a workspace
and compared by three measures, which is timed once. Then the app starts anew and answers: the page
of the comparison, its list filtered, sorted, searched and paged, single queries with both rankings,
JSON and CSV. What is told is the header ``server-timing`` of each answer, the first ones among
them, when nothing is in memory yet. Nothing of the kind is known of other tools.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl
from starlette.testclient import TestClient

from karat.store.sql import comparisons, judgments, runs
from karat.tables import Run
from karat.web.app import PAGES, create_app
from karat.web.framework.settings import Settings
from karat.web.offline import comparisons as pages
from karat.web.offline import side_by_side
from karat.workflows.golden.sampling import put_queries
from karat.workflows.workspace.stored_comparisons import Asked, ask, compute
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import make_workspace, open_workspace

CORPUS, JUDGED = 1_000_000, 20
MEASURES = ("nDCG@10", "RR@10", "AP")


def main() -> None:
    """Make it, compare it, look at it."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("folder", nargs="?", type=Path)
    said.add_argument("--queries", type=int, default=10_000)
    said.add_argument("--depth", type=int, default=100)
    said.add_argument("--rounds", type=int, default=20)
    given = said.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = (given.folder or Path(folder)) / "workspace"
        number = _made(root, given.queries, given.depth)
        _looked(root, number, given.queries, given.rounds)


def _clock() -> int:
    return time.time_ns() // 1000


def _made(root: Path, n: int, depth: int) -> int:
    make_workspace(root, now=_clock(), name="large", environment={})
    random = np.random.default_rng(0)
    names = [f"q{place:05}" for place in range(n)]
    with open_workspace(root, now=_clock(), environment={}) as opened:
        with opened.store.begin() as connection:
            texts = [f"query number {place} of many" for place in range(n)]
            frame = pl.DataFrame({"query_id": names, "text": texts})
            put_queries(connection, opened.golden.id, frame, _clock())
        good = random.integers(0, CORPUS, (n, JUDGED))
        _judged(opened, names, good, random)
        made = [_run(name, names, good, depth, random) for name in ("before", "after")]
        store_runs(opened, made, now=_clock())
        with opened.store.read() as connection:
            kept = [row.id for row in runs.runs(connection, opened.golden.id)]
        number = ask(opened, Asked(kept, MEASURES, ["query_length"]), by="b", now=_clock())
        start = time.perf_counter()
        compute(opened, number, _clock)
        print(f"computed once: {time.perf_counter() - start:.1f} s")
        with opened.store.read() as connection:
            row = comparisons.find(connection, number)
        assert row is not None
        assert row.state == "done", row.error
    size = sum(path.stat().st_size for path in (root / "comparisons").rglob("*"))
    print(f"kept: {size / 2**20:.0f} MB")
    return number


def _judged(
    opened: object, names: list[str], good: np.ndarray, random: np.random.Generator
) -> None:
    n = len(names)
    frame = pl.DataFrame(
        {
            "query_id": np.repeat(names, JUDGED),
            "doc_id": [f"d{each}" for each in good.ravel().tolist()],
            "grade": random.integers(0, 4, n * JUDGED).astype(float),
        }
    ).unique(["query_id", "doc_id"], maintain_order=True)
    facts = frame.with_columns(
        pl.int_range(1, pl.len() + 1).alias("judgment"),
        state=pl.lit("graded"),
        reason=pl.lit(None, pl.String),
        rater=pl.lit("import"),
        source=pl.lit("import"),
        kind=pl.lit("rating"),
        time_us=pl.lit(_clock()),
    )
    with opened.store.begin() as connection:  # type: ignore[attr-defined]
        judgments.record(connection, opened.golden.id, facts, None)  # type: ignore[attr-defined]


def _run(
    name: str, names: list[str], good: np.ndarray, depth: int, random: np.random.Generator
) -> Run:
    n = len(names)
    found = random.integers(0, CORPUS, (n, depth))
    for column in range(JUDGED // 2):  # half of the judged ones, somewhere in the ranking
        found[np.arange(n), random.integers(0, depth, n)] = good[:, column]
    frame = pl.DataFrame(
        {
            "query_id": np.repeat(names, depth),
            "doc_id": [f"d{each}" for each in found.ravel().tolist()],
            "score": np.tile(np.arange(depth, 0, -1.0), n),
        }
    )
    return Run.from_frame(frame.unique(["query_id", "doc_id"], maintain_order=True), name)


def _looked(root: Path, number: int, n: int, rounds: int) -> None:
    settings = Settings(root, hosts=("127.0.0.1",))
    routers = [*(each for each in PAGES if each not in (pages.ROUTER, side_by_side.ROUTER))]
    app = create_app(settings, _clock, [*routers, pages.ROUTER, side_by_side.ROUTER])
    page = f"/comparisons/{number}"
    random = np.random.default_rng(1)
    asked = {
        "page": lambda: page,
        "losses": lambda: f"{page}?measure=AP&outcome=worse",
        "slice": lambda: f"{page}?slice={quote('query_length=5 words and more')}",
        "sorted": lambda: f"{page}?sort=-candidate_value",
        "searched": lambda: f"{page}?q=number+{random.integers(0, 100)}",
        "deep page": lambda: f"{page}?page={random.integers(1, n // 50 + 1)}",
        "one query": lambda: f"{page}/queries/q{random.integers(0, n):05}",
        "list": lambda: "/comparisons",
        "csv": lambda: f"{page}?format=csv",
        "json": lambda: f"{page}?format=json",
    }
    with TestClient(app, base_url="http://127.0.0.1") as client:
        site = app.state.site
        person = site.accounts.local("anna")
        client.cookies.set(
            site.cookie, site.accounts.start_session(person, "b"), domain="127.0.0.1"
        )
        print(f"{'page':<10} {'first':>8} {'p50':>8} {'p95':>8}   ms, by the server")
        for name, address in asked.items():
            took = [_took(client, address()) for _ in range(rounds)]
            p95 = float(np.quantile(took, 0.95))
            print(f"{name:<10} {took[0]:8.0f} {statistics.median(took):8.0f} {p95:8.0f}")


def _took(client: TestClient, address: str) -> float:
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)
    return float(answer.headers["server-timing"].split("dur=")[1])


if __name__ == "__main__":
    main()
