"""Password hashing and verification (Argon2)."""

from __future__ import annotations

import secrets
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from karat.errors import MissingExtra, UsageError

LEAST = 10  # minimum length of a password, in characters
MOST = 1000  # maximum length of a password, in characters
_AT_ONCE = 4  # verified at once in one process: each takes 64 MiB
_WAITING = 8  # that queue: each blocks a thread that other pages need
_PATIENCE_S = 2.0


class Cost(TypedDict, total=False):
    """Argon2 parameters, as argon2-cffi names them."""

    time_cost: int
    memory_cost: int
    parallelism: int


COST = Cost()  # parameters of new hashes; those not set default to argon2-cffi's


class SignInRefused(UsageError):
    """The name or password is wrong, or there were too many attempts."""

    def __init__(self, what: str, *, wait_s: int = 0, fix: str | None = None) -> None:
        super().__init__(what, fix=fix)
        self.wait_s = wait_s


class Busy(SignInRefused):
    """Too many passwords are being verified; this one was not."""

    def __init__(self) -> None:
        super().__init__("too many people are signing in: wait 2 seconds", wait_s=2)


class Passwords:
    def __init__(self) -> None:
        try:
            from argon2 import PasswordHasher
        except ImportError:
            raise MissingExtra("argon2-cffi", "web", "an account") from None
        self._hasher = PasswordHasher(**COST)
        self._turn = threading.BoundedSemaphore(_AT_ONCE)
        self._place = threading.BoundedSemaphore(_AT_ONCE + _WAITING)
        self._dummy_hash: str | None = None

    def hashed(self, password: str) -> str:
        password = self.checked(password)
        with self._one_at_a_time():
            return self._hasher.hash(_encoded(password))

    def checked(self, password: str) -> str:
        """A new password in its normal form."""
        password = _normalized(password)
        if not LEAST <= len(password) <= MOST:
            raise UsageError(
                f"a password must have {LEAST} to {MOST:,} characters, got {len(password):,}"
            )
        return password

    def right(self, stored_hash: str | None, password: str) -> bool:
        """Whether a password matches a hash; for None False, after as long a time."""
        from argon2.exceptions import InvalidHashError, VerificationError

        attempt = _encoded(_normalized(password)[: MOST + 1])
        try:
            with self._one_at_a_time():
                # An unknown name takes as long as a wrong password, so names cannot be probed.
                # The first call costs two hashes, whether or not the name exists.
                if self._dummy_hash is None:
                    self._dummy_hash = self._hasher.hash(secrets.token_hex(16))
                self._hasher.verify(stored_hash or self._dummy_hash, attempt)
        except (VerificationError, InvalidHashError):
            return False
        return stored_hash is not None

    def is_old(self, stored_hash: str) -> bool:
        """Whether a hash was made with outdated parameters."""
        return self._hasher.check_needs_rehash(stored_hash)

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Limit what runs at once; raise ``Busy`` rather than block a thread for long."""
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


def _normalized(password: str) -> str:
    # Keyboards differ in how they encode é.
    return unicodedata.normalize("NFC", password)


def _encoded(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
