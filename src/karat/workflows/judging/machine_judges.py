"""Declared machine judges: what they cost, what they did last, and what they may grade."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from karat.clients.llm.ledger import FILE, Ledger
from karat.formats.own.passports import passports
from karat.tables.golden.machine_judges import (
    JudgeConfig,
    JudgeReport,
    JudgeState,
    LastRun,
    Spent,
    StoredPassport,
    Test,
)

ALL = "all queries"
_OF_TESTS = [each.name for each in fields(Test)]
_Passports = Mapping[str, Mapping[str, Any]]  # by rater, the newest last


def judge_states(
    judges: Sequence[JudgeConfig],
    *,
    stored: Mapping[str, int] | None = None,
    now: int | None = None,
) -> list[JudgeState]:
    """The state of each judge.

    Args:
        stored: Number of grades in golden sets, by rater.
        now: Microseconds UTC, by which a run is judged to be going on.
    """
    now = time.time_ns() // 1000 if now is None else now
    if not judges:
        return []
    root, stored = judges[0].root, stored or {}
    state = partial(_state, stored, passports(root))
    if not (root / FILE).exists():
        return [state(each, Spent(), 0, None) for each in judges]
    with Ledger(root) as ledger:
        graded = ledger.graded()
        return [
            state(
                each,
                ledger.spent(each.rater),
                graded.get(each.rater, 0),
                ledger.last_run(each.rater, now),
            )
            for each in judges
        ]


def _state(
    stored: Mapping[str, int],
    every: _Passports,
    judge: JudgeConfig,
    spent: Spent,
    pairs: int,
    last: LastRun | None,
) -> JudgeState:
    of, passport = _passport(judge, every)
    verdict = None if passport is None else passport["verdict"]
    return JudgeState(
        judge.name,
        judge.kind,
        judge.asks,
        judge.version,
        judge.rater,
        judge.grades,
        judge.kappa,
        verdict if of in (None, judge.rater) else "outdated",
        pairs,
        stored.get(judge.rater, 0),
        spent,
        spent.dollars,
        None if last is None else _without_folder(last, judge.root),
    )


def _without_folder(last: LastRun, root: Path) -> LastRun:
    """Errors name files by their path in the workspace."""
    failures = [replace(e, error=e.error.replace(f"{root}/", "")) for e in last.failures]
    return replace(last, stopped=last.stopped.replace(f"{root}/", ""), failures=failures)


def judge_report(judge: JudgeConfig, state: JudgeState) -> JudgeReport:
    """A judge with its passport, or with that of its newest earlier version."""
    of, passport = _passport(judge, passports(judge.root))
    may, may_not = _permits(passport if of == judge.rater else None)
    return JudgeReport(state, None if passport is None else _record(passport), may, may_not)


def _record(passport: Mapping[str, Any]) -> StoredPassport:
    tests, slices = (
        [Test(**{name: each.get(name) for name in _OF_TESTS}) for each in passport[part]]
        for part in ("tests", "slices")
    )
    known: dict[str, Any] = {each.name: passport.get(each.name) for each in fields(StoredPassport)}
    return StoredPassport(**{**known, "tests": tests, "slices": slices})


def _passport(judge: JudgeConfig, every: _Passports) -> tuple[str | None, Mapping[str, Any] | None]:
    """Whose passport it is, and the passport: its own, else that of its newest other version."""
    own = [judge.rater] if judge.rater in every else []
    others = [rater for rater in every if rater.rpartition("@")[0] == judge.name]
    return next(((each, every[each]) for each in [*own, *others[::-1]]), (None, None))


def _permits(passport: Mapping[str, Any] | None) -> tuple[list[str], list[str]]:
    """What a judge may grade and what not: by slice, if it was measured by slices."""
    if passport is None or passport["verdict"] != "certified":
        return [], [ALL]
    by_slice = {each["name"]: each["passed"] for each in passport["slices"]}
    may = [name for name, passed in by_slice.items() if passed]
    return may if by_slice else [ALL], [name for name in by_slice if name not in may]
