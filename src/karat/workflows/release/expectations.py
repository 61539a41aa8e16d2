"""Expectations in tests: a search function gated by a policy, or asked one query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from karat.clients.search_function import CallSettings, ask
from karat.errors import UsageError
from karat.formats import read_run
from karat.release.expectations import Answer, best_first
from karat.tables import Run
from karat.tables.release.baseline import SavedBaseline
from karat.tables.release.gate import Gate
from karat.workflows.golden.golden_set import GoldenSet
from karat.workflows.offline import inputs
from karat.workflows.offline.benchmark import benchmark
from karat.workflows.release.baseline import saved_baseline_from
from karat.workflows.release.gate import gate, policy_from


class NoAnswer(Exception):
    """The search raised an error, or did not return a ranking."""


def hold(
    search: Any,
    golden: Any,
    policy: Any,
    baseline: Any,
    *,
    asking: dict[str, Any] | None = None,
    rules: dict[str, Any] | None = None,
) -> Gate:
    """Ask a search function every query of a golden set, and gate its answers by a policy.

    Everything else is read and checked before the search is called.
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
        gate(
            wanted, qrels, before, Run.from_dict({}, "search"), **shared
        )  # checks all inputs before the search is called
        measures = [str(measure) for measure in wanted.measures]
        results = benchmark(golden, search, measures, progress=False, **(asking or {}), **rules)
        [now] = results.runs.values()
    return gate(wanted, qrels, before, now, **shared)


def answer(search: Callable[[str], Any], query: str) -> Answer:
    if not callable(search):
        raise UsageError(f"the search is {search!r}, not a function", fix="(search, query)")
    if not isinstance(query, str):
        raise UsageError(f"the query is {query!r}, not text", fix='(search, "join two lists")')
    [reply] = ask(search, [query], CallSettings())
    if reply.ranking is None:
        returned = f"; what came back: {reply.came}" if reply.came else ""
        raise NoAnswer(f"{reply.error}{returned}")
    return Answer(query, best_first(reply.ranking.doc_ids, reply.ranking.scores))


def _baseline(baseline: Any) -> SavedBaseline | Run | None:
    if baseline is None or (saved := saved_baseline_from(baseline)) is not None:
        return None if baseline is None else saved
    if isinstance(baseline, str | Path):
        baseline = read_run(baseline, may_be_empty=True)
    [run] = inputs.named_runs(baseline, [])
    return run


def _judged(golden: Any) -> tuple[Any, Any]:
    """The judgments and the queries of a golden set, in forms that ``gate`` takes.

    A path stays a path: a saved baseline has the hash of the file's content.
    """
    if isinstance(golden, tuple) and len(golden) == 2:
        return golden[1], golden[0]
    return (GoldenSet.from_list(golden) if isinstance(golden, list) else golden), None
