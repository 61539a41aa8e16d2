"""The try loop: one query asked of one or two variants of engines, or all queries of one.

A try of all queries is a stored run; in its ``about`` is, by name, what was tried, so that two
tries with the same rankings are one run with two names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from karat.clients.search_function import CallSettings, Reply, ask
from karat.engines.search.engine import EngineError
from karat.errors import InputError, KaratError, MissingExtra, UsageError, check_known
from karat.formats.own.engines import read_engine, read_engines, with_params, with_template
from karat.formats.own.engines import template_text as text_of
from karat.golden.traffic import folded
from karat.store.sql import audit, comparisons, documents, golden_sets, runs
from karat.tables import Qrels, Queries, QueryValue, Results, Run
from karat.tables.about import facts, what_changed
from karat.tables.comparison import Comparison
from karat.tables.engines import (
    EngineConfig,
    EngineFacts,
    EngineQuery,
    EngineState,
    Tried,
    TriedHit,
    TriedVariant,
    TryRow,
    Variant,
)
from karat.tables.names import check_name
from karat.tables.results import Result
from karat.tables.workspace import RunRow
from karat.workflows.engines.live import (
    about_engine,
    engine_queries,
    manner_for,
    open_live,
    search_engine,
)
from karat.workflows.engines.search import run_of
from karat.workflows.offline.catalogue import default_measures
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.stages import Watch, unwatched
from karat.workflows.workspace import stored_comparisons, stored_evaluations
from karat.workflows.workspace.known_queries import query_frame
from karat.workflows.workspace.run_import import KEPT, remove_comparison, remove_run
from karat.workflows.workspace.stored_evaluations import Rules
from karat.workflows.workspace.stored_runs import LONGEST, hash_of, keep_hashed, stored_rows
from karat.workflows.workspace.stored_views import document_titles, grades_now
from karat.workflows.workspace.workspace import Workspace, queries_in

DEPTH, DEEPEST = 10, 100  # documents asked for in one query: by default, and at most
_TITLE, _TEXT = 300, 10_001  # characters
_VARIANTS = 2


def resolve(root: Path, variant: Variant) -> EngineConfig:
    """The declaration of a variant's engine with its template and parameters."""
    config = read_engine(variant.engine, root)
    if variant.template is not None:
        config = with_template(config, variant.template)
    return with_params(config, variant.params)


def find_query(opened: Workspace, asked: str) -> tuple[str, EngineQuery] | None:
    """The golden set's query with this text, ignoring case and white space, or with this id."""
    frame = query_frame(opened)
    texts = pl.Series(folded([text or "" for text in frame["text"]]), dtype=pl.String)
    for found in (frame.filter(texts == folded([asked])[0]), frame.filter(query_id=asked)):
        if found.height and found["text"][0]:
            return found["query_id"][0], engine_queries(Queries(found.head(1)))[0]
    return None


def try_query(
    root: Path,
    variants: Sequence[Variant],
    asked: str,
    *,
    opened: Workspace | None,
    depth: int = DEPTH,
    strict: bool = False,
    explain: bool = False,
    texts: bool = False,  # whether to ask for the texts that the golden set lacks
) -> Tried:
    """Ask one or two variants one query; an error of one is in its column."""
    if not asked.strip():
        raise UsageError("the query is empty", fix="type a query")
    if not 1 <= depth <= DEEPEST:
        raise UsageError(f"depth must be from 1 to {DEEPEST}, got {depth}", fix="-k 10")
    if not 1 <= len(variants) <= _VARIANTS:
        raise UsageError(f"expected one or two variants, got {len(variants)}")
    for variant in variants:
        read_engine(variant.engine, root)
    known = None if opened is None else find_query(opened, asked)
    query_id, query = known or (None, EngineQuery(asked.strip()))
    answers = [_answer(root, each, query, depth, strict=strict) for each in variants]
    for answer in answers if explain else ():
        _explain(answer, query, depth)
    if texts and opened is not None:
        _add_texts(opened, answers)
    grades = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64})
    if opened is not None and query_id is not None:
        grades = grades_now(opened, query_id)
    titles = {doc: title for each in answers for doc, title in each.titles.items()}
    untitled = {doc for each in answers for doc in each.doc_ids} - titles.keys()
    if opened is not None and untitled:
        titles |= document_titles(opened, sorted(untitled))
    measure = default_measures()[0]
    values = _values(answers, query_id, grades, opened, measure, depth)
    by_doc = dict(grades.select("doc_id", "grade").iter_rows())
    shown = [
        _shown(each, answers[1 - at] if len(answers) > 1 else None, by_doc, titles, values.get(at))
        for at, each in enumerate(answers)
    ]
    return Tried(query.text, query_id, depth, measure, shown)


