"""What does not fit between files: queries and documents that one has and another lacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from karat.tables.id_spelling import likely_cause
from karat.workflows.lint.tally import Tally


@dataclass(slots=True)
class Held:
    """The queries of one file.

    Attributes:
        role: qrels | run | queries.
        file: The file.
        queries: Query id to the first line it stands on.
        tally: What was found in the file.
        silent: Queries marked as having no right answer: nobody needs to judge them.
        answered: Queries of a run that the file beside it lists, with or without documents.
    """

    role: str
    file: str
    tally: Tally
    queries: Mapping[str, int] = field(default_factory=dict)
    silent: Collection[str] = ()
    answered: Collection[str] = ()


def check(held: Sequence[Held]) -> None:
    """Compare the queries of all files; what is found is counted in their tallies."""
    of = {role: [h for h in held if h.role == role] for role in ("qrels", "run", "queries")}
    judged = {query for qrels in of["qrels"] for query in qrels.queries}
    judged.update(query for queries in of["queries"] for query in queries.silent)
    texts = {query for queries in of["queries"] for query in queries.queries}
    for run in of["run"]:
        qrels = max(
            of["qrels"],
            key=lambda each: len(each.queries.keys() & run.queries.keys()),
            default=None,
        )
        if qrels is None or not run.queries or not qrels.queries:
            continue
        if not qrels.queries.keys() & run.queries.keys():
            _disjoint(run, qrels)
            continue
        there = {*run.queries, *run.answered}
        missing = [query for query in qrels.queries if query not in there]
        if missing:
            count = "1 query" if len(missing) == 1 else f"{len(missing):,} queries"
            says = f"{count} judged in {qrels.file} and not in the run"
            run.tally.add(
                "query-not-in-run", [], count=len(missing), query=missing[0], example=_few(missing),
                says=says,
            )  # fmt: skip
        _lacking(run, judged, "unjudged-query")
    if of["qrels"]:
        for queries in of["queries"]:
            _lacking(queries, judged, "unjudged-query")
    if of["queries"]:
        for each in (*of["qrels"], *of["run"]):
            _lacking(each, texts, "query-without-text")


def _disjoint(run: Held, qrels: Held) -> None:
    here, there = next(iter(run.queries)), next(iter(qrels.queries))
    cause = likely_cause({"": list(run.queries)}, {"": list(qrels.queries)})
    if cause is not None:
        here, there = cause.here, cause.there
    why = "" if cause is None else f"; ids differ by {cause.cause}"
    says = f"it shares no query with {qrels.file}: {here!r} here, {there!r} there{why}"
    run.tally.add("no-common-query", [run.queries[here]], count=1, query=here, says=says)


def _lacking(held: Held, known: set[str], code: str) -> None:
    lacking = [query for query in held.queries if query not in known]
    if lacking:
        lines = sorted(held.queries[query] for query in lacking)
        held.tally.add(code, lines, query=lacking[0], example=_few(lacking))


def _few(queries: Sequence[str]) -> str:
    return ", ".join(queries[:5]) + (", …" if len(queries) > 5 else "")
