"""A machine judge for the demo: a fake, which knows people's grades and errs as often as is set.

No model is asked, and no key is needed: all that it grades names it ``fake``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from karat.clients.llm.asking import Question, Reply
from karat.clients.llm.fake_server import FakeJudge
from karat.demo.build import Demo, as_number, write
from karat.demo.words import MEASURES
from karat.formats import read_qrels, read_queries, read_run
from karat.formats.own.judges import read_judge
from karat.formats.own.machine_grades import write_grades
from karat.formats.own.passports import write_passport
from karat.formats.own.workspace import NAME
from karat.golden.sampling import permanent_numbers
from karat.reports.judging.autojudge import passport_json
from karat.reports.phrases.numbers import counted, signed
from karat.reports.writers.plain import to_json
from karat.tables import Run
from karat.tables.comparison import Comparison
from karat.tables.golden.machine_judges import JudgeReport, JudgingRun
from karat.tables.results import MachineMean
from karat.workflows.judging.autojudge import ToJudge, certify, judgments_frame, run
from karat.workflows.judging.machine_grades import judge_in, pairs_of_golden_set, store_grades
from karat.workflows.offline.machine_grades import machine_means
from karat.workflows.workspace.workspace import open_workspace

JUDGE = "fake"
PEOPLE, GRADES = "machine/people.tsv", "machine/grades.csv"
"""Grades by people of some queries, and by the judge of all that have an answer."""
_EVERY = 4  # one query in so many is taken to be judged by people
_MODULE = "demo_judge.py"
_DECLARED = """
[judge.fake]  # made for the demonstration: it knows people's grades, and errs; no model is asked
kind = "python"
function = "demo_judge:made_for_the_demonstration"
"""
_FUNCTION = '''\
"""The fake judge of the demo, as karat.toml declares it: from a pair to a grade."""

from pathlib import Path

from karat.demo.judge import Fake

made_for_the_demonstration = Fake(Path(__file__).parent)
'''
_POOR_AT = "ambiguous"
"""The class of queries at which it is worse."""
_ERRORS = {
    False: [[0.85, 0.1, 0.04, 0.01], [0.15, 0.7, 0.13, 0.02], [0.03, 0.12, 0.72, 0.13],
            [0.01, 0.04, 0.15, 0.8]],
    True: [[0.6, 0.25, 0.1, 0.05], [0.25, 0.4, 0.25, 0.1], [0.1, 0.25, 0.4, 0.25],
           [0.05, 0.1, 0.25, 0.6]],
}  # fmt: skip
"""Chances of each grade (columns) for each of people's (rows): elsewhere, and where it is poor."""


class Fake:
    """The judge: a function for karat.toml, and an open judge."""

    def __init__(self, directory: Path) -> None:
        self._classes = read_queries(directory / "queries.jsonl").attribute("class")
        rows = read_qrels(directory).frame.select("query_id", "doc_id", "grade").iter_rows()
        grades = {(query, doc): float(grade) for query, doc, grade in rows}
        self._judges = {poor: FakeJudge(grades, errors) for poor, errors in _ERRORS.items()}

    def __call__(self, pair: Mapping[str, Any]) -> dict[str, Any]:
        document = pair["document"]
        text = document.get("body") or document.get("title") or ""
        return self._judgment(pair["query_id"], pair["doc_id"], text)

    async def ask(self, question: Question) -> Reply:
        pair = question.pair
        text = pair.document or pair.title or ""
        return Reply(value=self._judgment(pair.query_id, pair.doc_id, text))

    async def close(self) -> None:
        """Nothing is open."""

    def _judgment(self, query_id: str, doc_id: str, text: str) -> dict[str, Any]:
        poor = self._classes.get(query_id) == _POOR_AT
        return {
            "grade": self._judges[poor].grade(query_id, doc_id),
            "evidence": " ".join(text.split()[:8]),
            "reason": "a fake judge, made for the demonstration",
        }


@dataclass(frozen=True)
class Judged:
    report: JudgeReport
    bought: MachineMean  # the difference of the demo's last run to the first, with its grades


