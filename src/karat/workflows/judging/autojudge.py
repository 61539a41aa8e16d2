"""Machine judges: grade pairs, and certify a judge against people's grades."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from karat.clients.llm.asking import Judge, open_judge
from karat.clients.llm.ledger import Ledger
from karat.errors import InputError, KaratError, UsageError
from karat.formats.own.judges import with_key
from karat.formats.own.passports import read_passport
from karat.golden import judge_tests
from karat.golden.judge_family import family_note
from karat.golden.judge_order import Compared
from karat.golden.judge_prompt import cost_nano, estimated_tokens
from karat.golden.passport import Rating, passport
from karat.measures import parse
from karat.reports.phrases.numbers import counted
from karat.tables import Documents, Pairs, Qrels, Queries, Run
from karat.tables.golden.machine_judges import (
    JudgeConfig,
    Judged,
    JudgePair,
    JudgingRun,
    Passport,
    Plan,
    Spent,
)
from karat.workflows.judging._asking import Asked, Asking, keyed
from karat.workflows.offline.machine_grades import query_values

_PAIRS, _TESTS = 300, 24
"""Pairs of a certification, and of each of its tests."""
_SALT = "karat certify"

Tick = Callable[[int, int], None]
"""Gets the number of pairs that are done, and the billionths of a dollar spent so far."""


@dataclass(frozen=True)
class ToJudge:
    """Pairs with their texts."""

    pairs: Sequence[JudgePair]
    notes: Sequence[str] = ()
    grades: Mapping[tuple[str, str], float] = field(default_factory=dict)  # people's
    slices: Mapping[str, str] = field(default_factory=dict)  # the slice of each query
    # Query, document, person and grade of blind ratings, for the agreement of people
    ratings: Sequence[Rating] = ()


def pairs_to_judge(
    pairs: Pairs | Qrels, queries: Queries, documents: Documents, *, by: str | None = None
) -> ToJudge:
    """Pairs with the texts of their queries and documents.

    Args:
        pairs: Pairs to judge, or judgments, whose grades are then those of people.
        queries: With texts, and optionally ``need`` and ``locale``.
        documents: With ``text``, and optionally ``title`` and ``url``.
        by: An attribute of the queries; its values are slices.

    Raises:
        InputError: a query without text, or no pair with a document.
    """
    asked = {row["query_id"]: row for row in queries.frame.iter_rows(named=True)}
    ids = pairs.frame.select("query_id", "doc_id").unique(maintain_order=True)
    wanted = documents.frame.join(ids.select("doc_id").unique(), on="doc_id", how="semi")
    texts = {row["doc_id"]: row for row in wanted.iter_rows(named=True)}
    found, lacking = [], 0
    for query_id, doc_id in ids.iter_rows():
        query = asked.get(query_id)
        if query is None or not (query.get("text") or "").strip():
            raise InputError(
                "the query has no text", file=queries.source, query=query_id,
                fix="give each query a text, in a column called text",
            )  # fmt: skip
        row = texts.get(doc_id)
        if row is None or not (row.get("text") or row.get("title")):
            lacking += 1
            continue
        found.append(
            JudgePair(
                query_id,
                doc_id,
                query["text"],
                row.get("text") or "",
                row.get("title"),
                row.get("url"),
                query.get("need"),
                query.get("locale"),
            )
        )
    if not found:
        raise InputError(
            f"none of {counted(len(ids), 'pair', 'pairs')} has a text", file=documents.source,
            fix="documents need columns doc_id and text",
        )  # fmt: skip
    notes = []
    if lacking:
        notes.append(f"{counted(lacking, 'pair has', 'pairs have')} no document text, and wait")
    by_people = {}
    if isinstance(pairs, Qrels):
        rows = pairs.frame.select("query_id", "doc_id", "grade").iter_rows()
        by_people = {(query_id, doc_id): float(grade) for query_id, doc_id, grade in rows}
    slices = {} if by is None else queries.attribute(by)
    return ToJudge(found, notes, by_people, slices)


def plan(config: JudgeConfig, pairs: Sequence[JudgePair]) -> Plan:
    """What a run would ask, and what it costs at most."""
    return planned(config, pairs)[0]


def planned(
    config: JudgeConfig, pairs: Sequence[JudgePair], budget: float | None = None
) -> tuple[Plan, list[JudgePair]]:
    """As ``plan``, of at most so many dollars; and the pairs that would be asked about."""
    _check_budget(config, budget)
    asked = keyed(config, pairs)
    with Ledger(config.root) as ledger:
        known = ledger.known([each.key for each in asked])
    rest: list[JudgePair] = []
    tokens, cost = 0, cost_nano(config, 0, 0)
    for pair in {each.key: each.pair for each in asked if each.key not in known}.values():
        size = tokens + estimated_tokens(config, pair)
        more = cost_nano(config, size, (len(rest) + 1) * config.max_tokens)
        if budget is not None and more is not None and more > budget * 1e9:
            break
        rest.append(pair)
        tokens, cost = size, more
    dollars = None if cost is None else cost / 1e9
    before, most = sum(each.key in known for each in asked), len(rest) * config.max_tokens
    return Plan(len(asked), before, len(rest), tokens, most, dollars, config.prices.source), rest


def _check_budget(config: JudgeConfig, budget: float | None) -> None:
    if budget is not None and (config.prices.input is None or config.prices.output is None):
        raise UsageError(
            f"a budget needs the prices of {config.where}",
            fix="prices = { input = 0.15, output = 0.6 }, in dollars per million tokens",
        )


def run(
    config: JudgeConfig,
    pairs: Sequence[JudgePair],
    *,
    budget: float | None = None,
    patient: bool = False,
    tick: Tick = lambda _done, _nano: None,
    judge: Judge | None = None,
    once: bool = False,
) -> JudgingRun:
    """Grade pairs; those graded before with the same question are not asked again.

    Every attempt is in the ledger before it is sent, and every verdict when it is there: a run that
    was killed goes on where it stopped.

    Args:
        budget: Most dollars of this run; the worst case of a request is reserved before it is sent.
        patient: Whether to go on when more than 5 % of the last 200 pairs have no grade.
        judge: An open judge; opened here if None.
        once: Whether each pair is asked about once, whatever the reply.

    Raises:
        UsageError: a budget for a judge without prices.
    """
    _check_budget(config, budget)
    asked = keyed(config, pairs)
    every, before, spent, stopped = _asked(
        config, asked, budget=budget, patient=patient, tick=tick, judge=judge, once=once
    )
    results = [every[place] for place in sorted(every)]
    notes = []
    if spent.possibly_billed:
        attempts = counted(spent.possibly_billed, "request", "requests")
        notes.append(f"{attempts} got no answer, and may have been paid")
    models = {each.model for each in results if each.model}
    if len(models) > 1:
        notes.append(f"the API answered as different models: {', '.join(sorted(models))}")
    return JudgingRun(config, results, len(asked) - before, spent, stopped, notes)


def certify(
    config: JudgeConfig,
    given: ToJudge,
    *,
    pairs: int = _PAIRS,
    tests: int = _TESTS,
    runs: Sequence[Run] = (),
    measure: str = "nDCG@10",
    tick: Tick = lambda _done, _nano: None,
    judge: Judge | None = None,
) -> Passport:
    """Measure a judge against people's grades.

    Args:
        given: Pairs with people's grades.
        pairs: Number of pairs; the same ones every time, of as many queries as possible.
        tests: Number of pairs of each test; of a judge with a passport, of that of drift too.
        runs: Whose order and differences by people's grades and by the judge's are compared, the
            baseline first; then pairs are those of whole queries.
        measure: By which they are.

    Raises:
        UsageError: no pair has a grade of people, or there is one run.
    """
    if len(runs) == 1:
        raise UsageError("one run has no order", fix="--run BASELINE --run CANDIDATE")
    human, graded = _graded(config, given)
    sample = judge_tests.sample_queries if runs else judge_tests.sample_pairs
    chosen = sample(graded, pairs, _SALT)
    asked = keyed(config, chosen) + _probes(config, chosen, human, graded, tests)
    every, _, _, stopped = _asked(
        config, asked, patient=True, tick=tick, judge=judge, what="certify"
    )
    judged = [(asked[place][1], found) for place, found in sorted(every.items())]
    with Ledger(config.root) as ledger:
        spent, of_pairs = (
            ledger.spent(config.rater, keys=[key for key, *_ in which])
            for which in (asked, asked[: len(chosen)])
        )
    found = passport(
        config,
        judged,
        human,
        spent,
        slices=given.slices,
        ratings=given.ratings,
        compared=_compared(judged, human, runs, measure),
        of_pairs=of_pairs,
    )
    notes = [*found.notes, *_warnings(config, judged, runs)]
    found = replace(found, measured_us=time.time_ns() // 1000, notes=notes)
    if stopped:
        found = replace(found, verdict="candidate", notes=[*notes, f"stopped: {stopped}"])
    return found


def _probes(
    config: JudgeConfig,
    chosen: Sequence[JudgePair],
    human: Mapping[tuple[str, str], float],
    graded: Sequence[JudgePair],
    tests: int,
) -> list[Asked]:
    """What each test asks; with a passport, some pairs of it are asked anew."""
    low, high = (
        [pair for pair in chosen if human[pair.query_id, pair.doc_id] == grade][:tests]
        for grade in (config.grades[0], max(human.values()))
    )
    probes = [
        *judge_tests.padded(chosen[:tests]),
        *judge_tests.stuffed(low),
        *judge_tests.injections(low, config.grades[-1]),
        *judge_tests.superficial(low, high, graded),
    ]
    again = [replace(pair, probe=judge_tests.RETEST) for pair in chosen[:tests]]
    asked = keyed(config, probes) + keyed(config, again, replicate=1)
    if read_passport(config.root, config.rater) is not None:
        anchors = [replace(pair, probe=judge_tests.DRIFT) for pair in chosen[:tests]]
        with Ledger(config.root) as ledger:
            asked += keyed(config, anchors, replicate=max(ledger.replicate(config.rater), 1) + 1)
    return asked


def _warnings(
    config: JudgeConfig, judged: Sequence[tuple[JudgePair, Judged]], runs: Sequence[Run]
) -> list[str]:
    """Of another model behind the same name, and of systems of the judge's family."""
    then, now = (
        {each.model for pair, each in judged if (pair.probe == judge_tests.DRIFT) == later} - {None}
        for later in (False, True)
    )
    notes = []
    if now - then:
        models = (", ".join(sorted(map(str, each))) for each in (then, now))
        notes.append("the API answered as {}, and now as {}".format(*models))
    family = family_note(config, [(run.name, run.about) for run in runs])
    return notes if family is None else [*notes, family]


