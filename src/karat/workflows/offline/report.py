"""Report: results as one HTML file or one picture."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import UsageError, nearest
from karat.formats.tables.writing import beside
from karat.measures import DEFAULTS
from karat.reports.charts.drawing import PAPER, to_png, to_svg
from karat.reports.html.content import MOST_LISTED, MOST_QUERIES, MOST_ROWS, Content
from karat.reports.html.figures import plot
from karat.reports.html.page import to_page
from karat.tables import Documents, Qrels, Queries, Results, Run
from karat.tables.comparison import Comparison
from karat.tables.release.gate import Gate
from karat.tables.results import Origin
from karat.workflows.offline import inputs
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluate import results_of, values_by_query
from karat.workflows.offline.evaluation_plan import STANDARD, EvaluationPlan, settle
from karat.workflows.offline.report_queries import by_interest, shown, views
from karat.workflows.workspace.fingerprints import fingerprint


def known_ids(gate: Gate | None) -> frozenset[str]:
    """The known failures that a gate excludes from every rule."""
    return frozenset(() if gate is None else (row.query_id for row in gate.known_failures))


def without(
    query_ids: Collection[str], qrels: Qrels, queries: Queries | None, runs: Sequence[Run]
) -> tuple[Qrels, Queries | None, list[Run]]:
    """Judgments, queries and runs without some queries."""
    if not query_ids:
        return qrels, queries, list(runs)
    others = ~pl.col("query_id").is_in(sorted(query_ids))
    judged = qrels.frame if qrels.subtopics is None else qrels.subtopics
    judged = judged.filter(others)
    if not judged.height:
        raise UsageError(
            "every judged query is a known failure, so there is nothing to show",
            fix="leave --report out",
        )
    return (
        Qrels(judged, qrels.source, qrels.scale, qrels.without - set(query_ids)),
        None if queries is None else Queries(queries.frame.filter(others), queries.source),
        [
            Run.from_batches(
                run.name,
                [run.frame().filter(others).drop("rank")],
                answers=run.answers.filter(others),
                about=run.about,
                source=run.source,
            )
            for run in runs
        ],
    )


def compare_gated(
    gate: Gate,
    qrels: Any,
    runs: Sequence[Run],
    measures: Sequence[str],
    *,
    queries: Any = None,
    **settings: Any,
) -> Comparison:
    """Compare a gate's two runs over the queries that the gate counts."""
    about = inputs.about(queries, qrels)
    judged, about, counting = without(known_ids(gate), inputs.qrels(qrels), about, runs)
    baseline, candidate = counting
    return compare(judged, baseline, candidate, measures, queries=about, **settings)


_DEEPEST = 100  # ranks side by side
_FEWEST = 20  # queries side by side, however deep
_TITLE = 120  # characters of a document
_LARGEST = 200_000_000  # bytes of a corpus that is read for titles by default


def write_report(
    path: str | Path,  # the file; `.gz`, `.zst` and `.bz2` compress it
    found: Results | Comparison | Gate,  # results of `evaluate`, `compare` or `gate`
    *,
    runs: Sequence[Run],  # its runs, the baseline first
    qrels: Any,  # judgments
    queries: Any = None,  # queries; their texts are shown
    documents: Any = None,  # documents; their titles or texts are shown
    comparison: Comparison | None = None,  # for a gate, the comparison of the same two runs
) -> None:
    """Write results, query by query, as one self-contained HTML file."""
    if str(path) == "-":
        raise UsageError(
            "a report cannot be written to standard output", fix="--report report.html"
        )
    gate = found if isinstance(found, Gate) else None
    against = found if isinstance(found, Comparison) else comparison
    document_table = inputs.documents(documents)
    query_table = inputs.about(queries, qrels)
    judgments, all_runs = inputs.qrels(qrels), list(runs)
    sources = list(_sources(judgments, query_table, _named(all_runs, against), gate))
    _refuse_others(gate, against)
    measured = gate if against is None and gate is not None else against or found
    plan: EvaluationPlan | None = measured.plan
    stated = STANDARD if plan is None else plan.conditions
    if plan is None or isinstance(measured, Gate):
        known = known_ids(gate)
        judgments, query_table, counting = without(known, judgments, query_table, all_runs)
        names, systems = _measures(found, against), _named(counting, against)
        plan = settle(
            judgments, systems, names, stated, queries=query_table, documents=document_table
        )
    results = found if isinstance(found, Results) else results_of(plan, per_query=True)
    if not results.per_query:
        values = [row for scores in plan.scored for row in values_by_query(scores, {})]
        results = replace(results, per_query=values)
    content = _content(plan, results, against, gate, document_table)
    rules = list(_rules(asdict(stated), against, gate))
    page = to_page(replace(content, sources=sources, rules=rules))
    with beside(Path(path)) as stream:
        stream.write(page.encode())


