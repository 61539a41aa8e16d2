"""karat measures, as typed."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.cli.main import main
from karat.measures import entries
from karat.measures.tasks import TASKS

Karat = Callable[..., str]
SYMBOLS = [entry.symbol for entry in entries()]


@pytest.fixture
def karat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Karat:
    """Standard output of ``karat measures``."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["karat", "measures", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert stop.value.code == 0, err
        return out

    return run


def test_all(karat: Karat) -> None:
    text = karat()
    assert all(symbol in text for symbol in SYMBOLS)
    assert max(map(len, text.splitlines()[:-1])) <= 80


@pytest.mark.parametrize("name", ["nDCG", "ndcg@10", "ndcg_cut_10", "nDCG(gain=exp)@5"])
def test_one(name: str, karat: Karat) -> None:
    assert karat(name).startswith("nDCG: ")


def test_json(karat: Karat) -> None:
    assert [entry["symbol"] for entry in json.loads(karat("-f", "json"))] == SYMBOLS
    assert json.loads(karat("MRR", "-f", "json"))["symbol"] == "RR"


def test_markdown(karat: Karat) -> None:
    text = karat("-f", "md")
    assert text.startswith("# Measures\n")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("task", [task.name for task in TASKS])
def test_advice(task: str, karat: Karat) -> None:
    text = karat("--for", task)
    assert "karat evaluate QRELS RUN -m " in text
    for listed in (karat("--help"), karat()):
        assert task in "".join(listed.split())  # a line may end within a name


def test_advice_as_json(karat: Karat) -> None:
    found = json.loads(karat("--for", "RAG", "-f", "json"))
    assert found["task"] == "rag"
    assert [each["measure"] for each in found["measures"]][:2] == ["R@10", "Success@10"]
    assert tomllib.loads(found["policy"]) == {"rule": [{"measure": "R@10", "min": 0.85}]}
    assert json.loads(karat("--for", "code", "-f", "json"))["policy"] is None


@pytest.mark.parametrize(("found", "code"), [(20, 0), (16, 1)])
def test_the_policy_for_rag_is_one_for_the_gate_as_printed(
    found: int, code: int, karat: Karat, typed: Callable[..., Any], tmp_path: Path
) -> None:
    printed = karat("--for", "rag")
    lines = printed.splitlines()
    start = lines.index("[[rule]]")
    end = next(place for place, line in enumerate(lines) if line.startswith("karat gate --policy"))
    policy = tmp_path / "rag.toml"
    policy.write_text("\n".join(lines[start:end]), encoding="utf-8")
    ids = [f"q{place}" for place in range(20)]
    qrels, run = tmp_path / "qrels.csv", tmp_path / "run.csv"
    rows = [f"{query},d,1\n" for query in ids]
    qrels.write_text("query_id,doc_id,grade\n" + "".join(rows), encoding="utf-8")
    # 20 of 20 and 16 of 20 questions have their passage: R@10 is 1 and .8.
    rows = [f"{query},{'d' if place < found else 'x'},1\n" for place, query in enumerate(ids)]
    run.write_text("query_id,doc_id,score\n" + "".join(rows), encoding="utf-8")
    done = typed(f"gate --policy {policy} {qrels} {run}", code=code)
    assert "R@10" in done.out
