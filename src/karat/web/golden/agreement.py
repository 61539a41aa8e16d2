"""Agreement: how far raters agree, how sure that is, and where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter, Request, Response

from karat.tables.golden.agreement import Agreement, Confusion, Drift, Figure
from karat.web.framework.auth import AReader
from karat.web.framework.pages import show
from karat.web.framework.state import TheState
from karat.web.golden.golden_sets import GoldenPage, address, crumbs, opened
from karat.workflows.golden.agreement import agreement_in
from karat.workflows.golden.queries import classes_in

ROUTER = APIRouter()


@dataclass(frozen=True)
class Cell:
    """How often two gave these grades to the same document.

    Attributes:
        count: How often.
        where: The pairs; None where there are none.
        same: Whether the two grades are one.
    """

    count: int
    where: str | None
    same: bool


@dataclass(frozen=True)
class Matrix:
    """Which grades are taken for which.

    Attributes:
        first: Who is in the rows; None where every two ratings are counted both ways round.
        second: Who is in the columns; None likewise.
        grades: Of rows and columns.
        rows: One for each grade of the first.
    """

    first: str | None
    second: str | None
    grades: Sequence[float]
    rows: Sequence[tuple[float, Sequence[Cell]]]


@dataclass(frozen=True, kw_only=True)
class AgreementPage(GoldenPage):
    """How far raters agree.

    Attributes:
        sentence: The headline, its interval, and what is still to be done.
        agreement: All figures.
        by: The attribute whose classes are shown; None for none.
        attributes: Those there are to choose from.
        matrix: Over all raters.
        matrices: Of each two raters.
        drifting: Raters whose later half differs from their first surely.
        least: Where the axis of the drawings begins, 0 or −1.
    """

    template: ClassVar[str] = "agreement.html.j2"
    tab: ClassVar[str] = "agreement"
    sentence: str
    agreement: Agreement
    by: str | None
    attributes: Sequence[str]
    matrix: Matrix
    matrices: Sequence[Matrix]
    drifting: Sequence[Drift]
    least: float


@ROUTER.get("/golden/{name}/agreement")
def agreement(
    request: Request, site: TheState, _asking: AReader, name: str, by: str | None = None
) -> Response:
    """How far raters agree; with ``?by=`` an attribute of the queries, class by class."""
    found = opened(site, name)
    agreed = agreement_in(found, by or None)
    drawn = [*agreed.figures, *agreed.classes, *(two.kappa for two in agreed.two_raters)]
    page = AgreementPage(
        title=f"Agreement in {name}",
        crumbs=crumbs(name),
        golden=name,
        sentence=_sentence(agreed.sentence),
        agreement=agreed,
        by=by or None,
        attributes=classes_in(found),
        matrix=_matrix(name, agreed.confusion),
        matrices=[_matrix(name, two.confusion) for two in agreed.two_raters],
        drifting=[drift for drift in agreed.drift if _left(drift.change)],
        least=-1.0 if any((f.ci_low or f.value or 0) < 0 for f in drawn) else 0.0,
    )
    return show(request, page)


def _sentence(said: str) -> str:
    """With a capital and a full stop; κ has no capital that anybody would know."""
    return (said if said.startswith("κ") else said[:1].upper() + said[1:]) + "."


def _left(change: Figure) -> bool:
    """Whether a change is one surely: its interval leaves out 0."""
    if change.ci_low is None or change.ci_high is None:
        return False
    return not change.ci_low <= 0 <= change.ci_high


def _matrix(name: str, found: Confusion) -> Matrix:
    rows = []
    for grade, counts in zip(found.grades, found.counts, strict=True):
        cells = []
        for other, count in zip(found.grades, counts, strict=True):
            asked = {"a_grade": f"{grade:g}", "b_grade": f"{other:g}"}
            if found.first is not None and found.second is not None:
                asked |= {"a": found.first, "b": found.second}
            where = address(name, "pairs", **asked) if count else None
            cells.append(Cell(count, where, grade == other))
        rows.append((grade, cells))
    return Matrix(found.first, found.second, found.grades, rows)
