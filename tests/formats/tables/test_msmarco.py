from __future__ import annotations

from pathlib import Path

from karat import formats


def test_the_four_files(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_text("1\t0\tp1\t1\n")
    (tmp_path / "run.tsv").write_text("1\tp1\t1\n1\tp2\t2\n")
    (tmp_path / "queries.tsv").write_text('1\twhat is "it", exactly #1\n#2\t\n')
    (tmp_path / "collection.tsv").write_text("p1\tOne.\np2\t\n")
    assert formats.read_qrels(tmp_path / "qrels.tsv", "msmarco").to_dict() == {"1": {"p1": 1.0}}
    run = formats.read_run(tmp_path / "run.tsv")
    assert run.to_dict() == {"1": {"p1": -1.0, "p2": -2.0}}
    assert run.name == "run"
    queries = formats.read_queries(tmp_path / "queries.tsv", "msmarco")
    assert queries.frame.rows() == [("1", 'what is "it", exactly #1'), ("#2", "")]
    documents = formats.read_documents(tmp_path / "collection.tsv")
    assert documents.frame.rows() == [("p1", "One."), ("p2", "")]
