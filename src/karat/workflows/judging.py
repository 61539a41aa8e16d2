"""Judging: one rater at the queue, card by card; the terminal and the browser both sit on this."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from karat.errors import UsageError
from karat.golden.queue import progress_line
from karat.store import judgments, queue
from karat.store.queue import Claim
from karat.workflows.workspace import Opened

NOBODY = "import"
"""The rater of imported grades that name nobody; no person can be called that."""
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
        self, opened: Opened, rater: str, clock: Callable[[], int], *, adjudicate: bool = False
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
        with self.opened.store.begin() as connection:
            return judgments.submit(
                connection,
                self.opened.golden.id,
                card.claim.slot_id,
                self.rater,
                grade=grade,
                reason=reason,
                state="cannot_judge" if grade is None else "graded",
                seconds=seconds,
                now=self.clock(),
                token=card.token,
                shown=card.claim.document_sha256,
                guideline=card.claim.guideline,
            )

    def later(self, card: Card) -> None:
        """Put a pair off for an hour."""
        with self.opened.store.begin() as connection:
            until = self.clock() + LATER_US
            queue.later(connection, self.opened.golden.id, card.claim.slot_id, self.rater, until)

    def undo(self) -> Card | None:
        """Take the newest judgment back and show its pair again; None if there is none.

        Of a rater who adjudicates too, each desk takes back its own alone.
        """
        opened = self.opened
        with opened.store.begin() as connection:
            undone = judgments.undo(
                connection,
                opened.golden.id,
                self.rater,
                self.clock(),
                lease_us=opened.workspace.lease_us,
                kind=self.kind,
            )
        return None if undone is None else self._shown(undone.claim)

    def progress(self) -> str:
        """How far the rater is, in words."""
        if self.kind == "adjudication":
            return self._unsettled()
        opened = self.opened
        with opened.store.read() as connection:
            far = queue.progress(
                connection,
                opened.golden.id,
                self.rater,
                now=self.clock(),
                order=opened.workspace.order,
                golds=opened.workspace.golds,
            )
        line = progress_line(far.done, far.left, far.seconds)
        return f"{line}, {far.later} put off" if far.later else line

    def _unsettled(self) -> str:
        """How many disagreements wait for this adjudicator, as ``card`` would deal them."""
        with self.opened.store.read() as connection:
            count, later = queue.unsettled(
                connection, self.opened.golden.id, self.rater, self.clock()
            )
        line = f"{count:,} disagreement{' waits' if count == 1 else 's wait'} to be settled"
        if not count:
            line = "no disagreement waits for you"
        return f"{line}, {later:,} put off" if later else line

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
