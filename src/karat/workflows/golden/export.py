"""Exporting: an edition, the golden set as it stands, or kept runs, out to other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import Advice, InputError, UsageError
from karat.formats.exchange.catalogue import EXCHANGES, refuse_there, write_exchange
from karat.formats.exchange.import_ import counted, held
from karat.formats.tables import sidecar
from karat.formats.tables.catalogue import FORMATS
from karat.formats.tables.writing import write_run
from karat.store.sql import documents, imports, judgments, queries
from karat.tables import Run
from karat.tables.about import facts
from karat.tables.golden.exchange import Exchange
from karat.tables.scale import Scale
from karat.workflows.golden.editions import NOW, standing_in, weighed
from karat.workflows.workspace.known_queries import following
from karat.workflows.workspace.stored_runs import find_kept, read_kept, stored_run_names
from karat.workflows.workspace.workspace import Workspace

_SOURCES = {"import": "imported, with nobody named", "llm": "a model's", "clicks": "of clicks"}
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
RUN = "run"
"""The format of an export that is one run alone."""


def named_format(path: str | Path, runs: Sequence[str] = ()) -> str:
    """The format that the name of an export asks for: by its ending, and beir without one.

    Args:
        path: The file or folder.
        runs: Names of kept runs, of which one alone is a run.

    Raises:
        UsageError: the ending asks for none; with what to type.
    """
    if runs:
        return RUN
    name = Path(path)
    if str(path) == "-":
        raise UsageError("standard output has no name that asks for a format", fix="--format trec")
    if name.is_dir():
        return "beir"
    ending = name.suffix.lower()
    if ending in (".gz", ".zst", ".bz2"):
        ending = Path(name.stem).suffix.lower() or ending
    if ending not in _BY_ENDING:
        raise UsageError(
            f"the name {name.name} does not say in which format to export",
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
    """Export an edition, or the golden set as it stands, for another tool; or kept runs.

    Args:
        opened: The workspace.
        path: The file, a folder for ``beir``; ``-`` is standard output.
        format: A name of ``karat.formats.exchange.catalogue.EXCHANGES``; ``run`` for one run
            alone, in the format that the file's name asks for.
        edition: Its name; the golden set as it stands if None.
        each_rater: Every rater's judgment, rather than the grade the rule makes of them.
        runs: Names of kept runs, for a format that holds runs.
        force: Replace the file or the BEIR folder if it is there.

    Returns:
        What was written, with what was kept, assumed and lost.

    Raises:
        InputError: the format cannot hold it, it cannot be written, or something is there.
        UsageError: there is no such format, edition or run, the format wants runs or holds none,
            or every rater's judgment is asked of an edition.
    """
    if each_rater and edition is not None:
        raise UsageError(
            "an edition holds grades, not who gave them",
            fix=Advice(
                "leave out --edition, or --each-rater",
                page="choose the golden set as it stands, or the grade of all",
            ),
        )
    _check_runs(opened, format, runs)
    if format == RUN and (each_rater or edition is not None):
        raise UsageError(
            "a run alone holds no grades",
            fix=Advice(
                "leave out --edition and --each-rater, or name a format that holds both",
                page="choose a format that holds grades and runs",
            ),
        )
    _check_place(Path(path), format, force=force)
    with opened.store.read() as connection:
        content = standing_in(connection, opened, edition or NOW)
        known = documents.frame(connection, opened.golden.id).drop("sha256")
        said = judgments.current(connection, opened.golden.id).of(content.queries["query_id"])
        rows = find_kept(connection, opened, runs) if runs else []
        there = set(queries.frame(connection, opened.golden.id)["query_id"])
        aliases = imports.aliases(connection, opened.golden.id)
    ranked, notes = [], []
    for run in read_kept(opened, rows):
        system, known_as = following(run, there, aliases)
        ranked.append(system)
        notes += known_as
    if format == RUN:
        told = _run_alone(ranked[0], path)
        told.assumed.extend(notes)
        return told
    if each_rater:
        facts = said.frame.filter(_BY_PEOPLE).select(
            "query_id", "doc_id", "grade", "rater", "reason"
        )
    else:
        nobody = pl.lit(None, dtype=pl.String)
        facts = content.grades.select(
            "query_id", "doc_id", "grade", nobody.alias("rater"), nobody.alias("reason")
        )
    rankings = {run.name: run.frame().select("query_id", "doc_id", "score") for run in ranked}
    shown = pl.concat([frame["doc_id"] for frame in (facts, *rankings.values())])
    named = known.filter(pl.col("doc_id").is_in(shown.unique().implode()))
    asked, unknown = weighed(content.queries)
    if "no_answer" in asked.columns and not asked["no_answer"].any():
        asked = asked.drop("no_answer")  # it says nothing
    told = write_exchange(
        Exchange(
            format="karat",
            queries=asked,
            documents=named if named.height else None,
            judgments=facts,
            runs=rankings,
            scale=_scale(content.about, opened.golden.scale),
        ),
        path,
        format,
        replace=force,
    )
    told.assumed.extend(notes)
    told.lost.extend(lost for run in ranked for lost in _without_answer(run))
    if each_rater:
        told.lost.extend(_beside_ratings(said.frame))
    elif content.name == NOW and EXCHANGES[format].holds.judgments:
        told.lost.extend(_made_one(said.frame, content.grades, format))
    if unknown:
        some = counted(unknown, "query")
        told.assumed.append(
            f"weight 0 of {some} that no log counted: they count in slices of their own kind only"
        )
    return told


def _scale(about: Mapping[str, Any], now: Scale) -> Scale:
    """The scale of an edition, which it keeps; of the golden set if it does not say."""
    low, high = about.get("scale") or now
    return float(low), float(high)


_BY_PEOPLE = (pl.col("kind") == "rating") & (pl.col("source") == "human")


def _check_place(path: Path, name: str, *, force: bool) -> None:
    """Refuse to write where something is, or where no folder is."""
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
        raise InputError(
            "this is a folder, and a file is wanted", file=str(path), fix="name a file in it"
        )
    elif path.is_file() and path.stat().st_size and not force:  # a pipe or a device is no file
        raise InputError("there is a file already", file=str(path), fix="--force replaces it")


def _made_one(said: pl.DataFrame, grades: pl.DataFrame, name: str) -> Iterator[str]:
    """What is lost where the grades of a pair are made one."""
    people = said.filter(source="human")
    why = said["reason"].drop_nulls().len()
    holds = EXCHANGES[name].holds
    if people.height:
        who = f"who judged: {counted(people['rater'].n_unique(), 'rater')}"
        apart = f"{who}; every rater's judgment keeps them apart"
        yield Advice(f"{who}; --each-rater keeps them apart", page=apart) if holds.raters else who
    if why:
        lost = f"the reasons of {counted(why, 'judgment')}"
        there = f"{lost}; every rater's judgment has them"
        yield Advice(f"{lost}; --each-rater writes them", page=there) if holds.reasons else lost
    pair = ["query_id", "doc_id"]
    none = said.filter(state="cannot_judge").join(grades, on=pair, how="anti")
    if none.height:
        count = none.select(pair).n_unique()
        yield f"that {counted(count, 'document')} could not be judged"


def _beside_ratings(said: pl.DataFrame) -> Iterator[str]:
    """What is lost where every rater's rating is written: all that is no rating of a person."""
    for kind, count in said.group_by("kind").len().sort("kind").iter_rows():
        if kind in _KINDS:
            yield counted(count, _KINDS[kind])
    left = said.filter(pl.col("kind") == "rating", pl.col("source") != "human")
    for source, count in left.group_by("source").len().sort("source").iter_rows():
        yield f"{counted(count, 'judgment')} of no rater: {_SOURCES.get(source, source)}"


