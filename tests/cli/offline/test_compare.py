"""karat compare on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from karat.cli.main import _run


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    qrels = "".join(f"q{n} 0 good 1\n" for n in range(30))
    for name, place in (("old", 2), ("new", 1)):
        lines = [
            f"q{n} Q0 {'good' if at == place + n % 2 else f'x{at}'} {at} {9 - at} {name}\n"
            for n in range(30)
            for at in range(1, 5)
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    (tmp_path / "qrels").write_text(qrels)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def karat(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["karat", *arguments])
    return _run()


def test_the_table_says_better(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert karat(monkeypatch, "compare", "qrels", "old.trec", "new.trec", "-m", "RR") == 0
    text = capsys.readouterr().out
    # RR from 1/2 and 1/3 to 1 and 1/2: +.333 on average.
    assert "new against old" in text
    assert "+0.333" in text
    assert "better" in text
    assert "30/0/0" in text
    assert max(map(len, text.splitlines())) <= 80


def test_markdown_for_a_pull_request(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert karat(monkeypatch, "compare", "qrels", "old.trec", "new.trec", "-f", "md") == 0
    text = capsys.readouterr().out
    assert "better" in text
    assert "| --- |" in text


def test_latex_for_a_paper(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("compare", "qrels", "old.trec", "new.trec", "-m", "RR", "-f", "latex")
    assert karat(monkeypatch, *command) == 0
    out, notes = capsys.readouterr()
    assert out.startswith("\\begin{table}")
    assert "karat: " not in out  # notes stand beside
    assert all(line.startswith("karat: ") for line in notes.splitlines())


def test_json(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("compare", "qrels", "old.trec", "new.trec", "-m", "RR", "-f", "json")
    assert karat(monkeypatch, *command, "--by", "relevant_documents") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["differences"][0]["verdict"] == "better"
    assert found["slices"][0]["slice"] == "1"
    assert len(found["queries"]) == 30


@pytest.mark.parametrize("name", ["next.csv", "next.tsv", "next.jsonl", "next.parquet"])
def test_what_to_judge_next_as_a_file(
    files: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    command = ("compare", "qrels", "old.trec", "new.trec", "-m", "P@2", "--judge-next", "3")
    assert karat(monkeypatch, *command, "--judge-file", name) == 0
    frame = {
        "next.csv": lambda: pl.read_csv(files / name),
        "next.tsv": lambda: pl.read_csv(files / name, separator="\t"),
        "next.jsonl": lambda: pl.read_ndjson(files / name),
        "next.parquet": lambda: pl.read_parquet(files / name),
    }[name]()
    assert frame.columns[:2] == ["query_id", "doc_id"]
    assert frame.height == 3


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--judge-file", "next.csv"), "--judge-next 20"),
        (("--judge-next", "2", "-m", "P@2", "--judge-file", "next.txt"), "cannot tell"),
        (("--margin", "-1"), "is not above 0"),
        (("-m", "NumRet"), "not a mean over queries"),
        (("--by", "class"), "add the queries"),
    ],
)
def test_mistakes(
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    says: str,
) -> None:
    assert karat(monkeypatch, "compare", "qrels", "old.trec", "new.trec", *more) == 2
    assert says in capsys.readouterr().err


def test_a_certificate_is_written_and_checked_again(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # At rank 1 only x1 of the old run and odd queries of the new one are unjudged.
    (files / "all").write_text(
        "".join(f"q{n} 0 {doc} {int(doc == 'good')}\n" for n in range(30) for doc in ("good", "x1"))
    )
    three = ("all", "old.trec", "new.trec")
    assert karat(monkeypatch, "compare", *three, "-m", "P@1", "--certificate", "sign.json") == 0
    capsys.readouterr()
    assert karat(monkeypatch, "compare", "--verify", "sign.json", *three) == 0
    assert "holds\n" in capsys.readouterr().out
    assert karat(monkeypatch, "compare", "--verify", "sign.json") == 0
    changed = (files / "all").read_text().replace("q4 0 good 1", "q4 0 good 0")
    (files / "all").write_text(changed)
    command = ("compare", "--verify", "sign.json", *three)
    assert karat(monkeypatch, *command) == 1
    assert "query q4: document good had grade 1 and has 0" in capsys.readouterr().out.replace(
        "\n", " "
    ).replace("  ", " ")
    assert karat(monkeypatch, *command, "-f", "json") == 1
    assert json.loads(capsys.readouterr().out)["holds"] is False


def test_no_certificate_where_the_sign_could_turn(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = (
        "compare",
        "qrels",
        "old.trec",
        "new.trec",
        "-m",
        "P@2",
        "--certificate",
        "sign.json",
    )
    assert karat(monkeypatch, *command) == 3
    out, err = capsys.readouterr()
    assert "new against old" in out
    assert "no certificate: nothing to certify" in err
    assert not (files / "sign.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("qrels", "old.trec"),
        ("--verify", "sign.json", "qrels", "old.trec"),
        ("--verify", "sign.json", "qrels", "old.trec", "new.trec", "-m", "RR"),
        ("--verify", "nowhere.json"),
        ("qrels", "old.trec", "new.trec", "--certificate", "sign.json", "-J"),
    ],
)
def test_what_is_missing_is_told(
    files: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    assert karat(monkeypatch, "compare", *arguments) == 2


def test_a_report_and_a_plot_are_written_beside_the_table(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert")
    both = ("--report", "out.html", "--plot", "out.svg")
    assert karat(monkeypatch, "compare", "qrels", "old.trec", "new.trec", "-m", "RR", *both) == 0
    assert "new against old" in capsys.readouterr().out
    assert "new is better than old by RR" in (files / "out.html").read_text(encoding="utf-8")
    assert (files / "out.svg").read_text(encoding="utf-8").startswith("<svg")


def test_traces_of_both_runs_give_the_latency_of_each_stage(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, time in (("old", 1000), ("new", 2500)):
        lines = [
            {"query_id": f"q{n}", "stage": "words", "kind": "retrieve", "latency_us": time}
            for n in range(30)
        ]
        (files / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    line = ["compare", "qrels", "old.trec", "new.trec", "-m", "RR", "--trace", "new=new.jsonl"]
    assert karat(monkeypatch, *line, "--notes") == 0
    assert "it needs traces with times, of both runs" in capsys.readouterr().out
    assert karat(monkeypatch, *line, "--trace", "old=old.jsonl") == 0
    printed = capsys.readouterr().out
    assert "Latency by stage" in printed
    assert "for +1.5 ms p95 in words" in printed
    assert karat(monkeypatch, *line, "--trace", "odl=old.jsonl") == 2
    assert "did you mean old?" in capsys.readouterr().err
