"""``karat golden split``, ``--part``, and ``golden choose --hard-from``, as somebody types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Typed = Callable[..., Any]  # conftest.py


@pytest.fixture
def run(tmp_path: Path) -> str:
    """Twelve queries in golden.json, and a run that is right for those of even number."""
    items = [{"query": f"text {n}", "relevant_docs": ["a"]} for n in range(1, 13)]
    (tmp_path / "golden.json").write_text(json.dumps(items), encoding="utf-8")
    rows = (f"q{n} Q0 {'ba'[n % 2 == 0]} 1 1.0 bm25\n" for n in range(1, 13))
    (tmp_path / "bm25.trec").write_text("".join(rows), encoding="utf-8")
    return "bm25.trec"


def test_a_file_is_split_and_each_use_is_counted(typed: Typed, run: str, tmp_path: Path) -> None:
    made = json.loads(typed("golden split golden.json --share 1/2 --format json").out)
    held = [query for query, part in made["parts"].items() if part == "held_out"]
    assert (len(made["new"]), made["held_out"]) == (12, len(held))
    assert "0 queries are new" in typed("golden split golden.json --share 0.9").out

    even = sum(int(query[1:]) % 2 == 0 for query in held)
    told = json.loads(typed(f"evaluate golden.json {run} -m P@1 --part held_out -f json").out)
    (row,) = told["results"]
    assert (row["n"], row["value"]) == (len(held), pytest.approx(even / len(held)))
    assert told["notes"][0].startswith("held-out part: use 1 (no run before")
    told = json.loads(typed(f"compare golden.json {run} {run} --part held_out -f json").out)
    assert told["notes"][0].startswith("held-out part: use 2 (1 run before")
    (tmp_path / "gate.toml").write_text('[[rule]]\nmeasure = "P@1"\nmin = 0.01\n')
    told = json.loads(
        typed(f"gate --policy gate.toml golden.json {run} --part held_out -f json").out
    )
    assert any(note.startswith("held-out part: use 3 (1 run before") for note in told["notes"])
    uses = json.loads(typed("golden split golden.json --uses --format json").out)
    assert [[run["name"] for run in use["runs"]] for use in uses] == [
        ["bm25"],
        ["bm25", "bm25"],
        ["bm25"],
    ]
    # A slice of the part is a use; with --part it is the same one.
    told = json.loads(
        typed(f"evaluate golden.json {run} -m P@1 --by part --commit 1a2b -f json").out
    )
    assert told["notes"][0].startswith("held-out part: use 4 (1 run before")
    typed(f"compare golden.json {run} {run} -m P@1 --by part --part held_out")
    (tmp_path / "gate.toml").write_text(
        '[[rule]]\nmeasure = "P@1"\nmin = 0.01\nslice = "part=held_out"\n'
    )
    gated = typed(f"gate --policy gate.toml golden.json {run} --commit 1a2b").out
    assert "held-out part: use 6 (1 run before" in gated
    uses = json.loads(typed("golden split golden.json --uses --format json").out)
    assert [use["commit"] for use in uses[3:6:2]] == ["1a2b", "1a2b"]
    assert "1  20" in typed("golden split golden.json --uses").out
    assert not json.loads(typed(f"evaluate golden.json {run} -m P@1 --part dev -f json").out)[
        "notes"
    ][0].startswith("held-out")


def test_what_cannot_be_split_is_refused(typed: Typed, run: str) -> None:
    assert (
        "the queries have no parts" in typed(f"evaluate golden.json {run} --part dev", code=2).err
    )
    assert "leaves a part empty" in typed("golden split golden.json --share 1", code=2).err
    assert "is not a share" in typed("golden split golden.json --share half", code=2).err
    typed("golden split nothing.json", code=2)
    typed("golden split nothing.json --uses", code=2)


def test_a_workspace_is_split_and_exported_with_its_parts(
    typed: Typed, run: str, tmp_path: Path
) -> None:
    typed("init shop")
    typed("golden import golden.json -w shop")
    first = json.loads(typed("golden split -w shop --format json").out)
    assert len(first["new"]) == 12
    (tmp_path / "more.csv").write_text("query_id,text\nq13,text 13\n", encoding="utf-8")
    typed("golden import more.csv -w shop")
    again = json.loads(typed("golden split -w shop --share 0.9 --format json").out)
    assert again["new"] == ["q13"]
    assert {query: again["parts"][query] for query in first["parts"]} == first["parts"]
    assert "has its own salt" in typed("golden split -w shop --salt x", code=2).err

    typed("golden export shop/judged -w shop")
    told = json.loads(typed(f"evaluate shop/judged {run} -m P@1 --part held_out -f json").out)
    assert told["notes"][0].endswith("(no run before; held_out.jsonl)")
    # Exported again the folder is another one; the ledger is the workspace's.
    typed("golden export shop/judged -w shop --force")
    told = json.loads(typed(f"evaluate shop/judged {run} -m P@1 --part held_out -f json").out)
    assert told["notes"][0].startswith("held-out part: use 2 (1 run before")
    assert len(json.loads(typed("golden split --uses -w shop --format json").out)) == 2


def test_hard_queries_come_from_a_run_in_one_step(typed: Typed, run: str, tmp_path: Path) -> None:
    typed("init shop")
    rows = "".join(f"asked {n},{40 - n}\n" for n in range(20))
    (tmp_path / "log.csv").write_text(f"query,count\n{rows}text 3,2\n", encoding="utf-8")
    line = f"golden choose log.csv --size 8 --hard-from {run} --qrels golden.json --hard-most 3"
    shown = typed(f"{line} --hard-measure RR -w shop").out
    assert "Hard for bm25" in shown
    # Six queries are wrong, all with RR 0: the first three by their ids.
    assert "6 queries qualify: the 3 hardest are" in shown
    assert "RR 0.0000" in shown
    made = json.loads(typed(f"{line} -w shop --format json").out)
    assert [row["query_id"] for row in made["hard"]["frame"]] == ["q1", "q11", "q3"]
    assert made["hard"]["frame"][2]["reason"] == "nDCG@10 0.0000"
    wrong = typed("golden choose log.csv --hard-most 3 -w shop", code=2).err
    assert "--hard-most needs --hard-from" in wrong