def write_plot(path: str | Path, found: Results | Comparison) -> None:
    """Write the measures with their intervals as one picture."""
    ending = Path(path).suffix.lower()
    if ending not in {".png", ".svg"}:
        raise UsageError(
            f"{Path(path).name} does not end in .png or .svg",
            nearest=nearest(ending, [".png", ".svg"]),
            fix="--plot plot.png or --plot plot.svg",
        )
    drawn = plot(found, PAPER)
    picture = to_png(drawn) if ending == ".png" else to_svg(drawn).encode()
    with beside(Path(path)) as stream:
        stream.write(picture)


def titled(documents: Any, qrels: str | Path) -> Any:
    """The documents given; if None, those of a BEIR folder of judgments, unless it is large."""
    if documents is not None:
        return documents
    folder = Path(qrels)
    corpora = sorted(folder.glob("corpus.jsonl*")) if folder.is_dir() else []
    return folder if corpora and corpora[0].stat().st_size <= _LARGEST else None


def _refuse_others(gate: Gate | None, against: Comparison | None) -> None:
    """Refuse a comparison that counts queries that the gate excludes."""
    known = known_ids(gate)
    counted = [] if against is None else (row.query_id for row in against.queries)
    if (query := next((query for query in counted if query in known), None)) is not None:
        raise UsageError(
            f"the comparison counts {query}, which the gate excludes as a known failure",
            fix="compare without the known failures",
        )


def _named(runs: Sequence[Run], against: Comparison | None) -> list[Run]:
    if against is None:
        return list(runs)
    candidates = dict.fromkeys(row.candidate for row in against.differences)
    names = [against.baseline, *candidates]
    if len(names) != len(runs):
        raise UsageError(f"expected the {len(names)} runs of the comparison, got {len(runs)}")
    return [run.named(name) for run, name in zip(runs, names, strict=True)]


def _measures(found: Results | Comparison | Gate, against: Comparison | None) -> list[str]:
    if against is not None:
        return list(dict.fromkeys(row.measure for row in against.differences))
    if isinstance(found, Results):
        return list(dict.fromkeys(row.measure for row in found.results))
    assert isinstance(found, Gate)
    named = dict.fromkeys(check.measure for check in found.checks if check.measure)
    return list(named) or [DEFAULTS[0]]


