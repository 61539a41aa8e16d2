"""The catalogue of measures, printed from their entries."""

from __future__ import annotations

import io
import json
import shlex

import pytest

from karat.measures import Entry, entries
from karat.measures.tasks import TASKS, Task
from karat.reports.offline.catalogue import (
    as_json,
    example_text,
    markdown,
    query_spellings,
    show_entries,
    show_entry,
    show_task,
)
from karat.reports.writers.terminal import console

ENTRIES = {entry.symbol: entry for entry in entries()}


def test_every_measure_has_a_line_of_80_columns_at_most() -> None:
    out = io.StringIO()
    show_entries(entries(), console(out, 80))
    text = out.getvalue()
    for line in text.splitlines()[:-1]:
        assert len(line) <= 80
    for symbol in ENTRIES:
        assert f"\n {symbol}" in text or f"\n{symbol}" in text, symbol


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.symbol)
def test_an_entry_is_shown_whole(entry: Entry) -> None:
    out = io.StringIO()
    show_entry(entry, console(out, 80))
    text = " ".join(out.getvalue().split())
    for part in (entry.title, entry.source.split()[0], entry.undefined.split()[0], "formula"):
        assert part in text
    json.dumps(as_json(entry), allow_nan=False)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_advice_ends_with_what_to_type(task: Task) -> None:
    out = io.StringIO()
    show_task(task, console(out, 80))
    last = out.getvalue().splitlines()[-1]
    assert last.startswith("karat evaluate QRELS RUN -m "), "on one line, to be copied"
    assert shlex.split(last)[5::2] == [advice.measure for advice in task.advice]


def test_how_a_measure_is_typed() -> None:
    assert query_spellings(ENTRIES["AP"]) == "AP(rel=)[@k]"
    assert query_spellings(ENTRIES["P"]) == "P(rel=)@k"
    assert query_spellings(ENTRIES["NumRet"]) == "NumRet"


def test_the_worked_example_in_a_sentence() -> None:
    assert example_text(ENTRIES["P"]) == (
        "retrieved grades 1 0 1 0 0 1 0 0 0 0, not retrieved 1 1: P@3 = 0.6667; "
        "A and B of A X B: 2/3"
    )


def test_the_page_has_every_measure_once() -> None:
    text = markdown(entries())
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [f"## {entry.symbol}: {entry.title}" for entry in entries()]