def _graded(
    config: JudgeConfig, given: ToJudge
) -> tuple[dict[tuple[str, str], float], list[JudgePair]]:
    """People's grades, and the pairs that have one."""
    human = {
        (p.query_id, p.doc_id): given.grades[p.query_id, p.doc_id]
        for p in given.pairs
        if (p.query_id, p.doc_id) in given.grades
    }
    graded = [pair for pair in given.pairs if (pair.query_id, pair.doc_id) in human]
    if not graded:
        raise UsageError("no pair has a grade by people", fix="--qrels QRELS, with their grades")
    off = sorted(set(human.values()) - set(config.grades))
    if off:
        raise UsageError(
            f"people gave the grade {off[0]:g}, which is not on the scale of {config.where}",
            fix=f'scale = "{min(human.values()):g}-{max(human.values()):g}"',
        )
    return human, graded


def _compared(
    judged: Sequence[tuple[JudgePair, Judged]],
    human: Mapping[tuple[str, str], float],
    runs: Sequence[Run],
    measure: str,
) -> Compared | None:
    """The values of runs by people's grades and by the judge's, of the pairs that both graded."""
    rows = [
        (pair.query_id, pair.doc_id, human[pair.query_id, pair.doc_id], each.verdict.grade)
        for pair, each in judged
        if not pair.probe and each.verdict.grade is not None
    ]
    if not runs or not rows:
        return None
    name = str(parse(measure))
    frame = pl.DataFrame(rows, ["query_id", "doc_id", "people", "machine"], orient="row")
    values = [
        query_values(
            Qrels(frame.select("query_id", "doc_id", grade=who), source=who), runs, None, [name]
        )
        for who in ("people", "machine")
    ]
    by_run = [[each[place, name] for place in range(len(runs))] for each in values]
    queries = sorted(set.intersection(*(set(run) for each in by_run for run in each)))
    people, machine = (
        np.array([[run[query] for run in each] for query in queries]).reshape(-1, len(runs))
        for each in by_run
    )
    return Compared([run.name for run in runs], name, people, machine)


