"""Judgments, append-only: a correction supersedes the old one, an undo withdraws it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError
from karat.golden.queue import Claim, LeaseLost, Overtaken, checked_submission, pair_key
from karat.store.sql import golden_sets
from karat.store.sql.queue import LEASE_US, newest
from karat.store.sql.schema import document, judgment, pair, slot
from karat.store.sql.slots import OWN, claim_again, disagree, hold_rater, hold_raters
from karat.store.sql.upsert import insert
from karat.tables.incoming import refuse_rows
from karat.tables.judgments import MACHINE, Judgments
from karat.tables.schema import JUDGMENTS

_NAMES = {"id": "judgment", "document_sha256": "document_hash"}  # names in schema.JUDGMENTS
_FURTHER = ("supersedes", "import_id")
_MOST_S = 86_400.0  # longer times are discarded


@dataclass(frozen=True)
class Undone:
    judgment: int  # number of the withdrawn judgment
    withdrawn: int  # number of the judgment that withdraws it
    grade: float | None  # its grade; None for `cannot_judge`
    reason: str | None
    claim: Claim  # the pair, leased to the rater again


@dataclass(frozen=True)
class Recorded:
    """The outcome of an import; judgments that existed already are not counted."""

    added: int  # new judgments
    corrected: int  # judgments that supersede an earlier one of their rater


def submit(
    c: sa.Connection,  # a write transaction; the judgment is durable after its commit
    set_id: int,
    slot_id: int,  # slot of the claim
    rater: str,
    *,
    grade: float | None,  # the grade, with `graded`
    reason: str | None = None,
    state: str = "graded",  # `graded` | `cannot_judge`
    seconds: float | None = None,  # how long it took; discarded if below 0 or above a day
    now: int,
    token: str | None = None,  # idempotency key of the submission
    shown: str | None = None,  # hash of the document as shown; as it is now, if None
    guideline: str | None = None,  # version of the guideline shown; the newest, if None
    pair_shown: str | None = None,  # `pair_key` of the pair shown; not checked if None
    newest_only: bool = False,
) -> int:
    """Record a rater's judgment of the pair leased to them; returns the judgment's number.

    An expired lease is valid until another rater takes the pair. If the rater has judged the pair
    already, the new judgment supersedes the old one, also one imported in the meantime.

    Args:
        reason: With ``cannot_judge`` one of ``golden.queue.REASONS``; otherwise free text.
        newest_only: Allow only the rater's newest judgment to be corrected. Otherwise a rater who
            notices a hidden repeat could change the first answer to match.

    Raises:
        Overtaken: a resubmitted judgment was corrected or withdrawn since; or, with
            ``newest_only``, another pair was judged since.
        LeaseLost: the rater does not have the pair any more; or it is an adjudication and the
            raters agree now.
    """
    hold_rater(c, set_id, rater)
    of_slot = (slot.c.rater, slot.c.judgment_id, slot.c.kind, slot.c.pair_id)
    held = c.execute(
        sa.select(*of_slot, pair.c.query_id, pair.c.doc_id)
        .join(pair, pair.c.id == slot.c.pair_id)
        .where(slot.c.id == slot_id, pair.c.golden_set_id == set_id)
        .with_for_update(of=slot)
    ).one_or_none()
    if token is not None and (sent := _sent_before(c, set_id, rater, held, token)) is not None:
        return sent
    if held is not None and pair_shown not in {None, pair_key(held.query_id, held.doc_id)}:
        held = None  # the slot was deleted, and another pair's slot has its number
    held = _judgeable(c, set_id, rater, held, newest_only=newest_only)
    declared = golden_sets.by_id(c, set_id)
    checked = checked_submission(
        state, grade, reason, scale=declared.scale, grades=list(declared.grades)
    )
    if shown is None:
        chosen = sa.select(document.c.sha256).where(document.c.golden_set_id == set_id)
        shown = c.execute(chosen.where(document.c.doc_id == held.doc_id)).scalar_one_or_none()
    if seconds is not None and not 0 <= seconds <= _MOST_S:
        seconds = None
    old = held.judgment_id
    if old is None and held.kind == "rating":
        old = _without_slot(c, set_id, held.query_id, held.doc_id, rater)
    new = insert(
        c,
        judgment,
        **_own(set_id, held, rater, now, old),
        **asdict(checked),
        seconds=seconds,
        document_sha256=shown,
        guideline=guideline or declared.guideline,
        token=token,
    )
    first = sa.func.coalesce(slot.c.first_judgment, new)
    filled = sa.update(slot).where(slot.c.id == slot_id)
    c.execute(filled.values(judgment_id=new, first_judgment=first))
    return new


def _own(
    set_id: int, of: sa.Row[*tuple[Any, ...]], rater: str, now: int, old: int | None
) -> dict[str, Any]:
    """What every judgment that a rater gives has, of the pair and the kind of a slot."""
    pair_of = {"query_id": of.query_id, "doc_id": of.doc_id, "kind": of.kind, "rater": rater}
    return {
        **pair_of,
        "golden_set_id": set_id,
        "source": "human",
        "time_us": now,
        "supersedes": old,
    }


def _sent_before(
    c: sa.Connection, set_id: int, rater: str, held: sa.Row[*tuple[Any, ...]] | None, token: str
) -> int | None:
    """The judgment that an earlier submission with the same token recorded; None without one."""
    sent = c.execute(sa.select(judgment).where(judgment.c.token == token)).one_or_none()
    if sent is None:
        return None
    now_sent = (set_id, rater, *(held[-2:] if held else (sent.query_id, sent.doc_id)))
    if now_sent != (sent.golden_set_id, sent.rater, sent.query_id, sent.doc_id):
        raise UsageError("the token was used for another judgment", fix="use a new token")
    if c.execute(sa.select(judgment.c.id).where(judgment.c.supersedes == sent.id)).first():
        raise Overtaken(
            "this judgment was recorded, and corrected or undone since",
            fix="ask for the next pair; nothing was recorded",
        )
    return int(sent.id)


def _judgeable(
    c: sa.Connection,
    set_id: int,
    rater: str,
    held: sa.Row[*tuple[Any, ...]] | None,
    *,
    newest_only: bool,
) -> sa.Row[*tuple[Any, ...]]:
    """The slot, if the rater may judge its pair now."""
    if held is None or held.rater != rater:
        free = held is None or held.rater is None
        reason = "you have no lease on it" if free else "another rater has it"
        raise LeaseLost(
            f"the pair is not yours to judge: {reason}",
            fix="ask for the next pair; nothing was recorded",
        )
    if held.kind == "adjudication" and held.judgment_id is None and not _disagree(c, held.pair_id):
        raise LeaseLost(
            "there is nothing to settle: the raters agree now, or a rating was undone",
            fix="ask for the next pair; nothing was recorded",
        )
    kind = "adjudication" if held.kind == "adjudication" else "rating"
    if newest_only and held.judgment_id not in {None, newest(c, set_id, rater, kind)}:
        raise Overtaken(
            "you have judged another pair since this one", fix="undo goes back to it, one by one"
        )
    return held


def undo(
    c: sa.Connection,
    set_id: int,
    rater: str,
    now: int,
    *,
    lease_us: int = LEASE_US,  # duration of the lease, microseconds
    kind: str = "rating",  # as in `queue.claim`; `rating` includes hidden repeats and gold items
) -> Undone | None:
    """Withdraw the newest judgment of a rater that counts, and lease the pair to them again.

    Called again, it withdraws the one before, and so on to the first.

    Returns:
        The withdrawn judgment; None if there is nothing to undo.
    """
    hold_rater(c, set_id, rater)
    kinds = OWN if kind == "rating" else (kind,)
    old = c.execute(
        sa.select(judgment, slot.c.id.label("slot_id"))
        .join(slot, slot.c.judgment_id == judgment.c.id)
        .where(judgment.c.golden_set_id == set_id, slot.c.rater == rater, slot.c.kind.in_(kinds))
        .order_by(judgment.c.id.desc())
        .limit(1)
        .with_for_update(of=slot)
    ).one_or_none()
    if old is None:
        return None
    values = _own(set_id, old, rater, now, old.id) | {"guideline": old.guideline}
    new = insert(c, judgment, **values, state="withdrawn")
    claim = claim_again(c, set_id, old.slot_id, rater, now + lease_us)
    return Undone(old.id, new, old.grade, old.reason, claim)


def record(c: sa.Connection, set_id: int, frame: pl.DataFrame, import_id: int | None) -> Recorded:
    """Record imported judgments.

    A judgment supersedes the same rater's earlier one of the same pair, kind and source. Nothing
    is added if the two are equal, or if only the earlier one has a reason, so a file can be
    imported again, also with fewer columns. The raters it names, and perhaps a few others, are
    blocked meanwhile.

    Args:
        frame: ``schema.JUDGMENTS`` without ``judgment``: ``query_id``, ``doc_id``, ``grade``,
            ``rater``, ``source``, ``time_us``, and optionally ``state`` (default: ``graded`` with a
            grade, otherwise ``cannot_judge``), ``kind`` (``rating``), ``reason``, ``seconds``,
            ``guideline``, ``document_hash``.
        import_id: Number of the import (``imports.put``).
    """
    golden_sets.hold(c, set_id)
    declared = golden_sets.by_id(c, set_id)
    if "judgment" not in frame.columns:
        frame = frame.with_row_index("judgment", offset=1)
    if "state" not in frame.columns:
        graded = pl.col("grade").is_not_null()
        frame = frame.with_columns(
            pl.when(graded).then(pl.lit("graded")).otherwise(pl.lit("cannot_judge")).alias("state")
        )
    if "kind" not in frame.columns:
        frame = frame.with_columns(kind=pl.lit("rating"))
    checked = Judgments(frame, declared.scale, "imported judgments").frame
    key = ["query_id", "doc_id", "rater", "kind", "source"]
    twice = checked.select(key).is_duplicated()
    refuse_rows(checked, twice, "{rater} judges the pair twice", "imported judgments")
    # Otherwise a rater could submit or undo between the reads and the writes below.
    hold_raters(c, set_id, checked["rater"].unique())
    existing = {
        tuple(row[name] for name in key): row
        for row in current(c, set_id).frame.iter_rows(named=True)
    }
    columns_of = {new: old for old, new in _NAMES.items() if old != "id"}
    new, corrected = [], []
    for row in checked.iter_rows(named=True):
        old = existing.get(tuple(row[name] for name in key))
        compared = ("grade", "state") if row["reason"] is None else ("grade", "state", "reason")
        if old is not None and all(old[name] == row[name] for name in compared):
            continue
        values = {columns_of.get(n, n): value for n, value in row.items() if n != "judgment"}
        values |= {
            "golden_set_id": set_id,
            "import_id": import_id,
            "supersedes": None if old is None else old["judgment"],
        }
        new.append(values)
        if old is not None:
            corrected.append(old["judgment"])
    if new:
        c.execute(sa.insert(judgment), new)
    if corrected:
        # Slots must refer to the judgments that count: an undo then withdraws the correction.
        later = judgment.alias("later")
        successor = sa.select(later.c.id).where(later.c.supersedes == slot.c.judgment_id)
        of_set = sa.select(pair.c.id).where(pair.c.golden_set_id == set_id)
        c.execute(
            sa.update(slot)
            .where(slot.c.pair_id.in_(of_set), sa.exists(successor.correlate(slot)))
            .values(judgment_id=successor.correlate(slot).scalar_subquery())
        )
    return Recorded(len(new) - len(corrected), len(corrected))


def counting() -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of judgments that count: not superseded and not withdrawn."""
    later = judgment.alias()
    return judgment.c.state != "withdrawn", ~sa.exists().where(later.c.supersedes == judgment.c.id)


