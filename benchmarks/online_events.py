"""Events to online metrics: karat's reducers beside the same reductions written by hand in SQL.

    python benchmarks/online_events.py [--events N] [--rounds N] [--engines NAME…] DIR

DIR keeps the made events (20 million: 0.4 GB). Both reduce the thirteen metrics of karat online
evaluate, over all searches, by day and by arm, from the same Parquet files; the sums of
both are compared before a time is printed. Each is a whole process, from start to exit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import timing

KARAT = """
import json, sys
from pathlib import Path
import polars as pl
from karat.engines.frames.opening import open_engine
from karat.online.metrics.registry import DEFAULT, find
from karat.store.events.log import read_event_log
from karat.workflows.online.evidence import Selection, gather
log = read_event_log(Path(sys.argv[1]))
with open_engine(sys.argv[2]) as engine:
    metrics = [find(name) for name in DEFAULT]
    found = gather(Selection(log, engine=engine), metrics, [(), ("day",), ("arm",)])
out = {}
for row in found.moments[()].iter_rows(named=True):
    if row["term"] == "value":
        sums = ("numerator", "denominator", "m2_numerator", "users")
        out[row["metric"]] = [row[name] for name in sums]
times = found.histograms[()].group_by("name").agg(pl.col("count").sum(), pl.col("sum_us").sum())
out |= {name: [count, total] for name, count, total in times.iter_rows()}
print(json.dumps(out))
"""

SQL = """
import json, sys
from pathlib import Path
import duckdb
files = sorted(map(str, Path(sys.argv[1]).rglob("*.parquet")))
text = Path(sys.argv[2]).read_text()
ratios = {ratios}
moments = ", ".join(
    f"count(*) FILTER ({below} > 0) AS users_{name}, "
    f"sum({above}) AS num_{name}, sum({below}) AS den_{name}, "
    f"var_pop({above}) FILTER ({below} > 0) AS var_{name}, "
    f"var_pop({below}) FILTER ({below} > 0) AS vard_{name}, "
    f"covar_pop({above}, {below}) FILTER ({below} > 0) AS cov_{name}"
    for name, (above, below) in ratios.items())
con = duckdb.connect()
con.execute("SET enable_progress_bar = false")
if len(sys.argv) > 3: con.execute(f"SET temp_directory = '{sys.argv[3]}'")
con.execute(text.replace(":files", repr(files)).replace(":moments", moments))
out = {}
for name in ratios:
    num, den, var, users = con.execute(
        f"SELECT num_{name}, den_{name}, var_{name} * users_{name}, users_{name} "
        "FROM moments WHERE cut = 3").fetchone()
    out[name] = [float(num), float(den), float(var), int(users)]
for name, count, total in con.execute(
    "SELECT name, sum(n), sum(us) FROM histograms WHERE cut = 3 GROUP BY name").fetchall():
    out[name] = [int(count), int(total)]
print(json.dumps(out))
"""
RATIOS = {
    "CTR": ("ctr", "seen"),
    "MRCR": ("mrcr", "ranked"),
    "ZeroResults": ("zero", "zero_of"),
    "Abandonment": ("abandoned", "abandoned_of"),
    "Reformulation": ("reformulated", "searches"),
    "SAT": ("sat", "seen_sat"),
    "SuccessPerSession": ("success", "sessions"),
    "SessionsPerUser": ("sessions", "1"),
    "Conversion": ("bought", "bought_of"),
    "ErrorRate": ("error", "searches"),
}
"""Columns of ``sums`` in the SQL that make each ratio."""


def equal(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> list[str]:
    """What differs by more than 1e-9 of its size."""
    wrong = []
    for name, said in theirs.items():
        mine = ours.get(name, [])
        for one, other in zip(mine, said, strict=True):
            if abs(one - other) > 1e-9 * max(1.0, abs(other)):
                wrong.append(f"{name}: karat {mine}, SQL {said}")
                break
    return wrong


def main() -> None:
    """Make the events if need be, run both, compare, print ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=["polars", "duckdb"])
    parser.add_argument("--only-karat", action="store_true", help="leave the SQL out")
    asked = parser.parse_args()
    folder = asked.directory / f"events-{asked.events}"
    # By another process: those that are measured begin with the peak memory of this one.
    generator = Path(__file__).with_name("event_generator.py")
    subprocess.run([sys.executable, generator, str(asked.events), str(folder)], check=True)
    script = Path(__file__).with_suffix(".sql")
    commands = {
        f"karat on {name}": [sys.executable, "-c", KARAT, str(folder), name]
        for name in asked.engines
    }
    by_hand = "DuckDB SQL by hand"
    if not asked.only_karat:
        text = SQL.replace("{ratios}", repr(RATIOS))
        spill = asked.directory / "spill"
        commands[by_hand] = [sys.executable, "-c", text, str(folder), str(script), str(spill)]
    taken = timing.in_turn(commands, dict.fromkeys(commands, asked.rounds))
    said = {name: json.loads(each.output) for name, each in taken.items()}
    if by_hand in said:
        for name in commands:
            if name != by_hand and (wrong := equal(said[name], said[by_hand])):
                sys.exit(f"{name} and the SQL do not agree:\n" + "\n".join(wrong))
    packages = ("polars", "duckdb", "narwhals")
    print(f"{asked.events:,} events; {', '.join(f'{name} {version(name)}' for name in packages)}")
    for name, each in taken.items():
        ratio = f"  {each.seconds / taken[by_hand].seconds:.2f} ×" if by_hand in taken else ""
        print(f"{name:20}{each.seconds:8.1f} s  {each.megabytes:8,.0f} MB{ratio}")


if __name__ == "__main__":
    main()
