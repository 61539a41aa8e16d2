"""Trends of a workspace: each history as ``karat trend`` reads it, whatever ails the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from karat.formats import read_qrels
from karat.formats.own import history
from karat.reports.release.trend_page import Remark
from karat.store.sql import judgments
from karat.tables import Qrels, Run
from karat.tables.release.history import Point, Value
from karat.workflows.golden.editions import freeze
from karat.workflows.golden.export import export_golden_set
from karat.workflows.golden.sampling import put_queries
from karat.workflows.release import stored_trends
from karat.workflows.release.stored_trends import (
    chart_of,
    editions_are_known,
    find_history,
    histories_of,
    kept_from,
    load_edition_hashes,
    points_of,
    slice_of,
)
from karat.workflows.release.trend import trend
from karat.workflows.workspace.fingerprints import fingerprint
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

NOW = 1_800_000_000_000_000


def point(day: int, *values: Value, run: str = "bm25", **hashes: str) -> Point:
    return Point(
        f"2026-03-{day:02}T02:00:00Z", "evaluate", run, None, None, "", "1", values,
        {"queries": "q", "qrels": "j", "run": f"r{day}", "corpus": "c"} | hashes,
    )  # fmt: skip


def falling(n: int = 14) -> list[Point]:
    """nDCG falls in small steps; RR stays; German queries are lacking a value in the end."""
    return [
        point(
            day,
            Value("RR@10", 0.5, 0.4, 0.6, 30),
            Value("nDCG@10", 0.8 - 0.01 * day, 0.7, 0.9, 30),
            Value("nDCG@10", None if day == n else 0.5, attribute="lang", slice="de"),
        )
        for day in range(1, n + 1)
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    make_workspace(root, now=NOW, environment={})
    named = (
        (root / "karat.toml")
        .read_text()
        .replace(
            'histories = ["history.jsonl"]',
            'histories = ["history.jsonl", "ci/b.jsonl", "c.jsonl"]',
        )
    )
    (root / "karat.toml").write_text(named)
    return root


@pytest.fixture
def opened(root: Path) -> Iterator[Workspace]:
    with open_workspace(root, now=NOW, environment={}) as found:
        yield found


def test_every_series_says_what_the_command_says(opened: Workspace, root: Path) -> None:
    path = root / "history.jsonl"
    history.append(path, *falling())
    found = histories_of(opened)[0]
    assert found.lacking is None
    assert [(each.measure, slice_of(each)) for each in found.series] == [
        ("nDCG@10", ""),  # it drifts
        ("nDCG@10", "lang=de"),  # nobody can tell
        ("RR@10", ""),
    ]
    whole, part = trend(path), trend(path, slice="lang=de")
    assert found.series == [whole.series[0], part.series[0], whole.series[1]]
    assert set(found.notes) == {*whole.notes, *part.notes}


def test_what_is_wrong_with_one_is_said_and_the_others_are_shown(
    opened: Workspace, root: Path
) -> None:
    history.append(root / "history.jsonl", *falling())
    (root / "ci").mkdir()
    (root / "ci/b.jsonl").touch()
    first, second, third = histories_of(opened)
    assert (first.lacking, len(first.series)) == (None, 3)
    assert (second.name, second.lacking) == ("ci/b.jsonl", "it has no points yet")
    assert third.lacking == "the file does not exist yet"
    assert third.fix == "karat evaluate … --history c.jsonl creates it"
    lines = (root / "history.jsonl").read_bytes().splitlines(keepends=True)
    (root / "ci/b.jsonl").write_bytes(lines[0] + b"{}\n" + lines[1])
    (root / "c.jsonl").write_text('{"something": "else"}\n')
    _, second, third = histories_of(opened)
    assert second.lacking is None
    assert (len(second.points), len(second.series)) == (2, 3)
    assert second.damaged == ["line 2: the line is not a point of a history"]
    assert second.fix == "delete the line, or restore the file from version control"
    assert third.lacking == "not a karat history"
    assert third.damaged == [third.lacking]
    (root / "c.jsonl").write_bytes(lines[0][:9] + b'"karat_history"\n' + b"{}\n")
    assert histories_of(opened)[2].lacking.startswith("line 1: ")  # no line is whole
    (root / "c.jsonl").unlink()
    (root / "c.jsonl").mkdir()
    assert histories_of(opened)[2].lacking


def test_a_last_line_that_is_cut_short_is_left_out_and_said(opened: Workspace, root: Path) -> None:
    history.append(root / "history.jsonl", *falling())
    data = (root / "history.jsonl").read_bytes()
    (root / "history.jsonl").write_bytes(data[:-40])
    found = histories_of(opened)[0]
    assert len(found.points) == 13
    assert "is truncated" in found.notes[0]


def test_a_history_is_read_once_until_its_file_changes(
    opened: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    real = history.read
    monkeypatch.setattr(
        stored_trends.histories, "read", lambda *given: (reads.append(1), real(*given))[1]
    )
    history.append(root / "history.jsonl", *falling(3))
    assert histories_of(opened)[0].points == histories_of(opened)[0].points
    assert len(reads) == 1
    history.append(root / "history.jsonl", point(20, Value("nDCG@10", 0.1)))
    assert len(histories_of(opened)[0].points) == 4
    assert len(reads) == 2


def test_a_history_is_found_by_name_or_place(opened: Workspace, root: Path) -> None:
    assert [find_history(opened, said).name for said in ("ci/b.jsonl", "1", "3")] == [  # type: ignore[union-attr]
        "ci/b.jsonl",
        "history.jsonl",
        "c.jsonl",
    ]
    for said in ("0", "4", "²", "other", "../karat.toml", ""):
        assert find_history(opened, said) is None


def test_a_point_stands_beside_its_mark(opened: Workspace, root: Path) -> None:
    line = falling(4)
    line[1] = replace(line[1], values=line[1].values[:1])  # without nDCG: no point of it
    history.append(root / "history.jsonl", *reversed(line))
    found = histories_of(opened)[0]
    series = found.find("bm25", "nDCG@10", "")
    assert series is not None
    assert [(p.time[8:10], mark.value) for p, mark in points_of(found, series)] == [
        ("01", pytest.approx(0.79)),
        ("03", pytest.approx(0.77)),
        ("04", pytest.approx(0.76)),
    ]
    assert found.find("bm25", "nDCG@10", "lang=fr") is None
    assert found.find("other", "", "") is None


def test_a_chart_is_drawn_once_for_what_it_shows(opened: Workspace, root: Path) -> None:
    pytest.importorskip("vl_convert")
    history.append(root / "history.jsonl", *falling())
    found = histories_of(opened)[0]
    series = found.series[0]
    remarks = [Remark("2026-03-05T12:00:00Z", "1", "out")]
    drawn = chart_of(found, series, 30, remarks)
    assert chart_of(found, series, 30, remarks) is drawn
    assert chart_of(found, series, 30, []) is not drawn
    assert chart_of(found, series, 5, [])["shown"] == 5


def test_points_lead_to_kept_runs_and_editions(
    opened: Workspace, root: Path, tmp_path: Path
) -> None:
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1.0]})
    run = Run.from_frame(frame, "bm25")
    store_runs(opened, [run], now=NOW)
    facts = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "grade": [2.0]}).with_columns(
        judgment=pl.lit(1), state=pl.lit("graded"), reason=pl.lit(None, pl.String),
        rater=pl.lit("ann"), source=pl.lit("human"), kind=pl.lit("rating"), time_us=pl.lit(NOW),
    )  # fmt: skip
    with opened.store.begin() as c:
        put_queries(c, opened.golden.id, pl.DataFrame({"query_id": ["q"], "text": ["x"]}), NOW)
        judgments.record(c, opened.golden.id, facts, None)
    freeze(opened, "first", now=NOW)
    export_golden_set(opened, tmp_path / "first.csv", "csv", edition="first")
    qrels = fingerprint(read_qrels(tmp_path / "first.csv"))
    hashes = {"run": fingerprint(run), "qrels": qrels}
    points = [replace(point(1), hashes=hashes), point(2), replace(point(3), hashes={})]
    assert not editions_are_known(opened)
    assert [each.edition for each in kept_from(opened, points)] == [None, None, None]
    load_edition_hashes(opened)
    assert editions_are_known(opened)
    known, unknown, bare = kept_from(opened, points)
    assert (known.run, known.edition) == (1, "first")
    assert (unknown.run, unknown.edition) == (bare.run, bare.edition) == (None, None)
    # On the golden set's scale, as formats say it that hold a scale.
    graded = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "grade": [2.0]})
    scaled = fingerprint(Qrels(graded).on_scale((0.0, 3.0)))
    assert scaled != qrels
    [found] = kept_from(opened, [replace(point(1), hashes={"qrels": scaled})])
    assert found.edition == "first"


@pytest.mark.skipif(os.name == "nt", reason="needs modes of files")
def test_a_file_nobody_may_read_is_said(opened: Workspace, root: Path) -> None:
    path = root / "history.jsonl"
    history.append(path, *falling(2))
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("whoever runs this may read everything")
    assert "Permission denied" in str(histories_of(opened)[0].lacking)
