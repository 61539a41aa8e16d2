"""Sealed texts: they go to a browser and come back, and nobody there can read or make one.

The standard library has no cipher, and this is too little for a dependency: HMAC-SHA256 does both
halves. As a pseudorandom function in counter mode, over a nonce that is drawn for each text, it
gives the stream that hides the text; under another key it gives the tag, over all that is sent and
what it is good for. The tag is checked before anything is read (encrypt, then authenticate).
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
    """A text that only ``unseal`` reads; as long as the plain one, and 48 bytes, in base64.

    Args:
        plain: What to hide.
        key: A secret of the server's.
        about: What it is good for; only with the same is it unsealed.
    """
    nonce = secrets.token_bytes(_NONCE)
    hidden = _mixed(plain.encode(), key, nonce)
    sealed = nonce + _tag(key, nonce, hidden, about) + hidden
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def unseal(text: str, key: str, about: Sequence[object]) -> str | None:
    """What ``seal`` was given; None if it did not make this text, for this."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    nonce, tag, hidden = raw[:_NONCE], raw[_NONCE : _NONCE + _TAG], raw[_NONCE + _TAG :]
    if not hmac.compare_digest(_tag(key, nonce, hidden, about), tag):
        return None
    return _mixed(hidden, key, nonce).decode()


def _mixed(data: bytes, key: str, nonce: bytes) -> bytes:
    own = _own_key(key, "stream")
    blocks = (
        hmac.digest(own, nonce + n.to_bytes(8, "big"), hashlib.sha256)
        for n in range(-(-len(data) // _BLOCK))
    )
    return bytes(a ^ b for a, b in zip(data, b"".join(blocks), strict=False))


def _tag(key: str, nonce: bytes, hidden: bytes, about: Sequence[object]) -> bytes:
    good_for = json.dumps([str(each) for each in about]).encode()
    said = len(good_for).to_bytes(8, "big") + good_for + nonce + hidden
    return hmac.digest(_own_key(key, "tag"), said, hashlib.sha256)


def _own_key(key: str, use: str) -> bytes:
    return hmac.digest(key.encode(), f"karat sealed {use}".encode(), hashlib.sha256)
