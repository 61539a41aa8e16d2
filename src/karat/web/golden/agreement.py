"""Agreement: how far raters agree, the uncertainty, and where they disagree."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from karat.tables.golden.agreement import Confusion, Figure
from karat.web.framework.auth import AReader
from karat.web.framework.errors import opened
from karat.web.framework.pages import show
from karat.web.golden.golden_sets import address, golden_page
from karat.workflows.golden.agreement import agreement_in
from karat.workflows.workspace.stored_inputs import classes_in

ROUTER = APIRouter()


@ROUTER.get("/golden/{name}/agreement")
def agreement(call: AReader, name: str, by: str | None = None) -> Response:
    """Show how far raters agree; with ``?by=``, also by class of an attribute of the queries."""
    workspace = opened(call.site, name)
    result = agreement_in(workspace, by or None)
    figures = [*result.figures, *result.classes, *(two.kappa for two in result.two_raters)]
    page = golden_page(
        "agreement.html.j2",
        name,
        f"Agreement in {name}",
        sentence=_sentence(result.sentence),
        agreement=result,
        by=by or None,
        attributes=classes_in(workspace),
        matrix=_matrix(name, result.confusion),
        matrices=[_matrix(name, two.confusion) for two in result.two_raters],
        drifting=[drift for drift in result.drift if _significant(drift.change)],
        least=-1.0 if any((f.ci_low or f.value or 0) < 0 for f in figures) else 0.0,
    )
    return show(call, page)


def _sentence(text: str) -> str:
    """With a capital letter and a full stop; κ stays as it is."""
    return (text if text.startswith("κ") else text[:1].upper() + text[1:]) + "."


def _significant(change: Figure) -> bool:
    """Whether a change is significant: its interval excludes 0."""
    if change.ci_low is None or change.ci_high is None:
        return False
    return not change.ci_low <= 0 <= change.ci_high


def _matrix(name: str, confusion: Confusion) -> dict[str, Any]:
    rows = []
    for grade, counts in zip(confusion.grades, confusion.counts, strict=True):
        cells = []
        for other, count in zip(confusion.grades, counts, strict=True):
            params = {"a_grade": f"{grade:g}", "b_grade": f"{other:g}"}
            if confusion.first is not None and confusion.second is not None:
                params |= {"a": confusion.first, "b": confusion.second}
            where = address(name, "pairs", **params) if count else None
            cells.append({"count": count, "where": where, "same": grade == other})
        rows.append((grade, cells))
    both = {"first": confusion.first, "second": confusion.second}
    return {**both, "grades": confusion.grades, "rows": rows}
