"""The playground: a query asked of variants of engines, and tries of all queries."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Request, Response
from starlette.datastructures import FormData

from karat.errors import KaratError, UsageError
from karat.formats.own.engines import has_template, params_of, read_engines, template_text
from karat.reports.engines.tries import change_text, tries_table, value_text
from karat.reports.table import Table
from karat.tables.engines import EngineConfig, Tried, TryRow, Variant
from karat.web.framework.auth import AnEngineer
from karat.web.framework.errors import NotFound, Said, or_not_found, refused
from karat.web.framework.form_values import packed, unpacked
from karat.web.framework.idempotency import secret_of
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.framework.progress import Job, Outcome, Progress, begin, last
from karat.web.framework.state import AppState
from karat.web.judging.cards import Grade, grades_of
from karat.workflows.engines import tries as workflow
from karat.workflows.golden.queries import add_query
from karat.workflows.judging import in_place
from karat.workflows.offline.catalogue import default_measures
from karat.workflows.release.baseline import save_stored_baseline
from karat.workflows.workspace.known_queries import query_frame
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
WAIT_S = 1.0
"""Longest wait of a request for a job that it started."""
_KNOWN = 300  # queries that the box suggests
_LETTERS = ("a", "b")
_LONGEST = 48_000  # characters of a template


@dataclass(frozen=True)
class Typed:
    letter: str
    engine: str  # empty for none
    kind: str = ""
    template: str | None = None  # the text in the form; None if there is none to edit
    params: Mapping[str, str] = field(default_factory=dict)  # all that have a field
    changed: Mapping[str, str] = field(default_factory=dict)  # those that are not as declared
    edited: bool = False  # whether anything differs from the declaration
    rewritten: bool = False  # whether the template does

    @property
    def variant(self) -> Variant:
        return Variant(self.engine, self.template, self.changed)


@dataclass(frozen=True, kw_only=True)
class PlaygroundPage(Page):
    """A query, one or two variants, and what they returned."""

    template: ClassVar[str] = "playground.html.j2"
    engines: Sequence[str]
    golden: str
    asked: str = ""
    query_id: str | None = None
    depth: int = workflow.DEPTH
    variants: Sequence[Typed] = ()
    tried: Tried | None = None
    known: Sequence[str] = field(default=(), repr=False)
    grades: Sequence[Grade] = field(default=(), repr=False)
    to_judge: Mapping[str, in_place.GradableDocument] = field(default_factory=dict, repr=False)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    yours: Mapping[str, in_place.OwnRating] = field(default_factory=dict, repr=False)
    tries: Sequence[TryRow] = ()
    history: Table | None = field(default=None, repr=False)
    wrong: Said | None = None
    notice: str = ""
    name: str = ""

    @property
    def value_text(self) -> Any:
        return value_text

    @property
    def grade_value(self) -> Any:
        """From a document and a grade to the value of its button."""
        return lambda doc, grade: packed(
            doc,
            f"{grade.value:g}",
            self.tokens[doc],
            self.to_judge[doc].seen.document_sha256,
            self.to_judge[doc].seen.guideline,
        )

    @property
    def undo_value(self) -> Any:
        """From a document to the value of the button that undoes its grade."""
        return lambda doc: packed(doc, str(self.yours[doc].judgment))

    @property
    def change_text(self) -> Any:
        return change_text


async def _form(request: Request) -> FormData:
    return await request.form()


TheForm = Annotated[FormData, Depends(_form)]


@ROUTER.get("/playground")
def playground(
    call: AnEngineer, q: str = "", engine: str = "", against: str = "", again: str = ""
) -> Response:
    """Show the playground; an address with a query asks it, one with ``again`` loads a try."""
    workspace = call.workspace
    engines = read_engines(workspace.workspace.root)
    row = None
    if again:
        with or_not_found():
            row = workflow.find_try(workspace, again)
    chosen = row.engine if row else engine
    first = chosen if chosen in engines else next(iter(engines), "")
    second = against or next((name for name in engines if name != first), "")
    typed = [_declared(engines, "a", first), _declared(engines, "b", second if not row else first)]
    if row is not None and first == row.engine:
        typed[0] = _edited(engines[first], "a", row.text, row.params)
    return show(call, _page(workspace, call.who, q, typed))


@ROUTER.post("/playground")
def act(call: AnEngineer, form: TheForm) -> Response:
    """Ask the query; before that grade a document, add the query, or find the next failing one."""
    workspace = call.workspace
    who = call.who
    asked, do = _text(form, "q"), _text(form, "do")
    typed = _variants(workspace, form)
    more: dict[str, Any] = {"depth": _depth(form), "name": _text(form, "name")}
    status = 200
    try:
        if _text(form, "grade") or _text(form, "undo"):
            _grade(call.site, workspace, who, asked, form)
        elif do == "next":
            asked = _next(workspace, typed[0].engine, asked)
        elif do == "save":
            query_id = add_query(workspace, asked, person=who, now=call.now)
            more["notice"] = f"saved as query {query_id} of {workspace.golden.name}"
        elif do.startswith("run-"):
            variant = next(each for each in typed if f"run-{each.letter}" == do).variant
            sent = secret_of(call.principal, _text(form, "once"), do, asked, variant, more["name"])
            job = start_try(call.site, workspace, variant, who, more["name"], sent)
            return redirect(call, job.page or f"/jobs/{job.id}")
        return show(call, _page(workspace, who, asked, typed, **more))
    except (KaratError, StopIteration) as error:
        if isinstance(error, StopIteration):
            error = UsageError("no such variant")
        status, more["wrong"] = refused(error)
    return show(call, _page(workspace, who, asked, typed, **more), status)


def start_try(
    site: AppState,
    workspace: Workspace,
    variant: Variant,
    person: str,
    name: str,
    sent: str | None = None,  # a random idempotency key: sent twice, it starts one try
) -> Job:
    """Start a try of all queries; a mistake in the variant is raised at once."""
    started = None if sent is None else last(site, sent)
    if started is not None and started.state not in {"failed", "cancelled"}:
        return started
    workflow.resolve(workspace.workspace.root, variant)

    def work(progress: Progress) -> Outcome:
        row = workflow.run_all(
            workspace, variant, person=person, clock=site.clock, name=name, watch=progress
        )
        return Outcome(f"/playground/tries/{quote(row.name, safe='')}", {"try": row.name})

    title = f"All queries of {workspace.golden.name}, asked of {variant.engine}"
    return begin(site, sent or secrets.token_hex(8), title, work, WAIT_S)


def _page(
    workspace: Workspace, who: str, asked: str, typed: Sequence[Typed], **more: Any
) -> PlaygroundPage:
    engines = read_engines(workspace.workspace.root)
    variants = [each.variant for each in typed if each.engine]
    tried, golden = None, workspace.golden
    if asked.strip() and variants:
        try:
            tried = workflow.try_query(
                workspace.workspace.root,
                variants,
                asked,
                opened=workspace,
                depth=more.get("depth", workflow.DEPTH),
                explain=True,
                texts=True,
            )
        except KaratError as error:
            more.setdefault("wrong", refused(error)[1])
    judging: dict[str, Any] = {}
    if tried is not None and tried.query_id is not None:
        yours = in_place.own_of(workspace, who, tried.query_id)
        ungraded = {
            hit.doc_id for each in tried.variants for hit in each.hits if hit.grade is None
        } - yours.keys()
        documents = in_place.to_grade(workspace, ungraded)
        judging = {
            "query_id": tried.query_id,
            "yours": yours,
            "grades": grades_of(golden),
            "to_judge": documents,
            "tokens": {doc: secrets.token_hex(16) for doc in documents},
        }
    shown = {each.engine for each in typed}
    tries = [row for row in workflow.list_tries(workspace) if row.engine in shown]
    known = query_frame(workspace)["text"].drop_nulls().head(_KNOWN).to_list()
    return PlaygroundPage(
        title="Playground",
        engines=list(engines),
        golden=golden.name,
        asked=asked,
        variants=typed,
        tried=tried,
        known=known,
        tries=tries,
        history=tries_table(tries, default_measures()[0], _try_page) if tries else None,
        **judging,
        **more,
    )


def _try_page(row: TryRow) -> str:
    return f"/playground/tries/{quote(row.name, safe='')}"


def _declared(engines: Mapping[str, EngineConfig], letter: str, engine: str) -> Typed:
    """A variant as it is declared; none if there is no such engine."""
    if engine not in engines:
        return Typed(letter, "")
    config = engines[engine]
    template = template_text(config) if has_template(config) else None
    params = {key: _shown(value) for key, value in config.params.items()}
    return Typed(letter, engine, config.kind, template, params)


def _edited(
    config: EngineConfig, letter: str, template: str | None, params: Mapping[str, str]
) -> Typed:
    """A variant as typed; parameters that the edited template uses get a field."""
    plain = _declared({config.name: config}, letter, config.name)
    if plain.template is None:
        template = None
    same = template is None or _lines(template) == _lines(plain.template or "")
    used = params_of(config)
    if not same and template is not None:
        used = params_of(replace(config, template=template))
    fields = {key: params.get(key, plain.params.get(key, "")) for key in dict.fromkeys(used)}
    changed = {
        key: value
        for key, value in fields.items()
        if (key in plain.params or value) and plain.params.get(key) != value
    }
    text, edited = plain.template if same else template, not same or bool(changed)
    return Typed(letter, config.name, config.kind, text, fields, changed, edited, not same)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _variants(workspace: Workspace, form: FormData) -> list[Typed]:
    """The variants of the form; another engine than the one shown begins as declared."""
    engines = read_engines(workspace.workspace.root)
    found = []
    for letter in _LETTERS:
        engine = _text(form, f"{letter}_engine")
        if engine not in engines or _text(form, f"{letter}_shown") != engine:
            found.append(_declared(engines, letter, engine))
            continue
        begins = f"{letter}_param."
        params = {
            key.removeprefix(begins): str(value)
            for key, value in form.multi_items()
            if key.startswith(begins)
        }
        template = form.get(f"{letter}_template")
        text = None if template is None else _lines(str(template)[:_LONGEST])
        found.append(_edited(engines[engine], letter, text, params))
    if not found[0].engine:
        found[0] = _declared(engines, "a", next(iter(engines), ""))
    return found


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(form: FormData, name: str) -> str:
    return str(form.get(name) or "").strip()


def _depth(form: FormData) -> int:
    text = _text(form, "depth")
    return int(text) if text.isdecimal() and len(text) < 5 else workflow.DEPTH


def _next(workspace: Workspace, engine: str, asked: str) -> str:
    """The text of the query that fails next after the one asked."""
    now = workflow.find_query(workspace, asked) if asked else None
    found = workflow.next_failing(workspace, engine, now[0] if now else "")
    if found is None:
        raise UsageError(
            f"no query is known to fail: no run of {engine} is evaluated, or all values are 1",
            fix="ask all queries first",
        )
    return found[1]


def _grade(site: AppState, workspace: Workspace, who: str, asked: str, form: FormData) -> None:
    known = workflow.find_query(workspace, asked)
    if known is None:
        raise UsageError(
            "only documents of queries of the golden set can be graded", fix="save the query first"
        )
    undo, now = unpacked(_text(form, "undo"), 2), site.clock()
    if undo is not None and undo[0] and (undo[1] or "").isdecimal():
        in_place.take_back(workspace, who, known[0], undo[0], int(undo[1] or 0), now=now)
        return
    doc, grade, token, document, guideline = unpacked(_text(form, "grade"), 5) or [None] * 5
    if not doc or not grade or not token or guideline is None:
        raise UsageError("the form has an invalid grade", fix="reload the page")
    value = next((g.value for g in grades_of(workspace.golden) if f"{g.value:g}" == grade), None)
    if value is None:
        raise UsageError(f"{grade} is not a grade of {workspace.golden.name}")
    seen = in_place.Seen(document, guideline)
    in_place.rate(workspace, who, known[0], doc, value, now=now, token=token, seen=seen)


@ROUTER.get("/playground/tries/{try_name:path}")
def one_try(call: AnEngineer, try_name: str) -> Response:
    return show(call, _try(call.site, try_name))


def _try(site: AppState, name: str, **more: Any) -> Page:
    workspace = site.opened(site.workspace.golden.name)
    rows = {row.name: row for row in workflow.list_tries(workspace)}
    if name not in rows:
        raise NotFound(f"there is no try {name!r}", fix="choose one of the playground")
    row = rows[name]
    before = rows.get(row.before or "")
    diff: list[str] = []
    if before is not None and before.text != row.text:
        old, new = before.text.splitlines(), row.text.splitlines()
        diff = list(unified_diff(old, new, lineterm="", n=2))[2:]
    return PlainPage(
        "try.html.j2",
        row.name,
        [("Playground", "/playground")],
        row=row,
        before=before,
        diff=diff,
        measures=default_measures(),
        comparable=row.comparison is not None,
        **{"wrong": None, "notice": "", **more},
    )


@ROUTER.post("/playground/tries/{try_name:path}")
def change_try(
    call: AnEngineer,
    try_name: str,
    do: Annotated[str, Form()] = "",
    new: Annotated[str, Form(max_length=200)] = "",
    sure: Annotated[str, Form()] = "",
) -> Response:
    """Name a try, save it as the baseline of gates, or throw it away."""
    workspace = call.workspace
    try:
        if do == "name":
            workflow.name_try(workspace, try_name, new, **call.by)
            return redirect(call, f"/playground/tries/{quote(new.strip(), safe='')}")
        if do == "baseline":
            with or_not_found():
                row = workflow.find_try(workspace, try_name)
            path = save_stored_baseline(workspace, row.run, **call.by)
            notice = f"saved as {path.name} in the workspace: karat gate compares with it"
            return show(call, _try(call.site, try_name, notice=notice))
        if do == "forget" and sure:
            workflow.forget_try(workspace, try_name, **call.by)
            return redirect(call, "/playground")
        raise UsageError("the removal was not confirmed", fix="tick the box to confirm")
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _try(call.site, try_name, wrong=wrong), status)
