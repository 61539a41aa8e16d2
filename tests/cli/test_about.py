"""What is recorded about runs: shown by evaluate, compare and gate, and followed by a history."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat import formats
from karat.tables import Run

Typed = Callable[..., Any]  # conftest.py
OLD = {"engine": "prod", "index": "docs-1", "asked_at": "2026-11-01T00:00:00Z"}
NEW = {"engine": "prod", "index": "docs-2", "asked_at": "2026-11-02T00:00:00Z", "commit": "c0ffee"}
CHANGES = [
    {"candidate": "new", "key": "index", "baseline_value": "docs-1", "candidate_value": "docs-2"},
    {"candidate": "new", "key": "commit", "baseline_value": None, "candidate_value": "c0ffee"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs about which something is recorded, one about which nothing is, and judgments."""
    queries = [f"q{n}" for n in range(6)]
    for name, about in (
        ("old.trec", OLD),
        ("new.jsonl", NEW | {"name": "nightly"}),
        ("x.trec", {}),
    ):
        run = Run.from_dict({query: {"a": 2.0, "b": 1.0} for query in queries}, "r")
        run.about = dict(about)
        formats.write_run(run, tmp_path / name)
    (tmp_path / "qrels").write_text("".join(f"{query} 0 b 1\n" for query in queries))
    rule = '{measure = "RR", max_drop = 0.1}'
    (tmp_path / "policy.toml").write_text(f"rule = [{rule}]\n")
    return tmp_path


def test_evaluate_shows_it_in_a_line_and_all_of_it_as_json(typed: Typed, folder: Path) -> None:
    line = "evaluate qrels old.trec new.jsonl x.trec -m RR"
    out = " ".join(typed(line).out.split())
    assert "old: engine prod, index docs-1, asked 2026-11-01T00:00:00Z" in out
    assert "new: engine prod, index docs-2, commit c0ffee, asked 2026-11-02T00:00:00Z" in out
    assert "· x: " not in out
    told = json.loads(typed(f"{line} --format json").out)
    assert told["about"] == {"old": OLD, "new": NEW | {"name": "nightly"}}
    assert "about" not in json.loads(typed("evaluate qrels x.trec -m RR --format json").out)
    assert "| old | engine prod, index docs-1" in typed(f"{line} --format md").out


def test_answers_written_by_hand_turn_no_gate(typed: Typed, folder: Path) -> None:
    # q5 is missing: 1 of 6 queries, more than the 5 % of max_missing.
    rows = "".join(f"q{n} Q0 b 1 2 y\n" for n in range(5))
    (folder / "y.trec").write_text(rows)
    line = "gate --policy policy.toml qrels y.trec y.trec"
    typed(line, code=3)
    said = {"about": {"index": "docs-7"}, "answers": [{"query_id": "q5", "state": "empty"}]}
    beside = folder / "y.trec.about.json"
    beside.write_text(json.dumps(said))
    assert 'y.trec.about.json: "answers" without "run"' in typed(line, code=2).err
    beside.write_text(json.dumps({"about": said["about"]}))
    typed(line, code=3)


def test_compare_shows_what_changed(typed: Typed, folder: Path) -> None:
    line = "compare qrels old.trec new.jsonl -m RR"
    told = json.loads(typed(f"{line} --format json").out)
    assert told["changes"] == CHANGES
    lines = typed(line).out.splitlines()
    at = lines.index("What changed")
    assert [row.split() for row in lines[at + 4 : at + 6]] == [
        ["index", "docs-1", "docs-2"],
        ["commit", "not", "recorded", "c0ffee"],
    ]
    marked = typed(f"{line} --format md").out
    assert "| <code>index</code> | <code>docs-1</code> | <code>docs-2</code> |" in marked
    assert "2026-11-02" not in marked  # the time of asking always differs
    assert "What changed" not in typed("compare qrels x.trec x.trec -m RR").out


def test_a_gate_says_what_changed(typed: Typed, folder: Path) -> None:
    line = "gate qrels old.trec new.jsonl --policy policy.toml"
    told = json.loads(typed(f"{line} --format json").out)
    assert told["changes"] == CHANGES
    assert "what changed: index docs-1 → docs-2; commit not recorded → c0ffee" in told["notes"]
    typed("gate qrels old.trec --policy policy.toml --save-baseline saved.json")
    told = json.loads(typed("gate qrels saved.json new.jsonl --policy policy.toml -f json").out)
    assert told["changes"] == []


def test_a_run_about_which_nothing_is_recorded_is_named(typed: Typed, folder: Path) -> None:
    said = "nothing is recorded about x, so what changed is unknown"
    for line in ("compare qrels old.trec x.trec -m RR", "compare qrels x.trec old.trec -m RR"):
        assert said in " ".join(typed(line).out.split())
        told = json.loads(typed(f"{line} --format json").out)
        assert (told["changes"], said in told["notes"]) == ([], True)
    line = "gate qrels x.trec new.jsonl --policy policy.toml --format json"
    assert said in json.loads(typed(line).out)["notes"]


def test_a_history_follows_the_name_that_is_recorded(typed: Typed, folder: Path) -> None:
    def series(command: str) -> list[Any]:
        (folder / "h.jsonl").unlink(missing_ok=True)
        typed(f"{command} --history h.jsonl")
        rows = [json.loads(row) for row in (folder / "h.jsonl").read_text().splitlines()]
        return [(row["run"], row.get("series")) for row in rows]

    evaluate = "evaluate qrels -m RR"
    assert series(f"{evaluate} old.trec new.jsonl") == [("old", None), ("new", "nightly")]
    assert series(f"{evaluate} new.jsonl --name tuned") == [("tuned", None)]
    assert series(f"{evaluate} new.jsonl --series weekly") == [("new", "weekly")]
    gate = "gate qrels old.trec new.jsonl --policy policy.toml"
    assert series(gate) == [("new", "nightly")]
    odd = formats.read_run(folder / "old.trec")
    odd.about["name"] = " night\nly\x1b[31m\t1 "
    formats.write_run(odd, folder / "odd.trec")
    clean = [("odd", "night ly\ufffd[31m 1")]
    assert series(f"{evaluate} odd.trec") == clean
    assert series("gate qrels old.trec odd.trec --policy policy.toml") == clean
    odd.about["name"] = " \n"
    formats.write_run(odd, folder / "odd.trec")
    assert series(f"{evaluate} odd.trec") == [("odd", None)]
    assert series("gate qrels old.trec odd.trec --policy policy.toml") == [("odd", None)]
    formats.write_run(formats.read_run(folder / "new.jsonl"), folder / "again.parquet")
    # At each time a series has one value: two runs of one name keep those of their files.
    both = [("new", None), ("again", None)]
    assert series(f"{evaluate} new.jsonl again.parquet") == both
