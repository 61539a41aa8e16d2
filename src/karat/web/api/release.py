"""Gates and trends by the API."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from karat.errors import UsageError, nearest
from karat.formats.own.policy import read_policy
from karat.tables.release.gate import Gate, GateRecord, GateRow, GateVerdict
from karat.tables.release.review import DesignReview
from karat.tables.release.trend import Trend
from karat.web.api.bodies import Body, RequestBody
from karat.web.api.models import many, one
from karat.web.api.offline import Golden, of_golden
from karat.web.api.responses import Number, Paged, Several, json_response
from karat.web.framework.auth import AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import InTurn
from karat.web.release.gates import found
from karat.web.release.reviews import reviewing
from karat.workflows.golden.editions import NOW
from karat.workflows.release.stored_gates import Checked, check_stored, gates_listed, with_checks
from karat.workflows.release.stored_trends import History, find_history, histories_of
from karat.workflows.release.trend import trend as trended
from karat.workflows.workspace.workspace import display_name

ROUTER = APIRouter(prefix="/api", tags=["numbers"])


class GateRequest(RequestBody):
    """A gate to run."""

    policy: str  # the text of a policy, in TOML
    candidate: int | str  # a stored run, by name or number
    baseline: int | str | None = None  # another one; null if no rule limits a drop
    golden: str = ""  # name of the golden set; that of the workspace if empty
    edition: str = NOW  # name of an edition; `now` is the current golden set
    # Lowest grade that counts as relevant, for measures that do not set it
    rel: float | None = None
    complete: bool = False  # count every query of the golden set
    depth: int | None = Field(None, ge=1, lt=2**31)  # cut rankings at this depth
    # Fold chunks into the document named in this attribute of documents
    collapse: str | None = None
    commit: str | None = Field(None, max_length=200)  # label of the code version, for the record


@ROUTER.post("/gate", response_model=one(Gate))
def gate(
    call: AReader, body: Annotated[GateRequest, Depends(Body(GateRequest))], _turn: InTurn
) -> Response:
    """Check a stored run against a policy, and store the result if the token may write.

    `verdict` is a word, `exit_code` that of the command; the header `Content-Location` is the
    address of the stored result.
    """
    workspace = of_golden(call.site, body.golden)

    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        path = Path(folder) / "policy.toml"
        path.write_text(body.policy, encoding="utf-8", newline="")
        with display_name(path, "policy"):
            policy = read_policy(path, body.rel)
    settings = body.model_dump(exclude={"policy", "candidate", "baseline", "golden", "commit"})
    policy = replace(policy, source="policy")
    by = Checked("api", call.who, call.now, body.commit) if call.principal.writes else None
    number, result = check_stored(workspace, policy, body.baseline, body.candidate, by, **settings)
    response = json_response(result.to_dict())
    if number is not None:
        response.headers["content-location"] = f"{call.site.settings.base}/api/gates/{number}"
    return response


@ROUTER.get("/gates", response_model=many(GateRow))
def gates(
    call: AReader,
    page: Paged,
    golden: Golden = "",
    verdict: Annotated[GateVerdict | None, Query(description="Only with this verdict.")] = None,
    candidate: Annotated[str, Query(max_length=500, description="Only of this candidate.")] = "",
    policy: Annotated[str, Query(max_length=500, description="Only by this policy.")] = "",
) -> Response:
    """List the stored results of gates, newest first, each with the check that decides."""
    workspace = of_golden(call.site, golden)
    rows = [
        row
        for row in gates_listed(workspace)
        if verdict in {None, row.verdict}
        and candidate in {"", row.candidate}
        and policy in {"", row.policy}
    ]
    first = (page.page - 1) * page.per
    shown = {row.id: row for row in with_checks(workspace, rows[first : first + page.per])}
    return page.items(rows, lambda row: shown[row.id])


@ROUTER.get("/gates/{gate_id}", response_model=one(GateRecord))
def gate_result(call: AReader, gate_id: Number) -> Response:
    """A stored result of a gate in full, and where the workspace has what it is about."""
    return json_response(found(call, gate_id).to_dict())


@ROUTER.get("/comparisons/{comparison_id}/review", response_model=one(DesignReview))
def review(
    call: AReader,
    comparison_id: Number,
    _turn: InTurn,
    # One of its candidates; the first if missing.
    candidate: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """Review a change: what it catches, gains, costs and risks."""
    asked, _ = reviewing(call, comparison_id, candidate, program=True)
    if asked is None:
        raise UsageError("the comparison is not computed yet", fix="wait until its state is done")
    return json_response(asked.compute().to_dict())


@dataclass(frozen=True)
class HistoryFile:
    """A history that karat.toml names."""

    name: str  # name of the file
    points: int  # number of points; likewise `series`
    series: int
    lacking: str | None  # why it has no series; None if it has any
    # In sentences: lines left out of these counts, or why the file cannot be read
    damaged: Sequence[str]


@ROUTER.get("/trends", response_model=many(HistoryFile))
def list_trends(call: AReader, page: Paged) -> Response:
    """List the histories that karat.toml names."""

    def item(each: History) -> HistoryFile:
        counts = len(each.points), len(each.series)
        return HistoryFile(each.name, *counts, each.lacking, each.damaged)

    return page.items(histories_of(call.site.workspace), item)


@ROUTER.get("/trends/{history:path}", response_model=one(Trend))
def trend(
    call: AReader,
    history: str,
    _turn: InTurn,
    measure: Several = None,  # A measure; repeatable.
    # One slice, as `class=name`.
    slice: str | None = None,  # noqa: A002 - as the command line has it
    run: str | None = None,  # One run.
    series: str | None = None,  # One series, or a pattern such as `night*`.
    last: Annotated[int | None, Query(ge=1, lt=2**31)] = None,  # Show only the newest points.
) -> Response:
    """Each measure over time, with changes between points, drops and drift."""
    file = find_history(call.site.workspace, history)
    if file is None:
        names = [known.name for known in histories_of(call.site.workspace)]
        raise NotFound(
            f"the workspace has no history {history!r}",
            nearest=nearest(history, names, 1),
            fix="add its file to [web] histories in karat.toml",
        )
    if not file.path.is_file():
        raise NotFound(f"{file.name}: {file.lacking}", fix=file.fix)
    with display_name(file.path, file.name):
        result = trended(file.path, measure or None, slice=slice, run=run, series=series, last=last)
    return json_response(result.to_dict())
