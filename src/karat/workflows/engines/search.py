"""Search: call a search function with every query, and write what it returns as a run."""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from karat import formats
from karat.clients.search_function import CallSettings, Reply, asking
from karat.errors import InputError, KaratError, UsageError, but
from karat.formats.tables import sidecar
from karat.formats.tables.format import RunInParts
from karat.formats.tables.writing import check_run
from karat.reports.phrases.numbers import counted
from karat.stats.quantiles import latency_of
from karat.tables import Queries, Run
from karat.tables.about import flat
from karat.tables.notes import Concern, Note
from karat.tables.returned import EXPECTED, Ranked, common_reason, kind_of
from karat.tables.searched import Reason, Searched
from karat.workflows.engines._journal import Journal, Outcome, outcome_of
from karat.workflows.offline.notes import of_repeats

_PATIENCE = 1.0  # seconds before the progress bar appears
_REASONS = 3
_PART = 500  # queries whose documents are in memory at once
_IN_FULL = ("rows", "tie_start", "tie_size")  # of a run


def search(
    queries: Queries,
    function: Callable[[str], Any],
    out: str | Path,
    *,
    concurrency: int = 1,
    timeout: float | None = None,
    retries: int = 0,
    warmup: int = 0,
    **settings: Any,
) -> Searched:
    """``settings`` are further ones of ``search_by``."""
    manner = manner_of(concurrency, timeout, retries, warmup)
    settings |= {"manner": manner, "warmup": warmup, "function": function}
    with Journal() as journal:
        return search_by(queries, function, out, journal, **settings)


def search_by(
    queries: Queries,
    call: Callable[[Any], Any],
    out: str | Path,
    journal: Journal,
    *,
    asked: Sequence[Any] | None = None,
    engine: str,
    manner: CallSettings,
    warmup: int,
    output_format: str | None = None,
    depth: int | None = None,
    name: str | None = None,
    about: Mapping[str, Any] | None = None,
    commit: str | None = None,
    progress: bool = True,
    function: Any = None,
    fix: str | None = None,
    repeat: int = 1,
    watch: Callable[[int], None] = lambda _done: None,
) -> Searched:
    """As ``search``; ``call`` is called with ``asked`` instead of the texts, if that is given.

    Args:
        fix: For the case that all queries fail.
        repeat: How often each query is asked, for its latency.
        watch: Called with the number of queries that are done.
    """
    if depth is not None:
        check_whole("depth", depth, "-k 100")
    check_whole("repeat", repeat, "--repeat 3")
    if output_format is None and str(out) == "-":
        output_format = "jsonl"
    title = formats.stem(out) if name is None else title_of(function, name)
    query_ids, texts = _asked(queries)
    facts = {"engine": engine, "queries": queries.source} | ({"name": title} if name else {})
    facts |= ({"commit": commit} if commit else {}) | ({"depth": str(depth)} if depth else {})
    facts |= {"repeat": str(repeat)} if repeat > 1 else {}
    run_about = flat({**about_asking(manner, warmup), **facts, **(about or {})}, "--about")
    check_run(query_ids, out, output_format)
    rounds = _Rounds(call, query_ids, asked or texts, journal, manner, warmup, repeat, watch)
    replies = rounds.ask(shown=progress)
    reasons = reasons_of(query_ids, replies)
    failed = sum(reason.queries for reason in reasons)
    if failed == len(replies):
        raise _nothing(engine, replies, reasons, fix)
    run = _JournaledRun(title, query_ids, replies, journal, run_about, depth)
    _write(run, out, output_format)
    empty = int((run.answers["state"] == "empty").sum())
    notes = [*notes_of(replies, manner), *rounds.notes(), *of_repeats(run)]
    if empty == len(replies) - failed:
        notes.insert(0, "no query returned a document")
    if run.contradicted:
        notes.insert(0, disordered(run, len(query_ids)))
    notes += _of_sidecar(out)
    return Searched(
        run,
        len(replies),
        len(replies) - failed - empty,
        empty,
        failed,
        reasons,
        latency_of(run),
        notes,
        str(out),
    )


def _of_sidecar(out: str | Path) -> Iterator[str]:
    if str(out) != "-" and sidecar.place_of(out).is_file():
        yield (
            f"{Path(out).name}{sidecar.ENDING} has what the format of the run cannot store: keep "
            "the two files together, or write .jsonl or .parquet"
        )


