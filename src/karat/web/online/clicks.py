"""From clicks: click models of the log, the grades that one makes, and what people say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Form, Query, Response

from karat.errors import InputError, MissingExtra, UsageError
from karat.reports.charts import online as drawing
from karat.reports.online import click_grades
from karat.reports.phrases.numbers import counted, percent
from karat.reports.table import Column, Table
from karat.tables.online.clicks import ClickJudgments, ClickOrigin, ClickOverview, Examination
from karat.tables.online.events import EventLog
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import opened
from karat.web.framework.lists import Listed, listed
from karat.web.framework.pages import show
from karat.web.online.log import Lenient, LogPage, error_text, log_page
from karat.workflows.online import click_overview
from karat.workflows.online.click_overview import FromClicks
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
_NAIVE = "naive"
_CONFLICTS = 20  # shown
Cuts = Annotated[list[str], Query(default_factory=list, max_length=20)]


@dataclass(frozen=True, kw_only=True)
class ClicksPage(LogPage):
    template: ClassVar[str] = "clicks.html.j2"
    name: str = ""
    model: str = ""
    cuts: Sequence[tuple[float, str]] = ()  # grade, and from which relevance
    least: str = ""
    overview: Mapping[str, Any] | None = None
    added: ClickOrigin | None = None
    done: str | None = None
    refused: str | None = None  # why grades were not added
    pairs: Listed | None = None
    lead: str = field(default="", repr=False)
    models: Sequence[tuple[str, str]] = field(default=(), repr=False)
    chart: tuple[str, str] | None = field(default=None, repr=False)
    ranks: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    misled: str = field(default="", repr=False)
    grades: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    agreement: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    agrees: str = field(default="", repr=False)
    best: str = field(default="", repr=False)  # the address with the cut points that agree best
    conflicts: Sequence[Mapping[str, Any]] = field(default=(), repr=False)


@ROUTER.get("/golden/{name}/clicks")
def clicks(call: AReader, name: str, cut: Cuts, model: str = "", least: str = "") -> Response:
    """Show the grades that the log could give, by a model, cut points and least impressions."""
    return _page(call, opened(call.site, name), model, cut, least)


@ROUTER.post("/golden/{name}/clicks")
def add(
    call: AnEngineer,
    name: str,
    do: Annotated[str, Form(pattern="add|queue")],
    model: Annotated[str, Form()],
    cut: Annotated[list[str], Form(default_factory=list)],
    least: Annotated[str, Form()],
) -> Response:
    """Add the grades to the golden set, or queue the pairs that contradict people."""
    workspace, done, wrong = opened(call.site, name), None, None
    try:
        asked = _asked(workspace, model, cut, least)
        if do == "add":
            made = click_overview.add_grades(asked, **call.by)
            done = f"{counted(made.graded, 'grade')} from clicks added; people’s are as they were."
        else:
            queued = click_overview.queue_conflicts(asked, **call.by)
            done = f"{counted(queued, 'pair')} queued for one more rater."
    except (InputError, UsageError) as error:
        wrong = error_text(error)
    return _page(call, workspace, model, cut, least, done=done, refused=wrong)


def _asked(workspace: Workspace, model: str, cut: Sequence[str], least: str) -> FromClicks:
    numbers = []
    for text in [*cut, *([least] if least else [])]:
        try:
            numbers.append(float(text))
        except ValueError:
            raise UsageError(f"{text[:20]!r} is not a number") from None
    more = {"least": numbers.pop()} if least else {}
    return FromClicks.of(workspace, model or click_overview.MODELS[0], numbers or None, **more)


def _page(
    call: Call,
    workspace: Workspace,
    model: str,
    cut: Sequence[str],
    least: str,
    *,
    done: str | None = None,
    refused: str | None = None,
) -> Response:
    name = workspace.golden.name
    chosen = model or click_overview.MODELS[0]
    names = [(each, each) for each in click_overview.MODELS]

    def prepare(_log: EventLog, lenient: Lenient) -> Any:
        asked = lenient.take(lambda: _asked(workspace, model, cut, least), None)
        return {}, asked, shown

    def shown(answer: Mapping[str, Any]) -> dict[str, Any]:
        found = click_overview.overview(workspace, answer)
        fields = {"overview": answer, "ranks": _ranks(found), "chart": _chart(found)}
        if found.judgments is None:
            return {**fields, "lead": "Positions are not identified, so clicks make no grades."}
        return {**fields, **_graded(call, name, found, found.judgments, answer["pairs"])}

    page, status = log_page(
        call,
        ClicksPage,
        "From clicks",
        prepare,
        name=name,
        model=chosen,
        models=[*names, (_NAIVE, "naive rule")],
        cuts=[(at, text) for at, text in enumerate(cut, 1)],
        least=least,
        done=done,
        refused=refused,
        added=click_overview.added(workspace),
    )
    return show(call, page, 400 if refused else status)


def _graded(
    call: Call,
    name: str,
    found: ClickOverview,
    judgments: ClickJudgments,
    pairs: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What a page has once there are grades."""
    origin, agreed = judgments.origin, found.agreement
    values = {
        "cuts": [(g, f"{c:g}") for g, c in zip(origin.grades[1:], origin.cuts, strict=True)],
        "least": f"{origin.least:g}",
        "lead": _lead(judgments, found),
        "grades": [_titled(each, "Grades") for each in click_grades.tables(judgments)],
        "misled": click_grades.misled(judgments),
        "pairs": _pairs(call, name, pairs, judgments.graded) if pairs else None,
        "notes": judgments.notes,
    }
    if agreed is None:
        return values
    tables = [each for each in click_grades.tables(agreed) if "oppose" not in each.title]
    best = agreed.best_cuts
    more = [("model", origin.model), ("least", f"{origin.least:g}")]
    return values | {
        "agrees": _sentence(click_grades.headline(agreed)),
        "agreement": [_titled(each, "All pairs") for each in tables],
        "best": "" if best is None else urlencode([*more, *(("cut", f"{c:.2f}") for c in best)]),
        "conflicts": [
            {**asdict(each), "where": _pair(name, each.query_id, each.doc_id)}
            for each in agreed.opposing[:_CONFLICTS]
        ],
    }


