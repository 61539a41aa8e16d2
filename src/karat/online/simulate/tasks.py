"""People with needs: what they type, are shown, look at and click, until they have it or give up.

All needs take their first request at once, then those that are left their second, and so on: a
round is one set of arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from karat.online.rules import SECOND
from karat.online.simulate.behaviours import ERROR, OK, PAGE, TIMEOUT, Behaviour, Habits
from karat.online.simulate.shelf import Shelf
from karat.online.simulate.wording import ADD, FIRST, NEXT, OWN, REORDER

ZERO, WORSE = 1, 2
_HIT = (OWN, ADD, REORDER)  # wordings that a broken synonym takes everything from
_STROKES = 4
_MOST_READ = 900.0  # seconds: a page left open longer would end the session
SATISFIED = 30.0  # seconds that a satisfying document is read at least, and no other is
TILL = 20.0  # seconds from the cart to the till


@dataclass(frozen=True)
class Needs:
    """What people come with; arrays of one length."""

    query: NDArray[np.int64]  # place of the query on the shelf
    arm: NDArray[np.int8]
    broken: NDArray[np.int8]  # `ZERO`, `WORSE`, or 0 for a query that works
    instant: NDArray[np.bool_]  # whether the page searches while they type


@dataclass(frozen=True)
class Requests:
    """Requests and their outcomes; n rows, by need and then in time. k is ``PAGE``."""

    need: NDArray[np.int64]
    number: NDArray[np.int64]  # of the request among those of its need, from 0
    wording: NDArray[np.int64]  # number of the wording, in `WORDINGS`
    page: NDArray[np.int64]  # from 1
    filtered: NDArray[np.bool_]
    status: NDArray[np.int8]  # `OK`, `ERROR` or `TIMEOUT`
    latency_us: NDArray[np.int64]  # time to the answer
    strokes: NDArray[np.int64]  # keystroke requests before it
    stroke_us: NDArray[np.int64]  # time between these
    matched: NDArray[np.int64]  # documents that matched, as served
    raw: NDArray[np.int64]  # the same before any fallback
    found: NDArray[np.int32]  # places of the documents shown, -1 where there is none; shape (n, k)
    gain: NDArray[np.float32]  # of those; shape (n, k)
    examined: NDArray[np.bool_]  # what was looked at; shape (n, k)
    clicked: NDArray[np.bool_]  # what was clicked; shape (n, k)
    satisfied: NDArray[np.bool_]  # which click satisfied; shape (n, k)
    click_us: NDArray[np.int64]  # when, from the request; shape (n, k)
    dwell_us: NDArray[np.int64]  # how long it was read; shape (n, k)
    carted: NDArray[np.bool_]  # what was put into the cart, when it had been read; shape (n, k)
    bought: NDArray[np.bool_]  # what of that was bought, `TILL` later; shape (n, k)
    answered: NDArray[np.bool_]  # whether an answer was visible
    answer_read: NDArray[np.bool_]  # whether that was enough
    pause_us: NDArray[np.int64]  # from the end of what was before to the first key
    length_us: NDArray[np.int64]  # from the first key to the end of the last thing read

    def at(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Requests:
        """Some of them."""
        return Requests(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})


def pursue(
    shelf: Shelf, needs: Needs, behaviour: Behaviour, habits: Habits, rng: np.random.Generator
) -> Requests:
    """Let people pursue their needs.

    Args:
        shelf: What can be asked and what is shown.
        needs: What they come with.
        behaviour: How they click.
        habits: What else they do.
        rng: Draws.
    """
    rounds = list(_rounds(shelf, needs, behaviour, habits, rng))
    joined = {
        each.name: np.concatenate([getattr(done, each.name) for done in rounds])
        for each in fields(Requests)
    }
    made = Requests(**joined)
    return made.at(np.lexsort((made.number, made.need)))


def _rounds(
    shelf: Shelf, needs: Needs, behaviour: Behaviour, habits: Habits, rng: np.random.Generator
) -> Iterator[Requests]:
    need = np.arange(len(needs.query))
    wording = _wording(shelf, needs.query, np.broadcast_to(FIRST, (len(need), len(FIRST))), rng)
    page = np.ones(len(need), np.int64)
    filtered = np.zeros(len(need), bool)
    typed = np.ones(len(need), bool)
    answering = rng.random(len(shelf.weight)) < habits.answers
    for number in range(habits.rounds):
        done = _ask(
            shelf, needs, behaviour, habits, rng, need, number, wording, page, filtered, typed,
            answering,
        )  # fmt: skip
        yield done
        has_it = done.satisfied.any(axis=1) | done.answer_read
        failed = done.status != OK
        luck = rng.random(len(need))
        retries = failed & (luck < habits.retry)
        more = ~failed & (done.found[:, -1] >= 0) & (page < 3) & (done.matched > page * PAGE)
        left = ~has_it & ~failed
        turns = left & more & (luck < habits.page_on)
        narrows = left & ~turns & ~filtered & (done.found[:, 0] >= 0)
        narrows &= (luck >= habits.page_on) & (luck < habits.page_on + habits.narrow)
        other = _wording(shelf, needs.query[need], NEXT[wording], rng)
        low = habits.page_on + habits.narrow
        rewords = left & ~turns & ~narrows & (luck >= low) & (luck < low + habits.reformulate)
        rewords &= other >= 0
        goes_on = retries | turns | narrows | rewords
        wording = np.where(rewords, other, wording)[goes_on]
        page = np.where(turns, page + 1, np.where(retries, page, 1))[goes_on]
        filtered = np.where(rewords, False, filtered | narrows)[goes_on]
        typed, need = rewords[goes_on], need[goes_on]
        if not len(need):
            return


def _wording(
    shelf: Shelf, query: NDArray[np.int64], chance: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A wording that there is, by chances of shape (n, wordings); -1 if no chance is left."""
    upto = np.cumsum(chance * shelf.has[query], axis=1)
    drawn = rng.random(len(query)) * upto[:, -1]
    found = np.minimum((upto <= drawn[:, None]).sum(axis=1), upto.shape[1] - 1)
    return np.where(upto[:, -1] > 0, found, -1)


