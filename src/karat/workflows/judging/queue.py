"""Judging: one rater at the queue, card by card; the terminal and the browser both sit on this."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from karat.errors import UsageError
from karat.golden.queue import progress_line
from karat.store.sql import judgments, queue, slots
from karat.store.sql.queue import Claim, Progress
from karat.tables.judgments import NOBODY
from karat.workflows.workspace.workspace import Workspace

LATER_US = 3_600_000_000
"""For how long a pair that was put off stays away: an hour."""


@dataclass(frozen=True)
class Vote:
    """What a rater said, as an adjudicator sees it: without a name.

    Attributes:
        grade: The grade; None if it could not be judged.
        reason: In the rater's words, or why it could not be judged; None if nothing was said.
    """

    grade: float | None
    reason: str | None


@dataclass(frozen=True)
class Card:
    """What a rater sees: never ranks, systems, or, but for an adjudicator, what others said.

    Attributes:
        claim: The pair, with its texts, the rater's own for a while.
        votes: In an adjudication what the raters said, the lowest grade first; else empty.
        token: Names this showing of the card, so that a submission sent twice counts once.
    """

    claim: Claim
    votes: list[Vote]
    token: str


@dataclass(frozen=True)
class TakenBack:
    """A judgment that was taken back.

    Attributes:
        card: Its pair, shown again.
        grade: What it said; None if it could not be judged.
        reason: Its reason.
    """

    card: Card
    grade: float | None
    reason: str | None


class Judging:
    """A rater at the queue.

    Args:
        opened: The workspace.
        rater: Who judges.
        clock: Gives microseconds UTC, now.
        adjudicate: Whether disagreements are wanted, rather than pairs to rate.

    Raises:
        UsageError: the rater has no name, or that of imported grades of nobody.
    """

    def __init__(
        self, opened: Workspace, rater: str, clock: Callable[[], int], *, adjudicate: bool = False
    ) -> None:
        if not rater.strip():
            raise UsageError("the rater has no name", fix="--rater NAME")
        if rater.strip().casefold() == NOBODY:
            raise UsageError(
                f"{rater.strip()!r} is what imported grades are called that name nobody",
                fix="--rater NAME, with another name",
            )
        self.opened, self.rater, self.clock = opened, rater.strip(), clock
        self.kind = "adjudication" if adjudicate else "rating"

    def card(self) -> Card | None:
        """The next pair; None if nothing waits for this rater.

        A pair that was shown and not judged comes first, so that one may stop at any time.
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
        card: Card,
        grade: float | None,
        reason: str | None = None,
        *,
        seconds: float | None = None,
    ) -> int:
        """Record a judgment; when this returns, it is in the store.

        Args:
            card: What was judged.
            grade: The grade; None if it cannot be judged, and then ``reason`` says why.
            reason: In the rater's words, or one of ``karat.golden.queue.REASONS``.
            seconds: How long it took.

        Returns:
            Its number.

        Raises:
            UsageError: no such grade or reason, or the lease ran out and another has the pair.
        """
        claim = card.claim
        return self.record(
            claim.slot_id,
            card.token,
            grade,
            reason,
            seconds=seconds,
            shown=claim.document_sha256,
            guideline=claim.guideline,
            pair_shown=judgments.pair_key(claim.query_id, claim.doc_id),
        )

    def record(
        self,
        slot_id: int,
        token: str,
        grade: float | None,
        reason: str | None = None,
        *,
        seconds: float | None = None,
        shown: str | None = None,
        guideline: str | None = None,
        pair_shown: str | None = None,
    ) -> int:
        """As ``submit``, for a card that went out and of which this came back.

        An answer of the newest card that was judged may be corrected so; for one further back, an
        undo leads there.

        Raises:
            Overtaken: another pair was judged since, or what is sent again was taken back.
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
                seconds=seconds,
                now=self.clock(),
                token=token or None,
                shown=shown,
                guideline=guideline,
                pair_shown=pair_shown,
                newest_only=True,
            )

    def corrected(self, number: int) -> str | None:
        """What a judgment corrects: the grade as a text, or ``cannot judge``; None for nothing."""
        with self.opened.store.read() as connection:
            old = judgments.superseded_by(connection, number)
        if old is None:
            return None
        return "cannot judge" if old[0] is None else f"{old[0]:g}"

    def later(self, card: Card) -> None:
        """Put a pair off for an hour."""
        self.put_off(card.claim.slot_id)

    def put_off(self, slot_id: int) -> None:
        """As ``later``, for a card that went out and of which this came back."""
        with self.opened.store.begin() as connection:
            now = self.clock()
            held = (self.opened.golden.id, slot_id, self.rater)
            queue.later(connection, *held, now + LATER_US, now)

    def undo(self) -> Card | None:
        """Take the newest judgment back and show its pair again; None if there is none.

        Of a rater who adjudicates too, each desk takes back its own alone.
        """
        taken = self.take_back()
        return None if taken is None else taken.card

    def newest(self) -> int | None:
        """Number of the judgment that ``undo`` would take back; None if there is none."""
        with self.opened.store.read() as connection:
            return queue.newest(connection, self.opened.golden.id, self.rater, self.kind)

    def take_back(self, only: int | None = None) -> TakenBack | None:
        """As ``undo``, and what was said.

        Args:
            only: Take it back only if it has this number (``newest``), so that an undo that was
                sent twice is one; None for whichever it is.
        """
        opened = self.opened
        with opened.store.begin() as connection:
            held = (opened.golden.id, self.rater)
            slots.hold_rater(connection, *held)
            if only is not None and only != queue.newest(connection, *held, self.kind):
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
        return TakenBack(self._shown(undone.claim), undone.grade, undone.reason)

    def progress(self) -> str:
        """How far the rater is, in words."""
        far = self.far()
        if self.kind == "adjudication":
            now = far.left - far.later
            line = f"{now:,} disagreement{' waits' if now == 1 else 's wait'} to be settled"
            if not now:
                line = "no disagreement waits for you"
        else:
            line = progress_line(far.done, far.left, far.seconds)
        return f"{line}, {far.later:,} put off" if far.later else line

    def far(self) -> Progress:
        """How far the rater is; of an adjudicator, by the disagreements settled and waiting."""
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
        """Disagreements settled, and those that ``card`` would deal this adjudicator."""
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
                said = judgments.history(
                    connection, self.opened.golden.id, claim.query_id, claim.doc_id
                )
            # An imported grade of nobody named may be what the raters contradict.
            rated = said.filter(
                "counts", pl.col("kind") == "rating", pl.col("source").is_in(["human", "import"])
            )
            reason = pl.coalesce("reason", pl.when(source="import").then(pl.lit("imported")))
            rows = rated.sort("grade", "judgment", nulls_last=True).select("grade", reason)
            votes = [Vote(*row) for row in rows.iter_rows()]
        return Card(claim, votes, secrets.token_hex(16))
