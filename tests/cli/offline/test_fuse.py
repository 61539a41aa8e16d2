"""karat fuse, as typed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from karat.cli.main import main
from karat.formats import read_run

Karat = Callable[..., tuple[int, str, str]]


@pytest.fixture
def karat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Karat:
    """Exit code and output of ``karat fuse`` in a folder with two runs and qrels."""
    monkeypatch.chdir(tmp_path)
    Path("bm25.run").write_text("q1 Q0 a 1 10 t\nq1 Q0 b 2 7 t\nq1 Q0 c 3 2 t\n")
    Path("dense.csv").write_text("query_id,doc_id,score\nq1,b,0.9\nq1,d,0.5\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["karat", "fuse", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, out, err

    return run


def test_reciprocal_rank_to_standard_output(karat: Karat) -> None:
    code, out, err = karat("bm25.run", "dense.csv")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert [row[:4] for row in rows] == [
        ["q1", "Q0", "b", "1"],
        ["q1", "Q0", "a", "2"],
        ["q1", "Q0", "d", "3"],
        ["q1", "Q0", "c", "4"],
    ]
    # 1/62 + 1/61, 1/61, 1/62, 1/63
    assert [float(row[4]) for row in rows] == [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63]
    assert {row[5] for row in rows} == {"rrf"}


def test_weighted_sum_to_a_file(karat: Karat) -> None:
    arguments = ("--method", "sum", "--weights", "0.6, 0.4", "-o", "hybrid.jsonl", "--name", "h")
    assert karat("bm25.run", "dense.csv", *arguments) == (0, "", "")
    # b: .6 · 5/8 + .4 · 1 = .775; a .6; d and c 0 (d is the last of dense, and lacking in bm25).
    found = read_run("hybrid.jsonl").to_dict()["q1"]
    assert found == pytest.approx({"b": 0.775, "a": 0.6, "d": 0, "c": 0})
    assert list(found) == ["b", "a", "d", "c"]


def test_depth_k_and_normalise(karat: Karat) -> None:
    _, out, _ = karat("bm25.run", "dense.csv", "--k", "0", "--depth", "2")
    # b: 1/2 + 1/1, a: 1/1, d: 1/2
    assert [line.split()[2:5] for line in out.splitlines()] == [
        ["b", "1", "1.5"],
        ["a", "2", "1.0"],
    ]
    _, out, _ = karat("bm25.run", "dense.csv", "--method", "sum", "--normalise", "none")
    scores = {line.split()[2]: float(line.split()[4]) for line in out.splitlines()}
    assert scores == pytest.approx({"a": 10.5, "b": 7.9, "c": 2.5, "d": 2.5})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--weights", "1"], "there is 1 weight for 2 runs"),
        (["--weights", "1,x"], "the weight 'x' is not a number"),
        (["--weights", "1,0"], "the weight 0.0 is not a number above 0"),
        (["--normalise", "sum"], "no scores to normalise"),
        (["--method", "sum", "--k", "1"], "k is a parameter of reciprocal rank fusion"),
        (["--method", "max"], "'max' is not one of 'rrf', 'sum'"),
        (["--depth", "0"], "a depth of 0"),
        (["-o", "fused.xyz"], "cannot tell the format"),
        (["-m", "AP"], "--measure needs --tune"),
        (["--seed", "0"], "--seed needs --tune"),
        (["--tune", "qrels.txt", "--k", "1"], "--tune needs --method sum"),
        (["--tune", "qrels.txt", "--weights", "1,1"], "--tune and --weights exclude each other"),
        (["--tune", "qrels.txt", "--folds", "2"], "2 folds need at least 2 queries"),
        (["lost.run"], "lost.run"),
    ],
)
def test_mistakes_are_told(karat: Karat, arguments: list[str], said: str) -> None:
    Path("qrels.txt").write_text("q1 0 a 1\n")
    code, out, err = karat("bm25.run", "dense.csv", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_an_infinite_score_names_file_and_query(karat: Karat) -> None:
    Path("inf.run").write_text("q1 Q0 a 1 inf t\nq1 Q0 b 2 1 t\n")
    code, _, err = karat("bm25.run", "inf.run", "--method", "sum")
    assert code == 2
    assert "inf.run: the score of document a is inf" in err
    assert "(query q1)" in err
    assert karat("bm25.run", "inf.run")[0] == 0


def test_tuning(karat: Karat) -> None:
    ids = [f"q{n}" for n in range(5)]
    Path("good.run").write_text("".join(f"{q} Q0 a 1 2 t\n{q} Q0 x 2 1 t\n" for q in ids))
    Path("bad.run").write_text("".join(f"{q} Q0 x 1 2 t\n{q} Q0 a 2 1 t\n" for q in ids))
    Path("qrels.txt").write_text("".join(f"{q} 0 a 1\n" for q in ids))
    arguments = ("good.run", "bad.run", "--tune", "qrels.txt", "-m", "RR", "-o", "out.run")
    code, out, err = karat(*arguments)
    assert (code, out) == (0, "")
    lines = err.splitlines()
    assert lines[0] == "karat: RR 1.0000 over 5 queries, each with weights tuned on others"
    assert lines[1] == "karat: fold 1, 1 query: good 0.6, bad 0.4"
    assert lines[-1] == "karat: final weights, tuned on all queries: good 0.6, bad 0.4"
    assert read_run("out.run").to_dict()["q0"] == pytest.approx({"a": 0.6, "x": 0.4})
