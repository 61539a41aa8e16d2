"""Judgments: facts that are only ever added. A correction supersedes, an undo withdraws."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

import polars as pl
import sqlalchemy as sa

from karat.errors import InputError, UsageError
from karat.golden.queue import checked_submission
from karat.store.sql import golden_sets
from karat.store.sql.queue import LEASE_US, newest
from karat.store.sql.schema import document, judgment, pair, slot
from karat.store.sql.slots import OWN, Claim, claim_again, disagree, hold_rater, hold_raters
from karat.tables.judgments import Judgments
from karat.tables.schema import JUDGMENTS

_NAMES = {"id": "judgment", "document_sha256": "document_hash"}  # as schema.JUDGMENTS has them
_FURTHER = ("supersedes", "import_id")
_MOST_S = 86_400.0  # nobody looks at a pair for longer than a day


@dataclass(frozen=True)
class Undone:
    """A judgment that was withdrawn.

    Attributes:
        judgment: Number of the one that counts no more.
        withdrawn: Number of the fact that says so.
        grade: The grade it gave; None if it could not be judged.
        reason: Its reason.
        claim: The pair, which is the rater's to judge again.
    """

    judgment: int
    withdrawn: int
    grade: float | None
    reason: str | None
    claim: Claim


@dataclass(frozen=True)
class Recorded:
    """What came of facts from elsewhere; those that were there already are in neither number.

    Attributes:
        added: New facts.
        corrected: Facts that supersede what their rater had said.
    """

    added: int
    corrected: int


class LeaseLost(UsageError):
    """The pair is not this rater's to judge: another took it, it went, or it needs no settling."""


class Overtaken(LeaseLost):
    """An answer that came too late: its pair was judged since, and corrected, undone or left."""


def pair_key(query_id: str, doc_id: str) -> str:
    """A short name of a pair, for ``submit(pair=…)``: 32 hexadecimal digits, of any ids."""
    return sha256(json.dumps([query_id, doc_id]).encode()).hexdigest()[:32]


