"""Damaged files through every reader and entry point; each has to end in a documented way.

    python benchmarks/fuzz.py [--mutants 5000] [--jobs 2] [--start 0] [--report FILE]

Each mutant is a sound file of one of the kinds in ``tests/mutants.py``, damaged by its number, and
goes through every command and address that takes such a file. Wrong is: an exit code other than 0
to 3, a traceback, a status of 500 and above, something half-written, or a process that dies or
hangs. The development environment is needed. Ends with 1 if anything is wrong; takes 15 minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATIENCE_S = 300
"""No mutant takes longer, even on a busy machine."""


def tried(start: int, stop: int) -> Iterator[dict[str, Any]]:
    """What came of the mutants of a range; a process that dies or hangs is started anew behind."""
    while start < stop:
        begun = start
        with tempfile.TemporaryFile("w+") as err:
            command = [sys.executable, "-m", "tests.mutants", str(start), str(stop)]
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=err, text=True
            )
            assert process.stdout is not None
            watch = threading.Timer(PATIENCE_S, process.kill)
            watch.start()
            for line in process.stdout:
                told = json.loads(line)
                if "begun" in told:
                    begun = told["begun"]
                    watch.cancel()
                    watch = threading.Timer(PATIENCE_S, process.kill)
                    watch.start()
                else:
                    yield told
            watch.cancel()
            if process.wait() == 0:
                return
            err.seek(0)
            died = {"number": begun, "reader": "?", "how": "?", "entry": "?"}
            wrong = f"the process ended with {process.returncode}: {err.read()[-1500:]}"
            yield {**died, "ended": process.returncode, "wrong": wrong}
            start = begun + 1


def main() -> int:
    """Try all, and print what came of them by reader."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=5000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", type=Path, help="what was wrong, as lines of JSON")
    given = parser.parse_args()
    began = time.perf_counter()
    size = -(-given.mutants // given.jobs)
    cuts = range(given.start, given.start + given.mutants, size)
    ends = [min(cut + size, given.start + given.mutants) for cut in cuts]
    files: dict[str, set[int]] = defaultdict(set)
    ended: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for told in pool.map(lambda ends: list(tried(*ends)), zip(cuts, ends, strict=True)):
            for each in told:
                files[each["reader"]].add(each["number"])
                ended[each["reader"]][str(each["ended"])] += 1
                if each["wrong"]:
                    wrong.append(each)
    if given.report:
        given.report.write_text("".join(json.dumps(each) + "\n" for each in wrong))
    for reader in sorted(files):
        ends_of = ", ".join(f"{end}: {n:,}" for end, n in sorted(ended[reader].items()))
        print(f"{reader:32} {len(files[reader]):5,} files   {ends_of}")
    total = sum((each for each in ended.values()), Counter[str]())
    print(f"{'all':32} {given.mutants:5,} files   {sum(total.values()):,} entries: {dict(total)}")
    print(f"wrong: {len(wrong)}; {time.perf_counter() - began:.0f} s")
    for each in wrong[:20]:
        print(f"  {each['number']} {each['reader']} ({each['how']}) {each['entry']}: ", end="")
        print(each["wrong"].strip().splitlines()[-1][:200])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
