"""Kept comparisons: the numbers of ``karat compare``, computed once, whole or not at all."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.choosing import deep_but

from karat.cli.main import main
from karat.errors import UsageError
from karat.formats import read_run
from karat.formats.tables.writing import write_queries
from karat.store.sql import audit, comparisons, pairs, runs
from karat.tables.workspace import ComparisonRow
from karat.workflows.golden.editions import freeze
from karat.workflows.golden.import_ import import_from
from karat.workflows.judging.in_place import rate
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.run_import import remove_comparison, remove_run
from karat.workflows.workspace.stored_comparisons import (
    TWICE_US,
    Asked,
    ask,
    compute,
    kept,
    side,
    to_compute,
)
from karat.workflows.workspace.stored_inputs import judged
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

NOW = 1_800_000_000_000_000
Tick = Callable[[], int]


@pytest.fixture(scope="module")
def demo(built_demo: Path) -> Path:
    """The documentation of this Python, 88 real queries, and what three searches return."""
    return built_demo / "demo"


@pytest.fixture(scope="module")
def made_workspace(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo in a workspace, to copy."""
    folder = tmp_path_factory.mktemp("made") / "help"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KARAT_STORE", raising=False)
        make_workspace(folder, now=NOW, name="help")
        with open_workspace(folder, now=NOW) as found:
            import_from(found, demo / "queries.jsonl", now=NOW, format="queries")
            import_from(found, demo / "qrels/test.tsv", now=NOW)
            store_runs(found, [demo / "runs/bm25.trec", demo / "runs/hybrid.trec"], now=NOW)
    return folder


