"""Comparisons of a workspace: asked for once, computed once, looked at often."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from karat.diagnosis.document_slices import of_documents
from karat.errors import KaratError, UsageError, nearest, on_page
from karat.measures import DEFAULTS, lower_is_better, parse_all
from karat.measures.difference import EXACT
from karat.reports.html.content import Content
from karat.stats.effects import TIED
from karat.store.sql import audit, comparisons, golden_sets, pairs, runs
from karat.store.sql.comparisons import ComparisonRow
from karat.store.sql.runs import RunRow
from karat.tables import QueryValue, Results
from karat.tables import comparison as tables
from karat.tables.about import AboutChange
from karat.tables.answer_changes import AnswerChange
from karat.tables.comparison import Comparison
from karat.tables.leaderboard import Order, Standing
from karat.tables.names import check_name
from karat.tables.results import Result
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.evaluation_plan import settle
from karat.workflows.workspace.artifacts import (
    ArtifactCache,
    ArtifactFiles,
    read_artifact,
    write_artifact,
)
from karat.workflows.workspace.stored_inputs import (
    heads,
    judged,
    memberships,
    read_kept,
    unanswered,
)
from karat.workflows.workspace.stored_views import Beside, Drawn, beside, content_of, drawn
from karat.workflows.workspace.workspace import Workspace

FOLDER = "comparisons"
TWICE_US = 60_000_000
"""Within this time the same that somebody asks for twice was meant once."""
_LONGEST = 200  # characters of a name
_BEAT_S = 10.0
_MEMORY = 8  # comparisons that a process keeps at hand
_ROWS: dict[str, Any] = {
    "differences": tables.Difference,
    "slices": tables.Difference,
    "standings": Standing,
    "orders": Order,
    "disagreements": tables.Disagreement,
    "moves": tables.Move,
    "finds": tables.Finds,
    "overlaps": tables.Overlap,
    "review": tables.Review,
    "judge_next": tables.NextJudgment,
    "answers": AnswerChange,
    "changes": AboutChange,
}
JUDGE_NEXT = 50
"""Pairs whose grades say most about the sign, as many as are kept."""
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
"""What is kept of each query; ``counts`` is whether it does in numbers over all of them."""
OF_DIFFERENCES = [name for name in QUERIES if name not in {"outcome", "slices", "counts"}]
"""Of these, what a ``QueryDifference`` holds likewise."""


@dataclass(frozen=True)
class Asked:
    """What is to be compared.

    Attributes:
        runs: Numbers of kept runs, the baseline's first.
        measures: Names of measures; the usual ones if empty.
        by: Attributes to slice by.
        margin: Differences smaller than this do not matter; None if nobody says.
        edition: Whose grades count, or ``now`` for the golden set as it stands.
        name: What pages call it; made of the runs' names if empty.
    """

    runs: Sequence[int]
    measures: Sequence[str] = ()
    by: Sequence[str] = ()
    margin: float | None = None
    edition: str = NOW
    name: str = ""


@dataclass(frozen=True)
class KeptComparison:
    """A comparison as it was computed.

    Attributes:
        comparison: Its numbers; ``queries`` and ``only_found`` are empty here.
        results: Each run by itself.
        drawn: Its charts.
        frame: Every query under every measure (``outcome``: better, same, worse; ``slices`` as
            ``lang=de``; ``counts``: whether it counts in numbers over all), the largest
            contribution first.
        states: ``run``, ``query_id``, ``state`` of queries that a run gave no plain answer to.
        content: What the components of a report are given.
        files: Where the rest stands.
    """

    comparison: Comparison
    results: Results
    drawn: Drawn
    frame: pl.DataFrame
    states: pl.DataFrame
    content: Content
    files: ArtifactFiles

    def to_dict(self) -> dict[str, Any]:
        """What ``karat compare --format json`` says, but for the queries, which are a list."""
        found = self.comparison.to_dict()
        with self.files.reading():
            only = pl.read_parquet(self.files.tables["only_found"]).to_dicts()
        return {name: value for name, value in found.items() if name != "queries"} | {
            "only_found": only
        }


def ask(opened: Workspace, asked: Asked, *, by: str, now: int) -> int:
    """Ask for a comparison; ``compute`` then computes it.

    What the same person asked within ``TWICE_US``, of the same judgments, is that: a form that was
    sent twice, for example.

    Args:
        opened: The workspace.
        asked: What is to be compared.
        by: Who asks.
        now: Microseconds UTC.

    Returns:
        Its number.

    Raises:
        UsageError: an unknown run, measure or edition, fewer than two runs, a margin that is not
            above 0, or a name that cannot be one (``check_name``).
    """
    if asked.name.strip():
        check_name(asked.name.strip()[:_LONGEST], "a comparison", longest=_LONGEST)
    if asked.margin is not None and not 0 < asked.margin < float("inf"):
        raise UsageError(f"a margin of {asked.margin:g} is not above 0", fix="0.01, for example")
    names = [str(measure) for measure in parse_all(list(asked.measures))] if asked.measures else []
    editions = [row.name for row in list_editions(opened)]
    if asked.edition != NOW and asked.edition not in editions:
        raise UsageError(
            f"there is no edition {asked.edition!r}", nearest=nearest(asked.edition, editions, 1)
        )
    settings = {
        "measures": names,
        "by": list(dict.fromkeys(asked.by)),
        "margin": asked.margin,
        "edition": asked.edition,
    }
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)  # nobody removes a run meanwhile
        chosen = _chosen(runs.runs(connection, opened.golden.id), asked.runs)
        first, *others = (each.name for each in chosen)
        given, plain = asked.name.strip()[:_LONGEST], f"{', '.join(others)} against {first}"
        ids = [each.id for each in chosen]
        there = comparisons.comparisons(connection, opened.golden.id)
        of = {None, comparisons.newest_judgment(connection, opened.golden.id)}
        for row in there:
            same = (ids, settings, by) == (list(row.runs), row.settings, row.made_by)
            same &= row.name == given if given else row.name.startswith(plain[: _LONGEST // 2])
            same &= row.state != "failed" and row.judgment_id in of
            if same and abs(now - row.created_us) < TWICE_US:
                return row.id
        name = given or _free(plain, settings, {row.name for row in there})
        made = comparisons.put(
            connection,
            opened.golden.id,
            name=name,
            runs=ids,
            settings=settings,
            made_by=by,
            now=now,
        )
        audit.note(connection, by, "make comparison", name, now, {"comparison": made})
    return made


def _free(plain: str, settings: Mapping[str, Any], taken: Collection[str]) -> str:
    """A name that no other comparison has: with what tells it apart, or else a number."""
    margin = [] if settings["margin"] is None else [f"margin {settings['margin']:g}"]
    edition = [] if settings["edition"] == NOW else [settings["edition"]]
    told = [*settings["measures"], *(f"by {each}" for each in settings["by"]), *margin, *edition]
    longer = ", ".join([plain, *told])
    numbered = (f"{longer[: _LONGEST - 10]} ({number})" for number in itertools.count(2))
    names = itertools.chain([plain[:_LONGEST], longer[:_LONGEST]], numbered)
    return next(each for each in names if each not in taken)


def _chosen(there: Sequence[RunRow], wanted: Sequence[int]) -> list[RunRow]:
    """The runs that are asked for, each once.

    Raises:
        UsageError: one is not there, or they are not two.
    """
    known = {row.id: row for row in there}
    if not known.keys() >= set(wanted):
        raise UsageError("there is no such run in the golden set", fix="choose among its runs")
    chosen = [known[each] for each in dict.fromkeys(wanted)]
    if len(chosen) < 2 and len(wanted) > 1:
        same = chosen[0]
        besides = [repr(each) for each in runs.others(same, runs.by_name(there))]
        also = f", which is also called {', '.join(besides)}" if besides else ""
        raise UsageError(
            f"a run is compared with another, and this is one: {same.name!r}{also}",
            fix="choose a run of another content",
        )
    if len(chosen) < 2:
        raise UsageError("a run is compared with another", fix="choose a second run")
    return chosen


def ask_again(opened: Workspace, row: ComparisonRow, *, by: str, now: int) -> bool:
    """Have a comparison computed again, with the grades of now.

    Returns:
        False if it is being computed already, or is about to be: then nothing is noted.
    """
    with opened.store.begin() as connection:
        if not comparisons.again(connection, row.id):
            return False
        audit.note(connection, by, "compute comparison again", row.name, now)
    return True


def folder_of(opened: Workspace, comparison_id: int) -> Path:
    """Where a comparison's numbers stand."""
    return opened.workspace.root / FOLDER / str(comparison_id)


