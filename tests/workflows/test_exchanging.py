"""An import is whole or nothing, and what goes out comes back in."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from karat.errors import InputError, UsageError
from karat.formats import read_run
from karat.store import documents, judgments, queries
from karat.store.schema import imported
from karat.tables import Run
from karat.workflows.editions import content_of
from karat.workflows.exchanging import give_out, take_in
from karat.workflows.kept_runs import keep_runs, kept_runs
from karat.workflows.workspace import Opened, make_workspace, open_workspace

Tick = Callable[[], int]
HEAD = "query_id,query,doc_id,grade,rater,reason\n"


def held(opened: Opened) -> tuple[int, int, int]:
    """Queries, documents and judgments in the store."""
    with opened.store.read() as c:
        return (
            queries.frame(c, opened.golden.id).height,
            documents.frame(c, opened.golden.id).height,
            len(judgments.current(c, opened.golden.id)),
        )


def beir(folder: Path, tail: str = "") -> Path:
    """A BEIR folder of two queries, two documents and three grades; its qrels end in ``tail``."""
    (folder / "qrels").mkdir(parents=True)
    texts = {"queries": ("q1", "door", "q2", "wall"), "corpus": ("d1", "A door", "d2", "A wall")}
    for name, (one, first, other, second) in texts.items():
        rows = f'{{"_id": "{one}", "text": "{first}"}}\n{{"_id": "{other}", "text": "{second}"}}\n'
        (folder / f"{name}.jsonl").write_text(rows, encoding="utf-8")
    rows = "query-id\tcorpus-id\tscore\nq1\td1\t3\nq1\td2\t0\nq2\td2\t1\n"
    (folder / "qrels/test.tsv").write_text(rows + tail, encoding="utf-8")
    return folder


def test_a_file_that_was_imported_adds_nothing_again(
    shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    folder = beir(tmp_path / "beir")
    first = take_in(shop, folder, now=tick())
    assert (first.queries, first.documents, first.judgments) == (2, 2, 3)
    again = take_in(shop, folder, now=tick())
    assert (again.queries, again.documents, again.judgments) == (0, 0, 0)
    assert held(shop) == (2, 2, 3)


@pytest.mark.parametrize(
    ("tail", "says"),
    [
        ("q2\td1", "line 5"),  # the end is gone
        ("q2\td1\t4\n", "line 5: grade 4 for document 'd1' is not on .* from 0 to 3 .query q2"),
        ("q2\td1\tgood\n", "good"),
        ("q1\td1\t2\n", "twice"),
    ],
)
def test_of_a_damaged_folder_nothing_comes_in(
    tail: str, says: str, shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=says) as refused:
        take_in(shop, beir(tmp_path / "beir", tail), now=tick())
    assert refused.value.file is not None
    assert "beir" in refused.value.file
    assert held(shop) == (0, 0, 0)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            "q1,door,d1,2,,\nq1,door,d2,9,,\n",
            "line 3: grade 9 for document 'd2' is not on the golden set's scale",
        ),
        ("q1,door,d1,2,,\nq1,window,d2,1,,\n", "two texts"),
        ('q1,door,d1,2,,\nq1,door,d2,1,,"cut', "said.csv"),
        ("q1,door,d1,2,,\nq1,door,,1,,\n", "without a document"),
    ],
)
def test_of_a_damaged_sheet_nothing_comes_in(
    rows: str, says: str, shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        take_in(shop, tmp_path / "said.csv", now=tick())
    assert held(shop) == (0, 0, 0)


def test_a_query_known_by_its_text_keeps_its_id_and_ids_that_clash_get_another(
    shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    take_in(shop, beir(tmp_path / "beir"), now=tick())
    # Here "door" is called x, "lamp" q2 as "wall" is, and q2-2 is a third query's.
    rows = "x,door,d2,3,ann,\nq2,lamp,d1,2,ann,\nq2-2,roof,d1,1,ann,\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    assert take_in(shop, tmp_path / "said.csv", now=tick()).queries == 2
    with shop.store.read() as c:
        texts = dict(queries.frame(c, shop.golden.id).select("query_id", "text").iter_rows())
        frame = judgments.current(c, shop.golden.id).frame.filter(pl.col("rater") == "ann")
    assert texts["q1"] == "door"
    assert texts["q2"] == "wall"
    named = {text: query for query, text in texts.items()}
    assert len(named) == 4
    graded = dict(frame.select("query_id", "grade").iter_rows())
    assert graded == {"q1": 3, named["lamp"]: 2, named["roof"]: 1}


def test_what_a_file_does_not_say_stays_as_it_was(shop: Opened, tick: Tick, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "door", "metadata": {"need": "open it", "lang": "en"}}\n',
        encoding="utf-8",
    )
    take_in(shop, tmp_path / "queries.jsonl", now=tick())
    take_in(shop, beir(tmp_path / "beir"), now=tick())
    with shop.store.read() as c:
        row = queries.frame(c, shop.golden.id).row(0, named=True)
    assert (row["need"], row["lang"]) == ("open it", "en")


def test_queries_and_documents_come_alone_too(shop: Opened, tick: Tick, tmp_path: Path) -> None:
    folder = beir(tmp_path / "beir")
    (folder / "qrels/test.tsv").unlink()
    (folder / "qrels").rmdir()
    found = take_in(shop, folder, now=tick())
    assert (found.queries, found.documents, found.judgments) == (2, 2, 0)
    (tmp_path / "a.csv").write_text("doc_id,title,text\nd9,Roof,A roof\n", encoding="utf-8")
    assert take_in(shop, tmp_path / "a.csv", now=tick()).documents == 1
    (tmp_path / "b.tsv").write_text("d8\tStairs\n", encoding="utf-8")
    assert take_in(shop, tmp_path / "b.tsv", now=tick(), format="documents").documents == 1
    (tmp_path / "half.jsonl").write_text('{"_id": "d5", "title": "x"}\n{"_id": "d6"', "utf-8")
    with pytest.raises(InputError, match="line 2"):
        take_in(shop, tmp_path / "half.jsonl", now=tick())
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 2.5 bm25\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"karat golden pool .*run\.trec"):
        take_in(shop, tmp_path / "run.trec", now=tick())
    assert held(shop) == (2, 4, 0)


def test_runs_of_a_file_are_kept_under_the_ids_of_the_golden_set(
    shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    take_in(shop, beir(tmp_path / "beir"), now=tick())
    rows = "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position\n"
    rows += "before,2024-05-01,7,door,d2,1\nbefore,2024-05-01,7,door,d1,2\n"
    (tmp_path / "snapshot.csv").write_text(rows, encoding="utf-8")
    found = take_in(shop, tmp_path / "snapshot.csv", now=tick())
    assert len(found.runs) == 1
    (run,) = kept_runs(shop)
    assert {query: list(docs) for query, docs in run.to_dict().items()} == {"q1": ["d2", "d1"]}


def test_where_runs_cannot_be_kept_nothing_comes_in(
    shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    shop.workspace.runs.write_text("no folder", encoding="utf-8")
    rows = "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position\n"
    (tmp_path / "snapshot.csv").write_text(f"{rows}before,2024-05-01,7,door,d2,1\n", "utf-8")
    with pytest.raises(InputError, match="runs cannot be kept there"):
        take_in(shop, tmp_path / "snapshot.csv", now=tick())
    assert held(shop) == (0, 0, 0)


@pytest.mark.parametrize("each_rater", [False, True])
def test_what_goes_out_comes_back_in(
    each_rater: bool, shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    rows = "q1,door,d1,2,ann,\nq1,door,d1,3,ben,nice\nq2,wall,d1,,ann,language\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    take_in(shop, tmp_path / "said.csv", now=tick())
    told = give_out(shop, tmp_path / "out.csv", "csv", each_rater=each_rater)
    assert told.lost == []
    make_workspace(tmp_path / "other", now=tick())
    with open_workspace(tmp_path / "other", now=tick()) as other:
        take_in(other, tmp_path / "out.csv", now=tick())
        # By the rule: two votes, no majority, so the lower of the two.
        mine, theirs = (content_of(each).grades.rows(named=True) for each in (shop, other))
        assert [row["grade"] for row in mine] == [row["grade"] for row in theirs] == [2]
        with other.store.read() as c:
            frame = judgments.current(c, other.golden.id).frame
        if each_rater:
            assert frame.select("rater", "grade", "reason", "source").rows() == [
                ("ann", 2, None, "human"),
                ("ben", 3, "nice", "human"),
                ("ann", None, "language", "human"),
            ]
        else:
            assert frame.select("rater", "grade", "source").rows() == [("import", 2, "import")]


def test_people_go_before_what_nobody_is_named_for(
    shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    rows = "q1,door,d1,0,,\nq1,door,d1,3,ann,\nq1,door,d2,1,,\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    take_in(shop, tmp_path / "said.csv", now=tick())
    assert dict(content_of(shop).grades.select("doc_id", "grade").iter_rows()) == {"d1": 3, "d2": 1}
    with pytest.raises(UsageError, match="nope"):
        give_out(shop, tmp_path / "x", "csv", edition="nope")
    with pytest.raises(UsageError, match="nope"):
        take_in(shop, tmp_path / "said.csv", now=tick(), format="nope")


def test_every_import_is_noted_with_what_it_said(shop: Opened, tick: Tick, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("query_id,text\nq1,door\n", encoding="utf-8")
    (tmp_path / "corpus.csv").write_text("doc_id,title\nd1,A door\n", encoding="utf-8")
    rows = "Snapshot Name,Query Text,Doc ID,Doc Position\nbefore,door,d1,1\n"
    (tmp_path / "snapshot.csv").write_text(rows, encoding="utf-8")
    for name in ("queries.csv", "corpus.csv", "snapshot.csv"):
        take_in(shop, tmp_path / name, now=tick())
    with shop.store.read() as c:
        noted = c.execute(sa.select(imported).order_by(imported.c.id)).all()
    told = [(Path(row.file).name, row.format, row.report["kept"][0]) for row in noted]
    assert told == [
        ("queries.csv", "queries", "1 query with text"),
        ("corpus.csv", "documents", "1 document with title"),
        ("snapshot.csv", "quepid-snapshot-csv", "1 query with text"),
    ]
    assert all(len(row.sha256) == 64 for row in noted)


def test_what_a_rater_says_otherwise_is_corrected_and_not_new(
    shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(f"{HEAD}q1,door,d1,2,ann,\nq1,door,d2,1,ann,\n", "utf-8")
    first = take_in(shop, tmp_path / "a.csv", now=tick())
    assert (first.judgments, first.corrected) == (2, 0)
    # d1 is corrected, d2 as it was, d3 new; ben has said nothing of d1, and nobody is not ann.
    rows = "q1,door,d1,3,ann,\nq1,door,d2,1,ann,\nq1,door,d3,0,ann,\n"
    rows += "q1,door,d1,3,ben,\nq1,door,d1,3,,\n"
    (tmp_path / "b.csv").write_text(HEAD + rows, encoding="utf-8")
    second = take_in(shop, tmp_path / "b.csv", now=tick())
    assert (second.judgments, second.corrected) == (3, 1)
    assert held(shop)[2] == 5


def test_two_ids_of_one_text_stay_apart_and_it_is_said(
    shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    take_in(shop, beir(tmp_path / "beir"), now=tick())
    # Both are "door", which is q1 here, and ann says something else of each.
    rows = "x,door,d1,2,ann,\ny,Door ,d1,3,ann,\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    for new in (2, 0):
        found = take_in(shop, tmp_path / "said.csv", now=tick())
        assert (found.judgments, found.corrected) == (new, 0)
        (told,) = (each for each in found.exchange.assumed if "one text" in each)
        assert told.startswith("queries 'x' and 'y' have one text")
        assert "as 'q1' and 'y'" in told
    with shop.store.read() as c:
        frame = judgments.current(c, shop.golden.id).frame.filter(pl.col("rater") == "ann")
    assert dict(frame.select("query_id", "grade").iter_rows()) == {"q1": 2, "y": 3}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        # Ids come from the file, where it has them, and texts where it has none.
        ("a.csv", "query_id,doc_id,grade\n7,11,9\n", r"line 2: grade 9 for document '11'.*query 7"),
        ("b.csv", "query,docid,rating\ndoor,11,1\ndoor,12,9\n", r"line 3: grade 9.*query door"),
        ("c.trec", "7 0 10 1\n7 0 11 -1\n", r"line 2: grade -1 for document '11'.*query 7"),
        ("c.trec.gz", "7 0 11 9\n", r"line 1: grade 9 for document '11'.*query 7"),
        ("d.json", '{"queries": [{"query": "door", "ratings": {"11": 9}}]}', r"json: grade 9 for"),
    ],
)
def test_a_grade_off_the_scale_is_named_with_its_line(
    name: str, content: str, says: str, shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    data = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(InputError, match=says):
        take_in(shop, tmp_path / name, now=tick())


def test_kept_runs_go_out(shop: Opened, tick: Tick, tmp_path: Path) -> None:
    take_in(shop, beir(tmp_path / "beir"), now=tick())
    first = Run.from_dict({"q1": {"d2": 2.5, "d1": 1}, "q2": {}}, "lexical")
    other = Run.from_dict({"q1": {"d1": 9}}, "dense")
    keep_runs(shop, [first, other], now=tick())
    with pytest.raises(UsageError, match=r"none is named\n.*lexical, dense"):
        give_out(shop, tmp_path / "x.json", "quepid-snapshot")
    with pytest.raises(UsageError, match="trec holds no runs"):
        give_out(shop, tmp_path / "x", "trec", runs=["dense"])
    with pytest.raises(UsageError, match="several runs"):
        give_out(shop, tmp_path / "x.trec", "run", runs=["dense", "lexical"])
    with pytest.raises(UsageError, match="holds no grades"):
        give_out(shop, tmp_path / "x.trec", "run", runs=["dense"], edition="one")
    for name in ("quepid-snapshot", "quepid-snapshot-csv"):
        told = give_out(shop, tmp_path / name, name, runs=["lexical", "dense"])
        assert told.kept == ["2 documents", "2 runs"]
        assert "that 1 query got no answer, of run 'lexical'" in told.lost
        make_workspace(tmp_path / f"of {name}", now=tick())
        with open_workspace(tmp_path / f"of {name}", now=tick()) as theirs:
            take_in(theirs, tmp_path / name, now=tick())
            back = {run.name: run.to_dict() for run in kept_runs(theirs)}
        # Places, and no scores.
        ranked = {run: [list(docs) for docs in each.values()] for run, each in back.items()}
        assert ranked == {"lexical": [["d2", "d1"]], "dense": [["d1"]]}
    for ending, lost in (("trec", 1), ("jsonl", 0), ("parquet", 0)):
        told = give_out(shop, tmp_path / f"out.{ending}", "run", runs=["lexical"])
        assert (told.kept, len(told.lost)) == (["run 'lexical': 2 rows of 1 query"], lost)
        again = read_run(tmp_path / f"out.{ending}")
        assert again.to_dict()["q1"] == {"d2": 2.5, "d1": 1}
        assert again.answers.height == 2 - lost


def test_what_nobody_has_rated_is_said_to_be_that(shop: Opened, tick: Tick, tmp_path: Path) -> None:
    (tmp_path / "book.csv").write_text("query,docid\ndoor,d1\n", encoding="utf-8")
    with pytest.raises(InputError, match="a book that nobody has rated yet"):
        take_in(shop, tmp_path / "book.csv", now=tick())
    (tmp_path / "sheet.csv").write_text(f"{HEAD}q1,door,d1,,ann,\nq1,door,d2,,,\n", "utf-8")
    with pytest.raises(InputError, match=r"nobody has rated .*\n.*karat golden queue"):
        take_in(shop, tmp_path / "sheet.csv", now=tick())
    assert held(shop) == (0, 0, 0)
    (tmp_path / "judges.csv").write_text("query,docid,ann\ndoor,d1,\n", encoding="utf-8")
    found = take_in(shop, tmp_path / "judges.csv", now=tick())
    assert any("nobody has rated anything" in each for each in found.exchange.assumed)
    assert held(shop) == (1, 0, 0)


def test_a_sheet_with_semicolons_is_read_and_it_is_said(
    shop: Opened, tick: Tick, tmp_path: Path
) -> None:
    sheet = (
        'query_id;query;doc_id;grade;rater\nq1;"door; red";d1;1,5;ann\nq1;"door; red";d2;2;ann\n'
    )
    (tmp_path / "said.csv").write_text(sheet, encoding="utf-8")
    found = take_in(shop, tmp_path / "said.csv", now=tick())
    assert found.exchange.assumed == ["semicolons separate the cells; in 1 number 1,5 is 1.5"]
    with shop.store.read() as c:
        assert judgments.current(c, shop.golden.id).frame["grade"].to_list() == [1.5, 2]
        assert queries.frame(c, shop.golden.id)["text"].to_list() == ["door; red"]
    (tmp_path / "texts.csv").write_text("query_id;text\nq9;roof, flat\n", encoding="utf-8")
    with pytest.raises(InputError, match="this folder has no queries"):
        take_in(shop, tmp_path, now=tick(), format="queries")
    pl.DataFrame({"query_id;": ["1"], "text;": ["x"]}).write_parquet(tmp_path / "odd.parquet")
    with pytest.raises(InputError, match="no column 'query_id'"):
        take_in(shop, tmp_path / "odd.parquet", now=tick(), format="queries")
    read = take_in(shop, tmp_path / "texts.csv", now=tick(), format="queries")
    assert (read.queries, read.exchange.assumed) == (
        1,
        ["queries: semicolons separate the cells"],
    )