@dataclass
class _Rounds:
    """Asks the queries, those that the journal has no answer to; then again, for their latency."""

    call: Callable[[Any], Any]
    ids: Sequence[str]
    asked: Sequence[Any]
    journal: Journal
    manner: CallSettings
    warmup: int
    repeat: int
    watch: Callable[[int], None]
    others: int = 0  # queries that returned other documents when asked again
    failures: int = 0  # of answered queries, when asked again

    def ask(self, *, shown: bool) -> list[Outcome]:
        with shown_progress(len(self.ids) * self.repeat, shown=shown) as progress:
            outcomes = self._first(progress)
            return self._again(outcomes, progress) if self.repeat > 1 else outcomes

    def _first(self, progress: Callable[..., None]) -> list[Outcome]:
        known = self.journal.read(self.ids)
        before, failed = len(known), 0
        left = [place for place, query in enumerate(self.ids) if query not in known]

        def tick(done: int) -> None:
            progress(before + done, failed)
            self.watch(before + done)

        rest = [self.asked[place] for place in left]
        warmup = self.warmup
        with closing(asking(self.call, rest, self.manner, warmup=warmup, tick=tick)) as replies:
            for at, reply in replies:
                query = self.ids[left[at]]
                known[query] = self.journal.write(query, reply)
                failed += reply.error is not None
        return [known[query] for query in self.ids]

    def _again(self, outcomes: list[Outcome], progress: Callable[..., None]) -> list[Outcome]:
        """The outcomes with the medians of their latencies."""
        answered = [at for at, outcome in enumerate(outcomes) if outcome.state != "failed"]
        again = [self.asked[at] for at in answered]
        times = np.full((self.repeat, len(answered)), np.nan)
        times[0] = [outcomes[at].latency_us for at in answered]
        changed: set[int] = set()
        for number in range(1, self.repeat):
            manner = replace(self.manner, stopped=threading.Event())
            done = functools.partial(
                lambda number, done: progress(len(self.ids) * number + done), number
            )
            with closing(asking(self.call, again, manner, tick=done)) as replies:
                for place, reply in replies:
                    if reply.ranking is None:
                        self.failures += 1
                        continue
                    times[number, place] = reply.latency_us
                    first = self.journal.ranking(outcomes[answered[place]])
                    if first.doc_ids != reply.ranking.doc_ids:
                        changed.add(place)
        self.others = len(changed)
        medians = np.nanmedian(times, axis=0).round().astype(int).tolist()
        for at, latency in zip(answered, medians, strict=True):
            outcomes[at] = replace(outcomes[at], latency_us=latency)
        return outcomes

    def notes(self) -> Iterator[str]:
        if self.repeat > 1:
            yield f"each query was asked {self.repeat} times: its latency is the median"
        if self.others:
            queries = counted(self.others, "query", "queries")
            yield f"{queries} returned other documents when asked again; the run has the first"
        if self.failures:
            yield f"{counted(self.failures, 'answer', 'answers')} failed when asked again"


class _JournaledRun(RunInParts):
    """A run whose documents are read from the journal where they are needed."""

    def __init__(
        self,
        name: str,
        ids: Sequence[str],
        outcomes: Sequence[Outcome],
        journal: Journal,
        about: dict[str, str],
        depth: int | None,
    ) -> None:
        self.name = self.source = name
        self.about = about
        self._journal, self._depth = journal, depth
        pairs = list(zip(ids, outcomes, strict=True))
        self._found = [pair for pair in pairs if pair[1].returned]
        self._others = [pair for pair in pairs if not pair[1].returned]
        self.query_ids = [query for query, _ in self._found]
        counts = [min(each.returned, depth or each.returned) for _, each in self._found]
        self.starts = np.concatenate(([0], counts)).cumsum().astype(np.int64)
        self.contradicting = frozenset()
        self.answers = self._answers(_answers(pairs))
        weakref.finalize(self, journal.close)

    def parts(self) -> Iterator[Run]:
        for pairs in (self._found, self._others):
            for start in range(0, len(pairs), _PART):
                yield self._part(pairs[start : start + _PART])

    def _part(self, pairs: Sequence[tuple[str, Outcome]]) -> Run:
        found = [(query, self._journal.ranking(each)) for query, each in pairs if each.returned]
        answers = _answers(pairs)
        part = Run.from_batches(self.name, [_rows(found)], answers=answers, about=self.about)
        self.contradicting |= part.contradicting
        cut = self._depth is not None and any(each.returned > self._depth for _, each in pairs)
        return part.to_depth(self._depth) if cut and self._depth else part

    def __getattr__(self, name: str) -> Any:
        if name not in _IN_FULL:
            raise AttributeError(name)
        whole = Run.from_batches(self.name, [part.frame() for part in self.parts()])
        self.__dict__.update({name: getattr(whole, name) for name in _IN_FULL})
        return self.__dict__[name]


