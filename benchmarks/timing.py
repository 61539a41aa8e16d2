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
    rounds: tuple[float, ...] = ()  # wall seconds of each counted run
    processor: tuple[float, ...] = ()  # seconds of the processor, user and system, of each

    def times(self, other: Timing) -> float:
        """How many times the wall seconds of another, round by round; the median."""
        return _ratio(self.rounds, other.rounds)

    def processor_times(self, other: Timing) -> float:
        """How many times the seconds of the processor, round by round; the median."""
        return _ratio(self.processor, other.processor)


def _ratio(ours: tuple[float, ...], others: tuple[float, ...]) -> float:
    return statistics.median(a / b for a, b in zip(ours, others, strict=False))


def once(command: list[str], env: dict[str, str] | None = None) -> tuple[float, float, str]:
    """Wall seconds, peak resident megabytes and standard output of one run of a command."""
    seconds, _, megabytes, output = _measured(command, env)
    return seconds, megabytes, output


def _measured(
    command: list[str], env: dict[str, str] | None = None
) -> tuple[float, float, float, str]:
    """As ``once``, with the seconds of the processor after the first."""
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
    return seconds, usage.ru_utime + usage.ru_stime, kilobytes / 1000, output


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
    taken: dict[str, list[tuple[float, float, float, str]]] = {name: [] for name in commands}
    for turn in range(max(rounds.values())):
        for name, command in commands.items():
            if turn < rounds[name]:
                taken[name].append(_measured(command))
                print(f"  {name}: {taken[name][-1][0]:.2f} s", file=sys.stderr, flush=True)
    return {
        name: Timing(
            name,
            statistics.median(seconds for seconds, *_ in runs),
            statistics.median(megabytes for _, _, megabytes, _ in runs),
            min(seconds for seconds, *_ in runs),
            max(seconds for seconds, *_ in runs),
            runs[-1][3],
            tuple(seconds for seconds, *_ in runs),
            tuple(processor for _, processor, _, _ in runs),
        )
        for name, runs in taken.items()
    }
