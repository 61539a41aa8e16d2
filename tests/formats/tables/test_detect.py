from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

import pytest

from karat import formats
from karat.errors import InputError
from karat.formats.tables.detect import WrongRole, detect, own_kind
from karat.formats.tables.source import Source

TOLD = [
    ("qrels", "1 0 a 1\n", "trec"),
    ("qrels", "1\t0\ta\t1\n", "trec"),  # MS MARCO's qrels read the same
    ("qrels", "# c\n\n1 0 a 1\n", "trec"),
    ("qrels", "1 0 a\n1 0 b 1\n1 0 c 1\n", "trec"),  # most lines tell, not the first
    ("qrels", "query-id\tcorpus-id\tscore\n1\ta\t1\n", "beir"),
    ("qrels", "1\ta\t1\n", "beir"),
    ("qrels", "1\ta\t0.5\n", "beir"),
    ("qrels", "qid\tdocno\tlabel\n1\ta\t1\n", "tsv"),
    ("qrels", "query_id,doc_id,grade\n1,a,1\n", "csv"),
    ("qrels", '"Query ID","Doc-ID","Grade"\n1,a,1\n', "csv"),
    ("qrels", "query_id;doc_id;grade\n1;a;1,5\n", "csv"),
    ("run", "query_id;doc_id;score\n1;a;0,5\n", "csv"),
    ("queries", "query_id;text\n1;how far, and why\n", "csv"),
    ("queries", "1\tquery_id;text\n2\tx\n", "msmarco"),
    ("qrels", '{"1": {"a": 1}}', "json"),
    ("qrels", '{\n  "1": {\n    "a": 1\n  }\n}', "json"),
    ("qrels", '{"query_id": "1", "doc_id": "a", "grade": 1}\n', "jsonl"),
    ("run", "1 Q0 a 1 2.5 x\n", "trec"),
    ("run", "1 Q0 a 1 2.5 x more\n", "trec"),
    ("run", "1\ta\t1\n1\tb\t2\n2\tc\t1\n", "msmarco"),
    ("run", "1\ta\t0.9\n1\tb\t0.8\n", "tsv"),
    ("run", "qid,docno,sim\n1,a,1\n", "csv"),
    ("run", "query-id\tcorpus-id\tscore\n1\ta\t12.75\n", "tsv"),
    ("run", '{"1": {}, "2": null}', "json"),
    ("run", '{"q": {"d": 1}, "r": {', "json"),
    ("queries", '{"_id": "1", "text": "x"}\n', "beir"),
    ("queries", '{"metadata": {}, "_id": "1", "text": "x"}\n{"_id": "2"}\n', "beir"),
    ("queries", '{"query_id": "1", "text": "x"}\n', "jsonl"),
    ("queries", "1\thow far, and why\n", "msmarco"),
    ("queries", "query_id,text\n1,x\n", "csv"),
    ("queries", "qid\tquery\n1\tx\n", "tsv"),
    ("queries", "query_id\n1\n", "csv"),
    ("documents", "1\tonce upon a time\n", "msmarco"),
    ("documents", "id,title,text\n1,x,y\n", "csv"),
]


