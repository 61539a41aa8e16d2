"""Queries of a golden set: their list, one with its documents, and sampling from a log."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Depends, File, Form, Response, UploadFile
from pydantic import AfterValidator, BeforeValidator

from karat.errors import KaratError, UsageError
from karat.reports.table import Column
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Principal
from karat.web.framework.errors import opened, or_not_found, refused
from karat.web.framework.jobs import InTurn
from karat.web.framework.lists import OWN, SOME, Ask, Listed, listed
from karat.web.framework.pages import Page, show
from karat.web.framework.signed_values import seal, unseal
from karat.web.framework.uploads import uploaded
from karat.web.golden.golden_sets import address, golden_page
from karat.workflows.golden import sampling
from karat.workflows.golden.queries import STATES, queries_in, query_in
from karat.workflows.workspace.workspace import Workspace, display_name

ROUTER = APIRouter()
MOST_QUERIES = 5_000
"""Largest sample: it goes to the browser and comes back with the form."""
_MOST_HELD = 4 << 20
"""Largest compressed sample, in bytes."""
_FIELD = 1 << 19  # characters; a form field may have twice as many
_SHOWN = 3
"""Attributes in the table; CSV and JSON have all."""
_FACTS = ("need", "weight", "count", "band", "stratum", "origin", "probability")
_HEADS = {
    "need": "information need",
    "count": "times searched",
    "probability": "sampling probability",
}


@dataclass(frozen=True)
class Typed:
    """What the form has."""

    size: Annotated[str, Form()] = "100"
    bands: Annotated[str, Form()] = ""  # ``NAME=SHARE``, one per line; empty for thirds
    quotas: Annotated[str, Form()] = ""
    hard: Annotated[str, Form()] = ""
    text: Annotated[str, AfterValidator(str.strip), Form()] = ""
    count: Annotated[str, AfterValidator(str.strip), Form()] = ""
    mask: Annotated[bool, BeforeValidator(bool), Form()] = False  # any text is yes


@ROUTER.get("/golden/{name}/queries")
def queries(call: AReader, name: str) -> Response:
    """List the queries, with a form to sample more from a log."""
    return show(call, _page(opened(call.site, name), call.ask))


@ROUTER.post("/golden/{name}/queries")
def plan(
    call: AnEngineer,
    name: str,
    _turn: InTurn,
    typed: Annotated[Typed, Depends()],
    log: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Sample queries from a log, and show the effect of adding them; nothing is stored."""
    workspace = opened(call.site, name)
    try:
        with uploaded(log, "log") as (path, filename), display_name(path, filename):
            drawn = sampling.draw_queries(
                workspace,
                path,
                _size(typed.size),
                bands=sampling.read_bands(_lines(typed.bands)),
                quotas=[sampling.read_quota(line) for line in _lines(typed.quotas)],
                hard=_lines(typed.hard),
                mask=typed.mask,
                text=typed.text or None,
                count=typed.count or None,
                most=sampling.ON_SERVER,
            )
        sealed = _seal(
            drawn.sample.queries, workspace, call.principal, call.site.settings.max_upload // 2
        )
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _page(workspace, Ask(), typed=typed, wrong=wrong), status)
    page = golden_page(
        "golden_choose.html.j2",
        name,
        "What would be chosen",
        ("Queries", address(name, "queries")),
        file=filename,
        searches=int(drawn.log.frame["count"].sum()),
        plan=sampling.plan_queries(workspace, drawn),
        queries=drawn.sample.queries.select("text", "band", "count").to_dicts(),
        not_in_json={"drawn": drawn, "sealed": sealed},
    )
    return show(call, page)


@ROUTER.post("/golden/{name}/chosen")
def choose(
    call: AnEngineer,
    name: str,
    sample: Annotated[list[str] | None, Form()] = None,
    replace: Annotated[str, Form()] = "",
) -> Response:
    """Add a sample that was shown before."""
    workspace = opened(call.site, name)
    try:
        placed = sampling.put_sample(
            workspace,
            _unseal("".join(sample or ()), workspace, call.principal),
            now=call.now,
            replace=bool(replace),
            person=call.who,
        )
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _page(workspace, Ask(), wrong=wrong), status)
    return show(call, _page(workspace, Ask(), placed=placed))


@ROUTER.get("/golden/{name}/queries/{query_id:path}")
def query(call: AReader, name: str, query_id: str) -> Response:
    with or_not_found():
        result = query_in(opened(call.site, name), query_id)
    row = result.query
    others = [n for n in row if n not in {"query_id", "text", "no_answer", *_FACTS}]
    page = golden_page(
        "golden_query.html.j2",
        name,
        row.get("text") or query_id,
        ("Queries", address(name, "queries")),
        query_id=query_id,
        text=row.get("text"),
        facts=[(_HEADS.get(n, n), row[n]) for n in (*_FACTS, *others) if n in row],
        no_answer=bool(row.get("no_answer")),
        editions=result.editions,
        documents=_documents(result.documents, name, call.ask),
    )
    return show(call, page)