@dataclass
class _Answer:
    """The answer of a variant, before grades."""

    variant: Variant
    config: EngineConfig | None
    reply: Reply | None
    doc_ids: list[str]
    titles: dict[str, str]
    server_us: int | None
    error: str | None = None
    fix: str | None = None
    note: str | None = None
    parts: dict[str, Mapping[str, float]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


def _answer(
    root: Path, variant: Variant, query: EngineQuery, depth: int, *, strict: bool
) -> _Answer:
    titles: dict[str, str] = {}
    errors: list[EngineError] = []
    found = _Answer(variant, None, None, [], titles, None)
    try:
        found.config = resolve(root, variant)
        with open_live(found.config, depth=depth, titles=titles) as engine:

            def call(asked: EngineQuery) -> Any:
                try:
                    return engine.call(asked)
                except EngineError as error:
                    errors.append(error)
                    raise

            found.reply = ask(call, [query], manner_for(engine.config))[0]
            found.server_us = sum(engine.server_us) if engine.server_us else None
    except KaratError as error:
        if strict and isinstance(error, UsageError | InputError | MissingExtra):
            raise
        found.error, found.fix = error.what, error.fix
        return found
    if found.reply.ranking is None:
        found.error = errors[-1].what if errors else found.reply.error
        found.fix = errors[-1].fix if errors else None
    else:
        found.doc_ids = found.reply.ranking.doc_ids[:depth]
    return found


def _explain(answer: _Answer, query: EngineQuery, depth: int) -> None:
    """Ask again, untimed, for what scores are made of; an engine may not say."""
    if answer.config is None or answer.error is not None or answer.config.kind == "python":
        return
    with open_live(answer.config, depth=depth, explain=True) as engine:

        def call(asked: EngineQuery) -> Any:
            hits = engine.call(asked)
            answer.parts.update((hit["id"], hit["parts"]) for hit in hits if hit["parts"])
            return hits

        ask(call, [query], CallSettings())


def _add_texts(opened: Workspace, answers: Sequence[_Answer]) -> None:
    with opened.store.read() as connection:
        known = documents.with_text(
            connection, opened.golden.id, {doc for each in answers for doc in each.doc_ids}
        )
    for answer in answers:
        left = [doc for doc in answer.doc_ids if doc not in known]
        if not left or answer.config is None:
            continue
        # The answer is there, also if its texts are not.
        with suppress(Exception), open_live(answer.config) as engine:
            for row in engine.documents(left) or []:
                if row["text"]:
                    answer.texts[str(row["doc_id"])] = row["text"][:_TEXT]


def _values(
    answers: Sequence[_Answer],
    query_id: str | None,
    grades: pl.DataFrame,
    opened: Workspace | None,
    measure: str,
    depth: int,
) -> dict[int, tuple[Result, QueryValue]]:
    """The value of each variant that answered, by its place; none if nothing is judged."""
    if opened is None or query_id is None or not grades.height:
        return {}
    qrels = Qrels(grades, "the query").on_scale(opened.golden.scale)
    places = [at for at, answer in enumerate(answers) if answer.error is None]
    systems = []
    for at in places:
        answer = answers[at]
        assert answer.reply is not None
        run = run_of([query_id], [answer.reply], str(at), {})
        if run.contradicted:
            answer.note = "the order contradicts the scores; karat orders by score"
        systems.append(run.to_depth(depth))
    if not systems:
        return {}
    found = evaluate(qrels, systems, [measure], interval="none", bounds=True, per_query=True)
    pairs = zip(found.results, found.per_query, strict=True)
    return dict(zip(places, pairs, strict=True))


def _shown(
    answer: _Answer,
    other: _Answer | None,
    grades: Mapping[str, float],
    titles: Mapping[str, str],
    value: tuple[Result, QueryValue] | None,
) -> TriedVariant:
    ranking = None if answer.reply is None else answer.reply.ranking
    elsewhere = {doc: at for at, doc in enumerate([] if other is None else other.doc_ids, 1)}
    hits = []
    for at, doc in enumerate(answer.doc_ids):
        title = titles.get(doc)
        score = ranking.scores[at] if ranking is not None and ranking.scored else None
        hits.append(
            TriedHit(
                doc,
                at + 1,
                score,
                title and title[:_TITLE],
                grades.get(doc),
                elsewhere.get(doc),
                answer.parts.get(doc),
                answer.texts.get(doc),
            )
        )
    recorded = {} if answer.config is None else about_of(answer.config)
    result, of_query = value or (None, None)
    return TriedVariant(
        engine=answer.variant.engine,
        kind=answer.config.kind if answer.config else "",
        template=recorded.get("template"),
        params=dict(answer.config.params) if answer.config else {},
        hits=hits,
        latency_us=answer.reply.latency_us if answer.reply and not answer.error else None,
        server_us=answer.server_us,
        error=answer.error,
        fix=answer.fix,
        value=of_query.value if of_query else None,
        low=result.unjudged_low if result else None,
        high=result.unjudged_high if result else None,
        state="failed" if answer.error else of_query.state if of_query else "unjudged",
        judged=sum(hit.grade is not None for hit in hits),
        note=answer.note,
    )


def about_of(config: EngineConfig) -> dict[str, Any]:
    """What is recorded about an engine that was not asked for its facts."""
    return about_engine(config, EngineFacts())


# --- all queries ---


def run_all(
    opened: Workspace,
    variant: Variant,
    *,
    person: str,
    clock: Callable[[], int],
    name: str = "",
    watch: Watch = unwatched,
    progress: bool = False,
) -> TryRow:
    """Ask a variant all queries of the golden set; store, evaluate and compare the try."""
    config = resolve(opened.workspace.root, variant)
    asked = queries_in(opened)
    asked = Queries(asked.frame.filter(pl.col("text").str.strip_chars() != ""), asked.source)
    total = len(asked.frame)
    name = _new_name(opened, config.name, name)
    before = next(iter(list_tries(opened, config.name)), None)
    watch("asking", 0, total)
    with TemporaryDirectory(prefix="karat-try-") as folder:
        found = search_engine(
            asked,
            config,
            Path(folder) / "run.parquet",
            name=name,
            progress=progress,
            watch=lambda done: watch("asking", done, total),
        )
    fields = {
        "engine": config.name,
        "at": clock(),
        "by": person,
        "about": facts(found.run.about),
        "text": text_of(config),
        "p95_us": None if found.latency is None else found.latency.p95_us,
        "failed": found.failed,
    }
    row = _store(opened, found.run, name, fields, person)
    if found.ok:
        watch("evaluating", 0, 0)
        with suppress(InputError):  # nothing is judged yet
            evaluated = stored_evaluations.kept(opened, row, Rules())
            if evaluated is None or evaluated.older:
                stored_evaluations.compute(opened, row, Rules())
            if before is not None and before.run != row.id:
                watch("comparing", 0, 0)
                request = stored_comparisons.Asked([before.run, row.id])
                number = stored_comparisons.ask(opened, request, by=person, now=clock())
                stored_comparisons.compute(opened, number, clock)
                _put(opened, row.sha256, name, {**fields, "comparison": number})
    return find_try(opened, name)


def _store(
    opened: Workspace, run: Run, name: str, fields: Mapping[str, Any], person: str
) -> RunRow:
    sha256, now = hash_of(run), int(fields["at"])
    with opened.store.begin() as connection:
        keep_hashed(connection, opened, [(run, sha256)], now=now, retime=False)
        about = {"sha256": sha256, "engine": fields["engine"]}
        audit.note(connection, person, KEPT, name, now, about)
    _put(opened, sha256, name, fields)
    return next(row for row in stored_rows(opened) if row.sha256 == sha256)


def _put(opened: Workspace, sha256: str, name: str, fields: Mapping[str, Any]) -> None:
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)
        runs.put_try(connection, opened.golden.id, sha256, name, fields)


