"""The stages of a stored run: its trace, or the stored runs whose documents make it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.diagnosis.waterfall import SERVED
from karat.tables.workspace import RunRow
from karat.workflows.workspace.artifacts import Memory
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.stored_runs import file_of, stored_rows, trace_of
from karat.workflows.workspace.workspace import Workspace

Pairs = NDArray[np.uint64]  # hashes of query and document

_QUERIES, _DEEP = 25, 1_000  # looked at in each run: queries, and ranks of each
_NEAREST = 30  # runs that are looked at, the nearest in the order of storing
_NEARLY = 0.99  # share of a run's documents that its stages have
_FEW = 0.05  # share that only one of several stages has, at least
_DEEPER = 20  # documents of a query from which a run shows more than what it serves
_PAIRS, _MADE, _DEPTH = Memory(256), Memory(1_024), Memory(1_024)


@dataclass(frozen=True)
class Choice:
    """A stored run that may be a stage of a pipeline."""

    stage: str  # its name as a stage; different for every run
    row: RunRow


def choices(opened: Workspace) -> list[Choice]:
    """The stored runs as stages, oldest first; an older run of the same name by its number."""
    found, taken = [], {SERVED}
    for row in reversed(stored_rows(opened)):
        found.append(Choice(str(row.id) if row.name in taken else row.name, row))
        taken.add(found[-1].stage)
    return found[::-1]


def chosen(opened: Workspace, names: Sequence[str]) -> list[Choice]:
    """The stages of these names, in this order."""
    rows = find_runs(opened, names)
    return [Choice(name, row) for name, row in zip(names, rows, strict=True)]


def is_traced(opened: Workspace, row: RunRow) -> bool:
    """Whether a trace of the run is stored."""
    return trace_of(file_of(opened, row)).is_file()


def stages_of(
    opened: Workspace, row: RunRow, every: Sequence[Choice] | None = None
) -> list[str] | None:
    """What to diagnose a run by: no names where its trace is stored, None if nothing is known.

    The run itself if it is deeper than what it serves, and nothing else is known. ``every`` is
    ``choices``, if these are known already.
    """
    if is_traced(opened, row):
        return []
    every = choices(opened) if every is None else every
    return proposed(opened, row, every) or _alone(opened, row, every)


def _alone(opened: Workspace, row: RunRow, every: Sequence[Choice]) -> list[str] | None:
    def depth() -> int:
        deepest = _column(opened, row, pl.col("rank").max())
        return 0 if deepest is None else int(deepest.item() or 0)

    names = [each.stage for each in every if each.row.id == row.id]
    return names if names and _DEPTH.get(row.sha256, depth) >= _DEEPER else None


def with_stages(opened: Workspace) -> Iterator[tuple[RunRow, list[str]]]:
    """The runs whose stages are known, newest first, then those that are their only stage."""
    every, alone = choices(opened), []
    for each in reversed(every):
        stages = stages_of(opened, each.row, every)
        if stages == [each.stage]:
            alone.append((each.row, stages))
        elif stages is not None:
            yield each.row, stages
    yield from alone


def proposed(opened: Workspace, row: RunRow, every: Sequence[Choice] | None = None) -> list[str]:
    """The stages whose documents make a run, and the run itself as the last; none if none do.

    These are the retrievers of a fusion, else the run that a reranker was given, as far as the
    documents of a sample of queries tell.
    """
    every = choices(opened) if every is None else every
    own = next((each for each in every if each.row.id == row.id), None)
    others = [each for each in every if each is not own]
    others = sorted(others, key=lambda each: abs(each.row.id - row.id))[:_NEAREST]
    if own is None or not others:
        return []

    def find() -> tuple[int, ...]:
        asked = _sample(opened, own.row)
        before = [each.row.id < row.id for each in others]
        pairs = [_pairs(opened, each.row, asked) for each in (own, *others)]
        return _made_of(pairs[0], pairs[1:], before)

    hashes = tuple(each.row.sha256 for each in (own, *others))
    at = _MADE.get(hashes, find)
    stages = sorted((others[each] for each in at), key=lambda each: each.row.id)
    return [each.stage for each in (*stages, own)] if stages else []


def _sample(opened: Workspace, row: RunRow) -> tuple[str, ...]:
    """Some queries of a run; none if its file is gone or damaged."""
    found = _column(opened, row, pl.col("query_id").unique().sort())
    if found is None:
        return ()
    return tuple(found.gather_every(max(1, len(found) // _QUERIES)).head(_QUERIES))


def _pairs(opened: Workspace, row: RunRow, asked: tuple[str, ...]) -> Pairs:
    def read() -> Pairs:
        wanted = pl.col("query_id").is_in(asked) & (pl.col("rank") <= _DEEP)  # null: no answer
        hashed = _column(opened, row, pl.col("query_id").hash(1) ^ pl.col("doc_id").hash(2), wanted)
        return np.empty(0, np.uint64) if hashed is None else hashed.to_numpy()  # not a stage

    return _PAIRS.get((row.sha256, asked), read)


def _column(opened: Workspace, row: RunRow, what: pl.Expr, *where: pl.Expr) -> pl.Series | None:
    """Something of some rows of a run's file; None if that is gone or damaged."""
    try:
        found = pl.scan_parquet(file_of(opened, row)).filter(*where).select(what).collect()
    except (OSError, pl.exceptions.PolarsError):
        return None
    return found.to_series()