def list_queries(frame: pl.DataFrame, attributes: Mapping[str, str], name: str, ask: Ask) -> Listed:
    """Queries, from ``queries_in``, as a list; ``attributes`` has their columns' headings."""
    frame = frame.with_columns(text=pl.coalesce("text", "query_id"))
    present = set(frame.columns)

    def to_pairs(**where: str) -> Any:
        return lambda row: address(name, "pairs", query_id=row["query_id"], **where)

    columns = [
        Column("text", "Query", link=lambda row: address(name, "queries", row["query_id"])),
        Column("query_id", "Id", shown=False),
        Column("need", "Need", shown=False),
        Column("weight", "Weight", "number"),
        Column("band", "Band", choices=True),
        Column("stratum", "Stratum", choices=True, shown=False),
        Column("origin", "Origin", choices=True, shown=False),
        Column("count", "Searches", "count"),
        Column("no_answer", "No answer", "flag", choices=True, shown=False),
        Column("words", "Words", choices=True, shown=False),
    ]
    # Only attributes of few values fit the screen.
    few = list(islice((c for c in attributes if frame[c].n_unique() <= 30), _SHOWN))
    for column in attributes:
        number = frame.schema[column].is_numeric()
        flag = frame.schema[column] == pl.Boolean
        columns.append(
            Column(
                column,
                attributes[column],
                "flag" if flag else "number" if number else "text",
                shown=column in few,
                choices=column in few and not number,
            )
        )
    columns += [
        Column("documents", "Documents", "count", link=to_pairs()),
        Column("graded", "Judged", "count", link=to_pairs(grade=SOME)),
        Column("judgments", "Judgments", "count", shown=False),
        Column("waiting", "Waiting", "count", link=to_pairs(waiting=">=1")),
        Column("editions", "Editions", "count", shown=False),
    ]
    available = [column for column in columns if column.name in present]
    search = [n for n in ("text", "need", "query_id") if n in present]
    return listed(frame, available, ask, search=search)


def _documents(frame: pl.DataFrame, name: str, ask: Ask) -> Listed:
    columns = (
        Column("name", "Document", link=lambda row: pair_address(name, row)),
        Column("doc_id", "Id", shown=False),
        Column("begins", "Text", longest=160),
        Column("said", "Each rater"),
        Column("adjudicated", "Adjudicated", "grade"),
        Column("grade", "Grade", "grade"),
        Column("state", "State", choices=True, vocabulary=STATES),
        Column("waiting", "Waiting", "count"),
    )
    named = frame.with_columns(name=pl.coalesce("title", "doc_id"))
    named = named.sort("grade", descending=True, nulls_last=True, maintain_order=True)
    return listed(named, columns, ask, search=["name", "begins", "doc_id"], per_page=200)


def pair_address(name: str, row: Mapping[str, Any]) -> str:
    return address(name, "pair", query=row["query_id"], document=row["doc_id"])


def _page(workspace: Workspace, ask: Ask, **outcome: Any) -> Page:
    name = workspace.golden.name
    frame, attributes = queries_in(workspace, OWN)
    return golden_page(
        "golden_queries.html.j2",
        name,
        f"Queries of {name}",
        queries=list_queries(frame, attributes, name, ask),
        **{"typed": Typed(), "wrong": None, "placed": None, **outcome},
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _size(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text.strip()) or not 1 <= int(text) <= MOST_QUERIES:
        raise UsageError(
            f"{text[:20]!r} is not a number of queries from 1 to {MOST_QUERIES:,}", fix="100"
        )
    return int(text)


def _seal(sample: pl.DataFrame, workspace: Workspace, principal: Principal, most: int) -> list[str]:
    """A sample as signed form fields, so that the server stores nothing until it is added."""
    buffer = io.BytesIO()
    sample.write_ipc(buffer, compression="zstd")
    if buffer.tell() > min(_MOST_HELD, most // 2):
        raise UsageError(
            "the sample with its attributes is too large for a page",
            fix="draw fewer queries, or drop unneeded columns from the log",
        )
    sealed = seal(buffer.getvalue(), *_about(workspace, principal))
    return [sealed[at : at + _FIELD] for at in range(0, len(sealed), _FIELD)]


def _unseal(text: str, workspace: Workspace, principal: Principal) -> pl.DataFrame:
    plain = unseal(text, *_about(workspace, principal))
    if plain is None:
        raise UsageError("the sample is not one that was shown to you", fix="upload the log again")
    return pl.read_ipc(io.BytesIO(plain))


def _about(workspace: Workspace, principal: Principal) -> tuple[str, tuple[object, ...]]:
    """The key that signs a sample, and what the signature is bound to."""
    return workspace.golden.salt, ("sample", workspace.golden.id, principal.person.name)
