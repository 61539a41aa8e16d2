"""Gate, end to end: what passes, and all that must not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.workflows.gate import gate, save_baseline

N = 40
QUERIES = [f"q{n:02}" for n in range(N)]
QRELS = {query: {"good": 2, "bad": 0} for query in QUERIES}
POLICY = {"rule": [{"measure": "nDCG@10", "max_drop": "5%"}]}
Rankings = dict[str, dict[str, float] | None]


def at(place: int) -> dict[str, float]:
    """The good document at a rank; nDCG@10 is 1 / log2(rank + 1)."""
    return {("good" if rank == place else f"x{rank}"): -float(rank) for rank in range(1, 11)}


OLD: Rankings = {query: at(1 + n % 3) for n, query in enumerate(QUERIES)}


def test_the_unchanged_run_passes() -> None:
    found = gate(POLICY, QRELS, OLD, OLD)
    assert (found.verdict, found.exit_code) == ("pass", 0)
    [check] = [check for check in found.checks if check.measure]
    assert (check.drop, check.n) == (0.0, N)
    assert (found.lost, found.known_failures) == ([], [])


def test_a_drop_beyond_the_limit_fails_and_names_who_lost() -> None:
    worse = OLD | {query: at(4) for query in QUERIES[:12]}
    found = gate(POLICY, QRELS, OLD, worse)
    assert (found.verdict, found.exit_code) == ("fail", 1)
    first = found.checks[0]
    assert (first.verdict, first.rule) == ("fail", "nDCG@10 drops by at most 5%")
    assert first.reason.startswith("dropped by 0.")
    assert first.ci_low is not None
    assert first.smallest_detected is not None
    # From rank 1 to 4: of those the first ones, four of the twelve.
    assert {row.query_id for row in found.lost[:4]} == {"q00", "q03", "q06", "q09"}
    assert found.lost[0].baseline_value == 1.0


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (dict.fromkeys(QUERIES), "got no answer"),  # dead
        (OLD | dict.fromkeys(QUERIES[::2]), "got no answer"),  # half-dead
        ({query: {} for query in QUERIES}, "it returned no document for any query"),
        ({query: OLD[query] for query in QUERIES[:30]}, "are not in the run"),
    ],
)
def test_a_search_that_does_not_answer_is_unhealthy(candidate: Rankings, reason: str) -> None:
    found = gate(POLICY, QRELS, OLD, candidate)
    assert (found.verdict, found.exit_code) == ("unhealthy", 3)
    assert reason in found.checks[0].reason


def test_a_dead_baseline_does_not_let_anything_pass() -> None:
    dead: Rankings = dict.fromkeys(QUERIES)
    assert gate(POLICY, QRELS, dead, OLD).exit_code == 3
    # Queries that only the baseline lacks would make it look bad.
    half: Rankings = {query: OLD[query] for query in QUERIES[:20]}
    found = gate(POLICY, QRELS, half, OLD)
    assert (found.verdict, found.exit_code) == ("cannot_tell", 3)
    assert "20 are not in the run" in found.checks[0].reason


def test_another_golden_set_is_refused() -> None:
    others = {f"other{n}": at(1) for n in range(N)}
    with pytest.raises(InputError, match="no query of the run is in the qrels"):
        gate(POLICY, QRELS, OLD, others)


def test_one_slice_collapses_while_the_mean_rises() -> None:
    about = pl.DataFrame({"query_id": QUERIES, "class": ["name"] * 8 + ["task"] * 32})
    changed = {q: at(9) if n < 8 else at(1) for n, q in enumerate(QUERIES)}
    assert gate(POLICY, QRELS, OLD, changed, queries=about).verdict == "pass"
    each = {"rule": [{"measure": "nDCG@10", "max_drop": "5%", "each": "class"}]}
    found = gate(each, QRELS, OLD, changed, queries=about)
    assert (found.verdict, found.checks[0].slice) == ("fail", "name")
    assert {row.query_id for row in found.lost} == set(QUERIES[:8])  # of that class alone
    one = {"rule": [{"measure": "nDCG@10", "max_drop": "5%", "slice": "class=task"}]}
    assert gate(one, QRELS, OLD, changed, queries=about).verdict == "pass"
    wrong = {"rule": [{"measure": "nDCG@10", "max_drop": "5%", "slice": "class=nmae"}]}
    with pytest.raises(UsageError, match="did you mean name"):
        gate(wrong, QRELS, OLD, changed, queries=about)


def test_a_share_of_a_baseline_of_0_is_an_error() -> None:
    nothing = {query: {"x": 1.0} for query in QUERIES}
    found = gate(POLICY, QRELS, nothing, OLD)
    assert (found.verdict, found.exit_code) == ("error", 4)
    assert "is no limit" in found.checks[0].reason


def test_the_interval_as_evidence_cannot_tell_what_it_does_not_show() -> None:
    noisy = {query: at(1 + (n + n // 3) % 3) for n, query in enumerate(QUERIES)}
    strict = {"rule": [{"measure": "nDCG@10", "max_drop": 0.01, "evidence": "interval"}]}
    found = gate(strict, QRELS, OLD, noisy)
    assert (found.verdict, found.exit_code) == ("cannot_tell", 3)


def test_a_pass_that_could_not_have_failed_is_named() -> None:
    noisy = {query: at(1 + (n + n // 3) % 3) for n, query in enumerate(QUERIES)}
    loose = {"rule": [{"measure": "nDCG@10", "max_drop": 0.05}]}
    found = gate(loose, QRELS, OLD, noisy)
    assert found.verdict == "pass"
    assert any("a true drop may hide there" in note for note in found.notes)
    assert gate(loose, QRELS, OLD, OLD).notes == []


def test_known_failures_count_in_no_rule_and_are_named_when_they_pass() -> None:
    policy = POLICY | {
        "known_failure": [{"query": "q00", "min": 0.9}, {"query": "q01", "min": 0.9}]
    }
    changed = OLD | {"q00": at(10), "q01": at(1)}
    found = gate(policy, QRELS, OLD, changed)
    assert [(k.query_id, k.passes) for k in found.known_failures] == [("q00", False), ("q01", True)]
    assert {check.n for check in found.checks if check.measure} == {N - 2}
    with pytest.raises(InputError, match="no query of the judgments"):
        gate(POLICY | {"known_failure": [{"query": "q99", "min": 1}]}, QRELS, OLD, OLD)


def test_no_baseline_is_needed_for_a_floor() -> None:
    floor = {"rule": [{"measure": "nDCG@10", "min": 0.5}]}
    assert gate(floor, QRELS, None, OLD).verdict == "pass"
    with pytest.raises(UsageError, match="there is no baseline"):
        gate(POLICY, QRELS, None, OLD)


def test_a_saved_baseline_says_what_the_run_says(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    save_baseline(path, QRELS, OLD, ["nDCG@10", "RR"])
    worse = OLD | {query: at(2) for query in QUERIES[:9]}
    by_file, by_run = (gate(POLICY, QRELS, old, worse) for old in (path, OLD))
    assert [c.drop for c in by_file.checks] == [c.drop for c in by_run.checks]
    assert by_file.hashes == by_run.hashes
    assert json.loads(path.read_text())["karat_baseline"] == 1


def test_other_judgments_make_a_saved_baseline_stale(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    save_baseline(path, QRELS, OLD, ["nDCG@10"])
    others = QRELS | {"q00": {"good": 1, "bad": 0}}
    found = gate(POLICY, others, path, OLD)
    assert (found.verdict, found.exit_code) == ("stale", 3)
    assert "the judgments changed" in found.checks[0].reason
    assert gate(POLICY, QRELS, path, OLD, depth=5).verdict == "stale"
    about = pl.DataFrame({"query_id": QUERIES, "weight": [2.0] * N})
    assert "the queries changed" in gate(POLICY, QRELS, path, OLD, queries=about).checks[0].reason


def test_a_baseline_without_the_measure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    save_baseline(path, QRELS, OLD, ["RR"])
    with pytest.raises(InputError, match=r"has no nDCG@10; it has RR"):
        gate(POLICY, QRELS, path, OLD)
    with pytest.raises(UsageError, match="JSON"):
        save_baseline(tmp_path / "baseline.txt", QRELS, OLD)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-30],
        lambda text: text.replace('"karat_baseline": 1', '"karat_baseline": 2'),
        lambda text: text.replace('"answered": "ok"', '"answered": "fine"', 1),
        lambda text: text.replace('"values": [1.0]', '"values": []', 1),
        lambda text: text.replace('"q01"', '"q00"', 1),
    ],
)
def test_a_damaged_baseline_is_refused(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "baseline.json"
    save_baseline(path, QRELS, OLD, ["nDCG@10"])
    before = path.read_text()
    path.write_text(damage(before))
    assert path.read_text() != before
    with pytest.raises(InputError, match=r"baseline\.json"):
        gate(POLICY, QRELS, path, OLD)


def test_timing_out_on_what_is_hard_does_not_help() -> None:
    # A third of the queries have the good document at 3: nDCG .5; they fail, within the budget.
    hard = {query: None if n % 3 == 2 else OLD[query] for n, query in enumerate(QUERIES)}
    floor = {"rule": [{"measure": "nDCG@10", "min": 0.75}], "health": {"max_failed": 0.5}}
    assert gate(floor, QRELS, None, OLD).verdict == "fail"
    found = gate(floor, QRELS, None, hard)
    assert (found.verdict, found.exit_code) == ("cannot_tell", 3)
    assert "with the 13 unanswered at their worst it would not hold" in found.checks[0].reason
    drop = POLICY | {"health": {"max_failed": 0.5}}
    assert gate(drop, QRELS, OLD, hard).verdict == "cannot_tell"


def test_a_half_dead_run_makes_no_baseline(tmp_path: Path) -> None:
    half = OLD | dict.fromkeys(QUERIES[::2])
    with pytest.raises(InputError, match="20 queries of run got no answer"):
        save_baseline(tmp_path / "baseline.json", QRELS, half)
    assert not (tmp_path / "baseline.json").exists()
