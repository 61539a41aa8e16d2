"""Expectations: a search function held against a policy, or asked one query, as tests do it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from karat.clients.search_function import Manner, ask
from karat.errors import UsageError
from karat.formats import read_run
from karat.release.expectations import Answer, best_first
from karat.tables import Run
from karat.tables.release.baseline import SavedBaseline
from karat.tables.release.gate import Gate
from karat.workflows.golden.golden_set import GoldenSet
from karat.workflows.offline import inputs
from karat.workflows.offline.benchmark import benchmark
from karat.workflows.release.baseline import saved_in
from karat.workflows.release.gate import gate, policy_from


class NoAnswer(Exception):
    """A search that is asked one query raised an error, or returned what is no ranking."""


def hold(
    search: Any,
    golden: Any,
    policy: Any,
    baseline: Any,
    *,
    asking: dict[str, Any] | None = None,
    rules: dict[str, Any] | None = None,
) -> Gate:
    """Ask a search function every query of a golden set, and hold its answers against a policy.

    Everything but the search is read and checked before the search is asked.

    Args:
        search: As ``benchmark`` takes it; or a run, which was asked before.
        golden: As ``benchmark`` takes it.
        policy: As ``gate`` takes it.
        baseline: As ``gate`` takes it.
        asking: How to ask: ``concurrency``, ``timeout``, ``retries``, ``warmup``, ``name``.
        rules: What ``gate`` and ``benchmark`` share: ``rel``, ``complete``, ``depth``, ….

    Raises:
        UsageError: what ``gate`` and ``benchmark`` refuse.
        InputError: likewise.
    """
    if search is None:
        raise UsageError("the search is None, neither a function nor a run", fix="(search)")
    rules = rules or {}
    wanted, before = policy_from(policy, rules.get("rel")), _baseline(baseline)
    qrels, queries = _judged(golden)
    shared: dict[str, Any] = {"queries": queries, **rules}
    if not callable(search):
        _, now = inputs.named_runs(Run.from_dict({}), search)
    else:
        gate(wanted, qrels, before, Run.from_dict({}, "search"), **shared)  # a rehearsal
        measures = [str(measure) for measure in wanted.measures]
        results = benchmark(golden, search, measures, progress=False, **(asking or {}), **rules)
        [now] = results.runs.values()
    return gate(wanted, qrels, before, now, **shared)


def answer(search: Callable[[str], Any], query: str) -> Answer:
    """Ask a search one query.

    Args:
        search: As ``benchmark`` takes it, async ones too.
        query: The text of the query.

    Raises:
        NoAnswer: it raised an error, or returned what is no ranking.
        UsageError: it is no function, or the query no text.
    """
    if not callable(search):
        raise UsageError(f"the search is {search!r}, not a function", fix="(search, query)")
    if not isinstance(query, str):
        raise UsageError(f"the query is {query!r}, not text", fix='(search, "join two lists")')
    [reply] = ask(search, [query], Manner())
    if reply.ranking is None:
        came = f"; what came back: {reply.came}" if reply.came else ""
        raise NoAnswer(f"{reply.error}{came}")
    return Answer(query, best_first(reply.ranking.doc_ids, reply.ranking.scores))


def _baseline(baseline: Any) -> SavedBaseline | Run | None:
    if baseline is None or (saved := saved_in(baseline)) is not None:
        return None if baseline is None else saved
    if isinstance(baseline, str | Path):
        baseline = read_run(baseline, may_be_empty=True)
    [run] = inputs.named_runs(baseline, [])
    return run


def _judged(golden: Any) -> tuple[Any, Any]:
    """The judgments and the queries of a golden set, in what ``gate`` takes.

    A path stays one: a saved baseline is of what stands in the file.
    """
    if isinstance(golden, tuple) and len(golden) == 2:
        return golden[1], golden[0]
    return (GoldenSet.from_list(golden) if isinstance(golden, list) else golden), None