@pytest.mark.parametrize(("role", "text", "name"), TOLD)
def test_told_by_content(role: str, text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "misleading.parquet"
    for data in (text, text.removesuffix("\n"), text.replace("\n", "\r\n"), "\ufeff" + text):
        path.write_bytes(data.encode())
        with Source(path) as source:
            assert detect(source, role) == name


WRONG = [
    ("qrels", "1 Q0 a 1 2.5 x\n", "looks like a TREC run"),
    ("run", "1 0 a 1\n", "looks like TREC qrels"),
    ("run", "query-id\tcorpus-id\tscore\n1\ta\t1\n", "looks like BEIR qrels"),
    ("run", "query_id,doc_id,grade\n1,a,1\n", "looks like qrels"),
    ("qrels", "query_id,doc_id,rank,score\n1,a,1,2\n", "looks like a run"),
    ("qrels", '{"query_id": "1", "doc_id": "a", "rank": 1, "score": 2}\n', "looks like a run"),
    ("qrels", "".join(f"1\td{i}\t{i}\n" for i in range(1, 20)), "looks like an MS MARCO run"),
    ("queries", "1 0 a 1\n", "looks like TREC qrels"),
    ("queries", "1 Q0 a 1 2.5 x\n", "looks like a TREC run"),
    ("documents", '{"1": {"a": 1}}', "nested JSON"),
]


@pytest.mark.parametrize(("role", "text", "says"), WRONG)
def test_a_file_of_another_role(role: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        getattr(formats, f"read_{role}")(tmp_path / "x")
    if role in ("qrels", "run"):
        fix = caught.value.fix or ""
        assert "the order is QRELS RUN" in fix
        assert "--" not in fix  # nobody can type it on a page


@pytest.mark.parametrize(
    "text", ["1\ta\t7\n1\tb\t5\n", "1\ta\t1\n2\tb\t1\n", "1\ta\t2\n1\tb\t1\n", "1\ta\t1\n1\tb\t3\n"]
)
def test_ambiguity_names_both(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(InputError) as caught:
        formats.read_run(tmp_path / "x")
    assert re.search("MS MARCO.*TSV", caught.value.what)
    fix = caught.value.fix or ""
    assert fix.startswith("name its format, msmarco or tsv")
    for name in ("rank", "score"):  # what it says helps
        assert f"query_id, doc_id, {name}" in fix
        (tmp_path / "x").write_text(f"query_id\tdoc_id\t{name}\n{text}")
        assert len(formats.read_run(tmp_path / "x")) == text.count("\n")


@pytest.mark.parametrize(
    ("role", "before", "helps", "after"),
    [
        (
            "run",
            "query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t0\n",
            "or call its second column doc_id",
            "query-id\tdoc_id\tscore\n1\ta\t1\n1\tb\t0\n",
        ),
        (
            "qrels",
            "".join(f"1\td{i}\t{i}\n" for i in range(1, 13)),
            "or add the header query_id, doc_id, grade",
            "query_id\tdoc_id\tgrade\n" + "".join(f"1\td{i}\t{i}\n" for i in range(1, 13)),
        ),
    ],
)
def test_what_the_fix_says_helps(
    role: str, before: str, helps: str, after: str, tmp_path: Path
) -> None:
    (tmp_path / "x").write_text(before)
    with pytest.raises(WrongRole) as caught:
        getattr(formats, f"read_{role}")(tmp_path / "x")
    assert (caught.value.fix or "").endswith(helps)
    (tmp_path / "x").write_text(after)
    getattr(formats, f"read_{role}")(tmp_path / "x")


def test_a_topic_file_is_no_queries(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("<top>\n<num> Number: 301\n<title> crime\n</top>\n")
    with pytest.raises(InputError, match="cannot detect"):
        formats.read_queries(tmp_path / "x")


KINDS = [
    ('{"karat_baseline": 2, "karat": "0.1"}', "a saved baseline"),
    ('\n { "karat_certificate" : 1}', "a certificate"),
    ('{"karat_history": 1, "time": "x"}\n', "a history"),
    ('{"karat_golden_set": 1, "queries": []}', "a golden set"),
    ('{"name": "x", "karat_golden_set": 1, "queries": []}', "a golden set"),
    ('[{"query": "x", "relevant_docs": ["a"]}]', "a golden set"),
    ('{"query": "x", "relevant_docs": {"a": 1}}\n', "a golden set"),
    ('# why\n[[rule]]\nmeasure = "AP"\n', "a policy"),
    ("[health]\nmax_failed = 0\n\n[[rule]]\n", "a policy"),
]


@pytest.mark.parametrize("role", ["qrels", "run", "queries", "documents"])
@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_a_file_of_karats_own_is_called_what_it_is(
    role: str, text: str, kind: str, tmp_path: Path
) -> None:
    for data in (text.encode(), gzip.compress(text.encode())):
        (tmp_path / "x").write_bytes(data)
        with Source(tmp_path / "x") as source:
            assert own_kind(source) == kind
            if kind == "a golden set" and role in ("qrels", "queries"):
                assert detect(source, role) == "golden"
                continue
            with pytest.raises(WrongRole, match=f"expected .*, got {kind}"):
                detect(source, role)
    if role == "run":  # a format that is given is no reason to call it damaged
        with pytest.raises(WrongRole, match=f"got {kind}") as caught:
            formats.read_run(tmp_path / "x", "jsonl")
        assert str(caught.value.fix).endswith("the order is QRELS RUN")


@pytest.mark.parametrize(("role", "text", "name"), TOLD)
def test_other_files_are_none_of_karats_own(
    role: str, text: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "x").write_text(text)
    with Source(tmp_path / "x") as source:
        assert own_kind(source) is None, (role, name)


def test_a_zip_file_is_called_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "shop.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("shop-now/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t3\n")
    for read in (formats.read_qrels, formats.read_run, formats.read_queries):
        with pytest.raises(InputError, match="got a ZIP file") as refused:
            read(path)
        assert "fix: unzip it" in str(refused.value)
