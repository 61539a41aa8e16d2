"""The tables behind the evidence of a release, as the reports of their commands have them."""

from __future__ import annotations

from collections.abc import Iterator

from karat.reports.experiments import analysis, shadow
from karat.reports.release import gate
from karat.reports.table import Table
from karat.tables.experiments.experiment import HealthCheck
from karat.tables.experiments.shadow import ShadowCheck, ShadowDifference
from karat.tables.records import record_of
from karat.tables.release.gate import Check
from karat.tables.release.pipeline import Evidence


def tables(evidence: Evidence) -> Iterator[Table]:
    """Checks, limits or health; effects of an experiment are drawn, and not here."""
    result = evidence.result
    match evidence.kind:
        case "gate":
            yield gate.checks([record_of(Check, row) for row in result.get("checks", ())], "Rules")
        case "shadow":
            limits = [record_of(ShadowCheck, row) for row in result.get("checks", ())]
            yield Table("Limits", shadow.CHECKS, limits)
            rows = [record_of(ShadowDifference, row) for row in result.get("differences", ())]
            yield Table("Candidate against baseline", shadow.DIFFERENCES, rows)
        case "experiment":
            health = [record_of(HealthCheck, row) for row in result.get("health", ())]
            yield Table("Health", analysis.HEALTH, health)
