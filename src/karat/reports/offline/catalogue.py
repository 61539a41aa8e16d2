"""The catalogue of measures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from karat.measures import Entry, Parameter
from karat.measures.entry import REQUIRED
from karat.measures.tasks import TASKS, Task
from karat.reports.table import Column, Table
from karat.reports.writers.tables import draw

_INTRODUCTION = """\
Printed from the registry by `karat measures --format md`; do not edit by hand. Names are read
without regard to case, in karat's spelling, ir_measures', trec_eval's, or without quotes for a
shell: `nDCG(gain=exp)@10`, `nDCG(dcg='exp-log2')@10`, `ndcg_cut_10`, `nDCG:gain=exp@10`. Relevant
means grade 1 or better unless `rel` says otherwise.
"""
_AT = {"none": "", "optional": "[@k]", "required": "@k", "recall": "@recall", "multiple": "@x"}


def show_entries(entries: Sequence[Entry], out: Console) -> None:
    columns = [
        Column("symbol", "Measure", "words", style=lambda _: "strong",
               text=lambda entry: f"{entry.symbol}{_AT[entry.cutoff]}"),
        Column("says", "Meaning"),
    ]  # fmt: skip
    draw(Table("", columns, entries), out)
    names = ", ".join(task.name for task in TASKS)
    out.print(f"karat measures NAME explains one; --for TASK advises: {names}")


def show_entry(entry: Entry, out: Console) -> None:
    out.print(Text.assemble((entry.symbol, "bold"), f": {entry.title}"))
    out.print(f"{entry.says[:1].upper()}{entry.says[1:]}.\n")
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    top = "∞" if entry.high is None else f"{entry.high:g}"
    rows = [
        ("type", query_spellings(entry)),
        ("also", ", ".join(entry.aliases)),
        ("formula", entry.formula),
        ("range", f"{entry.low:g} to {top}, better: {entry.direction}"),
        ("over queries", entry.aggregate),
        ("undefined", entry.undefined),
        ("ties", entry.with_ties),
        ("unjudged", entry.with_unjudged),
        ("source", entry.source),
        *((parameter.name, f"{parameter.meaning} ({_default(parameter)})")
          for parameter in entry.parameters),
        *(("equals", f"{equal.tool}: {equal.typed}" + (f" ({equal.note})" if equal.note else ""))
          for equal in entry.equals),
        ("example", example_text(entry)),
    ]  # fmt: skip
    for label, text in rows:
        if text:
            grid.add_row(label, Text(text))
    out.print(grid)


def show_task(task: Task, out: Console) -> None:
    out.print(Text.assemble((task.name, "bold"), f": {task.title}; {task.users}"))
    columns = [
        Column("measure", "Measure", "words", style=lambda _: "strong"),
        Column("why", "Why"),
    ]
    draw(Table("", columns, task.advice), out)
    out.print(f"Caution: {task.beware}.")
    if task.policy:
        out.print(f"\nA policy for karat gate, to copy into {task.name}.toml:\n")
        out.print(task.policy, end="", soft_wrap=True)
        out.print(f"\nkarat gate --policy {task.name}.toml QRELS RUN", soft_wrap=True)
    typed = " ".join(f"-m {shlex.quote(advice.measure)}" for advice in task.advice)
    out.print(f"\nkarat evaluate QRELS RUN {typed}", soft_wrap=True)


def task_as_json(task: Task) -> dict[str, Any]:
    return {
        "task": task.name,
        "also": list(task.also),
        "title": task.title,
        "users": task.users,
        "measures": [{"measure": row.measure, "why": row.why} for row in task.advice],
        "beware": task.beware,
        "policy": task.policy or None,
    }


@dataclass(frozen=True)
class MeasureEntry:
    """A measure of the catalogue."""

    symbol: str
    title: str
    says: str  # what it measures, in a sentence
    typed: str  # its syntax with parameters
    aliases: list[str]
    formula: str
    low: Any  # its lowest value, in words; likewise `high`
    high: Any
    direction: str
    aggregate: str  # how the values of queries are combined
    undefined: str  # when it is undefined
    ties: str  # what ties do to it
    unjudged: str  # what unjudged documents do to it
    source: str
    parameters: list[dict[str, str]]  # `name`, `meaning` and `default` of each
    # Measures of other tools that it equals: `tool`, `typed` and `note`
    equals: list[dict[str, Any]]
    trec_eval: str | None  # its name in trec_eval; None without one
    example: str | None  # a worked example; None without one


def as_json(entry: Entry) -> dict[str, Any]:
    own = {
        "typed": query_spellings(entry),
        "aliases": list(entry.aliases),
        "ties": entry.with_ties,
        "unjudged": entry.with_unjudged,
        "parameters": [
            {"name": p.name, "meaning": p.meaning, "default": _default(p)} for p in entry.parameters
        ],
        "equals": [{"tool": e.tool, "typed": e.typed, "note": e.note} for e in entry.equals],
        "trec_eval": entry.trec_at or entry.trec,
        "example": example_text(entry) or None,
    }
    names = (each.name for each in fields(MeasureEntry))
    return {name: own[name] if name in own else getattr(entry, name) for name in names}


def query_spellings(entry: Entry) -> str:
    """The syntax of a measure with its parameters: ``nDCG(gain=, discount=, base=)@k``."""
    names = [p.name if p.default is REQUIRED else f"{p.name}=" for p in entry.parameters]
    inside = f"({', '.join(names)})" if names else ""
    return f"{entry.symbol}{inside}{_AT[entry.cutoff]}"


def markdown(entries: Sequence[Entry]) -> str:
    """The whole catalogue as the reference page ``docs/reference/measures.md``."""
    out = ["# Measures\n", _INTRODUCTION]
    for entry in entries:
        out.append(_page(entry))
    return "\n".join(out)


def _page(entry: Entry) -> str:
    top = "∞" if entry.high is None else f"{entry.high:g}"
    lines = [
        f"## {entry.symbol}: {entry.title}\n",
        f"{entry.says[:1].upper()}{entry.says[1:]}.\n",
        f"- Type: `{query_spellings(entry)}`"
        + (f", also {', '.join(f'`{alias}`' for alias in entry.aliases)}" if entry.aliases else ""),
        f"- Formula: {entry.formula}",
        f"- Range: {entry.low:g} to {top}; better: {entry.direction}",
        f"- Over queries: {entry.aggregate}",
        f"- Undefined: {entry.undefined}",
        f"- Where documents tie: {entry.with_ties}",
        f"- Where documents are unjudged: {entry.with_unjudged}",
        f"- Source: {entry.source}",
    ]
    for parameter in entry.parameters:
        lines.append(f"- `{parameter.name}`: {parameter.meaning} ({_default(parameter)})")
    for equal in entry.equals:
        note = f" ({equal.note})" if equal.note else ""
        lines.append(f"- Equals {equal.tool} `{equal.typed}`{note}")
    if entry.example:
        lines.append(f"- Example: {example_text(entry)}")
    return "\n".join(lines) + "\n"


def example_text(entry: Entry) -> str:
    example = entry.example
    if example is None:
        return ""
    grades = " ".join("unjudged" if g is None else f"{g:g}" for g in example.retrieved)
    missed = " ".join(f"{g:g}" for g in example.missed)
    lost = f", not retrieved {missed}" if missed else ""
    return (
        f"retrieved grades {grades}{lost}: {example.measure} = {example.value:g}; "
        f"{example.arithmetic}"
    )


def _default(parameter: Parameter) -> str:
    if parameter.default is REQUIRED:
        return "no default"
    if parameter.default is None:
        return "not set"
    return f"default {parameter.show(parameter.default)}"