def judgments_frame(found: JudgingRun) -> pl.DataFrame:
    """Grades and abstentions, as ``schema.JUDGMENTS`` without numbers."""
    rows = [
        {
            "query_id": each.query_id,
            "doc_id": each.doc_id,
            "grade": each.verdict.grade,
            "state": "graded" if each.verdict.state == "ok" else "cannot_judge",
            "reason": each.verdict.reason or None,
            "rater": found.judge.rater,
            "source": "llm",
        }
        for each in found.judged
        if each.verdict.state in ("ok", "abstained")
    ]
    text = pl.String()
    schema = {
        "query_id": text, "doc_id": text, "grade": pl.Float64(), "state": text, "reason": text,
        "rater": text, "source": text,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def _asked(
    config: JudgeConfig,
    asked: Sequence[Asked],
    *,
    budget: float | None = None,
    patient: bool,
    tick: Tick,
    judge: Judge | None,
    once: bool = False,
    what: str = "run",
) -> tuple[dict[int, Judged], int, Spent, str]:
    """What is known of each pair, by its place; how many were known before; costs; why it ended."""
    with Ledger(config.root) as ledger:
        known = ledger.known([each.key for each in asked])
        before = sum(each.key in known for each in asked)
        rest: dict[str, Asked] = {}
        for each in asked:
            if each.key not in known:
                rest.setdefault(each.key, each)
        last, stopped = ledger.last(), ""
        budget_nano = None if budget is None else round(budget * 1e9)
        number = ledger.begin_run(config.rater, what, len(asked), before, budget_nano)

        async def work() -> Asking:
            opened = open_judge(with_key(config)) if judge is None else judge
            asking = Asking(
                config,
                opened,
                ledger,
                budget_nano=budget_nano,
                patient=patient,
                once=once,
                tick=lambda done, nano: tick(before + done, nano),
            )
            try:
                with _interruptible(asking):
                    await asking.all(list(rest.values()))
            finally:
                await opened.close()
            return asking

        try:
            if rest:
                asking = asyncio.run(work())
                known, stopped = known | asking.verdicts, asking.stopped
        except KaratError as error:
            stopped = str(error)
            raise
        finally:
            ledger.end_run(number, stopped)
        found = {
            place: Judged(key, pair.query_id, pair.doc_id, *known[key])
            for place, (key, pair, _) in enumerate(asked)
            if key in known
        }
        others = [each for each in asked if each.key in known and rest.get(each.key) != each]
        ledger.name([(each.key, each.pair) for each in others])
        return found, before, ledger.spent(config.rater, after=last), stopped


@contextmanager
def _interruptible(asking: Asking) -> Iterator[None]:
    """The first ^C lets what was sent be answered; the second stops at once."""
    loop = asyncio.get_running_loop()
    main, task = threading.current_thread() is threading.main_thread(), asyncio.current_task()

    def stop() -> None:
        if asking.stopped and task is not None:
            task.cancel()
        asking.stopped = asking.stopped or "interrupted"

    with suppress(NotImplementedError, RuntimeError):  # on Windows, ^C stops at once
        if main:
            loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        with suppress(NotImplementedError, RuntimeError):
            if main:
                loop.remove_signal_handler(signal.SIGINT)
