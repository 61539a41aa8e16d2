"""Tuning: search better parameters of an engine, and test the best on queries held out.

Only the development part is asked while searching; the held-out part is asked once, with the
declared and with the best parameters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from karat.clients.search_function import Reply, asking
from karat.engines.search.engine import fingerprint
from karat.errors import InputError, KaratError, UsageError
from karat.formats.own import held_out
from karat.golden.splitting import DEV, HELD_OUT, PART, parts
from karat.measures.evidence import Floats
from karat.reports.phrases.numbers import counted
from karat.stats.averages import mean
from karat.stats.intervals import LEAST, estimate
from karat.stats.reuse import MOST_USES, Reused, reused
from karat.stats.verdicts import LEVEL
from karat.stats.weighing import Weighing
from karat.tables import Qrels, Queries, Run
from karat.tables.about import flat
from karat.tables.comparison import Comparison, Difference
from karat.tables.engines import EngineConfig, EngineFacts
from karat.tables.searched import PartResult, Tuned, TunedParameter, TuneVerdict
from karat.workflows.engines._search_space import Searched, is_grid, proposals, search_space
from karat.workflows.engines.live import (
    Vectors,
    about_engine,
    engine_queries,
    manner_for,
    open_live,
)
from karat.workflows.engines.search import run_of, shown_progress
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluation_plan import Conditions, EvaluationPlan, settle
from karat.workflows.offline.parts import Within, within

INTERRUPTED = "interrupted"
_LOSSES = 5
_WARMUP = 5  # queries asked beforehand, for latency
_PATIENT = 20  # trials without a gain before the search stops, at least
_PATIENT_EACH = 10  # and for each parameter
_MOST_FAILED = 10  # failed trials in a row


def tune(
    config: EngineConfig,
    given: Sequence[str],
    qrels: Qrels,
    queries: Queries,
    measure: str = "nDCG@10",
    *,
    trials: int = 100,
    patience: int | None = None,
    seed: int = 0,
    rel: float | None = None,
    depth: int | None = None,
    concurrency: int = 1,
    retries: int = 2,
    out: str | None = None,
    commit: str | None = None,
    progress: bool = True,
) -> Tuned:
    """Search parameters of a declared engine that are better than the declared ones.

    The search stops after ``trials``, or when the last ``patience`` trials gained no more than the
    standard error of that gain: what is left to gain is then below what these queries can show
    (the criterion of Makarova et al. 2022, Automatic Termination for Hyperparameter Optimization,
    with a window of trials in place of a bound from a Gaussian process).
    """
    space = search_space(config, given)
    if min(trials, concurrency) < 1 or (patience is not None and patience < 0):
        raise UsageError("trials and concurrency are from 1, patience from 0", fix="--trials 100")
    if patience is None:
        patience = max(_PATIENT, _PATIENT_EACH * len(space))
    queries, notes = _with_parts(queries)
    dev, conditions = within(DEV, qrels, [], queries), Conditions(rel=rel)
    with closing(Vectors(config)) as vectors:
        asking = Asking(concurrency, retries, depth, vectors)
        rows = dev.qrels.frame.rows(), dev.queries.frame.rows()
        journal = _Journal(out, fingerprint(asdict(config), given, measure, rel, depth, *rows))
        tuning = _Tuning(config, dev, measure, conditions, asking, journal)
        with shown_progress(trials, shown=progress) as tick:
            stopped = _search(tuning, space, trials, patience, seed, tick)
        tuned = _searched(tuning, space, config, stopped, notes)
        if stopped == INTERRUPTED:
            return tuned
        if tuning.best is not tuning.declared:
            rest = _judged(qrels, within(HELD_OUT, qrels, [], queries).queries)
            baseline, best = (
                ask_engine(replace(config, params=params), rest, asking, name, _WARMUP)
                for name, params in (("declared", config.params), ("tuned", tuned.params))
            )
            rules: dict[str, Any] = {"part": HELD_OUT, "rel": rel, "commit": commit}
            found = compare(qrels, baseline, best, [measure], queries=queries, **rules)
            tuned = _tested(tuned, found, _uses(qrels), tuning.sign)
        journal.finish()
        return tuned


@dataclass(frozen=True)
class _Trial:
    params: dict[str, Any]
    values: Floats | None  # one for each judged development query; None if a query failed
    value: float  # their mean, or its negative if lower is better; -inf if a query failed
    error: str = ""


class _Tuning:
    """The development queries, and what was asked so far; the declared parameters first."""

    def __init__(
        self,
        config: EngineConfig,
        dev: Within,
        measure: str,
        conditions: Conditions,
        asking: Asking,
        journal: _Journal,
    ) -> None:
        self._config, self.dev, self._measure = config, dev, measure
        self._conditions, self._asking, self._journal = conditions, asking, journal
        run = ask_engine(config, _judged(dev.qrels, dev.queries), asking)
        plan = self._plan(run)
        (self.measure,) = plan.measures
        if self.measure.aggregate != "mean" or self.measure.entry.direction == "none":
            raise UsageError(f"{self.measure} cannot be tuned for", fix="-m nDCG@10")
        self.sign = -1.0 if self.measure.entry.direction == "lower" else 1.0
        self._weighing = Weighing.of(plan.about, plan.scored[0].evidence.query_ids)
        self._overall = plan.scored[0].overall
        self.declared = self._trial(dict(config.params), plan.scored[0].values[self.measure])
        self._known = {_key(config.params): self.declared}

    @property
    def trials(self) -> list[_Trial]:
        return list(self._known.values())

    @property
    def best(self) -> _Trial:
        return max(self._known.values(), key=attrgetter("value"))

    def ask(self, params: Mapping[str, Any]) -> _Trial:
        """The values of these parameters; each combination is asked once."""
        every = {**self._config.params, **params}
        key = _key(every)
        if key not in self._known:
            known = self._journal.known.get(key)
            values, error = self._values(every) if known is None else known
            self._known[key] = self._trial(every, values, error)
            self._journal.write(key, values, error)
        return self._known[key]

    def _values(self, params: dict[str, Any]) -> tuple[Floats | None, str]:
        asked = _judged(self.dev.qrels, self.dev.queries)
        try:
            run = ask_engine(replace(self._config, params=params), asked, self._asking)
        except _Failed as error:
            return None, str(error)
        return self._plan(run).scored[0].values[self.measure], ""

    def _plan(self, run: Run) -> EvaluationPlan:
        dev, conditions = self.dev, self._conditions
        return settle(dev.qrels, [run], [self._measure], conditions, queries=dev.queries)

    def _trial(self, params: dict[str, Any], values: Floats | None, error: str = "") -> _Trial:
        used = None if values is None else self._overall & ~np.isnan(values)
        if values is None or used is None or not used.any():
            return _Trial(params, None, -math.inf, error or "no query has a value")
        weights = self._weighing.at(used)[0]
        return _Trial(params, values, self.sign * mean(values[used], weights))

    def both(self, old: _Trial, new: _Trial) -> tuple[float, float, float, int]:
        """Means on the queries that have a value in both, the error of the gain, their number."""
        assert old.values is not None
        assert new.values is not None
        used = self._overall & ~np.isnan(old.values) & ~np.isnan(new.values)
        weights, strata = self._weighing.at(used)
        known = estimate((new.values - old.values)[used], weights, strata)
        error = 0.0 if isinstance(known, str) else known.error
        before, after = (mean(trial.values[used], weights) for trial in (old, new))  # type: ignore[index]
        return before, after, error, int(used.sum())

    def settled(self, patience: int) -> bool:
        """Whether the last trials gained no more than the standard error of that gain."""
        trials = self.trials
        if not patience or len(trials) <= patience:
            return False
        before, now, error, _ = self.both(
            max(trials[:-patience], key=attrgetter("value")), self.best
        )
        return not self.sign * (now - before) > error


def _key(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=str)


def _search(
    tuning: _Tuning,
    space: Sequence[Searched],
    trials: int,
    patience: int,
    seed: int,
    tick: Callable[[int], None],
) -> str:
    """Ask combinations until one of the limits; why it ended."""
    row = 0  # failures without a success between them
    tried = proposals(space, tuning.declared.params, trials, seed)
    try:
        for count, (params, report) in enumerate(tried, 1):
            trial = tuning.ask(params)
            row = row + 1 if trial.values is None else 0
            if row == _MOST_FAILED:
                raise KaratError(
                    f"{row} combinations in a row failed, the last with: {trial.error}",
                    fix="narrow the ranges, or whole numbers: --param k=1:100:int",
                )
            report(None if trial.values is None else trial.value)
            tick(count)
            if is_grid(space, trials):
                continue
            if tuning.settled(patience):
                return f"the last {patience} gained less than their standard error"
    except KeyboardInterrupt:
        return INTERRUPTED
    return "all combinations" if is_grid(space, trials) else f"--trials {trials}"


class _Failed(KaratError):
    """A query failed."""


@dataclass(frozen=True)
class Asking:
    """How engines are asked."""

    concurrency: int
    retries: int
    depth: int | None
    vectors: Vectors


def ask_engine(
    config: EngineConfig, queries: Queries, how: Asking, name: str = "declared", warmup: int = 0
) -> Run:
    """The run of an engine that must answer every query."""
    ids = queries.frame["query_id"].to_list()
    asked, manner = engine_queries(queries), manner_for(config, how.concurrency, how.retries)
    found: dict[int, Reply] = {}
    with open_live(config, depth=how.depth, vectors=how.vectors) as engine:
        engine.prepare([query.text for query in asked])
        with closing(asking(engine.call, asked, manner, warmup=warmup)) as replies:
            for at, reply in replies:
                if reply.ranking is None:
                    where = f"{reply.place}: " if reply.place else ""
                    raise _Failed(
                        f"{where}query {ids[at]} failed in {config.name}: {reply.error}",
                        fix=f"karat engine check {config.name}",
                    )
                found[at] = reply
    return run_of(
        ids,
        [found[at] for at in range(len(ids))],
        name,
        flat(about_engine(config, EngineFacts()), "about"),
    )


def _judged(qrels: Qrels, queries: Queries) -> Queries:
    """The queries with judgments: the others have no value, and are not asked."""
    judged = pl.Series(qrels.query_ids, dtype=pl.String).implode()
    return Queries(queries.frame.filter(pl.col("query_id").is_in(judged)), queries.source)


def _with_parts(queries: Queries) -> tuple[Queries, list[str]]:
    """The queries with the parts of ``karat golden split``; those that have parts keep them."""
    if PART in queries.attributes:
        return queries, []
    of_query = parts(queries.frame["query_id"].to_list())
    column = pl.Series(PART, list(of_query.values()), dtype=pl.String)
    note = (
        f"{queries.source} has no parts: its queries were split as karat golden split would, "
        "which writes them down"
    )
    return Queries(queries.frame.with_columns(column), queries.source), [note]


class _Journal:
    """The values so far, next to the file of the parameters, so that an interrupted tuning goes on.

    Proposals are the same for the same values, so the journal answers for the engine until it ends.
    """

    def __init__(self, out: str | None, digest: str) -> None:
        self.known: dict[str, tuple[Floats | None, str]] = {}
        self._path = None if out is None or out == "-" else Path(f"{out}.partial")
        self._head = json.dumps({"tune": digest})
        if self._path is None:
            return
        with suppress(OSError, ValueError):
            head, *lines = self._path.read_text(encoding="utf-8").splitlines()
            for line in lines if head == self._head else ():
                key, values, error = json.loads(line)
                # NaN is a query without a value
                self.known[key] = None if values is None else np.array(values, float), error
        try:
            self._path.write_text(f"{self._head}\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=str(out)) from None

    def write(self, key: str, values: Floats | None, error: str) -> None:
        if self._path is None:
            return
        with self._path.open("a", encoding="utf-8") as stream:
            listed = None if values is None else values.tolist()
            stream.write(json.dumps([key, listed, error]) + "\n")

    def finish(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


# --- the outcome ---


def _searched(
    tuning: _Tuning, space: Sequence[Searched], config: EngineConfig, stopped: str, notes: list[str]
) -> Tuned:
    """The outcome before the held-out part is asked."""
    best, trials = tuning.best, tuning.trials
    before, after, _, n = tuning.both(tuning.declared, best)
    reason = (
        "interrupted before the held-out part was asked"
        if stopped == INTERRUPTED
        else "not better: no combination was on the development queries; the others were not asked"
    )
    failed = [trial for trial in trials if trial.values is None]
    if failed:
        notes = [*notes, f"{len(failed)} of {len(trials)} failed, the first with {failed[0].error}"]
    return Tuned(
        engine=config.name,
        measure=str(tuning.measure),
        verdict="cannot tell" if stopped == INTERRUPTED else "not better",
        reason=reason,
        parameters=[
            TunedParameter(each.name, config.params[each.name], best.params[each.name], each.text)
            for each in space
        ],
        params=best.params,
        trials=len(trials),
        failed=len(failed),
        stopped=stopped,
        dev=PartResult(DEV, n, before, after, after - before),
        notes=notes,
    )


def _tested(tuned: Tuned, found: Comparison, uses: int, sign: float) -> Tuned:
    (row,) = found.differences
    part = reused(row, uses, tuned.dev.difference or 0.0)
    verdict, reason = _verdict(row, part, sign)
    if verdict == "not better" and part.state != "good":
        reason += f"; they are likely to show a gain of {part.smallest_detected:.3f} or more only"
    losses = sorted(
        (query for query in found.queries if sign * query.difference < 0),
        key=lambda query: sign * query.difference,
    )
    return replace(
        tuned,
        verdict=verdict,
        reason=reason,
        held_out=PartResult(
            HELD_OUT,
            row.n,
            row.baseline_value,
            row.candidate_value,
            row.difference,
            part.ci_low,
            part.ci_high,
            part.p,
        ),
        difference=row,
        uses=uses,
        level=part.level,
        part_state=part.state,
        smallest_detected=part.smallest_detected,
        latency=[each for each in found.answers if each.what.startswith("latency")],
        losses=losses[:_LOSSES],
        notes=[*tuned.notes, *found.notes],
    )


def _verdict(row: Difference, part: Reused, sign: float) -> tuple[TuneVerdict, str]:
    if row.verdict == "identical":
        return "not better", "not better: every held-out query has the same value"
    if row.n < LEAST or row.difference is None or part.p is None:
        return "cannot tell", f"only {counted(row.n, 'held-out query', 'held-out queries')}"
    ends = [sign * end for end in (part.ci_low, part.ci_high) if end is not None]
    better = sign * row.difference > 0 and part.p <= LEVEL and bool(ends) and min(ends) > 0
    if not better:
        return "not better", "not better on held-out queries"
    if part.uses > MOST_USES:
        return "cannot tell", (
            f"better on the held-out queries, but they are worn after {part.uses} uses: "
            "judge new queries"
        )
    return "better", "better on held-out queries"


def _uses(qrels: Qrels) -> int:
    """Uses of the held-out part so far; 1 if it has no ledger."""
    if qrels.file is None:
        return 1
    name = held_out.called(qrels.file)
    return sum(use.golden == name for use in held_out.uses(held_out.place(qrels.file)))