def _content(
    plan: EvaluationPlan,
    results: Results,
    against: Comparison | None,
    gate: Gate | None,
    documents: Documents | None,
) -> Content:
    measure, scored = plan.measures[0], plan.scored
    limits = [n for n in (measure.depth, plan.rules.depth, _DEEPEST) if n is not None]
    k = min(limits) if len(limits) > 1 else 10
    rel = float(measure.settings.get("rel") or plan.rules.rel)
    ordered = by_interest(results, against, measure)
    side_by_side = min(MOST_QUERIES, max(_FEWEST, MOST_ROWS // k))
    queries = shown(
        plan, scored, results, against, ordered[:MOST_LISTED], side_by_side, k, rel, documents
    )
    listed = {
        placed.doc_id
        for query in queries
        for ranking in query.rankings
        for placed in (*ranking.top, *ranking.below)
    }
    zero_weight = plan.rules.zero_weight
    drawn = [row for row in results.per_query if row.query_id not in zero_weight]
    return Content(
        measure=str(measure),
        k=k,
        rel=rel,
        runs=[run.name for run in plan.runs],
        results=replace(results, per_query=drawn),
        comparison=against,
        gate=gate,
        views=views(results, against),
        queries=queries,
        queries_left=len(ordered) - len(queries),
        titles=_titles(documents, listed),
        grades=plan.qrels.scale,
    )


def _titles(documents: Documents | None, listed: set[str]) -> dict[str, str]:
    """Titles of documents; the beginning of the text if there is no title, or it is the id."""
    if documents is None or not listed:
        return {}
    frame = documents.frame
    columns = [name for name in ("title", "text") if name in frame.columns]
    listed_documents = frame.filter(pl.col("doc_id").is_in(sorted(listed)))
    out = {}
    for row in listed_documents.select("doc_id", *columns).iter_rows(named=True):
        for name in columns:
            title = " ".join((row[name] or "").split())
            if title and title != row["doc_id"]:
                out[row["doc_id"]] = title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"
                break
    return out


def origins_of(gate: Gate) -> tuple[list[Origin], list[tuple[str, str]]]:
    """What a gate of this process was computed from, and how, as its report shows them."""
    plan: EvaluationPlan = gate.plan
    runs = plan.given[::-1]  # the baseline first
    rules = _rules(asdict(plan.conditions), None, gate)
    return list(_sources(plan.qrels, plan.about, runs, gate)), list(rules)


def _sources(
    qrels: Qrels,
    queries: Queries | None,
    runs: Sequence[Run],
    gate: Gate | None,
) -> Iterator[Origin]:
    by_role = gate.hashes if gate else {}
    tables: list[tuple[str, str, Qrels | Queries | Run]] = [("judgments", "qrels", qrels)]
    tables += [] if queries is None else [("queries", "queries", queries)]
    roles = ["baseline", "candidate"] if len(runs) == 2 else []
    roles = ["candidate"] if gate and len(runs) == 1 else roles
    for name, key, table in tables:
        size = f"{len(table):,} {'judgments' if key == 'qrels' else 'queries'}"
        sha = by_role.get(key) or fingerprint(table)
        yield Origin(name, table.source, size, sha)
    for place, run in enumerate(runs):
        sha = by_role.get(roles[place]) if roles else None
        size = f"{len(run):,} documents, {len(run.query_ids):,} queries"
        yield Origin(run.name, run.source, size, sha or fingerprint(run))
    if gate is not None:
        yield Origin("policy", gate.policy, f"{len(gate.checks)} checks", by_role.get("policy"))


def _rules(
    rules: Mapping[str, Any], against: Comparison | None, gate: Gate | None
) -> Iterator[tuple[str, str]]:
    if against is not None:
        settings = against.settings
        yield "p-values", f"{settings.test}, {settings.resamples:,} resamples, seed {settings.seed}"
        yield "corrected", "Holm over all measures and candidates; Benjamini and Hochberg in slices"
        yield (
            "intervals",
            {"t": "Student’s t, 95 %", "bca": "BCa bootstrap, 95 %"}[settings.interval],
        )
        if settings.margin is not None:
            yield "margin", f"{settings.margin:g}: smaller differences do not matter"
    if gate is not None:
        yield "policy", gate.policy
    yield "relevant", f"grade {rules['rel'] or 1:g} and more, unless a measure says otherwise"
    yield "order", "score descending, then document id descending by bytes"
    topics = "every query of the judgments" if rules["complete"] else "queries with a relevant "
    yield "queries", topics if rules["complete"] else f"{topics}document; unanswered ones score 0"
    labels = {"depth": "cut at", "collapse": "folded by", "compat": "as", "scale": "grades"}
    for name, words in labels.items():
        if rules[name] is not None:
            yield words, str(rules[name])
    if rules["judged_only"]:
        yield "unjudged", "dropped from every ranking"
    if rules["fully_judged"]:
        yield "unjudged", "declared not relevant"
