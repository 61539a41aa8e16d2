"""Times whole processes: wall clock from start to exit, and peak memory of the process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Medians over the counted runs."""

    name: str
    seconds: float
    megabytes: float
    fastest: float
    slowest: float
    output: str


def once(command: list[str], env: dict[str, str] | None = None) -> tuple[float, float, str]:
    """Wall seconds, peak resident megabytes and standard output of one run of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"failed with {process.returncode}: {' '.join(command)[:200]}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return seconds, kilobytes / 1000, output


def in_turn(commands: dict[str, list[str]], rounds: dict[str, int]) -> dict[str, Timing]:
    """Run the commands in turn, A B C A B C …, so that a slow spell of the machine hits all."""
    taken: dict[str, list[tuple[float, float, str]]] = {name: [] for name in commands}
    for turn in range(max(rounds.values())):
        for name, command in commands.items():
            if turn < rounds[name]:
                taken[name].append(once(command))
                print(f"  {name}: {taken[name][-1][0]:.2f} s", file=sys.stderr, flush=True)
    return {
        name: Timing(
            name,
            statistics.median(seconds for seconds, _, _ in runs),
            statistics.median(megabytes for _, megabytes, _ in runs),
            min(seconds for seconds, _, _ in runs),
            max(seconds for seconds, _, _ in runs),
            runs[-1][2],
        )
        for name, runs in taken.items()
    }