def _lead(judgments: ClickJudgments, found: ClickOverview) -> str:
    share = judgments.graded / judgments.pairs if judgments.pairs else 0.0
    both = "" if found.agreement is None else (
        f"; people graded {found.agreement.all.kappa.pairs:,} of these"
    )  # fmt: skip
    return (
        f"{judgments.graded:,} of {counted(judgments.pairs, 'pair')} that users saw "
        f"({percent(share)}) could get a grade from clicks{both}."
    )


def _titled(table: Table, title: str) -> dict[str, Any]:
    """A table as texts; with a title, which names its region."""
    texts = table.texts()
    return texts | {"title": texts["title"] or title}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _ranks(found: ClickOverview) -> list[dict[str, Any]]:
    """A row for each rank: examination by model, with the interval of the first."""
    curves = [(each.model, each.examination) for each in found.fits if each.examination]
    rows: dict[int, dict[str, Any]] = {}
    for name, curve in curves:
        for each in curve or ():
            row = rows.setdefault(each.rank, {"rank": each.rank, "shown": each.shown, "by": {}})
            row["by"][name] = _looked_at(each)
    return list(rows.values())


def _looked_at(each: Examination) -> str:
    if each.ci_low is None or each.ci_high is None:
        return percent(each.value)
    return f"{percent(each.value)} ({percent(each.ci_low)} to {percent(each.ci_high)})"


def _chart(found: ClickOverview) -> tuple[str, str] | None:
    """Examination by rank, for wide and narrow screens; None without any, or without packages."""
    curves = [(each.model, each.examination) for each in found.fits if each.examination]
    if found.propensities is not None:
        curves.append((found.propensities.source, found.propensities.examination))
    if not curves:
        return None
    lines = [
        drawing.Line(
            name,
            [
                drawing.Point(each.rank - 1, each.value, each.ci_low, each.ci_high)
                for each in curve or ()
            ],
            look,
        )
        for look, (name, curve) in enumerate(curves)
    ]
    places = [
        drawing.Place(
            str(row["rank"]),
            f"rank {row['rank']}, shown {row['shown']:,.0f} times: "
            + ", ".join(f"{name} {text}" for name, text in row["by"].items()),
        )
        for row in _ranks(found)
    ]
    title = "How often each rank is looked at, relative to rank 1"
    with suppress(MissingExtra):
        wide, narrow = (
            drawing.over_time(lines, places, title=title, unit="share", size=size)
            for size in (drawing.WIDE, drawing.NARROW)
        )
        return wide, narrow
    return None


def _pairs(call: Call, name: str, rows: Sequence[Mapping[str, Any]], graded: int) -> Listed:
    """The pairs that were looked at most, with both grades; ``GradedPair`` as JSON."""

    def judgments(row: Mapping[str, Any]) -> str | None:
        return None if row["people"] is None else _pair(name, row["query_id"], row["doc_id"])

    columns = [
        Column("text", "Query"),
        Column("doc_id", "Document", link=judgments),
        Column("grade", "Clicks", "grade"),
        Column("people", "People", "grade"),
        Column("value", "Relevance", "number", digits=2),
        Column("ci_low", "95 %", "number", digits=2, high="ci_high"),
        Column("effective", "Looks", "number", digits=0, help="Effective impressions"),
        Column("rank", "Rank", "number", digits=1, help="Mean rank at which it was shown"),
        Column("ctr", "CTR", "share"),
        Column("ci_high", "95 %, high", "number", shown=False),
        Column("query_id", "Query id", shown=False),
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    frame = frame.with_columns(ctr=pl.col("clicked") / pl.col("shown"))
    frame = frame.select(column.name for column in columns)
    result = listed(frame, columns, call.ask, search=["text", "doc_id"], per_page=25)
    return result.cut_from("most seen", graded)


def _pair(name: str, query_id: str, doc_id: str) -> str:
    return f"/golden/{quote(name, safe='')}/pair?" + urlencode(
        {"query": query_id, "document": doc_id}
    )
