"""An experiment as one HTML file."""

from __future__ import annotations

from karat.reports.experiments.analysis import about, headline, tables
from karat.reports.html.page import styled
from karat.tables.experiments.experiment import ExperimentResult


def to_page(result: ExperimentResult) -> str:
    """The experiment as one HTML file that loads nothing else."""
    return styled(
        "experiment.html.j2",
        kind="experiment",
        title=result.name or f"{result.treatment} against {result.control}",
        headline=headline(result),
        about=about(result),
        tables=tables(result),
        notes=result.notes,
    )