def counts_of_machines(c: sa.Connection) -> dict[str, int]:
    """How many judgments of each machine count, in all golden sets."""
    chosen = sa.select(judgment.c.rater, sa.func.count()).where(
        judgment.c.source == MACHINE, *counting()
    )
    return {rater: int(n) for rater, n in c.execute(chosen.group_by(judgment.c.rater))}


def of_golden_set(c: sa.Connection, set_id: int) -> sa.ColumnElement[bool]:
    """The judgments of a golden set, to be read in the order of their ids.

    SQLite would read all of them by the index on pairs, unless "+ 0" hides the column from it.
    PostgreSQL chooses well by its statistics, which do not apply to an expression.
    """
    column = judgment.c.golden_set_id
    return (column + 0 if c.dialect.name == "sqlite" else column) == set_id


def current(c: sa.Connection, set_id: int, query_id: str | None = None) -> Judgments:
    """The judgments that count, of one query if it is given."""
    declared = golden_sets.by_id(c, set_id)
    chosen = sa.select(*columns()).where(judgment.c.golden_set_id == set_id)
    if query_id is not None:
        chosen = chosen.where(judgment.c.query_id == query_id)
    chosen = chosen.where(*counting()).order_by(judgment.c.id)
    return Judgments(frame_of(c, chosen), declared.scale, f"golden set {declared.name}")


