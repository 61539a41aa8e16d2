"""karat online simulate: what it writes, says, and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Judgments, queries and two runs."""
    qrels = [f"q{q} 0 d{d} {grade}" for q in (1, 2, 3) for d, grade in ((0, 3), (4, 1))]
    (tmp_path / "qrels").write_text("\n".join(qrels) + "\n")
    for name, step in (("near", 1), ("far", -1)):
        rows = [
            f"q{q} Q0 d{d} {i} {50 - i} {name}"
            for q in (1, 2, 3)
            for i, d in enumerate(range(15)[::step], 1)
        ]
        (tmp_path / f"{name}.trec").write_text("\n".join(rows) + "\n")
    texts = ["copy a file", "read lines of text", "timeout"]
    (tmp_path / "queries.jsonl").write_text(
        "".join(
            json.dumps({"query_id": f"q{i}", "text": text, "class": kind}) + "\n"
            for i, (text, kind) in enumerate(zip(texts, ["task", "task", "word"], strict=True), 1)
        )
    )
    return tmp_path


SIMULATE = (
    "online simulate qrels near.trec far.trec --queries queries.jsonl --until 2026-11-20 "
    "--days 14 --sessions 30 --users 40"
)


def test_it_writes_a_log_and_says_that_nobody_did_it(typed: Any, files: Path) -> None:
    done = typed(
        f"{SIMULATE} -o log.ndjson --attribute class --truth truth.json --break "
        "class=word@2026-11-19 --worsen class=task@2026-11-18 --latency 50,80 --errors .01 "
        "--heartbeats --carts .2 --answers .5 --impressions seen"
    )
    assert "2026-11-07 to 2026-11-20. All events are simulated." in done.out
    assert "near, far" in done.out
    assert "Ground truth by rank (position)" in done.out
    rows = [json.loads(line) for line in (files / "log.ndjson").read_text().splitlines()]
    for row in rows:
        inside = row.get("query_attributes") or row["event_attributes"]
        assert inside["simulated"] == "true"
    classes = {row["query_attributes"]["query_class"] for row in rows if "user_query" in row}
    assert classes == {"task", "word"}
    assert len(rows) == json.loads((files / "truth.json").read_text())["events"]


@pytest.mark.deep  # seeds: tests/online/simulate
def test_it_prints_what_was_drawn_as_json_and_the_seed_decides(typed: Any, files: Path) -> None:
    logs = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        said = typed(f"{SIMULATE} -o {name}.ndjson.gz --seed {seed} -f json --behaviour dbn").out
        held = json.loads(said)
        assert (held["behaviour"], held["seed"], held["arms"]) == ("dbn", seed, ["near", "far"])
        logs.append((files / f"{name}.ndjson.gz").read_bytes())
    assert logs[0] == logs[1] != logs[2]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--break class=wrd@2026-11-19", "word"),
        ("--break word", "--break class=misspelt@2026-11-20"),
        ("--break class=word@2026-12-19", "is not in the log"),
        ("--until soon", "--until 2026-11-30"),
        ("--latency fast", "--latency 90,120"),
        ("--behaviour dbm", "dbn"),
        ("--attribute clas", "class"),
        ("--days 0", "--days must be ≥ 1, got 0"),
    ],
)
def test_a_mistake_is_said_with_what_to_type(typed: Any, files: Path, more: str, said: str) -> None:
    done = typed(f"{SIMULATE} -o log.ndjson {more}", code=2)
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (files / "log.ndjson").exists()


def test_it_ends_yesterday_if_nothing_is_said(typed: Any, files: Path) -> None:
    said = typed("online simulate qrels near.trec -o log.parquet --days 2 --sessions 5 -f json")
    held = json.loads(said.out)
    assert held["first"] < held["last"]
    assert held["arms"] == ["near"]
    assert (files / "log.parquet").exists()
