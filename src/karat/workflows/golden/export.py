"""Export of an edition, the current golden set, or stored runs for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats.exchange.catalogue import EXCHANGES, refuse_there, write_exchange
from karat.formats.exchange.import_ import counted, held
from karat.formats.tables import sidecar
from karat.formats.tables.catalogue import FORMATS
from karat.formats.tables.writing import write_run
from karat.store.sql import documents, imports, judgments, queries
from karat.tables import Run
from karat.tables.about import facts
from karat.tables.golden.golden_sets import Exchange
from karat.tables.schema import Scale
from karat.workflows.golden.editions import NOW, standing_in, weighed
from karat.workflows.workspace.known_queries import following_all
from karat.workflows.workspace.stored_runs import find_stored, read_stored, stored_run_names
from karat.workflows.workspace.workspace import Workspace

_SOURCES = {"import": "imported", "llm": "a model's", "clicks": "of clicks"}
_KINDS = {"adjudication": "adjudication", "gold": "gold judgment", "repeat": "repeated judgment"}
_BY_ENDING = {
    ".csv": "csv",
    ".tsv": "csv",
    ".qrels": "trec",
    ".trec": "trec",
    ".json": "golden",
    "": "beir",
}
_BEIR, _JSON = "--format beir, which makes a folder", "--format quepid-book, for example"
RUN = "run"  # format of an export of one run only


def named_format(path: str | Path, runs: Sequence[str] = ()) -> str:
    """The format by the extension of a name; ``beir`` without one."""
    if runs:
        return RUN
    name = Path(path)
    if str(path) == "-":
        raise UsageError("standard output needs an explicit format", fix="--format trec")
    if name.is_dir():
        return "beir"
    ending = name.suffix.lower()
    if ending in (".gz", ".zst", ".bz2"):
        ending = Path(name.stem).suffix.lower() or ending
    if ending not in _BY_ENDING:
        raise UsageError(
            f"cannot tell the export format from the name {name.name}",
            fix=_JSON if ending in (".jsonl", ".ndjson") else f"--format trec, or {_BEIR}",
        )
    return _BY_ENDING[ending]


def export_golden_set(
    opened: Workspace,
    path: str | Path,
    format: str,  # noqa: A002 - as it is typed
    *,
    edition: str | None = None,
    each_rater: bool = False,
    runs: Sequence[str] = (),
    force: bool = False,
) -> Exchange:
    """Export an edition, the current golden set, or stored runs for another tool."""
    if each_rater and edition is not None:
        raise UsageError(
            "an edition does not record who gave its grades",
            fix="leave out the edition, or export one grade for each pair",
        )
    _check_runs(opened, format, runs)
    if format == RUN and (each_rater or edition is not None):
        raise UsageError(
            "the format run holds no grades",
            fix="choose a format that holds grades and runs",
        )
    _check_place(Path(path), format, force=force)
    with opened.store.read() as connection:
        content = standing_in(connection, opened, edition or NOW)
        document_rows = documents.frame(connection, opened.golden.id).drop("sha256")
        current = judgments.current(connection, opened.golden.id).of(content.queries["query_id"])
        rows = find_stored(connection, opened, runs) if runs else []
        query_ids = set(queries.frame(connection, opened.golden.id)["query_id"])
        aliases = imports.aliases(connection, opened.golden.id)
    ranked, notes = following_all(read_stored(opened, rows), query_ids, aliases, None)
    if format == RUN:
        written = _run_alone(ranked[0], path)
        written.assumed.extend(notes)
        return written
    if each_rater:
        facts = current.frame.filter(_BY_PEOPLE).select(
            "query_id", "doc_id", "grade", "rater", "reason"
        )
    else:
        null = pl.lit(None, dtype=pl.String)
        facts = content.grades.select(
            "query_id", "doc_id", "grade", null.alias("rater"), null.alias("reason")
        )
    rankings = {run.name: run.frame().select("query_id", "doc_id", "score") for run in ranked}
    shown = pl.concat([frame["doc_id"] for frame in (facts, *rankings.values())])
    listed = document_rows.filter(pl.col("doc_id").is_in(shown.unique().implode()))
    query_rows, unknown = weighed(content.queries)
    if "no_answer" in query_rows.columns and not query_rows["no_answer"].any():
        query_rows = query_rows.drop("no_answer")  # all False
    written = write_exchange(
        Exchange(
            format="karat",
            queries=query_rows,
            documents=listed if listed.height else None,
            judgments=facts,
            runs=rankings,
            scale=_scale(content.about, opened.golden.scale),
        ),
        path,
        format,
        replace=force,
    )
    written.assumed.extend(notes)
    written.lost.extend(lost for run in ranked for lost in _without_answer(run))
    if each_rater:
        written.lost.extend(_beside_ratings(current.frame))
    elif content.name == NOW and EXCHANGES[format].holds.judgments:
        written.lost.extend(_made_one(current.frame, content.grades, format))
    if unknown:
        some = counted(unknown, "query")
        written.assumed.append(
            f"weight 0 for {some} that no log counted: they count in slices of their own kind only"
        )
    return written


def _scale(about: Mapping[str, Any], now: Scale) -> Scale:
    """The scale of an edition; that of the golden set if it has none."""
    low, high = about.get("scale") or now
    return float(low), float(high)


_BY_PEOPLE = (pl.col("kind") == "rating") & (pl.col("source") == "human")


def _check_place(path: Path, name: str, *, force: bool) -> None:
    """Refuse to overwrite, or to write into a folder that does not exist."""
    if str(path) == "-":
        return
    if not path.parent.is_dir():
        raise InputError(
            f"the folder {path.parent} does not exist",
            file=str(path),
            fix=f"mkdir -p {path.parent}, or write elsewhere",
        )
    if name == "beir" and path.exists():
        if not path.is_dir() or any(path.iterdir()):
            refuse_there(path, replace=force)
    elif path.is_dir():
        raise InputError("expected a file, got a folder", file=str(path), fix="name a file in it")
    elif path.is_file() and path.stat().st_size and not force:  # not a pipe or a device
        raise InputError("the file exists", file=str(path), fix="--force overwrites it")


def _made_one(judged: pl.DataFrame, grades: pl.DataFrame, name: str) -> Iterator[str]:
    """What is lost when the judgments of a pair are aggregated."""
    people = judged.filter(source="human")
    reasons = judged["reason"].drop_nulls().len()
    holds = EXCHANGES[name].holds
    if people.height:
        who = f"who judged: {counted(people['rater'].n_unique(), 'rater')}"
        yield f"{who}; an export of each rater's judgments keeps them" if holds.raters else who
    if reasons:
        lost = f"the reasons of {counted(reasons, 'judgment')}"
        yield f"{lost}; an export of each rater's judgments has them" if holds.reasons else lost
    pair = ["query_id", "doc_id"]
    unjudgeable = judged.filter(state="cannot_judge").join(grades, on=pair, how="anti")
    if unjudgeable.height:
        count = unjudgeable.select(pair).n_unique()
        yield f"that {counted(count, 'document')} could not be judged"


def _beside_ratings(judged: pl.DataFrame) -> Iterator[str]:
    """What is lost when every rater's rating is written: all that is not a person's rating."""
    for kind, count in judged.group_by("kind").len().sort("kind").iter_rows():
        if kind in _KINDS:
            yield counted(count, _KINDS[kind])
    others = judged.filter(pl.col("kind") == "rating", pl.col("source") != "human")
    for source, count in others.group_by("source").len().sort("source").iter_rows():
        yield f"{counted(count, 'judgment')} without a rater: {_SOURCES.get(source, source)}"


def _check_runs(opened: Workspace, name: str, runs: Sequence[str]) -> None:
    """Refuse runs for a format that has none, and a format of runs only without any."""
    holds = EXCHANGES[name].holds if name in EXCHANGES else None
    if runs and holds is not None and not holds.runs:
        able = ", ".join(peer.name for peer in EXCHANGES.values() if peer.write and peer.holds.runs)
        raise UsageError(
            f"the format {name} holds no runs",
            fix=f"leave out the run, or choose a format with runs: {RUN}, {able}",
        )
    alone = name == RUN or (holds is not None and holds.runs and not holds.judgments)
    if alone and not runs:
        stored = ", ".join(stored_run_names(opened)) or "none yet"
        raise UsageError(
            f"the format {name} needs runs, and none is named",
            fix=f"name some; the workspace has {stored}",
        )
    if name == RUN and len(runs) > 1:
        raise UsageError("one file holds one run", fix="export them one by one")


def _run_alone(run: Run, path: str | Path) -> Exchange:
    """Write a run in one of karat's own formats, with a sidecar file if needed."""
    write_run(run, path)
    written = Exchange(RUN, runs={run.name: run.frame().select("query_id", "doc_id", "score")})
    written.kept.extend(held(written))
    if Path(path).is_file():
        place = sidecar.place_of(path)
        if place.is_file():
            written.kept.append(f"what {Path(path).name} cannot hold: {place.name}")
        return written
    endings = {".trec"} if str(path) == "-" else set(Path(path).suffixes)
    keeps = next((f.keeps for f in FORMATS.values() if endings & set(f.extensions)), frozenset())
    if "answers" not in keeps:
        written.lost.extend(_without_answer(run))
    if "about" not in keeps and (known := facts(run.about)):
        written.lost.append(f"what is recorded about run {run.name!r}: {', '.join(known)}")
    return written


def _without_answer(run: Run) -> Iterator[str]:
    """What is lost in formats that hold documents only."""
    bare = run.answers.filter(pl.col("state") != "ok").height
    if bare:
        yield f"that {counted(bare, 'query')} got no answer, of run {run.name!r}"