def _check_runs(opened: Workspace, name: str, runs: Sequence[str]) -> None:
    """Refuse runs where a format holds none, and none where it holds nothing else."""
    holds = EXCHANGES[name].holds if name in EXCHANGES else None
    if runs and holds is not None and not holds.runs:
        can = ", ".join(peer.name for peer in EXCHANGES.values() if peer.write and peer.holds.runs)
        raise UsageError(
            f"{name} holds no runs",
            fix=Advice(
                f"leave out --run, or --format with {RUN}, {can}",
                page=f"choose no run, or one of the formats {can}",
            ),
        )
    alone = name == RUN or (holds is not None and holds.runs and not holds.judgments)
    if alone and not runs:
        there = ", ".join(stored_run_names(opened)) or "none yet"
        raise UsageError(
            f"{name} holds runs, and none is named",
            fix=Advice(
                f"--run NAME; the workspace has {there}",
                page=f"choose some; the workspace has {there}",
            ),
        )
    if name == RUN and len(runs) > 1:
        raise UsageError("several runs do not fit into one file", fix="export one after the other")


def _run_alone(run: Run, path: str | Path) -> Exchange:
    """A run in one of karat's own formats, with a sidecar where a file needs one."""
    write_run(run, path)
    told = Exchange(RUN, runs={run.name: run.frame().select("query_id", "doc_id", "score")})
    told.kept.extend(held(told))
    if Path(path).is_file():
        place = sidecar.place_of(path)
        if place.is_file():
            told.kept.append(f"what {Path(path).name} has no place for: {place.name}")
        return told
    endings = {".trec"} if str(path) == "-" else set(Path(path).suffixes)
    keeps = next((f.keeps for f in FORMATS.values() if endings & set(f.extensions)), frozenset())
    if "answers" not in keeps:
        told.lost.extend(_without_answer(run))
    if "about" not in keeps and (known := facts(run.about)):
        told.lost.append(f"what is recorded about run {run.name!r}: {', '.join(known)}")
    return told


def _without_answer(run: Run) -> Iterator[str]:
    """What formats that hold documents alone cannot say of a run."""
    bare = run.answers.filter(pl.col("state") != "ok").height
    if bare:
        yield f"that {counted(bare, 'query')} got no answer, of run {run.name!r}"
