"""A shop whose users are simulated, so that releases of its search can be walked day by day."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import karat
from karat.tables import Run
from karat.tables.golden.golden_sets import Exchange
from karat.workflows.experiments.assignment import read_rollout
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.online.import_events import import_events
from karat.workflows.release import pipeline
from karat.workflows.release.pipeline import Release
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import make_workspace, open_workspace

DAY = 86_400_000_000
T0 = 20_700 * DAY  # 2026-09-04 00:00 UTC
QUERIES = 120
GATE = """\
[[rule]]
measure = "nDCG@10"
max_drop = "2%"
"""
POLICY = """\
[offline]
gate = "gate.toml"
[shadow]
min_requests = 100
max_errors = "5%"
max_zero_gained = "5%"
max_p95_increase = "50%"
min_overlap = 0.2
[ab]
share = "40%"
least = "7d"
longest = "14d"
decide = ["CTR"]
[guard]
ZeroResults = 0.05
"Latency(p95)" = 200
[ramp]
steps = [50, 100]
holdback = "30%"
least = "1d"
[feed]
silent = "1d"
give_up = "24h"
[watch]
for = "2d"
[promise]
measure = "nDCG@10"
gain = 0.05
slice = "none"
latency_ms = 0
memory = "none"
labelling = "none"
attention = "none"
override = ["anna"]
[signal]
metric = "ZeroResults"
limit = 0.2
direction = "above"
window = "1d"
[switch]
kind = "file"
path = "rollout.json"
"""


@dataclass(frozen=True)
class Effect:
    """What the candidate does to its users."""

    lift: float = 0.0  # added to the probability of a click
    zero: float = 0.0  # probability that a search has no results
    slower: float = 0.0  # milliseconds
    lost: float = 0.0  # share of its users that are not logged


@dataclass
class Road:
    """A workspace with users; ``now`` is the time."""

    folder: Path
    users: int = 900
    now: int = T0
    seed: int = 1
    policy: str = POLICY

    def open(self) -> Any:
        """The workspace, at this time."""
        return open_workspace(self.folder, now=self.now)

    @property
    def rollout(self) -> Path:
        return self.folder / "rollout.json"

    def start(self, name: str = "hybrid", candidate: str = "hybrid", **changes: str) -> Any:
        """Start a release; ``changes`` replace lines of the policy."""
        text = self.policy
        for old, new in changes.items():
            key = old.replace("_", " ")
            lines = [new if line.startswith(f"{key} =") else line for line in text.splitlines()]
            text = "\n".join(lines)
        (self.folder / "gate.toml").write_text(GATE)
        (self.folder / "release.toml").write_text(text)
        with self.open() as opened:
            return pipeline.start(
                opened, name, "bm25", candidate, self.folder / "release.toml", by="ben",
                now=self.now,
            )  # fmt: skip

    def run(self, name: str = "hybrid") -> Any:
        """A round at this time; the status of a release."""
        with self.open() as opened:
            runs = pipeline.run(opened, now=self.now)
        return next((each.status for each in runs if each.name == name), None) or self.call(
            Release.status, name
        )

    def call(self, verb: Any, name: str = "hybrid", **values: Any) -> Any:
        with self.open() as opened:
            return verb(Release.of(opened, name, self.now), **values)

    def roll_back(self, reason: str, name: str = "hybrid") -> Any:
        """Give all users the baseline again, as a person."""
        return pipeline.roll_back_first(
            self.folder, name, self.open, by="anna", reason=reason, now=self.now
        )

    def review(self, name: str = "hybrid") -> Any:
        return self.call(Release.note, name, kind="reviewed", by="anna", reason="ten, all fine")

    def live(self, days: float, effect: Effect = Effect()) -> None:
        """Let users search for some days, with the arms of the rollout file."""
        traffic = self._traffic(days, effect)
        path = self.folder / f"log-{self.now}.parquet"
        traffic.write_parquet(path)
        self.now += round(days * DAY)
        with self.open() as opened:
            import_events(opened.workspace.events, [path], now=self.now)

    def _traffic(self, days: float, effect: Effect) -> pl.DataFrame:
        rng = np.random.default_rng([self.seed, self.now // DAY])
        own = np.random.default_rng(self.seed)
        likes, often = own.beta(4, 6, self.users), own.gamma(2.0, 0.4, self.users)
        lost = own.random(self.users) < effect.lost
        # Read here: karat.assign looks at a file once a second.
        rollout = read_rollout(self.rollout) if self.rollout.exists() else None
        arms = np.array(
            [rollout and karat.assign(f"u{number}", rollout) for number in range(self.users)],
            dtype=object,
        )
        treated = np.array([arm is not None and not str(arm).endswith("control") for arm in arms])
        counts = rng.poisson(often * days)
        counts[treated & lost] = 0
        user = np.repeat(np.arange(self.users), counts)
        rows = len(user)
        new = treated[user]
        time = self.now + (rng.random(rows) * (days * DAY - 60_000_000)).astype(np.int64)
        empty = rng.random(rows) < np.where(new, effect.zero, 0.01)
        clicked = (rng.random(rows) < likes[user] + effect.lift * new) & ~empty
        searches = pl.DataFrame({
            "user_id": [f"u{number}" for number in user],
            "timestamp": time,
            "action_name": "search",
            "query_id": [f"{self.now}.{at}" for at in range(rows)],
            "user_query": [f"query {at}" for at in rng.integers(0, QUERIES, rows)],
            "returned": np.where(empty, 0, 10),
            "total_hits": np.where(empty, 0, 10),
            "latency_ms": rng.lognormal(4, 0.3, rows) + effect.slower * new,
            "arm": arms[user].tolist(),
        })  # fmt: skip
        clicks = searches.filter(pl.Series(clicked)).with_columns(
            action_name=pl.lit("click"), timestamp=pl.col("timestamp") + 5_000_000,
            object_id=pl.lit("d1"), position=pl.lit(1), latency_ms=pl.lit(None, pl.Float64),
            returned=pl.lit(None, pl.Int64), total_hits=pl.lit(None, pl.Int64),
        )  # fmt: skip
        return pl.concat([searches, clicks], how="diagonal")


def make_road(
    folder: Path, store: str = "sqlite:///karat.db", *, traffic: bool = True, **values: Any
) -> Road:
    """A shop with judged queries, runs and, unless refused, two weeks of traffic without arms."""
    folder.mkdir(parents=True, exist_ok=True)
    road = Road(folder, **values)
    make_workspace(folder, now=T0 - 15 * DAY, store=store, name="shop")
    ids = [f"q{at}" for at in range(QUERIES)]
    judgments = pl.DataFrame({
        "query_id": [query for query in ids for _ in range(3)],
        "doc_id": [f"{query}d{at}" for query in ids for at in range(3)],
        "grade": [3.0, 1.0, 0.0] * QUERIES,
    }).with_columns(rater=pl.lit("anna"), reason=pl.lit(None, pl.String))  # fmt: skip
    queries = pl.DataFrame({"query_id": ids, "text": [f"query {at}" for at in range(QUERIES)]})
    with open_workspace(folder, now=T0 - 15 * DAY) as opened:
        import_exchange(
            opened, Exchange("csv", queries=queries, judgments=judgments), file="judgments.csv",
            sha256=sha256(b"judgments").hexdigest(), now=T0 - 15 * DAY,
        )  # fmt: skip
        store_runs(opened, list(_runs(ids)), now=T0 - 14 * DAY)
    if traffic:
        road.now = T0 - 14 * DAY
        road.live(14)
    return road


def _runs(ids: list[str]) -> list[Run]:
    """bm25, a better one, one that answers half of the queries, a dead and a slow one."""
    rng = np.random.default_rng(3)
    kinds = {"bm25": (0.4, 50.0), "hybrid": (0.8, 52.0), "half": (0.8, 52.0), "slow": (0.8, 200.0),
             "dead": (0.8, 52.0), "same": (0.4, 50.0)}  # fmt: skip
    runs = []
    for name, (good, latency) in kinds.items():
        rows: list[dict[str, Any]] = []
        answers: list[dict[str, Any]] = []
        kept = ids[: len(ids) // 2] if name == "half" else ids
        for at, query in enumerate(ids):
            if query not in kept:
                continue
            failed = name == "dead" and at % 3 == 0
            time = round(latency * float(rng.lognormal(0, 0.2)) * 1000)
            answers.append({
                "query_id": query, "state": "failed" if failed else "ok", "latency_us": time,
                "error": "connection refused" if failed else None,
            })  # fmt: skip
            first = [0, 1, 2] if rng.random() < good else [2, 1, 0]
            rows += [] if failed else [
                {"query_id": query, "doc_id": f"{query}d{doc}", "score": 3.0 - place,
                 "rank": place + 1} for place, doc in enumerate(first)
            ]  # fmt: skip
        run = Run.from_batches(
            name, [pl.DataFrame(rows)], answers=pl.DataFrame(answers),
            about={"engine": name, "commit": "abc"},
        )  # fmt: skip
        runs.append(run)
    return runs
