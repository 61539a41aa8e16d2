"""Golden sets and their guidelines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa

from karat.errors import UsageError, nearest
from karat.store.sql.schema import golden_set, guideline
from karat.store.sql.upsert import insert
from karat.tables.golden.golden_sets import GoldenSetRow
from karat.tables.names import check_name
from karat.tables.schema import Scale, read_scale

LONGEST = 100  # maximum number of characters of the name of a golden set


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
    """Create a golden set with its first guideline; arguments as in ``GoldenSetRow``."""
    low, high = read_scale(scale)
    fix = "one without slashes, such as shop"
    check_name(name, "a golden set", longest=LONGEST, slashes=False, fix=fix)
    off = [grade for grade in grades if not low <= grade <= high]
    if off:
        raise UsageError(f"grade {off[0]:g} is not on the scale from {low:g} to {high:g}")
    if raters < 1 or not 0 <= repeats <= 0.5:
        raise UsageError(f"raters {raters} must be 1 or more, repeats {repeats} from 0 to 0.5")
    if name in names(c):
        raise UsageError(f"there is already a golden set {name!r}")
    values = {"name": name, "raters": raters, "repeats": repeats, "salt": salt, "created_us": now}
    signs = [[float(grade), grades[grade]] for grade in sorted(grades)]
    set_id = insert(c, golden_set, **values, scale_low=low, scale_high=high, grades=signs)
    new_guideline(c, set_id, guideline, now)
    return set_id


def names(c: sa.Connection) -> list[str]:
    """Names of the golden sets, the oldest first."""
    return list(c.execute(sa.select(golden_set.c.name).order_by(golden_set.c.id)).scalars())


def find(c: sa.Connection, name: str | None = None) -> GoldenSetRow:
    """A golden set by its name; the name may be None if there is only one."""
    chosen = _declared() if name is None else _declared().where(golden_set.c.name == name)
    found = c.execute(chosen.limit(2)).all()
    if len(found) == 1:
        return _row(found[0])
    existing = names(c)
    if not existing:
        raise UsageError("the store has no golden set", fix="create one with karat init")
    if name is None:
        raise UsageError(f"there are several golden sets, name one: {', '.join(existing)}")
    raise UsageError(
        f"no golden set {name!r}; there are {', '.join(existing)}",
        nearest=nearest(name, existing, 1),
    )


def every(c: sa.Connection) -> list[GoldenSetRow]:
    """All golden sets, the oldest first."""
    return [_row(row) for row in c.execute(_declared().order_by(golden_set.c.id))]


def by_id(c: sa.Connection, set_id: int) -> GoldenSetRow:
    row = c.execute(_declared().where(golden_set.c.id == set_id)).one_or_none()
    if row is None:
        raise UsageError(f"no golden set has the number {set_id}")
    return _row(row)


def _row(row: sa.Row[*tuple[Any, ...]]) -> GoldenSetRow:
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
    """Add a version of the guideline, unless its text is that of the current version."""
    hold(c, set_id)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    newest = _newest_guideline(c, set_id)
    if newest is not None and newest.sha256 == sha256:
        return str(newest.version)
    version = 1 if newest is None else newest.version + 1
    values = {"version": version, "text": text, "sha256": sha256, "created_us": now}
    c.execute(sa.insert(guideline).values(values | {"golden_set_id": set_id}))
    return str(version)


def change(
    c: sa.Connection, set_id: int, *, grades: Mapping[float, str], raters: int, repeats: float
) -> None:
    """Change the settings that may change after judgments were given.

    ``raters`` applies to pairs that are queued from now on.
    """
    hold(c, set_id)
    labels = sorted([float(grade), label] for grade, label in grades.items())
    values = {"grades": labels, "raters": raters, "repeats": repeats}
    c.execute(sa.update(golden_set).where(golden_set.c.id == set_id).values(values))


def guidelines(c: sa.Connection, set_id: int) -> dict[str, str]:
    """The text of every version of the guideline, the oldest first."""
    chosen = sa.select(guideline.c.version, guideline.c.text)
    rows = c.execute(
        chosen.where(guideline.c.golden_set_id == set_id).order_by(guideline.c.version)
    )
    return {str(row.version): row.text for row in rows}


def hold(c: sa.Connection, set_id: int) -> None:
    """Lock the set against additions by other transactions; judging is not blocked."""
    chosen = sa.select(golden_set.c.id).where(golden_set.c.id == set_id)
    if c.execute(chosen.with_for_update(key_share=True)).one_or_none() is None:
        raise UsageError(f"no golden set has the number {set_id}")


def _newest_guideline(c: sa.Connection, set_id: int) -> sa.Row[int, str] | None:
    chosen = sa.select(guideline.c.version, guideline.c.sha256)
    of_set = chosen.where(guideline.c.golden_set_id == set_id)
    return c.execute(of_set.order_by(guideline.c.version.desc()).limit(1)).one_or_none()


@cache
def _declared() -> sa.Select[*tuple[Any, ...]]:
    """Golden sets, each with its newest guideline."""
    of_set = guideline.alias()
    newest = sa.select(sa.func.max(of_set.c.version))
    newest = newest.where(of_set.c.golden_set_id == golden_set.c.id)
    return (
        sa.select(golden_set, guideline.c.version, guideline.c.text)
        .join(guideline, guideline.c.golden_set_id == golden_set.c.id)
        .where(guideline.c.version == newest.scalar_subquery())
    )
