"""Makes the events of the benchmarks: an event store of 20 or 100 million simulated events.

Two arms over 20,000 queries, heavy users, four weeks, type-ahead, paging, reformulations, what was
on the screen, dwell, carts, purchases, robots. Written bucket range by bucket range, so memory is
that of one range. Seeded, so that two machines measure the same events.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from karat.online.simulate.behaviours import Habits
from karat.online.simulate.people import simulate
from karat.online.simulate.population import populate
from karat.online.simulate.shelf import DEPTH, Shelf, shelve
from karat.store.events import files
from karat.store.events.log import MANIFEST, commit, importing, store_file
from karat.store.events.manifest import Manifest, StoredImport, added, summary
from karat.tables.online.events import BUCKETS

QUERIES, DOCUMENTS = 20_000, 200_000
FIRST_DAY, DAYS = 20_724, 28  # from Monday, 2026-09-28
SESSION = 22.2
"""Events of a mean session."""
USER = 60.0
"""Events of a mean user."""
HABITS = Habits(
    impressions="seen",
    carts=0.15,
    answers=0.03,
    latency_ms=(90.0, 120.0),
    errors=(0.003, 0.005),
)


def shelf(rng: np.random.Generator) -> Shelf:
    """Made-up queries and rankings: a tenth of the documents shown has a grade."""
    words = np.array([f"w{number}" for number in range(4_000)])
    # Zipf words: a few stand in most queries.
    drawn = np.minimum(rng.zipf(1.3, (QUERIES, 4)), len(words)) - 1
    lengths = rng.integers(1, 5, QUERIES)
    texts = [" ".join(words[row[:n]]) for row, n in zip(drawn, lengths, strict=True)]
    found = rng.integers(0, DOCUMENTS, (2, QUERIES, DEPTH)).astype(np.int32)
    found[1, :, 3:] = found[0, :, 3:]
    matched = np.minimum(rng.geometric(0.004, QUERIES) - 1, 100_000).astype(np.int32)
    shown = np.minimum(matched, DEPTH)
    found[:, np.arange(DEPTH) >= shown[:, None]] = -1
    # Nearer to the top more is good.
    good = rng.random((2, QUERIES, DEPTH)) < 0.6 / np.arange(1, DEPTH + 1)
    gain = np.where(good, rng.choice([1 / 7, 3 / 7, 1.0], (2, QUERIES, DEPTH)), 0.0)
    kinds = pl.Series(["name", "task", "code", "other"]).gather(rng.integers(0, 4, QUERIES))
    return shelve(
        ("a", "b"),
        pl.select(pl.format("doc{}", pl.int_range(DOCUMENTS))).to_series(),
        found,
        gain.astype(np.float32),
        np.broadcast_to(matched, (2, QUERIES)),
        texts,
        1 / np.arange(1, QUERIES + 1),
        rng,
        {"kind": kinds},
    )


def generate(folder: Path, events: int) -> Path:
    """Write an event store of about so many events into a folder, unless it is there."""
    if (folder / MANIFEST).exists():
        return folder
    rng = np.random.default_rng(7)
    stocked = shelf(rng)
    ids = pl.select(pl.format("user-{}", pl.int_range(int(events / USER)))).to_series()
    users = files.with_users(pl.DataFrame({"user_id": ids}))
    width = BUCKETS
    while events * width / BUCKETS > files.FILE and width > 1:
        width //= 2
    with importing(folder):
        manifest = Manifest(simulated=True)
        for low in range(0, BUCKETS, width):
            here = users.filter(pl.col("user_bucket").is_between(low, low + width - 1))
            made = simulate(
                stocked,
                rng,
                first_day=FIRST_DAY,
                days=DAYS,
                people=populate(here["user_id"], 2, rng),
                sessions=events * width / BUCKETS / SESSION / DAYS,
                habits=HABITS,
            )
            frame = _in_form(made.events, range(low, low + width))
            file = store_file(folder, frame, range(low, low + width), 1)
            manifest = added(manifest, [file], [summary(frame)])
            print(f"buckets {low} to {low + width - 1}: {frame.height:,} events", file=sys.stderr)
        rows = sum(each.rows for each in manifest.files)
        done = StoredImport(1, 0, {}, rows, rows, {}, (), {})
        commit(folder, replace(manifest, imports=[done]))
    return folder


def _in_form(events: pl.DataFrame, buckets: range) -> pl.DataFrame:
    """As a store keeps them; robots come from anywhere, and only those of these buckets stay."""
    frame = files.with_users(events)
    inside = pl.col("user_bucket").is_between(buckets.start, buckets.stop, closed="left")
    frame = frame.filter(inside).with_columns(pl.lit(1, pl.Int32).alias("import"))
    frame = files.with_query_key(files.with_local(frame, "UTC"))
    return files.conformed(files.with_tie(frame))


if __name__ == "__main__":
    generate(Path(sys.argv[2]), int(sys.argv[1]))