@pytest.fixture
def opened(
    made_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    """The demo in a workspace."""
    monkeypatch.delenv("KARAT_STORE", raising=False)
    shutil.copytree(made_workspace, tmp_path / "help")
    with open_workspace(tmp_path / "help", now=NOW) as found:
        yield found


def numbers_of(opened: Workspace) -> list[int]:
    with opened.store.read() as connection:
        return [row.id for row in runs.runs(connection, opened.golden.id)]


def row_of(opened: Workspace, number: int) -> ComparisonRow:
    with opened.store.read() as connection:
        found = comparisons.find(connection, number)
    assert found is not None
    return found


def made(opened: Workspace, tick: Tick, **asked: object) -> ComparisonRow:
    number = ask(opened, Asked(numbers_of(opened), **asked), by="ann", now=tick())  # type: ignore[arg-type]
    compute(opened, number, tick)
    return row_of(opened, number)


def test_the_numbers_are_those_of_the_command(
    opened: Workspace,
    demo: Path,
    tick: Tick,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = made(opened, tick, by=["class", "query_length"], margin=0.02)
    found = kept(opened, row)
    assert found is not None
    given = judged(opened)
    write_queries(given.queries, tmp_path / "queries.jsonl")
    given.qrels.frame.write_csv(tmp_path / "qrels.csv")
    files = [
        str(tmp_path / "qrels.csv"),
        *(str(demo / f"runs/{n}.trec") for n in ("bm25", "hybrid")),
    ]
    more = ["--queries", str(tmp_path / "queries.jsonl"), "--scale", "0-3", "--margin", "0.02"]
    more += ["--by", "class", "--by", "query_length", "--judge-next", "50", "--format", "json"]
    monkeypatch.setattr(sys, "argv", ["karat", "compare", *files, *more])
    with pytest.raises(SystemExit):
        main()
    said = json.loads(capsys.readouterr().out)
    rows = said.pop("queries")
    assert json.loads(json.dumps(found.to_dict())) == said
    listed = {
        (r["measure"], r["query_id"]): (r["baseline_value"], r["candidate_value"], r["share"])
        for r in found.frame.iter_rows(named=True)
    }
    assert listed == {
        (r["measure"], r["query_id"]): (r["baseline_value"], r["candidate_value"], r["share"])
        for r in rows
    }
    for each in found.comparison.differences:
        of_measure = found.frame.filter(measure=each.measure)["outcome"].to_list()
        counts = tuple(of_measure.count(way) for way in ("better", "same", "worse"))
        assert counts == (each.wins, each.ties, each.losses)


def test_one_query_has_its_rankings_and_what_each_document_adds(
    opened: Workspace, tick: Tick, deep: bool
) -> None:
    row = made(opened, tick, measures=["nDCG@10"])
    found = kept(opened, row)
    assert found is not None
    for query_id in found.frame["query_id"].unique().sort()[: 12 if deep else 4]:
        shown = side(opened, found, row, query_id, "nDCG@10")
        assert shown is not None
        before, after = shown.query.rankings
        run = read_run(opened.workspace.root / stored_comparisons.runs_of(opened, row)[0].path)
        assert [one.doc_id for one in before.top] == run.of(query_id)["doc_id"].to_list()[:10]
        parts = [one.effect or 0.0 for one in (*after.top, *after.below)]
        mine = found.frame.filter(query_id=query_id, measure="nDCG@10")
        assert sum(parts) + (after.rest or 0.0) == pytest.approx(mine["difference"][0], abs=1e-9)
        assert shown.now == {}
    assert side(opened, found, row, "no such query", "nDCG@10") is None


def test_a_grade_given_in_place_shows_at_once_and_makes_the_comparison_older(
    opened: Workspace, tick: Tick
) -> None:
    row = made(opened, tick, measures=["P@100", "nDCG@10"])
    found = kept(opened, row)
    assert found is not None
    for query_id in found.frame["query_id"].unique().sort():
        shown = side(opened, found, row, query_id, "P@100")
        assert shown is not None
        missing = [one.doc_id for one in shown.query.rankings[0].top if one.grade is None]
        if missing:
            break
    rate(opened, "ann", query_id, missing[0], 3.0, now=tick())
    again = side(opened, found, row, query_id, "P@100")
    assert again is not None
    grades = {one.doc_id: one.grade for one in again.query.rankings[0].top}
    assert grades[missing[0]] == 3.0
    assert again.changed == 1
    assert again.now["P@100"] != again.query.values["P@100"]
    with opened.store.read() as connection:
        given = comparisons.judged_since(connection, opened.golden.id, row.judgment_id or 0)
    assert len(given) == 1
    stored_comparisons.request_again(opened, row, by="ann", now=tick())
    compute(opened, row.id, tick)
    newer = kept(opened, row_of(opened, row.id))
    assert newer is not None
    settled = side(opened, newer, row, query_id, "P@100")
    assert settled is not None
    assert list(settled.query.values["P@100"]) == list(again.now["P@100"])


def test_an_edition_does_not_move(opened: Workspace, tick: Tick) -> None:
    freeze(opened, "first", now=tick())
    row = made(opened, tick, edition="first", measures=["nDCG@10"])
    found = kept(opened, row)
    assert found is not None
    query_id = found.frame["query_id"][0]
    before = side(opened, found, row, query_id, "nDCG@10")
    assert before is not None
    rate(opened, "ann", query_id, before.query.rankings[1].top[0].doc_id, 3.0, now=tick())
    after = side(opened, found, row, query_id, "nDCG@10")
    assert after is not None
    assert after.query.rankings == before.query.rankings
    assert after.changed == 0


def folder(opened: Workspace, row: ComparisonRow) -> Path:
    return opened.workspace.root / "artifacts/comparison" / str(row.key)


@pytest.mark.parametrize("harm", deep_but(["turned"], ["cut", "gone", "turned", "head", "empty"]))
def test_damaged_files_are_computed_again_and_never_shown(
    opened: Workspace, tick: Tick, harm: str
) -> None:
    row = made(opened, tick, measures=["AP"])
    found = kept(opened, row)
    assert found is not None
    file, head = folder(opened, row) / "queries.parquet", folder(opened, row) / "head.json"
    data = bytearray(file.read_bytes())
    if harm == "cut":
        file.write_bytes(data[:-10])
    elif harm == "gone":
        file.unlink()
    elif harm == "turned":
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    else:
        text = head.read_text()
        head.write_text(text.replace("0.", "1.", 1) if harm == "head" else "")
    opened.artifacts.forget()  # as after a restart
    assert kept(opened, row) is None
    assert to_compute(row, None)
    compute(opened, row.id, tick)
    again = kept(opened, row_of(opened, row.id))
    assert again is not None
    assert again.comparison == found.comparison
    assert row_of(opened, row.id).key == row.key


@pytest.mark.deep  # threads; one after the other: below
def test_several_that_compute_at_once_get_the_same(opened: Workspace, tick: Tick) -> None:
    number = ask(opened, Asked(numbers_of(opened), ["AP"]), by="ann", now=tick())
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: compute(opened, number, lambda: NOW), range(4)))
    row = row_of(opened, number)
    assert row.state == "done"
    assert kept(opened, row) is not None
    assert [each.name for each in folder(opened, row).parent.iterdir()] == [row.key]