def submit(
    c: sa.Connection,
    set_id: int,
    slot_id: int,
    rater: str,
    *,
    grade: float | None,
    reason: str | None = None,
    state: str = "graded",
    seconds: float | None = None,
    now: int,
    token: str | None = None,
    shown: str | None = None,
    guideline: str | None = None,
    pair_shown: str | None = None,
    newest_only: bool = False,
) -> int:
    """Record what a rater said of the pair they hold.

    A lease that has ended is good as long as nobody took the pair. A slot the rater has filled
    already is corrected: the new judgment supersedes the old, and so it does a rating of theirs
    that was imported while they held the pair.

    Args:
        c: A write transaction; the judgment is safe when it has ended, not before.
        set_id: The golden set.
        slot_id: Of the claim.
        rater: Who judged.
        grade: With ``graded``.
        reason: With ``cannot_judge`` one of ``golden.queue.REASONS``; else free.
        state: ``graded`` | ``cannot_judge``.
        seconds: How long it took; not kept if it cannot be (below 0, beyond a day).
        now: Microseconds UTC.
        token: Whatever the sender drew for this submission: sent twice, it is one judgment.
        shown: Hash of the document as it was shown; as it is now, if None.
        guideline: Version of the guideline that was shown; the newest, if None.
        pair_shown: ``pair_key`` of what was shown; not checked if None.
        newest_only: Whether of the slots the rater has filled only the one filled last may be
            corrected: else who comes upon a hidden repeat could make the first answer match.

    Returns:
        The judgment's number.

    Raises:
        Overtaken: what was sent again was corrected or taken back since; or, with ``newest_only``,
            another pair was judged since.
        LeaseLost: the pair is another's now, or nobody's; or it is an adjudication, and the raters
            have come to agree.
        UsageError: what was said cannot be recorded (``golden.queue.checked_submission``), or the
            token was used for another pair.
    """
    hold_rater(c, set_id, rater)
    held = c.execute(
        sa.select(
            slot.c.rater,
            slot.c.judgment_id,
            slot.c.kind,
            slot.c.pair_id,
            pair.c.query_id,
            pair.c.doc_id,
        )
        .join(pair, pair.c.id == slot.c.pair_id)
        .where(slot.c.id == slot_id, pair.c.golden_set_id == set_id)
        .with_for_update(of=slot)
    ).one_or_none()
    if token is not None:
        sent = c.execute(sa.select(judgment).where(judgment.c.token == token)).one_or_none()
        if sent is not None:
            now_and_then = (set_id, rater, *(held[-2:] if held else (sent.query_id, sent.doc_id)))
            if now_and_then != (sent.golden_set_id, sent.rater, sent.query_id, sent.doc_id):
                raise UsageError("the token was used for another judgment", fix="draw a new one")
            if c.execute(sa.select(judgment.c.id).where(judgment.c.supersedes == sent.id)).first():
                raise Overtaken(
                    "this answer was recorded, and corrected or taken back since",
                    fix="ask for the next; nothing was recorded",
                )
            return int(sent.id)
    if held is not None and pair_shown not in {None, pair_key(held.query_id, held.doc_id)}:
        held = None  # its slot went, and another pair's has its number
    if held is None or held.rater != rater:
        whose = "nobody holds it" if held is None or held.rater is None else "it is another's now"
        raise LeaseLost(
            f"the pair is not yours to judge: {whose}", fix="ask for the next; nothing was recorded"
        )
    if held.kind == "adjudication" and held.judgment_id is None and not _apart(c, held.pair_id):
        raise LeaseLost(
            "there is nothing to settle: the raters agree now, or took a rating back",
            fix="ask for the next; nothing was recorded",
        )
    kind = "adjudication" if held.kind == "adjudication" else "rating"
    if newest_only and held.judgment_id not in {None, newest(c, set_id, rater, kind)}:
        raise Overtaken(
            "you have judged this pair, and another since", fix="undo goes back to it, one by one"
        )
    declared = golden_sets.by_id(c, set_id)
    said = checked_submission(
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
    values = {
        "golden_set_id": set_id,
        "query_id": held.query_id,
        "doc_id": held.doc_id,
        "grade": said.grade,
        "state": said.state,
        "reason": said.reason,
        "rater": rater,
        "source": "human",
        "kind": held.kind,
        "time_us": now,
        "seconds": seconds,
        "guideline": guideline or declared.guideline,
        "document_sha256": shown,
        "supersedes": old,
        "token": token,
    }
    new = int(c.execute(sa.insert(judgment).values(values).returning(judgment.c.id)).scalar_one())
    first = sa.func.coalesce(slot.c.first_judgment, new)
    filled = sa.update(slot).where(slot.c.id == slot_id)
    c.execute(filled.values(judgment_id=new, first_judgment=first))
    return new


def undo(
    c: sa.Connection,
    set_id: int,
    rater: str,
    now: int,
    *,
    lease_us: int = LEASE_US,
    kind: str = "rating",
) -> Undone | None:
    """Withdraw the newest judgment of a rater that counts, and lease the pair to them again.

    Called again, it withdraws the one before, and so on to the first.

    Args:
        c: A write transaction.
        set_id: The golden set.
        rater: Who.
        now: Microseconds UTC.
        lease_us: How long the pair is theirs again, microseconds.
        kind: As in ``queue.claim``: of ``rating``, hidden repeats and gold items are taken back
            too; of ``adjudication``, nothing else.

    Returns:
        What was withdrawn; None if there is nothing to undo.
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
    values = {
        "golden_set_id": set_id,
        "query_id": old.query_id,
        "doc_id": old.doc_id,
        "kind": old.kind,
        "state": "withdrawn",
        "rater": rater,
        "source": "human",
        "time_us": now,
        "guideline": old.guideline,
        "supersedes": old.id,
    }
    new = int(c.execute(sa.insert(judgment).values(values).returning(judgment.c.id)).scalar_one())
    claim = claim_again(c, set_id, old.slot_id, rater, now + lease_us)
    return Undone(old.id, new, old.grade, old.reason, claim)


def record(c: sa.Connection, set_id: int, frame: pl.DataFrame, import_id: int | None) -> Recorded:
    """Record facts that came from elsewhere, all in one go.

    What the same rater said of the same pair before (same kind and source) is superseded; where
    they said just this, or this with a reason where the file has none, nothing is added. So a file
    may be imported again, and with fewer columns. Meanwhile the raters it names wait, and perhaps
    a few others.

    Args:
        c: A write transaction.
        set_id: The golden set.
        frame: ``schema.JUDGMENTS`` without ``judgment``: ``query_id``, ``doc_id``, ``grade``,
            ``rater``, ``source``, ``time_us``, and perhaps ``state`` (``graded`` where there is a
            grade, else ``cannot_judge``), ``kind`` (``rating``), ``reason``, ``seconds``,
            ``guideline``, ``document_hash``.
        import_id: Number of the import (``imports.put``).

    Raises:
        InputError: what does not fit ``tables.Judgments``, or one rater judging a pair twice.
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
    if twice.any():
        row = checked.row(int(twice.arg_max() or 0), named=True)
        raise InputError(
            f"{row['rater']} judges the pair twice",
            file="imported judgments",
            query=row["query_id"],
            doc_id=row["doc_id"],
        )
    # Else one of them may submit or undo between what is read here and what is written.
    hold_raters(c, set_id, checked["rater"].unique())
    now_there = {
        tuple(row[name] for name in key): row
        for row in current(c, set_id).frame.iter_rows(named=True)
    }
    own = {new: old for old, new in _NAMES.items() if old != "id"}
    new, corrected = [], []
    for row in checked.iter_rows(named=True):
        old = now_there.get(tuple(row[name] for name in key))
        said = ("grade", "state") if row["reason"] is None else ("grade", "state", "reason")
        if old is not None and all(old[name] == row[name] for name in said):
            continue
        values = {own.get(name, name): value for name, value in row.items() if name != "judgment"}
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
        # A slot goes on holding what counts, so that an undo withdraws the correction.
        later = judgment.alias("later")
        successor = sa.select(later.c.id).where(later.c.supersedes == slot.c.judgment_id)
        of_set = sa.select(pair.c.id).where(pair.c.golden_set_id == set_id)
        c.execute(
            sa.update(slot)
            .where(slot.c.pair_id.in_(of_set), sa.exists(successor.correlate(slot)))
            .values(judgment_id=successor.correlate(slot).scalar_subquery())
        )
    return Recorded(len(new) - len(corrected), len(corrected))


def current(c: sa.Connection, set_id: int) -> Judgments:
    """The judgments that count now: nothing supersedes them, and they are not withdrawn."""
    declared = golden_sets.by_id(c, set_id)
    later = judgment.alias()
    chosen = (
        sa.select(*columns())
        .where(
            judgment.c.golden_set_id == set_id,
            judgment.c.state != "withdrawn",
            ~sa.exists().where(later.c.supersedes == judgment.c.id),
        )
        .order_by(judgment.c.id)
    )
    return Judgments(frame_of(c, chosen), declared.scale, f"golden set {declared.name}")


def history(c: sa.Connection, set_id: int, query_id: str, doc_id: str) -> pl.DataFrame:
    """Every fact about a pair, the first first, those that count no more among them.

    Returns:
        ``schema.JUDGMENTS`` (``state`` may be ``withdrawn``), ``supersedes``: number of the
        judgment that this one corrects or withdraws, ``import_id``, and ``counts``: whether it
        counts now.
    """
    chosen = sa.select(*columns(), *(judgment.c[name] for name in _FURTHER)).where(
        judgment.c.golden_set_id == set_id,
        judgment.c.query_id == query_id,
        judgment.c.doc_id == doc_id,
    )
    frame = frame_of(c, chosen.order_by(judgment.c.id), _FURTHER)
    gone = frame["supersedes"].drop_nulls().implode()
    counts = ~pl.col("judgment").is_in(gone) & (pl.col("state") != "withdrawn")
    return frame.with_columns(counts.alias("counts"))


def _apart(c: sa.Connection, pair_id: int) -> bool:
    """Whether the ratings of a pair that count now lie apart."""
    chosen = sa.select(pair.c.id).where(pair.c.id == pair_id, disagree())
    return c.execute(chosen).first() is not None


def superseded_by(c: sa.Connection, number: int) -> tuple[float | None] | None:
    """The grade that a judgment corrects, of one cell; None if it corrects none."""
    old = judgment.alias("old")
    chosen = sa.select(old.c.grade).join(judgment, judgment.c.supersedes == old.c.id)
    row = c.execute(chosen.where(judgment.c.id == number)).one_or_none()
    return None if row is None else (row.grade,)


def last_judged(c: sa.Connection, set_id: int) -> int | None:
    """When somebody last judged in a golden set, microseconds UTC; None if nobody has."""
    newest = sa.select(judgment.c.time_us).where(judgment.c.golden_set_id == set_id)
    return c.execute(newest.order_by(judgment.c.id.desc()).limit(1)).scalar_one_or_none()


def settled_by(c: sa.Connection, set_id: int, rater: str) -> tuple[float | None, ...]:
    """What each adjudication of a rater that counts took, in seconds, the oldest first."""
    later = judgment.alias()
    chosen = sa.select(judgment.c.seconds).where(
        judgment.c.golden_set_id == set_id,
        judgment.c.rater == rater,
        judgment.c.kind == "adjudication",
        judgment.c.state != "withdrawn",
        ~sa.exists().where(later.c.supersedes == judgment.c.id),
    )
    return tuple(c.execute(chosen.order_by(judgment.c.id)).scalars())


def _without_slot(
    c: sa.Connection, set_id: int, query_id: str, doc_id: str, rater: str
) -> int | None:
    """The rater's newest rating of a pair that counts and fills no slot, as an import's does."""
    values = {"set_id": set_id, "the_query": query_id, "the_doc": doc_id, "the_rater": rater}
    return c.execute(_slotless(), values).scalar_one_or_none()


@cache  # built once, as statements in ``slots``
def _slotless() -> sa.Select[int]:
    later = judgment.alias()
    chosen = sa.select(judgment.c.id).where(
        judgment.c.golden_set_id == sa.bindparam("set_id", type_=sa.BigInteger),
        judgment.c.query_id == sa.bindparam("the_query", type_=sa.Text),
        judgment.c.doc_id == sa.bindparam("the_doc", type_=sa.Text),
        judgment.c.rater == sa.bindparam("the_rater", type_=sa.Text),
        judgment.c.kind == "rating",
        judgment.c.state != "withdrawn",
        ~sa.exists().where(later.c.supersedes == judgment.c.id),
        ~sa.exists().where(slot.c.judgment_id == judgment.c.id),
    )
    return chosen.order_by(judgment.c.id.desc()).limit(1)


def columns() -> list[sa.ColumnElement[object]]:
    """What ``frame_of`` wants selected: ``schema.JUDGMENTS``, by its names."""
    inside = {new: old for old, new in _NAMES.items()}
    return [
        judgment.c[inside.get(column.name, column.name)].label(column.name) for column in JUDGMENTS
    ]


def frame_of(
    c: sa.Connection, chosen: sa.Select[*tuple[object, ...]], further: tuple[str, ...] = ()
) -> pl.DataFrame:
    """Judgments that were selected by ``columns``, and further whole numbers by their names."""
    schema = {column.name: column.dtype for column in JUDGMENTS}
    schema |= dict.fromkeys(further, pl.Int64())
    rows = [tuple(row) for row in c.execute(chosen)]
    return pl.DataFrame(rows, schema=schema, orient="row")
