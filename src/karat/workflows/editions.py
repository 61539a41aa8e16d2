"""Editions: a golden set frozen, compared with another, and held against runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, UsageError
from karat.golden import coverage as covering
from karat.golden.aggregation import RULE, grades
from karat.golden.editions import EditionDifference, difference, edition
from karat.golden.freezing import AgreementPolicy, Freeze, may_freeze
from karat.golden.freshness import Stale, stale
from karat.store import documents, editions, judgments, queries
from karat.store.editions import EditionRow
from karat.tables import Run
from karat.workflows.agreeing import agreement_in
from karat.workflows.kept_runs import keep_runs
from karat.workflows.workspace import Opened

LEAST = 1e-9
"""The least weight there is: a query that has it has no part in a mean to be spoken of."""
NOW = "now"
"""What the golden set as it stands, not frozen, is called beside editions."""


@dataclass(frozen=True)
class Frozen:
    """An edition that was made.

    Attributes:
        name: Its name.
        sha256: Of its content.
        queries: How many it has.
        grades: How many it has.
        agreed: Whether raters agree enough, and why.
    """

    name: str
    sha256: str
    queries: int
    grades: int
    agreed: Freeze


@dataclass(frozen=True)
class Content:
    """A golden set as it stands, or an edition of it.

    Attributes:
        name: Of the edition, or ``now``.
        queries: The queries with all that is known of them.
        grades: ``query_id``, ``doc_id``, ``grade``, ``votes``, ``rule``, ``raters``.
        about: Where it comes from.
    """

    name: str
    queries: pl.DataFrame
    grades: pl.DataFrame
    about: dict[str, Any]


def content_of(opened: Opened, name: str | None = None) -> Content:
    """The golden set as it stands, or an edition of it.

    Args:
        opened: The workspace.
        name: Of the edition; None or ``now`` for the golden set as it stands.

    Raises:
        UsageError: there is no such edition.
    """
    golden = opened.golden
    with opened.store.read() as connection:
        if name is not None and name != NOW:
            row, asked, made = editions.edition(connection, golden.id, name)
            if edition(asked, made, row.about)[1] != row.sha256:
                raise InputError(
                    f"edition {name} is not what was frozen: its SHA-256 is another",
                    file=opened.store.url,
                    fix="take the store from a backup",
                )
            return Content(name, asked, made, dict(row.about))
        asked = queries.frame(connection, golden.id)
        said = judgments.current(connection, golden.id)
    # What nobody is named for was made of several already: it has no vote beside people's.
    of_people, imported = grades(said, RULE), grades(said, RULE, ("import",))
    made = pl.concat([of_people, imported.join(of_people, on=["query_id", "doc_id"], how="anti")])
    made = made.filter(pl.col("query_id").is_in(asked["query_id"].implode()))
    about = {"scale": list(golden.scale), "rule": RULE, "guideline": golden.guideline}
    return Content(NOW, asked, made, about)


def freeze(opened: Opened, name: str, *, now: int) -> Frozen:
    """Make an edition of the golden set as it stands; nothing can change it after.

    Args:
        opened: The workspace.
        name: Of the edition.
        now: Microseconds UTC.

    Raises:
        UsageError: raters do not agree enough, and the policy refuses; or the name is taken.
        InputError: there is nothing to freeze.
    """
    if name == NOW or not name.strip():
        raise UsageError(f"an edition is not called {name!r}", fix="karat golden freeze 2026-03")
    found = content_of(opened)
    if not found.grades.height:
        raise InputError("nothing is judged yet", fix="karat judge --terminal, or golden import")
    agreed = agreement_in(opened)
    policy = AgreementPolicy(
        opened.workspace.weights, opened.workspace.at_least, opened.workspace.refuse
    )
    verdict = may_freeze(agreed, policy)
    if verdict.verdict == "refuse":
        raise UsageError(verdict.sentence, fix="judge more, or change [agreement] in karat.toml")
    about = {**found.about, "agreement": agreed.sentence, "policy": verdict.sentence}
    _, sha256 = edition(found.queries, found.grades, about)
    with opened.store.begin() as connection:
        editions.freeze(
            connection,
            opened.golden.id,
            name=name,
            sha256=sha256,
            about=about,
            queries=found.queries,
            grades=found.grades,
            now=now,
        )
    return Frozen(name, sha256, found.queries.height, found.grades.height, verdict)


def list_editions(opened: Opened) -> list[EditionRow]:
    """All editions, the first first."""
    with opened.store.read() as connection:
        return editions.editions(connection, opened.golden.id)


def compare_editions(
    opened: Opened, old: str, new: str, *, by: str | None = None
) -> EditionDifference:
    """What changed from one edition to another; ``now`` is the golden set as it stands.

    Raises:
        UsageError: no such edition or attribute.
    """
    before, after = (content_of(opened, name) for name in (old, new))
    # What stands now was held against no policy yet: of this nothing has changed.
    said = [name for name in before.about if name in after.about]
    contents = [
        edition(each.queries, each.grades, {name: each.about[name] for name in said})[0]
        for each in (before, after)
    ]
    return difference(contents[0], contents[1], by=by)


def coverage(
    opened: Opened,
    runs: Sequence[str | Path | Run],
    *,
    now: int,
    name: str | None = None,
    k: int = 10,
) -> covering.Coverage:
    """How much of the top k of runs is judged; the workspace keeps the runs.

    Raises:
        InputError: a run cannot be read.
        UsageError: no such edition, or k is out of range.
    """
    found = content_of(opened, name)
    return covering.coverage(found.queries, found.grades, keep_runs(opened, runs, now=now), k)


def stale_judgments(opened: Opened) -> Stale:
    """Judgments of documents whose text has changed since."""
    with opened.store.read() as connection:
        asked = queries.frame(connection, opened.golden.id)
        said = judgments.current(connection, opened.golden.id).of(asked["query_id"])
        held = documents.frame(connection, opened.golden.id)
    return stale(said, held.select("doc_id", "sha256"))


def weighed(asked: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Queries to evaluate with: a weight for each, where any has one.

    Args:
        asked: ``query_id`` and perhaps ``weight``, null for what no log counted.

    Returns:
        The queries, ``LEAST`` for a null; and how many got it.
    """
    if "weight" not in asked.columns:
        return asked, 0
    return asked.with_columns(pl.col("weight").fill_null(LEAST)), asked["weight"].null_count()
