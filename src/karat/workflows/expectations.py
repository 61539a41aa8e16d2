"""Expectations: a search function held against a policy, or asked one query, as tests do it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karat.connectors.asking import Manner, ask
from karat.diagnosis.movement import moves
from karat.errors import UsageError
from karat.formats.baseline import holds_baseline, read_baseline
from karat.formats.policy import read_policy
from karat.measures.pair import Pair
from karat.release.expectations import Answer, best_first
from karat.release.policy import Policy, policy_of
from karat.tables import Run
from karat.tables.baseline import SavedBaseline
from karat.tables.comparison import Move
from karat.tables.gate import Gate
from karat.workflows import given
from karat.workflows.benchmark import benchmark
from karat.workflows.gate import gate
from karat.workflows.golden_set import GoldenSet
from karat.workflows.settle import settle


class NoAnswer(Exception):
    """A search that is asked one query raised an error, or returned what is no ranking."""


@dataclass(frozen=True, slots=True)
class Held:
    """A search held against a policy.

    Attributes:
        gate: What the policy says of it.
        moves: The documents that moved, for the queries of ``gate.lost``; None where a baseline
            is saved values, and nobody knows which documents it had.
        errors: Why queries failed, and how many did; the most frequent first.
    """

    gate: Gate
    moves: list[Move] | None
    errors: dict[str, int] = field(default_factory=dict)


def hold(
    search: Any,
    golden: Any,
    policy: Any,
    baseline: Any,
    *,
    asking: dict[str, Any] | None = None,
    rules: dict[str, Any] | None = None,
) -> Held:
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
    rules = rules or {}
    wanted, before = _policy(policy, rules.get("rel")), _baseline(baseline)
    qrels, queries = _judged(golden)
    shared: dict[str, Any] = {"queries": queries, **rules}
    if not callable(search):
        _, now = given.named_runs(Run.from_dict({}), search)
    else:
        gate(wanted, qrels, before, Run.from_dict({}, "search"), **shared)  # a rehearsal
        measures = [str(measure) for measure in wanted.measures]
        results = benchmark(golden, search, measures, progress=False, **(asking or {}), **rules)
        [now] = results.runs.values()
    found = gate(wanted, qrels, before, now, **shared)
    moved = _moved(found, qrels, before, now, shared) if isinstance(before, Run) else None
    errors: Counter[str] = Counter()
    if "error" in now.answers.columns:
        errors.update(now.answers["error"].drop_nulls().to_list())
    return Held(found, moved if before is not None else [], dict(errors.most_common()))


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


def _policy(policy: Any, rel: float | None) -> Policy:
    if isinstance(policy, str | Path):
        return read_policy(policy, rel)
    return policy if isinstance(policy, Policy) else policy_of(policy, rel=rel)


def _baseline(baseline: Any) -> SavedBaseline | Run | None:
    if baseline is None or isinstance(baseline, SavedBaseline):
        return baseline
    if isinstance(baseline, str | Path) and holds_baseline(baseline):
        return read_baseline(baseline)
    [run] = given.named_runs(baseline, [])
    return run


def _judged(golden: Any) -> tuple[Any, Any]:
    """The judgments and the queries of a golden set, in what ``gate`` takes.

    A path stays one: a saved baseline is of what stands in the file.
    """
    if isinstance(golden, tuple) and len(golden) == 2:
        return golden[1], golden[0]
    return (GoldenSet.from_list(golden) if isinstance(golden, list) else golden), None


def _moved(found: Gate, qrels: Any, before: Run, now: Run, shared: dict[str, Any]) -> list[Move]:
    lost: dict[str, list[str]] = {}
    for row in found.lost:
        lost.setdefault(row.measure, []).append(row.query_id)
    if not lost:
        return []
    asked = settle(qrels, [before, now], list(lost), **shared)
    old, new = asked.scored()
    pair = Pair(old.run, new.run, asked.qrels, old.evidence, new.evidence, asked.rules.depth)
    place = {query_id: index for index, query_id in enumerate(pair.query_ids)}
    return [
        move
        for measure in asked.measures
        for move in moves(measure, pair, [place[query] for query in lost[str(measure)]])
    ]
