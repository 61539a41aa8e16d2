"""Stored diagnoses are computed again when what they are made from changes."""

from __future__ import annotations

from tests.workflows.offline.test_judgment_source import ORIGIN, grades

from karat.formats.own.click_grades import click_grades_file, write_click_grades
from karat.tables import Run
from karat.workflows.diagnosis.stored_diagnoses import Diagnosing
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace


def test_new_grades_from_clicks_make_another_diagnosis(shop: Workspace) -> None:
    store_runs(shop, [Run.from_dict({"q1": {"a": 1.0}}, "old")], now=1)
    [row] = find_runs(shop, ["old"])
    before = Diagnosing(shop, row, []).key
    assert Diagnosing(shop, row, []).key == before
    path = click_grades_file(shop.workspace.root, "shop")
    write_click_grades(grades({"q1": {"a": 0.02}}), ORIGIN, path)
    assert Diagnosing(shop, row, []).key != before
