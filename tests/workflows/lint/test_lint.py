"""``karat lint``: each code is found in a file made for it, on the line it was put."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from karat import formats
from karat.errors import InputError, UsageError
from karat.tables import Queries
from karat.tables.findings import SEVERITIES, Finding, Findings
from karat.workflows.lint.lint import lint
from karat.workflows.lint.roles import given
from karat.workflows.lint.tally import CODES

QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n"
BY_SUBTOPIC = "q1 1 d1 1\nq1 2 d1 1\nq1 2 d2 1\n"
RUN = (
    "q1 Q0 d1 1 3.5 bm25\nq1 Q0 d2 2 2.5 bm25\nq1 Q0 d3 3 1.5 bm25\n"
    "q2 Q0 d3 1 9.0 bm25\nq2 Q0 d1 2 8.0 bm25\n"
)
QUERIES = '{"_id": "q1", "text": "wing"}\n{"_id": "q2", "text": "heat"}\n'
DOCUMENTS = "".join(
    f'{{"_id": "d{i}", "title": "t", "text": "some text of document {i}"}}\n' for i in (1, 2, 3)
)


def linted(folder: Path, roles: Sequence[str] = (), /, **files: str | bytes) -> Findings:
    """Lint files written into the folder; ``__`` in a name stands for a dot."""
    paths = []
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths.append(str(path))
    return lint(paths, given([f"{folder}/{role}" for role in roles], paths))


def only(found: Findings, code: str) -> Finding:
    """The one finding of that code."""
    hits = [finding for finding in found.findings if finding.code == code]
    assert len(hits) == 1, [finding.code for finding in found.findings]
    return hits[0]


def rows(query: str, count: int, start: int = 0) -> str:
    """A ranking of so many documents."""
    return "".join(f"{query} Q0 d{start + i} {i + 1} {1000 - i} tag\n" for i in range(count))


def test_sound_files_have_nothing_wrong(tmp_path: Path) -> None:
    found = linted(
        tmp_path,
        qrels__txt=QRELS,
        run__trec=RUN,
        queries__jsonl=QUERIES,
        corpus__jsonl=DOCUMENTS,
    )
    assert not found.findings
    assert found.clean
    # 3 judgments, 5 retrieved, 2 queries, 3 documents.
    assert found.verdict == "nothing wrong in 4 files: 2 queries, 13 rows"
    assert [file.role for file in found.files] == ["qrels", "run", "queries", "documents"]


@pytest.mark.parametrize("ending", ["qrels", "csv", "tsv", "jsonl", "parquet"])
def test_a_document_under_several_subtopics_is_sound(ending: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(BY_SUBTOPIC)
    path = tmp_path / f"again.{ending}"
    formats.write_qrels(formats.read_qrels(tmp_path / "x"), path)
    found = lint([path])
    assert found.clean, found.findings
    assert [(file.role, file.rows) for file in found.files] == [("qrels", 3)]


CASES: list[tuple[str, dict[str, str | bytes], tuple[int, ...], int]] = [
    ("empty-file", {"qrels": b""}, (), 1),
    ("empty-file", {"qrels": b" \n\n"}, (), 1),
    ("unreadable-file", {"qrels": gzip.compress(QRELS.encode())[:-12]}, (), 1),
    ("unreadable-file", {"qrels": QRELS.encode("utf-16")}, (), 1),
    ("unreadable-file", {"qrels": "one two\nthree four\n"}, (1,), 1),
    ("bom", {"qrels": b"\xef\xbb\xbf" + QRELS.encode()}, (1,), 1),
    ("bom-within", {"qrels": QRELS + "\ufeffq3 0 d1 1\n"}, (4,), 1),
    ("ambiguous-format", {"run": "q1\td1\t1\nq2\td2\t2\n"}, (), 1),
    ("empty-file", {"run": "query_id,doc_id,score\n"}, (), 1),
    ("crlf", {"qrels": QRELS.replace("\n", "\r\n")}, (1, 2, 3), 3),
    ("mixed-line-ends", {"qrels": "q1 0 d1 1\r\nq1 0 d2 1\nq1 0 d3 1\n"}, (1,), 1),
    ("mixed-line-ends", {"qrels": "q1 0 d1 1\r\nq1 0 d2 1\nq1 0 d3 1\r\n"}, (2,), 1),
    ("carriage-return", {"qrels": QRELS + "q2 0 d4 1\rq2 0 d5 1\nq2 0 d\r6 0\n"}, (4, 5), 2),
    ("carriage-return", {"run": RUN + "q2 Q0 d4 3 7 t\rq2 Q0 d5 4 6 t\n# a\rb\n"}, (6, 7), 2),
    ("carriage-return", {"run": "query_id,doc_id,score\nq1,d1,2\nq\r1,d2,1\n"}, (3,), 1),
    ("carriage-return", {"run": 'query_id,doc_id,score\nq1,"d\r1\n",2\nq\r1,d2,1\n'}, (4,), 1),
    ("carriage-return", {"run": "q1\td1\t1\nq1\td\r2\t2\nq1\td3\t3\n"}, (2,), 1),
    ("carriage-return", {"queries": "q1\ta\rb\nq2\tc\n"}, (1,), 1),
    ("joined-lines", {"run": RUN[:-1] + " q2 Q0 d4 3 7.0 bm25\n"}, (5,), 1),
    ("joined-lines", {"run": RUN[:-1] + "q2 Q0 d4 3 7.0 bm25\n"}, (5,), 1),
    ("no-final-newline", {"qrels": QRELS[:-1]}, (3,), 1),
    ("no-final-newline", {"queries": QUERIES[:-1]}, (2,), 1),
    ("not-utf8", {"qrels": b"q1 0 d1 1\nq1 0 d\xe9 1\n"}, (2,), 1),
    ("not-utf8", {"queries": b'{"_id": "q1", "text": "caf\xe9"}\n'}, (1,), 1),
    ("nul-byte", {"qrels": b"q3 0 d1 1\n" * 9000 + b"q4 0 d\0 1\n"}, (9001,), 1),
    ("blank-line", {"qrels": "q1 0 d1 1\n\n  \nq1 0 d2 1\n"}, (2, 3), 2),
    ("blank-line", {"queries": "\n" + QUERIES}, (1,), 1),
    ("comment-line", {"qrels": "# by hand\nq1 0 d1 1\n#\nq1 0 d2 1\n"}, (1, 3), 2),
    ("doubled-separator", {"qrels": "q 0 d1 1\nq  0 d2 1\n q 0 d3 1\nq 0 d4 1 \n"}, (2, 3, 4), 3),
    ("doubled-separator", {"run": RUN.replace("d2 2 ", "d2\t2\t ")}, (2,), 1),
    ("wrong-field-count", {"qrels": QRELS + "q2 0\nq2 0 d 9 1\n"}, (4, 5), 2),
    ("wrong-field-count", {"run": RUN + "q2 Q0 d4 3 7.0\n"}, (6,), 1),
    ("wrong-field-count", {"run": "query_id,doc_id,score\nq1,d1,2\nq1,d2\n"}, (3,), 1),
    ("extra-fields", {"run": RUN + "q2 Q0 d4 3 7.0 tag more\n"}, (6,), 1),
    ("not-json", {"queries": QUERIES + "{oops\n[1]\n"}, (3, 4), 2),
    ("missing-field", {"queries": QUERIES + '{"text": "no id"}\n'}, (3,), 1),
    ("missing-id", {"queries": QUERIES + '{"_id": "", "text": "x"}\n'}, (3,), 1),
    ("missing-id", {"run": "query_id,doc_id,score\nq1,d1,2\nq1,,1\n"}, (3,), 1),
    ("id-with-odd-space", {"qrels": "q1 0 d1 1\nq1 0 d\u00a02 1\nq1 0 d\u200b3 1\n"}, (2, 3), 2),
    ("id-with-odd-space", {"run": "query_id,doc_id,score\nq1,d 1,2\nq1,d2,1\n"}, (2,), 1),
    ("missing-grade", {"qrels": QRELS + "q2 0 d4\n"}, (4,), 1),
    ("missing-grade", {"qrels": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\n"}, (3,), 1),
    ("missing-grade", {"qrels": '{"query_id":"q","doc_id":"d","grade":null}\n'}, (1,), 1),
    ("grade-not-a-number", {"qrels": QRELS + "q2 0 d4 -\nq2 0 d5 nan\n"}, (4, 5), 2),
    ("negative-grade", {"qrels": QRELS + "q2 0 d4 -1\n"}, (4,), 1),
    ("fractional-grade", {"qrels": QRELS + "q2 0 d4 0.5\n"}, (4,), 1),
    ("column-order", {"qrels": "q1 5 0 0.0\nq1 7 0 0.0\nq2 5 0 0.0\nq2 9 0 0.0\n"}, (), 1),
    ("column-order", {"qrels": "q1 d5 0 1\nq2 d7 0 1\n"}, (), 1),
    ("no-grade-reaches-1", {"qrels": "q1 0 d1 0.5\nq1 0 d2 0\n"}, (), 1),
    ("no-relevant-document", {"qrels": QRELS + "q3 0 d1 0\nq3 0 d2 0\n"}, (4,), 1),
    ("duplicate-judgment", {"qrels": QRELS + "q1 0 d1 1\n"}, (4,), 1),
    ("conflicting-judgment", {"qrels": QRELS + "q1 0 d1 2\n"}, (4,), 1),
    ("duplicate-judgment", {"qrels": BY_SUBTOPIC + "q1 2 d1 1\n"}, (4,), 1),
    ("conflicting-judgment", {"qrels": BY_SUBTOPIC + "q1 2 d1 2\n"}, (4,), 1),
    ("score-not-a-number", {"run": RUN + "q2 Q0 d4 3 high bm25\n"}, (6,), 1),
    ("nan-score", {"run": RUN + "q2 Q0 d4 3 nan bm25\n"}, (6,), 1),
    ("infinite-score", {"run": "q0 Q0 d1 1 inf t\n" + RUN}, (1,), 1),
    ("duplicate-document", {"run": RUN + "q2 Q0 d1 3 7.0 bm25\n"}, (6,), 1),
    ("duplicate-document", {"corpus": DOCUMENTS + DOCUMENTS[: DOCUMENTS.index("\n") + 1]}, (4,), 1),
    ("rank-contradicts-score", {"run": RUN + "q2 Q0 d4 1 7.0 bm25\n"}, (6,), 1),
    ("rank-not-a-number", {"run": RUN + "q2 Q0 d4 third 7.0 bm25\n"}, (6,), 1),
    ("rank-from-zero", {"run": "q1 Q0 d1 0 2 t\nq1 Q0 d2 1 1 t\nq2 Q0 d2 1 1 t\n"}, (1,), 1),
    ("tied-scores", {"run": RUN + "q2 Q0 d4 3 8.0 bm25\n"}, (5, 6), 2),
    ("rare-ties", {"run": rows("q1", 300) + "q1 Q0 x 301 701 tag\n"}, (300, 301), 2),
    ("score-not-descending", {"run": RUN + "q2 Q0 d4 0 9.5 bm25\n"}, (6,), 1),
    ("non-contiguous-query", {"run": RUN + "q1 Q0 d4 4 1.0 bm25\n"}, (6,), 1),
    ("self-retrieval", {"run": RUN + "q2 Q0 q2 3 7.0 bm25\n"}, (6,), 1),
    ("self-retrieval", {"run": "1 Q0 1 1 2 t\n1 Q0 7 2 1 t\n2 Q0 2 1 2 t\n"}, (1, 3), 2),
    ("uneven-depth", {"run": rows("q1", 9) + rows("q2", 9) + rows("q3", 2)}, (19,), 1),
    ("truncated-depth", {"run": rows("q1", 10) + rows("q2", 10)}, (), 2),
    ("duplicate-query", {"queries": QUERIES + '{"_id": "q1", "text": "again"}\n'}, (3,), 1),
    ("empty-query", {"queries": QUERIES + '{"_id": "q3", "text": " "}\n'}, (3,), 1),
    ("empty-document", {"corpus": DOCUMENTS + '{"_id": "d4", "title": "", "text": ""}\n'}, (4,), 1),
    ("dangling-document", {"corpus": DOCUMENTS, "qrels": QRELS + "q2 0 d9 1\n"}, (4,), 1),
    ("dangling-document", {"corpus": DOCUMENTS, "run": RUN + "q2 Q0 d9 3 7 t\n"}, (6,), 1),
    ("no-common-query", {"qrels": QRELS, "run": RUN.replace("q", "7")}, (1,), 1),
    ("query-not-in-run", {"qrels": QRELS + "q3 0 d1 1\n", "run": RUN}, (), 1),
    ("unjudged-query", {"qrels": QRELS, "run": RUN + "q3 Q0 d1 1 1 t\n"}, (6,), 1),
    ("query-without-text", {"qrels": QRELS + "q3 0 d1 1\n", "queries": QUERIES}, (4,), 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "files", "lines", "count"),
    CASES,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)],
)
def test_a_fault_is_found_on_its_line(
    code: str, files: dict[str, str | bytes], lines: tuple[int, ...], count: int, tmp_path: Path
) -> None:
    roles = {"corpus": "documents"}
    told = [f"{name}={roles.get(name, name)}" for name in files]
    finding = only(linted(tmp_path, told, **files), code)
    assert finding.lines == lines
    assert finding.count == count
    assert finding.severity == CODES[code].severity


def test_every_code_has_a_file_that_triggers_it() -> None:
    assert {case[0] for case in CASES} == set(CODES)


def test_the_page_lists_every_code_as_it_is(root: Path) -> None:
    page = (root / "docs/reference/lint.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z][\w-]+)` \|.*$", page, re.MULTILINE)
    assert listed == list(CODES), "one row for each code, in the order of the code"
    for code in CODES.values():
        cells = [f"`{code.name}`", code.severity, code.says, code.why, code.fix]
        row = " | ".join(cell.replace("|", "\\|") for cell in cells)
        assert f"| {row} |\n" in page, f"docs/reference/lint.md should have: | {row} |"
        assert code.severity in SEVERITIES


def test_roles_are_told_by_content(tmp_path: Path) -> None:
    found = linted(
        tmp_path,
        a=RUN,
        b=QRELS,
        c="query_id,doc_id,grade\nq1,d1,1\n",
        d="query_id,doc_id,score\nq1,d1,1.5\n",
        e="q1\td1\t1\nq1\td2\t2\nq1\td3\t3\nq1\td4\t4\nq1\td5\t5\n",
        f='{"q1": {"d1": 12.5, "d2": 3.25}}\n',
        g='{"q1": {"d1": 1, "d2": 0}}\n',
        h='{"query_id": "q1", "text": "wing"}\n',
        i='{"doc_id": "d1", "text": "wing"}\n',
        j="query-id\tcorpus-id\tscore\nq1\td1\t1\n",
        k="q1\thow heavy is air\nq2\twhat is lift\n",
        l="d1\t" + "a long passage of text " * 20 + "\n",
    )  # fmt: skip
    assert [file.role for file in found.files] == [
        *("run", "qrels", "qrels", "run", "run", "run", "qrels"),
        *("queries", "documents", "qrels", "queries", "documents"),
    ]
    assert not found.count("error"), [f for f in found.findings if f.severity == "error"]


def test_queries_and_documents_are_told_by_a_name_in_any_case(tmp_path: Path) -> None:
    long, short = "q1\t" + "a long passage of text " * 20 + "\n", "d1\twing\n"
    found = linted(
        tmp_path, Queries__tsv=long, TOPICS__TXT=long, Corpus__tsv=short, MyDocs__tsv=short
    )
    roles = [file.role for file in found.files]
    assert roles == ["queries", "queries", "documents", "documents"]


def test_parquet_counts_rows(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "query_id": ["q1", "q1", "q1"],
            "doc_id": ["d1", "d2", "d1"],
            "score": [3.0, float("nan"), 1.0],
        }
    )
    frame.write_parquet(tmp_path / "run.parquet")
    found = lint([tmp_path / "run.parquet"])
    assert (only(found, "nan-score").lines, only(found, "nan-score").noun) == ((2,), "row")
    assert only(found, "duplicate-document").lines == (3,)


def test_nested_json_sees_a_key_that_stands_twice(tmp_path: Path) -> None:
    found = linted(tmp_path, run__json='{"q1": {"d1": 2.5, "d1": 1.5}, "q2": null, "q3": {}}\n')
    assert only(found, "duplicate-document").query == "q1"
    assert found.queries == 3


def test_a_scattered_run_is_checked_query_by_query(tmp_path: Path) -> None:
    # d1 stands twice for q1, with another query between; scores fall within each query.
    run = "q1 Q0 d1 1 3 t\nq2 Q0 d1 1 9 t\nq1 Q0 d1 2 2 t\nq2 Q0 d2 2 8 t\n"
    found = linted(tmp_path, run__txt=run)
    assert only(found, "non-contiguous-query").count == 2
    assert only(found, "duplicate-document").lines == (3,)
    assert {f.code for f in found.findings} == {"non-contiguous-query", "duplicate-document"}


def test_one_faulty_line_in_a_long_run_is_found(tmp_path: Path) -> None:
    lines = "".join(rows(f"q{i}", 1000) for i in range(300)).splitlines(keepends=True)
    assert sum(map(len, lines)) > 1 << 22, "more than one chunk"
    lines[250_000] = "q250 Q0 d0 1\n"
    lines[1000] = lines[1000].replace(" d0 ", " d7 ")
    found = linted(tmp_path, run__txt="".join(lines))
    assert only(found, "wrong-field-count").lines == (250_001,)
    assert only(found, "duplicate-document").lines == (1008,)
    assert {f.code for f in found.findings} == {"wrong-field-count", "duplicate-document"}


def test_numbered_ids_that_meet_by_chance_are_no_self_retrieval(tmp_path: Path) -> None:
    run = "1 Q0 7 1 2 t\n1 Q0 1 2 1 t\n2 Q0 5 1 2 t\n2 Q0 2 2 1 t\n"
    assert not linted(tmp_path, run__txt=run).findings


def test_examples_are_escaped_and_cut(tmp_path: Path) -> None:
    qrels = QRELS + "q2 0 \x1b[31m" + "x" * 100 + " -\n"
    example = only(linted(tmp_path, qrels__txt=qrels), "grade-not-a-number").example
    assert example is not None
    assert example.startswith(r"q2 0 \x1b[31mx")
    assert example.endswith("…")


def test_a_file_that_breaks_off_does_not_stop_the_others(tmp_path: Path) -> None:
    found = linted(tmp_path, a=gzip.compress(RUN.encode() * 50)[:-20], b=QRELS)
    assert only(found, "unreadable-file").file.endswith("a")
    assert found.files[1].rows == 3


GOLDEN = [
    {"query": "wing", "relevant_docs": {"d1": 1, "d2": 0}},
    {"query": "heat", "relevant_docs": ["d3"]},
    {"query": "cake", "no_answer": True, "relevant_docs": {"d1": 0}},
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOLDEN),
        json.dumps(GOLDEN, indent=2),
        "".join(json.dumps(item) + "\n" for item in GOLDEN),
        json.dumps({"karat_golden_set": 1, "name": "x", "queries": GOLDEN}, indent=2),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_golden_set_is_judgments_and_queries(text: str, packed: bool, tmp_path: Path) -> None:
    data = gzip.compress(text.encode()) if packed else text.encode()
    run = RUN + "q3 Q0 d1 1 9.0 bm25\n"
    found = linted(tmp_path, golden__json=data, run__trec=run, corpus__jsonl=DOCUMENTS)
    assert not found.findings
    assert [(file.role, file.format, file.rows) for file in found.files[:1]] == [
        ("qrels", "golden", 4)
    ]
    assert found.queries == 3
    found = linted(tmp_path, golden__json=data, run__trec=run.replace("q2 ", "q9 "))
    assert {finding.code for finding in found.findings} == {
        "query-not-in-run", "unjudged-query", "query-without-text",
    }  # fmt: skip
    alone = linted(tmp_path, ["golden.json=queries"], golden__json=data)
    assert (alone.findings, alone.queries) == ([], 3)


@pytest.mark.parametrize(
    ("text", "says", "lines"),
    [
        ('[{"query": "x", "qrels": {}}]', "item 1: no key 'relevant_docs'; the keys are", ()),
        ('[\n{"query": "x",,}]', "", (2,)),
        ("[1]", "item 1: expected a query, got 1", ()),
        ('{"karat_golden_set": 2, "queries": []}', "unsupported golden set version 2", ()),
    ],
)
def test_a_damaged_golden_set_says_what_evaluate_would(
    text: str, says: str, lines: tuple[int, ...], tmp_path: Path
) -> None:
    finding = only(linted(tmp_path, golden__json=text), "unreadable-file")
    with pytest.raises(InputError) as caught:
        formats.read_qrels(tmp_path / "golden.json")
    assert (finding.message, finding.fix) == (
        caught.value.what,
        caught.value.fix or CODES["unreadable-file"].fix.replace("FILE", finding.file),
    )
    assert says in finding.message
    assert finding.lines == lines


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet"])
def test_a_query_without_a_right_answer_needs_no_judgment(ending: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "query_id": ["q1", "q2", "q3", "q4"],
            "text": ["wing", "heat", "cake", "tea"],
            "no_answer": [False, False, True, True],
        }
    )
    formats.write_queries(Queries(frame), tmp_path / f"queries.{ending}")
    (tmp_path / "qrels").write_text(QRELS + "q3 0 d1 0\n")  # q4: not judged at all
    (tmp_path / "run").write_text(RUN + "q3 Q0 d1 1 9.0 bm25\nq4 Q0 d1 1 9.0 bm25\n")
    # The order in which they are named does not matter.
    found = lint([tmp_path / name for name in ("run", "qrels", f"queries.{ending}")])
    assert not found.findings
    without = lint([tmp_path / "run", tmp_path / "qrels"])
    assert {finding.code for finding in without.findings} == {
        "no-relevant-document", "unjudged-query",
    }  # fmt: skip


def test_what_is_asked_wrongly_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text(QRELS)
    with pytest.raises(InputError, match=r"no such file\n.*qrels\.txt"):
        lint([tmp_path / "qrel.txt"])
    with pytest.raises(InputError, match="not a BEIR folder"):
        lint([tmp_path])
    with pytest.raises(UsageError, match="did you mean run"):
        given(["a=runs"], ["a"])
    with pytest.raises(UsageError, match="not among the files"):
        given(["b=run"], ["a"])


def test_the_raw_judgments_of_cranfield(field_data: Path) -> None:
    found = lint([field_data / "cranfield/cranqrel.raw"])
    # Counted with awk: 2 lines of 3 fields; 223 grades "-"; 2 grades -1; 3 lines with two
    # neighbouring blanks or one at the end; no newline at the end.
    assert {f.code: f.count for f in found.findings} == {
        "missing-grade": 2,
        "grade-not-a-number": 223,
        "negative-grade": 2,
        "no-final-newline": 1,
        "doubled-separator": 3,
    }
    assert only(found, "missing-grade").lines == (460, 870)
    assert found.verdict == "2 errors, 1 warning, 2 remarks in 1 file"


def test_cranfield_as_a_folder(field_data: Path) -> None:
    found = lint([field_data / "cranfield"])
    assert [f.code for f in found.findings] == ["empty-document"]
    assert found.findings[0].lines == (471, 995)
    assert [file.role for file in found.files] == ["documents", "queries", "qrels"]


def test_the_runs_of_robust03(field_data: Path) -> None:
    folder = field_data / "robust03"
    found = lint([folder / "qrels.robust03.gz", folder / "input.rutcor03100.gz"])
    ties = only(found, "tied-scores")
    assert ties.message.startswith("99.97 % of the documents")
    assert found.files[1].rows == 100_000
    zero = lint([folder / "input.uic0301.gz"])
    assert [(f.code, f.count) for f in zero.findings] == [("rank-from-zero", 100)]


def test_the_small_test_of_trec_eval(field_data: Path) -> None:
    folder = field_data / "trec_eval"
    found = lint([folder / "qrels.test", folder / "results.trunc"])
    assert not found.count("error")
    assert only(found, "query-not-in-run").query == "302"
    assert only(found, "extra-fields").lines[0] == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [('{"karat_baseline": 2, "queries": []}', "a saved baseline"), ("[[rule]]\n", "a policy")],
)
def test_files_of_karats_own_are_called_what_they_are(text: str, kind: str, tmp_path: Path) -> None:
    found = linted(tmp_path, main__json=text)
    [finding] = found.findings
    assert finding.code == "unreadable-file"
    assert finding.message.startswith(f"this is {kind}; lint checks")
    assert found.files[0].role is None


def test_semicolons_and_decimal_commas_are_read_as_everywhere(tmp_path: Path) -> None:
    found = linted(
        tmp_path,
        qrels__csv="query_id;doc_id;grade\nq1;d1;1,5\nq2;d2;0\n",
        run__csv="query_id;doc_id;score\nq1;d1;2,5\nq1;d2;1,5\nq2;d2;one\n",
        queries__csv="query_id;text\nq1;wing, left\nq2;heat\n",
    )
    errors = [each.code for each in found.findings if each.severity == "error"]
    assert errors == ["score-not-a-number"]
    assert only(found, "score-not-a-number").lines == (4,)
