"""An import is whole or nothing, and what goes out comes back in."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa
from tests.stored_runs import stored_run_rows

from karat.errors import InputError, UsageError
from karat.store.sql import documents, judgments, queries
from karat.store.sql.schema import imported
from karat.workflows.golden.editions import content_of
from karat.workflows.golden.export import export_golden_set
from karat.workflows.golden.import_ import import_from
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
HEAD = "query_id,query,doc_id,grade,rater,reason\n"


def held(opened: Workspace) -> tuple[int, int, int]:
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
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    folder = beir(tmp_path / "beir")
    first = import_from(shop, folder, now=tick())
    assert (first.queries, first.documents, first.judgments) == (2, 2, 3)
    again = import_from(shop, folder, now=tick())
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
    tail: str, says: str, shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=says) as refused:
        import_from(shop, beir(tmp_path / "beir", tail), now=tick())
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
    rows: str, says: str, shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        import_from(shop, tmp_path / "said.csv", now=tick())
    assert held(shop) == (0, 0, 0)


def test_a_query_known_by_its_text_keeps_its_id_and_ids_that_clash_get_another(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    import_from(shop, beir(tmp_path / "beir"), now=tick())
    # Here "door" is called x, "lamp" q2 as "wall" is, and q2-2 is a third query's.
    rows = "x,door,d2,3,ann,\nq2,lamp,d1,2,ann,\nq2-2,roof,d1,1,ann,\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    assert import_from(shop, tmp_path / "said.csv", now=tick()).queries == 2
    with shop.store.read() as c:
        texts = dict(queries.frame(c, shop.golden.id).select("query_id", "text").iter_rows())
        frame = judgments.current(c, shop.golden.id).frame.filter(pl.col("rater") == "ann")
    assert texts["q1"] == "door"
    assert texts["q2"] == "wall"
    named = {text: query for query, text in texts.items()}
    assert len(named) == 4
    graded = dict(frame.select("query_id", "grade").iter_rows())
    assert graded == {"q1": 3, named["lamp"]: 2, named["roof"]: 1}


def test_what_a_file_does_not_say_stays_as_it_was(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "door", "metadata": {"need": "open it", "lang": "en"}}\n',
        encoding="utf-8",
    )
    import_from(shop, tmp_path / "queries.jsonl", now=tick())
    import_from(shop, beir(tmp_path / "beir"), now=tick())
    with shop.store.read() as c:
        row = queries.frame(c, shop.golden.id).row(0, named=True)
    assert (row["need"], row["lang"]) == ("open it", "en")


def test_queries_and_documents_come_alone_too(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    folder = beir(tmp_path / "beir")
    (folder / "qrels/test.tsv").unlink()
    (folder / "qrels").rmdir()
    found = import_from(shop, folder, now=tick())
    assert (found.queries, found.documents, found.judgments) == (2, 2, 0)
    (tmp_path / "a.csv").write_text("doc_id,title,text\nd9,Roof,A roof\n", encoding="utf-8")
    assert import_from(shop, tmp_path / "a.csv", now=tick()).documents == 1
    (tmp_path / "b.tsv").write_text("d8\tStairs\n", encoding="utf-8")
    assert import_from(shop, tmp_path / "b.tsv", now=tick(), format="documents").documents == 1
    (tmp_path / "half.jsonl").write_text('{"_id": "d5", "title": "x"}\n{"_id": "d6"', "utf-8")
    with pytest.raises(InputError, match="line 2"):
        import_from(shop, tmp_path / "half.jsonl", now=tick())
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 2.5 bm25\n", encoding="utf-8")
    with pytest.raises(InputError, match="pool the pairs that it returns"):
        import_from(shop, tmp_path / "run.trec", now=tick())
    assert held(shop) == (2, 4, 0)


def test_runs_of_a_file_are_kept_under_the_ids_of_the_golden_set(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    import_from(shop, beir(tmp_path / "beir"), now=tick())
    rows = "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position\n"
    rows += "before,2024-05-01,7,door,d2,1\nbefore,2024-05-01,7,door,d1,2\n"
    (tmp_path / "snapshot.csv").write_text(rows, encoding="utf-8")
    found = import_from(shop, tmp_path / "snapshot.csv", now=tick())
    assert len(found.runs) == 1
    (run,) = stored_run_rows(shop)
    assert found.runs == [run.name]
    # Of the same content under another name: it is kept once, and has that name too.
    (tmp_path / "snapshot.csv").write_text(rows.replace("before", "after"), encoding="utf-8")
    again = import_from(shop, tmp_path / "snapshot.csv", now=tick())
    assert (again.runs, len(stored_run_rows(shop))) == (["after"], 1)
    assert stored_run_rows(shop, ["after"])[0].to_dict() == run.to_dict()
    assert any("is the same as" in each for each in again.exchange.assumed)
    assert {query: list(docs) for query, docs in run.to_dict().items()} == {"q1": ["d2", "d1"]}


def test_where_runs_cannot_be_kept_nothing_comes_in(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    shop.workspace.runs.write_text("no folder", encoding="utf-8")
    rows = "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position\n"
    (tmp_path / "snapshot.csv").write_text(f"{rows}before,2024-05-01,7,door,d2,1\n", "utf-8")
    with pytest.raises(InputError, match="cannot store runs"):
        import_from(shop, tmp_path / "snapshot.csv", now=tick())
    assert held(shop) == (0, 0, 0)


def test_people_go_before_what_nobody_is_named_for(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    rows = "q1,door,d1,0,,\nq1,door,d1,3,ann,\nq1,door,d2,1,,\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    import_from(shop, tmp_path / "said.csv", now=tick())
    assert dict(content_of(shop).grades.select("doc_id", "grade").iter_rows()) == {"d1": 3, "d2": 1}
    with pytest.raises(UsageError, match="nope"):
        export_golden_set(shop, tmp_path / "x", "csv", edition="nope")
    with pytest.raises(UsageError, match="nope"):
        import_from(shop, tmp_path / "said.csv", now=tick(), format="nope")


def test_every_import_is_noted_with_what_it_said(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "queries.csv").write_text("query_id,text\nq1,door\n", encoding="utf-8")
    (tmp_path / "corpus.csv").write_text("doc_id,title\nd1,A door\n", encoding="utf-8")
    rows = "Snapshot Name,Query Text,Doc ID,Doc Position\nbefore,door,d1,1\n"
    (tmp_path / "snapshot.csv").write_text(rows, encoding="utf-8")
    for name in ("queries.csv", "corpus.csv", "snapshot.csv"):
        import_from(shop, tmp_path / name, now=tick())
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
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(f"{HEAD}q1,door,d1,2,ann,\nq1,door,d2,1,ann,\n", "utf-8")
    first = import_from(shop, tmp_path / "a.csv", now=tick())
    assert (first.judgments, first.corrected) == (2, 0)
    # d1 is corrected, d2 as it was, d3 new; ben has said nothing of d1, and nobody is not ann.
    rows = "q1,door,d1,3,ann,\nq1,door,d2,1,ann,\nq1,door,d3,0,ann,\n"
    rows += "q1,door,d1,3,ben,\nq1,door,d1,3,,\n"
    (tmp_path / "b.csv").write_text(HEAD + rows, encoding="utf-8")
    second = import_from(shop, tmp_path / "b.csv", now=tick())
    assert (second.judgments, second.corrected) == (3, 1)
    assert held(shop)[2] == 5


def test_two_ids_of_one_text_stay_apart_and_it_is_said(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    import_from(shop, beir(tmp_path / "beir"), now=tick())
    # Both are "door", which is q1 here, and ann says something else of each.
    rows = "x,door,d1,2,ann,\ny,Door ,d1,3,ann,\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    for new in (2, 0):
        found = import_from(shop, tmp_path / "said.csv", now=tick())
        assert (found.judgments, found.corrected) == (new, 0)
        (told,) = (each for each in found.exchange.assumed if "the same text" in each)
        assert told.startswith("queries 'x' and 'y' have the same text")
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
        (
            "d.json",
            '{"queries": [{"query": "door", "ratings": {"11": 9}}]}',
            r'ings\["11"\]: grade 9 for',
        ),
    ],
)
def test_a_grade_off_the_scale_is_named_with_its_line(
    name: str, content: str, says: str, shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    data = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(InputError, match=says):
        import_from(shop, tmp_path / name, now=tick())


def test_what_nobody_has_rated_is_said_to_be_that(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "book.csv").write_text("query,docid\ndoor,d1\n", encoding="utf-8")
    with pytest.raises(InputError, match="the book has no ratings yet"):
        import_from(shop, tmp_path / "book.csv", now=tick())
    (tmp_path / "sheet.csv").write_text(f"{HEAD}q1,door,d1,,ann,\nq1,door,d2,,,\n", "utf-8")
    with pytest.raises(InputError, match=r"the file has no ratings yet.*\n.*judge its pairs"):
        import_from(shop, tmp_path / "sheet.csv", now=tick())
    assert held(shop) == (0, 0, 0)
    (tmp_path / "judges.csv").write_text("query,docid,ann\ndoor,d1,\n", encoding="utf-8")
    found = import_from(shop, tmp_path / "judges.csv", now=tick())
    assert any("the file has no ratings yet" in each for each in found.exchange.assumed)
    assert held(shop) == (1, 0, 0)


def test_a_sheet_with_semicolons_is_read_and_it_is_said(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    sheet = (
        'query_id;query;doc_id;grade;rater\nq1;"door; red";d1;1,5;ann\nq1;"door; red";d2;2;ann\n'
    )
    (tmp_path / "said.csv").write_text(sheet, encoding="utf-8")
    found = import_from(shop, tmp_path / "said.csv", now=tick())
    assert found.exchange.assumed == [
        "cells are separated by semicolons; 1 number with a decimal comma"
    ]
    with shop.store.read() as c:
        assert judgments.current(c, shop.golden.id).frame["grade"].to_list() == [1.5, 2]
        assert queries.frame(c, shop.golden.id)["text"].to_list() == ["door; red"]
    (tmp_path / "texts.csv").write_text("query_id;text\nq9;roof, flat\n", encoding="utf-8")
    with pytest.raises(InputError, match="it has no queries"):
        import_from(shop, tmp_path, now=tick(), format="queries")
    pl.DataFrame({"query_id;": ["1"], "text;": ["x"]}).write_parquet(tmp_path / "odd.parquet")
    with pytest.raises(InputError, match="no column 'query_id'"):
        import_from(shop, tmp_path / "odd.parquet", now=tick(), format="queries")
    read = import_from(shop, tmp_path / "texts.csv", now=tick(), format="queries")
    assert (read.queries, read.exchange.assumed) == (
        1,
        ["queries: semicolons separate the cells"],
    )


def test_ids_of_a_file_are_remembered(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query_id,text\nqa,Door\nqb,Wall\n", encoding="utf-8")
    import_from(shop, tmp_path / "log.csv", now=tick())
    first = import_from(shop, beir(tmp_path / "beir"), now=tick())
    assert (first.queries, first.judgments) == (0, 3)
    by_text = "2 queries of the file are known here by their text under other ids, such as q1 → qa"
    assert by_text in first.exchange.assumed
    (tmp_path / "alone.qrels").write_text("q1 0 d3 2\nq2 0 d3 1\nq9 0 d3 0\n", encoding="utf-8")
    found = import_from(shop, tmp_path / "alone.qrels", now=tick())
    assert (found.queries, found.judgments) == (1, 3)
    known_as, unknown = found.exchange.assumed
    assert known_as.startswith("2 queries of the file are known here under other ids since an ear")
    assert known_as.endswith("such as q1 → qa")
    assert unknown == "1 query has no text and an id that the golden set does not have: q9"
    with shop.store.read() as c:
        frame = judgments.current(c, shop.golden.id).frame.filter(pl.col("doc_id") == "d3")
    assert frame["query_id"].to_list() == ["qa", "qb", "q9"]
    # The newest import counts, and an id that the golden set has always means itself.
    (tmp_path / "other.csv").write_text("query_id,text\nq1,wall\nqa,roof\n", encoding="utf-8")
    clash = import_from(shop, tmp_path / "other.csv", now=tick()).exchange.assumed
    said = "1 query is given other ids, because other queries have theirs, such as qa → qa-2"
    assert said in clash
    (tmp_path / "again.qrels").write_text("q1 0 d4 2\nqa 0 d4 1\n", encoding="utf-8")
    told = import_from(shop, tmp_path / "again.qrels", now=tick()).exchange.assumed
    assert any("q1 → qb" in each for each in told)
    assert any("matched to the golden set's own" in each and "qa → qa-2" in each for each in told)
    with shop.store.read() as c:
        frame = judgments.current(c, shop.golden.id).frame.filter(pl.col("doc_id") == "d4")
    assert dict(frame.select("query_id", "grade").iter_rows()) == {"qb": 2, "qa": 1}


def test_ids_that_karat_made_up_are_not_remembered(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text("query_id,text\nqa,door\n", encoding="utf-8")
    (tmp_path / "quepid.csv").write_text("query,docid,rating\ndoor,d1,1\n", encoding="utf-8")
    (tmp_path / "alone.qrels").write_text("q1 0 d3 2\n", encoding="utf-8")
    for name, new in (("log.csv", 1), ("quepid.csv", 0), ("alone.qrels", 1)):
        assert import_from(shop, tmp_path / name, now=tick()).queries == new


@pytest.mark.parametrize(
    ("rater", "says"),
    [("", "is empty"), ("  ", "is empty"), ("Import ", "'Import' is reserved")],
)
def test_a_name_that_is_none_is_refused(
    rater: str, says: str, shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("query_id,doc_id,grade\nq1,d1,2\n", encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        import_from(shop, tmp_path / "a.csv", now=tick(), rater=rater)
    assert held(shop) == (0, 0, 0)


def test_raters_whose_names_are_alike_are_said(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    rows = "q1,door,d1,2, ann ,\nq1,door,d2,2,Bo Li,\nq1,door,d3,2,BoLi,\n"
    (tmp_path / "a.csv").write_text(HEAD + rows, encoding="utf-8")
    found = import_from(shop, tmp_path / "a.csv", now=tick())
    (said,) = found.exchange.assumed
    assert said.startswith("'Bo Li' and 'BoLi' differ only in case or spaces")
    (tmp_path / "b.csv").write_text(f"{HEAD}q1,door,d1,2,Ann,\n", encoding="utf-8")
    (said,) = import_from(shop, tmp_path / "b.csv", now=tick()).exchange.assumed
    assert said.startswith("'Ann' and 'ann' differ only in case or spaces")


def test_what_is_changed_is_named(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    import_from(shop, beir(tmp_path / "beir"), now=tick())
    (tmp_path / "q.csv").write_text("query_id,text,lang\nq1,Door,en\nq2,wall,\n", "utf-8")
    (tmp_path / "d.csv").write_text("doc_id,title,text\nd1,T,A door\nd2,T,Wall\n", "utf-8")
    found = import_from(shop, tmp_path / "q.csv", now=tick(), format="queries")
    assert found.changed == 1
    assert found.exchange.assumed == ["1 query changed: q1 (text, lang)"]
    found = import_from(shop, tmp_path / "d.csv", now=tick(), format="documents")
    assert found.exchange.assumed == ["2 documents changed: d1 (title), d2 (title, text)"]


def test_a_file_that_contradicts_most_of_what_is_there_warns_first(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    def sheet(grades: list[int]) -> Path:
        rows = [f"q1,door,d{n},{grade},ann,\n" for n, grade in enumerate(grades)]
        (tmp_path / "a.csv").write_text(HEAD + "".join(rows), encoding="utf-8")
        return tmp_path / "a.csv"

    import_from(shop, sheet([0] * 20), now=tick())
    half = import_from(shop, sheet([1] * 10 + [0] * 15), now=tick())  # 10 of 20: not more than half
    assert (half.corrected, half.exchange.assumed) == (10, [])
    most = import_from(shop, sheet([2] * 13 + [0] * 12), now=tick())
    assert most.corrected == 13
    assert most.exchange.assumed[0].startswith("13 of 25 existing grades differ")
    few = import_from(shop, sheet([3] * 19), now=tick())  # too few to tell
    assert (few.corrected, few.exchange.assumed) == (19, [])


def test_attributes_beyond_count_are_refused(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    def sheet(key: str, count: int, first: int = 0) -> Path:
        names = [f"a{k}" for k in range(first, first + count)]
        rows = [",".join([key, "text", *names]), ",".join(["x1", "t", *["1"] * count])]
        path = tmp_path / "sheet.csv"
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return path

    for key, kind in (("query_id", "queries"), ("doc_id", "documents")):
        with pytest.raises(InputError, match=f"the {kind} would have 101 attributes; the maximum"):
            import_from(shop, sheet(key, 101), now=tick(), format=kind)
        import_from(shop, sheet(key, 100), now=tick(), format=kind)
        import_from(shop, sheet(key, 100), now=tick(), format=kind)
        with pytest.raises(
            InputError, match="would have 101 attributes, 100 of which exist already"
        ):
            import_from(shop, sheet(key, 1, first=100), now=tick(), format=kind)
    assert held(shop) == (1, 1, 0)