def _new_name(opened: Workspace, engine: str, name: str) -> str:
    taken = {each for row in stored_rows(opened) for each in row.names}
    if name.strip():
        check_name(name.strip(), "a try", longest=LONGEST)
        if name.strip() in taken:
            raise UsageError(f"there is a run {name.strip()!r} already", fix="choose another name")
        return name.strip()
    number = 1
    while (free := f"{engine}-try-{number}") in taken:
        number += 1
    return free


def list_tries(opened: Workspace, engine: str = "") -> list[TryRow]:
    """The tries of the golden set, or of one engine, newest first."""
    rows = [row for row in stored_rows(opened) if row.about.get(runs.TRIES)]
    short = zip(rows, stored_evaluations.in_short(opened, rows), strict=True)
    values = {row.id: dict(kept.values or {}) for row, kept in short}
    entries = sorted(_entries(rows), key=lambda entry: entry[2]["at"])
    found: list[TryRow] = []
    for row, name, fields in entries:
        if engine and fields["engine"] != engine:
            continue
        earlier = [each for each in found if each.engine == fields["engine"]]
        before = earlier[-1] if earlier else None
        about = fields["about"]
        changes = []
        if before is not None:
            last = next(f for _, n, f in entries if n == before.name)["about"]
            changes = what_changed(last, [(name, about)])
        found.append(
            TryRow(
                name=name,
                run=row.id,
                engine=fields["engine"],
                at_us=fields["at"],
                by=fields["by"],
                template=about.get("template"),
                params={
                    key.removeprefix("parameters."): value
                    for key, value in about.items()
                    if key.startswith("parameters.")
                },
                before=None if before is None else before.name,
                changes=changes,
                same_as=next((each.name for each in earlier if each.run == row.id), None),
                values=values[row.id],
                p95_us=fields["p95_us"],
                failed=fields["failed"],
                comparison=fields.get("comparison"),
                text=fields["text"],
            )
        )
    return found[::-1]


