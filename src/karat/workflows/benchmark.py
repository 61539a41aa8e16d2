"""Benchmark: a search function is asked every query of a golden set; its answers are evaluated."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from karat.connectors.asking import Manner, Reply, ask
from karat.errors import InputError, UsageError, nearest
from karat.reports.figures import counted
from karat.tables import Results, Run
from karat.tables.returned import EXPECTED, Ranked, Unusable, ranked, shown
from karat.workflows import given
from karat.workflows.evaluate import evaluate
from karat.workflows.golden_set import GoldenSet

_PATIENCE = 1.0  # seconds before anything moves on the screen


def benchmark(
    golden: Any,
    search: Callable[[str], Any],
    measures: str | Iterable[str] | None = None,
    k: int | Iterable[int] = (1, 3, 5, 10),
    *,
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

    A query that raises, times out or returns what is no ranking has failed: it has no value and is
    counted. One that returns nothing is empty and scores 0.

    Args:
        golden: A GoldenSet, a path to one, a list of ``{"query": …, "relevant_docs": …}``, or a
            pair of queries and judgments.
        search: The search.
        measures: Name or names of measures; if None, nDCG, P, R and Success at every k, and RR
            at the largest.
        k: Cutoff or cutoffs of the default measures; not used with ``measures``.
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
    held = _golden(golden)
    asked = (
        _measures(k) if measures is None else [measures] if isinstance(measures, str) else measures
    )
    manner = _manner(concurrency, timeout, retries, warmup)
    evaluated = functools.partial(_evaluated, held, list(asked), settings)
    title = name or _name(search)
    if not callable(search):
        raise UsageError(
            f"the search is a {type(search).__name__}, not a function",
            fix="benchmark(golden, search)",
        )
    evaluated(Run.from_dict({}, title), rehearsal=True)  # what is misspelt is said before asking

    texts = [query.text for query in held]
    with _progress(len(texts), shown=progress) as tick:
        replies = ask(search, texts, manner, warmup=warmup, tick=tick)
    about = {
        "golden_set": held.name,
        "asked": datetime.now(UTC).isoformat(timespec="seconds"),
        "concurrency": str(concurrency),
        "timeout": "none" if timeout is None else f"{timeout:g} s",
        "retries": str(retries),
        "warmup": str(warmup),
    }
    run, notes = _run([query.query_id for query in held], replies, title, about)
    if manner.overdue:
        notes.append(
            f"{counted(len(manner.overdue), 'call', 'calls')} went on after the timeout, since a "
            "plain function cannot be stopped, and may have slowed those that came after"
        )
    if concurrency > 1:
        notes.append(f"times were taken with up to {concurrency} calls at once")
    results = evaluated(run)
    return replace(results, notes=[*results.notes, *notes])


def _golden(value: Any) -> GoldenSet:
    if isinstance(value, GoldenSet):
        held = value
    elif isinstance(value, str | Path):
        held = GoldenSet.load(value)
    elif isinstance(value, tuple) and len(value) == 2:
        queries, qrels = given.queries(value[0]), given.qrels(value[1])
        if queries is None:
            raise UsageError("there are no queries", fix="benchmark((queries, qrels), search)")
        held = GoldenSet.from_tables(queries, qrels)
    elif isinstance(value, list):
        held = GoldenSet.from_list(value)
    else:
        raise UsageError(
            f"a {type(value).__name__} is no golden set",
            fix="give a karat.GoldenSet, a path, a list of queries with their relevant_docs, or "
            "(queries, qrels)",
        )
    if not len(held):
        raise InputError("the golden set has no queries", file=held.name, fix="golden.add(…)")
    return held


def _measures(k: int | Iterable[int]) -> list[str]:
    cutoffs = [k] if isinstance(k, int) else list(k)
    wrong = [each for each in cutoffs if isinstance(each, bool) or not isinstance(each, int)]
    if wrong or not cutoffs or min(cutoffs) < 1:
        raise UsageError(f"k is {k!r}, not whole numbers from 1", fix="k=(1, 3, 5, 10)")
    several = [f"{symbol}@{each}" for symbol in ("nDCG", "P", "R", "Success") for each in cutoffs]
    return list(dict.fromkeys([*several, f"RR@{max(cutoffs)}"]))


def _manner(concurrency: int, timeout: float | None, retries: int, warmup: int) -> Manner:
    for what, value, least in (
        ("concurrency", concurrency, 1),
        ("retries", retries, 0),
        ("warmup", warmup, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{what} is {value!r}, not a whole number from {least}")
    if timeout is not None and not 0 < timeout < float("inf"):
        raise UsageError(f"a timeout of {timeout!r} leaves no time", fix="timeout=5, in seconds")
    return Manner(concurrency, timeout, retries)


def _evaluated(
    held: GoldenSet,
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
            nearest=nearest(unknown, known, 1),
        )
    chosen = {"queries": held.queries, **settings}
    if rehearsal:
        # As good for finding mistakes: quicker, and trec_eval 10 refuses a run without answers.
        chosen |= {"interval": "t"} if chosen.get("interval") == "bca" else {}
        chosen |= {"compat": "trec_eval-9"} if chosen.get("compat") == "trec_eval-10" else {}
    return evaluate(held.qrels, run, measures, **chosen)


@dataclass(frozen=True, slots=True)
class _Answer:
    query_id: str
    reply: Reply
    ranking: Ranked | None
    error: str | None
    kind: str | None  # what is wrong with the shape of what came back, if that is wrong


def _answer(query_id: str, reply: Reply) -> _Answer:
    if reply.error is not None:
        return _Answer(query_id, reply, None, reply.error, None)
    try:
        return _Answer(query_id, reply, ranked(reply.value), None, None)
    except Unusable as error:
        return _Answer(query_id, reply, None, str(error), error.kind)
    except Exception as error:  # noqa: BLE001 - what came back may raise anything when it is read
        return _Answer(query_id, reply, None, f"what it returned cannot be read: {error!r}", None)


def _run(
    query_ids: Sequence[str], replies: Sequence[Reply], name: str, about: dict[str, str]
) -> tuple[Run, list[str]]:
    """The run, and what must be said of it."""
    answers = [_answer(query, reply) for query, reply in zip(query_ids, replies, strict=True)]
    kinds = {answer.kind for answer in answers}
    if len(kinds) == 1 and None not in kinds:
        first = answers[0]
        raise InputError(
            f"{name} returned no ranking for any query: {first.error}; what came back: "
            f"{shown(first.reply.value)}",
            query=first.query_id,
            fix=f"return {EXPECTED}",
        )
    rankings = [(a.query_id, a.ranking) for a in answers if a.ranking and a.ranking.doc_ids]
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
        "failed" if a.ranking is None else "ok" if a.ranking.doc_ids else "empty" for a in answers
    ]
    told = pl.DataFrame(
        {
            "query_id": list(query_ids),
            "state": states,
            "latency_us": [a.reply.latency_us for a in answers],
            "error": [a.error for a in answers],
        },
        schema={
            "query_id": pl.String,
            "state": pl.String,
            "latency_us": pl.Int64,
            "error": pl.String,
        },
    )
    return Run.from_batches(name, [rows], answers=told, about=about), list(_notes(answers))


def _notes(answers: Sequence[_Answer]) -> Iterator[str]:
    errors = Counter(answer.error for answer in answers if answer.error is not None)
    if errors:
        most = "; ".join(f"{error} ({count:,})" for error, count in errors.most_common(3))
        yield f"why queries failed: {most}{'; …' if len(errors) > 3 else ''}"
    again = sum(a.reply.tries > 1 and a.reply.error is None for a in answers)
    if again:
        yield (
            f"{counted(again, 'query', 'queries')} answered, but not at the first try: the time is "
            "that of the try that succeeded"
        )
    repeated = [a.ranking.repeated for a in answers if a.ranking and a.ranking.repeated]
    if repeated:
        yield (
            f"documents returned twice in {counted(len(repeated), 'query', 'queries')}: the first "
            "place counts, and "
            f"{sum(repeated):,} further {'one is' if sum(repeated) == 1 else 'ones are'} left out"
        )


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
