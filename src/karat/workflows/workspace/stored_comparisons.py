"""Stored comparisons of a workspace: requested, computed once, and cached."""

from __future__ import annotations

import itertools
import json
import shutil
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import polars as pl

from karat.diagnosis.document_slices import of_documents
from karat.errors import InputError, KaratError, UsageError, check_known
from karat.measures import lower_is_better, parse_all
from karat.measures.difference import EXACT
from karat.reports.html.content import Content
from karat.stats.effects import TIED
from karat.store.sql import audit, comparisons, golden_sets, pairs, queries, runs
from karat.tables import QueryValue, Results
from karat.tables import comparison as tables
from karat.tables.comparison import Comparison
from karat.tables.names import check_name
from karat.tables.records import record_of
from karat.tables.results import Result
from karat.tables.workspace import ComparisonRow, RunRow
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.offline.compare import compare
from karat.workflows.offline.costs import with_judgments, with_stages
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.evaluation_plan import settle
from karat.workflows.offline.stages import Cancelled, Watch, unwatched, watched
from karat.workflows.workspace.artifacts import Artifact, key_of
from karat.workflows.workspace.stored_inputs import (
    heads,
    inputs_digest,
    judged,
    memberships,
    read_stored,
    single_judgments,
    unanswered,
)
from karat.workflows.workspace.stored_runs import stage_times, stored_rows, trace_mark
from karat.workflows.workspace.stored_views import Beside, Drawn, beside, content_of, drawn
from karat.workflows.workspace.workspace import Workspace

KIND, SUMMARY = "comparison", "comparison-summary"
"""Kinds of artifact: the numbers of a comparison, and their summary for lists."""
_VERSION = 1  # of the computation
_LEGACY = 16  # characters of the keys of older versions, which are not hashes of the inputs
TWICE_US = 60_000_000  # within this time, a repeated request is a double submit
_LONGEST = 200  # characters of a name
_DECIDED = ("better", "worse")
JUDGE_NEXT = 50  # number of pairs stored whose grades say most about the sign of the difference
QUERIES: dict[str, Any] = {
    "candidate": pl.String,
    "measure": pl.String,
    "query_id": pl.String,
    "text": pl.String,
    "outcome": pl.String,
    "baseline_value": pl.Float64,
    "candidate_value": pl.Float64,
    "difference": pl.Float64,
    "share": pl.Float64,
    "slices": pl.List(pl.String),
    "counts": pl.Boolean,
}
"""Columns stored for each query; ``counts`` is false for zero-weight queries."""
OF_DIFFERENCES = [name for name in QUERIES if name not in {"outcome", "slices", "counts"}]
"""Those of these columns that are fields of ``QueryDifference``."""


@dataclass(frozen=True)
class Asked:
    runs: Sequence[int]  # ids of stored runs, the baseline first
    measures: Sequence[str] = ()  # names of measures; the default ones if empty
    by: Sequence[str] = ()
    margin: float | None = None
    edition: str = NOW  # edition whose grades are used; `now` for the current golden set
    name: str = ""  # made of the runs' names if empty


@dataclass(frozen=True)
class StoredComparison:
    comparison: Comparison  # the comparison; `queries` and `only_found` are empty here
    results: Results
    drawn: Drawn
    # One row per query and measure (`outcome`: better, same, worse; `slices` as `lang=de`;
    # `counts`: false for zero-weight queries), the largest contribution first
    frame: pl.DataFrame
    states: pl.DataFrame  # `run`, `query_id`, `state` of queries whose state is not `ok`
    content: Content
    files: Artifact  # the artifact with the other tables

    def to_dict(self, *, queries: bool = False) -> dict[str, Any]:
        """As ``karat compare --format json``; the queries, which have their own list, on demand."""
        values = self.comparison.to_dict()
        with self.files.reading():
            values["only_found"] = pl.read_parquet(self.files.tables["only_found"]).to_dicts()
        del values["queries"]
        if queries:
            values["queries"] = [
                {name: row[name] for name in OF_DIFFERENCES} | {"slices": _slices(row["slices"])}
                for row in self.frame.iter_rows(named=True)
            ]
        return values