def find_try(opened: Workspace, name: str) -> TryRow:
    found = {row.name: row for row in list_tries(opened)}
    check_known(name, found, f"there is no try {name!r}", None)
    return found[name]


def numbers_of(opened: Workspace, found: TryRow) -> tuple[Results | None, Comparison | None]:
    """The evaluation of a try, and its comparison with the one before, as far as computed."""
    rows = stored_rows(opened)
    row = next(row for row in rows if row.id == found.run)
    evaluated = stored_evaluations.kept(opened, row, Rules())
    compared = None
    if found.comparison is not None:
        there = stored_comparisons.find(opened, found.comparison)
        compared = None if there is None else stored_comparisons.kept(opened, there[1])
    return (
        None if evaluated is None else evaluated.results,
        None if compared is None else compared.comparison,
    )


def name_try(opened: Workspace, name: str, new: str, *, person: str, now: int) -> None:
    """Give a try another name; audited."""
    new = _new_name(opened, "", new.strip() or name)
    row = _row_of(opened, name)
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)
        runs.rename_try(connection, row.id, name, new)
        audit.note(connection, person, "name try", new, now, {"before": name})


def forget_try(opened: Workspace, name: str, *, person: str, now: int) -> None:
    """Delete a try, and the comparisons that were made for it; audited."""
    row = _row_of(opened, name)
    if len(row.names) > 1:
        with opened.store.begin() as connection:
            golden_sets.hold(connection, opened.golden.id)
            runs.rename_try(connection, row.id, name, None)
            audit.note(connection, person, "forget try", name, now)
        return
    own = {fields.get("comparison") for _, _, fields in _entries(stored_rows(opened))}
    with opened.store.read() as connection:
        every = comparisons.comparisons(connection, opened.golden.id)
    of_it = [each for each in every if row.id in each.runs]
    if all(each.id in own for each in of_it):  # else the removal of the run says which is not
        for each in of_it:
            remove_comparison(opened, each, person=person, now=now)
    remove_run(opened, row, person=person, now=now)


