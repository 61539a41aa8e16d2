"""Interleaving: one list made of two rankings, and which of them users prefer.

Team draft: in each round a coin decides which ranking picks first; each picks its best document
that is not in the list yet. A document that a user clicks is a point for the ranking that picked
it. Documents that both rankings have at the same places at the top show nothing, and are neutral.

Source: Radlinski, Kurup & Joachims 2008, CIKM; Chapelle, Joachims, Radlinski & Yue 2012, TOIS 30(1)
(credit, and the share of preferences).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from karat.errors import UsageError

A, B = "A", "B"


@dataclass(frozen=True, slots=True)
class Interleaved:
    """A list to show, and which ranking picked each document."""

    doc_ids: tuple[str, ...]
    teams: tuple[str | None, ...]  # "A" | "B"; None: neutral

    @property
    def mark(self) -> str:
        """The teams in a text such as ``-ABBA``, to log with the search."""
        return "".join(team or "-" for team in self.teams)


def interleave(
    a: Sequence[str],
    b: Sequence[str],
    *,
    k: int = 10,
    seed: str | int | None = None,
    pinned: Mapping[int, str] | None = None,
) -> Interleaved:
    """Interleave two rankings by team draft.

    Args:
        a: Document ids of ranking A, best first.
        b: Document ids of ranking B.
        k: Length of the list; it is shorter where both rankings end before.
        seed: Of the coins: a text such as the query and the user, so that a page that is reloaded
            is the same; None for another list each time.
        pinned: Documents at fixed places, from 1, such as advertisements; they are neutral.

    Returns:
        The list, and the team of each of its documents.

    Raises:
        UsageError: k is below 1, or a pinned place is not in the list.
    """
    fixed = dict(pinned or {})
    if k < 1 or any(not 1 <= at <= k for at in fixed):
        raise UsageError(
            f"{k} places and {len(fixed)} pinned documents do not make a list",
            fix="give a k of 1 or more, and pinned places from 1 to k",
        )
    coins = random.Random(seed)  # noqa: S311 - of rankings, not of secrets
    drafted = _draft(a, b, k - len(fixed), set(fixed.values()), coins)
    docs: list[str] = []
    teams: list[str | None] = []
    for at in range(1, k + 1):
        doc, team = (fixed[at], None) if at in fixed else next(drafted, ("", ""))
        if team == "":
            break
        docs.append(doc)
        teams.append(team)
    return Interleaved(tuple(docs), tuple(teams))


def _draft(
    a: Sequence[str], b: Sequence[str], k: int, taken: Collection[str], coins: random.Random
) -> Iterator[tuple[str, str | None]]:
    """The documents in order, each with its team."""
    used = set(taken)
    ranked = [[doc for doc in dict.fromkeys(ranking) if doc not in used] for ranking in (a, b)]
    shared = 0
    for first, second in zip(*ranked, strict=False):
        if first != second or shared == k:
            break
        shared += 1
        used.add(first)
        yield first, None
    left = [iter(ranking[shared:]) for ranking in ranked]
    done = shared
    while done < k:
        order = (0, 1) if coins.random() < 0.5 else (1, 0)
        picks = 0
        for team in order:
            doc = next((doc for doc in left[team] if doc not in used), None)
            if doc is not None and done < k:
                used.add(doc)
                done += 1
                picks += 1
                yield doc, (A, B)[team]
        if not picks:
            return


def credit(teams: Sequence[str | None], clicked: Collection[int]) -> tuple[int, int]:
    """Clicks on documents of A and of B.

    Args:
        teams: From ``interleave``.
        clicked: Places clicked, from 0; each once.
    """
    points = [teams[at] for at in clicked]
    return points.count(A), points.count(B)
