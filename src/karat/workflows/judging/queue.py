"""One rater at the judging queue, card by card; used by the terminal and the browser."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from karat.errors import UsageError
from karat.formats.own.passports import certified
from karat.golden.queue import Claim, Progress, pair_key, progress_line
from karat.store.sql import judgments, queue, slots
from karat.tables.judgments import MACHINE, UNNAMED_RATER
from karat.workflows.workspace.workspace import Workspace

LATER_US = 3_600_000_000  # a pair that is put off returns after an hour


@dataclass(frozen=True)
class Vote:
    """A rater's judgment as shown to an adjudicator: without a name."""

    grade: float | None  # the grade; None if it could not be judged
    reason: str | None  # in the rater's words, or why it could not be judged; None if not given


@dataclass(frozen=True)
class Card:
    """What a rater sees: never ranks or systems, and only for an adjudicator others' judgments."""

    claim: Claim  # the pair with its texts, leased to the rater
    votes: list[Vote]  # in an adjudication the raters' judgments, lowest grade first; else empty
    token: str  # idempotency key of this card: a submission sent twice counts once


@dataclass(frozen=True)
class Undone:
    card: Card  # its pair, shown again
    grade: float | None  # its grade; None if it could not be judged
    reason: str | None


@dataclass(frozen=True)
class MachineVote:
    """A machine's judgment, which an adjudicator sees after their own."""

    rater: str  # name and version of the judge
    certified: bool  # whether its passport certifies it
    grade: float | None
    reason: str | None