def _ask(
    shelf: Shelf,
    needs: Needs,
    behaviour: Behaviour,
    habits: Habits,
    rng: np.random.Generator,
    need: NDArray[np.int64],
    number: int,
    wording: NDArray[np.int64],
    page: NDArray[np.int64],
    filtered: NDArray[np.bool_],
    typed: NDArray[np.bool_],
    answering: NDArray[np.bool_],
) -> Requests:
    n = len(need)
    query, arm = needs.query[need], needs.arm[need]
    status = _status(habits, arm, rng)
    found, gain, matched, raw = _page(shelf, query, arm, wording, page, filtered)
    broken = needs.broken[need]
    silent = (broken == ZERO) & np.isin(wording, _HIT)
    matched = np.where(silent | (status != OK), 0, matched)
    raw = np.where(silent | (status != OK), 0, raw)
    found = np.where((silent | (status != OK))[:, None], -1, found)
    upside = broken == WORSE
    found[upside], gain[upside] = _reversed(found[upside], gain[upside])
    shown = found >= 0
    looked = behaviour.look(gain, shown, rng)
    answered = answering[query] & (status == OK) & (page == 1)
    read = answered & (rng.random(n) < habits.reads_answer)
    quiet = ~read[:, None]  # who has the answer clicks nothing
    clicked, satisfied = looked.clicked & quiet, looked.satisfied & quiet

    latency = _latency(habits, arm, status, rng)
    glance = _lognormal(rng, (n, found.shape[1]), 1.2, 0.5) * looked.examined
    # A click takes time to decide on, even on a document that no other user looked at.
    dwell = np.where(
        satisfied,
        SATISFIED + 0.5 + _lognormal(rng, found.shape, 60.0, 0.9),
        np.minimum(_lognormal(rng, found.shape, 7.0, 0.8), SATISFIED - 0.5),
    )
    dwell = np.where(clicked, np.minimum(dwell, _MOST_READ), 0.0)
    before = np.cumsum(dwell, axis=1) - dwell
    click = (latency / SECOND)[:, None] + 0.8 + np.cumsum(glance, axis=1) + before
    spent = (latency / SECOND) + 0.8 + glance.sum(axis=1) + dwell.sum(axis=1)
    spent = np.where(read, np.maximum(spent, 6.0 + _lognormal(rng, (n,), 8.0, 0.6)), spent)
    carted = satisfied & (rng.random(found.shape) < habits.carts)
    bought = carted & (rng.random(found.shape) < habits.purchases)
    spent = spent + np.where(carted.any(axis=1), 2 * TILL, 0.0)
    strokes = np.where(needs.instant[need] & typed & (page == 1), rng.integers(1, _STROKES, n), 0)
    stroke_us = rng.integers(150_000, 900_000, n)
    # No user reformulates within three seconds; what comes sooner is the same text being typed.
    thinks, turns = 3.2 + _lognormal(rng, (n,), 3.0, 0.7), _lognormal(rng, (n,), 1.5, 0.4)
    pause = np.where(typed, thinks, turns)
    return Requests(
        need=need,
        number=np.full(n, number),
        wording=wording,
        page=page,
        filtered=filtered,
        status=status,
        latency_us=latency,
        strokes=strokes,
        stroke_us=stroke_us,
        matched=matched.astype(np.int64),
        raw=raw.astype(np.int64),
        found=found,
        gain=gain,
        examined=looked.examined,
        clicked=clicked,
        satisfied=satisfied,
        click_us=(click * SECOND).astype(np.int64),
        dwell_us=(dwell * SECOND).astype(np.int64),
        carted=carted,
        bought=bought,
        answered=answered,
        answer_read=read,
        pause_us=(np.minimum(pause, 120.0) * SECOND).astype(np.int64),
        length_us=(spent * SECOND).astype(np.int64) + strokes * stroke_us,
    )


