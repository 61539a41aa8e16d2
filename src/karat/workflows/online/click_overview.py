"""What pages and the API show of clicks as judgments: models, grades, agreement with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

import polars as pl

from karat.errors import CannotTell, InputError, UsageError
from karat.formats.own.click_grades import click_grades_file, read_origin, write_click_grades
from karat.online.clicks.agreement import agreement
from karat.online.clicks.fitting import evaluated, fit
from karat.online.clicks.grading import LEAST, NAIVE, Grading, cut_points
from karat.store.sql import audit
from karat.store.sql.states import queries_state
from karat.tables.days import day_text
from karat.tables.online.clicks import ClickJudgments, ClickOrigin, ClickOverview, ModelFit
from karat.tables.online.events import EventLog
from karat.tables.records import record_of, shared
from karat.workflows.offline.stages import Watch, unwatched
from karat.workflows.online.click_agreement import graded_by_people, queue_opposing
from karat.workflows.online.click_counts import Counting, count_clicks
from karat.workflows.online.click_fit import compared, propensities
from karat.workflows.online.click_judgments import (
    ClickRelevance,
    click_relevance,
    graded_clicks,
    judging_model,
    no_grades,
)
from karat.workflows.online.log_requests import LogRequest, log_of
from karat.workflows.workspace.artifacts import Artifact, key_of
from karat.workflows.workspace.stored_inputs import inputs_digest, judged
from karat.workflows.workspace.workspace import Workspace

MODELS = ("PBM", "SDBN", "DBN")
"""Those that pages compare; one of them makes the grades."""
BASELINE = "DCTR"  # raw click rates
MOST_PAIRS = 1_000
_HELD_OUT = 4  # one day in so many is predicted
_VERSION = 1  # of what is stored
_READING = "reading events"


@dataclass(frozen=True)
class FromClicks(LogRequest):
    """Grades of a golden set's pairs from the clicks of a log."""

    what = "from-clicks"
    workspace: Workspace
    model: str
    cuts: Sequence[float] | None  # cut points; None for the default ones
    least: float  # effective impressions of a pair that gets a grade
    inputs_digest: str

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        model: str = MODELS[0],
        cuts: Sequence[float] | None = None,
        least: float = LEAST,
    ) -> FromClicks:
        """The request; raises UsageError for a model without grades, or invalid cut points."""
        Grading(cut_points(sorted(workspace.golden.grades), cuts), least)
        name = NAIVE if model.casefold() == NAIVE else judging_model(model).name
        return cls(workspace, name, cuts, least, inputs_digest(workspace))

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        """``ClickOverview`` without ``added``, as JSON."""
        key = key_of(_VERSION, log.version)
        fits = self.workspace.artifacts.answer("click-fits", key, lambda: _fits(log, progress))
        answer = {**fits, "refused": "", "judgments": None, "agreement": None, "pairs": []}
        try:
            found = self.relevance(log, progress)
        except CannotTell as refusal:
            return {**answer, "refused": str(refusal)}
        progress("comparing with people", 0, 0)
        judgments, grades = graded_clicks(found, cuts=self.cuts, least=self.least, now=0)
        people = self.people()
        if people is not None:
            agreed = agreement(
                grades, people, judgments.origin, weights=self.workspace.workspace.weights
            )
            answer["agreement"] = agreed.to_dict()
        judgments = replace(judgments, notes=list(map(str, judgments.notes)))
        pairs = _most_seen(grades, people, found.texts)
        return {**answer, "judgments": judgments.to_dict(), "pairs": pairs}

    def relevance(self, log: EventLog, progress: Watch = unwatched) -> ClickRelevance:
        """The relevance of the golden set's pairs; stored, so that other cut points cost little."""
        opened = self.workspace
        with opened.store.read() as connection:
            queries = queries_state(connection, opened.golden.id)
        key = key_of(_VERSION, log.version, self.model, opened.golden.salt, queries)
        stored = opened.artifacts.find("click-relevance", key, _read_relevance)
        if stored is not None:
            return replace(stored, grades=sorted(opened.golden.grades))
        judging = partial(progress, "judging documents")
        made = click_relevance(log, self.model, opened=opened, progress=judging)
        made = replace(made, log=PurePath(made.log).name)  # pages do not reveal paths of the server
        head = {**vars(made), "notes": list(map(str, made.notes)), "texts": dict(made.texts)}
        tables = {"relevance": head.pop("frame")}
        opened.artifacts.put("click-relevance", key, head, tables)
        return made

    def people(self) -> pl.DataFrame | None:
        """People's grades with the texts of their queries; None without any."""
        try:
            known = judged(self.workspace)
        except InputError:
            return None
        return graded_by_people(known.qrels, known.queries)


def _read_relevance(stored: Artifact) -> ClickRelevance:
    with stored.reading():
        frame = pl.read_parquet(stored.tables["relevance"])
    return ClickRelevance(frame=frame, **stored.head)


