"""Tries to come in: what many of them cost, by a clock that is handed in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from karat.store.sql.opening import Store, open_store
from karat.workflows.accounts._rate_limit import CROWD, cancel, forgive, try_of, wait

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store in which nobody has tried anything."""
    made = open_store(f"sqlite:///{tmp_path / 'karat.db'}", make=True)
    yield made
    made.dispose()


def guess(store: Store, name: str, address: str, now: int = NOW) -> int:
    """A wrong try: the seconds it has to wait."""
    with store.begin() as c:
        return wait(c, try_of(name, address, now))


def test_waits_double_up_to_a_quarter_of_an_hour_and_are_forgotten_after_an_hour(
    store: Store,
) -> None:
    now = NOW
    assert [guess(store, "ann", "192.0.2.1", now) for _ in range(5)] == [0] * 5
    waits = []
    for _ in range(11):
        waits.append(guess(store, "ann", "192.0.2.1", now))
        assert guess(store, "ann", "192.0.2.1", now + waits[-1] * SECOND - 1) == 1
        now += waits[-1] * SECOND
        assert guess(store, "ann", "192.0.2.1", now) == 0
    # 1 + 2 + … + 512 s are 1,023 s, and 900 s more: all of it within the hour.
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900]
    assert guess(store, "ann", "192.0.2.1", now + 3600 * SECOND) == 0


def test_a_wait_is_not_made_longer_by_asking_again(store: Store) -> None:
    for _ in range(5):
        guess(store, "ann", "192.0.2.1")
    assert [guess(store, "ann", "192.0.2.1") for _ in range(20)] == [1] * 20


def test_an_address_that_tries_many_names_keeps_no_other_out_and_gets_less_of_each(
    store: Store,
) -> None:
    assert [guess(store, f"name {k}", "192.0.2.1") for k in range(CROWD)] == [0] * CROWD
    assert [guess(store, "ann", "192.0.2.1") for _ in range(3)] == [0, 0, 1]
    assert [guess(store, "ann", "192.0.2.2") for _ in range(6)] == [0] * 5 + [1]


def test_many_addresses_that_try_one_name_wait_for_a_minute_at_most(store: Store) -> None:
    addresses = [f"198.51.{k}.7" for k in range(120)]
    assert [guess(store, "ann", address) for address in addresses] == [0] * 100 + [1] * 20
    now = NOW
    for address in addresses:  # each waits its turn, and tries again
        now += guess(store, "ann", address, now) * SECOND
        guess(store, "ann", address, now)
    assert guess(store, "ann", "203.0.113.1", now) == 60, "or strangers would keep her out"
    assert guess(store, "ben", "203.0.113.1", now) == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),  # one network of 64 bits
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "testclient", True),  # a proxy hands on whatever a stranger made up
        ("x" * 5000, "192.0.2.1", False),
    ],
)
def test_what_is_one_address(one: str, other: str, same: bool) -> None:
    first, second = try_of("ann", one, NOW).keys, try_of("ann", other, NOW).keys
    assert (first["address"] == second["address"]) == same
    assert (first["pair"] == second["pair"]) == same
    assert len(set(first.values())) == 3, "no key may stand for two kinds"


def test_a_right_try_forgives_its_own_and_not_what_others_did(store: Store) -> None:
    for _ in range(4):
        guess(store, "ann", "192.0.2.1")
    for k in range(CROWD - 5):
        guess(store, f"name {k}", "192.0.2.1", NOW + 1)
    with store.begin() as c:
        right = try_of("ann", "192.0.2.1", NOW + 2)
        assert wait(c, right) == 0
        forgive(c, right)
    # CROWD - 1 of this address are still counted, and none of ann's: one more, and it is a crowd.
    assert [guess(store, "ann", "192.0.2.1", NOW + 3) for _ in range(3)] == [0, 0, 1]


def test_a_browser_that_is_known_waits_for_nothing_that_others_did(store: Store) -> None:
    for _ in range(6):
        guess(store, "ann", "192.0.2.1")
    for k in range(CROWD):
        guess(store, "ann", f"198.51.{k}.7")
    assert guess(store, "ann", "192.0.2.1") == 1
    with store.begin() as c:
        waits = [wait(c, try_of("ann", "192.0.2.1", NOW, known=True)) for _ in range(6)]
    assert waits == [0] * 5 + [1], "it has a limit of its own"


def test_what_nobody_looked_at_is_taken_back_and_nothing_else(store: Store) -> None:
    for _ in range(4):
        guess(store, "ann", "192.0.2.1")
    with store.begin() as c:
        unseen = try_of("ann", "192.0.2.1", NOW + 1)
        assert wait(c, unseen) == 0
        cancel(c, unseen)
    assert [guess(store, "ann", "192.0.2.1", NOW + 2) for _ in range(2)] == [0, 1]
