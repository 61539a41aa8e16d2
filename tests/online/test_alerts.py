"""What a watch changes in alerts: one alert for one cause, however long, and its states."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.watches import (
    FRIDAY_ENDS,
    HOWTO,
    ONSET,
    SATURDAY_NOON,
    cause,
    change,
    usual,
    watched,
)

from karat.online.alerts import AGAIN, KARAT, KnownAlert, key_of, state_of, steps
from karat.online.rules import DAY, HOUR
from karat.tables.online.alerts import AlertAction, Did
from karat.tables.online.watch import Explained, Watched

KEY = key_of(Explained("ZeroResults", HOWTO, None))


def known(closed_us: int | None = None, **more: object) -> KnownAlert:
    made = KnownAlert(1, KEY, FRIDAY_ENDS, closed_us, 24, cause())
    return replace(made, **more)  # type: ignore[arg-type]


def kinds(there: list[KnownAlert], found: Watched, ended: int | None = None) -> list[str]:
    return [step.kind for step in steps(there, found, {} if ended is None else {KEY: ended})]


def test_a_cause_opens_one_alert_which_is_seen_again_and_over() -> None:
    assert kinds([], watched()) == ["open"]
    assert kinds([known()], watched(ends_us=FRIDAY_ENDS + DAY)) == ["see"]
    assert kinds([known()], usual(FRIDAY_ENDS + DAY)) == ["close"]
    assert kinds([], usual()) == []


def test_the_same_alert_whatever_leads() -> None:
    abandonment = change("Abandonment")
    other = cause(abandonment, Explained("ZeroResults", HOWTO, 0.9))
    [step] = steps([known()], watched([other], ends_us=FRIDAY_ENDS + DAY), {})
    assert (step.kind, step.key) == ("see", KEY)
    assert step.cause is not None
    # Its own change leads, and what led before is explained.
    assert (step.cause.lead.metric, step.cause.lead.slice) == ("ZeroResults", HOWTO)
    assert [(e.metric, e.slice) for e in step.cause.explains] == [("Abandonment", HOWTO)]
    assert step.cause.onset == known().cause.onset, "that of its own metric"


def test_what_an_alert_explains_is_no_other_one() -> None:
    # In a smaller window the class has too few users, and all searches are worse.
    whole = watched([cause(change(part={}), Explained("CTR", {}, 1.0))], ends_us=FRIDAY_ENDS + DAY)
    assert kinds([known()], whole) == ["see"]
    assert kinds([], whole) == ["open"]
    # Of the class it is known that it is usual again: it is something else.
    other = change(verdict="usual", value=0.05)
    assert kinds([known()], replace(whole, changes=[*whole.changes, other])) == ["open", "close"]


def test_the_onset_stays_once_it_is_known() -> None:
    later = replace(ONSET, at="2026-11-20 05:00")
    [step] = steps([known()], watched([cause(onset=later)], ends_us=FRIDAY_ENDS + DAY), {})
    assert step.cause is not None
    assert step.cause.onset is not None
    assert step.cause.onset.at == "2026-11-20 03:00"
    unknown = replace(ONSET, at=None, reason="it may have begun before 2026-11-20 00:00")
    [step] = steps([known(cause=cause(onset=unknown))], watched([cause(onset=later)]), {})
    assert step.cause is not None
    assert step.cause.onset is not None
    assert step.cause.onset.at == "2026-11-20 05:00"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (usual(FRIDAY_ENDS - HOUR), "it ended before the window that saw it"),
        (usual(FRIDAY_ENDS + DAY, 6), "it is shorter than those that saw it"),
        (watched([], [change(verdict="cannot_tell")]), "it cannot tell"),
        (watched([], []), "it did not test it"),
    ],
)
def test_what_does_not_close_an_alert(found: Watched, why: str) -> None:
    assert kinds([known()], found) == [], why


def test_what_comes_back() -> None:
    over = known(closed_us=FRIDAY_ENDS + DAY)
    again = FRIDAY_ENDS + 2 * DAY
    assert kinds([over], watched(ends_us=again)) == ["reopen"]
    # The store gives only alerts that were over less than AGAIN ago: then it is a new one.
    assert over.closed_us is not None
    assert over.closed_us >= again - AGAIN
    # A day's watch that comes after the hours' saw the end is of the same incident.
    assert kinds([over], watched(ends_us=FRIDAY_ENDS + DAY)) == []
    assert kinds([over], watched(ends_us=again), ended=FRIDAY_ENDS + DAY) == []
    assert kinds([over], watched(ends_us=again), ended=FRIDAY_ENDS + DAY + HOUR) == ["reopen"]


def act(action: Did, person: str = "eve", until_us: int | None = None) -> AlertAction:
    return AlertAction(0, person, action, until_us, "")


def test_states() -> None:
    def state(*actions: AlertAction, closed_us: int | None = None) -> object:
        return state_of(actions, closed_us, 100)

    muted = act("muted", until_us=200)
    assert state() == ("open", None)
    assert state(act("acknowledged")) == ("acknowledged", None)
    assert state(muted) == ("muted", 200)
    assert state(act("muted", until_us=100)) == ("open", None)  # its time is over
    assert state(act("acknowledged"), act("muted", until_us=9)) == ("acknowledged", None)
    assert state(muted, act("resolved")) == ("resolved", None)
    assert state(act("resolved"), closed_us=50) == ("resolved", None)
    assert state(act("acknowledged"), closed_us=50) == ("over", None)
    # A person undoes all of it; what comes back by itself stays muted, and is not resolved.
    assert state(muted, act("reopened")) == ("open", None)
    assert state(muted, act("resolved"), act("reopened", KARAT)) == ("muted", 200)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=12))
def test_of_a_key_at_most_one_alert_lasts(runs: list[tuple[bool, int]]) -> None:
    """Whatever watches see, in any order of their windows: alerts that last have other keys."""
    there: list[KnownAlert] = []
    for worse, days in runs:
        end = SATURDAY_NOON + days * DAY
        recent = [e for e in there if e.closed_us is None or e.closed_us >= end - AGAIN]
        for step in list(steps(recent, watched(ends_us=end) if worse else usual(end), {})):
            if step.alert is None:
                assert step.cause is not None
                there.append(KnownAlert(len(there), step.key, end, None, 24, step.cause))
                continue
            closed = end if step.kind == "close" else None
            seen = step.alert.seen_us if step.kind == "close" else end
            there[step.alert.id] = replace(step.alert, closed_us=closed, seen_us=seen)
        lasting = [each.key for each in there if each.closed_us is None]
        assert len(lasting) == len(set(lasting)) <= 1