class Judging:
    def __init__(
        self, opened: Workspace, rater: str, clock: Callable[[], int], *, adjudicate: bool = False
    ) -> None:
        if not rater.strip():
            raise UsageError("the rater has no name", fix="--rater NAME")
        if rater.strip().casefold() == UNNAMED_RATER:
            raise UsageError(
                f"{rater.strip()!r} is reserved for imported grades without a rater",
                fix="--rater NAME, another name",
            )
        self.opened, self.rater, self.clock = opened, rater.strip(), clock
        self.kind = "adjudication" if adjudicate else "rating"

    def card(self) -> Card | None:
        """The next pair; None if nothing waits for this rater.

        A pair that was shown but not judged comes first, so a rater may stop at any time.
        """
        opened = self.opened
        with opened.store.begin() as connection:
            claim = queue.claim(
                connection,
                opened.golden.id,
                self.rater,
                now=self.clock(),
                lease_us=opened.workspace.lease_us,
                order=opened.workspace.order,
                kind=self.kind,
                golds=opened.workspace.golds,
            )
        return None if claim is None else self._shown(claim)

    def submit(
        self,
        card: Card,  # the card that was judged
        grade: float | None,  # the grade; None if it cannot be judged, and then `reason` says why
        reason: str | None = None,  # in the rater's words, or one of `karat.golden.queue.REASONS`
        *,
        seconds: float | None = None,  # how long it took
    ) -> int:
        claim = card.claim
        return self.record(
            claim.slot_id,
            card.token,
            grade,
            reason,
            seconds=seconds,
            shown=claim.document_sha256,
            guideline=claim.guideline,
            pair_shown=pair_key(claim.query_id, claim.doc_id),
        )

    def record(
        self,
        slot_id: int,
        token: str,
        grade: float | None,
        reason: str | None = None,
        **about: Any,
    ) -> int:
        """As ``submit``, by the fields of a form; ``about`` as in ``judgments.submit``.

        Only the newest judgment can be corrected this way; undo leads to earlier ones.
        """
        with self.opened.store.begin() as connection:
            return judgments.submit(
                connection,
                self.opened.golden.id,
                slot_id,
                self.rater,
                grade=grade,
                reason=reason,
                state="cannot_judge" if grade is None else "graded",
                now=self.clock(),
                token=token or None,
                newest_only=True,
                **about,
            )

    def corrected(self, number: int) -> str | None:
        """The earlier grade that a judgment corrects, as text; ``cannot judge``, or None."""
        with self.opened.store.read() as connection:
            old = judgments.superseded_by(connection, number)
        if old is None:
            return None
        return "cannot judge" if old[0] is None else f"{old[0]:g}"

    def later(self, slot_id: int) -> None:
        """Put a pair off for an hour."""
        with self.opened.store.begin() as connection:
            now = self.clock()
            key = (self.opened.golden.id, slot_id, self.rater)
            queue.later(connection, *key, now + LATER_US, now)

    def newest(self) -> int | None:
        """Id of the judgment that ``undo`` would undo; None if there is none."""
        with self.opened.store.read() as connection:
            return queue.newest(connection, self.opened.golden.id, self.rater, self.kind)

    def machines(self, number: int) -> list[MachineVote]:
        """What machines say of the pair of a judgment that was given."""
        with self.opened.store.read() as connection:
            history = judgments.history_of(connection, self.opened.golden.id, number)
        said = history.filter("counts", pl.col("source") == MACHINE)
        passed = certified(self.opened.workspace.root)
        is_certified = pl.col("rater").is_in(list(passed)).alias("certified")
        rows = said.select("rater", is_certified, "grade", "reason")
        return [MachineVote(*row) for row in rows.iter_rows()]

    def undo(self, only: int | None = None) -> Undone | None:
        """Undo the newest judgment and show its pair again; None if there is none.

        Ratings and adjudications of one person are undone separately.

        Args:
            only: Undo only the judgment with this id (``newest``), so a repeated request undoes
                one; None for any.
        """
        opened = self.opened
        with opened.store.begin() as connection:
            key = (opened.golden.id, self.rater)
            slots.hold_rater(connection, *key)
            if only is not None and only != queue.newest(connection, *key, self.kind):
                return None
            undone = judgments.undo(
                connection,
                opened.golden.id,
                self.rater,
                self.clock(),
                lease_us=opened.workspace.lease_us,
                kind=self.kind,
            )
        if undone is None:
            return None
        return Undone(self._shown(undone.claim), undone.grade, undone.reason)

    def progress(self) -> str:
        done = self.far()
        if self.kind == "adjudication":
            open_now = done.left - done.later
            line = f"{open_now:,} disagreement{'' if open_now == 1 else 's'} to settle"
            if not open_now:
                line = "no disagreements to settle"
        else:
            line = progress_line(done.done, done.left, done.seconds)
        return f"{line}, {done.later:,} put off" if done.later else line

    def far(self) -> Progress:
        """The rater's progress; an adjudicator's counts disagreements settled and open."""
        if self.kind == "adjudication":
            return self._settled()
        opened = self.opened
        with opened.store.read() as connection:
            return queue.progress(
                connection,
                opened.golden.id,
                self.rater,
                now=self.clock(),
                order=opened.workspace.order,
                golds=opened.workspace.golds,
            )

    def _settled(self) -> Progress:
        """Disagreements settled, and those that ``card`` would show this adjudicator."""
        golden = self.opened.golden
        with self.opened.store.read() as connection:
            count, later = queue.unsettled(connection, golden.id, self.rater, self.clock())
            settled = judgments.settled_by(connection, golden.id, self.rater)
        done, left = len(settled), count + later
        return Progress(done, left, done + left, later, settled[-50:])

    def _shown(self, claim: Claim) -> Card:
        votes: list[Vote] = []
        if claim.kind == "adjudication":
            with self.opened.store.read() as connection:
                history = judgments.history(
                    connection, self.opened.golden.id, claim.query_id, claim.doc_id
                )
            # An imported grade without a rater may be what the raters contradict.
            ratings = history.filter(
                "counts", pl.col("kind") == "rating", pl.col("source").is_in(["human", "import"])
            )
            reason = pl.coalesce("reason", pl.when(source="import").then(pl.lit("imported")))
            rows = ratings.sort("grade", "judgment", nulls_last=True).select("grade", reason)
            votes = [Vote(*row) for row in rows.iter_rows()]
        return Card(claim, votes, secrets.token_hex(16))
