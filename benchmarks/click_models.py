"""Click models: a million pages of results to a fitted PBM, and large event stores to counts.

    python benchmarks/click_models.py DIR [--pages N] [--rounds N]
    python benchmarks/click_models.py DIR --searches N --engines duckdb [polars spark]

Simulated users look at a rank, and click what attracts them: 1,500 queries with 20 documents each,
of which a page shows ten in random order, so that there are 300,000 cells (query, document and
rank). The first form fits the PBM from the research form and from an event store of the same pages,
``karat clicks fit`` as a whole process. The second counts the clicks of larger stores, and compares
the counts of engines. DIR keeps what is made.

PyClick (98e7e46) is not run: its EM of the PBM took 216 s for 35,064 pages of 20 queries (1,024
pairs), a frozen figure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl
import timing

from karat.store.events import files
from karat.store.events.log import MANIFEST, commit, importing, store_file
from karat.store.events.manifest import Manifest, StoredImport, added, summary
from karat.tables.online.events import BUCKETS

QUERIES, DOCUMENTS, SHOWN = 1_500, 20, 10
EXAMINATION = 1 / np.arange(1, SHOWN + 1) ** 0.7
FIRST_DAY, DAYS = 20_724, 28
OF_USER = 10  # searches of a user
FROZEN = "PyClick 98e7e46 (frozen figure): 216 s for 35,064 pages, 1,024 pairs"
COUNT = """
import json, sys
from pathlib import Path
import numpy as np
from karat.store.events.log import read_event_log
from karat.workflows.online.click_counts import count_clicks
name = sys.argv[2]
master = "local[2]" if name == "spark" else None
counted = count_clicks(read_event_log(Path(sys.argv[1])), needs="cells", engine=name, master=master)
cells = counted[None].counts
mixed = np.arange(1, len(cells.pair) + 1) % 1009
print(json.dumps({
    "pages": counted[None].pages, "impressions": counted[None].impressions,
    "clicks": counted[None].clicks, "cells": len(cells.pair), "pairs": cells.pairs.height,
    "shown": float(cells.shown @ mixed), "clicked": float(cells.clicked @ mixed),
    "satisfied": float((cells.satisfied_low + cells.satisfied_high) @ mixed),
    "share": round(float(cells.share @ mixed), 3)}))
