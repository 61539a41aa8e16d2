"""What the starter policy stops: a part of benchmarks/gate_breaks.py, over a made-up world."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.choosing import deep_but

TOPICS = 120
IN_FILE = {
    "scores change sign": 1,
    "first ten shuffled": 1,
    "first hit lost": 1,
    "cut to 5 documents": 1,
    "the same ten documents for all": 1,
    "three adverts on top": 1,
    "10 % of the queries find nothing relevant": 1,
    "one query reversed": 0,
    "10 % of the queries not in the file": 3,
    "16 % of the queries newly empty": 1,
    "every document twice, noticed by the benchmark": 1,
    "every document twice in the file": 2,
    "scores that are NaN": 2,
    "an empty file": 3,
    "document ids in capitals": 3,
    "document ids with leading zeros": 3,
    "document ids as hashes": 3,
    "half of the document ids with a prefix": 3,
    "query ids in capitals": 2,
    "4 times slower": 1,
    "1.2 times slower": 0,
    "no times in the file": 3,
    "the baseline itself": 0,
    "scores ten times as large": 0,
    "lines of the file in another order": 0,
    "twice as quick": 0,
}
LIVE = {
    "raises for 1 query in 7": 3,
    "returns nothing for 1 query in 7": 1,
    "returns None": 2,
    "every document twice": 1,
    "scores are NaN": 3,
    "top 5 only": 1,
    "ids of another index": 3,
    "in capitals": 0,
}

# Of those that end alike and for one reason, one or two; the benchmark and --deep try all.
OF_FILES = {
    "scores change sign",
    "cut to 5 documents",
    "10 % of the queries not in the file",
    "every document twice in the file",
    "scores that are NaN",
    "an empty file",
    "document ids in capitals",
    "4 times slower",
    "the baseline itself",
}
OF_LIVE = {
    "raises for 1 query in 7",
    "scores are NaN",
    "ids of another index",
    "in capitals",
}


@pytest.fixture(scope="module")
def bench(root: Path) -> Iterator[ModuleType]:
    """The benchmark, as a module; it imports others from its folder."""
    sys.path.insert(0, str(root / "benchmarks"))
    yield importlib.import_module("gate_breaks")
    sys.path.remove(str(root / "benchmarks"))
    for name in ("gate_breaks", "gate_world", "gate_run_breaks", "gate_search_breaks"):
        del sys.modules[name]


@pytest.fixture(scope="module")
def trial(bench: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """120 topics of twelve documents, the first six relevant, found in the order of their ids."""
    texts = {f"q{n}": f"topic{n} {'word ' * (n % 5)}".strip() for n in range(TOPICS)}
    documents = {
        f"cran/{100 + 12 * n + place}": (f"topic{n}", str(place))
        for n in range(TOPICS)
        for place in range(12)
    }
    grades = {
        f"q{n}": {f"cran/{100 + 12 * n + place}": float(max(6 - place, 0)) for place in range(12)}
        for n in range(TOPICS)
    }

    def over(known: Mapping[str, tuple[str, str]]) -> Any:
        by_topic: dict[str, list[tuple[str, float]]] = {}
        for doc, (topic, place) in known.items():
            by_topic.setdefault(topic, []).append((doc, 20.0 - int(place)))
        return lambda text: list(by_topic.get(text.lower().split()[0], ()))

    world = bench.World(texts, grades, documents, over, pause_ms=2.0)
    made = bench.Trial(world, tmp_path_factory.mktemp("breaks"))
    made.live_baseline()
    return made


@pytest.mark.parametrize(("name", "code"), deep_but(OF_FILES, IN_FILE.items()))
def test_a_broken_run_is_stopped(bench: ModuleType, trial: Any, name: str, code: int) -> None:
    [broken] = [each for each in bench.in_file() if each.name == name]
    found = trial.outcome(broken)
    assert found.code == code, found.reason
    if broken.harmless:
        assert not found.code


@pytest.mark.parametrize(("name", "code"), deep_but(OF_LIVE, LIVE.items()))
def test_a_broken_search_is_stopped(bench: ModuleType, trial: Any, name: str, code: int) -> None:
    [broken] = [each for each in bench.live() if each.name == name]
    # Real times are the machine's affair here; the benchmark waits long enough to time them.
    text = trial.live_policy.read_text().replace("\nmax_p95_increase", "\n# max_p95_increase")
    trial.live_policy.write_text(text)
    found = trial.outcome(broken)
    assert found.code == code, found.reason


def test_there_are_sixty_ways(bench: ModuleType) -> None:
    every = [*bench.in_file(), *bench.live()]
    assert len([each for each in every if not each.harmless]) >= 60
    assert len({(each.name, each.live) for each in every}) == len(every)