def runs_of(opened: Workspace, row: ComparisonRow) -> list[RunRow]:
    """The runs of a comparison, the baseline first."""
    with opened.store.read() as connection:
        known = {each.id: each for each in runs.runs(connection, opened.golden.id)}
    return [known[each] for each in row.runs if each in known]


def compute(opened: Workspace, comparison_id: int, clock: Callable[[], int]) -> bool:
    """Compute a comparison that waits, or whose computer died, and write what came out.

    Args:
        opened: The workspace, with the comparison's golden set.
        comparison_id: Which.
        clock: Gives microseconds UTC, now.

    Returns:
        Whether it was computed here, or failed here: False if another does, or it was done.
    """
    with opened.store.begin() as connection:
        attempt = comparisons.start(connection, comparison_id, clock())
        if attempt is None:
            return False
        row = comparisons.find(connection, comparison_id)
    assert row is not None

    def alive() -> bool:
        with opened.store.begin() as connection:
            return comparisons.alive(connection, comparison_id, attempt, clock())

    try:
        with heartbeat(alive, _BEAT_S):
            of_runs = runs_of(opened, row)
            found = _computed(opened, row, of_runs)
            if not alive():  # it took too long, and is another's now: so are its files
                return False
            of_what = {"of": _digest(opened, row, of_runs), "attempt": attempt}
            write_artifact(folder_of(opened, row.id), {**found.head, **of_what}, found.tables)
    except KaratError as error:
        with opened.store.begin() as connection:
            return comparisons.fail(connection, comparison_id, attempt, on_page(error), clock())
    except BaseException:
        with opened.store.begin() as connection:
            comparisons.fail(connection, comparison_id, attempt, "this is a bug in karat", clock())
        raise
    with opened.store.begin() as connection:
        return comparisons.finish(connection, comparison_id, attempt, found.newest, clock())


