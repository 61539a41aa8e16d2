"""Baselines: values of a run, saved, restored, and checked for what changed since."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat import formats
from karat.errors import InputError, UsageError
from karat.formats.own.baseline import holds_baseline, read_baseline, write_baseline
from karat.measures.scores import Rules, Scores
from karat.release.policy import Policy
from karat.stats.quantiles import latency_of, times_of
from karat.tables import Documents, Run
from karat.tables.release.baseline import SavedBaseline
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluation_plan import Conditions, EvaluationPlan, settle
from karat.workflows.workspace.fingerprints import fingerprint

if TYPE_CHECKING:
    from karat.workflows.workspace.workspace import Workspace

FILE = "baseline.json"


def save_stored_baseline(opened: Workspace, run: int, *, person: str, now: int) -> Path:
    """Save the values of a stored run as ``baseline.json`` of the workspace; audited."""
    from karat.store.sql import audit, comparisons  # which a gate on files does without
    from karat.workflows.workspace.stored_inputs import judged, read_stored

    with opened.store.read() as connection:
        found = comparisons.find_run(connection, run)
    if found is None:
        raise UsageError(f"there is no run {run}")
    judgments = judged(opened)
    path = opened.workspace.root / FILE
    save_baseline(path, judgments.qrels, read_stored(opened, found[1]), queries=judgments.queries)
    with opened.store.begin() as connection:
        about = {"sha256": found[1].sha256, "file": FILE}
        audit.note(connection, person, "save baseline", found[1].name, now, about)
    return path


def save_baseline(
    path: str | Path,
    qrels: Any,
    run: Any,
    measures: str | Iterable[str] | None = None,
    *,
    queries: Any = None,
    documents: Any = None,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    collapse: str | None = None,
    scale: Any = None,
) -> SavedBaseline:
    """Save the values of a run, query by query, with the hashes of what they come from.

    Args:
        path: The file: ``.json``, or compressed (``.json.gz``).
        qrels: As ``evaluate`` takes them; the following too.
        run: The run.
        measures: The measures that the policy uses.
        queries: As in ``gate``.
        documents: As in ``gate``.
        rel: As in ``gate``.
        complete: As in ``gate``.
        depth: As in ``gate``.
        collapse: As in ``gate``.
        scale: As in ``gate``.

    Raises:
        UsageError: an unknown measure, or a file name without ``.json``.
        InputError: run and judgments do not belong together, queries got no answer, or the file
            cannot be written.

    Returns:
        The saved baseline.
    """
    if ".json" not in Path(path).suffixes:
        raise UsageError(f"a baseline is a .json file, got {Path(path).name}", fix="baseline.json")
    chunks = None if collapse is None else inputs.documents(documents)
    stated = Conditions(rel, complete, depth, collapse=collapse, scale=scale)
    given = documents if chunks is None else chunks
    asked = settle(qrels, [run], measures, stated, queries=queries, documents=given)
    [scores] = asked.scored
    _check_answers(scores)
    table = np.stack([scores.values[measure] for measure in asked.measures], axis=1)
    latency = latency_of(scores.run)
    no_values: tuple[float | None, ...] = (None,) * len(asked.measures)
    no_answer_states = states(scores.run, asked.rules.no_answer)
    saved = SavedBaseline(
        karat=metadata.version("karat"),
        run=scores.run.name,
        measures=tuple(map(str, asked.measures)),
        rel=asked.rules.rel,
        complete=complete,
        depth=asked.rules.depth,
        collapse=collapse,
        hashes={
            "qrels": fingerprint(asked.qrels),
            "queries": fingerprint(asked.about),
            "chunks": folded(chunks, collapse),
            "run": fingerprint(scores.run),
        },
        answered=no_answer_states
        | dict(zip(scores.evidence.query_ids, scores.answered.tolist(), strict=True)),
        values=dict.fromkeys(no_answer_states, no_values)
        | {
            query: tuple(None if np.isnan(value) else float(value) for value in row)
            for query, row in zip(scores.evidence.query_ids, table, strict=True)
        },
        p95_us=None if latency is None else latency.p95_us,
        times_us=times_of(scores.run),
    )
    write_baseline(saved, path)
    return saved


def _check_answers(scores: Scores) -> None:
    name, source = scores.run.name, scores.run.source
    fix = "save a run in which every query was answered"
    failed = int((scores.topics & (scores.answered == "failed")).sum())
    if failed:
        raise InputError(
            f"{failed:,} {'query' if failed == 1 else 'queries'} of {name} got no answer: a "
            "baseline without them could not be compared",
            file=source,
            fix=fix,
        )
    if not scores.evidence.returned[scores.topics & scores.overall].any():
        raise InputError(
            f"{name} returned nothing for any query that counts: against such a baseline, every "
            "candidate would pass",
            file=source,
            fix=fix,
        )


def folded(chunks: Documents | None, collapse: str | None) -> str | None:
    """SHA-256 of the mapping from chunks to documents; None if chunks are not collapsed."""
    if chunks is None or collapse is None:
        return None
    pairs = chunks.parents(collapse).sort("doc_id", "parent")
    return hashlib.sha256(pairs.write_csv().encode()).hexdigest()


def states(run: Run, query_ids: Iterable[str]) -> dict[str, str]:
    """The state of each query in a run, judged or not: ok | empty | missing | failed."""
    by_query = dict(run.answers.select("query_id", "state").iter_rows())
    return {query: by_query.get(query, "missing") for query in sorted(query_ids)}


def saved_baseline_from(baseline: Any) -> SavedBaseline | None:
    """A saved baseline, or one read from a path; None for anything else, such as a run."""
    if isinstance(baseline, SavedBaseline):
        return baseline
    if isinstance(baseline, str | Path) and holds_baseline(baseline):
        return read_baseline(baseline)
    return None


def restored(saved: SavedBaseline, now: Scores, asked: EvaluationPlan, *, stale: bool) -> Scores:
    """The scores of a saved baseline, for the candidate's queries."""
    lacking = [str(measure) for measure in asked.measures if str(measure) not in saved.measures]
    if lacking and not stale:
        raise InputError(
            f"the baseline has no {lacking[0]}; it has {', '.join(saved.measures)}",
            file=saved.source,
            fix=f"save it again with {' '.join(f'-m {name}' for name in lacking)}",
        )
    query_ids = now.evidence.query_ids
    no_values: tuple[float | None, ...] = (None,) * len(saved.measures)
    table = np.array([saved.values.get(query, no_values) for query in query_ids], np.float64)
    column = {name: place for place, name in enumerate(saved.measures)}
    return replace(
        now,
        run=now.run.named(saved.run if saved.run != now.run.name else f"{saved.run} (saved)"),
        answered=np.array([saved.answered.get(query, "missing") for query in query_ids]),
        values={
            m: table[:, column[str(m)]] if str(m) in column else np.full(len(query_ids), np.nan)
            for m in asked.measures
        },
    )


