"""Editions: a golden set frozen, compared with another, and held against runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.errors import Advice, InputError, PolicyRefused, UsageError
from karat.formats import read_run
from karat.golden import coverage as covering
from karat.golden.aggregation import RULE, grades
from karat.golden.editions import EditionDifference, difference, edition
from karat.golden.freezing import Freeze, may_freeze
from karat.golden.freshness import Stale, stale
from karat.store.sql import audit, browsing, documents, editions, imports, judgments, queries
from karat.store.sql.editions import EditionRow
from karat.tables import Run
from karat.tables.names import check_name
from karat.workflows.golden.agreement import IMPORT, Moment, agreement_at, disagreements_at, moment
from karat.workflows.workspace.known_queries import following, lacking
from karat.workflows.workspace.stored_runs import keep_runs
from karat.workflows.workspace.workspace import Workspace

NOW = "now"
"""What the golden set as it stands, not frozen, is called beside editions."""
LONGEST = 100
"""Characters that the name of an edition has at most: it heads pages, lists and files."""


@dataclass(frozen=True)
class Frozen:
    """An edition that was made.

    Attributes:
        name: Its name.
        sha256: Of its content.
        queries: How many it has.
        grades: How many it has.
        contradicted: Imported grades that are not in it because raters contradict them, and that
            nobody has settled.
        agreed: Whether raters agree enough, and why.
    """

    name: str
    sha256: str
    queries: int
    grades: int
    contradicted: int
    agreed: Freeze


@dataclass(frozen=True, slots=True)
class Covered(covering.Coverage):
    """How much of what runs show has a grade, where a workspace keeps the runs.

    Attributes:
        notes: What a person should know of how they were kept, in sentences.
    """

    notes: list[str]


@dataclass(frozen=True)
class Standing:
    """A golden set as it stands, or as it stood when an edition of it was frozen.

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


def standing(held: Moment) -> Standing:
    """A golden set as it stood at a moment."""
    # What nobody is named for was made of several already: it has no vote beside people's.
    people, imported = (grades(held.judgments, RULE, (who,)) for who in ("human", "import"))
    made = pl.concat([people, imported.join(people, on=["query_id", "doc_id"], how="anti")])
    golden = held.golden
    about = {"scale": list(golden.scale), "rule": RULE, "guideline": golden.guideline}
    return Standing(NOW, held.queries, made, about)


def standing_in(connection: sa.Connection, opened: Workspace, name: str) -> Standing:
    """An edition, or with ``now`` the golden set as it stands.

    Args:
        connection: Of one transaction (``Store.read``).
        opened: The workspace.
        name: Of the edition.

    Raises:
        UsageError: there is no such edition.
        InputError: it is not what was frozen.
    """
    golden = opened.golden
    if name == NOW:
        return standing(moment(connection, golden.id))
    row, asked, made = editions.edition(connection, golden.id, name)
    if edition(asked, made, row.about)[1] != row.sha256:
        raise InputError(
            f"edition {name} is not what was frozen: its SHA-256 is another",
            file=opened.store.url,
            fix="take the store from a backup",
        )
    return Standing(name, asked, made, dict(row.about))


def content_of(opened: Workspace, name: str | None = None) -> Standing:
    """An edition, or the golden set as it stands; as ``standing_in``, None for ``now``."""
    with opened.store.read() as connection:
        return standing_in(connection, opened, name or NOW)


def freeze(opened: Workspace, name: str, *, now: int, person: str | None = None) -> Frozen:
    """Make an edition of the golden set as it stands; nothing can change it after.

    Args:
        opened: The workspace.
        name: Of the edition.
        now: Microseconds UTC.
        person: Who makes it, for the audit; None at the command line.

    Raises:
        PolicyRefused: raters do not agree enough, and the policy refuses.
        UsageError: the name is taken, too long, or none.
        InputError: there is nothing to freeze.
    """
    _check_name(name)
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
    found = standing(held)
    if not found.grades.height:
        fix = Advice(
            "karat judge --terminal, or golden import", page="judge, or import judgments first"
        )
        raise InputError("nothing is judged yet", fix=fix)
    agreed = agreement_at(held, opened.workspace)
    verdict = may_freeze(agreed.headline, opened.workspace)
    if verdict.verdict == "refuse":
        fix = Advice(
            "judge more, or change [agreement] in karat.toml",
            page="judge more, or settle what raters disagree on",
        )
        raise PolicyRefused(f"fail: {verdict.sentence}", fix=fix)
    about = {**found.about, "agreement": agreed.sentence, "policy": verdict.sentence}
    contradicted = disagreements_at(held).filter(pl.col("between") == IMPORT).height
    if contradicted:
        about["contradicted"] = contradicted
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
        if person is not None:
            note: dict[str, Any] = {"golden set": opened.golden.name, "sha256": sha256}
            note["grades"] = found.grades.height
            audit.note(connection, person, "freeze edition", name, now, note)
    return Frozen(name, sha256, found.queries.height, found.grades.height, contradicted, verdict)