def _made_of(own: Pairs, others: Sequence[Pairs], before: Sequence[bool]) -> tuple[int, ...]:
    """Indices of the runs whose documents make those of a run; none if none do."""
    if not len(own):
        return ()
    held = {at: np.isin(own, each) for at, each in enumerate(others)}
    # Of two runs with the same documents, the later one is the reranker.
    whole = [
        at
        for at, mask in held.items()
        if mask.mean() >= _NEARLY and (len(others[at]) > len(own) or before[at])
        and not _is_made_of(others[at], own, [o for n, o in enumerate(others) if n != at])
    ]  # fmt: skip
    several = next(_several(own, others, held), ())
    if not whole or not several:
        return several or tuple(whole[:1])
    # Either a fusion with other weights, or a reranker of the first of these.
    given = others[whole[0]]
    rest = {at: np.isin(given, each) for at, each in enumerate(others) if at != whole[0]}
    return next(_several(given, others, rest), (whole[0],))


def _several(
    own: Pairs, others: Sequence[Pairs], held: dict[int, NDArray[np.bool_]]
) -> Iterator[tuple[int, ...]]:
    """Two or three runs that have nearly all documents together, each some alone; best first."""
    part = {at: mask for at, mask in held.items() if _FEW <= mask.mean() < _NEARLY}
    for size in (2, 3):
        found = []
        for group in combinations(part, size):
            count = sum(part[at].astype(np.int8) for at in group)
            share = float(np.mean(count > 0))
            alone = min(float(np.mean(part[at] & (count == 1))) for at in group)
            if share >= _NEARLY and alone >= _FEW:
                found.append((-round(share, 2), sum(group), group))
        for _, _, group in sorted(found):
            if not any(
                _is_made_of(others[at], own, [o for n, o in enumerate(others) if n != at])
                for at in group
            ):
                yield group


def _is_made_of(run: Pairs, own: Pairs, others: Sequence[Pairs]) -> bool:
    """Whether a run is a fusion of ``own`` and one of the others."""
    if not len(run):
        return False
    ours = np.isin(run, own)
    if not _FEW <= ours.mean() < _NEARLY:
        return False
    for other in others:
        theirs = np.isin(run, other)
        alone = min((ours & ~theirs).mean(), (theirs & ~ours).mean())
        if (ours | theirs).mean() >= _NEARLY and alone >= _FEW:
            return True
    return False