def _write(run: Run, out: str | Path, output_format: str | None) -> None:
    """Write the run; as JSONL next to it if the format cannot store its documents."""
    try:
        formats.write_run(run, out, output_format)
    except InputError as error:
        if str(out) == "-":
            raise
        rescued = f"{out}.jsonl"
        formats.write_run(run, rescued, "jsonl")
        fix = f"the run was written to {rescued} instead, a format that can store any text"
        raise but(error, file=str(out), fix=fix) from None


def _asked(queries: Queries) -> tuple[list[str], list[str]]:
    """Ids and texts of the queries; every query must have a text."""
    text_of = queries.texts()
    query_ids = queries.frame["query_id"].to_list()
    if not query_ids:
        raise InputError("there are no queries", file=queries.source)
    without_text = [query for query in query_ids if not text_of.get(query, "").strip()]
    if without_text:
        subject = "the queries have" if len(without_text) == len(query_ids) else "the query has"
        raise InputError(
            f"{subject} no text to search for",
            file=queries.source,
            query=without_text[0],
            fix="give each query a text, in a column called text",
        )
    return query_ids, [text_of[query] for query in query_ids]


def _nothing(
    engine: str, replies: Sequence[Outcome], reasons: Sequence[Reason], fix: str | None
) -> KaratError:
    first = reasons[0]
    where = f"{first.place}: " if first.place else ""
    queries = counted(len(replies), "query", "queries")
    text = f"{where}{engine} answered none of {queries}, and nothing was written: {first.error}"
    if len(reasons) > 1:
        others = "; ".join(f"{reason.error} ({reason.queries:,})" for reason in reasons[1:_REASONS])
        text += f" ({first.queries:,}); {others}"
    came = next((reply.came for reply in replies if reply.came), None)
    if came is not None:
        return KaratError(f"{text}; what came back: {came}", fix=f"return {EXPECTED}")
    by_hand = f"call it in Python with the text of query {first.query_id}"
    return KaratError(text, fix=fix or by_hand)


# --- shared with benchmark ---


def about_asking(manner: CallSettings, warmup: int) -> dict[str, str]:
    """When and how the search was called, for the ``about`` of the run."""
    return {
        "asked_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "concurrency": str(manner.concurrency),
        "timeout": "none" if manner.timeout is None else f"{manner.timeout:g} s",
        "retries": str(manner.retries),
        "warmup": str(warmup),
    }


def reasons_of(query_ids: Sequence[str], replies: Sequence[Reply]) -> list[Reason]:
    """Why queries failed, the most common reason first."""
    failed = [(q, reply) for q, reply in zip(query_ids, replies, strict=True) if reply.error]
    counts = Counter(common_reason(reply.error or "") for _, reply in failed)
    first: dict[str, tuple[str, Reply]] = {}
    for query, reply in failed:
        first.setdefault(common_reason(reply.error or ""), (query, reply))
    return [
        Reason(error, count, first[error][0], first[error][1].place)
        for error, count in counts.most_common()
    ]


def manner_of(concurrency: Any, timeout: Any, retries: Any, warmup: Any) -> CallSettings:
    """Validated settings of the calls."""
    for name, value, least in (
        ("concurrency", concurrency, 1),
        ("retries", retries, 0),
        ("warmup", warmup, 0),
    ):
        if not is_whole(value, least):
            raise UsageError(f"{name} must be a whole number from {least}, got {value!r}")
    if timeout is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, Real):
            raise UsageError(
                f"timeout must be a number, got {timeout!r}", fix="timeout=5, in seconds"
            )
        timeout = float(timeout)
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            raise UsageError(
                f"timeout must be above 0 and at most {threading.TIMEOUT_MAX:.0f}, got {timeout:g}",
                fix="timeout=5, in seconds",
            )
    return CallSettings(int(concurrency), timeout, int(retries))


def check_whole(name: str, value: Any, fix: str) -> None:
    """Raise UsageError unless a value is a whole number from 1."""
    if not is_whole(value, 1):
        raise UsageError(f"{name} is {value!r}, not a whole number from 1", fix=fix)


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number from ``least``."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def run_of(
    query_ids: Sequence[str], replies: Sequence[Reply], name: str, about: dict[str, str]
) -> Run:
    rankings = [
        (query_id, reply.ranking)
        for query_id, reply in zip(query_ids, replies, strict=True)
        if reply.ranking is not None and reply.ranking.doc_ids
    ]
    outcomes = [outcome_of(reply) for reply in replies]
    answers = _answers(list(zip(query_ids, outcomes, strict=True)))
    return Run.from_batches(name, [_rows(rankings)], answers=answers, about=about)


