"""Machine judges, runs of judging and passports, as tables and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from rich.console import Console

from karat.reports.phrases.numbers import counted
from karat.reports.table import DASH, Column, Table
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes
from karat.tables.golden.machine_judges import Doubt, JudgeState, JudgingRun, Passport, Plan, Spent

_STATES = (
    Column("state", "Outcome", "words"),
    Column("pairs", "Pairs", "count"),
    Column("share", "Share", "share"),
)
_JUDGES = (
    Column("name", "Judge", "code"),
    Column("version", "Version", "code"),
    Column("asks", "Asks", "words"),
    Column("grades", "Grades", "words"),
    Column("passport", "Passport", "verdict", text=lambda row: row["passport"] or DASH),
    Column("pairs", "Pairs", "count"),
    Column("cost", "Cost", "words"),
)
_MEANINGS = {
    "linear": "κ with linear weights",
    "quadratic": "κ with quadratic weights",
    "alpha": "Krippendorff's α, ordinal",
    "ac1": "Gwet's AC1",
    "binary": "κ of relevant or not",
    "overrating": "its mean grade minus people's",
}
"""Of tests without a detail."""
_PASSED = {None: "", True: "yes", False: "no"}
_DOUBTS = (
    Column("query_id", "Query", "code"),
    Column("doc_id", "Document", "code"),
    Column("chosen_by", "Why", "words"),
    Column("machine", "Machine", "number", digits=1),
    Column("people", "People", "number", digits=1, optional=True),
    Column("chance", "Chance", "number", digits=2, optional=True),
)
_TESTS = (
    Column("name", "", "words"),
    Column("value", "Value", "number"),
    Column("ci_low", "95 %", "number", high="ci_high"),
    Column("passed", "Passed", "words", text=lambda row: _PASSED[row["passed"]]),
    Column("detail", "", "text"),
)


def dollars(value: float | None) -> str:
    """A cost: $.0042, $12.30, or unknown."""
    if value is None:
        return "unknown"
    return f"${value:.4f}" if value < 1 else f"${value:,.2f}"


def cost(spent: Spent, price: float | None) -> dict[str, Any]:
    """What was spent, and the price of a usable judgment."""
    return {
        "dollars": spent.dollars,
        "per_usable": price,
        "per_1000": None if price is None else price * 1000,
        "attempts": spent.attempts,
        "possibly_billed": spent.possibly_billed,
        "unpriced": spent.unpriced,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
    }


# --- a run ---


def run_json(found: JudgingRun, pairs: int) -> dict[str, Any]:
    states = found.states
    return {
        "judge": found.judge.rater,
        "pairs": pairs,
        "asked": found.asked,
        "waiting": pairs - len(found.judged),
        "states": states,
        "cost": cost(found.spent, found.spent.each(states.get("ok", 0))),
        "stopped": found.stopped or None,
        "notes": list(found.notes),
    }


def show_run(found: JudgingRun, pairs: int, out: Console, notes: Sequence[str] = ()) -> None:
    states = found.states
    rows = [
        {"state": state, "pairs": count, "share": count / pairs}
        for state, count in (states | {"waiting": pairs - len(found.judged)}).items()
        if count
    ]
    draw(Table("", _STATES, rows), out, close=True)
    known = pairs - found.asked
    said = f"{found.judge.rater}: {counted(found.asked, 'pair', 'pairs')} asked"
    said += f", {known:,} known before" if known else ""
    spent = cost(found.spent, found.spent.each(states.get("ok", 0)))
    said += f"; {counted(found.spent.attempts, 'request', 'requests')}, cost "
    said += dollars(spent["dollars"])
    if spent["per_usable"] is not None:
        said += f", {dollars(spent['per_usable'])} a grade"
    out.print(plain(said), soft_wrap=True)
    show_footnotes([*notes, *found.notes], out, every=True)
    if found.stopped:
        out.print(plain(f"stopped: {found.stopped}", "bold"), soft_wrap=True)


def show_plan(found: Plan, out: Console) -> None:
    out.print(
        plain(
            f"{counted(found.calls, 'request', 'requests')} for "
            f"{counted(found.pairs, 'pair', 'pairs')}, {found.known:,} of them known; about "
            f"{found.input_tokens:,} tokens in, at most {found.output_tokens:,} out; "
            f"{'price unknown' if found.dollars is None else 'at most ' + dollars(found.dollars)}"
            f"{f', by {found.prices}' if found.prices and found.dollars is not None else ''}"
        ),
        soft_wrap=True,
    )


# --- a passport ---


def passport_json(found: Passport) -> dict[str, Any]:
    return {
        "judge": found.judge.rater,
        "agreement": dict(found.agreement),
        "confusion": [list(row) for row in found.confusion],
        "grades": list(found.judge.grades),
        "states": dict(found.states),
        "cost": cost(found.spent, found.price) | {"per_effective_query": found.per_effective_query},
        "tests": [dict(vars(test)) for test in found.tests],
        "slices": [
            {**vars(test), "passed": test.ci_low is not None and test.ci_low >= found.judge.kappa}
            for test in found.slices
        ],
        "pairs": found.pairs,
        "queries": found.queries,
        "bar": found.judge.kappa,
        "verdict": found.verdict,
        "measured_us": found.measured_us,
        "notes": list(found.notes),
    }


class PassportRows(NamedTuple):
    """Numbers of a passport as rows: ``name``, ``value``, ``ci_low``, ``passed``, ``detail``, ….

    ``passed`` of a slice is its permit.
    """

    agreement: list[dict[str, Any]]
    slices: list[dict[str, Any]]
    tests: list[dict[str, Any]]


def passport_rows(found: Mapping[str, Any]) -> PassportRows:
    """The rows of a passport, as ``passport_json`` returns it."""
    agreement = found["agreement"]
    bar = f"lower end must reach {found['bar']:g}"
    kappa = {
        "name": "κ",
        "value": agreement["kappa"],
        "ci_low": agreement["kappa_low"],
        "ci_high": agreement["kappa_high"],
        "passed": None,
        "detail": bar,
    }
    others = [
        _described({**each, "name": each["name"].removeprefix("agreement ")})
        for each in found["tests"]
        if each["name"].startswith("agreement ") and each["name"] != "agreement kappa"
    ]
    return PassportRows(
        [kappa, *others],
        [{**each, "name": f"κ of {each['name']}"} for each in found["slices"]],
        [_described(e) for e in found["tests"] if not e["name"].startswith("agreement ")],
    )


def _described(row: dict[str, Any]) -> dict[str, Any]:
    return row if row["detail"] else {**row, "detail": _MEANINGS.get(row["name"], "")}


def show_passport(found: Mapping[str, Any], out: Console, notes: Sequence[str] = ()) -> None:
    """Print a passport, as ``passport_json`` returns it."""
    pairs = f"{counted(found['pairs'], 'pair', 'pairs')} of "
    pairs += counted(found["queries"], "query", "queries")
    out.print(plain(f"{found['judge']} and people, {pairs}"), soft_wrap=True)
    parts = passport_rows(found)
    draw(Table("", _TESTS, [*parts.agreement, *parts.slices, *parts.tests]), out, close=True)
    grades = [f"{grade:g}" for grade in found["grades"]]
    columns = (
        Column("people", "People \\ judge", "words"),
        *(Column(grade, grade, "count", value=_cell(grade)) for grade in grades),
    )
    rows = [
        {"people": grade, **dict(zip(grades, row, strict=False))}
        for grade, row in zip(grades, found["confusion"], strict=False)
    ]
    draw(Table("", columns, rows), out, close=True)
    states = ", ".join(f"{state} {count:,}" for state, count in found["states"].items())
    spent = found["cost"]
    said = f"outcomes: {states}; cost {dollars(spent['dollars'])}"
    for name, what in (("per_usable", "a grade"), ("per_effective_query", "an effective query")):
        if spent.get(name) is not None:
            said += f", {dollars(spent[name])} {what}"
    out.print(plain(said), soft_wrap=True)
    show_footnotes([*notes, *found["notes"]], out, every=True)
    out.print(plain(found["verdict"], "bold"))


def _cell(grade: str) -> Any:
    return lambda row: row[grade]


# --- the judges ---


def judges_rows(judges: Sequence[JudgeState]) -> list[dict[str, Any]]:
    """A row for each declared judge, with its passport, costs and graded pairs."""
    return [
        {
            "name": judge.name,
            "version": judge.version,
            "kind": judge.kind,
            "asks": judge.asks,
            "grades": scale(judge.grades),
            "passport": judge.passport,
            "pairs": judge.pairs,
            "cost": dollars(judge.dollars),
            "dollars": judge.dollars,
        }
        for judge in judges
    ]


def scale(grades: Sequence[float]) -> str:
    """``0-3``, or all grades if they are not whole steps."""
    if all(grade - grades[0] == step for step, grade in enumerate(grades)):
        return f"{grades[0]:g}-{grades[-1]:g}"
    return ", ".join(f"{grade:g}" for grade in grades)


def show_judges(rows: Sequence[Mapping[str, Any]], out: Console) -> None:
    if not rows:
        out.print(plain("no judge is declared in karat.toml: [judge.NAME]"))
        return
    draw(Table("", _JUDGES, rows), out)


# --- where people should look ---


def doubts_json(rows: Sequence[Doubt], queued: int | None) -> dict[str, Any]:
    return {"pairs": [asdict(row) for row in rows], "queued": queued}


def show_doubts(rows: Sequence[Doubt], queued: int | None, out: Console) -> None:
    if not rows:
        out.print(plain("no pair: people have judged all that the machine graded"))
        return
    draw(Table("", _DOUBTS, rows), out)
    if queued is not None:
        out.print(plain(f"{counted(queued, 'pair', 'pairs')} added to the queue"))