def _fits(log: EventLog, progress: Watch) -> dict[str, Any]:
    """The models, fitted to the first days and evaluated on the last ones, as JSON."""
    read = partial(progress, _READING)
    whole = count_clicks(log, needs="pages", progress=read)[None]
    own = fit(MODELS[0], whole.counts)
    random, _ = propensities(log, Counting(progress=read), None)
    random = compared(random, own)
    (first, last), later = _days(log)
    train = test = whole
    if later is not None:
        try:
            train, test = (
                count_clicks(log, needs="pages", first=a, last=b, progress=read)[None]
                for a, b in ((first, last), later)
            )
        except (InputError, UsageError):  # no pages of results in some of the days
            later, (first, last) = None, _span(log)
    rows = []
    for name in (*MODELS, BASELINE):
        progress(f"fitting {name}", 0, 0)
        of_all = own if name == MODELS[0] else fit(name, whole.counts)
        scores = evaluated(of_all if train is whole else fit(name, train.counts), test.counts)
        shown = {"model": name, "examination": of_all.examination}
        rows.append(ModelFit(**shared(scores, ModelFit) | shown))
    return {
        "fits": [asdict(each) for each in rows],
        "fitted": [first, last],
        "held_out": None if later is None else list(later),
        "identified": own.identified,
        "reason": own.reason,
        "propensities": None if random is None else asdict(random),
    }


def _span(log: EventLog) -> tuple[str, str]:
    return day_text(log.first_day or 0), day_text(log.last_day or 0)


def _days(log: EventLog) -> tuple[tuple[str, str], tuple[str, str] | None]:
    """First and last day of what is fitted, and of what is predicted; None if too few."""
    first, last = log.first_day or 0, log.last_day or 0
    later = (last - first + 1) // _HELD_OUT
    if not later:
        return _span(log), None
    return (
        (day_text(first), day_text(last - later)),
        (day_text(last - later + 1), day_text(last)),
    )


def _most_seen(
    grades: pl.DataFrame, people: pl.DataFrame | None, texts: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The pairs that were looked at most, as ``GradedPair``."""
    order = ["effective", "query_id", "doc_id"]
    rows = grades.sort(order, descending=[True, False, False]).head(MOST_PAIRS)
    own = pl.lit(None, pl.Float64).alias("people")
    if people is None:
        rows = rows.with_columns(own)
    else:
        theirs = people.select("query_id", "doc_id", people="grade")
        rows = rows.join(theirs, on=["query_id", "doc_id"], how="left", maintain_order="left")
    text = pl.col("query_id").replace_strict(dict(texts), default=pl.col("query_id"))
    names = ("query_id", "text", "doc_id", "grade", "people", "value", "ci_low", "ci_high")
    more = ("effective", "shown", "clicked", "rank")
    return rows.with_columns(text=text).select(*names, *more).to_dicts()


def overview(opened: Workspace, answer: Mapping[str, Any]) -> ClickOverview:
    """The answer to ``FromClicks``, with what was added to the golden set."""
    return record_of(ClickOverview, {**answer, "added": added(opened)})


def added(opened: Workspace) -> ClickOrigin | None:
    """How the grades from clicks of the golden set were made; None without any."""
    path = click_grades_file(opened.workspace.root, opened.golden.name)
    if not path.is_file():
        return None
    origin = read_origin(path)
    return replace(origin, log=PurePath(origin.log).name)


def add_grades(asked: FromClicks, *, person: str, now: int) -> ClickJudgments:
    """Replace the grades from clicks of the golden set, never people's; audited.

    Raises:
        CannotTell: the log does not identify positions.
        InputError: no pair gets a grade.
    """
    opened = asked.workspace
    found = asked.relevance(log_of(opened))
    made, grades = graded_clicks(found, cuts=asked.cuts, least=asked.least, now=now)
    if not grades.height:
        raise no_grades(found, asked.least)
    path = click_grades_file(opened.workspace.root, opened.golden.name)
    about = {"model": made.origin.model, "cuts": list(made.origin.cuts), "pairs": made.graded}
    with opened.store.begin() as connection:
        audit.note(connection, person, "add grades from clicks", opened.golden.name, now, about)
        write_click_grades(grades, made.origin, path)
    return replace(made, file=path.name)


def queue_conflicts(asked: FromClicks, *, person: str, now: int) -> int:
    """Put the pairs whose clicks contradict people's grade into the queue; how many."""
    people = asked.people()
    if people is None:
        return 0
    made, grades = graded_clicks(
        asked.relevance(log_of(asked.workspace)), cuts=asked.cuts, least=asked.least, now=now
    )
    found = agreement(grades, people, made.origin, weights=asked.workspace.workspace.weights)
    return queue_opposing(asked.workspace, found, person, now)
