"""Find objects of a workspace and queries by name, as for the palette of the pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from karat.store.sql import comparisons, golden_sets, queries, releases, runs
from karat.workflows.workspace.workspace import Workspace

_T = TypeVar("_T")
MOST = 8  # hits of one kind


@dataclass(frozen=True)
class Hit:
    kind: Literal["golden set", "run", "comparison", "release", "query"]
    name: str
    key: str


def search(opened: Workspace, words: str, golden: str) -> list[Hit]:
    """Objects with all words in their name or id; the best of each kind, at most ``MOST``.

    Runs, comparisons and releases of the workspace, and queries of the golden set ``golden``.
    """
    with opened.store.read() as c:
        names = golden_sets.names(c)
        own = opened.golden.id
        found = best(words, [(Hit("golden set", name, name), name) for name in names])
        found += best(words, [(Hit("run", r.name, str(r.id)), r.name) for r in runs.runs(c, own)])
        stored = comparisons.comparisons(c, own)
        found += best(words, [(Hit("comparison", r.name, str(r.id)), r.name) for r in stored])
        found += best(words, [(Hit("release", name, name), name) for name in releases.names(c)])
        if words.strip() and golden in names:
            rows = queries.frame(c, golden_sets.find(c, golden).id)
            texts = rows.select("query_id", "text").iter_rows()
            hits = [(Hit("query", text or key, key), f"{text or ''} {key}") for key, text in texts]
            found += best(words, hits)
    return found


def best(words: str, choices: Iterable[tuple[_T, str]]) -> list[_T]:
    """The choices whose text has all words, or words that begin so; at most ``MOST``."""
    wanted = words.casefold().split()
    begins = [re.compile(rf"(?<![^\W_]){re.escape(word)}") for word in wanted]
    folded = [(text.casefold(), place, hit) for place, (hit, text) in enumerate(choices)]
    fits = [
        (not text.startswith(wanted[0]) if wanted else place, len(text), place, hit)
        for text, place, hit in folded
        if all(pattern.search(text) for pattern in begins)
    ]
    return [hit for *_, hit in sorted(fits, key=lambda each: each[:3])[:MOST]]
