"""karat explain, as typed."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from karat.cli.main import main

Karat = Callable[..., str]


@pytest.fixture
def karat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Karat:
    """Standard output of ``karat explain`` in a folder with qrels.txt and bm25.txt."""
    monkeypatch.chdir(tmp_path)
    Path("qrels.txt").write_text("q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq1 0 lost 1\nq2 0 a 0.5\n")
    Path("bm25.txt").write_text(
        "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 c 3 2 t\nq1 Q0 x 4 -inf t\nq2 Q0 a 1 1 t\n"
    )

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["karat", "explain", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert stop.value.code == 0, err
        return out

    return run


def test_the_table(karat: Karat) -> None:
    text = karat("qrels.txt", "bm25.txt", "q1", "-m", "DCG@10")
    rows = [line.split() for line in text.splitlines()]
    # 2 / log2(2) + 1 / log2(3) = 2.6309; c stands before b, with which it ties.
    assert rows[0][-1] == "2.6309"
    assert ["1", "a", "2", "2", "1.0000", "2.0000"] in rows
    assert ["2=", "c", "1", "1", "0.6309", "0.6309"] in rows
    assert ["3=", "b", "0", "0", "0.5000"] in rows
    assert "Relevant and not retrieved (1): lost (1)" in text


def test_json(karat: Karat) -> None:
    found = json.loads(karat("qrels.txt", "bm25.txt", "q1", "-f", "json"))
    assert set(found) == {
        "run", "measure", "query_id", "value", "state", "lines", "missed", "hidden", "notes",
        "text",
    }  # fmt: skip
    shares = [line["contribution"] for line in found["lines"]]
    assert math.fsum(shares) == found["value"]
    assert [line["doc_id"] for line in found["missed"]] == ["lost"]
    assert found["lines"][-1]["score"] is None, "JSON knows no infinity"


def test_top(karat: Karat) -> None:
    found = json.loads(karat("qrels.txt", "bm25.txt", "q1", "-m", "RR", "--top", "2", "-f", "json"))
    assert ([line["rank"] for line in found["lines"]], found["hidden"]) == ([1, 2], 2)


def test_rel(karat: Karat) -> None:
    assert "no value" in karat("qrels.txt", "bm25.txt", "q2", "-m", "RR")
    text = karat("qrels.txt", "bm25.txt", "q2", "-m", "RR", "--rel", "0.5")
    assert text.splitlines()[0].endswith("1.0000")


def test_the_text_of_the_query(karat: Karat) -> None:
    Path("queries.tsv").write_text("q1\thow to sort\nq2\tx\n")
    text = karat("qrels.txt", "bm25.txt", "q1", "--queries", "queries.tsv")
    assert "“how to sort”" in text
