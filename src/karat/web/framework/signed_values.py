"""Sealed values: a browser stores them, but can neither read nor forge them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken


def seal(plain: bytes, key: str, about: Sequence[object]) -> str:
    """Encrypt and authenticate a value for one purpose (``about``)."""
    return _fernet(key, about).encrypt(plain).decode().rstrip("=")


def unseal(text: str, key: str, about: Sequence[object]) -> bytes | None:
    """The value given to ``seal``; None if it was not sealed with this key and purpose."""
    try:
        return _fernet(key, about).decrypt(text + "=" * (-len(text) % 4))
    except (InvalidToken, ValueError):  # ValueError: surrogates
        return None


def _fernet(key: str, about: Sequence[object]) -> Fernet:
    purpose = json.dumps(["karat sealed", *map(str, about)]).encode()
    return Fernet(base64.urlsafe_b64encode(hmac.digest(key.encode(), purpose, hashlib.sha256)))
