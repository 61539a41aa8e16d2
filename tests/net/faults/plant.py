"""Plants faults in a copy of the package, and says which of them the tests catch.

``python tests/net/faults/plant.py [NAME ...] [--jobs N] [--record]``; without names, all of them.
``--record`` writes what was found into ``caught.toml``, next to this file.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TABLE, CAUGHT = HERE / "faults.toml", HERE / "caught.toml"
LONGEST = 300
"""Seconds after which tests that do not end are stopped."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake that somebody could make.

    Attributes:
        name: Unique.
        file: From the root.
        old: A piece of the file, found there exactly once.
        new: What is written in its place.
        tests: Files that should catch it, from the root.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """The file's text with the fault.

        Raises:
            ValueError: the piece is not found, or more than once.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has {text.count(self.old)} of {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests made of a fault.

    Attributes:
        name: Of the fault.
        caught: Whether a test failed.
        by: The first that failed; empty if none did.
        seconds: How long they took.
        revision: The commit they ran at.
    """

    name: str
    caught: bool
    by: str
    seconds: float
    revision: str


def faults() -> dict[str, Fault]:
    """The table of faults, by name."""
    rows = tomllib.loads(TABLE.read_text())["fault"]
    table = {row["name"]: Fault(**row | {"tests": tuple(row["tests"])}) for row in rows}
    if len(table) != len(rows):
        raise ValueError("two faults have one name")
    return table


def recorded() -> dict[str, Outcome]:
    """What ``caught.toml`` holds, by name."""
    if not CAUGHT.exists():
        return {}
    rows = tomllib.loads(CAUGHT.read_text())["fault"]
    return {row["name"]: Outcome(**row) for row in rows}


@contextmanager
def copied(fault: Fault | None) -> Iterator[dict[str, str]]:
    """An environment in which ``karat`` is a copy, with a fault or without.

    Each has a copy of its own: two faults of one length in one second would share bytecode.
    """
    with tempfile.TemporaryDirectory(prefix="karat-fault-") as folder:
        source = Path(folder, "src")
        shutil.copytree(ROOT / "src", source)
        if fault is not None:
            path = Path(folder, fault.file)
            path.write_text(fault.planted(path.read_text()))
        # PYTHONPATH comes before the .pth file of the editable install.
        environment = os.environ | {"PYTHONPATH": str(source)}
        # Of a run of pytest that this one may be a test of.
        for name in [each for each in environment if each.startswith("PYTEST_")]:
            del environment[name]
        line = "import karat; print(karat.__file__)"
        found = _run([sys.executable, "-c", line], environment).stdout
        if not found.startswith(str(source)):
            raise RuntimeError(f"tests would import {found.strip()}, not the copy")
        yield environment


def first_failing(tests: Sequence[str], environment: dict[str, str]) -> str:
    """The first test that fails; empty if all pass.

    Raises:
        RuntimeError: they could not be run.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0"]
    try:
        done = _run([*command, *tests], environment)
    except subprocess.TimeoutExpired:
        return f"none ended within {LONGEST} s"
    if done.returncode == 0:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if done.returncode != 1 or not failed:
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return failed[0].split(" ", 1)[1].split(" - ")[0].split("[")[0]


@cache
def check_baseline(tests: tuple[str, ...]) -> None:
    """Check that tests pass without any fault.

    Raises:
        RuntimeError: one fails.
    """
    with copied(None) as environment:
        if failing := first_failing(tests, environment):
            raise RuntimeError(f"{failing} fails without any fault")


def plant(fault: Fault) -> Outcome:
    """Plant a fault and run its tests."""
    check_baseline(fault.tests)
    began = time.monotonic()
    with copied(fault) as environment:
        by = first_failing(fault.tests, environment)
    return Outcome(fault.name, bool(by), by, round(time.monotonic() - began, 1), _revision())


def record(outcomes: Sequence[Outcome]) -> None:
    """Write outcomes into ``caught.toml``, in place of earlier ones of the same faults."""
    held = recorded() | {each.name: each for each in outcomes}
    parts = ["# Written by plant.py --record.\n"]
    for name in faults():
        if name in held:
            lines = [f"{key} = {json.dumps(value)}" for key, value in asdict(held[name]).items()]
            parts.append("\n".join(["[[fault]]", *lines, ""]))
    CAUGHT.write_text("\n".join(parts))


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


@cache
def _revision() -> str:
    return _run(["git", "rev-parse", "--short=12", "HEAD"], dict(os.environ)).stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the faults that are named; 1 unless each of them is caught."""
    parser = argparse.ArgumentParser(description="Plant faults, and see which the tests catch.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="faults; all of them by default")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--record", action="store_true", help="write caught.toml")
    asked: Any = parser.parse_args(arguments)
    table = faults()
    if unknown := set(asked.names) - set(table):
        parser.error(f"unknown fault {min(unknown)!r}")
    names, caught, survived = asked.names or list(table), 0, 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        running = [pool.submit(plant, table[name]) for name in names]
        for name, each in zip(names, running, strict=True):
            try:
                done = each.result()
            except RuntimeError as error:
                print(f"{name}: not tried: {error}", flush=True)
                continue
            said = f"caught by {done.by}" if done.caught else "survived"
            print(f"{name}: {said} ({done.seconds} s)", flush=True)
            caught, survived = caught + done.caught, survived + (not done.caught)
            if asked.record:
                record([done])
    print(f"{caught} caught, {survived} survived, {len(names) - caught - survived} not tried")
    return int(caught < len(names))


if __name__ == "__main__":
    raise SystemExit(main())
