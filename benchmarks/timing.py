"""Times whole processes: wall clock from start to exit, and peak memory of the process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


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


def once_with_children(command: list[str]) -> tuple[str, str]:
    """Seconds of a command, of its processors and its peak memory in words; and its output.

    Of all its processes, looked at twice a second (Linux). On a machine with other work, seconds of
    processors say more than those of the clock.
    """
    peak, worked, ended = [0.0], dict[int, float](), threading.Event()

    def watch(pid: int) -> None:
        while not ended.wait(0.5):
            family = _family(pid)
            worked.update(family)
            peak[0] = max(peak[0], sum(map(_megabytes, family)))

    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watcher = threading.Thread(target=watch, args=(process.pid,))
        watcher.start()
        output, _ = process.communicate()
        ended.set()
        watcher.join()
    if process.returncode:
        sys.exit(f"failed with {process.returncode}: {' '.join(command)[:200]}")
    seconds, processors = time.perf_counter() - start, sum(worked.values())
    return f"{seconds:8.1f} s {processors:8.1f} CPU s {peak[0]:8,.0f} MB", output


def _family(pid: int) -> dict[int, float]:
    """A process and all below it, with their seconds of processors."""
    below: dict[int, list[int]] = {}
    worked: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            child = int(path.parent.name)
            below.setdefault(int(fields[1]), []).append(child)
            worked[child] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family = [pid]
    for each in family:
        family += below.get(each, [])
    return {each: worked.get(each, 0.0) for each in family}


def _megabytes(pid: int) -> float:
    """The memory of a process; what it shares with others counts in parts."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(text.partition("\nPss:")[2].split()[0]) / 1000
    return 0.0


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
