"""Checks of a declared engine: reachable, version, index, one query, ids, explanations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from karat.clients.search_function import CallSettings, ask
from karat.engines.search.engine import EngineError
from karat.engines.search.template import index_of
from karat.errors import InputError, KaratError
from karat.formats.own.engines import read_engine
from karat.reports.phrases.numbers import counted
from karat.tables import Queries
from karat.tables.engines import EngineCheck, EngineConfig, EngineQuery
from karat.workflows.engines.live import LiveEngine, engine_queries, open_live

if TYPE_CHECKING:
    from karat.workflows.workspace.stored_inputs import Judged
    from karat.workflows.workspace.workspace import Workspace

_SAMPLE = 20  # queries whose ids are compared with the judgments
_DOCUMENTS = 1000  # judged documents that are looked up in the index
_SHOWN = 3


def check_engine(
    config: EngineConfig,
    queries: Queries | None = None,
    judged: Mapping[str, Sequence[str]] | None = None,
) -> list[EngineCheck]:
    try:
        with open_live(config) as engine:
            return list(_checks(engine, queries, judged))
    except KaratError as error:
        return [EngineCheck("open", "fail", error.what, error.fix or "")]


def golden_set(text: str | None) -> tuple[Queries | None, dict[str, list[str]] | None]:
    """The queries of the current folder's workspace, and the judged documents of each.

    Args:
        text: A query to ask instead; the judgments are then not compared.
    """
    if text is not None:
        return Queries(pl.DataFrame({"query_id": ["query"], "text": [text]})), None
    try:
        from karat.workflows.workspace.stored_inputs import judged
        from karat.workflows.workspace.workspace import open_workspace

        with open_workspace(Path(), now=time.time_ns() // 1000) as workspace:
            return _judged(judged(workspace))
    except (ImportError, KaratError):  # no store, no workspace, or nothing is judged yet
        return None, None


def check_in(opened: Workspace, name: str) -> list[EngineCheck]:
    """Check an engine that a workspace declares, with its golden set."""
    from karat.workflows.workspace.stored_inputs import judged

    config = read_engine(name, opened.workspace.root)
    with suppress(InputError):  # nothing is judged yet
        return check_engine(config, *_judged(judged(opened)))
    return check_engine(config)


def _judged(found: Judged) -> tuple[Queries, dict[str, list[str]]]:
    pairs = found.qrels.frame.group_by("query_id", maintain_order=True).agg("doc_id")
    return found.queries, dict(pairs.iter_rows())


def exit_code(checks: Sequence[EngineCheck]) -> int:
    """0 if no check fails, 4 if the engine does not answer, else 1."""
    failed = {check.check for check in checks if check.state == "fail"}
    return 4 if failed & {"reachable", "query"} else 1 if failed else 0


def _checks(
    engine: LiveEngine, queries: Queries | None, judged: Mapping[str, Sequence[str]] | None
) -> Iterator[EngineCheck]:
    config = engine.config
    try:
        facts = engine.facts()
    except EngineError as error:
        yield EngineCheck("reachable", "fail", error.what, error.fix or "")
        return
    if facts.version is not None:
        yield EngineCheck("version", "ok", facts.version)
    if facts.documents is not None:
        empty = not facts.documents
        fix = "index documents first" if empty else ""
        detail = f"{index_of(config)}: {counted(facts.documents, 'document', 'documents')}"
        yield EngineCheck("index", "fail" if empty else "ok", detail, fix)
    sets = [] if queries is None else [query for query in engine_queries(queries) if query.text]
    ids = [] if queries is None else queries.frame["query_id"].to_list()
    asked = sets[0] if sets else EngineQuery("test")
    reply = ask(engine.call, [asked], CallSettings())[0]
    if reply.ranking is None:
        fix = "check the template" if config.kind != "python" else "fix the function"
        yield EngineCheck("query", "fail", f"{asked.text!r}: {reply.error}", fix)
        return
    documents = counted(len(reply.ranking.doc_ids), "document", "documents")
    milliseconds = f"{(reply.latency_us or 0) / 1000:.1f} ms"
    first = f", first {reply.ranking.doc_ids[0]}" if reply.ranking.doc_ids else ""
    yield EngineCheck("query", "ok", f"{asked.text!r}: {documents} in {milliseconds}{first}")
    if judged:
        pairs = (
            [(i, q) for i, q in zip(ids, engine_queries(queries), strict=True) if i in judged]
            if queries
            else []
        )
        yield _ids_check(engine, pairs[:_SAMPLE], judged)
    if facts.explains:
        yield EngineCheck("explain", "ok", "scores can be explained")
    else:
        yield EngineCheck(
            "explain", "unknown", f"an engine of kind {config.kind} explains no scores"
        )


_LIKELY: Sequence[tuple[str, Callable[[str], str]]] = (
    ("the engine's ids have other capitals", str.casefold),
    (
        "the engine's ids have a path or prefix before them",
        lambda i: i.replace(":", "/").rsplit("/", 1)[-1],
    ),
    ("the engine's ids have an extension", lambda i: i.rsplit(".", 1)[0]),
    ("the engine's ids are of chunks: DOCUMENT#CHUNK", lambda i: i.split("#", 1)[0]),
    ("numbers have leading zeros", lambda i: i.lstrip("0")),
)


def _ids_check(
    engine: LiveEngine,
    asked: Sequence[tuple[str, EngineQuery]],
    judged: Mapping[str, Sequence[str]],
) -> EngineCheck:
    """Whether the engine's ids are those of the judgments."""
    wanted = {doc for docs in judged.values() for doc in docs}
    some = sorted(wanted)[:_DOCUMENTS]
    known = _known(engine, some)
    found = [doc for _, query in asked for doc in _ids_of(engine, query)]
    if known is not None:
        share, enough = len(known) / len(some), 0.5
        detail = f"{share:.0%} of the judged documents are in the index"
        lacking = [doc for doc in some if doc not in known]
    elif not found:
        return EngineCheck("ids", "unknown", "no document was returned for the judged queries")
    else:
        share, enough = sum(doc in wanted for doc in found) / len(found), 0.05
        queries = counted(len(asked), "query", "queries")
        detail = f"{share:.0%} of the documents returned for {queries} are judged for some query"
        lacking = some
    if share >= enough:
        return EngineCheck("ids", "ok", detail)
    examples = ", ".join(found[:_SHOWN]) or "nothing"
    detail = f"{detail}: judged {', '.join(lacking[:_SHOWN])}; returned {examples}"
    return EngineCheck("ids", "fail", detail, _likely(wanted, found) or 'check id = "…"')


def _known(engine: LiveEngine, doc_ids: Sequence[str]) -> set[str] | None:
    """Which of these documents are in the index; None if it cannot be asked."""
    if engine.config.kind in {"http", "python"}:
        return None  # asked one by one, which takes long
    try:
        found = engine.documents(doc_ids)
    except EngineError:  # such as a table without a column id: the template computes it
        return None
    return None if found is None else {str(row["doc_id"]) for row in found}


def _ids_of(engine: LiveEngine, query: EngineQuery) -> list[str]:
    reply = ask(engine.call, [query], CallSettings())[0]
    return [] if reply.ranking is None else reply.ranking.doc_ids[:10]


def _likely(wanted: set[str], found: Sequence[str]) -> str | None:
    """The change of ids after which most are equal, as a likely cause."""
    for cause, change in _LIKELY:
        changed = {change(doc) for doc in wanted}
        if found and sum(change(doc) in changed for doc in found) / len(found) >= 0.3:
            return f"likely cause: {cause}"
    return None