def kept(opened: Workspace, row: ComparisonRow) -> KeptComparison | None:
    """What was computed; None if nothing was yet, it failed, or its files are damaged.

    While it is computed again, this is what came out before.
    """
    if row.state == "failed":
        return None
    found = AT_HAND.get(folder_of(opened, row.id))
    return found if found is not None and is_of(opened, row, found.files.head) else None


def to_compute(opened: Workspace, row: ComparisonRow, found: KeptComparison | None) -> bool:
    """Whether a comparison waits for somebody to compute it; one whose files are gone does so."""
    if row.state == "done" and found is None:
        with opened.store.begin() as connection:
            comparisons.again(connection, row.id)
        return True
    return row.state in {"waiting", "running"}


def side(
    opened: Workspace,
    found: KeptComparison,
    row: ComparisonRow,
    query_id: str,
    measure: str,
    ranks: int = 100,
) -> Beside | None:
    """One query: its rankings side by side, as ``stored_views.beside``; None for an unknown one."""
    rows = found.frame.filter(query_id=query_id)
    states = found.states.filter(query_id=query_id)
    if not rows.height and not states.height:
        return None
    own = [
        tables.QueryDifference(
            **{name: each[name] for name in OF_DIFFERENCES},
            slices=_slices(each["slices"]),
        )
        for each in rows.iter_rows(named=True)
    ]
    state = dict(states.select("run", "state").iter_rows())
    base = found.comparison.baseline
    values: dict[tuple[str, str], QueryValue] = {}
    for each in own:
        for run, value in ((base, each.baseline_value), (each.candidate, each.candidate_value)):
            said = state.get(run, "ok")
            values[run, each.measure] = QueryValue(run, each.measure, query_id, value, said)
    for run, said in state.items():
        for measure_of in dict.fromkeys(view.measure for view in found.content.views):
            lacking = QueryValue(run, measure_of, query_id, None, said)
            values.setdefault((run, measure_of), lacking)
    against = replace(found.comparison, queries=own)
    with found.files.reading():
        return beside(
            opened,
            replace(found.content, comparison=against),
            query_id,
            measure=measure,
            values=list(values.values()),
            tables=found.files.tables,
            edition=row.settings["edition"],
            ranks=ranks,
        )


