"""Where the suite's time goes, and which of its files ``--quick`` runs.

``--quick`` runs the files that hold the most cases for their seconds, some of every folder of
tests; what a file costs is read from ``durations.json`` beside this one. ``--record`` writes there
what the files of this run cost. A run of everything writes ``build/durations.json``, and prints
the seconds by folder and the slowest files.

Seconds are those of workers: two of them use up two in a second.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "durations.json"
BUILT = ROOT / "build" / "durations.json"
QUICK_S = 60.0  # what --quick may take of two workers, who spend a while on starting too
SLOWEST = 10


@dataclass
class Cost:
    """What a test file takes."""

    cases: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Cases per second; a file of no time at all is as cheap as one of a millisecond."""
        return self.cases / max(self.seconds, 0.001)


Costs = Mapping[str, Cost]  # by the file's path from the root, with slashes


def folder_of(file: str) -> str:
    """The folder of tests that a file counts to: web for tests/web/api/test_runs.py."""
    parts = PurePosixPath(file).parts
    return parts[1] if len(parts) > 2 else "."


def choose(files: Iterable[str], costs: Costs, budget_s: float = QUICK_S) -> set[str]:
    """The files of a quick run.

    The budget is shared among the folders by their cases. Each gives its files with the most cases
    per second until its share is used, and one at least. A file that is not in the record is new,
    and runs.
    """
    folders: dict[str, list[str]] = defaultdict(list)
    chosen: set[str] = set()
    for file in files:
        if file in costs:
            folders[folder_of(file)].append(file)
        else:
            chosen.add(file)
    cases = sum(costs[file].cases for known in folders.values() for file in known)
    for known in folders.values():
        share = budget_s * sum(costs[file].cases for file in known) / max(cases, 1)
        first, *others = sorted(known, key=lambda file: (-costs[file].rate, file))
        chosen.add(first)
        used = costs[first].seconds
        for file in others:
            if used + costs[file].seconds <= share:
                used += costs[file].seconds
                chosen.add(file)
    return chosen


def read(path: Path) -> dict[str, Cost]:
    """The costs a record holds; none where there is no record."""
    if not path.exists():
        return {}
    return {
        file: Cost(cases, seconds)
        for file, (cases, seconds) in json.loads(path.read_text(encoding="utf-8")).items()
    }


def write(path: Path, costs: Costs) -> None:
    """Write a record: a line for each file, in order, so that its changes can be read."""
    lines = (
        f"  {json.dumps(file)}: [{costs[file].cases}, {costs[file].seconds:.2f}]"
        for file in sorted(costs)
    )
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def table(costs: Costs) -> list[str]:
    """The seconds by folder, and the slowest files."""
    folders: dict[str, Cost] = defaultdict(Cost)
    for file, cost in costs.items():
        folder = folders[folder_of(file)]
        folder.cases += cost.cases
        folder.seconds += cost.seconds
    whole = Cost(sum(f.cases for f in folders.values()), sum(f.seconds for f in folders.values()))

    def rows(each: Iterable[tuple[str, Cost]]) -> list[str]:
        return [f"{cost.seconds:8.1f} s {cost.cases:7,} cases  {name}" for name, cost in each]

    def slowest(each: Costs) -> list[tuple[str, Cost]]:
        return sorted(each.items(), key=lambda pair: (-pair[1].seconds, pair[0]))

    return [
        *rows([*slowest(folders), ("all", whole)]),
        f"the {SLOWEST} slowest files:",
        *rows(slowest(costs)[:SLOWEST]),
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--quick`` and ``--record``."""
    parser.addoption(
        "--quick", action="store_true", help="a part of every folder of tests, in 90 seconds"
    )
    parser.addoption(
        "--record", action="store_true", help="write the seconds of these files for --quick"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the files, and watch what they take."""
    if config.getoption("quick") and config.getoption("deep"):
        raise pytest.UsageError("--quick runs a part and --deep everything: give one of them")
    if config.getoption("quick"):
        config.pluginmanager.register(Quick(config))
    if not hasattr(config, "workerinput"):  # the reports of all workers come together here
        config.pluginmanager.register(Durations(config))


class Quick:
    """Leaves the other files out before they are imported."""

    def __init__(self, config: pytest.Config) -> None:
        files = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/test_*.py")]
        costs = read(RECORD)
        self.files, self.chosen = files, choose(files, costs)
        self.new = len(set(files) - set(costs))
        here = config.invocation_params.dir
        self.named = {(here / arg.partition("::")[0]).resolve() for arg in config.args}

    def pytest_report_header(self) -> str:
        """How much of the suite this is."""
        new = f", {self.new} of them not in tests/durations.json" if self.new else ""
        return f"quick: {len(self.chosen)} of {len(self.files)} test files{new}"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Whether to leave a file out; one that was asked for by name is never."""
        if collection_path.is_dir() or not collection_path.is_relative_to(ROOT / "tests"):
            return None
        left_out = collection_path.relative_to(ROOT).as_posix() not in self.chosen
        return True if left_out and collection_path not in self.named else None


class Durations:
    """What each file of this run takes."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.costs: dict[str, Cost] = defaultdict(Cost)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the seconds of a test, with those of the fixtures made for it."""
        cost = self.costs[report.nodeid.partition("::")[0]]
        cost.seconds += report.duration
        cost.cases += report.when == "setup"

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        """Write what was measured, and show where a run of everything spent its time."""
        tell = terminalreporter.write_line
        if exitstatus not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
            return
        option = self.config.option
        whole_files = not (option.keyword or option.markexpr) and not any(
            "::" in arg for arg in self.config.args
        )
        everything = whole_files and self.config.args_source == pytest.Config.ArgsSource.TESTPATHS
        if everything and self.costs:
            terminalreporter.section("seconds by folder")
            for line in table(self.costs):
                tell(line)
            if not option.quick:
                write(BUILT, self.costs)
                tell(f"all files: {BUILT.relative_to(ROOT)}")
        if option.record:
            if not whole_files or option.deep or exitstatus != pytest.ExitCode.OK:
                tell("not recorded: needs whole files, without --deep, and none that fails")
            else:
                write(RECORD, merged(read(RECORD), self.costs))
                tell(f"wrote {RECORD.relative_to(ROOT)}")


def merged(before: Costs, now: Costs) -> dict[str, Cost]:
    """The record with the files that ran now, and without those that are gone."""
    return {
        file: cost
        for file, cost in {**before, **now}.items()
        if file in now or (ROOT / file).exists()
    }
