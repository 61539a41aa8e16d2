"""Sealed texts: a browser stores them, but can neither read nor forge them.

Encrypt-then-MAC with HMAC-SHA256 only, since the standard library has no cipher: as a
pseudorandom function in counter mode over a random nonce it gives the key stream; under another
key it authenticates the message and its purpose. The tag is checked before decryption.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence

_NONCE, _TAG, _BLOCK = 16, 32, 32  # bytes


def seal(plain: str, key: str, about: Sequence[object]) -> str:
    """Encrypt and authenticate a text; 48 bytes longer than the plain text, in base64."""
    nonce = secrets.token_bytes(_NONCE)
    hidden = _xor_stream(plain.encode(), key, nonce)
    sealed = nonce + _tag(key, nonce, hidden, about) + hidden
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def unseal(text: str, key: str, about: Sequence[object]) -> str | None:
    """The text given to ``seal``; None if it was not sealed with this key and purpose."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    nonce, tag, hidden = raw[:_NONCE], raw[_NONCE : _NONCE + _TAG], raw[_NONCE + _TAG :]
    if not hmac.compare_digest(_tag(key, nonce, hidden, about), tag):
        return None
    return _xor_stream(hidden, key, nonce).decode()


def _xor_stream(data: bytes, key: str, nonce: bytes) -> bytes:
    stream_key = _derived_key(key, "stream")
    blocks = (
        hmac.digest(stream_key, nonce + n.to_bytes(8, "big"), hashlib.sha256)
        for n in range(-(-len(data) // _BLOCK))
    )
    return bytes(a ^ b for a, b in zip(data, b"".join(blocks), strict=False))


def _tag(key: str, nonce: bytes, hidden: bytes, about: Sequence[object]) -> bytes:
    purpose = json.dumps([str(part) for part in about]).encode()
    message = len(purpose).to_bytes(8, "big") + purpose + nonce + hidden
    return hmac.digest(_derived_key(key, "tag"), message, hashlib.sha256)


def _derived_key(key: str, use: str) -> bytes:
    return hmac.digest(key.encode(), f"karat sealed {use}".encode(), hashlib.sha256)
