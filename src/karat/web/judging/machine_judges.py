"""Machine judges: their list, and each with its passport and its last run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import ceil, floor
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Response

from karat.reports.judging.autojudge import dollars, passport_rows, scale
from karat.reports.table import Column
from karat.tables.golden.machine_judges import JudgeReport, StoredPassport
from karat.web.framework.auth import AReader
from karat.web.framework.errors import or_not_found
from karat.web.framework.lists import frame_of, listed
from karat.web.framework.pages import PlainPage, show
from karat.workflows.judging.machine_grades import judge_in, judges_in, undeclared

ROUTER = APIRouter()
_COLUMNS = (
    Column("name", "Judge", link=lambda row: f"/judges/{quote(row['name'], safe='')}"),
    Column("asks", "Asks", longest=60),
    Column("kind", "Kind", choices=True, shown=False),
    Column("grades", "Grades"),
    Column("passport", "Passport", choices=True),
    Column("pairs", "Graded", "count"),
    Column("stored", "Stored", "count"),
    Column("cost", "Cost", by="dollars"),
    Column("dollars", "Dollars", "number", shown=False),
    Column("ended_us", "Last run", "time"),
    Column("state", "State", choices=True),
    Column("version", "Version", shown=False),
)


@ROUTER.get("/judges")
def judges(call: AReader) -> Response:
    """List the declared judges."""
    workspace = call.site.workspace
    states = judges_in(workspace, now=call.now)
    rows = (
        (
            each,
            {
                "grades": scale(each.grades),
                "cost": dollars(each.dollars),
                "passport": each.passport or "none",
                "ended_us": each.last and each.last.ended_us,
                "state": each.last and each.last.state,
            },
        )
        for each in states
    )
    page = PlainPage(
        "machine_judges.html.j2",
        "Machine judges",
        judges=listed(frame_of(rows, _COLUMNS), _COLUMNS, call.ask, search=["name"]),
        others=undeclared(workspace, states),
    )
    return show(call, page)


@ROUTER.get("/judges/{judge}")
def judge(call: AReader, judge: str) -> Response:
    """Show a judge: what it may grade, its passport, and its last run."""
    with or_not_found():
        found = judge_in(call.site.workspace, judge, now=call.now)
    return show(call, _page(found))


def _page(found: JudgeReport) -> PlainPage:
    passport, last = found.passport, found.judge.last
    rows = None if passport is None else passport_rows(asdict(passport))
    of_passport = {} if passport is None else passport.cost
    prices = {
        "spent": dollars(found.judge.dollars),
        "per_usable": dollars(of_passport.get("per_usable")),
        "per_1000": dollars(of_passport.get("per_1000")),
        "per_effective_query": dollars(of_passport.get("per_effective_query")),
        "last": last and dollars(last.spent.dollars),
        "budget": last and dollars(last.budget),
    }
    return PlainPage(
        "machine_judge.html.j2",
        found.judge.name,
        [("Machine judges", "/judges")],
        {
            "scale": scale(found.judge.grades),
            "prices": prices,
            "rows": rows,
            "axes": rows and {name: _axis(part) for name, part in rows._asdict().items()},
            "matrix": passport and _matrix(passport),
        },
        **vars(found),
    )


def _axis(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Whole ends of an axis that holds all values and intervals, and 0 to 1."""
    ends = [row[name] for row in rows for name in ("value", "ci_low", "ci_high")]
    known = [0.0, 1.0, *(end for end in ends if end is not None)]
    return floor(min(known)), ceil(max(known))


def _matrix(passport: StoredPassport) -> dict[str, Any]:
    grades = passport.grades
    rows = [
        (grade, [{"count": n, "same": at == place, "where": None} for at, n in enumerate(counts)])
        for place, (grade, counts) in enumerate(zip(grades, passport.confusion, strict=False))
    ]
    return {"first": "people", "second": passport.judge, "grades": grades, "rows": rows}
