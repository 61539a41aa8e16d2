"""Who comes when: heavy users, weekdays and hours as declared."""

from __future__ import annotations

import numpy as np

from karat.online.rules import DAY, HOUR
from karat.online.simulate.population import HOURS, WEEKDAYS, plan_visits, populate

MONDAY = 20_752  # 2026-10-26


def test_activity_follows_its_law() -> None:
    people = populate(100_000, 2, np.random.default_rng(1), tail=1.5)
    # Pareto from 1 on: P(activity > 4) = 4^-1.5 = .125.
    share = (people.activity > 4).mean()
    assert abs(share - 0.125) < 5 * np.sqrt(0.125 * 0.875 / 100_000)
    assert people.activity.min() >= 1
    assert people.activity.max() == 200
    assert people.user_id.n_unique() == 100_000
    assert abs(people.arm.mean() - 0.5) < 0.01


def test_two_populations_share_nobody() -> None:
    rng = np.random.default_rng(1)
    one, other = populate(50, 1, rng), populate(50, 1, rng)
    assert not set(one.user_id) & set(other.user_id)
    assert one.mark != other.mark


def test_weekdays_and_hours_are_as_declared() -> None:
    rng = np.random.default_rng(4)
    people = populate(500, 1, rng)
    visits = plan_visits(people, MONDAY, 70, 1_000.0, rng)
    total = len(visits.start)
    assert abs(total - 70_000) < 5 * np.sqrt(70_000)
    assert (visits.start // DAY - MONDAY == visits.day).all()
    weekday = np.bincount(visits.day % 7, minlength=7)
    wanted = 10_000 * np.array(WEEKDAYS) / np.mean(WEEKDAYS)
    assert (np.abs(weekday - wanted) < 5 * np.sqrt(wanted)).all()
    hour = np.bincount(visits.start % DAY // HOUR, minlength=24)
    chance = np.array(HOURS) / sum(HOURS)
    assert (np.abs(hour / total - chance) < 5 * np.sqrt(chance / total)).all()
    # By user, then by time.
    step = np.diff(visits.user)
    assert (step >= 0).all()
    assert (np.diff(visits.start)[step == 0] >= 0).all()
    # The most active tenth has far more than a tenth of the sessions.
    counts = np.sort(np.bincount(visits.user, minlength=500))
    assert counts[-50:].sum() > 0.25 * total
