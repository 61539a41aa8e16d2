"""Damaged files: one clear error with file and line, exit code 2, nothing half-done."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from karat import formats
from karat.errors import InputError, KaratError
from karat.formats import FORMATS
from karat.formats.tables import source
from karat.tables import Run

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def parquet(**columns: list[object]) -> bytes:
    """A Parquet file."""
    out = io.BytesIO()
    pl.DataFrame(columns, strict=False).write_parquet(out)
    return out.getvalue()


WHOLE = parquet(query_id=["1"] * 999, doc_id=[str(i) for i in range(999)], score=[1.5] * 999)
# Format, role, a sound file of three lines or more: the base of the damages every format shares.
SOUND = {
    "trec": ("run", b"1 Q0 a 1 2.5 x\n1 Q0 b 2 1.5 x\n2 Q0 a 1 0.5 x\n"),
    "beir": ("qrels", b"query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t0\n2\ta\t2\n"),
    "msmarco": ("run", b"1\ta\t1\n1\tb\t2\n2\ta\t1\n"),
    "csv": ("run", b"query_id,doc_id,score\n1,a,2.5\n1,b,1.5\n2,a,0.5\n"),
    "tsv": ("run", b"query_id\tdoc_id\tscore\n1\ta\t2.5\n1\tb\t1.5\n2\ta\t0.5\n"),
    "jsonl": (
        "run",
        b"".join(
            b'{"query_id": "%d", "doc_id": "%s", "score": %f}\n' % row
            for row in ((1, b"a", 2.5), (1, b"b", 1.5), (2, b"a", 0.5))
        ),
    ),
    "json": ("run", b'{\n"1": {"a": 2.5, "b": 1.5},\n"2": {"a": 0.5}\n}\n'),
    "parquet": ("run", WHOLE),
    "golden": (
        "qrels",
        b'[\n{"query": "x", "relevant_docs": ["a"]},\n{"query": "y", "relevant_docs": ["b"]}\n]\n',
    ),
}
SHARED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no bytes": (lambda _: b"", "empty"),
    "gzip cut": (lambda data: gzip.compress(data)[:-9], "damaged or truncated"),
    "gzip header only": (lambda data: gzip.compress(data)[:4], "damaged or truncated"),
    "gzip checksum": (
        lambda data: gzip.compress(data)[:-8] + b"\0\0\0\0" + gzip.compress(data)[-4:],
        "damaged or truncated",
    ),
    "gzip of nothing": (lambda _: gzip.compress(b""), "gzip file is empty"),
    "zstd cut": (lambda data: zstd.compress(data)[:-3], "damaged or truncated"),
    "bzip2 cut": (lambda data: bz2.compress(data)[:-9], "damaged or truncated"),
    "bzip2 junk": (lambda _: b"BZh91AY&SY" + bytes(range(200)), "damaged or truncated"),
}
SHARED_TEXT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "only blanks": (lambda _: b" \n\t\n\n", "empty"),
    "UTF-16": (lambda data: data.decode().encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": (lambda data: data.decode().encode("utf-16-le"), "UTF-16"),
    "old Mac": (lambda data: data.replace(b"\n", b"\r"), "carriage return"),
    "binary junk": (lambda _: bytes(range(256)) * 9, "binary|UTF-8"),
    "an image": (lambda _: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "binary"),
}


def read(path: Path, role: str, name: str | None = None) -> object:
    """Read a file in a role."""
    return getattr(formats, f"read_{role}")(path, name)


def damaged(path: Path, role: str, name: str | None = None) -> InputError:
    """The error a file ends in."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(KaratError) as caught:
        read(path, role, name)
    error = caught.value
    assert isinstance(error, InputError)
    assert error.exit_code == 2
    assert error.file == str(path)
    assert str(error).startswith(str(path))
    assert error.__cause__ is None  # nothing of the machinery is shown
    assert sorted(path.parent.iterdir()) == before
    return error


