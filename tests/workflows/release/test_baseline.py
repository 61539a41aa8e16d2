"""Saved baselines: what they say, and what makes them count no more."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import metadata
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
    with pytest.raises(UsageError, match=r"a \.json file"):
        save_baseline(tmp_path / "baseline.txt", QRELS, OLD)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-30],
        lambda text: text.replace('"karat_baseline": 1', '"karat_baseline": 2'),
        lambda text: text.replace('"answered": "ok"', '"answered": "fine"', 1),
        lambda text: text.replace('"values": [1.0]', '"values": []', 1),
        lambda text: text.replace('"q01"', '"q00"', 1),
        lambda text: text.replace('"values": [1.0]', '"values": [0.9]', 1),
        lambda text: text.replace('"rel": 1.0', '"rel": 2.0'),
        lambda text: text.replace('"sha256"', '"sha255"'),
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


def test_a_half_dead_run_makes_no_baseline(tmp_path: Path) -> None:
    half = OLD | dict.fromkeys(QUERIES[::2])
    with pytest.raises(InputError, match="20 queries of run got no answer"):
        save_baseline(tmp_path / "baseline.json", QRELS, half)
    assert not (tmp_path / "baseline.json").exists()


def test_a_baseline_edited_by_hand_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    save_baseline(path, QRELS, OLD, ["nDCG@10"])
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content, indent=1))  # spaces are no edit
    assert gate(POLICY, QRELS, path, OLD).verdict == "pass"
    content["queries"][0]["values"] = [0.1]
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"was edited.*\n.*--save-baseline FILE --policy FILE"):
        gate(POLICY, QRELS, path, OLD)


def test_a_run_of_nothing_makes_no_baseline(tmp_path: Path) -> None:
    nothing: Rankings = {query: {} for query in QUERIES}
    with pytest.raises(InputError, match="returned nothing for any query"):
        save_baseline(tmp_path / "baseline.json", QRELS, nothing)


def test_a_stale_baseline_says_what_changed_and_the_command_to_renew_it(tmp_path: Path) -> None:
    path, policy, qrels = tmp_path / "old.json", tmp_path / "gate.toml", tmp_path / "a b.qrels"
    policy.write_text('[[rule]]\nmeasure = "nDCG@10"\nmax_drop = "5%"\nmin = 0.1\n')
    qrels.write_text("".join(f"{query} 0 good 2\n{query} 0 bad 0\n" for query in QUERIES))
    save_baseline(path, qrels, OLD, ["nDCG@10"])
    found = gate(policy, qrels, path, OLD, depth=5, rel=2)
    assert (found.verdict, found.exit_code) == ("stale", 3)
    assert found.checks[0].reason == (
        f"rel (1 → 2) and depth (none → 5) changed since {path} was saved; to save it again: karat "
        f"gate --save-baseline {path} --policy {policy} --rel 2 --depth 5 '{qrels}' RUN (RUN was "
        "run)"
    )
    # What the command makes is stale no more.
    save_baseline(path, qrels, OLD, ["nDCG@10"], depth=5, rel=2)
    assert gate(policy, qrels, path, OLD, depth=5, rel=2).verdict == "pass"
    # A dictionary has no file to name: the measures are.
    told = gate(POLICY, QRELS, path, OLD).checks[0].reason
    assert f"--save-baseline {path} -m nDCG@10 QRELS RUN" in told


def test_a_floor_alone_says_that_its_baseline_is_stale(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    save_baseline(path, QRELS, OLD, ["nDCG@10"])
    floor = {"rule": [{"measure": "nDCG@10", "min": 0.1}]}
    found = gate(floor, QRELS, path, OLD, depth=5)
    assert found.verdict == "pass"
    assert any("depth (none → 5) changed since" in note for note in found.notes)


def test_folding_chunks_is_another_rule(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    save_baseline(path, QRELS, OLD, ["nDCG@10"])
    chunks = pl.DataFrame({"doc_id": ["good"], "page": ["good"]})
    found = gate(POLICY, QRELS, path, OLD, documents=chunks, collapse="page")
    assert found.verdict == "stale"
    assert "collapse (none → page)" in found.checks[0].reason


def test_other_documents_for_the_same_chunks_make_it_stale(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    runs = {query: {"c1": 2.0, "c2": 1.0} for query in QUERIES}
    pages = pl.DataFrame({"doc_id": ["c1", "c2"], "page": ["bad", "good"]})
    other = pl.DataFrame({"doc_id": ["c2", "c1"], "page": ["bad", "good"]})
    save_baseline(path, QRELS, runs, ["nDCG@10"], documents=pages, collapse="page")
    same = gate(POLICY, QRELS, path, runs, documents=pages[::-1], collapse="page")
    assert same.verdict == "pass"
    found = gate(POLICY, QRELS, path, runs, documents=other, collapse="page")
    assert found.verdict == "stale"
    assert found.checks[0].reason.startswith("the mapping of chunks to documents changed since")


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.0.9", "stale"), ("9.0", "stale"), ("{}.dev3", "pass"), ("{}", "pass"), ("?", "stale")],
)
def test_another_karat_makes_it_stale(tmp_path: Path, version: str, expected: str) -> None:
    now = metadata.version("karat")
    saved = save_baseline(tmp_path / "old.json", QRELS, OLD, ["nDCG@10"])
    other = replace(saved, karat=version.format(now), source="old.json")
    found = gate(POLICY, QRELS, other, OLD)
    assert found.verdict == expected
    if expected == "stale":
        said = (
            f"karat ({version} → {now}) changed since old.json was saved; to save it again: karat"
        )
        assert found.checks[0].reason.startswith(said)


def test_another_rel_is_stale_though_the_measure_has_another_name(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    save_baseline(path, QRELS, OLD, ["RR@10"])
    policy = {"rule": [{"measure": "RR@10", "max_drop": "5%"}]}
    found = gate(policy, QRELS, path, OLD, rel=2)
    assert (found.verdict, found.exit_code) == ("stale", 3)
    assert found.checks[0].reason.startswith(f"rel (1 → 2) changed since {path} was saved")


def test_queries_that_the_run_lacks_are_said(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    assert save_baseline(path, QRELS, OLD, ["nDCG@10"]).notes == []
    part: Rankings = {query: OLD[query] for query in QUERIES[2:]}
    saved = save_baseline(path, QRELS, part, ["nDCG@10"])
    assert saved.notes == [
        "2 of 40 queries are not in run (q00, …), and the baseline has 0 for them"
    ]
    one = save_baseline(path, QRELS, OLD | {"q00": {}}, ["nDCG@10"])
    assert one.notes == []  # answered with nothing is an answer
