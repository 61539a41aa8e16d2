"""The demo's machine judge: a fake that says so, needs no key, and narrows an interval."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from karat.demo.build import Demo
from karat.demo.judge import GRADES, JUDGE, PEOPLE, keep_judge
from karat.formats import read_qrels
from karat.formats.own.judges import read_judge
from karat.formats.own.machine_grades import read_grades
from karat.workflows.golden.queries import judgments_in
from karat.workflows.judging.autojudge import run
from karat.workflows.judging.machine_grades import pairs_of_golden_set
from karat.workflows.workspace.workspace import open_workspace

NOW = 1_800_000_000_000_000


@pytest.fixture
def copied(demo: Demo, tmp_path: Path) -> Demo:
    folder = tmp_path / "demo"
    shutil.copytree(demo.directory, folder, ignore=shutil.ignore_patterns("engines.db", "events"))
    runs = tuple(folder / "runs" / path.name for path in demo.runs)
    return replace(demo, directory=folder, queries=folder / "queries.jsonl", runs=runs)


def test_it_says_that_it_is_a_fake_and_what_its_grades_bought(built_demo: Path) -> None:
    printed = " ".join((built_demo / "printed.txt").read_text("utf-8").split())
    assert "A fake machine judge, made for the demonstration" in printed
    assert "fake@" in printed
    assert "no model was asked" in printed


def test_kept_again_it_is_not_asked_again(copied: Demo) -> None:
    with open_workspace(copied.directory, now=NOW, environment={}) as opened:
        before = judgments_in(opened).filter(source="llm")
    found = keep_judge(copied, now=NOW)
    last = found.report.judge.last
    assert last is not None
    assert last.pairs - last.known == last.spent.attempts <= 24  # for drift
    with open_workspace(copied.directory, now=NOW, environment={}) as opened:
        after = judgments_in(opened).filter(source="llm")
    assert after["judgment"].equals(before["judgment"])
    assert after["rater"].str.starts_with(f"{JUDGE}@").all()
    assert after["reason"].unique().to_list() == ["a fake judge, made for the demonstration"]
    assert found.report.passport is not None
    assert found.report.passport.verdict == "certified"
    assert "ambiguous" in found.report.may_not


def test_the_interval_is_that_of_people_and_narrower(copied: Demo) -> None:
    row = keep_judge(copied, now=NOW).bought
    assert row.ci_high - row.ci_low < 0.9 * (row.people_high - row.people_low)  # type: ignore[operator]
    assert (row.judged, row.machine_only) == (20, 60)
    people = read_qrels(copied.directory / PEOPLE).frame
    every = read_qrels(copied.directory).frame
    assert people.join(every, on=["query_id", "doc_id", "grade"]).height == people.height


def test_karat_toml_declares_the_same_judge(copied: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "demo_judge", raising=False)  # of another demo
    shutil.rmtree(copied.directory / "judges")
    with open_workspace(copied.directory, now=NOW, environment={}) as opened:
        pairs = [p for p in pairs_of_golden_set(opened).pairs if p.query_id == "q01"]
    found = run(read_judge(JUDGE, copied.directory), pairs)
    given = pl.DataFrame(
        [(each.query_id, each.doc_id, each.verdict.grade) for each in found.judged],
        schema=["query_id", "doc_id", "grade"],
        orient="row",
    )
    known = read_grades(copied.directory / GRADES)
    assert given.height > 2
    assert given.join(known, on=["query_id", "doc_id", "grade"]).height == given.height
