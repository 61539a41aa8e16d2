"""The catalogue of online metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from karat.online.metrics import registry
from karat.online.metrics.entry import Distribution, Metric
from karat.reports.table import Column, Table
from karat.reports.writers.tables import draw

_INTRODUCTION = """\
Printed from the registry by `karat online metrics --format md`; do not edit by hand. Names are read
without regard to case, and without quotes for a shell: `Latency(p95)` or `Latency:p95`,
`PaulScore(F=0.9)` or `PaulScore:F=0.9`. `CTR@5` takes any position, `Latency(p95)` any percentile.
[What they are computed from](../explanation/online-metrics.md): searches, sessions, users; and
null, which is not 0.
"""


def show_entries(metrics: Sequence[Metric], out: Console) -> None:
    columns = [
        Column("name", "Metric", "words", style=lambda _: "strong"),
        Column("says", "Meaning"),
    ]
    ends = {at for at, (one, after) in enumerate(pairwise(metrics)) if one.family != after.family}
    draw(Table("", columns, metrics, ends=frozenset(ends)), out)
    out.print("karat online metrics NAME explains one; CTR@5 and Latency(p95) take any number")


def show_entry(metric: Metric, out: Console) -> None:
    out.print(Text.assemble((metric.name, "bold"), f": {metric.title}"))
    out.print(f"{metric.says[:1].upper()}{metric.says[1:]}.\n")
    traps = [("" if place else "traps", trap) for place, trap in enumerate(metric.traps)]
    show_facts([*_facts(metric), *traps], out)


def show_facts(facts: Sequence[tuple[str, str]], out: Console) -> None:
    """Print labels with their texts."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for label, text in facts:
        grid.add_row(label, Text(text))
    out.print(grid)


def bullets(facts: Sequence[tuple[str, str]]) -> list[str]:
    """Labels with their texts as items of a Markdown list."""
    return [f"- {label[0].upper()}{label[1:]}: {text}" for label, text in facts]


@dataclass(frozen=True)
class MetricEntry:
    """An online metric of the catalogue."""

    name: str
    version: int  # version of its definition
    title: str
    says: str  # what it measures, in a sentence
    definition: str
    unit: str
    direction: str
    guardrail: bool  # whether it is a guardrail
    family: str
    interval: str  # how its interval is computed
    needs: Sequence[Sequence[str]]  # columns that it needs; of several in a list, one
    source: str
    traps: Sequence[str]  # cautions


def as_json(metric: Metric) -> dict[str, Any]:
    own = {"interval": _interval(metric), "needs": [need.split("|") for need in metric.needs]}
    own["traps"] = list(metric.traps)
    names = (each.name for each in fields(MetricEntry))
    return {name: own[name] if name in own else getattr(metric, name) for name in names}


def markdown(metrics: Sequence[Metric]) -> str:
    """The whole catalogue as the reference page ``docs/reference/online-metrics.md``."""
    out = ["# Online metrics\n", _INTRODUCTION]
    for family, heading in registry.FAMILIES.items():
        members = [metric for metric in metrics if metric.family == family]
        if members:
            out.append(f"## {heading[0].upper()}{heading[1:]}\n")
            out += [_page(metric) for metric in members]
    return "\n".join(out)


def _page(metric: Metric) -> str:
    lines = [
        f"### {metric.name}: {metric.title}\n",
        f"{metric.says[:1].upper()}{metric.says[1:]}.\n",
    ]
    lines += bullets([*_facts(metric), *(("caution", trap) for trap in metric.traps)])
    return "\n".join(lines) + "\n"


def _facts(metric: Metric) -> list[tuple[str, str]]:
    better = {"higher": "higher", "lower": "lower", "none": "neither"}[metric.direction]
    watched = "; a guardrail, to watch and not to optimise" if metric.guardrail else ""
    needs = "; ".join(" or ".join(need.split("|")) for need in metric.needs)
    return [
        ("definition", f"{metric.definition} (version {metric.version})"),
        ("unit", f"{metric.unit}; better: {better}{watched}"),
        ("interval", _interval(metric)),
        ("needs", needs or "searches"),
        ("source", metric.source),
    ]


def _interval(metric: Metric) -> str:
    compute = metric.compute
    if metric.name == "ClickPosition":
        return "none"
    if isinstance(compute, Distribution):
        return "bootstrap over buckets of users"
    if not metric.point:
        return "none; bounds of what the log does not determine"
    bounds = "; separately, bounds of what the log does not determine" if compute.least else ""
    return f"users, by the delta method{bounds}"