def _check_name(name: str) -> None:
    """Refuse what no edition may be called."""
    fix = Advice("karat golden freeze 2026-03", page="such as 2026-03")
    if name == NOW:
        why = f"{NOW!r} is reserved: the golden set as it stands is called so beside editions"
        raise UsageError(why, fix=fix)
    check_name(name, "an edition", longest=LONGEST, fix=fix)


def list_editions(opened: Workspace) -> list[EditionRow]:
    """All editions, the first first."""
    with opened.store.read() as connection:
        return editions.editions(connection, opened.golden.id)


def compare_editions(
    opened: Workspace, old: str, new: str, *, by: str | None = None
) -> EditionDifference:
    """What changed from one edition to another; ``now`` is the golden set as it stands.

    Raises:
        UsageError: no such edition or attribute.
    """
    with opened.store.read() as connection:
        before, after = (standing_in(connection, opened, name) for name in (old, new))
    return changes(before, after, by=by)


def changes(before: Standing, after: Standing, *, by: str | None = None) -> EditionDifference:
    """What changed from one to another, by an attribute of the queries perhaps.

    Raises:
        UsageError: no such attribute.
    """
    # What stands now was held against no policy yet: of this nothing has changed.
    said = [name for name in before.about if name in after.about]
    contents = [
        edition(each.queries, each.grades, {name: each.about[name] for name in said})[0]
        for each in (before, after)
    ]
    return difference(contents[0], contents[1], by=by)


def coverage(
    opened: Workspace,
    runs: Sequence[str | Path | Run],
    *,
    now: int,
    name: str | None = None,
    k: int = 10,
) -> Covered:
    """How much of the top k of runs is judged; the workspace keeps the runs.

    Raises:
        InputError: a run cannot be read.
        UsageError: no such edition, k is out of range, or two runs are of one name.
    """
    read = [run if isinstance(run, Run) else read_run(run) for run in runs]
    names = [run.name for run in read]
    twice = next((each for i, each in enumerate(names) if each in names[:i]), None)
    if twice is not None:
        raise UsageError(
            f"two runs are called {twice!r}", fix="name each once; of two files rename one"
        )
    found = content_of(opened, name)
    with opened.store.read() as connection:
        aliases = imports.aliases(connection, opened.golden.id)
    kept = keep_runs(opened, read, now=now)
    where = "the golden set" if found.name == NOW else f"edition {found.name}"
    known, systems, notes = set(found.queries["query_id"]), [], list(kept.notes)
    for run in kept.runs:
        system, said = following(run, known, aliases)
        systems.append(system)
        notes += [*said, *lacking(system, known, where)]
    covered = covering.coverage(found.queries, found.grades, systems, k)
    return Covered(covered.k, covered.runs, covered.queries, covered.unjudged, notes)


def stale_judgments(opened: Workspace) -> Stale:
    """Judgments of documents whose text has changed since, each with the ``text`` of its query."""
    with opened.store.read() as connection:
        asked = queries.frame(connection, opened.golden.id)
        said = judgments.current(connection, opened.golden.id).of(asked["query_id"])
        held = documents.frame(connection, opened.golden.id)
    found = stale(said, held.select("doc_id", "sha256"))
    texts = asked.select("query_id", "text")
    named = found.judgments.join(texts, on="query_id", how="left", maintain_order="left")
    return replace(found, judgments=named)


def named(opened: Workspace, frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``query_id`` and ``doc_id`` with names: ids where nobody gave any.

    Returns:
        The rows in their order, with ``text`` of the query, if they have none, and ``name`` of the
        document, as both are called now.
    """
    with opened.store.read() as connection:
        asked = queries.frame(connection, opened.golden.id, dropped=True)
        titles = browsing.titles(connection, opened.golden.id)
    if "text" not in frame.columns:
        texts = asked.select("query_id", "text")
        frame = frame.join(texts, on="query_id", how="left", maintain_order="left")
    frame = frame.join(titles, on="doc_id", how="left", maintain_order="left")
    return frame.with_columns(
        text=pl.coalesce("text", "query_id"), name=pl.coalesce("title", "doc_id")
    ).drop("title")


def weighed(asked: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Queries to evaluate with: a weight for each, where any has one.

    Args:
        asked: ``query_id`` and perhaps ``weight``, null for what no log counted.

    Returns:
        The queries, 0 for a null (such a query counts in slices of its own kind only), or without
        weights where none has one; and how many got the 0.
    """
    if "weight" not in asked.columns or not asked["weight"].count():
        return asked.drop("weight", strict=False), 0
    return asked.with_columns(pl.col("weight").fill_null(0.0)), asked["weight"].null_count()
