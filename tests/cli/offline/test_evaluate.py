"""karat evaluate, as typed."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from karat.cli.main import main
from karat.measures import registry

Karat = Callable[..., str]
QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n"
RUN = "q1 Q0 b 1 3 tag\nq1 Q0 a 2 1 tag\nq2 Q0 a 1 1 tag\n"


@pytest.fixture
def karat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Karat:
    """Standard output of ``karat evaluate`` in a folder with qrels.txt, bm25.txt, dense.txt."""
    monkeypatch.chdir(tmp_path)
    Path("qrels.txt").write_text(QRELS)
    Path("bm25.txt").write_text(RUN)
    Path("dense.txt").write_text("q1 Q0 a 1 1 other\nq2 Q0 a 1 1 other\n")

    def run(*arguments: str, stdin: str = "") -> str:
        monkeypatch.setattr(sys, "argv", ["karat", "evaluate", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert stop.value.code == 0, err
        return out

    return run


def values(out: str) -> dict[tuple[str, str], float]:
    return {(row["run"], row["measure"]): row["value"] for row in json.loads(out)["results"]}


def test_the_table_is_the_default(karat: Karat) -> None:
    lines = karat("qrels.txt", "bm25.txt").splitlines()
    assert lines[0].strip() == "bm25"
    measures = [line.split()[0] for line in lines[4:9]]
    assert measures == ["nDCG@10", "RR@10", "P@10", "R@100", "AP"]
    assert max(map(len, lines)) <= 80


def test_several_runs_and_measures(karat: Karat) -> None:
    out = karat("qrels.txt", "bm25.txt", "dense.txt", "-m", "RR", "-m", "P:rel=2@1", "-f", "json")
    assert values(out) == {
        ("bm25", "RR"): 0.75,  # (1/2 + 1) / 2
        ("bm25", "P(rel=2)@1"): 0.5,
        ("dense", "RR"): 1.0,
        ("dense", "P(rel=2)@1"): 0.5,
    }


def test_the_same_run_twice(karat: Karat) -> None:
    out = karat("qrels.txt", "bm25.txt", "bm25.txt", "-m", "RR", "-f", "json")
    assert values(out) == {("bm25", "RR"): 0.75, ("bm25-2", "RR"): 0.75}


def test_a_run_from_standard_input(karat: Karat) -> None:
    out = karat("qrels.txt", "-", "-m", "RR", "-f", "json", stdin=RUN)
    assert values(out) == {("stdin", "RR"): 0.75}
    out = karat("-", "bm25.txt", "-m", "RR", "-f", "json", stdin=QRELS)
    assert values(out) == {("bm25", "RR"): 0.75}


def test_queries_one_by_one(karat: Karat) -> None:
    out = karat("qrels.txt", "bm25.txt", "-m", "RR", "-q", "-f", "csv")
    rows = [(row["query_id"], row["value"]) for row in csv.DictReader(io.StringIO(out))]
    assert rows == [("q1", "0.5"), ("q2", "1.0")]


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ([], 0.75),
        (["-l", "2"], 1.0),  # q1 has nothing of grade 2: only q2 counts
        (["-l", "2", "-c"], 0.5),  # now it does, with 0
        (["-M", "1"], 0.5),
        (["--depth", "1", "--judged-only"], 0.5),
    ],
)
def test_trec_evals_options(options: list[str], value: float, karat: Karat) -> None:
    out = karat("qrels.txt", "bm25.txt", "-m", "RR", "-f", "json", *options)
    assert list(values(out).values()) == [value]


def test_slices(karat: Karat) -> None:
    Path("queries.csv").write_text("query_id,kind\nq1,long\nq2,short\n")
    out = karat(
        "qrels.txt",
        "bm25.txt",
        "-m",
        "RR",
        "--queries",
        "queries.csv",
        "--by",
        "kind",
        "-f",
        "json",
    )
    assert [(r["slice"], r["value"]) for r in json.loads(out)["slices"]] == (
        [("long", 0.5), ("short", 1.0)]
    )


def test_a_beir_folder_brings_its_queries_and_documents(karat: Karat) -> None:
    (Path("beir") / "qrels").mkdir(parents=True)
    Path("beir/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tA\t1\nq2\tA\t2\n")
    Path("beir/queries.jsonl").write_text(
        '{"_id": "q1", "text": "x", "kind": "long"}\n{"_id": "q2", "text": "y", "kind": "short"}\n'
    )
    Path("beir/corpus.jsonl").write_text(
        '{"_id": "a", "text": "x", "parent_id": "A"}\n{"_id": "b", "text": "y", "parent_id": "B"}\n'
    )
    out = karat("beir", "bm25.txt", "-m", "RR", "--by", "kind", "--collapse", "parent_id",
                "-f", "json")  # fmt: skip
    assert values(out) == {("bm25", "RR"): 0.75}
    assert [row["slice"] for row in json.loads(out)["slices"]] == ["long", "short"]


@pytest.mark.parametrize("output", ["md", "latex", "csv", "trec", "json", "table"])
def test_every_format(output: str, karat: Karat) -> None:
    out = karat("qrels.txt", "bm25.txt", "dense.txt", "-m", "RR", "-f", output)
    assert "0.75" in out
    assert out.endswith("\n")


def test_full(karat: Karat) -> None:
    assert "Without a" in karat("qrels.txt", "bm25.txt", "--full")


def test_trec_lines_of_several_runs_follow_each_other(karat: Karat) -> None:
    out = karat("qrels.txt", "bm25.txt", "dense.txt", "-f", "trec", "-m", "runid", "-m", "RR")
    assert [line.split() for line in out.splitlines()] == [
        ["runid", "all", "tag"],
        ["recip_rank", "all", "0.7500"],
        ["runid", "all", "other"],
        ["recip_rank", "all", "1.0000"],
    ]


def test_trec_lines_of_two_runs_of_one_name(karat: Karat) -> None:
    Path("more").mkdir()
    Path("more/bm25.txt").write_text("q1 Q0 a 1 1 other\nq2 Q0 a 1 1 other\n")
    out = karat("qrels.txt", "bm25.txt", "more/bm25.txt", "-f", "trec", "-m", "RR")
    assert [line.split()[2] for line in out.splitlines()] == ["0.7500", "1.0000"]


def test_notes_of_trec_lines_go_beside(
    karat: Karat, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("bm25.txt").write_text("q1 Q0 a 1 3 tag\n")
    monkeypatch.setattr(
        sys, "argv", ["karat", "evaluate", "qrels.txt", "bm25.txt", "-f", "trec", "-m", "RR"]
    )
    with pytest.raises(SystemExit):
        main()
    out, err = capsys.readouterr()
    assert out == "recip_rank            \tall\t0.5000\n"
    assert "karat: 1 query not in the run: scored 0 (q2)" in err
    assert "interval" not in err, "trec_eval prints none, so nothing is said of them"


MODULE = '''
import numpy as np
from karat import measure

@measure(
    symbol="FirstOf{number}", title="the first", formula="1 if the first is judged", says="so",
    source="a test", low=0, high=1, undefined="never",
)
def first(evidence):
    """One where the first document is judged."""
    return np.minimum(evidence.per_query(evidence.rank == 1), 1.0)
'''


@pytest.fixture
def own_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers and imports is gone after it."""
    registry.entries()
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.usefixtures("own_measures")
def test_measures_of_ones_own(karat: Karat, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own_measures_1.py").write_text(MODULE.replace("{number}", "1"))
    monkeypatch.delitem(sys.modules, "own_measures_1", raising=False)
    out = karat(
        "qrels.txt", "bm25.txt", "--measures-from", "own_measures_1", "-m", "firstof1", "-f", "json"
    )
    assert values(out) == {("bm25", "FirstOf1"): 1.0}
    latex = karat("qrels.txt", "bm25.txt", "dense.txt", "-m", "FirstOf1", "-f", "latex")
    assert "FirstOf1" in latex
    monkeypatch.delitem(sys.modules, "own_measures_1")


@pytest.mark.usefixtures("own_measures")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def(", "invalid syntax"),
        ("x = nope", "name 'nope' is not defined"),
        ("raise SystemExit(0)", "cannot import the module"),
        ("x = 1", "registers no measure"),
    ],
)
def test_a_module_with_mistakes_is_a_users_mistake(
    text: str,
    said: str,
    karat: Karat,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert karat  # for its folder
    Path("own_measures_2.py").write_text(text)
    monkeypatch.setattr(
        sys,
        "argv",
        ["karat", "evaluate", "qrels.txt", "bm25.txt", "--measures-from", "own_measures_2"],
    )
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with pytest.raises(SystemExit) as stop:
        main()
    sys.modules.pop("own_measures_2", None)
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, ""), err
    assert said in err
    assert "Traceback" not in err
