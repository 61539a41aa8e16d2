"""Imports a log of a file a day, on Polars and on Spark: seconds, memory, and whether they agree.

    python benchmarks/online_import.py DIR [--events N] [--engines polars spark]

The events of ``event_generator.py`` as JSON Lines; each import is a whole process, and its memory
that of all its processes, Java included. DIR keeps the log.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import polars as pl
import timing
from event_generator import generate

from karat.store.events.log import MANIFEST, read_event_log

COMPUTED = ("user_bucket", "user_key", "tie", "local_day", "local_hour", "import", "query_key")


def write_log(folder: Path, events: int) -> None:
    """A file for each day."""
    if folder.exists():
        return
    store = generate(folder.with_name(f"store-{events}"), events)
    folder.mkdir()
    for file in read_event_log(store).files:
        frame = pl.read_parquet(file.path)
        for (day,), rows in frame.partition_by("local_day", as_dict=True).items():
            with (folder / f"{day}.ndjson").open("ab") as stream:
                rows.drop(COMPUTED).write_ndjson(stream)


def summary(store: Path) -> list[object]:
    """What a store contains: counts, and sums over its events."""
    manifest = json.loads((store / MANIFEST).read_bytes())
    plan = pl.scan_parquet([file.path for file in read_event_log(store).files])
    sums = plan.select(
        pl.len(),
        *(pl.col(name).cast(pl.Int128).sum() for name in ("user_key", "time_us", "tie")),
        position=pl.col("position").sum(),
        value=pl.col("value").sum().round(3),
        queries=pl.col("query_key").n_unique(),
    )
    return [manifest["kinds"], manifest["bots"], *map(str, sums.collect().row(0))]


def main() -> None:
    """Make the log in another process, and import it on each engine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--engines", nargs="+", default=["polars", "spark"])
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    log = asked.directory / f"log-{asked.events}"
    if asked.make:
        write_log(log, asked.events)
        return
    subprocess.run([sys.executable, *sys.argv, "--make"], check=True)
    print(", ".join(f"{name} {version(name)}" for name in ("polars", "pyspark")))
    karat, found = str(Path(sys.executable).with_name("karat")), {}
    for engine in asked.engines:
        store = asked.directory / f"imported-{engine}"
        shutil.rmtree(store, ignore_errors=True)
        command = [karat, "online", "import", str(log), "--events", str(store), "--engine", engine]
        command += ["--master", "local[2]"] if engine == "spark" else []
        taken, _ = timing.once_with_children([*command, "-f", "json"])
        found[engine] = summary(store)
        print(f"{engine:8}{taken}  {found[engine]}", flush=True)
    if len({json.dumps(each) for each in found.values()}) > 1:
        sys.exit("the engines do not agree")


if __name__ == "__main__":
    main()