def returned(found: KeptComparison, query_id: str, doc_id: str) -> bool:
    """Whether any run of a comparison returned a document for a query."""
    with found.files.reading():
        heads = pl.scan_parquet(found.files.tables["heads"])
        return heads.filter(query_id=query_id, doc_id=doc_id).head(1).collect().height > 0


def queue_next(
    opened: Workspace, row: ComparisonRow, found: KeptComparison, *, by: str, now: int
) -> pairs.Queued:
    """Put the pairs whose grades could turn the sign into the queue, first of all.

    Returns:
        What became of them; pairs of queries that were dropped since are left out.
    """
    wanted = [(each.query_id, each.doc_id) for each in found.comparison.judge_next]
    with opened.store.begin() as connection:
        there = comparisons.query_ids(connection, opened.golden.id)
        chosen = [each for each in wanted if each[0] in there]
        frame = pl.DataFrame(
            chosen, schema={"query_id": pl.String, "doc_id": pl.String}, orient="row"
        )
        put = pairs.put(
            connection,
            opened.golden.id,
            frame.with_columns(priority=pl.lit(1), chosen_by=pl.lit("comparison")),
            opened.golden.raters,
            now,
        )
        about = {"pairs": len(chosen), "comparison": row.id}
        audit.note(connection, by, "queue pairs", row.name, now, about)
    return put


def _digest(opened: Workspace, row: ComparisonRow, wanted: Sequence[RunRow]) -> str:
    """What was asked, whatever its number: another store counts from 1 again."""
    contents = [(each.id, each.sha256) for each in wanted]
    asked = [opened.golden.salt, row.id, row.created_us, contents, row.settings]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def is_of(
    opened: Workspace,
    row: ComparisonRow,
    head: Mapping[str, Any],
    wanted: Sequence[RunRow] | None = None,
) -> bool:
    """Whether kept numbers are of this comparison; once it is done, of whoever ended last."""
    if row.state == "failed" or (row.state == "done" and head.get("attempt") != row.attempt):
        return False
    return head.get("of") == _digest(opened, row, wanted or runs_of(opened, row))


def _read(folder: Path) -> KeptComparison | None:
    files = read_artifact(folder)
    if files is None:
        return None
    head = files.head
    held = dict(head["comparison"])
    for name, kind in _ROWS.items():
        held[name] = [kind(**each) for each in held.get(name, ())]
    held["settings"] = tables.Settings(**held["settings"])
    comparison = Comparison(**held)
    names = {field.name for field in fields(Result)}
    results = Results(
        [Result(**{k: v for k, v in each.items() if k in names}) for each in head["results"]]
    )
    low, high = head["scale"]
    rel = comparison.settings.rel
    return KeptComparison(
        comparison,
        results,
        Drawn.from_dict(head["drawn"]),
        pl.read_parquet(files.tables["queries"]),
        pl.read_parquet(files.tables["states"]),
        content_of(results, comparison, head["runs"], rel, (low, high)),
        files,
    )


AT_HAND = ArtifactCache(_MEMORY, _read)
"""Comparisons that this process read."""