"""


def pages(rng: np.random.Generator, attraction: np.ndarray, count: int) -> pl.DataFrame:
    """``query``, ``docs`` and ``clicks`` (places from 0) of pages."""
    query = rng.integers(QUERIES, size=count)
    docs = rng.random((count, DOCUMENTS)).argsort(axis=1)[:, :SHOWN]
    clicked = rng.random((count, SHOWN)) < EXAMINATION * attraction[query[:, None], docs]
    names = np.array([f"q{q}-d{d}" for q in range(QUERIES) for d in range(DOCUMENTS)])
    ids = pl.Series(names).gather(pl.Series((query[:, None] * DOCUMENTS + docs).ravel()))
    at = pl.DataFrame(
        {"page": np.repeat(np.arange(count), SHOWN), "doc": ids, "clicked": clicked.ravel()}
    )
    lists = at.group_by("page", maintain_order=True).agg(
        docs=pl.col("doc"),
        clicks=pl.col("doc").filter(pl.col("clicked")),
        places=pl.int_range(pl.len()).filter(pl.col("clicked")),
    )
    return lists.with_columns(query=pl.format("query {}", pl.Series(query))).drop("page")


def attraction_of(rng: np.random.Generator) -> np.ndarray:
    """How attractive the documents of each query are: .1 on average."""
    return rng.beta(1.2, 10.8, (QUERIES, DOCUMENTS))


def write_pages(path: Path, count: int) -> None:
    """A file in the research form."""
    rng = np.random.default_rng(1)
    attraction = attraction_of(rng)
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, count, 100_000):
            made = pages(rng, attraction, min(100_000, count - start))
            docs, clicks = pl.col("docs").list.join(","), pl.col("clicks").list.join(" , ")
            lines = made.select(pl.format("{}\t{} : {}", "query", docs, clicks)).to_series()
            file.write("\n".join(lines) + "\n")


def write_store(folder: Path, count: int) -> None:
    """An event store, some buckets of users at a time."""
    if (folder / MANIFEST).exists():
        return
    rng = np.random.default_rng(1)
    attraction = attraction_of(rng)
    ids = pl.select(pl.format("user-{}", pl.int_range(max(1, count // OF_USER)))).to_series()
    users = files.with_users(pl.DataFrame({"user_id": ids}))
    width = max(1, BUCKETS // max(1, count // 500_000))
    with importing(folder):
        manifest = Manifest(simulated=True)
        for low in range(0, BUCKETS, width):
            inside = range(low, min(BUCKETS, low + width))
            here = users.filter(pl.col("user_bucket").is_between(low, inside[-1]))
            frame = events(rng, attraction, here["user_id"])
            frame = files.with_users(frame).with_columns(
                pl.lit(1, pl.Int32).alias("import"), bot=pl.lit(False)
            )
            frame = files.with_query_key(files.with_local(frame, "UTC"))
            frame = files.conformed(files.with_tie(frame))
            file = store_file(folder, frame, inside, 1)
            manifest = added(manifest, [file], [summary(frame)])
            print(f"buckets {low} to {inside[-1]}: {frame.height:,} events", file=sys.stderr)
        rows = sum(each.rows for each in manifest.files)
        done = StoredImport(1, 0, {}, rows, rows, {}, (), {})
        commit(folder, replace(manifest, imports=[done]))


def events(rng: np.random.Generator, attraction: np.ndarray, users: pl.Series) -> pl.DataFrame:
    """Searches of users, at least an hour apart, with lists of results, and their clicks."""
    count = len(users) * OF_USER
    hours = rng.random((len(users), DAYS * 24)).argsort(axis=1)[:, :OF_USER].ravel()
    made = pages(rng, attraction, count).with_columns(
        user_id=users.gather(pl.Series(np.repeat(np.arange(len(users)), OF_USER))),
        time_us=(FIRST_DAY * 24 + pl.Series(hours).cast(pl.Int64)) * 3_600_000_000,
        query_id=pl.format("s{}", pl.int_range(count)),
    )
    searches = made.select(
        "user_id", "time_us", "query_id", "query", kind=pl.lit("search"), hits="docs"
    ).with_columns(returned=pl.lit(SHOWN, pl.Int32), action="kind")
    clicks = (
        made.select("user_id", "time_us", "query_id", "clicks", "places")
        .filter(pl.col("clicks").list.len() > 0)
        .explode("clicks", "places")
        .select(
            "user_id",
            "query_id",
            time_us=pl.col("time_us") + (pl.col("places") + 1) * 20_000_000,
            kind=pl.lit("click"),
            action=pl.lit("click"),
            doc_id="clicks",
            position=(pl.col("places") + 1).cast(pl.Int32),
        )
    )
    return pl.concat([searches, clicks], how="diagonal")


def fit(folder: Path, count: int, rounds: int) -> None:
    """Time ``karat clicks fit`` on both forms of the pages."""
    text, store = folder / f"pages-{count}.txt", folder / f"events-{count}"
    karat = str(Path(sys.executable).with_name("karat"))
    commands = {
        name: [karat, "clicks", "fit", str(path), "--model", "PBM", "--format", "json"]
        for name, path in (("research form", text), ("event store", store))
    }
    taken = timing.in_turn(commands, dict.fromkeys(commands, rounds))
    for name, each in taken.items():
        said = json.loads(each.output)
        furthest = max(
            abs(place["value"] - EXAMINATION[place["rank"] - 1]) for place in said["examination"]
        )
        print(
            f"{name:14}{each.seconds:7.1f} s ({each.fastest:.1f}-{each.slowest:.1f}) "
            f"{each.megabytes:7,.0f} MB  {said['pages']:,} pages, {said['pairs']:,} pairs, "
            f"{said['seconds']:.1f} s of it fitting; examination at most {furthest:.3f} off"
        )
    print(FROZEN)


def count(folder: Path, searches: int, engines: list[str]) -> None:
    """Time the counting of a store on engines, and compare what they count."""
    store = folder / f"events-{searches}"
    said = {}
    for name in engines:
        command = [sys.executable, "-c", COUNT, str(store), name]
        taken, output = timing.once_with_children(command)
        said[name] = json.loads(output)
        print(f"{name:8}{taken}  {said[name]}", flush=True)
    if len({json.dumps(each) for each in said.values()}) > 1:
        sys.exit("the engines do not agree")


def main() -> None:
    """Make what is not there yet, in another process, and time it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--searches", type=int, help="count the clicks of a larger store")
    parser.add_argument("--engines", nargs="+", default=["duckdb"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    folder, number = asked.directory, asked.searches or asked.pages
    folder.mkdir(parents=True, exist_ok=True)
    if asked.make:
        write_store(folder / f"events-{number}", number)
        text = folder / f"pages-{number}.txt"
        if asked.searches is None and not text.exists():
            write_pages(text, number)
        return
    # By another process: those that are measured begin with the peak memory of this one.
    subprocess.run([sys.executable, *sys.argv, "--make"], check=True)
    packages = ("polars", "duckdb", "narwhals")
    print(", ".join(f"{name} {version(name)}" for name in packages))
    if asked.searches is None:
        fit(folder, asked.pages, asked.rounds)
    else:
        count(folder, asked.searches, asked.engines)


if __name__ == "__main__":
    main()