def next_failing(opened: Workspace, engine: str, after: str = "") -> tuple[str, str, float] | None:
    """The query with the next lowest value in the newest try or run of an engine.

    Returns:
        Its id, text and value; None if no run of the engine is evaluated, or no query fails.
    """
    row = _newest_run(stored_rows(opened), engine)
    found = None if row is None else stored_evaluations.kept(opened, row, Rules())
    if found is None:
        return None
    frame = found.frame.filter(
        pl.col("measure") == default_measures()[0], pl.col("value") < 1, pl.col("counts")
    ).sort("value", maintain_order=True)
    ids = frame["query_id"].to_list()
    if not ids:
        return None
    at = ids.index(after) + 1 if after in ids else 0
    chosen = frame.row(at % len(ids), named=True)
    return chosen["query_id"], chosen["text"] or chosen["query_id"], chosen["value"]


def engine_states(opened: Workspace) -> list[EngineState]:
    """The declared engines with their newest stored run."""
    rows = stored_rows(opened)
    return [_state(opened, each, rows) for each in read_engines(opened.workspace.root).values()]


def _state(opened: Workspace, config: EngineConfig, rows: Sequence[RunRow]) -> EngineState:
    row = _newest_run(rows, config.name)
    found = None if row is None else stored_evaluations.kept(opened, row, Rules())
    recorded: Mapping[str, str] = {} if row is None else row.about.get("recorded", {})
    name = None if row is None else max(row.names, key=lambda each: row.names[each])
    p95 = found.results.latency[0].p95_us if found is not None and found.results.latency else None
    if row is not None and name in row.about.get(runs.TRIES, {}):
        p95 = row.about[runs.TRIES][name]["p95_us"]
    return EngineState(
        name=config.name,
        kind=config.kind,
        address=str(config.url) or config.function,
        index=config.index or None,
        template=config.template_name or None,
        params=dict(config.params),
        run=None if row is None else row.id,
        run_name=name,
        asked_us=None if row is None else max(row.names.values()),
        p95_us=p95,
        version=recorded.get("engine_version"),
        index_fingerprint=recorded.get("index_fingerprint"),
    )


def _newest_run(rows: Sequence[RunRow], engine: str) -> RunRow | None:
    """The run stored last that an engine answered."""

    def answered(row: RunRow) -> bool:
        tried = row.about.get(runs.TRIES, {}).values()
        own = row.about.get("recorded", {}).get("engine") == engine
        return own or any(fields["engine"] == engine for fields in tried)

    return max(filter(answered, rows), key=lambda row: max(row.names.values()), default=None)


def _entries(rows: Sequence[RunRow]) -> Iterator[tuple[RunRow, str, dict[str, Any]]]:
    for row in rows:
        for name, fields in row.about.get(runs.TRIES, {}).items():
            yield replace(row, name=name), name, fields


def _row_of(opened: Workspace, name: str) -> RunRow:
    found = next((row for row, each, _ in _entries(stored_rows(opened)) if each == name), None)
    if found is None:
        raise UsageError(f"there is no try {name!r}", fix="karat try --list")
    return found
