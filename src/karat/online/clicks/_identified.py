"""Whether a log can separate documents from positions."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from karat.online.clicks.counts import Cells, Integers

Booleans = npt.NDArray[np.bool_]


def not_identified(cells: Cells, known: Collection[int] = ()) -> str:
    """Why positions are not identified; empty if they are.

    A document that was shown at two places and clicked connects them: its clicks there compare the
    two. Every place must be connected with rank 1, directly or through others.

    Args:
        cells: The log.
        known: Places whose examination is known.
    """
    ranks = cells.places["rank"].to_numpy()
    if not (ranks == 1).any():
        return "no document was shown at rank 1"
    clicked = cells.by_pair(cells.clicked) > 0
    lacking = _separate(cells, clicked[cells.pair], known)
    if not lacking.any():
        return ""
    shown_only = _separate(cells, np.ones(len(cells.pair), dtype=np.bool_), known)
    named = shown_only if shown_only.any() else lacking
    where = _places(cells, named)
    others = _places(cells, ~named)
    alone = len(set(cells.pair[named[cells.place]])) == int(named[cells.place].sum())
    if not shown_only.any():
        return f"no document shown at {where} and at {others} was ever clicked"
    if alone:
        return f"documents at {where} were never shown at another rank"
    return f"documents at {where} were never shown at {others}"


def _separate(cells: Cells, use: Booleans, known: Collection[int]) -> Booleans:
    """Places that are not connected with the anchor by the cells used."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs, places = len(cells.pairs), len(cells.places)
    joined = np.array([place for place in known if place != cells.anchor], dtype=np.int64)
    rows = np.concatenate([cells.pair[use], pairs + joined])
    columns = pairs + np.concatenate([cells.place[use], np.full(len(joined), cells.anchor)])
    size = pairs + places
    edges = coo_array((np.ones(len(rows)), (rows, columns)), (size, size))
    group = connected_components(edges, directed=False)[1][pairs:]
    shown = cells.by_place(cells.shown) > 0
    return np.asarray(group != group[cells.anchor]) & shown


def _places(cells: Cells, chosen: Booleans) -> str:
    """Places in words: `ranks 4-10`, `rank 1 (image)`."""
    rows = cells.places.filter(chosen)
    texts = []
    for (presentation,), group in rows.group_by("presentation", maintain_order=True):
        text = _ranks(group["rank"].to_numpy())
        texts.append(text if presentation is None else f"{text} ({presentation})")
    return ", ".join(texts)


def _ranks(ranks: Integers) -> str:
    """Numbers in words: `rank 4`, `ranks 2, 4-10`."""
    runs = np.split(ranks, np.flatnonzero(np.diff(ranks) > 1) + 1)
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"{'ranks' if len(ranks) > 1 else 'rank'} {', '.join(texts)}"
