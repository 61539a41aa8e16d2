"""TREC files read as trec_eval 9.0.8 and 10 read them (get_qrels.c, get_trec_results.c)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from karat import formats
from karat.errors import InputError
from karat.formats.tables import source
from karat.formats.tables.source import Source
from karat.formats.tables.trec import QRELS, RUN, read_run
from karat.tables import Qrels, Run

PLAIN = b"1 Q0 a 1 2.5 x\n1 Q0 b 2 1.5 x\n2 Q0 a 1 0.5 x\n"
SAME = {
    "tabs": PLAIN.replace(b" ", b"\t"),
    "runs of blanks": PLAIN.replace(b" ", b" \t  "),
    "blanks at both ends": b"".join(b"  " + line + b" \n" for line in PLAIN.splitlines()),
    "form feeds": PLAIN.replace(b" ", b"\f"),
    "CRLF": PLAIN.replace(b"\n", b"\r\n"),
    "CRLF, the last cut in two": PLAIN.replace(b"\n", b"\r\n").removesuffix(b"\n"),
    "CRLF written in text mode": PLAIN.replace(b"\n", b"\r\r\n"),
    "blank lines": PLAIN.replace(b"\n", b"\n\n \n"),
    "no last newline": PLAIN.removesuffix(b"\n"),
    "one blank at the very end": PLAIN.removesuffix(b"\n") + b" ",
    "further fields": PLAIN.replace(b" x\n", b" x and more\n"),
    "further numbers": PLAIN.replace(b" x\n", b" x 1 2 3.5 4\n"),
    "a tag of words": PLAIN.replace(b" x\n", b" the run of 12 November, Q01\n"),
    "further fields of some": PLAIN.replace(b"2.5 x\n", b"2.5 x Q 0\n"),
    "comments": b"# a comment\n" + PLAIN.replace(b"\n", b"\n# 9 Q0 a 1 2.5 x\n"),
    "indented comments": b"  # a comment\n" + PLAIN,
    "a mark": b"\xef\xbb\xbf" + PLAIN,
    "scores as C reads them": PLAIN.replace(b"2.5", b"+25e-1").replace(b"0.5", b".5"),
    "ranks nobody trusts": PLAIN.replace(b" 2 1.5", b" second 1.5"),
    "another order": b"2 Q0 a 1 0.5 x\n1 Q0 b 2 1.5 x\n1 Q0 a 1 2.5 x\n",
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(SAME[name])
    assert formats.read_run(tmp_path / "x").to_dict() == {
        "1": {"a": 2.5, "b": 1.5},
        "2": {"a": 0.5},
    }


@pytest.mark.parametrize("name", [n for n in SAME if "further" not in n and n != "another order"])
def test_the_same_qrels(name: str, tmp_path: Path) -> None:
    lines = b"1 0 a 2\n1 0 b 0\n2 0 a 1\n"
    spoilt = {
        "tabs": lines.replace(b" ", b"\t"),
        "runs of blanks": lines.replace(b" ", b" \t  "),
        "CRLF": lines.replace(b"\n", b"\r\n"),
        "blank lines": lines.replace(b"\n", b"\n\n \n"),
        "no last newline": lines.removesuffix(b"\n"),
        "one blank at the very end": lines.removesuffix(b"\n") + b" ",
        "comments": b"# a comment\n" + lines.replace(b"\n", b"\n# 9 0 a 1\n"),
        "a mark": b"\xef\xbb\xbf" + lines,
        "scores as C reads them": lines.replace(b"a 2", b"a +2").replace(b"b 0", b"b -0"),
    }
    (tmp_path / "x").write_bytes(spoilt.get(name, lines))
    back = formats.read_qrels(tmp_path / "x")
    assert back.to_dict() == {"1": {"a": 2.0, "b": 0.0}, "2": {"a": 1.0}}


@pytest.mark.parametrize("grade", ["0.0", "1"])
def test_columns_in_another_order_are_refused(grade: str, tmp_path: Path) -> None:
    """CISI.REL is query, document, 0, 0.0: read as TREC, every document would be 0."""
    lines = f"1 28 0 {grade}\n1 35 0 {grade}\n2 28 0 {grade}\n"
    (tmp_path / "CISI.REL").write_text(lines)
    with pytest.raises(InputError, match=r"every judgment is for document '0'.* another order"):
        formats.read_qrels(tmp_path / "CISI.REL")


@pytest.mark.parametrize(
    "lines",
    [
        "1 0 a 1\n2 0 a 1\n3 0 a 0\n",  # many queries for one document
        "1 1 a 1\n1 2 a 1\n1 3 a 1\n",  # one query, of many aspects
        "1 1 a 1\n1 2 a 1\n2 1 a 1\n2 2 b 0\n",
    ],
)
def test_one_document_may_be_right(lines: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(lines)
    assert len(formats.read_qrels(tmp_path / "x").rows) == lines.count("\n")


def test_only_ascii_blanks_separate(tmp_path: Path) -> None:
    """As isspace in the C locale: a non-breaking space is part of an id."""
    (tmp_path / "x").write_text("1 0 a\u00a0b 1\n1 0 c\u2028d 1\n", encoding="utf-8")
    assert formats.read_qrels(tmp_path / "x").to_dict() == {"1": {"a\u00a0b": 1, "c\u2028d": 1}}


def test_ids_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("007 Q0 NA 1 1e5 null\n1e5 Q0 #null 1 inf null\n")
    assert formats.read_run(tmp_path / "x").to_dict() == {
        "007": {"NA": 1e5},
        "1e5": {"#null": float("inf")},
    }


def test_chunks_of_different_kinds_fit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deep: bool
) -> None:
    """A rank that is no number far down: that chunk has no ranks, the others have."""
    if not deep:
        monkeypatch.setattr(source, "CHUNK", 1 << 16)
    count = 400_000 if deep else 12_000
    lines = b"".join(b"%d Q0 d 1 2 x\n" % query for query in range(count))
    assert len(lines) > source.CHUNK
    (tmp_path / "x").write_bytes(lines + b"9 Q0 e second 1 x\n")
    with Source(tmp_path / "x") as opened:
        batches = list(read_run(opened).batches)
    assert len(batches) > 1
    assert len({tuple(frame.columns) for frame in batches}) == 1
    assert len(formats.read_run(tmp_path / "x")) == count + 1


def test_layouts_name_their_fields() -> None:
    assert len(QRELS.fields) == 4
    assert len(RUN.fields) == 6


def test_written_as_trec_eval_reads_it(tmp_path: Path) -> None:
    formats.write_qrels(Qrels.from_dict({"1": {"a": 2.0, "b": 0.0}}), tmp_path / "x.qrels")
    assert (tmp_path / "x.qrels").read_text() == "1 0 a 2\n1 0 b 0\n"
    formats.write_run(Run.from_dict({"1": {"a": 0.1, "b": 1e-9}}, "my run"), tmp_path / "x.run")
    assert (tmp_path / "x.run").read_text() == "1 Q0 a 1 0.1 my_run\n1 Q0 b 2 1e-9 my_run\n"


@pytest.mark.parametrize("run", ["results.test", "results.trunc"])
def test_trec_evals_own_files(run: str, field_data: Path) -> None:
    back = formats.read_run(field_data / "trec_eval" / run)
    with (field_data / "trec_eval" / run).open() as lines:
        rows = [line.split()[:5] for line in lines]
    mine = back.frame().select("query_id", "doc_id", "score").rows()
    assert sorted(mine) == sorted((row[0], row[2], float(row[4])) for row in rows)


@pytest.mark.deep  # a large input; tests/parity/test_trec_eval.py reads it too
def test_robust_2003(field_data: Path) -> None:
    folder = field_data / "robust03"
    assert len(formats.read_qrels(folder / "qrels.robust03.gz")) == 128_796
    for path in sorted(folder.glob("input.*.gz")):
        with gzip.open(path) as lines:
            count = sum(1 for _ in lines)
        assert len(formats.read_run(path)) == count


def test_cranfields_judgments_as_they_circulate(field_data: Path) -> None:
    with pytest.raises(InputError, match="line 29: the grade '-'"):
        formats.read_qrels(field_data / "cranfield" / "cranqrel.raw")
