"""The demo's grades from clicks: next to people's, and one that raw click rates get wrong."""

from __future__ import annotations

from pathlib import Path

from karat.demo.build import Demo
from karat.formats.own.click_grades import click_grades_file, read_click_grades
from karat.store.sql import judgments
from karat.workflows.workspace.workspace import open_workspace

NOW = 1_800_000_000_000_000


def test_it_says_what_clicks_graded_and_what_they_are_worth(built_demo: Path) -> None:
    printed = " ".join((built_demo / "printed.txt").read_text("utf-8").split())
    assert "of the golden set have a grade from clicks next to people's" in printed
    assert "this is not evidence" in printed
    assert "Raw click rates overrate" in printed
    assert "shown first, it was clicked" in printed


def test_they_are_in_a_file_of_their_own(demo: Demo) -> None:
    with open_workspace(demo.directory, now=NOW, environment={}) as opened:
        grades, origin = read_click_grades(
            click_grades_file(opened.workspace.root, opened.golden.name)
        )
        with opened.store.read() as connection:
            stored = judgments.current(connection, opened.golden.id).ratings
    assert (origin.model, origin.identified, origin.simulated) == ("PBM", True, True)
    assert grades.height == origin.pairs > 100
    assert "clicks" not in set(stored["source"])
