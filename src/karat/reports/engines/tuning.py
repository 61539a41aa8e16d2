"""The outcome of a tuning, as tables, JSON and a line of karat.toml."""

from __future__ import annotations

import json
from textwrap import shorten
from typing import Any

from rich.console import Console

from karat.reports.phrases.numbers import counted
from karat.reports.table import DASH, Column, Table, to
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes
from karat.tables.searched import PartResult, Tuned

_TEXT = 45  # characters of a query
_PARAMETERS = (
    Column("name", "Parameter", "code"),
    Column("declared", "Declared", "words", text=lambda row: str(row.declared)),
    Column("best", "Best", "words", text=lambda row: str(row.best)),
    Column("searched", "Searched", "words"),
)
_LATENCY = (
    Column("what", "Held-out queries", "words"),
    Column("baseline_value", "Declared", "number", unit=" ms", digits=1),
    Column("candidate_value", "Best", "number", unit=" ms", digits=1),
)
_LOSSES = (
    Column("query_id", "Query that loses", "code"),
    Column("text", "Text", text=lambda row: shorten(row.text or "", _TEXT, placeholder=" …")),
    Column("baseline_value", "Declared", "number"),
    Column("candidate_value", "Best", "number"),
)


def show(tuned: Tuned, out: Console, *, all_notes: bool = False) -> None:
    trials = counted(tuned.trials, "combination")
    out.print(plain(f"{tuned.engine}: {trials} asked ({tuned.stopped})"), soft_wrap=True)
    draw(Table("", _PARAMETERS, tuned.parameters), out, close=True)
    draw(parts_table(tuned), out, close=True)
    if tuned.latency:
        draw(Table("", _LATENCY, tuned.latency), out, close=True)
    if tuned.losses:
        draw(Table("", _LOSSES, tuned.losses), out, close=True)
    show_footnotes(tuned.notes, out, every=all_notes)
    prefix = "cannot tell: " if tuned.verdict == "cannot tell" else ""
    out.print(plain(f"{prefix}{tuned.reason}", "bold"))


def parts_table(tuned: Tuned) -> Table:
    """One row for each part of the golden set."""
    heading = "Interval" if tuned.level is None else f"{100 * (1 - tuned.level):.4g} %"
    columns = (
        Column("part", tuned.measure, "words"),
        Column("n", "n", "count"),
        Column("declared_value", "Declared", "number", digits=4),
        Column("best_value", "Best", "number", digits=4),
        Column("difference", "Gain", "signed", digits=4),
        Column("ci_low", heading, "signed", text=_interval),
        Column("p", "p", "p"),
    )
    return Table("", columns, [part for part in (tuned.dev, tuned.held_out) if part])


def _interval(row: PartResult) -> str:
    if row.ci_low is None or row.ci_high is None:
        return "searched on it" if row.part == "dev" else DASH
    return to(f"{row.ci_low:+.4f}".replace("-", "−"), f"{row.ci_high:+.4f}".replace("-", "−"))


def to_json(tuned: Tuned) -> str:
    return json.dumps(tuned.to_dict(), indent=2, ensure_ascii=False, default=str) + "\n"


def params_line(tuned: Tuned) -> str:
    """The best parameters as a line of ``[engine.NAME]`` in karat.toml."""
    pairs = ", ".join(f"{_key(name)} = {_toml(value)}" for name, value in tuned.params.items())
    return f"params = {{ {pairs} }}\n"


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else json.dumps(name)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(name)} = {_toml(inner)}" for name, inner in value.items())
        return f"{{ {pairs} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | str | int | float):
        return json.dumps(value, ensure_ascii=False)
    return str(value)  # a date or a time
