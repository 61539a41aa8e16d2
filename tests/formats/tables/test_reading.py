from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from karat import formats
from karat.errors import InputError, UsageError
from karat.formats import read_pairs, write_pairs
from karat.formats.tables.reading import stem
from karat.tables import Pairs


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("runs/bm25.trec.gz", "bm25"),
        ("bm25.run", "bm25"),
        ("bm25", "bm25"),
        ("v1.2.jsonl.zst", "v1.2"),
        ("input.uic0301.gz", "input.uic0301"),
        ("a.run.csv", "a.run"),
        (".run", ".run"),
        ("BM25.TXT.GZ", "BM25"),
        ("-", "stdin"),
    ],
)
def test_the_name_of_a_run(path: str, name: str) -> None:
    assert stem(path) == name


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean jsonl") as caught:
        formats.read_run(tmp_path / "x", "jsnl")
    assert "trec" in str(caught.value)


def test_a_format_without_that_role(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the format beir does not support run"):
        formats.read_run(tmp_path / "x", "beir")


def test_the_given_format_wins(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("1\ta\t7\n1\tb\t5\n")
    assert formats.read_run(tmp_path / "x", "msmarco").to_dict() == {"1": {"b": -5.0, "a": -7.0}}
    with pytest.raises(InputError, match="no column"):
        formats.read_run(tmp_path / "x", "csv")


def test_a_name_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "x.run").write_text("1 Q0 a 1 2.5 tag\n")
    assert formats.read_run(tmp_path / "x.run", name="mine").name == "mine"


def test_a_pipe_that_is_no_standard_input(tmp_path: Path) -> None:
    """bash's <(…): read once, never opened again to find a line."""
    code = "from karat import formats; import sys; print(len(formats.read_run(sys.argv[1])))"
    line = f"{sys.executable} -c '{code}' <(printf '1 Q0 a 1 2 x\\n1 Q0 b 1 1 x\\n')"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stdout == "2\n", done.stderr
    line = line.replace("1 Q0 b", "1 Q0 a")
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60
    )
    assert "duplicate document" in done.stderr


def beir(folder: Path, *splits: str) -> Path:
    """A BEIR folder."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl.gz").write_bytes(
        gzip.compress(b'{"_id": "d1", "title": "T", "text": "x", "metadata": {"lang": "de"}}\n')
    )
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "x", "metadata": {}}\n')
    for number, split in enumerate(splits):
        text = f"query-id\tcorpus-id\tscore\n1\td1\t{number}\n"
        (folder / "qrels" / f"{split}.tsv").write_text(text)
    return folder


def test_a_beir_folder(tmp_path: Path) -> None:
    folder = beir(tmp_path / "x", "dev", "test", "train")
    assert formats.read_qrels(folder).to_dict() == {"1": {"d1": 1.0}}
    assert formats.read_qrels(folder / "qrels" / "train.tsv").to_dict() == {"1": {"d1": 2.0}}
    assert formats.read_qrels(folder / "qrels").to_dict() == {"1": {"d1": 1.0}}
    assert formats.read_queries(folder).frame.to_dicts() == [{"query_id": "1", "text": "x"}]
    document = {"doc_id": "d1", "title": "T", "text": "x", "lang": "de"}
    assert formats.read_documents(folder).frame.to_dicts() == [document]


def test_splits_of_a_beir_folder(tmp_path: Path) -> None:
    assert len(formats.read_qrels(beir(tmp_path / "one", "dev"))) == 1
    with pytest.raises(InputError, match="dev, train"):
        formats.read_qrels(beir(tmp_path / "two", "dev", "train"))
    with pytest.raises(InputError, match="no qrels"):
        formats.read_qrels(beir(tmp_path / "none"))


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a run file"):
        formats.read_run(beir(tmp_path / "x", "test"))
    with pytest.raises(InputError, match=r"no queries\.jsonl"):
        formats.read_queries(tmp_path)


def test_cranfield(field_data: Path) -> None:
    folder = field_data / "cranfield"
    assert len(formats.read_qrels(folder)) == 1837
    assert len(formats.read_queries(folder)) == 225
    documents = formats.read_documents(folder)
    assert len(documents) == 1400
    empty = documents.frame.filter(documents.frame["text"] == "")["doc_id"].to_list()
    assert empty == ["471", "995"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"query_id": "1", "doc_id": "a", "score": NaN}\n', 1),
        ('{"query_id": "1", "doc_id": "a", "score": 1}\n' * 2, 2),
    ],
)
def test_a_bad_line_without_a_fix_of_its_own(text: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(InputError) as caught:
        formats.read_run(tmp_path / "x.jsonl")
    assert caught.value.line == line
    assert caught.value.fix


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv", "pairs.jsonl.gz", "pairs.parquet"])
def test_pairs_are_read_as_they_were_written(tmp_path: Path, name: str) -> None:
    rows = {"query_id": ["007", "007", "q2"], "doc_id": ["a", "b", "a"]}
    write_pairs(Pairs(pl.DataFrame(rows)), tmp_path / name)
    read = read_pairs(tmp_path / name).frame
    assert read.select("query_id", "doc_id").to_dict(as_series=False) == rows