def test_every_format_is_damaged() -> None:
    assert set(SOUND) == set(FORMATS)
    for name in FORMATS:
        own = sum(case[0] == name for case in CASES)
        assert own + len(SHARED) >= 10


@pytest.mark.parametrize("name", SOUND)
def test_the_sound_files_are_sound(name: str, tmp_path: Path) -> None:
    role, data = SOUND[name]
    (tmp_path / "x").write_bytes(data)
    assert read(tmp_path / "x", role)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("name", "damage"),
    [(n, damage) for n in SOUND for damage in (SHARED if n == "parquet" else SHARED | SHARED_TEXT)],
)
def test_shared_damages(name: str, damage: str, named: bool, tmp_path: Path) -> None:
    role, data = SOUND[name]
    spoil, says = (SHARED | SHARED_TEXT)[damage]
    path = tmp_path / "x"
    path.write_bytes(spoil(data))
    error = damaged(path, role, name if named else None)
    assert re.search(says, error.what), error.what


HEAD = b"query_id,doc_id,score\n"
TAB = b"query_id\tdoc_id\tscore\n"
SUBTOPICS = b"query_id,doc_id,subtopic,grade\n"
SUBTOPIC = b'{"query_id": "1", "doc_id": "a", "grade": 1, "subtopic": '
ROW = b'{"query_id": "1", "doc_id": "a", "score": 1}\n'
# Format, role, bytes, the line at fault (None: the file has no lines), what the error says.
CASES: list[tuple[str, str, bytes, int | None, str]] = [
    ("trec", "qrels", b"1 0 a 1\n1 0 b\n2 0 c 1\n", 2, "3 fields where .* has 4"),
    ("trec", "qrels", b"1 0 a 1\n1 0 b 1 x\n2 0 c 1\n", 2, "5 fields where .* has 4"),
    ("trec", "qrels", b"1 0 a 1\n1 0 b -\n", 2, "grade '-' is not a number"),
    ("trec", "qrels", b"1 0 a 1\n1 0 b nan\n", 2, "not a finite number"),
    ("trec", "qrels", b"1 0 a 1\n\n# x\n1 0 b inf\n", 4, "not a finite number"),
    ("trec", "qrels", b"1 0 a 1\n2 0 a 1\n1 0 a 0\n", 3, "judged twice"),
    ("trec", "qrels", b"1 1 a 1\n1 2 a 1\n1 3 a 1\n1 1 a 0\n", 4, "judged twice for subtopic 1"),
    ("trec", "qrels", b"1 0 a 1\n1 0 b 1_0\n", 2, "not a number"),
    ("trec", "qrels", b"1 0 a 1\n1 0 \xe9 1\n", 2, "not UTF-8"),
    ("trec", "qrels", b"1 0 a 1\n1 0 b\x00 1\n", 2, "binary"),
    ("trec", "qrels", b"# nothing\n# at all\n", None, "only comments|no judgment"),
    ("trec", "qrels", b"1;0;a;1\n1;0;b;1\n", 1, "cannot detect"),
    ("trec", "qrels", b"1 0 a 1\n\xef\xbb\xbf1 0 b 1\n", 2, "byte order mark"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\n1 Q0 b 2 1.5\n2 Q0 c 1 1 x\n", 2, "5 fields where .* has 6"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\n1 Q0 b 2 high x\n", 2, "score 'high' is not a number"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\n1 Q0 b 2 nan x\n", 2, "not a number"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\n1 Q0 b 2 1,5 x\n", 2, "score '1,5' is not a number"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\n2 Q0 a 1 1 x\n1 Q0 a 2 1.5 x\n", 3, "duplicate document"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\n1 Q0", 2, "2 fields where"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\r\n1 Q0 b 2\r\n", 2, "4 fields where"),
    ("trec", "run", b"1,Q0,a,3,2.5,x\n1,Q0,b,4,1.5,x\n", 1, "no column 'query_id'"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\n1 Q0 b\x00 2 1 x\n", 2, "binary"),
    ("trec", "run", b"1 Q0 a 1 2.5 x\n1 Q0 \xe9 2 1 x\n", 2, "not UTF-8"),
    # A carriage return within a line, or two lines on one: a row would be lost without a word.
    ("trec", "run", b"1 Q0 a 1 9 t\r1 Q0 b 2 8 t\n1 Q0 c 3 7 t\n", 1, "carriage return"),
    ("trec", "run", b"1 Q0 a 1 9 t\n# x\r1 Q0 b 2 8 t\n1 Q0 c 3 7 t\n", 2, "carriage return"),
    ("trec", "run", b"1 Q0 a 1 9 t\r\n1 Q0 b 2 8 t\r1 Q0 c 3 7 t\r\n", 2, "carriage return"),
    ("trec", "run", b"1 Q0 a 1 9 t\n1 Q0 b 2 8 t 1 Q0 c 3 7 t\n", 2, "another line begins"),
    ("trec", "run", b"1 Q0 a 1 9 t\t1 Q0 b 2 8 t\n1 Q0 c 3 7 t\n", 1, "another line begins"),
    ("trec", "run", b"1 Q0 a 1 9 t1 Q0 b 2 8 t\n1 Q0 c 3 7 t\n", 1, "another line begins"),
    ("trec", "run", b"1 Q0 a 1 9 t\f1 Q0 b 2 8 t\n1 Q0 c 3 7 t\n", 1, "another line begins"),
    ("trec", "run", b"1 Q0 a 1 9 t\xc2\x851 Q0 b 2 8 t\n1 Q0 c 3 7 t\n", 1, "another line"),
    ("trec", "run", b"1 0 a 1 9 t 1 0 b 2 8 t\n1 0 c 3 7 t\n", 1, "another line begins"),
    ("trec", "run", b"1 Q0 a 1 9 t 1 Q0 b\n1 Q0 c 3 7 t\n", 1, "another line begins"),
    ("trec", "run", b"1 Q0 1 q0 7 2 8 t\n1 Q0 9 3 7 t\n", 1, "another line begins"),
    # As many blanks as two whole lines have: the tag of one and a field too many of the other.
    ("trec", "run", b"1 Q0 a 1 9\n1 Q0 b 2 8 t x\n1 Q0 c 3 7 t\n", 1, "5 fields where .* has 6"),
    ("trec", "qrels", b"1 0 a 1\r1 0 b 1\n1 0 c 1\n1 0 d 1\n", 1, "carriage return"),
    ("trec", "qrels", b"1 0 a\rb 1\n1 0 c 1\n", 1, "carriage return"),
    ("trec", "qrels", b"1 0 a 1 1 0 b 1\n1 0 c 1\n1 0 d 1\n", 1, "8 fields where .* has 4"),
    ("msmarco", "run", b"1\ta\t1\n1\tb\rc\t2\n1\td\t3\n", 2, "carriage return"),
    ("msmarco", "queries", b"1\thow far\n2\thow\rnear\n", 2, "carriage return"),
    ("csv", "run", HEAD + b"1,a,9\n1\r2,b,8\n", 3, "carriage return"),
    ("csv", "queries", b"query_id,text\n1,x\n2,y\rz\n", 3, "carriage return"),
    ("tsv", "run", TAB + b"1\ta\t9\nq\r1\tb\t8\n1\tc\t7\n", 3, "carriage return"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n1\ta\rb\t1\n", 2, "carriage return"),
    ("jsonl", "run", ROW[:-1] + b"\r" + ROW.replace(b"a", b"b"), 1, "not JSON"),
    ("jsonl", "run", ROW[:-1] + b" " + ROW.replace(b"a", b"b"), 1, "not JSON"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n1\ta\n", 2, "2 cells where there are 3"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n1\ta\tx\n", 2, "grade 'x' is not a number"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n1\ta\t\n", 2, "grade is empty"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n1\ta\tNaN\n", 2, "grade 'NaN' is not"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n1\t\t1\n", 2, "doc_id is empty"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n1\ta\t1\t9\n", 2, "4 cells"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n1\ta\t1\n1\ta\t2\n", 3, "judged twice"),
    ("beir", "qrels", b"query-id\tcorpus-id\tscore\n", None, "no judgment"),
    ("beir", "qrels", b"1\ta\t1\n1\ta\t2\n", 2, "judged twice"),
    ("beir", "qrels", b'1\ta\t1\n1\t"b\t2\n', 2, "never closed"),
    ("beir", "qrels", b'query-id\tcorpus-id\tscore\n1\ta\t"', 2, "never closed"),
    ("beir", "qrels", b"query-id,corpus-id,score\n1\ta\t1\n", 2, "1 cell where"),
    ("beir", "queries", b'{"_id": "1", "text": "x"}\n{"text": "y"}\n', 2, "no column 'query_id'"),
    ("beir", "queries", b'{"_id": "1", "text": "x"}\n{"_id": "1"}\n', 2, "duplicate query id"),
    ("beir", "documents", b'{"_id": "1", "text": "x"}\n{"_id": "", "text": ""}\n', 2, "is empty"),
    ("beir", "documents", b'{"_id": "1"}\n{"_id": "2", "_id": "3"}\n', 2, "duplicate key '_id'"),
    ("beir", "documents", b'{"_id": "1", "text": "x"}\n{"_id": "2", "te', 2, "not JSON"),
    ("msmarco", "qrels", b"1\t0\ta\t1\n1\t0\tb\n2\t0\tc\t1\n", 2, "3 fields where"),
    ("msmarco", "run", b"1\ta\t1\n1\tb\n1\tc\t2\n1\td\t3\n", 2, "2 fields where"),
    ("msmarco", "run", b"1\ta\t1\n1\tb\ttwo\n1\tc\t3\n", 2, "'two' is not a number"),
    ("msmarco", "run", b"1\ta\t1\n1\tb\t\n1\tc\t3\n", 2, "rank '' is not a number"),
    ("msmarco", "run", b"1\ta\t1\n1\t\t2\n1\tc\t3\n", 2, "doc_id is empty"),
    ("msmarco", "run", b"1\ta\t1\n1\tb\t2\n1\ta\t3\n", 3, "duplicate document"),
    ("msmarco", "run", b"1\ta\t1\n1\tb\t2.5\n", 2, "'2.5' is not a number"),
    ("msmarco", "run", b"1 a 1\n1 b 2\n", 1, "3 fields where|1 field where"),
    ("msmarco", "queries", b"1\thow far\n2\n", 2, "1 field where"),
    ("msmarco", "queries", b"1\thow far\n1\thow near\n", 2, "duplicate query id"),
    ("msmarco", "queries", b"1\thow far\n\thow near\n", 2, "query_id is empty"),
    ("msmarco", "documents", b"1\tlong ago\n2\tin\ta land\n3\tx\n", 2, "3 fields where"),
    ("msmarco", "documents", b"1\tlong ago\n2\tcaf\xe9\n", 2, "not UTF-8"),
    ("csv", "run", HEAD + b"1,a\n", 2, "2 cells where there are 3"),
    ("csv", "run", HEAD + b"1,a,1\n1,b,1,2\n", 3, "4 cells where there are 3"),
    ("csv", "run", HEAD + b"1,a,nan\n", 2, "score 'nan' is not a number"),
    ("csv", "run", HEAD + b"1,a,1\n1,b,\n", 3, "score is empty"),
    ("csv", "run", HEAD + b"1,a,1\n\n1,,1\n", 4, "doc_id is empty"),
    ("csv", "run", HEAD + b"1,a,1\n2,a,2\n1,a,3\n", 4, "duplicate document"),
    ("csv", "run", HEAD + b'1,a,1\n1,"b,2\n1,c,3\n', 3, "never closed"),
    ("csv", "run", HEAD + b'1,a,1\n1,"b"c,2\n', 3, "closing quote"),
    ("csv", "run", HEAD + b'"1\n1",a,1\n1,b,x\n', 4, "score 'x'"),
    ("csv", "run", HEAD + b"1,a,1\n1,caf\xe9,2\n", 3, "not UTF-8"),
    ("csv", "run", HEAD + b"1,a,1\n1,b\x00,2\n", 3, "binary"),
    ("csv", "run", HEAD + b"1;a;1\n", 2, "1 cell where"),
    ("csv", "run", HEAD, None, "no ranking"),
    ("csv", "run", b"query_id,document,score\n1,a,1\n", 1, "no column 'doc_id'.*'document'"),
    ("csv", "run", b"query_id,doc_id,score,doc_id\n1,a,1,b\n", 1, "two columns are called"),
    ("csv", "run", b"qid,topic,docno,score\n1,a,1,b\n", 1, "'qid' and 'topic' both mean query_id"),
    ("csv", "documents", b", \n1,a\n", 1, "no column 'doc_id'; there are none|cannot detect"),
    ("csv", "run", b"1,a,0.5\n1,b,0.4\n", 1, "no column 'query_id'"),
    ("csv", "run", b"query_id,doc_id,score,state\n1,,,lost\n", 2, "unknown state 'lost'"),
    ("csv", "queries", b"query_id,text\n1,x\n1,y\n", 3, "duplicate query id"),
    ("csv", "queries", b"query_id,weight\n1,1\n2,-1\n", 3, "neither 0 nor a number from 1e-9"),
    ("csv", "documents", b"doc_id,text\n1,x\n,y\n", 3, "doc_id is empty"),
    ("tsv", "run", TAB + b"1\ta\n", 2, "2 cells where there are 3"),
    ("tsv", "run", TAB + b"1\ta\t1\n1\tb\t1\t2\n", 3, "4 cells"),
    ("tsv", "run", TAB + b"1\ta\tNaN\n", 2, "score 'NaN'"),
    ("tsv", "run", TAB + b"1\ta\t1\n1\ta\t2\n", 3, "duplicate document"),
    ("tsv", "run", TAB + b"1\ta\t1\n\tb\t2\n", 3, "query_id is empty"),
    ("tsv", "run", TAB + b'1\ta\t1\n1\t"b\t2\n', 3, "never closed"),
    ("tsv", "run", TAB + b"1\ta\t1\n1\tb\x00\t2\n", 3, "binary"),
    ("tsv", "run", TAB + b"1\ta\t1\n1\t\xff\t2\n", 3, "not UTF-8"),
    ("tsv", "run", TAB + b"1 a 1\n", 2, "1 cell where"),
    ("tsv", "run", TAB, None, "no ranking"),
    ("tsv", "qrels", b"query_id\tdoc_id\n1\ta\n", 1, "no column 'grade'"),
    ("csv", "qrels", SUBTOPICS + b"1,a,1,1\n1,a,2,1\n1,a,2,0\n", 4, "twice for subtopic 2"),
    ("csv", "qrels", SUBTOPICS + b"1,a,1,1\n1,b,,1\n", 3, "document b has no subtopic"),
    (
        "jsonl",
        "qrels",
        SUBTOPIC + b'"2"}\n' + SUBTOPIC + b"3}\n" + SUBTOPIC + b"2}\n",
        3,
        "judged twice for subtopic 2",
    ),
    ("jsonl", "qrels", SUBTOPIC + b"1.5}\n", 1, "subtopic 1.5 is not text"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": "b"}\n', 2, "no column 'score'"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": "b", "sc', 2, "not JSON"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": "b", "score": NaN}\n', 2, "nan is not"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": "b", "score": true}\n', 2, "True is not"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": "b", "score": null}\n', 2, "is empty"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": 2.5, "score": 1}\n', 2, "is not text"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": null, "score": 1}\n', 2, "is empty"),
    ("jsonl", "run", ROW + ROW, 2, "duplicate document"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": "b", "score": 1, "score": 2}\n', 2, "key"),
    ("jsonl", "run", ROW + b"[1, 2]\n", 2, "expected a JSON object, got an array"),
    ("jsonl", "run", ROW + b"{'query_id': '1'}\n", 2, "not JSON"),
    ("jsonl", "run", ROW + b'{"query_id": "\xe9", "doc_id": "b", "score": 1}\n', 2, "not UTF-8"),
    ("jsonl", "run", ROW + b'{"query_id": "\\ud800", "doc_id": "b", "score": 1}\n', 2, "surrogate"),
    ("jsonl", "run", ROW + b'{"query_id": "1\x00", "doc_id": "b", "score": 1}\n', 2, "binary|JSON"),
    ("jsonl", "run", ROW + b'{"query_id": "1", "doc_id": "b", "score": 1e999e}\n', 2, "not JSON"),
    ("jsonl", "queries", b'{"query_id": 1}\n{"query_id": "1"}\n', 2, "duplicate query id"),
    ("jsonl", "documents", b'{"text": "a"}\n', 1, "no column 'doc_id'"),
    ("json", "run", b'{\n"1": {"a": 1},\n"1": {"b": 2}\n}', 3, "duplicate query"),
    ("json", "run", b'{\n"1": {"a": 1,\n"a": 2}\n}', 3, "duplicate document a"),
    ("json", "run", b'{\n"1": {"a": NaN}\n}', 2, "NaN, not a number"),
    ("json", "run", b'{\n"1": {"a": "high"}\n}', 2, '"high", not a number'),
    ("json", "run", b'{\n"1": {"a": null}\n}', 2, "null, not a number"),
    ("json", "run", b'{\n"1": {"a": true}\n}', 2, "true, not a number"),
    ("json", "run", b'{\n"1": {"a": 1},\n"2": {"b"', 3, "not JSON"),
    ("json", "run", b'{\n"1": {"a": 1},\n"2": "b"\n}', 3, "no object of documents"),
    ("json", "run", b'{\n"1": {"a": 1},\n"2": ["b", 3]\n}', 3, "expected ids, as strings"),
    ("json", "run", b'{\n"1": {"": 1}\n}', 2, "doc_id is empty"),
    ("json", "run", b'{\n"1": {"\xe9": 1}\n}', 2, "not UTF-8"),
    ("json", "run", b'{\n"1": {"a": 1' + b"0" * 400 + b"}\n}", 2, "not a number"),
    ("json", "run", b'[{"a": 1}]', 1, "JSON array|not a JSON object"),
    ("json", "run", b"{}", None, "no ranking"),
    ("json", "qrels", b'{\n"1": {"a": Infinity}\n}', 2, "Infinity, not a number"),
    ("json", "qrels", b'{\n"1": null\n}', 2, "no object of documents"),
    ("json", "run", b'{"1": ' * 100_000, 1, "nested too deeply|not JSON"),
    # More of these in tests/formats/own/test_golden.py.
    (
        "golden",
        "qrels",
        b'[{"query": "x", "qrels": {}}]',
        None,
        "item 1: no key 'relevant_docs'",
    ),
    ("golden", "queries", b'[\n{"query": "x", "relevant_docs": ["a"', 2, "not JSON"),
    ("parquet", "run", WHOLE[:500], None, "damaged or truncated"),
    ("parquet", "run", WHOLE[:-1], None, "damaged or truncated"),
    ("parquet", "run", b"PAR1", None, "damaged or truncated"),
    ("parquet", "run", b"PAR1" + b"x" * 99 + b"PAR1", None, "damaged or truncated"),
    ("parquet", "run", WHOLE[:8] + b"\xff" * 60 + WHOLE[68:], None, "damaged or truncated"),
    ("parquet", "run", parquet(query_id=["1"], doc_id=["a"]), None, "no column 'score'"),
    (
        "parquet",
        "run",
        parquet(query_id=[1.0], doc_id=["a"], score=[1.0]),
        None,
        "floating-point",
    ),
    (
        "parquet",
        "run",
        parquet(query_id=["1", "1"], doc_id=["a", None], score=[1.0, 2.0]),
        None,
        "row 2: the doc_id is empty",
    ),
    (
        "parquet",
        "run",
        parquet(query_id=["1", "1"], doc_id=["a", "b"], score=[1.0, float("nan")]),
        None,
        "row 2: the score nan is not a number",
    ),
    (
        "parquet",
        "run",
        parquet(query_id=["1", "1"], doc_id=["a", "b"], score=[1.0, None]),
        None,
        "row 2: the score is empty",
    ),
    (
        "parquet",
        "run",
        parquet(query_id=["1", "1"], doc_id=["a", "a"], score=[1.0, 2.0]),
        None,
        "duplicate document",
    ),
    (
        "parquet",
        "run",
        parquet(query_id=["1"], doc_id=["a"], score=["high"]),
        None,
        "row 1: the score 'high' is not a number",
    ),
    ("parquet", "run", parquet(query_id=[], doc_id=[], score=[]), None, "no ranking"),
    (
        "parquet",
        "qrels",
        parquet(query_id=["1"] * 2, doc_id=["a"] * 2, grade=[1, 2]),
        None,
        "judged twice",
    ),
]


def spelt(case: tuple[str, str, bytes, int | None, str]) -> str:
    return f"{case[0]}-{case[1]}-{case[4]}"


@pytest.mark.parametrize("case", CASES, ids=spelt)
def test_a_damaged_file(case: tuple[str, str, bytes, int | None, str], tmp_path: Path) -> None:
    name, role, data, line, says = case
    path = tmp_path / "runs.txt"
    path.write_bytes(data)
    for given in (None, name):  # told by content, and asked for
        if given is None and (name == "msmarco" or b";" in data):
            continue
        if given is not None and says.startswith(("cannot detect", "no column 'query_id'")):
            continue
        error = damaged(path, role, given)
        assert re.search(says, error.what), error
        if not says.startswith("1 cell") or given is None:
            assert error.line == line, error


@pytest.mark.parametrize(
    "name", [name for name in SOUND if name not in ("parquet", "json", "golden")]
)
def test_a_line_without_end(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE", 1 << 20)
    role, data = SOUND[name]
    path = tmp_path / "x"
    path.write_bytes(data + b"1" * (9 << 20))
    error = damaged(path, role)
    assert "longer than 1 MiB" in error.what
    assert error.line == data.count(b"\n") + 1


def test_a_line_of_70_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.write(b"1 Q0 a 1 2.5 x\n1 Q0 ")
        for _ in range(70):
            file.write(b"d" * (1 << 20))
        file.write(b" 2 1.5 x\n")
    error = damaged(path, "run")
    assert "longer than 64 MiB" in error.what
    assert error.line == 2


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress, bz2.compress])
@pytest.mark.parametrize("name", ["trec", "csv", "jsonl", "json"])
def test_a_bomb(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_BOMB_FROM", 1 << 20)
    role, data = SOUND[name]
    path = tmp_path / "x"
    path.write_bytes(pack(data[:-1] + b" " * (4 << 20) + data[-1:]))
    assert "expands more than 250 times" in damaged(path, role).what


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "bm25.run").touch()
    error = damaged(tmp_path / "bm25.runs", "run")
    assert "no such file" in error.what
    assert "bm25.run" in (error.fix or "")


def test_a_run_may_hold_a_bad_line_far_down(tmp_path: Path) -> None:
    """The line number is right beyond the first chunk, with blank lines and comments above."""
    document = b"d" * 200
    lines = b"".join(b"%d Q0 %s 1 2 x\n" % (i, document) for i in range(25_000))
    assert len(lines) > source.CHUNK
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"# a comment\n\n" + lines + b"9 Q0 d one 2\n", 1))
    assert damaged(path, "run").line == 25_003


@pytest.mark.parametrize(
    "name", [name for name, entry in FORMATS.items() if "run" in entry.writers]
)
def test_nothing_is_half_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up at the very end: the file that was there stays as it was."""
    path = tmp_path / "x"
    path.write_bytes(b"as it was")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        formats.write_run(Run.from_dict({"1": {"a": 1.0}}), path, name)
    assert [file.name for file in tmp_path.iterdir()] == ["x"]
    assert path.read_bytes() == b"as it was"
