"""The catalogue of click models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from rich.console import Console
from rich.text import Text

from karat.online.clicks.entry import ClickModel
from karat.reports.online.catalogue import bullets, show_facts
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
    show_facts(_facts(model), out)


def as_json(model: ClickModel) -> dict[str, Any]:
    return {each.name: getattr(model, each.name) for each in fields(ClickModelEntry)}


def markdown(models: Sequence[ClickModel]) -> str:
    parts = []
    for model in models:
        lines = [f"## {model.name}: {model.title}\n", *bullets(_facts(model))]
        parts.append("\n".join(lines) + "\n")
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
