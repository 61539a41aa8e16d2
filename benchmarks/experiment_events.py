"""An experiment on a large log beside the online metrics of the same log, in one run.

    python benchmarks/experiment_events.py [--events N] [--rounds N] [--engines NAME…] DIR

DIR keeps the made events, as ``online_events.py`` makes them (20 million: 0.4 GB).
``karat.experiment`` computes ten metrics of two arms, with their period before, the change over
time and the queries that carry it; ``karat.evaluate_online`` thirteen metrics, over all searches
and by arm. Each is a whole process, from start to exit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import timing

EVALUATE = """
import sys, karat
print(len(karat.evaluate_online(sys.argv[1], by="arm", engine=sys.argv[2]).results))
"""
EXPERIMENT = """
import sys, karat
from karat.store.events.log import read_event_log
from pathlib import Path
control, treatment, *_ = read_event_log(Path(sys.argv[1])).arms
found = karat.experiment(
    sys.argv[1], control, treatment, decide=["SAT"], engine=sys.argv[2], despite="a benchmark",
    guard={"CTR": "2%", "Abandonment": "2%", "ZeroResults": "2%", "Latency:p95": 20,
           "ErrorRate": 0.002},
    diagnose=("Dwell", "Reformulation", "MRCR", "Conversion"),
)
print(found.verdict, found.users, len(found.effects))
"""


def main() -> None:
    """Print seconds, memory and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=["polars"])
    given = parser.parse_args()
    folder = given.directory / f"events-{given.events}"
    generator = Path(__file__).with_name("event_generator.py")
    subprocess.run([sys.executable, generator, str(given.events), str(folder)], check=True)
    for engine in given.engines:
        commands = {
            name: [sys.executable, "-c", script, str(folder), engine]
            for name, script in (("evaluate", EVALUATE), ("experiment", EXPERIMENT))
        }
        taken = timing.in_turn(commands, dict.fromkeys(commands, given.rounds))
        for name, each in taken.items():
            print(f"{engine}: {name:12}{each.seconds:8.1f} s  {each.megabytes:8,.0f} MB")
        ratio = taken["experiment"].seconds / taken["evaluate"].seconds
        print(f"{engine}: {ratio:.2f} times online evaluate; {taken['experiment'].output.strip()}")


if __name__ == "__main__":
    main()
