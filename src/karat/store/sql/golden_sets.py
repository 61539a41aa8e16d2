"""Golden sets and their guidelines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa

from karat.errors import UsageError, nearest
from karat.store.sql.schema import golden_set, guideline
from karat.tables.names import check_name
from karat.tables.scale import Scale, read_scale

LONGEST = 100
"""Characters that the name of a golden set has at most."""


@dataclass(frozen=True)
class GoldenSetRow:
    """A golden set as it is declared.

    Attributes:
        id: Number in the store.
        name: Its name.
        scale: Lowest and highest grade.
        grades: ``label: sign`` by grade, ascending.
        raters: How many rate each pair.
        repeats: Share of a rater's judgments that are hidden repeats.
        salt: What all of its hashes start from.
        guideline: Version of the newest guideline: ``1``, ``2``, …
        guideline_text: Its text.
        created_us: When it was made, microseconds UTC.
    """

    id: int
    name: str
    scale: Scale
    grades: dict[float, str]
    raters: int
    repeats: float
    salt: str
    guideline: str
    guideline_text: str
    created_us: int


def make(
    c: sa.Connection,
    name: str,
    *,
    scale: Scale,
    grades: Mapping[float, str],
    raters: int = 2,
    repeats: float = 0.05,
    salt: str,
    guideline: str,
    now: int,
) -> int:
    """Make a golden set with its first guideline.

    Args:
        c: A write transaction.
        name: Its name, unlike every other's.
        scale: Lowest and highest grade.
        grades: ``label: sign`` by grade.
        raters: How many rate each pair, from 1.
        repeats: Share of judgments that are hidden repeats, from 0 to 0.5.
        salt: Any text, the same for good: orders and repeats come from its hashes.
        guideline: The text of the first version.
        now: Microseconds UTC.

    Returns:
        Its number.

    Raises:
        UsageError: a name that is taken or none (see ``addressable``), a grade off the scale, no
            rater, or a share out of range.
    """
    low, high = read_scale(scale)
    _check_name(name)
    off = [grade for grade in grades if not low <= grade <= high]
    if off:
        raise UsageError(f"grade {off[0]:g} is not on the scale from {low:g} to {high:g}")
    if raters < 1 or not 0 <= repeats <= 0.5:
        raise UsageError(f"raters {raters} must be 1 or more, repeats {repeats} from 0 to 0.5")
    if name in names(c):
        raise UsageError(f"there is a golden set {name!r} already")
    values = {
        "name": name,
        "scale_low": low,
        "scale_high": high,
        "grades": [[float(grade), grades[grade]] for grade in sorted(grades)],
        "raters": raters,
        "repeats": repeats,
        "salt": salt,
        "created_us": now,
    }
    done = c.execute(sa.insert(golden_set).values(values).returning(golden_set.c.id))
    set_id = int(done.scalar_one())
    new_guideline(c, set_id, guideline, now)
    return set_id


def addressable(name: str) -> bool:
    """Whether a golden set of this name has pages: those of "a/b" and ".." lead elsewhere."""
    return "/" not in name and name not in {".", ".."} and name.isprintable()


def _check_name(name: str) -> None:
    """Refuse what no golden set may be called; sets that are there keep their names."""
    fix = "one without slashes, such as shop"
    check_name(name, "a golden set", longest=LONGEST, slashes=False, fix=fix)


def names(c: sa.Connection) -> list[str]:
    """Names of the golden sets, the oldest first."""
    return list(c.execute(sa.select(golden_set.c.name).order_by(golden_set.c.id)).scalars())


def find(c: sa.Connection, name: str | None = None) -> GoldenSetRow:
    """A golden set by its name; where there is only one, it needs none.

    Raises:
        UsageError: there is none of that name (the nearest is named), none at all, or several and
            no name was given.
    """
    there = names(c)
    if not there:
        raise UsageError("the store holds no golden set", fix="karat init makes one")
    if name is None and len(there) > 1:
        raise UsageError(f"which golden set? There are {', '.join(there)}")
    if name is not None and name not in there:
        raise UsageError(
            f"no golden set {name!r}; there are {', '.join(there)}", nearest=nearest(name, there, 1)
        )
    chosen = sa.select(golden_set.c.id).where(golden_set.c.name == (name or there[0]))
    return by_id(c, int(c.execute(chosen).scalar_one()))


def by_id(c: sa.Connection, set_id: int) -> GoldenSetRow:
    """A golden set by its number.

    Raises:
        UsageError: there is none.
    """
    row = c.execute(_declared(), {"set_id": set_id}).one_or_none()
    if row is None:
        raise UsageError(f"no golden set has the number {set_id}")
    return GoldenSetRow(
        id=row.id,
        name=row.name,
        scale=(row.scale_low, row.scale_high),
        grades={float(grade): text for grade, text in row.grades},
        raters=row.raters,
        repeats=row.repeats,
        salt=row.salt,
        guideline=str(row.version),
        guideline_text=row.text,
        created_us=row.created_us,
    )


def new_guideline(c: sa.Connection, set_id: int, text: str, now: int) -> str:
    """Put a new version of the guideline in force; the same text again makes no new one.

    Returns:
        The version in force: ``1``, ``2``, …
    """
    hold(c, set_id)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    newest = _newest_guideline(c, set_id)
    if newest is not None and newest.sha256 == sha256:
        return str(newest.version)
    version = 1 if newest is None else newest.version + 1
    values = {
        "golden_set_id": set_id,
        "version": version,
        "text": text,
        "sha256": sha256,
        "created_us": now,
    }
    c.execute(sa.insert(guideline).values(values))
    return str(version)


def change(
    c: sa.Connection, set_id: int, *, grades: Mapping[float, str], raters: int, repeats: float
) -> None:
    """Change what may change under judgments: what grades are called, and how the queue asks.

    Args:
        c: A write transaction.
        set_id: The golden set.
        grades: ``label: sign`` by grade.
        raters: How many rate each pair that is queued from now on.
        repeats: Share of judgments that are hidden repeats.
    """
    hold(c, set_id)
    named = sorted([float(grade), sign] for grade, sign in grades.items())
    values = {"grades": named, "raters": raters, "repeats": repeats}
    c.execute(sa.update(golden_set).where(golden_set.c.id == set_id).values(values))


def guidelines(c: sa.Connection, set_id: int) -> dict[str, str]:
    """The text of every version of the guideline, the oldest first."""
    chosen = sa.select(guideline.c.version, guideline.c.text)
    rows = c.execute(
        chosen.where(guideline.c.golden_set_id == set_id).order_by(guideline.c.version)
    )
    return {str(row.version): row.text for row in rows}


def hold(c: sa.Connection, set_id: int) -> None:
    """Let no other transaction add to the set until this one ends; judging goes on meanwhile."""
    chosen = sa.select(golden_set.c.id).where(golden_set.c.id == set_id)
    if c.execute(chosen.with_for_update(key_share=True)).one_or_none() is None:
        raise UsageError(f"no golden set has the number {set_id}")


def _newest_guideline(c: sa.Connection, set_id: int) -> sa.Row[int, str] | None:
    chosen = sa.select(guideline.c.version, guideline.c.sha256)
    of_set = chosen.where(guideline.c.golden_set_id == set_id)
    return c.execute(of_set.order_by(guideline.c.version.desc()).limit(1)).one_or_none()


@cache
def _declared() -> sa.Select[*tuple[Any, ...]]:
    """A golden set beside its newest guideline."""
    newest = sa.select(sa.func.max(guideline.c.version))
    return (
        sa.select(golden_set, guideline.c.version, guideline.c.text)
        .join(guideline, guideline.c.golden_set_id == golden_set.c.id)
        .where(
            golden_set.c.id == sa.bindparam("set_id"),
            guideline.c.version
            == newest.where(guideline.c.golden_set_id == sa.bindparam("set_id")).scalar_subquery(),
        )
    )