def history(c: sa.Connection, set_id: int, query_id: str, doc_id: str) -> pl.DataFrame:
    """All judgments of a pair, the oldest first, including those that do not count any more.

    Returns:
        ``schema.JUDGMENTS`` (``state`` may be ``withdrawn``), ``supersedes``: number of the
        judgment that this one corrects or withdraws, ``import_id``, and ``counts``.
    """
    chosen = sa.select(*columns(), *(judgment.c[name] for name in _FURTHER)).where(
        judgment.c.golden_set_id == set_id,
        judgment.c.query_id == query_id,
        judgment.c.doc_id == doc_id,
    )
    frame = frame_of(c, chosen.order_by(judgment.c.id), _FURTHER)
    superseded = frame["supersedes"].drop_nulls().implode()
    counts = ~pl.col("judgment").is_in(superseded) & (pl.col("state") != "withdrawn")
    return frame.with_columns(counts.alias("counts"))


def history_of(c: sa.Connection, set_id: int, number: int) -> pl.DataFrame:
    """As ``history``, of the pair of a judgment."""
    pair_of = sa.select(judgment.c.query_id, judgment.c.doc_id).where(judgment.c.id == number)
    return history(c, set_id, *c.execute(pair_of).one())


def _disagree(c: sa.Connection, pair_id: int) -> bool:
    chosen = sa.select(pair.c.id).where(pair.c.id == pair_id, disagree())
    return c.execute(chosen).first() is not None


