"""Pages of a large workspace, by the processor and wall time that the server takes.

    python benchmarks/web_pages.py [--queries N] [--events N] [--rounds N] [--store URL] [DIR]

The workspace has 10,000 queries, 200,000 judgments (two raters for each of ten documents of a
query), two runs of 100 documents for each query, their comparison by three measures, and a month
of a million simulated events. It is made once: give DIR to keep it. The app is then started anew,
and every page is requested several times. Printed for each: the first answer, when nothing is in
memory, the median and the 95th percentile (``server-timing``), the median of the processor time,
and the compressed size. No other tool is known to publish such numbers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import event_generator
import numpy as np
import polars as pl
from starlette.testclient import TestClient

from karat.store.sql import comparisons, judgments, runs
from karat.tables import Run
from karat.web.app import create_app
from karat.web.framework.jobs import COMPUTING
from karat.web.framework.settings import Settings
from karat.workflows.golden.sampling import put_queries
from karat.workflows.workspace.stored_comparisons import Asked, ask, compute
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

CORPUS, JUDGED, DEPTH = 1_000_000, 10, 100
MEASURES = ("nDCG@10", "RR@10", "AP")
NAME = "large"


def main() -> None:
    """Make the workspace unless it is there, and request its pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--store", default="sqlite:///karat.db")
    parser.add_argument("--pages", default="", help="only those whose name contains this")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = (given.folder or Path(folder)) / "workspace"
        if not (root / "karat.toml").exists():
            _make(root, given.queries, given.events, given.store)
        _look(root, given.queries, given.rounds, given.pages)


def _clock() -> int:
    return time.time_ns() // 1000


def _make(root: Path, n: int, events: int, store: str) -> None:
    make_workspace(root, now=_clock(), name=NAME, store=store, environment={})
    random = np.random.default_rng(0)
    names = [f"q{place:05}" for place in range(n)]
    with open_workspace(root, now=_clock(), environment={}) as opened:
        with opened.store.begin() as connection:
            texts = [f"query number {place} of many" for place in range(n)]
            frame = pl.DataFrame({"query_id": names, "text": texts})
            frame = frame.with_columns(lang=pl.Series(random.choice(["de", "en", "fr"], n)))
            put_queries(connection, opened.golden.id, frame, _clock())
        good = random.integers(0, CORPUS, (n, JUDGED))
        _judge(opened, names, good, random)
        made = [_run(name, names, good, random) for name in ("before", "after")]
        store_runs(opened, made, now=_clock())
        with opened.store.read() as connection:
            ids = [row.id for row in runs.runs(connection, opened.golden.id)]
        number = ask(opened, Asked(ids, MEASURES, ["query_length"]), by="b", now=_clock())
        start = time.perf_counter()
        compute(opened, number, _clock)
        print(f"comparison computed in {time.perf_counter() - start:.1f} s", file=sys.stderr)
        if events:
            event_generator.generate(opened.workspace.events, events)


def _judge(
    opened: Workspace, names: list[str], good: np.ndarray, random: np.random.Generator
) -> None:
    """Two raters grade each pair; one in five grades of the second differs from the first."""
    n = len(names)
    pair = pl.DataFrame(
        {
            "query_id": np.repeat(names, JUDGED),
            "doc_id": [f"d{each}" for each in good.ravel().tolist()],
            "grade": random.integers(0, 4, n * JUDGED).astype(float),
        }
    ).unique(["query_id", "doc_id"], maintain_order=True)
    other = random.integers(0, 4, pair.height).astype(float)
    differs = random.random(pair.height) < 0.2
    second = pair.with_columns(
        pl.when(pl.Series(differs)).then(pl.Series(other)).otherwise("grade").alias("grade")
    )
    facts = pl.concat(
        [pair.with_columns(rater=pl.lit("ann")), second.with_columns(rater=pl.lit("ben"))]
    ).with_columns(
        state=pl.lit("graded"),
        reason=pl.lit(None, pl.String),
        source=pl.lit("human"),
        kind=pl.lit("rating"),
        time_us=pl.lit(_clock()) + pl.int_range(pl.len()),
    )
    with opened.store.begin() as connection:
        judgments.record(connection, opened.golden.id, facts, None)


