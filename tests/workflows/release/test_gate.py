"""Gate, end to end: what passes, and all that must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.workflows.release.baseline import save_baseline
from karat.workflows.release.gate import gate

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
    assert "20 of 40 are not in the run" in found.checks[0].reason


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
    nothing = {query: {"bad": 1.0} for query in QUERIES}  # judged, and not relevant
    found = gate(POLICY, QRELS, nothing, OLD)
    assert (found.verdict, found.exit_code) == ("error", 4)
    assert "is not a limit" in found.checks[0].reason


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
    assert any("a true drop may be undetected" in note for note in found.notes)
    [note] = gate(loose, QRELS, OLD, OLD).notes
    assert note.startswith("candidate and baseline are the same run (SHA-256 ")


def test_known_failures_count_in_no_rule_and_are_named_when_they_pass() -> None:
    policy = POLICY | {
        "known_failure": [
            {"query_id": "q00", "min": 0.9, "reason": "no synonyms"},
            {"query": "q01", "min": 0.9},
        ]
    }
    changed = OLD | {"q00": at(10), "q01": at(1)}
    found = gate(policy, QRELS, OLD, changed)
    assert [(k.query_id, k.passes) for k in found.known_failures] == [("q00", False), ("q01", True)]
    assert {check.n for check in found.checks if check.measure} == {N - 2}
    with pytest.raises(InputError, match="not among the judged queries"):
        gate(POLICY | {"known_failure": [{"query": "q99", "min": 1}]}, QRELS, OLD, OLD)


def test_no_baseline_is_needed_for_a_floor() -> None:
    floor = {"rule": [{"measure": "nDCG@10", "min": 0.5}]}
    assert gate(floor, QRELS, None, OLD).verdict == "pass"
    with pytest.raises(UsageError, match="the policy compares with a baseline"):
        gate(POLICY, QRELS, None, OLD)


def test_timing_out_on_what_is_hard_does_not_help() -> None:
    # A third of the queries have the good document at 3: nDCG .5; they fail, within the budget.
    hard = {query: None if n % 3 == 2 else OLD[query] for n, query in enumerate(QUERIES)}
    floor = {"rule": [{"measure": "nDCG@10", "min": 0.75}], "health": {"max_failed": 0.5}}
    assert gate(floor, QRELS, None, OLD).verdict == "fail"
    found = gate(floor, QRELS, None, hard)
    assert (found.verdict, found.exit_code) == ("cannot_tell", 3)
    assert "with the 13 unanswered at their worst it would fail" in found.checks[0].reason
    drop = POLICY | {"health": {"max_failed": 0.5}}
    assert gate(drop, QRELS, OLD, hard).verdict == "cannot_tell"


@pytest.mark.parametrize("content", ["", "\n \n"])
@pytest.mark.parametrize("ending", ["trec", "jsonl", "csv"])
def test_an_empty_candidate_is_unhealthy_and_says_so_first(
    tmp_path: Path, ending: str, content: str
) -> None:
    path = tmp_path / f"new.{ending}"
    path.write_text(content)
    found = gate(POLICY, QRELS, OLD, path)
    assert (found.verdict, found.exit_code) == ("unhealthy", 3)
    assert found.checks[0].reason == "the run file is empty"
    assert gate(POLICY, QRELS, OLD, {}).checks[0].reason == "the run is empty"


@pytest.mark.parametrize("drop", ["5%", 0.01])
def test_an_empty_baseline_makes_nothing_sure(tmp_path: Path, drop: Any) -> None:
    (tmp_path / "old.json").write_text("")
    rule = {"rule": [{"measure": "nDCG@10", "max_drop": drop}]}
    found = gate(rule, QRELS, tmp_path / "old.json", OLD)
    assert (found.verdict, found.exit_code) == ("cannot_tell", 3)
    assert [check.reason for check in found.checks[:2]] == [
        "the run file is empty",
        "the baseline old returned nothing",
    ]


def test_a_dead_engine_read_from_a_file_names_its_errors(tmp_path: Path) -> None:
    lines = (
        f'{{"query_id": "{query}", "state": "failed", "error": "timeout"}}' for query in QUERIES
    )
    (tmp_path / "dead.jsonl").write_text("\n".join(lines))
    found = gate(POLICY, QRELS, OLD, tmp_path / "dead.jsonl")
    assert (found.verdict, found.exit_code) == ("unhealthy", 3)
    assert found.checks[0].reason == "40 of 40 got no answer (40 × timeout)"


def test_a_class_that_counts_nowhere_is_named(tmp_path: Path) -> None:
    kinds = ["none"] * 4 + ["name"] * 16 + ["task"] * 20 + ["later"]
    about = pl.DataFrame(
        {
            "query_id": [*QUERIES, "q99"],
            "class": kinds,
            "no_answer": [kind == "none" for kind in kinds],
        }
    )
    judged = {q: ({"bad": 0} if n < 4 else QRELS[q]) for n, q in enumerate(QUERIES)}
    each = {"rule": [{"measure": "nDCG@10", "max_drop": "5%", "each": "class"}]}
    found = gate(each, judged, OLD, OLD, queries=about)
    assert found.verdict == "pass"
    assert [check.slice for check in found.checks if check.measure] == ["name", "task"]
    assert [note for note in found.notes if "class" in note] == [
        "no rule covers class later: none of its queries counts (1 without judgments)",
        "no rule covers class none: none of its queries counts (4 marked no_answer)",
    ]
    # A class that lost all its values does not pass for want of them.
    failed = OLD | dict.fromkeys(QUERIES[4:20])
    lenient = each | {"health": {"max_failed": 0.9}}
    found = gate(lenient, judged, OLD, failed, queries=about)
    assert found.verdict == "cannot_tell"
    assert [c.slice for c in found.checks if c.verdict == "cannot_tell"] == ["name"]
    one = {"rule": [{"measure": "nDCG@10", "min": 0.1, "slice": "class=none"}]}
    with pytest.raises(UsageError, match=r"no query of .* counts: 4 marked no_answer"):
        gate(one, judged, None, OLD, queries=about)


def test_a_rule_whose_every_slice_is_left_out_does_not_pass() -> None:
    about = pl.DataFrame({"query_id": QUERIES, "class": ["name"] * N})
    known = [{"query": query, "min": 0.9} for query in QUERIES]
    each = {"rule": [{"measure": "nDCG@10", "min": 0.1, "each": "class"}], "known_failure": known}
    found = gate(each, QRELS, None, OLD, queries=about)
    assert found.verdict == "unhealthy"
    assert [check.verdict for check in found.checks if check.measure] == ["cannot_tell"]


def test_who_lost_has_the_slice_and_the_documents_that_moved(tmp_path: Path) -> None:
    about = pl.DataFrame({"query_id": QUERIES, "class": ["name"] * 8 + ["task"] * 32})
    changed = {q: at(9) if n < 8 else OLD[q] for n, q in enumerate(QUERIES)}
    rules = [{"measure": "nDCG@10", "max_drop": "5%"}]
    rules.append({"measure": "nDCG@10", "max_drop": "5%", "each": "class"})
    found = gate({"rule": rules}, QRELS, OLD, changed, queries=about)
    assert [row.query_id for row in found.lost[:3]] == ["q00", "q03", "q06"]  # from rank 1
    assert len({row.query_id for row in found.lost}) == len(found.lost) == 8
    assert {(row.attribute, row.slice) for row in found.lost} == {("class", "name")}
    first = found.lost[0].moves
    assert first is not None
    assert [(m.doc_id, m.baseline_rank, m.candidate_rank) for m in first] == [("good", 1, 9)]
    save_baseline(tmp_path / "old.json", QRELS, OLD, ["nDCG@10"], queries=about)
    saved = gate({"rule": rules}, QRELS, tmp_path / "old.json", changed, queries=about)
    assert {row.moves for row in saved.lost if row.moves is None} == {None}
    assert [row.query_id for row in saved.lost] == [row.query_id for row in found.lost]


SURE = {"rule": [{"measure": "nDCG@10", "max_drop": 0.5, "evidence": "interval"}]}


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_an_interval_of_so_few_queries_never_passes(n: int) -> None:
    judged = {query: QRELS[query] for query in QUERIES[:n]}
    slightly = {query: at(2) for query in judged}
    for new in (slightly, OLD):
        runs = ({query: run[query] for query in judged} for run in (OLD, new))
        assert gate(SURE, judged, *runs).verdict == "cannot_tell"


def test_a_weight_above_all_others_is_one_query() -> None:
    noisy = {query: at(1 + (n + n // 3) % 3) for n, query in enumerate(QUERIES)}
    about = pl.DataFrame({"query_id": QUERIES, "weight": [1e6] + [1.0] * (N - 1)})
    assert gate(SURE, QRELS, OLD, noisy).verdict == "pass"
    found = gate(SURE, QRELS, OLD, noisy, queries=about)
    assert found.verdict == "cannot_tell"
    assert "with such unequal weights" in found.checks[0].reason


def test_a_stratum_of_one_query_has_no_interval_and_proves_nothing() -> None:
    noisy = {query: at(1 + (n + n // 3) % 3) for n, query in enumerate(QUERIES)}
    about = pl.DataFrame({"query_id": QUERIES, "stratum": ["a"] + ["b"] * (N - 1)})
    found = gate(SURE, QRELS, OLD, noisy, queries=about)
    [check] = [check for check in found.checks if check.measure]
    assert (check.ci_low is not None) == (check.verdict == "pass")


def test_a_slice_of_one_and_failed_queries_never_pass_by_interval() -> None:
    about = pl.DataFrame({"query_id": QUERIES, "class": ["one"] + ["rest"] * (N - 1)})
    each = {"rule": [SURE["rule"][0] | {"each": "class"}], "health": {"max_failed": 0.9}}
    found = gate(each, QRELS, OLD, OLD, queries=about)
    assert [c.slice for c in found.checks if c.verdict == "cannot_tell"] == ["one"]
    failed = OLD | dict.fromkeys(QUERIES[::2])
    tight = {"rule": [SURE["rule"][0] | {"max_drop": 0.1}], "health": {"max_failed": 0.9}}
    assert gate(tight, QRELS, OLD, failed).verdict == "cannot_tell"


def test_one_candidate_is_held() -> None:
    with pytest.raises(UsageError, match="expected one candidate, got 2"):
        gate(POLICY, QRELS, OLD, {"a": OLD, "b": OLD})
    found = gate(POLICY, QRELS, OLD, OLD)
    assert (found.baseline, found.candidate) == ("baseline", "candidate")
