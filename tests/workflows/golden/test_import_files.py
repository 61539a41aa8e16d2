"""Files to import: what they are taken for, and where what is refused stands."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.workflows.golden.import_files import check_judgments, check_there, read_file

BOOK = """{"query_doc_pairs": [{"query_text": "x", "doc_id": "a",
 "judgements": [{"rating": 1, "user_email": "import"}]}]}"""


def test_binary_is_said_to_be_that(tmp_path: Path) -> None:
    path = tmp_path / "ls"
    path.write_bytes(b"\x7fELF\x02\x01\x01\x00 one two three 4 5.0 six\n" * 9)
    with pytest.raises(InputError, match="binary data, not text"):
        read_file(path)


@pytest.mark.parametrize("name", ["qrels/test.tsv", "test.tsv"])
def test_the_one_file_in_a_zip_file_is_read_whatever_it_is_called(
    name: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, "query-id\tcorpus-id\tscore\nq1\td1\t3\n")
    found = read_file(tmp_path / "a.zip")
    assert (found.format, found.judgments is not None) == ("csv", True)


def test_a_folder_in_a_zip_file_that_lacks_a_file_says_which(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("corpus.jsonl", '{"_id": "d1", "text": "door"}\n')
        archive.writestr("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t3\n")
    with pytest.raises(InputError, match=r"has no queries\.jsonl") as caught:
        read_file(tmp_path / "a.zip")
    assert str(caught.value).endswith("fix: add queries.jsonl, or give its files one by one")


def test_what_is_missing_is_seen_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("x", encoding="utf-8")
    check_there([tmp_path / "there.csv", tmp_path, "-"])
    with pytest.raises(InputError, match=r"theer\.csv: there is no such file\n.*there\.csv"):
        check_there([tmp_path / "there.csv", tmp_path / "theer.csv"])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", "query_id,doc_id,grade,rater\n1,a,1,ann\n1,b,1,Import\n", "line 3: the name of"),
        (
            "a.json",
            BOOK,
            r"query_doc_pairs\[0\].judgements\[0\].rating: the name of a rater is 'import'",
        ),
        ("b.json", '{"ratings": [{"query_text": "x", "doc_id": "a", "rating": 9}]}',
         r"b.json: \.ratings\[0\]\.rating: grade 9 .*query x"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_in_has_its_place(
    name: str, content: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        check_judgments(read_file(path), (0, 3), str(path))


def test_damaged_parquet_is_said_to_be_that(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"query_id": ["1"], "text": ["x"]}).write_parquet(path)
    sound = path.read_bytes()
    says = set()
    for place in re.finditer(b"query_id|text", sound):
        at = place.start()
        path.write_bytes(sound[:at] + bytes([sound[at] | 0x80]) + sound[at + 1 :])
        try:
            read_file(path)
        except InputError as error:
            says.add(error.what[:27])
    assert "the Parquet data is damaged" in says
