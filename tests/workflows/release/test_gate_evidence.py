"""Gate, end to end: evidence that must not pass, and what it must not overlook."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import polars as pl
import pytest
from tests.choosing import deep_but

from karat.errors import InputError
from karat.formats import read_run, write_run
from karat.workflows.golden.golden_set import GoldenSet
from karat.workflows.offline.benchmark import benchmark
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.release.baseline import save_baseline
from karat.workflows.release.gate import gate

N = 40
QUERIES = [f"q{n:02}" for n in range(N)]
QRELS = {query: {f"d{query}": 1, "y": 0} for query in QUERIES}
GOOD = {query: {f"d{query}": 2.0, "x": 1.0} for query in QUERIES}
JUNK = {query: {"x": 2.0, "y": 1.0} for query in QUERIES}
FLOOR = {"rule": [{"measure": "nDCG@10", "min": 0.9}]}
DROP = {"rule": [{"measure": "nDCG@10", "max_drop": "5%"}]}


def run_of(path: Path, rows: list[dict[str, Any]]) -> Any:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return read_run(path)


def row(query: str, **more: Any) -> dict[str, Any]:
    return {"query_id": query, "doc_id": f"d{query}", "score": 1.0} | more


def timed(path: Path, times: list[int | None]) -> Any:
    """A run of good answers, some with a time in microseconds."""
    rows = zip(QUERIES, times, strict=True)
    return run_of(path, [row(q, **({} if t is None else {"latency_us": t})) for q, t in rows])


def test_a_floor_asks_nothing_of_the_baseline(tmp_path: Path) -> None:
    # Junk for ten of forty: nDCG .75, whatever became of the baseline there.
    new = GOOD | {query: JUNK[query] for query in QUERIES[:10]}
    old = GOOD | dict.fromkeys(QUERIES[:10])
    lenient = FLOOR | {"health": {"max_failed": 0.3}}
    for baseline in (None, GOOD, old):
        [check] = [c for c in gate(lenient, QRELS, baseline, new).checks if c.measure]
        assert (check.verdict, check.n, check.candidate_value) == ("fail", N, 0.75)
        assert check.baseline_value == (1.0 if baseline is GOOD else None)
    # A saved baseline over fewer queries is stale, and the floor is held all the same.
    fewer = {query: QRELS[query] for query in QUERIES[10:]}
    save_baseline(tmp_path / "old.json", fewer, GOOD, ["nDCG@10"])
    found = gate(FLOOR, QRELS, tmp_path / "old.json", new)
    assert found.verdict == "fail"
    assert found.results[0].value == 0.75


def test_judgments_are_asked_for_where_no_measure_has_a_cutoff() -> None:
    asked = {"rule": [{"measure": "AP", "min": 0.1}], "health": {"min_judged": 0.9}}
    found = gate(asked, QRELS, None, GOOD)  # one of two documents is judged
    [check] = [check for check in found.checks if check.rule.startswith("Judged")]
    assert (check.rule, check.verdict) == ("Judged@10 is at least 0.9", "cannot_tell")
    assert check.candidate_value == 0.5


def test_the_judged_share_is_weighted_as_every_mean() -> None:
    new = {q: ({"x": 2.0} if q == "q00" else {f"d{q}": 1.0}) for q in QUERIES}
    policy = {"rule": [{"measure": "nDCG@10", "min": 0.1}], "health": {"min_judged": 0.9}}
    assert gate(policy, QRELS, None, new).verdict == "pass"  # 39 of 40
    about = pl.DataFrame({"query_id": QUERIES, "weight": [100.0] + [1.0] * (N - 1)})
    found = gate(policy, QRELS, None, new, queries=about)
    [check] = [check for check in found.checks if check.rule.startswith("Judged")]
    assert check.verdict == "cannot_tell"
    assert check.candidate_value == pytest.approx(39 / 139)
    assert check.candidate_value == found.results[0].judged


def test_one_quick_answer_is_no_p95(tmp_path: Path) -> None:
    policy = FLOOR | {"health": {"p95_ms": 10}}

    def said(times: list[int | None]) -> tuple[str, int | None]:
        found = gate(policy, QRELS, None, timed(tmp_path / "new.jsonl", times))
        [check] = [check for check in found.checks if check.rule.startswith("95 %")]
        return check.verdict, check.n

    assert said([1000] * N) == ("pass", N)
    assert said([1000] + [None] * (N - 1)) == ("cannot_tell", 1)
    assert said([1000] * 38 + [None] * 2) == ("pass", 38)  # 95 % of 40
    assert said([1000] * 37 + [None] * 3) == ("cannot_tell", 37)
    assert said([1000] * 37 + [20_000] * 3) == ("fail", N)
    # Whoever refuses at once has answered nothing.
    refused = {"state": "failed", "latency_us": 1000}
    dead = run_of(tmp_path / "dead.jsonl", [{"query_id": query} | refused for query in QUERIES])
    found = gate(policy, QRELS, None, dead)
    [check] = [check for check in found.checks if check.rule.startswith("95 %")]
    assert (found.verdict, check.verdict) == ("unhealthy", "cannot_tell")


def test_a_search_that_became_slow_is_told_of(tmp_path: Path) -> None:
    old = timed(tmp_path / "old.jsonl", [60] * N)
    new = timed(tmp_path / "new.jsonl", [51_000] * N)
    save_baseline(tmp_path / "old.json", QRELS, old, ["nDCG@10"])
    for baseline in (old, tmp_path / "old.json"):
        notes = gate(DROP, QRELS, baseline, new).notes
        assert (
            "p95 went from 0.06 ms to 51 ms; no rule checks it (max_p95_ms, max_p95_increase)"
            in notes
        )


MANY = [f"q{n:03}" for n in range(120)]
JUDGED = {query: {f"d{query}": 1} for query in MANY}


def written(path: Path, factor: int = 1, empty: int = 0, twice: int = 0) -> Path:
    """A run of 120 timed queries, the first answered with nothing or with documents twice."""
    rows = []
    for n, query in enumerate(MANY):
        timed = {"latency_us": 1000 * factor * (n % 40 + 1)}
        if n < empty:
            rows.append({"query_id": query, "state": "empty"} | timed)
        else:
            rows.append(row(query, **timed, **({"repeated": 1} if n < twice else {})))
    run_of(path, rows)
    return path


@pytest.mark.parametrize("saved", deep_but([True], [False, True]))
def test_slower_emptier_and_doubled_candidates_do_not_pass(tmp_path: Path, saved: bool) -> None:
    policy = {
        "rule": [{"measure": "nDCG@10", "max_drop": "50%"}],
        "health": {"max_empty": "5%", "max_duplicates": 0, "max_p95_increase": "50%"},
    }
    old = baseline = written(tmp_path / "old.jsonl")
    if saved:
        baseline = tmp_path / "old.json"
        save_baseline(baseline, JUDGED, old, ["nDCG@10"])

    def said(**broken: int) -> tuple[str, str]:
        found = gate(policy, JUDGED, baseline, written(tmp_path / "new.jsonl", **broken))
        return found.verdict, found.checks[0].reason

    assert said()[0] == "pass"
    assert said(empty=6)[0] == "pass"
    assert said(empty=12) == ("fail", "12 of 120 have no results")
    assert said(twice=120) == ("fail", "120 of 120 have a duplicate document")
    verdict, reason = said(factor=4)
    assert verdict == "fail"
    assert reason.startswith("p95 went from 38 ms to 152 ms: +300 % (95 %: +")
    # A baseline that was emptier does not stop a candidate that is not.
    assert gate(policy, JUDGED, written(tmp_path / "b.jsonl", empty=12), old).verdict == "pass"


def test_a_baseline_saved_without_times_cannot_tell_of_an_increase(tmp_path: Path) -> None:
    policy = DROP | {"health": {"max_p95_increase": "50%"}}
    save_baseline(tmp_path / "old.json", QRELS, GOOD, ["nDCG@10"])
    found = gate(policy, QRELS, tmp_path / "old.json", timed(tmp_path / "new.jsonl", [60] * N))
    assert (found.verdict, found.checks[0].reason) == ("cannot_tell", "run has no times")


def test_only_the_same_run_is_called_so(tmp_path: Path) -> None:
    old = written(tmp_path / "old.jsonl")
    save_baseline(tmp_path / "old.json", JUDGED, old, ["nDCG@10"])

    def notes(baseline: Path, **broken: int) -> list[str]:
        return gate(DROP, JUDGED, baseline, written(tmp_path / "new.jsonl", **broken)).notes

    for baseline in (old, tmp_path / "old.json"):
        assert notes(baseline)[0].startswith("candidate and baseline are the same run (SHA-256 ")
        slower = notes(baseline, factor=2)[0]
        assert slower.startswith("candidate and baseline returned the same for every query (SHA")
        assert slower.endswith("with other latencies")
        [doubled] = notes(baseline, twice=120)
        assert doubled.startswith("120 queries returned a document more than once; no rule")


def test_a_gate_sees_what_a_benchmark_noticed(tmp_path: Path) -> None:
    golden = [{"query": q, "relevant_docs": [f"d{q}"]} for q in QUERIES]
    policy = DROP | {"health": {"max_duplicates": 0}}
    results = benchmark(golden, lambda text: [f"d{text}", f"d{text}", "x"], progress=False)
    [run] = results.runs.values()
    for name in ("run.jsonl", "run.csv", "run.parquet"):
        write_run(run, tmp_path / name)
        judged = {query.query_id: {f"d{query.text}": 1} for query in GoldenSet.from_list(golden)}
        found = gate(policy, judged, run, tmp_path / name)
        assert (found.verdict, found.checks[0].reason) == (
            "fail",
            "40 of 40 have a duplicate document",
        )


@pytest.mark.parametrize(
    ("spell", "cause"),
    [
        (str.upper, "ids differ by upper and lower case: 'DQ00' in the run, 'dq00' in the"),
        ("shop/{}".format, "ids differ by the prefix 'shop/' of those in the run: 'shop/dq00'"),
        pytest.param(
            "{}.html".format,
            "ids differ by the suffix '.html' of those in the run",
            marks=pytest.mark.deep,
        ),
        (
            lambda each: f"{crc32(each.encode()):x}",
            "do document ids mean the same in run and qrels?",
        ),
    ],
)
def test_ids_of_another_world_are_unhealthy_and_no_drop(
    tmp_path: Path, spell: Callable[[str], str], cause: str
) -> None:
    foreign = {query: {spell(doc): s for doc, s in docs.items()} for query, docs in GOOD.items()}
    policy = {"rule": [{"measure": "nDCG@10", "max_drop": "5%", "min": 0.1}]}
    save_baseline(tmp_path / "old.json", QRELS, GOOD, ["nDCG@10"])
    for baseline in (GOOD, tmp_path / "old.json"):
        found = gate(policy, QRELS, baseline, foreign)
        assert (found.verdict, found.exit_code, found.lost) == ("unhealthy", 3, [])
        first, *others = found.checks
        assert first.rule == "documents have the ids of the judgments"
        assert first.reason.startswith("no retrieved document is judged: ")
        assert cause in first.reason
        assert {check.verdict for check in others if check.measure} == {"cannot_tell"}
    # From such a baseline everything rises.
    found = gate(policy, QRELS, foreign, GOOD)
    assert (found.verdict, found.checks[0].rule) == (
        "cannot_tell",
        "baseline baseline: documents have the ids of the judgments",
    )


def test_a_part_of_the_ids_may_be_of_another_world() -> None:
    half = GOOD | {query: {f"D{query}": 1.0} for query in QUERIES[::2]}
    found = gate(DROP, QRELS, GOOD, half)
    assert found.verdict == "unhealthy"
    assert found.checks[0].reason == (
        "some document ids do not match the judgments: ids differ by upper and lower case: 'Dq00' "
        "in the run, 'dq00' in the judgments"
    )
    # What is unjudged and called something else is a drop.
    unjudged = GOOD | {query: {f"z{n}": 1.0} for n, query in enumerate(QUERIES[::2])}
    assert gate(DROP, QRELS, GOOD, unjudged).verdict == "fail"


def test_evaluate_and_compare_name_the_likely_cause() -> None:
    foreign = {query: {d.upper(): s for d, s in docs.items()} for query, docs in GOOD.items()}
    said = (
        "no retrieved document is judged: ids differ by upper and lower case: 'DQ00' in "
        "the run, 'dq00' in the judgments"
    )
    assert said in evaluate(QRELS, foreign).notes
    assert f"candidate: {said}" in compare(QRELS, GOOD, foreign).notes
    assert not [note for note in compare(QRELS, GOOD, JUNK).notes if "ids" in note]


def test_a_floor_by_interval_needs_proof() -> None:
    # Five of nine at 1, the others at 0: .5556 is above .5, and the interval is not.
    judged = {query: QRELS[query] for query in QUERIES[:9]}
    new = {query: (GOOD if n < 5 else JUNK)[query] for n, query in enumerate(judged)}
    floor = {"measure": "nDCG@10", "min": 0.5}
    assert gate({"rule": [floor]}, judged, None, new).verdict == "pass"
    found = gate({"rule": [floor | {"evidence": "interval"}]}, judged, None, new)
    [check] = [check for check in found.checks if check.measure]
    assert check.verdict == "cannot_tell"
    low = found.results[0].ci_low
    assert low is not None
    assert f"(95 %: {low:.4f} to " in check.reason
    sure = {"rule": [floor | {"evidence": "interval"}]}
    assert gate(sure, QRELS, None, GOOD).verdict == "pass"
    assert gate(sure, QRELS, None, JUNK).verdict == "fail"


@pytest.mark.parametrize("written", [{"max_drop": "100%"}, {"min": 0}, {"max_drop": 1.0}])
def test_a_policy_that_junk_could_not_break_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        gate({"rule": [{"measure": "nDCG@10"} | written]}, QRELS, GOOD, JUNK)


def test_known_failures_that_leave_little_are_told_of() -> None:
    def notes(count: int) -> list[str]:
        known = [{"query_id": query, "min": 0.5} for query in QUERIES[:count]]
        found = gate(FLOOR | {"known_failure": known}, QRELS, None, GOOD)
        return [note for note in found.notes if "known" in note]

    assert notes(15) == []  # 25 count
    said = "{} of 40 queries {}; the other {} are known failures, which no rule covers"
    assert notes(16) == [said.format(24, "count", 16)]
    assert notes(39) == [said.format(1, "counts", 39)]


def test_answers_where_there_is_none_are_told_of_and_may_fail(tmp_path: Path) -> None:
    about = pl.DataFrame({"query_id": [*QUERIES, "no"], "no_answer": [False] * N + [True]})
    rows = [row(query) for query in QUERIES]
    silent = run_of(tmp_path / "old.jsonl", [*rows, {"query_id": "no", "state": "empty"}])
    loud = run_of(tmp_path / "new.jsonl", [*rows, row("no")])
    save_baseline(tmp_path / "old.json", QRELS, silent, ["nDCG@10"], queries=about)
    for baseline in (silent, tmp_path / "old.json"):
        found = gate(DROP, QRELS, baseline, loud, queries=about)
        assert found.verdict == "pass"
        said = "1 of 1 query without a right answer is answered now (baseline: 0); no rule checks"
        assert [note for note in found.notes if note.startswith(said)]
        held = DROP | {"health": {"min_silent": 0.9}}
        assert gate(held, QRELS, baseline, loud, queries=about).verdict == "fail"
        assert gate(held, QRELS, baseline, silent, queries=about).verdict == "pass"
    assert gate(held, QRELS, GOOD, GOOD).verdict == "cannot_tell"  # nothing is marked


def test_the_same_run_twice_is_told_of() -> None:
    [note] = gate(DROP, QRELS, GOOD, GOOD).notes
    assert note.startswith("candidate and baseline are the same run (SHA-256 ")
    assert gate(FLOOR, QRELS, None, GOOD).notes == []
