"""The rules by which events become searches, sessions and metrics; each result names them."""

from __future__ import annotations

from dataclasses import dataclass, fields

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class Rules:
    """How long what may take; all in microseconds.

    Attributes:
        idle: A session ends when nothing is done for longer (Catledge and Pitkow 1995, rounded to
            30 minutes by habit; Jones and Klinkner, CIKM 2008, on what it costs).
        session: No session is longer.
        typing: A request that comes within this, one text a prefix of the other, is the same
            search being typed.
        reformulation: The next search within this may be a reformulation.
        satisfied: A click read for at least this is satisfied (Fox et al. 2005).
        quick_back: A click left within this is not.
        dwell: No dwell counts for longer.
        dwell_mean: The restricted mean of dwell is up to here.
        first_click_mean: The restricted mean of the time to the first click is up to here.
        answer: An answer is read if it is visible for at least this.
        cart: A cart belongs to a search at most this before it, in the same session.
        purchase: A purchase belongs to a search at most this before it; a search counts for
            conversion once that has passed.
    """

    idle: int = 30 * MINUTE
    session: int = 24 * HOUR
    typing: int = 3 * SECOND
    reformulation: int = 5 * MINUTE
    satisfied: int = 30 * SECOND
    quick_back: int = 10 * SECOND
    dwell: int = 30 * MINUTE
    dwell_mean: int = 10 * MINUTE
    first_click_mean: int = MINUTE
    answer: int = 5 * SECOND
    cart: int = 30 * MINUTE
    purchase: int = DAY

    @property
    def id(self) -> str:
        """The rules in one line, to stand beside each result: version, and what is not usual."""
        usual = Rules()
        said = [
            f"{each.name}={getattr(self, each.name) // SECOND}s"
            for each in fields(self)
            if getattr(self, each.name) != getattr(usual, each.name)
        ]
        return " ".join(["rules@1", *said])