def _run(name: str, names: list[str], good: np.ndarray, random: np.random.Generator) -> Run:
    n = len(names)
    found = random.integers(0, CORPUS, (n, DEPTH))
    for column in range(JUDGED // 2):  # half of the judged documents, anywhere in the ranking
        found[np.arange(n), random.integers(0, DEPTH, n)] = good[:, column]
    frame = pl.DataFrame(
        {
            "query_id": np.repeat(names, DEPTH),
            "doc_id": [f"d{each}" for each in found.ravel().tolist()],
            "score": np.tile(np.arange(DEPTH, 0, -1.0), n),
        }
    )
    return Run.from_frame(frame.unique(["query_id", "doc_id"], maintain_order=True), name)


def _look(root: Path, n: int, rounds: int, only: str) -> None:
    app = create_app(Settings(root, hosts=("127.0.0.1",)), _clock)
    random = np.random.default_rng(1)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        site = app.state.site
        with site.workspace.store.read() as connection:
            [number] = [
                row.id for row in comparisons.comparisons(connection, site.workspace.golden.id)
            ]
        person = site.accounts.local("anna")
        client.cookies.set(
            site.cookie, site.accounts.start_session(person, "b"), domain="127.0.0.1"
        )
        page, golden = f"/comparisons/{number}", f"/golden/{NAME}"
        addresses = {
            "home": lambda: "/",
            "golden sets": lambda: "/golden",
            "overview": lambda: golden,
            "agreement": lambda: f"{golden}/agreement",
            "disagreements": lambda: f"{golden}/disagreements",
            "editions": lambda: f"{golden}/editions",
            "queries": lambda: f"{golden}/queries",
            "judgments": lambda: f"{golden}/judgments",
            "pairs": lambda: f"{golden}/pairs",
            "runs": lambda: "/runs",
            "run": lambda: "/runs/1",
            "run: query": lambda: f"/runs/1/queries/q{random.integers(0, n):05}",
            "comparisons": lambda: "/comparisons",
            "comparison": lambda: page,
            "comparison: losses": lambda: f"{page}?measure=AP&outcome=worse",
            "comparison: slice": lambda: f"{page}?slice={quote('query_length=5 words and more')}",
            "comparison: sorted": lambda: f"{page}?sort=-candidate_value",
            "comparison: searched": lambda: f"{page}?q=number+{random.integers(0, 100)}",
            "comparison: page n": lambda: f"{page}?page={random.integers(1, n // 50 + 1)}",
            "comparison: query": lambda: f"{page}/queries/q{random.integers(0, n):05}",
            "comparison: csv": lambda: f"{page}?format=csv",
            "trends": lambda: "/trends",
            "online": lambda: "/online",
            "online by class": lambda: "/online?by=kind",
            "watch": lambda: "/online/watch",
            "worst queries": lambda: "/online/queries",
            "api: comparisons": lambda: "/api/comparisons",
            "api: runs": lambda: "/api/runs",
        }
        print(f"{'page':<22}{'first':>8}{'p50':>8}{'p95':>8}{'cpu':>8}   ms   kB")
        for name, address in addresses.items():
            if only in name:
                _measure(client, name, address, rounds)


def _measure(client: TestClient, name: str, address: object, rounds: int) -> None:
    first, wall, cpu, size, code = 0.0, [], [], 0, set()
    for round_ in range(rounds + 1):
        start = time.process_time()
        answer = client.get(address())  # type: ignore[operator]
        used = 1000 * (time.process_time() - start)
        took = float(answer.headers["server-timing"].split("dur=")[1])
        code.add(answer.status_code)
        size = max(size, int(answer.headers.get("content-length", 0)))
        if not round_:
            first = took
            while "data-waits" in answer.text or COMPUTING._jobs:  # noqa: SLF001
                time.sleep(1)
                answer = client.get(address())  # type: ignore[operator]
            continue
        wall.append(took)
        cpu.append(used)
    p50, p95 = statistics.median(wall), float(np.quantile(wall, 0.95))
    codes = "" if code == {200} else f"   {sorted(code)}"
    print(
        f"{name:<22}{first:>8.0f}{p50:>8.0f}{p95:>8.0f}{statistics.median(cpu):>8.0f}"
        f"{size / 1000:>10.0f}{codes}",
        flush=True,
    )


if __name__ == "__main__":
    os.environ.pop("KARAT_STORE", None)
    main()