def _rows(rankings: Sequence[tuple[str, Ranked]]) -> pl.DataFrame:
    return pl.DataFrame(
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


def _answers(outcomes: Sequence[tuple[str, Outcome]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "query_id": [query for query, _ in outcomes],
            "state": [each.state for _, each in outcomes],
            "latency_us": [each.latency_us for _, each in outcomes],
            "error": [each.error for _, each in outcomes],
            "repeated": [each.repeated or None for _, each in outcomes],
        },
        schema={
            "query_id": pl.String,
            "state": pl.String,
            "latency_us": pl.Int64,
            "error": pl.String,
            "repeated": pl.Int64,
        },
    )


def refuse_shapeless(query_ids: Sequence[str], replies: Sequence[Reply], name: str) -> None:
    """Refuse a search that returns the same invalid type for every query."""
    kinds = {reply.kind for reply in replies}
    if len(kinds) == 1 and None not in kinds:
        first = replies[0]
        raise InputError(
            f"{name} returned no ranking for any query: {first.error}; what came back: "
            f"{first.came}",
            query=query_ids[0],
            fix=f"return {EXPECTED}",
        )


def notes_of(replies: Sequence[Reply], manner: CallSettings) -> Iterator[str]:
    """Notes on retries, timeouts and concurrency."""
    retried = sum(reply.tries > 1 and reply.error is None for reply in replies)
    if retried:
        yield (
            f"{counted(retried, 'query', 'queries')} answered only after a retry: the latency is "
            "that of the successful attempt"
        )
    if manner.overdue:
        yield (
            f"{counted(len(manner.overdue), 'call', 'calls')} kept running after the timeout, "
            "because a thread cannot be stopped, and may have slowed later calls"
        )
    if manner.concurrency > 1:
        yield f"latencies were measured with up to {manner.concurrency} calls at once"


def why_failed(reasons: Sequence[Reason]) -> str:
    """The most common reasons, in one line."""
    most = "; ".join(f"{reason.error} ({reason.queries:,})" for reason in reasons[:_REASONS])
    return f"{most}{'; …' if len(reasons) > _REASONS else ''}"


def disordered(run: Run, asked: int) -> Note:
    """A note that the returned order, which users see, differs from the order by score."""
    return Note(
        f"{run.name} returned documents in an order that contradicts their scores in "
        f"{run.contradicted:,} of {counted(asked, 'query', 'queries')}; karat orders by score",
        Concern.ORDER,
    )


def title_of(search: Any, name: Any) -> str:
    if name is None:
        return _name(search).encode("utf-8", "replace").decode()
    if not isinstance(name, str):
        raise UsageError(
            f"the name of the run is {kind_of(name)}, not text", fix='name="my search"'
        )
    if not name.strip():
        raise UsageError("the name of the run is empty", fix='name="my search"')
    if name.encode("utf-8", "replace").decode() != name:
        raise UsageError(
            f"the name {name!r} contains half of a surrogate pair, which is not a character",
            fix='name="my search"',
        )
    return name


def _name(search: Any) -> str:
    while isinstance(search, functools.partial):
        search = search.func
    name = getattr(search, "__name__", None) or type(search).__name__
    return "search" if name == "<lambda>" else str(name)


@contextmanager
def shown_progress(total: int, *, shown: bool) -> Iterator[Callable[..., None]]:
    """A progress bar after a second, in a terminal or a notebook.

    Yields a function of the number that is done, and optionally of those that failed.
    """
    out = _screen() if shown else None
    if out is None:
        yield lambda _done, _failed=0: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, TextColumn("{task.fields[failed]}"), console=out, transient=True)
    task = bar.add_task("asking", total=total, failed="")
    began = time.monotonic()
    started = False

    def tick(done: int, failed: int = 0) -> None:
        nonlocal started
        bar.update(task, completed=done, failed=f"{failed:,} failed" if failed else "")
        if not started and time.monotonic() - began > _PATIENCE:
            started = True
            bar.start()

    try:
        yield tick
    finally:
        if started:
            bar.stop()


def _screen() -> Any:
    """Console of a terminal, or of a notebook that shows widgets; else None."""
    from karat.reports.writers.terminal import console

    if sys.stderr is not None and sys.stderr.isatty():
        return console(sys.stderr)
    if "ipykernel" in sys.modules:
        from importlib.util import find_spec

        from rich.console import Console

        out = Console(stderr=True)
        # Without it Rich warns in the notebook at every refresh.
        return out if out.is_jupyter and find_spec("ipywidgets") else None
    return None
