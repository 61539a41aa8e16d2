"""Benchmark: call a search function with every query of a golden set and evaluate its answers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from karat.clients.search_function import Reply, ask
from karat.errors import InputError, UsageError, nearest
from karat.tables import Qrels, Queries, Results, Run
from karat.tables.about import flat
from karat.tables.notes import Concern, Note, in_order
from karat.tables.returned import kind_of
from karat.workflows.engines.search import (
    about_asking,
    disordered,
    is_whole,
    manner_of,
    notes_of,
    reasons_of,
    refuse_shapeless,
    run_of,
    shown_progress,
    title_of,
    why_failed,
)
from karat.workflows.golden.golden_set import GoldenSet
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluate import evaluate

_CUTOFFS = (1, 3, 5, 10)
_OWN = {"golden", "search", "measures", "k", "concurrency", "timeout", "retries", "warmup"} | {
    "progress",
    "name",
    "k_values",
    "about",
}


def benchmark(
    golden: Any,
    search: Callable[[str], Any],
    measures: str | Iterable[str] | None = None,
    k: int | Iterable[int] = _CUTOFFS,
    *,
    k_values: int | Iterable[int] | None = None,
    concurrency: int = 1,
    timeout: float | None = None,
    retries: int = 0,
    warmup: int = 0,
    progress: bool = True,
    name: str | None = None,
    about: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Results:
    """Call a search function with every query of a golden set, and evaluate what it returns.

    ``search`` takes the text of a query and returns ids, ``(id, score)`` pairs, or dicts with
    ``id`` (or ``doc_id``, ``_id``) and optionally ``score``, best first. Results are ordered by
    score if there are scores, otherwise as returned. The function may be async. Pass it further
    arguments with ``functools.partial(search, limit=10)``.

    A query fails if the call raises, times out or does not return a ranking: it has no value and
    is reported. A query without results is empty and scores 0. Exceptions that do not derive from
    ``Exception``, such as KeyboardInterrupt, end the benchmark.

    Args:
        golden: A GoldenSet, a path to one or to a BEIR folder, a list of ``{"query": …,
            "relevant_docs": …}``, or a pair of queries and judgments.
        search: The search function.
        measures: Name or names of measures; if None, nDCG, P, R and Success at every k, and RR
            at the largest.
        k: Cutoff or cutoffs of the default measures; not used with ``measures``.
        k_values: Alias of ``k``.
        concurrency: Number of calls at once. With 1 and no timeout, a plain function is called in
            the current thread, and times are those of an otherwise idle system.
        timeout: Seconds per call. A plain function cannot be stopped: its thread keeps running.
        retries: Number of retries after an error or a timeout, with random exponential waits of up
            to 0.2 s, 0.4 s, … 10 s. The latency of a query is that of the successful attempt.
        warmup: Number of first queries to call once beforehand, neither timed nor counted.
        progress: Show progress on standard error after a second, in a terminal or a notebook.
        name: Name of the run; the name of the function if None.
        about: Facts to record about the run, as ``{"engine": "prod", "index": "docs-7"}``;
            ``write_run`` stores them, and ``compare`` shows what changed.
        **settings: Further arguments of ``evaluate``: ``by="category"``, ``rel``, ….

    Returns:
        The results of ``evaluate``, with latencies.

    Raises:
        UsageError: an invalid argument; raised before the first call.
        InputError: a golden set that cannot be read, or a search that returned an invalid type for
            every query.
    """
    if not callable(search):
        raise UsageError(
            f"the search is {kind_of(search)}, not a function", fix="benchmark(golden, search)"
        )
    if k_values is not None:
        if k is not _CUTOFFS:
            raise UsageError("k and k_values are the same argument; got both", fix="leave out one")
        k = k_values
    manner = manner_of(concurrency, timeout, retries, warmup)
    measure_names = _defaults(k) if measures is None else _asked(measures)
    title = title_of(search, name)
    golden_set = _golden(golden)
    # A copy: queries may be added to the golden set during the benchmark.
    queries, tables = list(golden_set), (golden_set.queries, golden_set.qrels)
    evaluated = functools.partial(_evaluated, tables, measure_names, settings)
    facts = {"golden_set": golden_set.name} | ({"name": title} if name else {})
    run_about = flat({**about_asking(manner, warmup), **facts, **(about or {})}, "about")
    empty_run = Run.from_dict({}, title)
    empty_run.about = run_about
    evaluated(empty_run, rehearsal=True)  # misspelt arguments are reported before the first call

    with shown_progress(len(queries), shown=progress) as tick:
        replies = ask(search, [query.text for query in queries], manner, warmup=warmup, tick=tick)
    query_ids = [query.query_id for query in queries]
    refuse_shapeless(query_ids, replies, title)
    _refuse_scoreless(replies, title, settings)
    reasons = reasons_of(query_ids, replies)
    notes: list[str] = list(notes_of(replies, manner))
    if reasons:
        notes.insert(0, Note(f"why queries failed: {why_failed(reasons)}", Concern.QUERIES))
    run = run_of(query_ids, replies, title, run_about)
    results = evaluated(run)
    silence = results.no_answer
    if not any(reply.ranking.scored for reply in replies if reply.ranking is not None):
        silence = [replace(row, curve=[]) for row in silence]  # no scores for a threshold
    evaluation_notes = [note for note in results.notes if "ranks contradict scores" not in note]
    if run.contradicted:
        notes.insert(0, disordered(run, len(query_ids)))
    return replace(results, no_answer=silence, notes=in_order([*evaluation_notes, *notes]))


def _golden(value: Any) -> GoldenSet:
    if isinstance(value, GoldenSet):
        golden_set = value
    elif isinstance(value, str | Path) and Path(value).is_dir():
        # With several splits only one is read: queries of the others are judged elsewhere.
        alone = len(list(Path(value).glob("qrels/*.tsv*"))) < 2
        golden_set = _tables(value, value, Path(value).name, unjudged=alone)
    elif isinstance(value, str | Path):
        golden_set = GoldenSet.load(value)
    elif isinstance(value, tuple) and len(value) == 2:
        golden_set = _tables(*value)
    elif isinstance(value, list):
        golden_set = GoldenSet.from_list(value)
    else:
        given = f"a tuple of {len(value)}" if isinstance(value, tuple) else kind_of(value)
        raise UsageError(
            f"expected a golden set, got {given}",
            fix="pass a karat.GoldenSet, a path, a list of queries with their relevant_docs, or "
            "(queries, qrels)",
        )
    if not len(golden_set):
        raise InputError("the golden set has no queries", file=golden_set.name, fix="golden.add(…)")
    return golden_set


def _tables(
    queries: Any, qrels: Any, name: str = "golden set", *, unjudged: bool = True
) -> GoldenSet:
    if isinstance(queries, Qrels) or isinstance(qrels, Queries):
        raise UsageError(
            "queries and judgments are swapped", fix="benchmark((queries, qrels), search)"
        )
    if queries is None or qrels is None:
        lacking = "queries" if queries is None else "judgments"
        raise UsageError(f"there are no {lacking}", fix="benchmark((queries, qrels), search)")
    query_table = inputs.queries(queries)
    assert query_table is not None
    return GoldenSet.from_tables(query_table, inputs.qrels(qrels), name, unjudged=unjudged)


def _asked(measures: Any) -> list[str]:
    several = [measures] if isinstance(measures, str) else measures
    names = list(several) if isinstance(several, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError(
            f"measures is {measures!r}, not names of measures", fix='measures=["nDCG@10", "RR"]'
        )
    return names


def _defaults(k: Any) -> list[str]:
    cutoffs = list(k) if isinstance(k, Iterable) and not isinstance(k, str) else [k]
    if not cutoffs or not all(is_whole(cutoff, 1) for cutoff in cutoffs):
        raise UsageError(f"k is {k!r}, not whole numbers from 1", fix="k=(1, 3, 5, 10)")
    cutoffs = [int(cutoff) for cutoff in cutoffs]
    several = [
        f"{symbol}@{cutoff}" for symbol in ("nDCG", "P", "R", "Success") for cutoff in cutoffs
    ]
    return list(dict.fromkeys([*several, f"RR@{max(cutoffs)}"]))


def _evaluated(
    tables: tuple[Queries, Qrels],
    measures: Sequence[str],
    settings: dict[str, Any],
    run: Run,
    *,
    rehearsal: bool = False,
) -> Results:
    arguments = set(inspect.signature(evaluate).parameters) - {"qrels", "runs", "measures"}
    unknown = next((name for name in settings if name not in arguments), None)
    if unknown is not None:
        raise UsageError(
            f"neither benchmark nor evaluate has an argument {unknown!r}",
            nearest=nearest(unknown, arguments | _OWN, 1),
        )
    queries, qrels = tables
    chosen = {"queries": queries, **settings}
    if rehearsal:
        # Enough to find mistakes: quicker, and trec_eval 10 refuses a run without answers.
        chosen |= {"interval": "t"} if chosen.get("interval") == "bca" else {}
        chosen |= {"compat": "trec_eval-9"} if chosen.get("compat") == "trec_eval-10" else {}
    return evaluate(qrels, run, measures, **chosen)


def _refuse_scoreless(replies: Sequence[Reply], name: str, settings: dict[str, Any]) -> None:
    """Refuse a threshold if the search returned no scores."""
    if settings.get("threshold") is None:
        return
    rankings = [r.ranking for r in replies if r.ranking is not None and r.ranking.doc_ids]
    if rankings and not any(ranking.scored for ranking in rankings):
        raise UsageError(
            f"a threshold withholds answers by their scores, and {name} returned none",
            fix='return pairs [("a", 1.5), ("b", 0.5)], or leave out the threshold',
        )
