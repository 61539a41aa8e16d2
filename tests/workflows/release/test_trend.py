"""Trend: what changed, what is comparable, and what drifts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import karat
from karat.errors import UsageError
from karat.formats.own import history
from karat.reports.phrases.trend import sentence
from karat.tables.release.gate import Check, Gate, KnownFailure
from karat.tables.release.history import Answered, Point, Value
from karat.tables.results import Result, Results
from karat.workflows.release.trend import event, keep, keep_gate, rules_text, trend

HASHES = {"queries": "q", "qrels": "j", "run": "r", "corpus": None}


def _around(value: float | None, reach: float) -> tuple[float | None, float | None]:
    return (None, None) if value is None else (value - reach, value + reach)


def points(
    values: Sequence[float | None], measure: str = "nDCG@10", reach: float = 0.05
) -> list[Point]:
    """One point a day."""
    return [
        Point(
            f"2026-03-{day:02}T02:00:00Z", "evaluate", "bm25", f"c{day}", None, "", "1",
            (Value(measure, value, *_around(value, reach), 30),),
            HASHES | {"run": f"r{day}"},
        )
        for day, value in enumerate(values, start=1)
    ]  # fmt: skip


def falling(n: int = 10, by: float = 0.004) -> list[float]:
    return [0.8 - by * i for i in range(n)]


def test_small_steps_for_the_worse_drift_and_none_is_told_apart() -> None:
    [series] = trend(points(falling())).series
    assert series.lean.leans
    assert series.lean.drifts
    assert (series.lean.worse, series.lean.better, series.lean.points) == (9, 0, 10)
    assert series.lean.change == pytest.approx(-0.036)
    assert {mark.told_apart for mark in series.marks} == {None, False}
    assert series.marks[3].changed == ("code", "answers")


def test_up_is_no_drift_unless_lower_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    rising = points(falling()[::-1])
    [series] = trend(rising).series
    assert series.lean.rises
    assert not series.lean.drifts
    monkeypatch.setattr("karat.workflows.release._trend_series.lower_is_better", lambda _: True)
    [series] = trend(rising).series
    assert series.lean.drifts
    assert series.lean.change == pytest.approx(0.036), "as the values go, not as they please"


def test_far_below_the_start_without_a_step_that_shows() -> None:
    # Standard errors .01/1.96 = .0051: steps of .01 are below 1.96 · √2 · .0051 = .0141, and
    # three of them are not; three are too few to lean.
    found = trend(points([0.8, 0.79, 0.78, 0.77], reach=0.01))
    lean = found.series[0].lean
    assert (lean.leans, lean.drifts, lean.below_start, lean.drop) == (False, False, True, None)
    assert found.to_dict()["worse"] is True
    assert sentence(found.series[0]).startswith("WORSE than at the start: −0.0300 since 2026-03-01")
    [series] = trend(points([0.8, 0.8, 0.77, 0.77], reach=0.01)).series
    assert series.marks[2].told_apart
    assert series.lean.drop is not None
    assert (series.lean.drop.time, series.lean.drop.commit) == (series.marks[2].time, "c3")
    assert series.lean.drop.change == pytest.approx(-0.03)
    assert sentence(series) == (
        "WORSE since 2026-03-03 (c3): −0.0300 in one step, significant by the intervals"
    )


@pytest.mark.parametrize("values", [[*falling(30, 0.001), 0.9], falling(14, 0.001) * 3 + [0.8]])
def test_a_drift_that_is_over_is_none_now(values: list[float]) -> None:
    before = trend(points(values[:-1])).series[0].lean
    assert (before.leans, before.drifts) == (True, True)
    [series] = trend(points(values)).series
    assert (series.lean.leans, series.lean.drifts, series.alarms) == (True, False, False)
    assert sentence(series).startswith("no drift any more: ")


@pytest.mark.deep  # a simulation
def test_the_level_of_what_is_called_drift() -> None:
    """Lines that only wander, with other judgments after 15 nights, looked at each third night."""
    rng = np.random.default_rng(8)
    drifts = worse = 0
    for _ in range(100):
        line = points(list(0.5 + rng.normal(0, 0.01, 30).cumsum()), reach=0.02)
        line[15:] = [replace(p, hashes={**p.hashes, "qrels": "x"}) for p in line[15:]]
        leans = [trend(line[:night]).series[0].lean for night in range(3, 31, 3)]
        drifts += any(lean.drifts for lean in leans)
        worse += any(lean.worsened for lean in leans)
    # .05 of 100 is 5; three standard errors more is 11. What the intervals say has no such level.
    assert drifts <= 11
    assert worse > 11


def test_a_drift_is_counted_from_the_best() -> None:
    """Up by .1 and down by .012 since: though above the start, it falls."""
    [series] = trend(points([0.6, 0.65, 0.7, *(0.7 - 0.001 * i for i in range(1, 13))])).series
    fall = series.lean.fall
    assert fall is not None
    assert (fall.commit, fall.worse, fall.better, series.lean.drifts) == ("c3", 12, 0, True)
    assert fall.change == pytest.approx(-0.012)
    assert sentence(series).startswith("DRIFT: −0.0120 since 2026-03-03 (c3), 12 of 12 steps")


@pytest.mark.parametrize("dip", [[], [0.4, 0.7]])
def test_a_night_that_recovered_silences_nothing(dip: list[float]) -> None:
    """Two down, one up, none of which shows; and before them a dip that does."""
    creep = [0.7]
    for _ in range(12):
        creep += [creep[-1] - 0.028, creep[-1] - 0.010]
    [series] = trend(points([0.7, *dip, *creep], reach=0.02)).series
    assert (series.lean.below_start, series.lean.drop) == (True, None)
    assert series.alarms


@pytest.mark.parametrize(
    ("values", "reaches"),
    [
        ([0.9892, 0.9892, 0.9892, 0.9892, 0.0], [0.01] * 4 + [None]),
        ([0.95, 0.2], [0.05, 0.1]),
        ([1.0, 0.0], [None, None]),  # all queries alike on both nights
    ],
)
def test_a_collapse_is_said_first_and_posted(
    values: list[float], reaches: list[float | None]
) -> None:
    line = points(values)
    for at, (value, reach) in enumerate(zip(values, reaches, strict=True)):
        ends = (None, None) if reach is None else _around(value, reach)
        line[at] = replace(line[at], values=(Value("nDCG@10", value, *ends, 30),))
    found = trend(line)
    [series] = found.series
    assert series.marks[-1].told_apart is True
    assert (series.lean.drifts, found.to_dict()["worse"], found.drifting) == (False, True, [])
    assert sentence(series).startswith(f"WORSE since 2026-03-{len(values):02} (c{len(values)}): −")
    told = event(found, time="t")
    assert told is not None
    assert told["event"] == "trend.worse"
    alone = [
        replace(p, values=(replace(p.values[0], ci_low=None, ci_high=None, n=1),)) for p in line
    ]
    assert trend(alone).series[0].marks[-1].told_apart is None, "one query tells nothing"


def test_what_is_no_longer_measured_is_not_fine() -> None:
    line = points([0.5] * 5)
    line[3:] = [replace(p, values=(Value("AP", 0.5, 0.4, 0.6, 30),)) for p in line[3:]]
    found = trend(line)
    old, new = (next(s for s in found.series if s.measure == m) for m in ("nDCG@10", "AP"))
    assert (old.without, new.without, found.untold) == (2, 0, [old])
    assert found.series[0] == old, "first"
    assert sentence(old).startswith(
        "cannot tell: the newest 2 points of bm25 lack it, last measured on 2026-03-03 (c3); before"
    )
    gates = [replace(p, kind="gate", verdict="pass") for p in line[3:]]
    assert not trend([*line[:3], *gates]).untold, "a gate measures what its policy asks"
    assert not trend([line[0]] * 3).untold


def test_a_run_that_vanished_is_a_note() -> None:
    line = points([0.5] * 3)
    other = [replace(point, run="hybrid") for point in line]
    assert not any("last measured" in note for note in trend([*line, *other]).notes)
    found = trend([*line, *other[:2]])
    assert "hybrid was last measured on 2026-03-02 (c2); others, until 2026-03-03" in found.notes


def test_other_known_failures_are_no_change_of_the_search(tmp_path: Path) -> None:
    """The same run twice, as many queries left out: n and all hashes are the same."""
    known = [KnownFailure(query, "RR", 0.0, False) for query in ("q0", "q1")]
    for day, one in enumerate(known, 1):
        gate = Gate("pass", None, "b", "p", [], known_failures=[one], results=[_result(0.5 * day)])
        keep_gate(tmp_path / "t", gate, time=f"2026-03-0{day}T02:00:00Z")
    [series] = trend(tmp_path / "t").series
    assert [(mark.changed, mark.breaks) for mark in series.marks] == [
        ((), False),
        (("rules",), True),
    ]
    assert sentence(series) == "one point only since the break on 2026-03-02"


def _result(value: float) -> Result:
    ends = (value - 0.1, value + 0.1, "t")
    return Result("b", "RR", value, "mean", *ends, 30, 0, 0, 0, 0, 0, None, None, None)


def test_one_point_is_compared_with_nothing() -> None:
    said = sentence(trend(points([0.5])).series[0])
    assert said == "one point only: nothing to compare it with yet"


@pytest.mark.parametrize(
    ("change", "name"), [("qrels", "judgments"), ("queries", "queries"), ("rules", "rules")]
)
def test_the_line_breaks_where_numbers_are_not_comparable(change: str, name: str) -> None:
    """Nine small steps for the worse, but half of them with other judgments."""
    line = points(falling())
    for i in range(5, 10):
        new = (
            {"rules": "rel=2"} if change == "rules" else {"hashes": {**line[i].hashes, change: "x"}}
        )
        line[i] = replace(line[i], **new)  # type: ignore[arg-type]
    found = trend(line)
    [series] = found.series
    assert [mark.breaks for mark in series.marks] == [i == 5 for i in range(10)]
    assert series.marks[5].change is None
    assert name in series.marks[5].changed
    assert (series.lean.points, series.lean.since) == (5, line[5].time)
    assert not series.lean.drifts
    assert series.lean.needed == pytest.approx(131.595, rel=1e-5), "four times that of the first"
    assert "not comparable" in found.notes[0]


def test_a_hash_that_is_kept_at_some_points_only_breaks_too() -> None:
    line = points([0.5, 0.5])
    line[0] = replace(line[0], hashes=HASHES | {"queries": None})
    found = trend(line)
    assert found.series[0].marks[1].unknown == ("queries",)
    assert found.series[0].marks[1].breaks
    assert any("assumed changed" in note for note in found.notes)


def test_corpus_and_karat_are_named_and_break_nothing() -> None:
    line = points([0.5, 0.6])
    line[1] = replace(line[1], karat="2", hashes={**line[1].hashes, "run": "r1"})
    line = [replace(point, hashes={**point.hashes, "corpus": point.karat}) for point in line]
    [series] = trend(line).series
    assert series.marks[1].changed == ("code", "corpus", "karat")
    assert series.marks[1].change == pytest.approx(0.1)


def test_no_value_is_no_zero() -> None:
    [series] = trend(points([0.5, None, 0.5])).series
    assert [mark.change for mark in series.marks] == [None, None, 0.0]
    assert (series.lean.worse, series.lean.points) == (0, 2)


@pytest.mark.parametrize("how", ["unhealthy", "error", "failed", "empty"])
def test_a_point_that_says_nothing_is_no_step(how: str) -> None:
    """The night the search was dead is neither a fall nor, the night after, a rise."""
    line = points(falling())
    answered = {"failed": Answered(30, 27, 0, 0), "empty": Answered(30, 0, 10, 20)}
    line[4] = replace(
        line[4],
        verdict=how if how not in answered else None,
        answered=answered.get(how),
        values=(Value("nDCG@10", 0.9, 0.89, 0.91, 3),),
        hashes={**line[4].hashes, "qrels": "x"},
    )
    [series] = trend(line).series
    whole = trend([*line[:4], *line[5:]]).series[0]
    assert [mark.counts for mark in series.marks] == [i != 4 for i in range(10)]
    dead, after = series.marks[4:6]
    assert (dead.change, dead.told_apart, dead.breaks) == (None, None, False)
    assert "judgments" in dead.changed
    assert after.change == pytest.approx(-0.008), "from the last that counts"
    assert after.changed == ("code", "answers")
    assert series.lean == whole.lean
    assert any("left out of changes and drift" in note for note in trend(line).notes)


@pytest.mark.parametrize("verdict", ["stale", "fail", "cannot_tell", "pass"])
def test_other_verdicts_take_nothing_from_a_number(verdict: str) -> None:
    line = [replace(point, verdict=verdict, kind="gate") for point in points([0.5, 0.6])]
    assert trend(line).series[0].marks[1].change == pytest.approx(0.1)


def test_queries_that_are_missing_are_said_and_count() -> None:
    line = points([0.5, 0.6])
    line[1] = replace(line[1], answered=Answered(30, 0, 3, 0))
    [series] = trend(line).series
    assert series.marks[1].trouble == "3 of 30 queries are not in the run"
    assert series.marks[1].change == pytest.approx(0.1)


def test_over_other_queries_is_no_change_of_the_search() -> None:
    """The hashes are the same, and n is not."""
    line = points(falling())
    line[5:] = [replace(p, values=(replace(p.values[0], n=28),)) for p in line[5:]]
    found = trend(line)
    [series] = found.series
    assert [mark.breaks for mark in series.marks] == [i == 5 for i in range(10)]
    assert series.marks[5].changed == ("code", "answers", "n")
    assert series.marks[5].change is None
    assert (series.lean.points, series.lean.since_commit) == (5, "c6")
    assert any("not a change of the search" in note for note in found.notes)
    line[5:] = [replace(p, values=(replace(p.values[0], n=None),)) for p in line[5:]]
    assert not any(mark.breaks for mark in trend(line).series[0].marks), "n is not known"
    line[5] = replace(line[5], hashes={**line[5].hashes, "qrels": "x"})
    assert "n" not in trend(line).series[0].marks[5].changed, "the judgments say why"


def test_nobody_can_tell_when_the_newest_point_does_not_count() -> None:
    line = points([0.5, 0.5])
    assert trend(line).to_dict()["cannot_tell"] is False
    line[1] = replace(line[1], answered=Answered(30, 30, 0, 0), values=(Value("nDCG@10", None),))
    found = trend(line)
    assert found.to_dict()["cannot_tell"] is True
    told = event(found, time="t")
    assert told is not None
    assert (told["event"], told["commit"]) == ("trend.cannot_tell", "c2")
    assert "does not count (30 of 30 queries got no answer)" in told["text"]
    alone = trend(line[1:]).series[0]
    assert (alone.lean.points, alone.lean.since, alone.lean.change) == (0, None, None)


def test_a_last_line_cut_short_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    history.append(path, *points([0.5, 0.6]))
    with path.open("a") as stream:
        stream.write('{"karat_history": 1, "ti')
    found = trend(path)
    assert len(found.series[0].marks) == 2
    assert found.notes[0] == f"{path}: the last line (3) is truncated and was skipped"


def test_lines_of_merged_branches_are_put_in_order() -> None:
    line = points(falling())
    assert trend(line[::-1]).series == trend(line).series


def test_the_worst_problem_first_and_more_series_ask_for_more() -> None:
    calm, drifting = points([0.5, 0.51] * 5, "AP"), points(falling(), "RR")
    both = [
        replace(one, values=(*one.values, *two.values))
        for one, two in zip(calm, drifting, strict=True)
    ]
    found = trend(both)
    assert [series.measure for series in found.series] == ["RR", "AP"]
    # 20 π² / 6 for each series in its first stretch.
    assert found.series[0].lean.needed == pytest.approx(65.797, rel=1e-5)
    assert trend(both, ["mrr"]).series[0].lean.needed == pytest.approx(32.899, rel=1e-4)


def test_what_is_not_there_is_said() -> None:
    line = points([0.5])
    with pytest.raises(UsageError, match=r"no nDCG@5; did you mean nDCG@10"):
        trend(line, ["ndcg@5"])
    with pytest.raises(UsageError, match="no slice"):
        trend(line, slice="class=name")
    with pytest.raises(UsageError, match="the slice class has no value") as caught:
        trend(line, slice="class")
    assert caught.value.fix == "class=VALUE"
    with pytest.raises(UsageError, match="no run 'bm52'; did you mean bm25"):
        trend(line, run="bm52")
    with pytest.raises(UsageError, match="last must be ≥ 1, got 0"):
        trend(line, last=0)


def test_a_slice() -> None:
    sliced = Value("AP", 0.5, attribute="class", slice="a=b")
    line = [replace(point, values=(*point.values, sliced)) for point in points([0.5, 0.6])]
    assert [series.name for series in trend(line).series] == ["nDCG@10"]
    assert [series.name for series in trend(line, slice="class=a=b").series] == ["AP, class=a=b"]


def test_events() -> None:
    found = event(trend(points(falling())), time="t")
    assert found is not None
    assert (found["event"], found["commit"], found["content"]["drifts"]) == (
        "trend.drift", "c10", True,
    )  # fmt: skip
    assert found["text"].startswith("bm25, nDCG@10: DRIFT: −0.0360 since 2026-03-01 (c1), 9 of 9 s")
    assert event(trend(points([0.5] * 2)), time="t") is None
    alone = event(trend(points([0.5])), time="t")
    assert alone is not None
    assert (alone["event"], alone["text"][:20]) == ("trend.cannot_tell", "NOTHING WAS COMPARED")
    gate = Gate("fail", "a", "b", "p", [Check("AP drops", "fail", "by 0.1")])
    found = event(gate, time="t", commit="c")
    assert found is not None
    assert (found["event"], found["text"]) == ("gate.fail", "b: fail: AP drops: by 0.1")
    assert event(replace(gate, verdict="pass"), time="t") is None


def test_keeping_an_evaluation_and_a_gate(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    qrels = karat.Qrels.from_dict({"q1": {"a": 1}, "q2": {"b": 1}})
    for docs in (("a", "b"), ("b", "a"), ("a", "b")):
        run = {"q1": {docs[0]: 1.0}, "q2": {docs[1]: 1.0}}
        keep(path, karat.evaluate(qrels, run, ["RR"]), time="2026-03-01T02:00:00Z", qrels=qrels)
    one, two, three = history.read(path)
    assert one == three
    assert [point.values[0].value for point in (one, two)] == [1.0, 0.0]
    assert one.answered == Answered(2, 0, 0, 0)
    assert one.hashes["qrels"] == two.hashes["qrels"] is not None
    assert one.hashes["run"] != two.hashes["run"]
    keep_gate(path, Gate("error", None, "b", "p", []), time="2026-03-01T02:00:00Z")
    assert history.read(path)[3].verdict == "error"


def test_rules() -> None:
    assert rules_text({"rel": None, "complete": False, "depth": None, "by": ("x",)}) == ""
    assert rules_text({"rel": 2.0, "complete": True, "depth": 5}) == "rel=2.0 complete=True depth=5"


def test_a_gate_has_intervals_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    ids = [f"q{i}" for i in range(5)]
    qrels = karat.Qrels.from_dict({query: {"a": 1} for query in ids})
    run = {query: {"b": 2.0, "a": 1.0} if query < "q2" else {"a": 1.0} for query in ids[:4]}
    policy = {"rule": [{"measure": "RR", "min": 0.5}]}
    gate = karat.gate(policy, qrels, None, run)
    keep_gate(path, gate, time="2026-03-01T02:00:00Z")
    [row] = karat.evaluate(qrels, run, ["RR"]).results
    [point] = history.read(path)
    # Two of .5, two of 1, one missing: .6; its spread gives the interval.
    assert point.values == (Value("RR", pytest.approx(0.6), row.ci_low, row.ci_high, 5),)
    assert row.ci_low is not None
    assert point.answered == Answered(5, 0, 1, 0)


TIME = "2026-03-01T02:00:00Z"


def result(run: str, value: float = 0.5, **more: str) -> Result:
    return Result(
        run, "AP", value, "mean", value - 0.1, value + 0.1, "t", 30, 0, 0, 0, 0, 0, None, None,
        None, **more,
    )  # fmt: skip


def test_a_point_is_of_one_run_with_its_slices(tmp_path: Path) -> None:
    sliced = result("a", value=0.25, attribute="class", slice="name")
    results = Results([result("a"), result("b")], slices=[sliced])
    qrels = karat.Qrels.from_dict({"q": {"d": 1}})
    keep(tmp_path / "h", results, time=TIME, qrels=qrels, commit="c")
    point, other = history.read(tmp_path / "h")
    assert point.values == (
        Value("AP", 0.5, 0.4, 0.6, 30),
        Value("AP", 0.25, 0.15, 0.35, 30, "class", "name"),
    )
    assert (other.run, len(other.values)) == ("b", 1)
    assert {name for name, known in point.hashes.items() if known is not None} == {"qrels"}
    held = json.loads(json.dumps(point.to_dict(), allow_nan=False))
    assert (held["karat_history"], held["kind"], held["verdict"]) == (1, "evaluate", None)
    assert [row["value"] for row in held["values"]] == [0.5]
    assert [row["slice"] for row in held["slices"]] == ["name"]
    assert set(held["hashes"]) == set(HASHES)


def failing(**more: Any) -> Gate:
    checks = [
        Check("AP drops", "fail", "it does", "AP", None, None, 30, 0.6, 0.5, 0.1, 0.0, 0.2),
        Check("AP is at least 0.4", "pass", "it is", "AP", n=30, candidate_value=0.5),
    ]
    hashes = {"candidate": "r", "qrels": "q"}
    return Gate("fail", "old", "new", "gate.toml", checks, hashes=hashes, **more)


def test_a_gate_gives_the_values_of_its_candidate(tmp_path: Path) -> None:
    """The interval of a check is that of the drop, not of the value."""
    keep_gate(tmp_path / "h", failing(results=[result("new")]), time=TIME, corpus="v2")
    [point] = history.read(tmp_path / "h")
    assert point.values == (Value("AP", 0.5, 0.4, 0.6, 30),)
    assert point.answered == Answered(30, 0, 0, 0)
    assert (point.run, point.verdict, point.kind) == ("new", "fail", "gate")
    assert point.hashes == {"queries": None, "qrels": "q", "run": "r", "corpus": "v2"}


def test_which_queries_a_gate_leaves_out_is_one_of_its_rules(tmp_path: Path) -> None:
    def rules(*ids: str, given: str = "") -> str:
        known = [KnownFailure(query, "AP", None, False) for query in ids]
        keep_gate(tmp_path / "h", failing(known_failures=known), time=TIME, rules=given)
        return history.read(tmp_path / "h")[-1].rules

    assert rules() == ""
    # sha256 of "2:q12:q2", by sha256sum
    assert rules("q1", "q2") == "without=7e872c2d94576bf4"
    assert rules("q2", "q1", "q1", given="rel=2") == "rel=2 without=7e872c2d94576bf4"
    assert len({rules("q1", "q2"), rules("q1"), rules("q1", "q3"), rules("q12:q2")}) == 4


def test_trec_eval_leaves_what_is_missing_out_of_n(tmp_path: Path) -> None:
    for rules in ("compat=trec_eval-9", "complete=True compat=trec_eval-9"):
        results = Results([replace(result("a"), n=66, missing=3)])
        keep(tmp_path / "h", results, time=TIME, qrels=None, rules=rules)
    without, complete = history.read(tmp_path / "h")
    assert without.answered == Answered(69, 0, 3, 0)
    assert complete.answered == Answered(66, 0, 3, 0)
