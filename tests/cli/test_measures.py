"""karat measures, as typed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from karat.cli.main import main
from karat.measures import entries

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


@pytest.mark.parametrize("task", ["rag", "code", "product", "faq", "legal", "research"])
def test_advice(task: str, karat: Karat) -> None:
    assert "karat evaluate QRELS RUN -m " in karat("--for", task)