def ask(opened: Workspace, asked: Asked, *, by: str, now: int) -> int:
    """Request a comparison, which ``compute`` then computes; audited. Returns its id.

    The same request by the same user within ``TWICE_US``, with the same judgments, returns the
    existing comparison.
    """
    if asked.name.strip():
        check_name(asked.name.strip()[:_LONGEST], "a comparison", longest=_LONGEST)
    if asked.margin is not None and not 0 < asked.margin < float("inf"):
        raise UsageError(
            f"margin must be finite and above 0, got {asked.margin:g}", fix="0.01, for example"
        )
    names = [str(measure) for measure in parse_all(list(asked.measures))] if asked.measures else []
    editions = [NOW, *(row.name for row in list_editions(opened))]
    check_known(asked.edition, editions, f"unknown edition {asked.edition!r}", None)
    settings = {
        "measures": names,
        "by": list(dict.fromkeys(asked.by)),
        "margin": asked.margin,
        "edition": asked.edition,
    }
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)  # no run is deleted meanwhile
        chosen_runs = _chosen(runs.runs(connection, opened.golden.id), asked.runs)
        first, *others = (each.name for each in chosen_runs)
        given_name = asked.name.strip()[:_LONGEST]
        default_name = f"{', '.join(others)} against {first}"
        ids = [each.id for each in chosen_runs]
        existing = comparisons.comparisons(connection, opened.golden.id)
        judgment_ids = {None, comparisons.newest_judgment(connection, opened.golden.id)}
        for row in existing:
            repeated = (ids, settings, by) == (list(row.runs), row.settings, row.made_by)
            repeated &= (
                row.name == given_name
                if given_name
                else row.name.startswith(default_name[: _LONGEST // 2])
            )
            repeated &= row.state != "failed" and row.judgment_id in judgment_ids
            if repeated and abs(now - row.created_us) < TWICE_US:
                return row.id
        name = given_name or _free(default_name, settings, {row.name for row in existing})
        comparison_id = comparisons.put(
            connection,
            opened.golden.id,
            name=name,
            runs=ids,
            settings=settings,
            made_by=by,
            now=now,
        )
        audit.note(connection, by, "make comparison", name, now, {"comparison": comparison_id})
    return comparison_id


def _free(default_name: str, settings: Mapping[str, Any], taken: Collection[str]) -> str:
    """A unique name for a comparison, with its settings or a number added if needed."""
    margin = [] if settings["margin"] is None else [f"margin {settings['margin']:g}"]
    edition = [] if settings["edition"] == NOW else [settings["edition"]]
    details = [*settings["measures"], *(f"by {name}" for name in settings["by"]), *margin, *edition]
    longer = ", ".join([default_name, *details])
    numbered = (f"{longer[: _LONGEST - 10]} ({number})" for number in itertools.count(2))
    names = itertools.chain([default_name[:_LONGEST], longer[:_LONGEST]], numbered)
    return next(name for name in names if name not in taken)


def _chosen(rows: Sequence[RunRow], wanted: Sequence[int]) -> list[RunRow]:
    """The requested runs, without duplicates."""
    by_id = {row.id: row for row in rows}
    if not by_id.keys() >= set(wanted):
        raise UsageError("unknown run", fix="choose among the runs of the golden set")
    chosen = [by_id[each] for each in dict.fromkeys(wanted)]
    if len(chosen) < 2 and len(wanted) > 1:
        run = chosen[0]
        other_names = [repr(each) for each in runs.others(run, runs.by_name(rows))]
        also = f", which is also called {', '.join(other_names)}" if other_names else ""
        raise UsageError(
            f"a comparison needs two different runs, got one: {run.name!r}{also}",
            fix="choose a run with other content",
        )
    if len(chosen) < 2:
        raise UsageError("a comparison needs two runs, got one", fix="choose a second run")
    return chosen


def request_again(opened: Workspace, row: ComparisonRow, *, by: str, now: int) -> bool:
    """Request that a comparison is computed again, with the current grades; audited.

    Returns:
        False, without an entry in the audit, if it is already queued or being computed.
    """
    with opened.store.begin() as connection:
        if not comparisons.again(connection, row.id):
            return False
        audit.note(connection, by, "compute comparison again", row.name, now)
    return True


def runs_of(opened: Workspace, row: ComparisonRow) -> list[RunRow]:
    """The runs of a comparison, the baseline first."""
    by_id = {run.id: run for run in stored_rows(opened)}
    return [by_id[run] for run in row.runs if run in by_id]


def sides(
    opened: Workspace, row: ComparisonRow, found: StoredComparison, candidate: str
) -> Mapping[str, RunRow]:
    """The runs ``baseline`` and ``candidate`` of a comparison."""
    first = found.comparison.baseline
    names = [first, *dict.fromkeys(each.candidate for each in found.comparison.differences)]
    rows = dict(zip(names, runs_of(opened, row), strict=False))
    return {"baseline": rows[first], "candidate": rows[candidate]}


def find(opened: Workspace, comparison_id: int) -> tuple[Workspace, ComparisonRow] | None:
    """A comparison of any golden set, and the workspace with that; None if there is none."""
    with opened.store.read() as connection:
        row = comparisons.find(connection, comparison_id)
        if row is None:
            return None
        return replace(opened, golden=golden_sets.by_id(connection, row.set_id)), row


def compute(
    opened: Workspace, comparison_id: int, clock: Callable[[], int], watch: Watch = unwatched
) -> None:
    """Compute the numbers of a comparison unless they are stored, or note why they cannot be.

    If it is cancelled, its previous numbers stay, if there are any.
    """
    with opened.store.read() as connection:
        row = comparisons.find(connection, comparison_id)
    if row is None or not to_compute(row, kept(opened, row)):
        return
    try:
        key, newest = _computed(opened, row, watch)
    except BaseException as error:
        reason = str(error) if isinstance(error, KaratError) else "this is a bug in karat"
        cancelled = isinstance(error, Cancelled)
        with opened.store.begin() as connection:
            if cancelled and kept(opened, row) is not None:
                comparisons.restore(connection, row.id)
            else:
                comparisons.fail(connection, row.id, reason, clock())
        if cancelled or not isinstance(error, KaratError):
            raise
        return
    with opened.store.begin() as connection:
        comparisons.finish(connection, row.id, key, newest, clock())


def kept(opened: Workspace, row: ComparisonRow) -> StoredComparison | None:
    """The computed comparison; None if it is not computed yet, failed, or its files are damaged.

    While it is computed again, this is the previous result.
    """
    if row.state == "failed" or row.key is None:
        return None
    found = opened.artifacts.find(KIND, row.key, _read)
    if found is None and len(row.key) == _LEGACY:
        _adopt(opened, row)
        found = opened.artifacts.find(KIND, row.key, _read)
    return found


def _adopt(opened: Workspace, row: ComparisonRow) -> None:
    """Move numbers into the cache that an older version stored in the comparison's own folder."""
    folder = opened.workspace.root / "comparisons" / str(row.id)
    with suppress(
        OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError, InputError
    ):
        body = json.loads(json.loads((folder / "kept.json").read_bytes())["body"])
        if body["head"]["attempt"] == row.key:
            files = body["files"].items()
            frames = {name: pl.read_parquet(folder / file["file"]) for name, file in files}
            opened.artifacts.put(KIND, str(row.key), body["head"], frames)
            shutil.rmtree(folder, ignore_errors=True)


def to_compute(row: ComparisonRow, found: StoredComparison | None) -> bool:
    """Whether numbers are requested, or lost."""
    return row.state == "waiting" or (row.state == "done" and found is None)


def query_differences(rows: pl.DataFrame) -> list[tables.QueryDifference]:
    """Rows of ``StoredComparison.frame`` as a comparison has them."""
    return [
        tables.QueryDifference(
            **{name: row[name] for name in OF_DIFFERENCES}, slices=_slices(row["slices"])
        )
        for row in rows.iter_rows(named=True)
    ]


def side(
    opened: Workspace,
    found: StoredComparison,
    row: ComparisonRow,
    query_id: str,
    measure: str,
    ranks: int = 100,
    *,
    stale: bool = True,  # whether grades may have changed since the numbers were computed
) -> Beside | None:
    """One query: its rankings side by side, as ``stored_views.beside``; None for an unknown one."""
    rows = found.frame.filter(query_id=query_id)
    states = found.states.filter(query_id=query_id)
    if not rows.height and not states.height:
        return None
    differences = query_differences(rows)
    state = dict(states.select("run", "state").iter_rows())
    base = found.comparison.baseline
    values: dict[tuple[str, str], QueryValue] = {}
    for difference in differences:
        for run, value in (
            (base, difference.baseline_value),
            (difference.candidate, difference.candidate_value),
        ):
            its_state = state.get(run, "ok")
            values[run, difference.measure] = QueryValue(
                run, difference.measure, query_id, value, its_state
            )
    for run, its_state in state.items():
        for measure_of in dict.fromkeys(view.measure for view in found.content.views):
            lacking = QueryValue(run, measure_of, query_id, None, its_state)
            values.setdefault((run, measure_of), lacking)
    against = replace(found.comparison, queries=differences)
    with found.files.reading():
        return beside(
            opened,
            replace(found.content, comparison=against),
            query_id,
            measure=measure,
            values=list(values.values()),
            tables=found.files.tables,
            live=stale and row.settings["edition"] == NOW,
            ranks=ranks,
        )


def has_query(opened: Workspace, query_id: str) -> bool:
    """Whether the golden set has a query now."""
    with opened.store.read() as connection:
        return queries.has(connection, opened.golden.id, query_id)


def returned(found: StoredComparison, query_id: str, doc_id: str) -> bool:
    """Whether any run of a comparison returned a document for a query."""
    with found.files.reading():
        heads = pl.scan_parquet(found.files.tables["heads"])
        return heads.filter(query_id=query_id, doc_id=doc_id).head(1).collect().height > 0


def adds_unequally(rows: pl.DataFrame) -> bool:
    """Whether equal differences of queries add unequally to the difference of the runs."""
    changed = rows.filter(pl.col("difference").abs() > TIED)
    ratio = (changed["share"] / changed["difference"]).drop_nulls().to_list()
    return bool(ratio) and max(ratio) > min(ratio) * 1.000001


def queue_next(
    opened: Workspace, row: ComparisonRow, found: StoredComparison, *, by: str, now: int
) -> pairs.Queued:
    """Queue the pairs whose grades could flip the sign, with top priority; audited.

    Pairs of queries that were dropped since are left out.
    """
    unjudged = [(each.query_id, each.doc_id) for each in found.comparison.judge_next]
    with opened.store.begin() as connection:
        query_ids = queries.ids(connection, opened.golden.id)
        chosen = [each for each in unjudged if each[0] in query_ids]
        frame = pl.DataFrame(
            chosen, schema={"query_id": pl.String, "doc_id": pl.String}, orient="row"
        )
        queued = pairs.put(
            connection,
            opened.golden.id,
            frame.with_columns(priority=pl.lit(1), chosen_by=pl.lit("comparison")),
            opened.golden.raters,
            now,
        )
        about = {"pairs": len(chosen), "comparison": row.id}
        audit.note(connection, by, "queue pairs", row.name, now, about)
    return queued


def _key(row: ComparisonRow, of: Sequence[RunRow], opened: Workspace, digest: str) -> str:
    contents = [(run.content, run.name) for run in of]
    marks = [trace_mark(opened, run) for run in of]
    traced = [marks] if any(marks) else []  # without traces, as before there were any
    scale = opened.golden.scale
    return key_of(_VERSION, opened.golden.salt, scale, contents, row.settings, digest, *traced)


@dataclass(frozen=True)
class Older:
    # Number of judgments since that count: the last of each pair, without undone ones
    judgments: int = 0
    # Whether judgments, queries, documents or traces changed, so its numbers may change
    changed: bool = False

    @property
    def told(self) -> str:
        """What changed, as a phrase; empty if nothing did."""
        if not self.changed:
            return ""
        if not self.judgments:
            return "judgments, queries, documents or traces changed since"
        were = "judgment was" if self.judgments == 1 else "judgments were"
        return f"{self.judgments:,} {were} given since"

    @property
    def said(self) -> str:
        """What changed, as a sentence; empty if nothing did."""
        return f"{self.told[:1].upper()}{self.told[1:]} this was computed." if self.changed else ""


@dataclass(frozen=True)
class Listed:
    row: ComparisonRow
    runs: Sequence[RunRow]  # those of its runs that are there, the baseline first
    older: Older = Older()  # how stale its numbers are; not at all before they are computed
    # The verdict under the first measure, in a few words; None before it is computed
    verdict: str | None = None
    # Measures whose sign unjudged pairs could flip: the first, and others with a verdict of better
    # or worse
    turns: Sequence[str] = ()
    next: int = 0  # number of judging priorities


def listed(opened: Workspace) -> list[Listed]:
    """The comparisons of a golden set, the newest first."""
    with opened.store.read() as connection:
        rows = comparisons.comparisons(connection, opened.golden.id)
    return described(opened, rows)


def described(opened: Workspace, rows: Sequence[ComparisonRow]) -> list[Listed]:
    """Comparisons with their summaries and what changed since; looked up together."""
    by_id = {run.id: run for run in stored_rows(opened)}
    since, out = _Since(opened, rows), []
    for row in rows:
        found = Listed(row, [by_id[run] for run in row.runs if run in by_id])
        out.append(replace(found, older=since.older(found), **_summary(opened, row)))
    return out


def _summary(opened: Workspace, row: ComparisonRow) -> Mapping[str, Any]:
    """The fields of ``Listed`` that depend on the numbers; empty without numbers."""
    if row.state == "failed" or row.key is None:
        return {}
    summary: Mapping[str, Any] | None = opened.artifacts.found(SUMMARY, row.key)
    if summary is None:
        found = kept(opened, row)
        if found is None:
            return {}
        fields = _in_short(found.comparison)
        summary = opened.artifacts.answer(SUMMARY, row.key, lambda: fields)
    return summary


def _in_short(comparison: Comparison) -> dict[str, Any]:
    first = comparison.differences[0].measure
    rows = [row for row in comparison.differences if row.measure == first]
    verdict = f"{rows[0].verdict} by {first}"
    if len(rows) > 1:
        verdict = ", ".join(f"{row.candidate} {row.verdict}" for row in rows) + f", by {first}"
    flippable = [row for row in comparison.differences if row.sign_could_flip]
    turns = [row.measure for row in flippable if row.measure == first or row.verdict in _DECIDED]
    pairs_to_judge = len(comparison.judge_next)
    return {"verdict": verdict, "turns": list(dict.fromkeys(turns)), "next": pairs_to_judge}


class _Since:
    """Changes since comparisons of one golden set were computed."""

    def __init__(self, opened: Workspace, rows: Sequence[ComparisonRow]) -> None:
        self._opened, self._digests = opened, dict[tuple[bool, bool], str]()
        live = [row.judgment_id for row in rows if row.settings["edition"] == NOW]
        self._first = min((each for each in live if each is not None), default=0)
        self._given: list[int] | None = None

    def older(self, found: Listed) -> Older:
        row = found.row
        if row.judgment_id is None or row.key is None:
            return Older()
        live = row.settings["edition"] == NOW
        if len(row.key) == _LEGACY:  # it does not say what it was computed from
            with self._opened.store.read() as connection:
                newest = comparisons.newest_judgment(connection, self._opened.golden.id)
            changed = live and newest != row.judgment_id
        else:
            digest = self._digest(row.settings["edition"], of_documents(row.settings["by"]))
            changed = row.key != _key(row, found.runs, self._opened, digest)
        if not changed:
            return Older()
        return Older(self._judged(row.judgment_id) if live else 0, changed=True)

    def _judged(self, since: int) -> int:
        if self._given is None:
            with self._opened.store.read() as connection:
                set_id = self._opened.golden.id
                self._given = comparisons.judged_since(connection, set_id, self._first)
        return len(self._given) - bisect_right(self._given, since)

    def _digest(self, edition: str, with_documents: bool) -> str:
        key = edition == NOW, with_documents
        if key not in self._digests:
            self._digests[key] = inputs_digest(self._opened, edition, with_documents=with_documents)
        return self._digests[key]


def _read(files: Artifact) -> StoredComparison:
    head = files.head
    comparison = record_of(Comparison, head["comparison"])
    names = {field.name for field in fields(Result)}
    results = Results(
        [Result(**{k: v for k, v in each.items() if k in names}) for each in head["results"]]
    )
    low, high = head["scale"]
    rel = comparison.settings.rel
    return StoredComparison(
        comparison,
        results,
        record_of(Drawn, head["drawn"]),
        pl.read_parquet(files.tables["queries"]),
        pl.read_parquet(files.tables["states"]),
        content_of(results, comparison, head["runs"], rel, (low, high)),
        files,
    )


def _slices(memberships: Sequence[str]) -> dict[str, list[str]]:
    slices: dict[str, list[str]] = {}
    for membership in memberships:
        attribute, _, value = membership.partition("=")
        slices.setdefault(attribute, []).append(value)
    return slices


def _computed(opened: Workspace, row: ComparisonRow, watch: Watch) -> tuple[str, int]:
    """Compute and store a comparison unless its numbers are stored.

    Returns:
        The key of its numbers, and the id of the newest judgment used.
    """
    settings, of_runs = row.settings, runs_of(opened, row)
    by = list(settings["by"])
    watch("reading judgments", 0, 0)
    judgments = judged(opened, settings["edition"], with_documents=of_documents(by))
    key = _key(row, of_runs, opened, judgments.digest)
    if opened.artifacts.find(KIND, key, _read) is not None:
        return key, judgments.newest
    stored = [read_stored(opened, each) for each in watched(watch, "reading runs", of_runs)]
    if len(stored) != len(row.runs):
        raise UsageError("a run of the comparison was deleted")
    shared: dict[str, Any] = {"queries": judgments.queries, "documents": judgments.documents}
    plan = settle(judgments.qrels, stored, settings["measures"] or None, by=by, **shared)
    first = plan.measures[0].entry  # not every measure can name pairs
    comparison = compare(
        plan,
        plan.runs[0],
        plan.runs[1:],
        by=by,
        margin=settings["margin"],
        judge_next=JUDGE_NEXT if first.symbol in EXACT and first.ours else 0,
        watch=watch,
    )
    watch("listing queries", 0, 0)
    if settings["edition"] == NOW:
        comparison = with_judgments(comparison, plan.runs, single_judgments(opened))
    times = {
        run.name: stage_times(opened, each) for run, each in zip(plan.runs, of_runs, strict=True)
    }
    comparison = with_stages(
        comparison, {name: each for name, each in times.items() if each is not None}
    )
    names = list(dict.fromkeys(each.measure for each in comparison.differences))
    run_names = [run.name for run in plan.runs]
    results = evaluate(plan, plan.runs, per_query=True)
    watch("drawing charts", 0, 0)
    content = content_of(
        results, comparison, run_names, comparison.settings.rel, opened.golden.scale
    )
    comparison_head = replace(comparison, queries=[], only_found=[]).to_dict()
    del comparison_head["queries"]
    only_found = pl.DataFrame(
        [asdict(each) for each in comparison.only_found], infer_schema_length=None
    )
    head = {
        "comparison": comparison_head,
        "results": [asdict(each) for each in results.results],
        "runs": run_names,
        "drawn": asdict(drawn(content)),
        "scale": list(opened.golden.scale),
    }
    frames = {
        "queries": _queries(comparison, plan.rules.zero_weight),
        "states": unanswered(results.per_query, names[0]),
        "grades": judgments.qrels.frame.select("query_id", "doc_id", "grade").sort("query_id"),
        "heads": heads(plan.runs),
        "only_found": only_found,
    }
    opened.artifacts.put(KIND, key, head, frames)
    return key, judgments.newest


def _queries(found: Comparison, zero_weight: Collection[str]) -> pl.DataFrame:
    """The table with columns ``QUERIES``, the largest contributions first, zero weights last."""
    rows = []
    lower = {row.measure for row in found.differences if lower_is_better(row.measure)}
    for difference in found.queries:
        gain = difference.difference * (-1 if difference.measure in lower else 1)
        outcome = "better" if gain > TIED else "worse" if gain < -TIED else "same"
        shared = {name: getattr(difference, name) for name in OF_DIFFERENCES}
        derived = {"outcome": outcome, "slices": memberships(difference.slices)}
        rows.append(shared | derived | {"counts": difference.query_id not in zero_weight})
    frame = pl.DataFrame(rows, schema=QUERIES)
    return frame.sort(pl.col("share").abs(), descending=True, maintain_order=True)