def changed(
    saved: SavedBaseline, hashes: Mapping[str, str | None], rules: Rules, collapse: str | None
) -> str:
    """What changed since a baseline was saved, in a sentence; empty if nothing did."""
    changes = [
        part
        for part, key in (
            ("the judgments", "qrels"),
            ("the queries", "queries"),
            ("the mapping of chunks to documents", "chunks"),
        )
        if saved.hashes[key] != hashes[key]
        and (key != "chunks" or saved.collapse == collapse)  # reported once, as collapse
    ]
    karat = metadata.version("karat")
    if _release(saved.karat) != _release(karat):
        changes.append(f"karat ({saved.karat} → {karat})")
    for name, old, new in (
        ("rel", saved.rel, rules.rel),
        ("complete", saved.complete, rules.complete),
        ("depth", saved.depth, rules.depth),
        ("collapse", saved.collapse, collapse),
    ):
        if old != new:
            changes.append(f"{name} ({_shown(old)} → {_shown(new)})")
    return f"{' and '.join(changes)} changed since {saved.source} was saved" if changes else ""


def renewal(
    saved: SavedBaseline, policy: Policy, asked: EvaluationPlan, typed: Mapping[str, Any]
) -> str:
    """The command that saves a baseline again, with all known names."""
    words = ["karat", "gate", "--save-baseline", saved.source]
    if Path(policy.source).is_file():
        words += ["--policy", policy.source]
    else:
        words += [word for measure in policy.measures for word in ("-m", str(measure))]
    qrels, options = _judgments(asked, typed)
    rules = asked.rules
    words += [word for name, value in options for word in (f"--{name}", str(value))]
    words += ["--rel", f"{rules.rel:g}"] * (rules.rel != 1)
    words += ["--complete"] * rules.complete
    words += [] if rules.depth is None else ["--depth", str(rules.depth)]
    return f"{shlex.join([*words, qrels])} RUN"


def _release(version: str) -> str:
    """The release part of a version: ``0.1.0`` of ``0.1.0.dev3``."""
    match = re.match(r"\d+(\.\d+){0,2}", version)
    return match[0] if match else version


def _judgments(
    asked: EvaluationPlan, typed: Mapping[str, Any]
) -> tuple[str, list[tuple[str, Any]]]:
    """The judgments as an argument, and the options with files and names."""
    options = {
        name: typed[name]
        for name in ("queries", "documents", "collapse", "scale")
        if isinstance(typed[name], str | Path)
    }
    if isinstance(typed["qrels"], str | Path):
        qrels = str(typed["qrels"])
    elif "queries" in options and formats.holds_queries(options["queries"]):
        qrels = str(options["queries"])  # a folder or golden set, named once
    else:
        qrels = asked.qrels.source if Path(asked.qrels.source).is_file() else "QRELS"
    return qrels, [(name, value) for name, value in options.items() if str(value) != qrels]


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
