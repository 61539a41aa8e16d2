"""Points: made of results and of gates."""

from __future__ import annotations

import json

from karat.tables.gate import Check, Gate
from karat.tables.history import HASHES, Value, point_of, point_of_gate
from karat.tables.results import Result, Results

TIME = "2026-03-01T02:00:00Z"


def result(run: str, measure: str = "AP", value: float | None = 0.5, **more: str) -> Result:
    ends = (None, None, None) if value is None else (value - 0.1, value + 0.1, "t")
    return Result(
        run, measure, value, "mean", *ends, 30, 0, 0, 0, 0, 0, None, None, None, **more
    )  # fmt: skip


def test_a_point_is_of_one_run_with_its_slices() -> None:
    sliced = result("a", value=0.25, attribute="class", slice="name")
    results = Results([result("a"), result("b")], slices=[sliced])
    point = point_of(results, run="a", time=TIME, hashes={"qrels": "x"}, karat="1", commit="c")
    assert point.values == (
        Value("AP", 0.5, 0.4, 0.6, 30),
        Value("AP", 0.25, 0.15, 0.35, 30, "class", "name"),
    )
    assert point.hashes == {"queries": None, "qrels": "x", "run": None, "corpus": None}
    held = json.loads(json.dumps(point.to_dict(), allow_nan=False))
    assert (held["karat_history"], held["kind"], held["verdict"]) == (1, "evaluate", None)
    assert [row["value"] for row in held["values"]] == [0.5]
    assert [row["slice"] for row in held["slices"]] == ["name"]
    assert set(held["hashes"]) == set(HASHES)


def gate() -> Gate:
    checks = [
        Check("AP drops", "fail", "it does", "AP", None, None, 30, 0.6, 0.5, 0.1, 0.0, 0.2),
        Check("AP is at least 0.4", "pass", "it is", "AP", n=30, candidate_value=0.5),
        Check("all answer", "pass", "they do", n=30, candidate_value=30.0),
        Check("RR drops", "error", "no value", "RR"),
    ]
    return Gate("fail", "old", "new", "gate.toml", checks, hashes={"candidate": "r", "qrels": "q"})


def test_a_gate_without_results_gives_the_values_of_its_checks_without_intervals() -> None:
    """The interval of a check is that of the drop, not of the value."""
    point = point_of_gate(gate(), time=TIME, karat="1", corpus="v2")
    assert point.values == (Value("AP", 0.5, n=30),)
    assert (point.run, point.verdict, point.kind) == ("new", "fail", "gate")
    assert point.hashes == {"queries": None, "qrels": "q", "run": "r", "corpus": "v2"}


def test_a_gate_with_results_gives_their_intervals() -> None:
    results = Results([result("old", value=0.6), result("new")])
    point = point_of_gate(gate(), time=TIME, karat="1", results=results)
    assert point.values == (Value("AP", 0.5, 0.4, 0.6, 30),)
