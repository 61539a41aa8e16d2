"""Passwords: kept as Argon2 hashes, and compared with them."""

from __future__ import annotations

import secrets
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from karat.errors import MissingExtra, UsageError

LEAST = 10
"""Characters of a password, at least."""
MOST = 1000
_AT_ONCE = 4  # looked at in one process at once: each takes 64 MiB meanwhile
_WAITING = 8  # that wait for their turn: each keeps a thread that others' pages need
_PATIENCE_S = 2.0


class Cost(TypedDict, total=False):
    """What a hash costs, in the terms of argon2-cffi."""

    time_cost: int
    memory_cost: int
    parallelism: int


COST = Cost()
"""What hashes cost from now on; what is not set is as argon2-cffi advises."""


class SignInRefused(UsageError):
    """Name or password is wrong, or there were too many tries.

    Attributes:
        wait_s: Seconds until the next try; 0 if it may be at once.
    """

    def __init__(self, what: str, *, wait_s: int = 0, fix: str | None = None) -> None:
        super().__init__(what, fix=fix)
        self.wait_s = wait_s


class Busy(SignInRefused):
    """Too many passwords are looked at just now; nothing is said of this one."""

    def __init__(self) -> None:
        super().__init__("too many people sign in just now: wait 2 seconds", wait_s=2)


class Passwords:
    """Hashes passwords, and compares them.

    Raises:
        MissingExtra: argon2-cffi is not installed.
    """

    def __init__(self) -> None:
        try:
            from argon2 import PasswordHasher
        except ImportError:
            raise MissingExtra("argon2-cffi", "web", "an account") from None
        self._hasher = PasswordHasher(**COST)
        self._turn = threading.BoundedSemaphore(_AT_ONCE)
        self._place = threading.BoundedSemaphore(_AT_ONCE + _WAITING)
        self._nobody: str | None = None

    def hashed(self, password: str) -> str:
        """What is kept of a password.

        Raises:
            UsageError: it is too short or too long.
            Busy: too many passwords are looked at just now.
        """
        password = self.checked(password)
        with self._one_at_a_time():
            return self._hasher.hash(_coded(password))

    def checked(self, password: str) -> str:
        """A password to be kept, in the form in which it is.

        Raises:
            UsageError: it is too short or too long.
        """
        password = _one_form(password)
        if not LEAST <= len(password) <= MOST:
            raise UsageError(
                f"a password has {LEAST} to {MOST:,} characters, and this has {len(password):,}"
            )
        return password

    def right(self, held: str | None, password: str) -> bool:
        """Whether it is the password of a hash; for None False, after as long a time.

        Raises:
            Busy: too many passwords are looked at just now.
        """
        from argon2.exceptions import InvalidHashError, VerificationError

        given = _coded(_one_form(password)[: MOST + 1])
        try:
            with self._one_at_a_time():
                # Somebody who is not there costs as long as a wrong password: no name can be
                # guessed. The first time costs two hashes, whoever it is.
                if self._nobody is None:
                    self._nobody = self._hasher.hash(secrets.token_hex(16))
                self._hasher.verify(held or self._nobody, given)
        except (VerificationError, InvalidHashError):
            return False
        return held is not None

    def is_old(self, held: str) -> bool:
        """Whether a hash was made as one no longer makes them."""
        return self._hasher.check_needs_rehash(held)

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """One of the few turns; who does not get it soon is sent away, and keeps no thread."""
        if not self._place.acquire(blocking=False):
            raise Busy
        try:
            if not self._turn.acquire(timeout=_PATIENCE_S):
                raise Busy
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._place.release()


def _one_form(password: str) -> str:
    # Keyboards differ in how they send é.
    return unicodedata.normalize("NFC", password)


def _coded(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
