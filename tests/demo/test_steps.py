"""The demo's history: real rankings, at real times, once each."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from karat.demo.build import Demo
from karat.demo.steps import HISTORY, RUN, keep_steps, steps
from karat.formats import read_run
from karat.formats.own import history

NOW = 1_800_000_000_000_000


def test_each_step_is_a_ranking_that_was_measured_and_later_demos_add_one(
    demo: Demo, tmp_path: Path, *, deep: bool
) -> None:
    for each in demo.directory.iterdir():
        if each.name not in {HISTORY, "karat.toml"}:  # not a workspace, so it stays as it is
            (tmp_path / each.name).symlink_to(each)
    path = Path(shutil.copy(demo.directory / HISTORY, tmp_path))  # as the command wrote it
    points = history.read(path)
    assert [point.commit for point in points] == [
        "1 titles",
        "2 titles and texts",
        "3 with semantic, 10 of each",
        "4 with semantic, 100 of each",
    ]
    assert {(point.run, point.kind) for point in points} == {(RUN, "gate")}
    assert points[1].verdict == "pass"  # it is the baseline itself
    if deep:  # in the demo of a build, time stands still
        assert all(one.time < two.time for one, two in pairwise(points))
    assert keep_steps(replace(demo, directory=tmp_path), lambda: NOW) == path
    assert [point.commit for point in history.read(path)][4:] == ["4 with semantic, 100 of each"]


def test_the_last_step_is_the_fused_run(demo: Demo) -> None:
    *_, (label, run) = steps(demo)
    assert label.startswith("4")
    written = read_run(demo.runs[2]).to_dict()
    assert {each: found for each, found in run.to_dict().items() if found} == written
