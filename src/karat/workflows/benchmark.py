"""Benchmark: a search function is asked every query of a golden set; its answers are evaluated."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import polars as pl

from karat.connectors.asking import Manner, Reply, ask
from karat.errors import InputError, UsageError, nearest
from karat.reports.figures import counted
from karat.tables import Qrels, Queries, Results, Run
from karat.tables.notes import Concern, Note, in_order
from karat.tables.returned import EXPECTED, common_reason
from karat.workflows import given
from karat.workflows.evaluate import evaluate
from karat.workflows.golden_set import GoldenSet

_CUTOFFS = (1, 3, 5, 10)
_PATIENCE = 1.0  # seconds before anything moves on the screen
_OWN = {"golden", "search", "measures", "k", "concurrency", "timeout", "retries", "warmup"} | {
    "progress",
    "name",
    "k_values",
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
    **settings: Any,
) -> Results:
    """Ask a search function every query of a golden set, and evaluate what it returns.

    ``search`` takes the text of a query, and returns ids, ``(id, score)`` pairs, or dicts with
    ``id`` (or ``doc_id``, ``_id``) and perhaps ``score``, best first. Without scores the order
    counts; with scores the scores do, as in a run file. It may be async. Give further arguments
    with ``functools.partial(search, limit=10)``.

    What comes back is read at once. A query that raises, times out or returns what is no ranking
    has failed: it has no value and is counted. One that returns nothing is empty and scores 0.
    KeyboardInterrupt, SystemExit and what else is no Exception end the benchmark.

    Args:
        golden: A GoldenSet, a path to one or to a BEIR folder, a list of ``{"query": …,
            "relevant_docs": …}``, or a pair of queries and judgments.
        search: The search.
        measures: Name or names of measures; if None, nDCG, P, R and Success at every k, and RR
            at the largest.
        k: Cutoff or cutoffs of the default measures; not used with ``measures``.
        k_values: Another name of ``k``.
        concurrency: Calls at once. With 1 (and no timeout) a plain function is called in your own
            thread; times are then those of a system that does nothing else.
        timeout: Seconds for each call. A plain function cannot be stopped: it is left behind.
        retries: Further tries after an error or a timeout, after waits that double, at random up
            to 0.2 s, 0.4 s, … 10 s. The time of a query is that of the try that succeeded.
        warmup: So many of the first queries are asked once before, and neither timed nor counted.
        progress: Show progress on standard error, if it is a terminal or a notebook and takes
            longer than a second.
        name: What results call the run; the name of the function if None.
        **settings: Any further arguments of ``evaluate``: ``by="category"``, ``rel``, ….

    Returns:
        What ``evaluate`` returns, with the latencies.

    Raises:
        UsageError: an argument that cannot be, before anything is asked.
        InputError: a golden set that cannot be read, or a search that returned nothing of the
            right shape for any query.
    """
    if not callable(search):
        raise UsageError(
            f"the search is {_a(search)}, not a function", fix="benchmark(golden, search)"
        )
    if k_values is not None:
        if k is not _CUTOFFS:
            raise UsageError("k and k_values are the same argument; got both", fix="leave out one")
        k = k_values
    manner = _manner(concurrency, timeout, retries, warmup)
    asked = _defaults(k) if measures is None else _asked(measures)
    title = _title(search, name)
    held = _golden(golden)
    # Taken once: a golden set may be added to while it is asked.
    queries, tables = list(held), (held.queries, held.qrels)
    evaluated = functools.partial(_evaluated, tables, asked, settings)
    evaluated(Run.from_dict({}, title), rehearsal=True)  # what is misspelt is said before asking

    with _progress(len(queries), shown=progress) as tick:
        replies = ask(search, [query.text for query in queries], manner, warmup=warmup, tick=tick)
    about = {
        "golden_set": held.name,
        "asked": datetime.now(UTC).isoformat(timespec="seconds"),
        "concurrency": str(concurrency),
        "timeout": "none" if manner.timeout is None else f"{manner.timeout:g} s",
        "retries": str(retries),
        "warmup": str(warmup),
    }
    query_ids = [query.query_id for query in queries]
    _refuse_shapeless(query_ids, replies, title)
    _refuse_scoreless(replies, title, settings)
    notes = list(_notes(replies))
    if manner.overdue:
        notes.append(
            f"{counted(len(manner.overdue), 'call', 'calls')} went on after the timeout, since "
            "what runs in a thread cannot be stopped, and may have slowed those that came after"
        )
    if concurrency > 1:
        notes.append(f"times were taken with up to {concurrency} calls at once")
    run = _run(query_ids, replies, title, about)
    results = evaluated(run)
    silence = results.no_answer
    if not any(reply.ranking.scored for reply in replies if reply.ranking is not None):
        silence = [replace(row, curve=[]) for row in silence]  # no scores to withhold answers by
    told = [note for note in results.notes if "ranks contradict scores" not in note]
    if run.contradicted:
        notes.insert(0, _disordered(run, len(query_ids)))
    return replace(results, no_answer=silence, notes=in_order([*told, *notes]))


def _disordered(run: Run, asked: int) -> str:
    """Users see the order of the search, karat that of the scores: whoever mixes them must know."""
    return Note(
        f"{run.name} returned documents in another order than their scores in "
        f"{run.contradicted:,} of {counted(asked, 'query', 'queries')}; karat goes by score",
        Concern.ORDER,
    )


def _golden(value: Any) -> GoldenSet:
    if isinstance(value, GoldenSet):
        held = value
    elif isinstance(value, str | Path) and Path(value).is_dir():
        # Of several splits one is read: the queries of the others are not without judgments.
        alone = len(list(Path(value).glob("qrels/*.tsv*"))) < 2
        held = _tables(value, value, Path(value).name, unjudged=alone)
    elif isinstance(value, str | Path):
        held = GoldenSet.load(value)
    elif isinstance(value, tuple) and len(value) == 2:
        held = _tables(*value)
    elif isinstance(value, list):
        held = GoldenSet.from_list(value)
    else:
        what = f"a tuple of {len(value)}" if isinstance(value, tuple) else _a(value)
        raise UsageError(
            f"{what} is no golden set",
            fix="give a karat.GoldenSet, a path, a list of queries with their relevant_docs, or "
            "(queries, qrels)",
        )
    if not len(held):
        raise InputError("the golden set has no queries", file=held.name, fix="golden.add(…)")
    return held


def _tables(
    queries: Any, qrels: Any, name: str = "golden set", *, unjudged: bool = True
) -> GoldenSet:
    if isinstance(queries, Qrels) or isinstance(qrels, Queries):
        raise UsageError(
            "the judgments stand before the queries", fix="benchmark((queries, qrels), search)"
        )
    if queries is None or qrels is None:
        lacking = "queries" if queries is None else "judgments"
        raise UsageError(f"there are no {lacking}", fix="benchmark((queries, qrels), search)")
    asked = given.queries(queries)
    assert asked is not None
    return GoldenSet.from_tables(asked, given.qrels(qrels), name, unjudged=unjudged)


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
    if not cutoffs or not all(_is_whole(each, 1) for each in cutoffs):
        raise UsageError(f"k is {k!r}, not whole numbers from 1", fix="k=(1, 3, 5, 10)")
    cutoffs = [int(each) for each in cutoffs]
    several = [f"{symbol}@{each}" for symbol in ("nDCG", "P", "R", "Success") for each in cutoffs]
    return list(dict.fromkeys([*several, f"RR@{max(cutoffs)}"]))


def _manner(concurrency: Any, timeout: Any, retries: Any, warmup: Any) -> Manner:
    for what, value, least in (
        ("concurrency", concurrency, 1),
        ("retries", retries, 0),
        ("warmup", warmup, 0),
    ):
        if not _is_whole(value, least):
            raise UsageError(f"{what} is {value!r}, not a whole number from {least}")
    if timeout is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, Real):
            raise UsageError(f"timeout is {timeout!r}, not a number", fix="timeout=5, in seconds")
        timeout = float(timeout)
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            says = "leaves no time" if timeout <= 0 else "is no time to wait for"
            raise UsageError(f"a timeout of {timeout:g} {says}", fix="timeout=5, in seconds")
    return Manner(int(concurrency), timeout, int(retries))


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _a(value: Any) -> str:
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[:1] in 'aeiouAEIO' else 'a'} {kind}"


def _evaluated(
    tables: tuple[Queries, Qrels],
    measures: Sequence[str],
    settings: dict[str, Any],
    run: Run,
    *,
    rehearsal: bool = False,
) -> Results:
    known = set(inspect.signature(evaluate).parameters) - {"qrels", "runs", "measures"}
    unknown = next((each for each in settings if each not in known), None)
    if unknown is not None:
        raise UsageError(
            f"neither benchmark nor evaluate has an argument {unknown!r}",
            nearest=nearest(unknown, known | _OWN, 1),
        )
    queries, qrels = tables
    chosen = {"queries": queries, **settings}
    if rehearsal:
        # As good for finding mistakes: quicker, and trec_eval 10 refuses a run without answers.
        chosen |= {"interval": "t"} if chosen.get("interval") == "bca" else {}
        chosen |= {"compat": "trec_eval-9"} if chosen.get("compat") == "trec_eval-10" else {}
    return evaluate(qrels, run, measures, **chosen)


def _refuse_shapeless(query_ids: Sequence[str], replies: Sequence[Reply], name: str) -> None:
    """Refuse a search that makes the same mistake with every query."""
    kinds = {reply.kind for reply in replies}
    if len(kinds) == 1 and None not in kinds:
        first = replies[0]
        raise InputError(
            f"{name} returned no ranking for any query: {first.error}; what came back: "
            f"{first.came}",
            query=query_ids[0],
            fix=f"return {EXPECTED}",
        )


def _refuse_scoreless(replies: Sequence[Reply], name: str, settings: dict[str, Any]) -> None:
    """Refuse a threshold where there are no scores it could cut."""
    if settings.get("threshold") is None:
        return
    found = [r.ranking for r in replies if r.ranking is not None and r.ranking.doc_ids]
    if found and not any(ranking.scored for ranking in found):
        raise UsageError(
            f"a threshold withholds answers by their scores, and {name} returned none",
            fix='return pairs [("a", 1.5), ("b", 0.5)], or leave out the threshold',
        )


def _run(
    query_ids: Sequence[str], replies: Sequence[Reply], name: str, about: dict[str, str]
) -> Run:
    rankings = [
        (query_id, reply.ranking)
        for query_id, reply in zip(query_ids, replies, strict=True)
        if reply.ranking is not None and reply.ranking.doc_ids
    ]
    rows = pl.DataFrame(
        {
            "query_id": [query for query, r in rankings for _ in r.doc_ids],
            "doc_id": [doc for _, r in rankings for doc in r.doc_ids],
            "score": [score for _, r in rankings for score in r.scores],
            "rank": [rank for _, r in rankings for rank in range(1, len(r.doc_ids) + 1)],
        },
        schema={
            "query_id": pl.String,
            "doc_id": pl.String,
            "score": pl.Float64,
            "rank": pl.Int64,
        },
    )
    states = [
        "failed" if r.ranking is None else "ok" if r.ranking.doc_ids else "empty" for r in replies
    ]
    told = pl.DataFrame(
        {
            "query_id": list(query_ids),
            "state": states,
            "latency_us": [reply.latency_us for reply in replies],
            "error": [reply.error for reply in replies],
            "repeated": [(r.ranking.repeated if r.ranking else 0) or None for r in replies],
        },
        schema={
            "query_id": pl.String,
            "state": pl.String,
            "latency_us": pl.Int64,
            "error": pl.String,
            "repeated": pl.Int64,
        },
    )
    return Run.from_batches(name, [rows], answers=told, about=about)


def _notes(replies: Sequence[Reply]) -> Iterator[str]:
    errors = Counter(common_reason(reply.error) for reply in replies if reply.error is not None)
    if errors:
        most = "; ".join(f"{error} ({count:,})" for error, count in errors.most_common(3))
        more = "; …" if len(errors) > 3 else ""
        yield Note(f"why queries failed: {most}{more}", Concern.QUERIES)
    again = sum(reply.tries > 1 and reply.error is None for reply in replies)
    if again:
        yield (
            f"{counted(again, 'query', 'queries')} answered, but not at the first try: the time is "
            "that of the try that succeeded"
        )


def _title(search: Any, name: Any) -> str:
    """What results call the run."""
    if name is None:
        return _name(search).encode("utf-8", "replace").decode()
    if not isinstance(name, str):
        raise UsageError(f"the name of the run is {_a(name)}, not text", fix='name="my search"')
    if not name.strip():
        raise UsageError("the name of the run is empty", fix='name="my search"')
    if name.encode("utf-8", "replace").decode() != name:
        raise UsageError(
            f"the name {name!r} holds half of a surrogate pair, which is no character",
            fix='name="my search"',
        )
    return name


def _name(search: Any) -> str:
    while isinstance(search, functools.partial):
        search = search.func
    name = getattr(search, "__name__", None) or type(search).__name__
    return "search" if name == "<lambda>" else str(name)


@contextmanager
def _progress(total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar for whatever takes longer than a second, where somebody can see it."""
    out = _screen() if shown else None
    if out is None:
        yield lambda _done: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=out, transient=True)
    task = bar.add_task("asking", total=total)
    began = time.monotonic()
    started = False

    def tick(done: int) -> None:
        nonlocal started
        bar.update(task, completed=done)
        if not started and time.monotonic() - began > _PATIENCE:
            started = True
            bar.start()

    try:
        yield tick
    finally:
        if started:
            bar.stop()


def _screen() -> Any:
    """Where progress can be seen: a terminal, or a notebook that shows widgets; else None."""
    from karat.reports.terminal import console

    if sys.stderr is not None and sys.stderr.isatty():
        return console(sys.stderr)
    if "ipykernel" in sys.modules:
        from importlib.util import find_spec

        from rich.console import Console

        out = Console(stderr=True)
        # Without it Rich warns in the notebook at every refresh.
        return out if out.is_jupyter and find_spec("ipywidgets") else None
    return None