def _page(
    shelf: Shelf,
    query: NDArray[np.int64],
    arm: NDArray[np.int8],
    wording: NDArray[np.int64],
    page: NDArray[np.int64],
    filtered: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int32], NDArray[np.int32]]:
    """What is shown: places of documents, their gains, and how many matched."""
    places = (page[:, None] - 1) * PAGE + np.arange(PAGE)
    inside = places < shelf.found.shape[3]
    places = np.minimum(places, shelf.found.shape[3] - 1)
    at = (arm[:, None], query[:, None], wording[:, None], places)
    found = np.where(inside, shelf.found[at], -1)
    gain = shelf.gain[at]
    matched = shelf.matched[arm, query, wording]
    raw = shelf.raw[arm, query, wording]
    if filtered.any():
        whole = shelf.found[arm[filtered], query[filtered], wording[filtered]]
        # Which documents a filter keeps hangs on document and query alone.
        keep = (whole >= 0) & ((whole * 7919 + query[filtered, None] * 104_729) % 3 == 0)
        order = np.argsort(~keep, axis=1, kind="stable")[:, :PAGE]
        kept = np.take_along_axis(keep, order, axis=1)
        found[filtered] = np.where(kept, np.take_along_axis(whole, order, axis=1), -1)
        gains = shelf.gain[arm[filtered], query[filtered], wording[filtered]]
        gain[filtered] = np.take_along_axis(gains, order, axis=1)
        matched, raw = matched.copy(), raw.copy()
        matched[filtered] = raw[filtered] = keep.sum(axis=1)
    return found, np.where(found >= 0, gain, 0).astype(np.float32), matched, raw


def _reversed(
    found: NDArray[np.int32], gain: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Each page upside down; places without a result stay last."""
    places = np.arange(found.shape[1])
    count = (found >= 0).sum(axis=1, keepdims=True)
    order = np.where(places < count, count - 1 - places, places)
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(gain, order, axis=1)


def _status(habits: Habits, arm: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    errors, timeouts = _by_arm(habits.errors, arm), _by_arm(habits.timeouts, arm)
    luck = rng.random(len(arm))
    status = np.where(luck < errors, ERROR, np.where(luck < errors + timeouts, TIMEOUT, OK))
    return status.astype(np.int8)


def _latency(
    habits: Habits, arm: NDArray[np.int8], status: NDArray[np.int8], rng: np.random.Generator
) -> NDArray[np.int64]:
    drawn = _by_arm(habits.latency_ms, arm) * np.exp(
        habits.latency_spread * rng.standard_normal(len(arm))
    )
    slow = np.where(status == TIMEOUT, habits.timeout_ms, np.minimum(drawn, habits.timeout_ms))
    return (slow * 1000).astype(np.int64)


def _by_arm(values: tuple[float, ...], arm: NDArray[np.int8]) -> NDArray[np.float64]:
    return np.asarray(values)[arm % len(values)]


def _lognormal(
    rng: np.random.Generator, shape: tuple[int, ...], median: float, spread: float
) -> NDArray[np.float64]:
    drawn: NDArray[np.float64] = np.exp(spread * rng.standard_normal(shape)) * median
    return drawn