def test_the_same_is_computed_once(
    opened: Workspace, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(opened, tick, measures=["AP"], name="one")
    monkeypatch.setattr(stored_comparisons, "compare", None)
    second = made(opened, tick, measures=["AP"], name="two")
    assert second.key == first.key
    remove_comparison(opened, first, person="ann", now=tick())
    assert kept(opened, second) is not None
    remove_comparison(opened, second, person="ann", now=tick())
    assert not folder(opened, second).exists()


def test_numbers_of_an_older_version_are_taken_over(opened: Workspace, tick: Tick) -> None:
    row = made(opened, tick, measures=["AP"])
    found = kept(opened, row)
    assert found is not None
    place = opened.workspace.root / "comparisons" / str(row.id)
    place.mkdir(parents=True)
    files = {}
    for name, path in found.files.tables.items():
        files[name] = {"file": f"{name}-1a2b3c4d.parquet", "sha256": ""}
        shutil.copy(path, place / files[name]["file"])
    attempt = "0123456789abcdef"
    body = json.dumps({"head": {**found.files.head, "attempt": attempt}, "files": files})
    old = json.dumps({"karat_kept": 2, "sha256": "", "body": body})
    (place / "kept.json").write_text(old, encoding="utf-8")
    shutil.rmtree(opened.workspace.root / "artifacts")
    opened.artifacts.forget()
    assert kept(opened, replace(row, key="another of 16 cs")) is None
    older = kept(opened, replace(row, key=attempt))
    assert older is not None
    assert older.comparison == found.comparison
    assert not place.exists()


def test_what_cannot_be_computed_says_why(opened: Workspace, tick: Tick) -> None:
    number = ask(opened, Asked(numbers_of(opened), by=["colour"]), by="ann", now=tick())
    compute(opened, number, tick)
    row = row_of(opened, number)
    assert row.state == "failed"
    assert "colour" in str(row.error)
    assert not to_compute(row, None)
    by = ["query_form:quartiles"]
    banded = ask(opened, Asked(numbers_of(opened), by=by), by="ann", now=tick())
    compute(opened, banded, tick)
    # Whoever reads it looks at a page, and cannot type "--by query_form".
    assert str(row_of(opened, banded).error).endswith("fix: slice by query_form")


def test_a_run_whose_file_is_gone_says_so(opened: Workspace, tick: Tick) -> None:
    number = ask(opened, Asked(numbers_of(opened), ["AP"]), by="ann", now=tick())
    for path in opened.workspace.runs.glob("*.parquet"):
        path.unlink()
    compute(opened, number, tick)
    assert row_of(opened, number).state == "failed"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"runs": [1]}, "needs two runs"),
        ({"runs": [1, 99]}, "unknown run"),
        ({"measures": ["nDGC@10"]}, "nDGC"),
        ({"margin": 0.0}, "margin"),
        ({"edition": "secnd"}, "secnd"),
        ({"name": "x\N{RIGHT-TO-LEFT OVERRIDE}y"}, "the name of a comparison contains"),
        ({"name": "../../etc/passwd"}, "the name of a comparison cannot be"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    opened: Workspace, tick: Tick, changed: dict[str, object], words: str
) -> None:
    good = Asked(numbers_of(opened))
    with pytest.raises(UsageError, match=words):
        ask(opened, replace(good, **changed), by="ann", now=tick())  # type: ignore[arg-type]


def test_pairs_to_judge_next_go_into_the_queue(opened: Workspace, tick: Tick) -> None:
    row = made(opened, tick, measures=["R@100"])
    found = kept(opened, row)
    assert found is not None
    wanted = {(each.query_id, each.doc_id) for each in found.comparison.judge_next}
    assert wanted
    put = stored_comparisons.queue_next(opened, row, found, by="ann", now=tick())
    assert put.added == len(wanted)
    with opened.store.read() as connection:
        queued = pairs.frame(connection, opened.golden.id).filter(chosen_by="comparison")
    assert set(queued.select("query_id", "doc_id").iter_rows()) == wanted
    assert stored_comparisons.queue_next(opened, row, found, by="ann", now=tick()).added == 0


def test_what_is_sent_twice_is_one_comparison(opened: Workspace, tick: Tick) -> None:
    runs_of_it = numbers_of(opened)

    def asked(by: str = "ann", now: int = NOW, **more: object) -> int:
        return ask(opened, Asked(runs_of_it, ["R@100"], **more), by=by, now=now)  # type: ignore[arg-type]

    first = asked()
    assert asked(now=NOW + 1_000_000) == first
    with opened.store.read() as connection:
        noted = audit.frame(connection).filter(action="make comparison")
    assert noted.height == 1
    others = {asked(by="ben"), asked(margin=0.1), asked(name="x"), asked(now=NOW + 2 * TWICE_US)}
    assert first not in others
    assert len(others) == 4
    compute(opened, first, tick)
    assert asked(now=NOW + 1) == first, "of the same judgments"
    found = kept(opened, row_of(opened, first))
    assert found is not None
    pair = found.comparison.judge_next[0]
    rate(opened, "ann", pair.query_id, pair.doc_id, 1.0, now=tick())
    assert asked(now=NOW + 2) != first


def test_two_of_the_same_runs_can_be_told_apart(opened: Workspace, tick: Tick) -> None:
    runs_of_it = numbers_of(opened)
    same = [Asked(runs_of_it), Asked(runs_of_it, ["AP"], margin=0.1), Asked(runs_of_it)]
    at = [NOW, NOW, NOW + 2 * TWICE_US]
    made = [ask(opened, each, by="ann", now=now) for each, now in zip(same, at, strict=True)]
    first, second, third = (row_of(opened, number).name for number in made)
    assert (second, third) == (f"{first}, AP, margin 0.1", f"{first} (2)")


def test_a_run_that_goes_meanwhile_is_not_compared(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = numbers_of(opened)
    editions = stored_comparisons.list_editions

    def removed(there: Workspace) -> object:
        with opened.store.read() as connection:
            row = runs.runs(connection, opened.golden.id)[1]
        remove_run(opened, row, person="ben", now=NOW)
        return editions(there)

    monkeypatch.setattr(stored_comparisons, "list_editions", removed)
    with pytest.raises(UsageError, match="unknown run"):
        ask(opened, Asked(chosen), by="ann", now=NOW)
    with opened.store.read() as connection:
        assert comparisons.comparisons(connection, opened.golden.id) == []
