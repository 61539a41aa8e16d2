"""What goes out: where it may be written, what it holds, and what is said to be left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.choosing import deep_but
from tests.stored_runs import stored_run_rows

from karat.errors import InputError, UsageError
from karat.formats import read_qrels, read_run
from karat.formats.exchange.catalogue import EXCHANGES
from karat.store.sql import judgments
from karat.store.sql.opening import Store
from karat.tables import Run
from karat.workflows.golden.editions import content_of
from karat.workflows.golden.export import export_golden_set, named_format
from karat.workflows.golden.golden_set import GoldenSet
from karat.workflows.golden.import_ import import_from
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

Tick = Callable[[], int]
HEAD = "query_id,query,doc_id,grade,rater,reason\n"


def filled(shop: Workspace, folder: Path, tick: Tick) -> None:
    """Two queries, two documents and three grades by nobody."""
    rows = "q1,door,d1,3,,\nq1,door,d2,0,,\nq2,wall,d2,1,,\n"
    (folder / "grades.csv").write_text(HEAD + rows, encoding="utf-8")
    (folder / "texts.csv").write_text("doc_id,text\nd1,A door\nd2,A wall\n", encoding="utf-8")
    for name in ("grades.csv", "texts.csv"):
        import_from(shop, folder / name, now=tick())


@pytest.fixture
def said(shop: Workspace, tick: Tick, tmp_path: Path) -> Workspace:
    """Three queries, judged by ann; ben could not judge d1 of the second."""
    rows = "q1,door,d1,2,ann,\nq1,door,d2,0,ann,\nq2,wall,d1,,ben,language\nq3,roof,d1,1,ann,\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    import_from(shop, tmp_path / "said.csv", now=tick())
    return shop


@pytest.mark.parametrize("each_rater", [False, True])
def test_what_goes_out_comes_back_in(
    each_rater: bool, shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    rows = "q1,door,d1,2,ann,\nq1,door,d1,3,ben,nice\nq2,wall,d1,,ann,language\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    import_from(shop, tmp_path / "said.csv", now=tick())
    told = export_golden_set(shop, tmp_path / "out.csv", "csv", each_rater=each_rater)
    scale = "the scale 0-3: the largest grade is 2; evaluate with the scale 0-3"
    made_one = [
        scale,
        "who judged: 2 raters; an export of each rater's judgments keeps them",
        "the reasons of 2 judgments; an export of each rater's judgments has them",
        "that 1 document could not be judged",
    ]
    assert told.lost == ([] if each_rater else made_one)
    make_workspace(tmp_path / "other", now=tick())
    with open_workspace(tmp_path / "other", now=tick()) as other:
        import_from(other, tmp_path / "out.csv", now=tick())
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


@pytest.mark.parametrize("by_name", deep_but([False], [False, True]))
@pytest.mark.parametrize(
    "name",
    deep_but(  # each by itself: tests/contracts/test_exchange.py
        ["golden", "opensearch-judgments", "quepid-csv", "quepid-snapshot", "rre", "trec"],
        [name for name, peer in EXCHANGES.items() if peer.write],
    ),
)
def test_every_format_comes_back_into_a_fresh_set(
    name: str,
    by_name: bool,
    shop: Workspace,
    tick: Tick,
    tmp_path: Path,
    new_sqlite: Callable[[Path], str],
) -> None:
    """Told by its content or named: the same queries, and grades if the format has them."""
    filled(shop, tmp_path, tick)
    run = Run.from_dict({"q1": {"d1": 2, "d2": 1}, "q2": {"d2": 1}}, "lexical")
    store_runs(shop, [run], now=tick())
    holds = EXCHANGES[name].holds
    export_golden_set(shop, tmp_path / "out", name, runs=["lexical"] if holds.runs else ())
    (tmp_path / "other").mkdir()
    new_sqlite(tmp_path / "other" / "karat.db")
    make_workspace(tmp_path / "other", now=tick())
    with open_workspace(tmp_path / "other", now=tick()) as other:
        import_from(other, tmp_path / "out", now=tick(), format=name if by_name else None)
        mine, theirs = (by_text(each, texts=holds.text) for each in (shop, other))
        assert theirs[0] == mine[0]
        assert theirs[1] == (mine[1] if holds.judgments else set())
        names = [run.name for run in stored_run_rows(other, ["lexical"])] if holds.runs else []
        assert names == ["lexical"][: len(names)]


def by_text(opened: Workspace, *, texts: bool) -> tuple[set[str], set[tuple[str, str, float]]]:
    """Queries, and their grades, by the text of the query, or by its id."""
    content = content_of(opened)
    known = content.queries.with_columns(said="text" if texts else "query_id")
    grades = content.grades.join(known, on="query_id").select("said", "doc_id", "grade")
    return set(known["said"]), set(grades.iter_rows())


def test_what_is_no_raters_is_said_to_be_left_out(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    rows = "q1,door,d1,2,ann,\nq1,door,d1,1,,\nq1,door,d2,3,,\n"
    (tmp_path / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    import_from(shop, tmp_path / "said.csv", now=tick())
    clicked = {"query_id": ["q1"], "doc_id": ["d3"], "grade": [1.0], "rater": ["log"]}
    with shop.store.begin() as c:
        facts = pl.DataFrame(clicked).with_columns(
            source=pl.lit("clicks"), time_us=pl.lit(tick()), reason=pl.lit(None, pl.String)
        )
        judgments.record(c, shop.golden.id, facts, None)
    told = export_golden_set(shop, tmp_path / "out.csv", "csv", each_rater=True)
    assert told.lost[0].startswith("the scale 0-3: the largest grade is 2")  # ann's
    assert told.lost[1:] == [
        "1 judgment without a rater: of clicks",
        "2 judgments without a rater: imported",
    ]
    made_one = export_golden_set(shop, tmp_path / "one.csv", "csv").lost
    # ann's 2, and 3 of nobody: the largest grade is the top of the scale, so that is not lost.
    assert made_one == ["who judged: 1 rater; an export of each rater's judgments keeps them"]


def test_all_that_goes_out_is_of_one_moment(
    shop: Workspace, tick: Tick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(shop, tmp_path, tick)
    store_runs(shop, [Run.from_dict({"q1": {"d2": 2.5}}, "lexical")], now=tick())
    reads = []
    read = Store.read
    monkeypatch.setattr(Store, "read", lambda store: (reads.append(store), read(store))[1])
    export_golden_set(shop, tmp_path / "out.json", "quepid-snapshot", runs=["lexical"])
    assert len(reads) == 1


def test_kept_runs_go_out(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    filled(shop, tmp_path, tick)
    first = Run.from_dict({"q1": {"d2": 2.5, "d1": 1}, "q2": {}}, "lexical")
    other = Run.from_dict({"q1": {"d1": 9}}, "dense")
    store_runs(shop, [first, other], now=tick())
    with pytest.raises(UsageError, match=r"none is named\n.*lexical, dense"):
        export_golden_set(shop, tmp_path / "x.json", "quepid-snapshot")
    with pytest.raises(UsageError, match="trec holds no runs"):
        export_golden_set(shop, tmp_path / "x", "trec", runs=["dense"])
    with pytest.raises(UsageError, match="one file holds one run"):
        export_golden_set(shop, tmp_path / "x.trec", "run", runs=["dense", "lexical"])
    with pytest.raises(UsageError, match="holds no grades"):
        export_golden_set(shop, tmp_path / "x.trec", "run", runs=["dense"], edition="one")
    for name in ("quepid-snapshot", "quepid-snapshot-csv"):
        told = export_golden_set(shop, tmp_path / name, name, runs=["lexical", "dense"])
        assert told.kept == ["2 documents", "2 runs"]
        assert "that 1 query got no answer, of run 'lexical'" in told.lost
        make_workspace(tmp_path / f"of {name}", now=tick())
        with open_workspace(tmp_path / f"of {name}", now=tick()) as theirs:
            import_from(theirs, tmp_path / name, now=tick())
            back = {run.name: run.to_dict() for run in stored_run_rows(theirs)}
        # Places, and no scores.
        ranked = {run: [list(docs) for docs in each.values()] for run, each in back.items()}
        assert ranked == {"lexical": [["d2", "d1"]], "dense": [["d1"]]}
    beside = "what out.trec cannot hold: out.trec.about.json"
    for ending, more in (("trec", [beside]), ("jsonl", []), ("parquet", [])):
        told = export_golden_set(shop, tmp_path / f"out.{ending}", "run", runs=["lexical"])
        assert told.kept == ["run 'lexical': 2 rows of 1 query", *more]
        assert told.lost == []
        again = read_run(tmp_path / f"out.{ending}")
        assert again.to_dict()["q1"] == {"d2": 2.5, "d1": 1}
        assert again.answers.height == 2


@pytest.mark.parametrize("ending", deep_but(["trec", "jsonl"], ["trec", "csv", "json", "jsonl"]))
def test_a_run_goes_out_with_its_about_and_its_failed_queries(
    shop: Workspace, tick: Tick, tmp_path: Path, ending: str
) -> None:
    filled(shop, tmp_path, tick)
    run = Run.from_dict({"q1": {"d2": 2.5}, "q2": None}, "prod")
    run.about = {"engine": "prod", "index": "docs-7"}
    store_runs(shop, [run], now=tick())
    told = export_golden_set(shop, tmp_path / f"out.{ending}", "run", runs=["prod"])
    again = read_run(tmp_path / f"out.{ending}")
    assert {key: again.about.get(key) for key in run.about} == run.about
    assert again.answers["state"].to_list() == ["ok", "failed"]
    assert told.lost == []


def test_what_standard_output_cannot_hold_is_said(
    shop: Workspace, tick: Tick, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    filled(shop, tmp_path, tick)
    run = Run.from_dict({"q1": {"d2": 2.5}, "q2": {}}, "prod")
    run.about = {"engine": "prod", "index": "docs-7"}
    store_runs(shop, [run], now=tick())
    told = export_golden_set(shop, "-", "run", runs=["prod"])
    assert capfdbinary.readouterr().out == b"q1 Q0 d2 1 2.5 prod\n"
    assert told.lost == [
        "that 1 query got no answer, of run 'prod'",
        "what is recorded about run 'prod': engine, index",
    ]


def test_what_is_there_is_replaced_only_by_force(said: Workspace, tmp_path: Path) -> None:
    source, folder = tmp_path / "src.csv", tmp_path / "set"
    source.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"the file exists\n  fix: --force"):
        export_golden_set(said, source, "csv")
    assert source.read_text(encoding="utf-8") == "mine"
    export_golden_set(said, source, "csv", force=True)
    assert source.read_text(encoding="utf-8").startswith("query_id,query")
    export_golden_set(said, folder, "beir")
    (folder / "qrels/test.tsv").write_text("old", encoding="utf-8")
    with pytest.raises(InputError, match=r"already exists\n  fix: --force"):
        export_golden_set(said, folder, "beir")
    export_golden_set(said, folder, "beir", force=True)
    assert "q3\td1\t1" in (folder / "qrels/test.tsv").read_text(encoding="utf-8")
    # A folder of anything else is never replaced: what is in it would be gone.
    (folder / "qrels/notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(
        InputError,
        match=r"replacing the folder would delete other files in it, such as qrels/notes\.txt",
    ):
        export_golden_set(said, folder, "beir", force=True)
    with pytest.raises(InputError, match="expected a folder"):
        export_golden_set(said, source, "beir", force=True)
    with pytest.raises(InputError, match="expected a file"):
        export_golden_set(said, folder, "csv", force=True)
    (tmp_path / "empty").touch()  # as mktemp makes it: there is nothing to lose
    export_golden_set(said, tmp_path / "empty", "csv")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"src.csv", "set", "empty", "said.csv", "shop"}


def test_a_run_too_is_replaced_only_by_force(said: Workspace, tick: Tick, tmp_path: Path) -> None:
    store_runs(said, [Run.from_dict({"q1": {"d1": 1.0}}, "one")], now=tick())
    (tmp_path / "one.trec").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="--force"):
        export_golden_set(said, tmp_path / "one.trec", "run", runs=["one"])
    export_golden_set(said, tmp_path / "one.trec", "run", runs=["one"], force=True)
    assert read_run(tmp_path / "one.trec").to_dict() == {"q1": {"d1": 1.0}}


def test_a_folder_that_is_not_there_is_named(said: Workspace, tmp_path: Path) -> None:
    for name in ("csv", "beir"):
        with pytest.raises(InputError, match=r"nodir does not exist\n  fix: mkdir -p"):
            export_golden_set(said, tmp_path / "nodir/x", name)


@pytest.mark.parametrize("name", ["quepid-csv", "rre", "rank-eval", "csv", "trec"])
def test_what_could_not_be_judged_is_said_to_be_left_out(
    name: str, said: Workspace, tmp_path: Path
) -> None:
    lost = export_golden_set(said, tmp_path / "x", name).lost
    assert "that 1 document could not be judged" in lost
    assert any(each.startswith("who judged: 2 raters") for each in lost)
    assert any(each.startswith("the reasons of 1 judgment") for each in lost)


def test_what_is_no_rating_is_said_to_be_left_out(
    said: Workspace, tick: Tick, tmp_path: Path
) -> None:
    kinds = ["adjudication", "repeat", "repeat", "gold"]
    facts = pl.DataFrame(
        {
            "query_id": ["q1"] * 4,
            "doc_id": ["d1", "d1", "d2", "d2"],
            "grade": [2.0, 2.0, 0.0, 0.0],
            "rater": ["eve", "ann", "ann", "ann"],
            "kind": kinds,
        }
    ).with_columns(source=pl.lit("human"), time_us=pl.lit(tick()), reason=pl.lit(None, pl.String))
    with said.store.begin() as c:
        judgments.record(c, said.golden.id, facts, None)
    told = export_golden_set(said, tmp_path / "x.csv", "csv", each_rater=True)
    assert told.kept[0] == "4 judgments of 3 queries"
    assert told.lost[0].startswith("the scale 0-3: the largest grade is 2")
    assert told.lost[1:] == ["1 adjudication", "1 gold judgment", "2 repeated judgments"]


def test_the_scale_survives_an_export_or_is_named_as_lost(said: Workspace, tmp_path: Path) -> None:
    lost = "the scale 0-3: the largest grade is 2; evaluate with the scale 0-3"
    for name, peer in EXCHANGES.items():
        if peer.write and peer.holds.judgments:
            told = export_golden_set(said, tmp_path / name, name)
            assert (lost in told.lost) == (name != "golden"), name
    assert read_qrels(tmp_path / "golden").scale == (0, 3)
    run = Run.from_dict({"q1": {"d9": 2.0, "d1": 1.0}})
    for name in ("beir", "trec"):  # and evaluate says that it goes by the largest grade
        notes = evaluate(tmp_path / name, run, ["nDCG@10"]).notes
        assert any("the largest grade; --scale declares it" in note for note in notes)


def test_a_golden_set_goes_through_a_workspace(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    golden = GoldenSet("docs", scale=(0, 3))
    golden.add("door", {"d1": 2, "d2": 0}, category="thing", difficulty=2)
    golden.add("not judged yet", category="task")
    golden.add("nothing is relevant", {})
    golden.add_from_log("wall", ["d3"], ["d3", "d4"])
    golden.save(tmp_path / "golden.json")
    taken = import_from(shop, tmp_path / "golden.json", now=tick())
    assert (taken.queries, taken.judgments) == (4, 4)
    assert taken.exchange.format == "golden"
    assert "1 query not judged yet" in taken.exchange.kept
    assert taken.exchange.lost == ["1 query without a relevant document"]
    with shop.store.read() as c:
        facts = judgments.current(c, shop.golden.id).frame
    # Clicks stay clicks: they count in no edition.
    assert set(facts.filter(pl.col("doc_id") == "d3")["source"]) == {"clicks"}

    told = export_golden_set(shop, tmp_path / "again.json", named_format("again.json"))
    assert told.format == "golden"
    again = GoldenSet.load(tmp_path / "again.json")
    assert again.scale == (0, 3)
    assert again["q1"].grades == {"d1": 2.0, "d2": 0.0}
    assert again["q1"].attributes == {"category": "thing", "difficulty": 2}
    assert again.to_judge == ["q2", "q3", "q4"]

    told = export_golden_set(shop, tmp_path / "list.json", "golden-list")
    assert "3 queries without judgments" in told.lost
    (item,) = json.loads((tmp_path / "list.json").read_text(encoding="utf-8"))
    assert item == {
        "query": "door",
        "relevant_docs": {"d1": 2, "d2": 0},
        "category": "thing",
        "difficulty": 2,
    }


def test_a_run_goes_out_under_the_ids_of_the_golden_set(
    said: Workspace, tick: Tick, tmp_path: Path
) -> None:
    store_runs(said, [Run.from_dict({"1": {"d1": 1.0}, "9": {}}, "one")], now=tick())
    (tmp_path / "q.csv").write_text("query_id,text\n1,Door\n", encoding="utf-8")
    import_from(said, tmp_path / "q.csv", now=tick())
    told = export_golden_set(said, tmp_path / "one.jsonl", "run", runs=["one"])
    assert read_run(tmp_path / "one.jsonl").to_dict() == {"q1": {"d1": 1.0}, "9": {}}
    (known_as,) = told.assumed
    assert known_as.endswith(
        "of run 'one' is known here under another id since an earlier import, such as 1 → q1"
    )
