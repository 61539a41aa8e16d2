"""A trend compared query by query: from evaluations to verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import karat
from karat.formats.own import history
from karat.formats.own.query_values import packed
from karat.reports.phrases.trend import SIGNIFICANT_BY_QUERY, sentence, verdict_of
from karat.tables.release.history import Point, Value
from karat.tables.results import QueryScores
from karat.workflows.release.gate import gate
from karat.workflows.release.trend import keep, keep_gate, trend

Floats = NDArray[np.float64]
IDS = [f"q{i:03}" for i in range(200)]


def line(nights: Sequence[Floats], *, measure: str = "nDCG@10", start: int = 0) -> list[Point]:
    """A point a day with these values; the intervals are as wide as those of evaluate."""
    found = []
    for night, values in enumerate(nights, start):
        kept = values[~np.isnan(values)]
        mean, reach = float(kept.mean()), 1.96 * float(kept.std()) / len(kept) ** 0.5
        found.append(
            Point(
                f"2026-{1 + night // 28:02}-{1 + night % 28:02}T02:00:00Z", "evaluate", "bm25",
                f"c{night}", None, "", "1",
                (Value(measure, mean, mean - reach, mean + reach, len(kept)),),
                {"qrels": "j", "run": f"r{night}"},
                by_query=packed(QueryScores(IDS[: len(values)], {measure: values})),
            )
        )  # fmt: skip
    return found


def base(n: int = 76) -> Floats:
    """Values of queries that spread as nDCG does: −.023 is a tenth of the interval's width."""
    return np.random.default_rng(1).beta(1, 2, n)


def lost(n: int = 76, mean: float = -0.024, spread: float = 0.089) -> Floats:
    """Differences of exactly this mean and standard deviation."""
    drawn = np.random.default_rng(3).normal(size=n)
    scaled: Floats = (drawn - drawn.mean()) / drawn.std(ddof=1) * spread + mean
    return scaled


def test_what_compare_finds_is_found_in_a_trend() -> None:
    """−.024 over 76 queries: t = −2.35, p = .021; the intervals of the points see nothing."""
    before = base()
    nights = [before] * 30 + [before + lost()] * 3
    found = trend(line(nights))
    [series] = found.series
    paired = series.lean.paired
    assert paired is not None
    assert paired.loss is not None
    assert (paired.looks, series.lean.worsened, verdict_of(series)) == (1, True, "WORSE")
    assert (paired.loss.commit, paired.loss.since_commit) == ("c30", "c0")
    assert paired.loss.change == pytest.approx(-0.024, abs=1e-4)
    assert sentence(series).startswith(
        "WORSE since 2026-02-03 (c30): −0.0240 from 2026-01-01 (c0), query by query (p 0.021; "
        "over a year of nightly runs p 0.026 is needed)"
    )
    assert [mark.told_apart for mark in series.marks[-4:]] == [False, True, False, False]
    assert SIGNIFICANT_BY_QUERY in found.notes
    old = [replace(point, by_query=None) for point in line(nights)]
    [unpaired] = trend(old).series
    assert (unpaired.lean.paired, unpaired.lean.worsened) == (None, False), "as it was before"