def superseded_by(c: sa.Connection, number: int) -> tuple[float | None] | None:
    """The grade that a judgment corrects, as a 1-tuple; None if it corrects none."""
    old = judgment.alias("old")
    chosen = sa.select(old.c.grade).join(judgment, judgment.c.supersedes == old.c.id)
    row = c.execute(chosen.where(judgment.c.id == number)).one_or_none()
    return None if row is None else (row.grade,)


def last_judged(c: sa.Connection, set_id: int) -> int | None:
    """Time of the newest judgment of a golden set, microseconds UTC; None without judgments."""
    newest = sa.select(judgment.c.time_us).where(of_golden_set(c, set_id))
    return c.execute(newest.order_by(judgment.c.id.desc()).limit(1)).scalar_one_or_none()


def settled_by(c: sa.Connection, set_id: int, rater: str) -> tuple[float | None, ...]:
    """Durations of a rater's adjudications that count, in seconds, the oldest first."""
    own = (judgment.c.golden_set_id == set_id) & (judgment.c.rater == rater)
    settled = judgment.c.kind == "adjudication"
    chosen = sa.select(judgment.c.seconds).where(own, settled, *counting())
    return tuple(c.execute(chosen.order_by(judgment.c.id)).scalars())


def _without_slot(
    c: sa.Connection, set_id: int, query_id: str, doc_id: str, rater: str
) -> int | None:
    """The rater's newest rating of a pair that counts but fills no slot (an imported one)."""
    values = {"set_id": set_id, "the_query": query_id, "the_doc": doc_id, "the_rater": rater}
    return c.execute(_slotless(), values).scalar_one_or_none()


@cache  # as in ``slots``
def _slotless() -> sa.Select[int]:
    chosen = sa.select(judgment.c.id).where(
        judgment.c.golden_set_id == sa.bindparam("set_id", type_=sa.BigInteger),
        judgment.c.query_id == sa.bindparam("the_query", type_=sa.Text),
        judgment.c.doc_id == sa.bindparam("the_doc", type_=sa.Text),
        judgment.c.rater == sa.bindparam("the_rater", type_=sa.Text),
        judgment.c.kind == "rating",
        *counting(),
        ~sa.exists().where(slot.c.judgment_id == judgment.c.id),
    )
    return chosen.order_by(judgment.c.id.desc()).limit(1)


def columns() -> list[sa.ColumnElement[object]]:
    """The columns of ``schema.JUDGMENTS``, to select for ``frame_of``."""
    inside = {new: old for old, new in _NAMES.items()}
    return [
        judgment.c[inside.get(column.name, column.name)].label(column.name) for column in JUDGMENTS
    ]


def frame_of(
    c: sa.Connection, chosen: sa.Select[*tuple[object, ...]], further: tuple[str, ...] = ()
) -> pl.DataFrame:
    """A frame of judgments selected with ``columns``, and ``further`` integer columns."""
    schema = {column.name: column.dtype for column in JUDGMENTS}
    schema |= dict.fromkeys(further, pl.Int64())
    rows = [tuple(row) for row in c.execute(chosen)]
    return pl.DataFrame(rows, schema=schema, orient="row")
