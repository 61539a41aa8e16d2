"""Passwords: Argon2 as it is, no other thing taken for one."""

from __future__ import annotations

import threading
import time

import pytest

from karat.errors import UsageError
from karat.workflows.accounts import _passwords as module
from karat.workflows.accounts._passwords import Busy, Passwords


@pytest.fixture(scope="module")
def passwords() -> Passwords:
    """What hashes and compares."""
    return Passwords()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Passwords:
    """What hashes and compares, at hardly any cost."""
    cheap = module.Cost(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(module, "COST", cheap)
    return Passwords()


def test_a_password_is_kept_as_an_argon2id_hash_of_its_own(passwords: Passwords) -> None:
    one, two = passwords.hashed("correct horse"), passwords.hashed("correct horse")
    assert one.startswith("$argon2id$")
    assert one != two, "each has its salt"
    assert passwords.right(one, "correct horse")
    assert passwords.right(two, "correct horse")
    assert not passwords.right(one, "Correct horse")
    assert not passwords.is_old(one)


def test_nobody_has_no_password(passwords: Passwords) -> None:
    assert not passwords.right(None, "correct horse")
    assert not passwords.right(None, "")


def test_the_first_try_costs_the_same_for_a_name_that_is_there(quick: Passwords) -> None:
    held = quick.hashed("correct horse")
    for each in (None, held):
        first = Passwords()
        assert first._dummy_hash is None
        first.right(each, "correct horse")
        assert first._dummy_hash is not None, "or the second try would tell who is there"


def test_what_is_no_hash_lets_nobody_in(passwords: Passwords) -> None:
    for held in ("x", "$argon2id$", "correct horse"):
        assert not passwords.right(held, "correct horse")


def test_length_counts_in_characters_and_all_of_them_count(quick: Passwords) -> None:
    for wrong in ("", "x" * 9, "x" * 1001):
        with pytest.raises(UsageError, match=f"got {len(wrong):,}"):
            quick.hashed(wrong)
    held = quick.hashed("x" * 1000)
    assert quick.right(held, "x" * 1000)
    assert not quick.right(held, "x" * 1001)
    assert not quick.right(held, "x" * 10**6)
    longest = quick.hashed("\u00e9" * 1000)
    assert quick.right(longest, "e\u0301" * 1000), "2,000 code points, and the same 1,000"


def test_a_character_is_the_same_however_it_is_coded(quick: Passwords) -> None:
    held = quick.hashed("caf\u00e9 caf\u00e9s")
    assert quick.right(held, "cafe\u0301 cafe\u0301s")
    assert not quick.right(held, "cafe cafe.")
    assert not quick.right(held, "\ud800\0")


def test_a_weaker_hash_of_earlier_days_is_old(passwords: Passwords) -> None:
    from argon2 import PasswordHasher

    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("correct horse")
    assert passwords.right(weak, "correct horse")
    assert passwords.is_old(weak)


def test_who_cannot_be_looked_at_soon_is_sent_away(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0.05)
    kept, free = [threading.Event() for _ in range(2)]

    class Slow:
        """A hasher that takes until it is let go."""

        def hash(self, _password: bytes) -> str:
            kept.set()
            free.wait(10)
            return "made"

    held = passwords.hashed("correct horse")
    busy = Passwords()
    busy._turn, busy._hasher = threading.BoundedSemaphore(1), Slow()  # type: ignore[assignment]
    one = threading.Thread(target=busy.hashed, args=("correct horse",))
    one.start()
    assert kept.wait(10)
    began = time.monotonic()
    for act in (lambda: busy.hashed("correct horse"), lambda: busy.right(held, "correct horse")):
        with pytest.raises(Busy, match="wait 2 seconds") as raised:
            act()
        assert raised.value.wait_s == 2
    busy._place = threading.BoundedSemaphore(1)
    busy._place.acquire()
    with pytest.raises(Busy):  # nobody waits where many wait already
        busy.hashed("correct horse")
    assert time.monotonic() - began < 1.5
    free.set()
    one.join()
    assert busy._turn.acquire(blocking=False), "every turn is given back"