def _slices(held: Sequence[str]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for each in held:
        attribute, _, value = each.partition("=")
        out.setdefault(attribute, []).append(value)
    return out


@dataclass(frozen=True)
class _Computed:
    """What came out.

    Attributes:
        head: The numbers, as JSON can hold them.
        tables: ``queries``, ``states``, ``grades``, ``heads`` and ``only_found``.
        newest: Number of the newest judgment there was.
    """

    head: Mapping[str, Any]
    tables: Mapping[str, pl.DataFrame]
    newest: int


def _computed(opened: Workspace, row: ComparisonRow, wanted: Sequence[RunRow]) -> _Computed:
    """Compute a comparison.

    Args:
        opened: The workspace.
        row: What was asked.
        wanted: Its runs, the baseline first.

    Raises:
        UsageError: a run is not there any more, or there is no such edition, measure or attribute.
        InputError: nothing is judged yet, or a run cannot be read.
    """
    settings = row.settings
    by = list(settings["by"])
    given = judged(opened, settings["edition"], with_documents=of_documents(by))
    read = [read_kept(opened, each) for each in wanted]
    if len(read) != len(row.runs):
        raise UsageError("a run of the comparison is not in the workspace any more")
    shared: dict[str, Any] = {"queries": given.queries, "documents": given.documents}
    first = parse_all(settings["measures"] or DEFAULTS)[0]  # of others no single pair is known
    found = compare(
        given.qrels,
        read[0],
        read[1:],
        settings["measures"] or None,
        by=by,
        margin=settings["margin"],
        judge_next=JUDGE_NEXT if first.entry.symbol in EXACT and first.entry.ours else 0,
        **shared,
    )
    names = list(dict.fromkeys(each.measure for each in found.differences))
    called = [found.baseline, *dict.fromkeys(each.candidate for each in found.differences)]
    read = [run.named(name) for run, name in zip(read, called, strict=True)]
    results = evaluate(given.qrels, read, names, per_query=True, **shared)
    content = content_of(results, found, called, found.settings.rel, opened.golden.scale)
    whole = {name: value for name, value in found.to_dict().items() if name != "queries"}
    only = pl.DataFrame([asdict(each) for each in found.only_found], infer_schema_length=None)
    head = {
        "comparison": whole | {"only_found": []},
        "results": [asdict(each) for each in results.results],
        "runs": called,
        "drawn": drawn(content).to_dict(),
        "scale": list(opened.golden.scale),
        "clock": given.clock,
    }
    return _Computed(
        head,
        {
            "queries": _queries(
                found, settle(given.qrels, read, names, **shared).rules.zero_weight
            ),
            "states": unanswered(results.per_query, names[0]),
            "grades": given.qrels.frame.select("query_id", "doc_id", "grade").sort("query_id"),
            "heads": heads(read),
            "only_found": only,
        },
        given.newest,
    )


def _queries(found: Comparison, zero_weight: Collection[str]) -> pl.DataFrame:
    """``QUERIES``, the largest contribution of each candidate and measure first.

    Args:
        found: The comparison; its queries of weight 0 stand after all others.
        zero_weight: Queries of weight 0.
    """
    rows = []
    for each in found.queries:
        gain = each.difference * (-1 if lower_is_better(each.measure) else 1)
        outcome = "better" if gain > TIED else "worse" if gain < -TIED else "same"
        held = {name: getattr(each, name) for name in OF_DIFFERENCES}
        own = {"outcome": outcome, "slices": memberships(each.slices)}
        rows.append(held | own | {"counts": each.query_id not in zero_weight})
    frame = pl.DataFrame(rows, schema=QUERIES)
    return frame.sort(pl.col("share").abs(), descending=True, maintain_order=True)


@contextmanager
def heartbeat(beat: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call something every few seconds, in a thread, while the block runs.

    Args:
        beat: What is called; one that fails is left out.
        every_s: Seconds between two.
    """
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(every_s):
            with suppress(KaratError):
                beat()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