def keep_judge(demo: Demo, *, now: int) -> Judged:
    """Declare the judge, let it grade the golden set's pairs, and measure what that is worth.

    Its grades of the documents that wait for people are stored. For the interval, people are taken
    to have judged one query in four.
    """
    path = demo.directory / NAME
    text = path.read_text(encoding="utf-8")
    if f"[judge.{JUDGE}]" not in text:
        path.write_text(f"{text}{_DECLARED}", encoding="utf-8")
    (demo.directory / _MODULE).write_text(_FUNCTION, encoding="utf-8")
    config, judge = read_judge(JUDGE, demo.directory), Fake(demo.directory)
    with open_workspace(demo.directory, now=now, environment={}) as opened:
        given = pairs_of_golden_set(opened, by="class")
        graded = run(config, given.pairs, judge=judge)
        waiting = [e for e in graded.judged if (e.query_id, e.doc_id) not in given.grades]
        store_grades(opened, replace(graded, judged=waiting))
        runs = [read_run(path) for path in demo.runs]
        passport = certify(config, given, pairs=len(given.pairs), runs=runs, judge=judge)
        write_passport(config.root, config.rater, to_json(passport_json(passport)))
        bought = _bought(demo, given, graded, [runs[0], runs[-1]])
        return Judged(judge_in(opened, JUDGE, now=now), bought)


def _bought(demo: Demo, given: ToJudge, graded: JudgingRun, runs: Sequence[Run]) -> MachineMean:
    answers = {query for query, its in given.slices.items() if its != "no_answer"}
    names = sorted(answers)
    numbers = permanent_numbers(names, "karat demo")
    drawn = [name for _, name in sorted(zip(numbers.tolist(), names, strict=True))]
    by_people = set(drawn[: len(names) // _EVERY])
    rows = sorted((q, d, g) for (q, d), g in given.grades.items() if q in by_people)
    lines = ("\t".join((query, doc, as_number(grade))) for query, doc, grade in rows)
    write(demo.directory / PEOPLE, ["query-id\tcorpus-id\tscore", *lines])
    pairs = [e for e in graded.judged if e.query_id in answers]
    frame = judgments_frame(replace(graded, judged=pairs))
    write_grades(frame, demo.directory / GRADES)
    people = read_qrels(demo.directory / PEOPLE)
    [row] = machine_means(people, runs, frame, MEASURES[:1], difference=True)
    return row


def paragraphs(judged: Judged, found: Comparison) -> Iterator[str]:
    """What the fake judge is worth, and what its grades buy; ``found`` has people's of all."""
    state, passport, row = judged.report.judge, judged.report.passport, judged.bought
    assert passport is not None
    low, high = (passport.agreement[f"kappa_{end}"] for end in ("low", "high"))
    yield (
        f"{state.rater} is a fake: no model was asked. It graded "
        f"{counted(state.pairs, 'pair', 'pairs')} of the golden set. κ with people is "
        f"{passport.agreement['kappa']:.2f} ({low:.2f} to {high:.2f}): {passport.verdict}. "
        f"By class of query it may grade {', '.join(judged.report.may) or 'nothing'}; "
        f"not {', '.join(judged.report.may_not)}."
    )
    every = next(
        each
        for each in found.differences
        if (each.candidate, each.measure) == (row.run, row.measure)
    )
    yield (
        f"Had people judged only {row.judged} of {every.n} queries, drawn at random, "
        f"{row.measure} of {row.run} against {row.baseline} would be "
        f"{_span(row.people, row.people_low, row.people_high)}. With the fake judge's grades of "
        f"the other {row.machine_only}: {_span(row.estimate, row.ci_low, row.ci_high)}, "
        f"worth {row.effective or 0:.0f} queries judged by people. All {every.n}, judged by people:"
        f" {signed(every.difference)}."
    )


def _span(value: float | None, low: float | None, high: float | None) -> str:
    return f"{signed(value)} ({signed(low)} to {signed(high)})"