def test_what_is_no_alarm_over_many_looks_is_said_all_the_same() -> None:
    """The same loss in nine nights: the ninth look asks for more than p .021."""
    before, change = base(), lost()
    nights = [before]
    for night in range(1, 10):
        nights.append(before.copy())
        nights[-1][: 76 * night // 9] += change[: 76 * night // 9]
    found = trend(line(nights))
    [series] = found.series
    assert not series.alarms
    assert verdict_of(series) == "may be worse"
    said = sentence(series)
    assert said.startswith("may be worse: −0.0240 since 2026-01-01 (c0), ")
    assert "query by query −0.0443 to −0.0037, p 0.021 for these two points alone" in said
    assert found.to_dict()["series"][0]["lean"]["paired"]["looks"] == 9


def test_the_same_night_again_is_no_new_evidence() -> None:
    before, after = base(), base() + lost(mean=-0.021)  # p = .043: too little
    few = trend(line([before, after])).series[0].lean.paired
    many = trend(line([before, *[after] * 40])).series[0].lean.paired
    assert few is not None
    assert many is not None
    assert (few.loss, few.p, few.needed) == (many.loss, many.p, many.needed)
    assert many.looks == 1


def test_lower_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karat.workflows.release._trend_series.lower_is_better", lambda _: True)
    nights = [base(), base() - lost()]
    [series] = trend(line(nights)).series
    assert series.lean.worsened
    assert not trend(line(nights[::-1])).series[0].lean.worsened


def test_a_history_begun_without_values_goes_on_with_them() -> None:
    """A collapse between old points, and one from an old point to a new one, stay alarms."""
    old = [replace(point, by_query=None) for point in line([base()] * 3)]
    low = [np.zeros(76)] * 2
    [series] = trend([*old, *line(low, start=3)]).series
    assert series.lean.worsened
    assert [mark.by_query for mark in series.marks] == [False] * 3 + [True] * 2
    [fine] = trend([*old, *line([base()] * 2, start=3)]).series
    assert not fine.alarms


def test_values_of_other_queries_are_not_paired() -> None:
    before, after = line([base(), np.zeros(76)])
    other = packed(QueryScores(IDS[100:176], {"nDCG@10": np.zeros(76)}))
    [series] = trend([before, replace(after, by_query=other)]).series
    assert series.lean.paired is None
    assert series.lean.worsened, "by the intervals, then"


def test_after_a_break_looks_go_on_being_counted() -> None:
    first = line([base(), base() + 0.001, base() - 0.001])
    second = [
        replace(point, hashes={"qrels": "new", "run": "r"})
        for point in line([base(), base() + lost()], start=3)
    ]
    paired = trend([*first, *second]).series[0].lean.paired
    assert paired is not None
    assert paired.looks == 1
    # The third look of all: .04 (.65 / 12 + .35 / 365), two-sided.
    assert paired.needed == pytest.approx(2 * 0.04 * (0.65 / 12 + 0.35 / 365))
    assert paired.loss is None


def test_all_queries_at_0_is_found() -> None:
    [series] = trend(line([np.ones(30), np.zeros(30)])).series
    assert series.lean.worsened
    assert series.marks[1].told_apart is True


def test_evaluations_and_gates_keep_values_by_query(tmp_path: Path) -> None:
    qrels = {f"q{i}": {"d": 1} for i in range(40)} | {"none": {"d": 0}}
    runs = [
        {query: {"d": 1.0, "x": 2.0 * (at < lost_from)} for at, query in enumerate(qrels)}
        for lost_from in (0, 30)
    ]
    path = tmp_path / "h.jsonl"
    for night, run in enumerate(runs):
        results = karat.evaluate(qrels, karat.Run.from_dict(run, name="a"), ["RR", "GMAP"])
        keep(path, results, time=f"2026-03-0{night + 1}T02:00:00Z", qrels=None)
        held = gate({"rule": [{"measure": "RR", "min": 0.1}]}, qrels, None,
                    karat.Run.from_dict(run, name="b"))  # fmt: skip
        assert "scores" not in held.to_dict()
        keep_gate(path, held, time=f"2026-03-0{night + 1}T02:00:00Z")
    points = history.read(path)
    assert [point.by_query.n if point.by_query else None for point in points] == [40, 40, 40, 40]
    assert points[0].by_query is not None
    assert list(points[0].by_query.values) == ["RR"], "a geometric mean is no mean of differences"
    verdicts = {(s.run, s.measure): verdict_of(s) for s in trend(path).series}
    # Thirty of forty lose half: 1 / 2^30.
    assert verdicts["a", "RR"] == verdicts["b", "RR"] == "WORSE"
