"""The catalogue of click models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from karat.online.clicks.entry import ClickModel
from karat.reports.table import Column, Table
from karat.reports.writers.tables import draw


@dataclass(frozen=True)
class ClickModelEntry:
    """A click model of the catalogue."""

    name: str
    title: str
    assumes: str  # what users do, if it is right
    parameters: Sequence[str]  # what is estimated
    blind: str  # what it cannot see
    needs: str  # `cells` (counts by document and rank) | `pages` (each page with its clicks)
    source: str


def show_entries(models: Sequence[ClickModel], out: Console) -> None:
    columns = [
        Column("name", "Model", "words", style=lambda _: "strong"),
        Column("assumes", "Assumes"),
        Column("blind", "Cannot see"),
    ]
    draw(Table("", columns, models, ends=frozenset(range(len(models)))), out)
    out.print("karat clicks models NAME explains one")


def show_entry(model: ClickModel, out: Console) -> None:
    out.print(Text.assemble((model.name, "bold"), f": {model.title}\n"))
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for label, text in _facts(model):
        grid.add_row(label, Text(text))
    out.print(grid)


def as_json(model: ClickModel) -> dict[str, Any]:
    return {each.name: getattr(model, each.name) for each in fields(ClickModelEntry)}


def markdown(models: Sequence[ClickModel]) -> str:
    parts = []
    for model in models:
        facts = [f"- {label[0].upper()}{label[1:]}: {text}" for label, text in _facts(model)]
        parts.append("\n".join([f"## {model.name}: {model.title}\n", *facts]) + "\n")
    return "\n".join(parts)


def _facts(model: ClickModel) -> list[tuple[str, str]]:
    counts = {"cells": "by document and rank", "pages": "of each page of results"}
    return [
        ("assumes", model.assumes),
        ("estimates", "; ".join(model.parameters)),
        ("cannot see", model.blind),
        ("fitted to", f"clicks {counts[model.needs]}"),
        ("source", model.source),
    ]
